"""A later note outdates an earlier one only where it says that the very thing changed."""

from __future__ import annotations

import pytest

from holdfast.memory.superseding import LONGEST_EARLIER, LONGEST_LATER, outdates


@pytest.mark.parametrize(
    ("rule", "earlier", "later"),
    [
        ("left", "I ride a Vespa", "I sold the Vespa and bought a bicycle"),
        ("left", "We deploy with Jenkins", "we moved from Jenkins to Buildkite"),
        ("left", "I smoke ten cigarettes a day", "I stopped smoking"),
        ("left", "I eat meat", "I no longer eat meat"),
        ("left", "Our tickets live in jira", "We track work in linear now, jira is gone"),
        ("left", "Our tickets live in Jira", "We track work in Linear now, Jira is gone"),
        ("left", "I'm reading Middlemarch", "Finished Middlemarch, on to Beloved"),
        ("left", "My boss is Angela", "Angela left; Deepak is my manager these days"),
        ("new value", "My dentist is Dr. Ruiz", "I have a new dentist, Dr. Okafor"),
        ("new value", "Dr. Ruiz is my dentist", "I have a new dentist, Dr. Okafor"),
        ("new value", "Standup is at 9:30", "standup moved to 10:00"),
        ("new value", "The demo is on Tuesday", "Demo has been postponed to Thursday"),
        ("new value", "Rent is 1,200 euros a month", "The landlord raised the rent to 1,350 euros"),
        ("new value", "The pharmacy closes at 18:00", "From next month on the pharmacy closes at 19:00"),
        ("same doing", "I drive a Fiat", "I drive a Tesla now"),
        ("same doing", "I take the 8:05 train to work", "These days I take the 7:40 train"),
        ("home", "I live in Leeds", "We've just moved to Sheffield"),
        ("workplace", "I work at Siemens", "Started at Bosch last Monday"),
        ("taken over", "Clara manages the store", "Ben now manages the store"),
        ("left", "I have a gym membership", "I closed my gym membership"),
        ("left", "I eat fish", "I stopped eating fish"),
        ("left", "I drive a red Opel Corsa, but mostly I walk", "I sold the Corsa. We share a van instead."),
        ("left", "I love red wine", "I've gone off red wine, I'd rather have cider"),
        ("left", "Ida is training for the regatta", "Ida hurt her wrist so she's pulling out of the regatta"),
        ("left", "I have a meeting with Joe on Monday", "I cancelled the meeting on Monday"),
        ("left", "Our vicar is Father Dunn", "Father Dunn is leaving, our new vicar is Father Webb"),
        ("new value", "Yoga is on Monday mornings", "Yoga moved to Thursdays"),
        ("new value", "The recital is on 3 May", "The recital has been moved to 10 May"),
        ("new value", "Physio is on 4 June at 10:30", "they had to push my physio to 9 June"),
        ("new value", "I pay 42 a month for the parking spot", "The parking spot went up to 45"),
        ("home", "My cousin Vera lives in Graz", "Vera's moved to Linz"),
        ("home", "I live in Oslo", "We moved to Bergen with the whole family"),
        ("workplace", "I work for Nokia", "I joined Ericsson as an engineer"),
        ("workplace", "My job is at Nokia", "I left Nokia and joined Ericsson"),
        ("another number", "We have three hens", "We got a fourth hen"),
    ],
)
def test_what_outdates(rule: str, earlier: str, later: str) -> None:
    assert outdates(later, earlier) == rule
    assert outdates(earlier, later) is None


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("I own 2 houses.", "I own 4 houses."),
        ("The rent is 900 euros a month", "Rent is 950 euros a month"),
        ("I have two cats", "I have three cats"),
    ],
)
def test_the_same_with_another_number_is_outdated_by_whichever_came_later(earlier: str, later: str) -> None:
    assert outdates(later, earlier) == outdates(earlier, later) == "another number"


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("My dog eats meat", "I no longer eat meat"),  # another one does it
        ("I ride a Vespa", "Should I sell the Vespa and buy a bicycle?"),  # asked
        ("I ride a Vespa", "I am thinking of selling the Vespa"),  # planned
        ("I ride a Vespa", "I haven't sold the Vespa yet"),  # denied
        ("We deploy with Jenkins", "We might move from Jenkins to Buildkite next year"),
        ("My dentist is Dr. Ruiz", "I need a new dentist"),
        ("My dentist is Dr. Ruiz", "Leo's new dentist is Dr. Kim"),  # somebody else's
        ("My sister drives a Volvo", "I sold my Volvo"),
        ("I work at Siemens", "My wife started at Bosch"),
        ("I live in Leeds", "My parents moved to Sheffield"),
        ("My car is a Golf", "Our second car is a Polo"),  # in addition
        ("I go to the gym on Mondays", "I now also go to the gym on Fridays"),
        ("My cat is called Miso", "I got a new cat called Tofu"),  # of which there may be many
        ("My phone is a Pixel 7", "My new phone case is red"),  # another thing
        ("Standup is at 9:30", "Retro moved to 10:00"),
        ("Standup is at 9:30", "Standup moved to Zoom"),  # another sort of value
        ("Our house is on Elm Street", "Our house now has solar panels"),
        ("The bakery on Main Street opens at 7", "The bakery no longer sells rye bread"),
        ("I live in Leeds", "We moved to Slack for chat"),
        ("I use Slack for chat", "I use Figma for design now"),
        ("I visited Lisbon in 2019", "I visited Porto in 2022"),  # what happened stays so
        ("日本語を話す", "日本語を話さない now"),
        ("I have a meeting at 9:00", "I have a meeting at 14:00"),  # two of a day
        ("Flat 3 is damp", "Flat 5 is damp"),  # two of several
        ("Table 4 has 6 seats", "Table 5 has 8 seats"),
        ("I paid 20 euros for lunch", "I paid 25 euros for lunch"),  # twice
        ("My sister has 2 children", "My brother has 3 children"),
        ("I own 2 houses", "I also own 4 houses"),
        ("The train to Bonn is 12 euros", "The train to Kiel is 40 euros"),
        ("I work at Nokia", "I started working with Postgres"),  # a tool, a doctor, a course, a chat
        ("I work at Nokia", "I started physiotherapy with Dr. Osei"),
        ("I work at Nokia", "I started a drawing course with Skillshare"),
        ("I work at Nokia", "I joined Mastodon last week"),
        ("I live in Oslo", "I moved to Firefox"),
        ("I live in Oslo", "I moved to Obsidian for my diary"),
        ("I live in Graz", "Vera's moved to Linz"),
        ("Vera's cousin lives in Graz", "Vera moved to Linz"),
        ("My train to Bonn is at 9:15", "I cancelled the train to Kiel"),  # another of them
        ("My appointment with Dr. Ode is at 9", "I cancelled the appointment with Dr. Lam"),
        ("The rehearsal on Monday is at 6", "I cancelled the rehearsal on Thursday"),
        ("I own a flat in Leeds", "I sold the flat in York"),
        ("I have a son", "I dropped my son off at school"),  # for the moment
        ("I use Emacs", "I closed Emacs for the night"),
        ("I drive a van", "I stopped the van"),
        ("My phone is a Pixel 7", "I dropped my phone in the sink"),
        ("I live in Leeds", "I returned to Leeds last night"),
        ("My badge number at the pool is 7702", "I quit the pool last week"),  # where it is, not what it is
        ("Petra from the choir is a nurse", "I quit the choir"),
        ("My bike is at the pool", "I quit the pool"),
        ("I have a painting of the Vespa", "I sold the Vespa"),
        ("I paid 60 euros a year for that club", "I quit the club"),  # it was paid
        ("I have a piano", "Bea sold the piano"),
        ("We have three hens", "My neighbour got a fourth hen"),
        ("We have three hens", "We got a fourth hen house"),
        ("My trainer is Mr Lund", "Mr Lund is leaving for Rome on Friday"),
    ],
)
def test_what_only_looks_like_it(earlier: str, later: str) -> None:
    assert outdates(later, earlier) is None


def test_a_long_text_says_more_than_one_thing() -> None:
    earlier, later = "I ride a Vespa", "I sold the Vespa."
    assert outdates(later, earlier + " " * (LONGEST_EARLIER - len(earlier))) == "left"
    assert outdates(later, earlier + " " * (LONGEST_EARLIER - len(earlier) + 1)) is None
    assert outdates(later + " " * (LONGEST_LATER - len(later) + 1), earlier) is None
