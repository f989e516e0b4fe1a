"""Made-up notes of which a later one outdates an earlier one, some that only look like it, and others beside them.

The rules were made with ``TO_BUILD_ON``. ``KEPT`` was written before there was a rule and asked once when they were
done: 9 of its 15 were marked then. Three rules were widened after that, so it measures nothing new any more.
"""

from __future__ import annotations

from typing import NamedTuple


class Pair(NamedTuple):
    """Two notes in the order they were made, and a question about them."""

    earlier: str
    later: str
    question: str


TO_BUILD_ON = (
    Pair("I ride a Vespa", "I sold the Vespa and bought a bicycle", "What do I ride?"),
    Pair("We deploy with Jenkins", "we moved from Jenkins to Buildkite", "Which CI do we use?"),
    Pair("My dentist is Dr. Ruiz", "I have a new dentist, Dr. Okafor", "Who is my dentist?"),
    Pair("I work at Siemens", "Started at Bosch last Monday", "Where do I work?"),
    Pair("Standup is at 9:30", "standup moved to 10:00", "When is standup?"),
    Pair("Our database is MySQL 8", "We switched from MySQL to Postgres for everything", "Which database do we use?"),
    Pair("I drink two coffees every morning", "I quit coffee, only green tea now", "What do I drink in the morning?"),
    Pair("Rent is 1,200 euros a month", "The landlord raised the rent to 1,350 euros", "How much is my rent?"),
    Pair("My phone is a Pixel 7", "Got a new phone, an iPhone 15", "Which phone do I have?"),
    Pair("I go to the gym on Tuesday evenings", "I no longer go to the gym, I swim instead", "What sport do I do?"),
    Pair("The code freeze is on 14 March", "Code freeze got pushed back to 18 March", "When is the code freeze?"),
    Pair("Priya leads the design team", "Tom took over the design team from Priya", "Who leads the design team?"),
    Pair("I live in Leeds", "We've just moved to Sheffield", "Where do I live?"),
    Pair("We have a Netflix family plan", "Cancelled Netflix and signed up for Mubi", "Which streaming do we have?"),
    Pair("I take the 8:05 train to work", "These days I take the 7:40 train", "Which train do I take?"),
)
KEPT = (
    Pair("My bank is Barclays", "Closed my Barclays account, I'm with Monzo now", "Which bank am I with?"),
    Pair(
        "Our tickets live in Jira", "As of this sprint we track work in Linear, Jira is gone", "Where are our tickets?"
    ),
    Pair("Book club meets at Hannah's place", "Book club will be at the library from now on", "Where is book club?"),
    Pair("I play the cello in a quartet", "Gave up the cello and took up drums", "Which instrument do I play?"),
    Pair("The wifi password is sunflower88", "Changed the wifi password to maple2024", "What is the wifi password?"),
    Pair("My boss is Angela", "Angela left; Deepak is my manager these days", "Who is my boss?"),
    Pair(
        "The weekly report is due on Wednesday", "Weekly report deadline is Monday instead", "When is the report due?"
    ),
    Pair("I'm a vegetarian", "I eat meat again since the summer", "Do I eat meat?"),
    Pair("Marta's shop opens at 8:00", "Marta's shop now opens at 9:30", "When does Marta's shop open?"),
    Pair("We host on AWS", "The migration from AWS to Hetzner is done", "Where do we host?"),
    Pair("I weigh 82 kilos", "Down to 77 kilos this week", "How much do I weigh?"),
    Pair("My gym membership is with FitLife", "Swapped FitLife for the climbing hall", "Where do I work out?"),
    Pair("I'm reading Middlemarch", "Finished Middlemarch, on to Beloved", "What am I reading?"),
    Pair("Leo goes to Oakwood school", "Leo started at Riverside school in September", "Which school does Leo go to?"),
    Pair("I use Vim for coding", "I replaced Vim with Helix", "Which editor do I use?"),
)
ONLY_ALIKE = (
    Pair("Note 12: buy stamps", "Note 13: buy stamps", "What does note 12 say?"),
    Pair("My son Leo is 7", "My daughter Mia is 5", "How old is my son?"),
    Pair("gym on Monday", "gym on Thursday", "When is gym?"),
    Pair("I have a red Volvo", "I have a blue Fiat now too", "Which car do I have?"),
    Pair("I like tea", "I now also like coffee", "What do I like to drink?"),
    Pair("My brother works at Shell", "I started at Ikea in May", "Where does my brother work?"),
    Pair("I sold my old sofa", "I bought a new lamp for the living room", "What did I sell?"),
    Pair("Item 3 of the list: batteries", "Item 4 of the list: batteries", "What is on the list?"),
    Pair("I used to smoke", "I smoke salmon at home in winter", "Do I smoke?"),
    Pair("The kitchen is painted yellow", "The bathroom is now painted green", "What colour is the kitchen?"),
    Pair("The flight to Rome leaves at 7:15", "The flight from Rome leaves at 18:40", "When is the flight to Rome?"),
    Pair("My dentist is Dr. Ruiz", "My new dermatologist is Dr. Lam", "Who is my dentist?"),
    Pair(
        "The Berlin office moved to the fourth floor", "The Paris office moved to the second floor", "Where is Berlin?"
    ),
    Pair("We use Slack for chat", "We switched to Figma for design", "What do we use for chat?"),
    Pair("Anna bought a bicycle", "I sold my bicycle to Peter", "Who has a bicycle?"),
    Pair("Backups run at 2:00", "Reports run at 3:30", "When do backups run?"),
    Pair("I visited Lisbon in 2019", "I visited Porto in 2022", "When was I in Lisbon?"),
    Pair("Meeting with Clara at 10:00", "meeting with Joe at 11:00", "When do I meet Clara?"),
    Pair("Step 1: heat the oven to 200 degrees", "Step 2: now lower the oven to 160 degrees", "How hot is the oven?"),
    Pair("My cat is called Miso", "We got a new kitten called Tofu", "What is my cat called?"),
)
BESIDE = (
    "The spare key hangs behind the meter box", "Grandma's plum cake needs 45 minutes at 180 degrees",
    "Passport runs out in August 2029", "I am allergic to walnuts", "The printer is on the second floor",
    "Sofia plays the violin", "Our tax adviser is called Brandt", "The boiler was serviced in October",
    "I prefer aisle seats on planes", "Mum's birthday is 3 February", "The garden hose leaks at the tap",
    "I can't stand coriander", "The invoice template is in the shared folder", "My blood type is A positive",
    "Parking is free after seven", "The neighbours have a beagle named Watson", "Holiday in Crete was wonderful",
    "My shoe size is 43", "The bike lock code is on a sticker under the saddle", "I want to learn Portuguese",
    "The plumber's name is Mr. Lindqvist", "Recycling is collected every second Thursday",
    "I love jazz from the fifties",
    "The server room must stay below 22 degrees", "Our wedding anniversary is 12 June", "I wear contact lenses",
    "The board meets four times a year", "Uncle Ted lives in Adelaide", "My favourite colour is dark green",
    "The attic window does not close properly", "Vaccination against tetanus is due next year",
    "The style guide asks for sentence case in headings", "I sleep badly when it is full moon",
    "The company was founded in 1987", "Elena knows a good tailor", "The sourdough starter is called Bertha",
    "We keep the first aid kit under the sink", "The tent is in the cellar, on the left shelf",
    "I never learned to ski", "The warranty of the washing machine ends in May",
)  # fmt: skip
