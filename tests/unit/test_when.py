"""Time expressions: what each phrase means on one Wednesday, and what no text may do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import when

NOW = datetime(2023, 9, 13, 15, 0, tzinfo=UTC)  # a Wednesday
LONG = 100_000  # characters: with their square it would take longer than anyone waits


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None


# phrase, since, until: one line is one rule of the module's docstring
MEANINGS = [
    ("today", "2023-09-13", "2023-09-14"),
    ("yesterday", "2023-09-12", "2023-09-13"),
    ("tomorrow", "2023-09-14", "2023-09-15"),
    ("the day before yesterday", "2023-09-11", "2023-09-12"),
    ("the day after tomorrow", "2023-09-15", "2023-09-16"),
    ("last week", "2023-09-04", "2023-09-11"),
    ("this week", "2023-09-11", "2023-09-18"),
    ("next week", "2023-09-18", "2023-09-25"),
    ("the week before last", "2023-08-28", "2023-09-04"),
    ("last month", "2023-08-01", "2023-09-01"),
    ("this month", "2023-09-01", "2023-10-01"),
    ("next month", "2023-10-01", "2023-11-01"),
    ("last year", "2022-01-01", "2023-01-01"),
    ("next year", "2024-01-01", "2025-01-01"),
    ("last quarter", "2023-04-01", "2023-07-01"),
    ("last weekend", "2023-09-09", "2023-09-11"),
    ("this weekend", "2023-09-16", "2023-09-18"),
    ("over the weekend", "2023-09-09", "2023-09-11"),
    ("last Friday", "2023-09-08", "2023-09-09"),
    ("last Wednesday", "2023-09-06", "2023-09-07"),
    ("last friday", "2023-09-08", "2023-09-09"),
    ("this Friday", "2023-09-15", "2023-09-16"),
    ("next Friday", "2023-09-15", "2023-09-16"),
    ("next Wednesday", "2023-09-20", "2023-09-21"),
    ("on Friday", "2023-09-08", "2023-09-09"),
    ("on Wednesday", "2023-09-13", "2023-09-14"),
    ("on Tuesday of last week", "2023-09-05", "2023-09-06"),
    ("two days ago", "2023-09-11", "2023-09-12"),
    ("2 days ago", "2023-09-11", "2023-09-12"),
    ("two weeks ago", "2023-08-27", "2023-09-03"),
    ("three months ago", "2023-06-01", "2023-07-01"),
    ("a year ago", "2022-01-01", "2023-01-01"),
    ("half a year ago", "2023-03-01", "2023-04-01"),
    ("a few days ago", "2023-09-08", "2023-09-12"),
    ("a couple of months ago", "2023-06-01", "2023-08-01"),
    ("an hour ago", "2023-09-13T13:30", "2023-09-13T14:30"),
    ("in two weeks", "2023-09-24", "2023-10-01"),
    ("3 days from now", "2023-09-16", "2023-09-17"),
    ("in May", "2023-05-01", "2023-06-01"),
    ("in may", "2023-05-01", "2023-06-01"),
    ("in September", "2023-09-01", "2023-10-01"),
    ("in October", "2022-10-01", "2022-11-01"),
    ("in May 2023", "2023-05-01", "2023-06-01"),
    ("May 2021", "2021-05-01", "2021-06-01"),
    ("May of last year", "2022-05-01", "2022-06-01"),
    ("last May", "2023-05-01", "2023-06-01"),
    ("last September", "2022-09-01", "2022-10-01"),
    ("next May", "2024-05-01", "2024-06-01"),
    ("in 2022", "2022-01-01", "2023-01-01"),
    ("back in 2015", "2015-01-01", "2016-01-01"),
    ("the year 2021", "2021-01-01", "2022-01-01"),
    ("the 1980s", "1980-01-01", "1990-01-01"),
    ("in the 90s", "1990-01-01", "2000-01-01"),
    ("8 May", "2023-05-08", "2023-05-09"),
    ("May 8th", "2023-05-08", "2023-05-09"),
    ("the 8th of May", "2023-05-08", "2023-05-09"),
    ("May the 8th, 2021", "2021-05-08", "2021-05-09"),
    ("Friday, 8 May 2020", "2020-05-08", "2020-05-09"),
    ("2 January", "2024-01-02", "2024-01-03"),
    ("29 February", "2024-02-29", "2024-03-01"),
    ("May 8-10", "2023-05-08", "2023-05-11"),
    ("from 8 to 10 May", "2023-05-08", "2023-05-11"),
    ("on the 8th", "2023-09-08", "2023-09-09"),
    ("on the 20th", "2023-08-20", "2023-08-21"),
    ("early June", "2023-06-01", "2023-06-11"),
    ("mid-June", "2023-06-11", "2023-06-21"),
    ("late June", "2023-06-21", "2023-07-01"),
    ("in early 2022", "2022-01-01", "2022-05-01"),
    ("the end of last year", "2022-09-01", "2023-01-01"),
    ("earlier this month", "2023-09-01", "2023-09-13T15:00"),
    ("later this month", "2023-09-13T15:00", "2023-10-01"),
    ("last summer", "2023-06-01", "2023-09-01"),
    ("in the summer of 2021", "2021-06-01", "2021-09-01"),
    ("last winter", "2022-12-01", "2023-03-01"),
    ("Q3 2022", "2022-07-01", "2022-10-01"),
    ("last Christmas", "2022-12-24", "2022-12-27"),
    ("since March", "2023-03-01", None),
    ("since 2019", "2019-01-01", None),
    ("as of June 2022", "2022-06-01", None),
    ("after May", "2023-06-01", None),
    ("until Tuesday", None, "2023-09-20"),
    ("by Friday", None, "2023-09-16"),
    ("until June", None, "2024-07-01"),
    ("before June", None, "2023-06-01"),
    ("between May and July", "2023-05-01", "2023-08-01"),
    ("between November and February", "2022-11-01", "2023-03-01"),
    ("from Monday to Friday", "2023-09-04", "2023-09-09"),
    ("from May 3 to June 9", "2023-05-03", "2023-06-10"),
    ("in the last 10 days", "2023-09-03", "2023-09-14"),
    ("over the past year", "2022-09-13", "2023-09-14"),
    ("the last month", "2023-08-13", "2023-09-14"),
    ("for the past few months", "2023-04-13", "2023-09-14"),
    ("the next 3 days", "2023-09-13", "2023-09-17"),
    ("this morning", "2023-09-13T05:00", "2023-09-13T12:00"),
    ("last night", "2023-09-12T18:00", "2023-09-13T06:00"),
    ("tonight", "2023-09-13T18:00", "2023-09-14T06:00"),
    ("on Friday evening", "2023-09-08T18:00", "2023-09-09"),
    ("tomorrow at 3pm", "2023-09-14T15:00", "2023-09-14T16:00"),
    ("at 3 pm tomorrow", "2023-09-14T15:00", "2023-09-14T16:00"),
    ("1:56 pm on 8 May, 2023", "2023-05-08T13:56", "2023-05-08T13:57"),
    ("on 8 May at 14:30", "2023-05-08T14:30", "2023-05-08T14:31"),
    ("the week of May 8", "2023-05-08", "2023-05-15"),
    ("2024-03-15", "2024-03-15", "2024-03-16"),
    ("2024-03-15T14:05:00+02:00", "2024-03-15T12:05", "2024-03-15T12:06"),
    ("2024-03", "2024-03-01", "2024-04-01"),
    ("15/03/2024", "2024-03-15", "2024-03-16"),
    ("3/15/2024", "2024-03-15", "2024-03-16"),
    ("15.03.2024", "2024-03-15", "2024-03-16"),
    ("April-25-2024", "2024-04-25", "2024-04-26"),
]


@pytest.mark.parametrize(("phrase", "since", "until"), MEANINGS, ids=[line[0] for line in MEANINGS])
def test_a_phrase_means_an_interval(phrase: str, since: str | None, until: str | None) -> None:
    text = f"Well, {phrase}, she said."
    (span,) = when.find(text, NOW)
    assert span.phrase.casefold() == phrase.casefold()
    assert text[span.start : span.end] == span.phrase
    assert (span.since, span.until) == (_moment(since), _moment(until))


@pytest.mark.parametrize(
    "text",
    [
        "3 days later",
        "the next day",
        "we stayed for two weeks",
        "May I come in?",
        "June said hello to April",
        "they march on",
        "he will fall",
        "on the 8th floor",
        "in 2000 days",
        "room 2022",
        "it cost $2022",
        "03/04/2024",
        "31 June",
        "version 1.2.3",
        "99/99/9999",
        "0000-00-00",
        "the weekend",
        "every Monday at 10 AM",
        "most Fridays, each June",
        "a second ago, a second",
        "sat down in the sun",
        "",
    ],
)
def test_what_is_not_a_time_or_cannot_be_resolved_is_left_out(text: str) -> None:
    assert when.find(text, NOW) == []


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("I will fly on Friday.", "2023-09-15"),
        ("I flew on Friday.", "2023-09-08"),
        ("I have a flight on 8 May.", "2024-05-08"),
        ("We went to Spain in May.", "2023-05-01"),
        ("We're going to visit Spain in May.", "2024-05-01"),
        ("I'll call you on the 8th.", "2023-10-08"),
        ("I will come. We met on Friday.", "2023-09-08"),
        ("The report is due on Wednesday.", "2023-09-13"),
    ],
)
def test_a_word_that_looks_ahead_turns_its_own_sentence(text: str, since: str) -> None:
    (span,) = when.find(text, NOW)
    assert span.since == _moment(since)


def test_days_begin_at_midnight_where_the_speaker_is() -> None:
    tokyo = timezone(timedelta(hours=9))
    (span,) = when.find("yesterday", datetime(2023, 9, 13, 2, 0, tzinfo=tokyo))
    assert span.since == datetime(2023, 9, 11, 15, 0, tzinfo=UTC)
    assert span.until == datetime(2023, 9, 12, 15, 0, tzinfo=UTC)


def test_several_expressions_come_in_order() -> None:
    spans = when.find("Last week I met Ana, in May 2021 her sister; before that, nobody. 今年は2024-03-15です", NOW)
    assert [span.phrase for span in spans] == ["Last week", "in May 2021", "2024-03-15"]


@pytest.mark.parametrize(
    "text", ["会议在2024-03-15举行", "会议在2024年3月15日举行", "الموعد 2024-03-15 صباحا", "बैठक 15.03.2024 को है"]
)
def test_dates_in_digits_are_read_in_any_script(text: str) -> None:
    (span,) = when.find(text, NOW)
    assert span.since == _moment("2024-03-15")


@pytest.mark.parametrize(
    ("stamp", "moment"),
    [
        ("1:56 pm on 8 May, 2023", "2023-05-08T13:56"),
        ("12:09 am on 13 September, 2023", "2023-09-13T00:09"),
        ("April-25-2024", "2024-04-25"),
        ("March 15, 2024", "2024-03-15"),
        ("2024-03-15", "2024-03-15"),
        ("2024-03-15T10:00:00+02:00", "2024-03-15T08:00"),
        ("2024-03-15 10:00:00.5Z", "2024-03-15T10:00:00.500000"),
        ("15/03/2024", "2024-03-15"),
        ("Mon 3 Jun 2024 14:05", "2024-06-03T14:05"),
        ("Mon, 03 Jun 2024 14:05:10 +0200", "2024-06-03T12:05:10"),
        ("Wed Sep 13 15:00:00 2023", "2023-09-13T15:00"),
        ("Jun 3, 2024 2:05 PM PST", "2024-06-03T22:05"),
        ("3/15/2024, 10:20\u202fAM", "2024-03-15T10:20"),
        ("May 2023", "2023-05-01"),
        (" 8th of May, 2023\n", "2023-05-08"),
    ],
)
def test_a_stamp_names_a_moment(stamp: str, moment: str) -> None:
    assert when.parse_moment(stamp) == _moment(moment)


@pytest.mark.parametrize(
    "stamp",
    ["", "hello", "1715000000", "1715000000000", "03/04/2024", "8 May", "yesterday", "10:00", "8 May 2023 and more",
     "2023-02-30", "25:00 on 8 May, 2023", "13 pm on 8 May, 2023", "x" * 1_000_000],
)  # fmt: skip
def test_what_names_no_moment_gives_none(stamp: str) -> None:
    assert when.parse_moment(stamp) is None


def test_a_stamp_without_a_year_needs_today() -> None:
    assert when.parse_moment("8 May", today=NOW) == _moment("2023-05-08")
    assert when.parse_moment("yesterday at 3 pm", today=NOW) == _moment("2023-09-12T15:00")
    assert when.parse_moment("tell me about yesterday", today=NOW) is None


@pytest.mark.parametrize(
    ("typed", "moment"),
    [
        ("now", "2023-09-13T15:00"),
        ("yesterday", "2023-09-12"),
        ("Yesterday 9:30", "2023-09-12T09:30"),
        ("last monday", "2023-09-11"),
        ("monday", "2023-09-11"),
        ("last week", "2023-09-04"),
        ("May", "2023-05-01"),
        ("2022", "2022-01-01"),
        ("2023-05-08", "2023-05-08"),
        ("2023-05-08T10:00+02:00", "2023-05-08T08:00"),
        ("3 days ago", "2023-09-10T15:00"),
        ("two  weeks ago", "2023-08-30T15:00"),
        ("90 minutes ago", "2023-09-13T13:30"),
        ("a month ago", "2023-08-13T15:00"),
        ("2 years ago", "2021-09-13T15:00"),
        ("3 days from now", "2023-09-16T15:00"),
        ("2h ago", "2023-09-13T13:00"),
        ("2 hrs ago", "2023-09-13T13:00"),
        ("90 min ago", "2023-09-13T13:30"),
        ("30s ago", "2023-09-13T14:59:30"),
        ("3D ago", "2023-09-10T15:00"),
        ("1w from now", "2023-09-20T15:00"),
        ("2mo ago", "2023-07-13T15:00"),
        ("an hour ago", "2023-09-13T14:00"),
    ],
)
def test_what_someone_types_as_a_time(typed: str, moment: str) -> None:
    assert when.read_moment(typed, NOW) == _moment(moment)


@pytest.mark.parametrize(
    "typed", ["", "soon", "3 days", "9999 years ago", "2x ago", "anh ago", "h ago", "before yesterday", "x" * 100_000]
)
def test_what_is_no_time_to_type(typed: str) -> None:
    assert when.read_moment(typed, NOW) is None


@pytest.mark.parametrize(
    ("text", "relation", "phrase"),
    [
        ("What did I say before the trip to Paris?", "before", "the trip to Paris"),
        ("after my surgery I felt better", "after", "my surgery"),
        ("since the wedding", "since", "the wedding"),
        ("until we met again in Rome", "until", "we met again in Rome"),
        ("after moving to Berlin, she", "after", "moving to Berlin"),
        ("Where did she live before she moved to Sweden?", "before", "she moved to Sweden"),
        ("after Melanie's birthday party did she", "after", "Melanie's birthday party"),
        ("prior to the launch", "before", "the launch"),
        ("during the camping trip", "during", "the camping trip"),
        ("ever since our holiday", "since", "our holiday"),
    ],
)
def test_time_told_by_an_event(text: str, relation: str, phrase: str) -> None:
    (mark,) = when.find_events(text)
    assert (mark.relation, mark.phrase) == (relation, phrase)
    assert text[mark.start : mark.end].endswith(phrase)


@pytest.mark.parametrize(
    "text", ["after all", "before long", "since then", "before May", "after the weekend", "after that", "until Friday"]
)
def test_no_event_is_seen_where_none_is_told(text: str) -> None:
    assert when.find_events(text) == []


PIECES = (
    "in on at the a an last next this May may June 8 8th 31 2023 2022-13 pm : / - , . ago days weeks few since until "
    "before between and from to early mid late weekend summer Friday noon 99999 0 Q3 's \u0661 \u017f \u212a I will"
)
WORDS = st.sampled_from(PIECES.split())
TEXTS = st.one_of(st.text(), st.lists(WORDS, max_size=30).map(" ".join), st.lists(WORDS, max_size=30).map("".join))
MONTHS = "January February March April May June July August September October November December"
MOMENTS = st.one_of(
    st.datetimes(timezones=st.just(UTC)),
    st.datetimes(timezones=st.just(timezone(timedelta(hours=-11)))),
    st.datetimes(),
)


@given(TEXTS, MOMENTS)
def test_no_text_makes_it_fail_and_spans_are_in_order(text: str, now: datetime) -> None:
    reached = 0
    for span in when.find(text, now):
        assert reached <= span.start < span.end <= len(text)
        assert text[span.start : span.end] == span.phrase
        assert span.since or span.until
        assert not (span.since and span.until) or span.since < span.until
        assert all(edge is None or edge.utcoffset() == timedelta(0) for edge in (span.since, span.until))
        reached = span.end
    for mark in when.find_events(text):
        assert text[mark.start : mark.end].endswith(mark.phrase)
    moment = when.parse_moment(text, today=now)
    assert moment is None or moment.utcoffset() == timedelta(0)


@given(st.datetimes(min_value=datetime(1901, 1, 1), max_value=datetime(2099, 12, 31)))
def test_every_day_is_read_back_in_every_notation(day: datetime) -> None:
    expected = day.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=UTC)
    month = MONTHS.split()[day.month - 1]
    for stamp in (
        f"{day:%Y-%m-%d}",
        f"{day.day} {month} {day.year}",
        f"{month} {day.day}, {day.year}",
        f"{month[:3]} {day.day} {day.year}",
        f"{month}-{day.day}-{day.year}",
        f"{day.day}.{day.month}.{day.year}",
    ):
        assert when.parse_moment(stamp) == expected, stamp
        assert [span.since for span in when.find(f"it was {stamp}.", NOW)] == [expected], stamp


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        "on ",
        "in the last ",
        "8 May ",
        "between May and ",
        "before the ",
        "1-",
        "I will ",
        "'",
        "a",
        "\u4e2d",
        "before I ",
    ],
)
def test_a_long_text_is_read_through(piece: str) -> None:
    text = (piece * (LONG // len(piece) + 1))[:LONG]
    for span in when.find(text, NOW):
        assert span.phrase
    assert isinstance(when.find_events(text), list)
