"""Summaries in the words of a conversation: what stays, what goes, and a limit that holds for any text and counter."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.context.sentences import ELLIPSIS
from holdfast.context.summary import SummaryLine, summarise

COUNTERS: dict[str, Callable[[str], int]] = {
    "quarters": lambda text: len(text) // 4 + 1,
    "words": lambda text: len(text.split()),
    "characters": len,
    "bytes": lambda text: len(text.encode("utf-8", "surrogatepass")),
    "more together": lambda text: len(text) + text.count("\n") * 7,
}
quarters = COUNTERS["quarters"]

_LINE = re.compile(r"- (?P<speaker>[^:]*): (?P<words>.*) \(#(?P<number>\d+)(?:, (?P<day>\d{4}-\d\d-\d\d))?\)")
_OURS = re.compile(r"\[(?:code|a list of \d+)\]|[\u2026\u00b7]")  # what no one said

texts = (
    st.text(st.characters(), max_size=300)
    | st.lists(
        st.sampled_from(
            [
                "Yes.",
                "We meet at 9.30 in Oslo.",
                "なに\uff1f",
                "明日は雨です。",
                "- eggs",
                "```",
                "x = 1",
                "Ça va?",
                "हाँ।",
                "\n",
                "👩‍👧",
            ]
        ),
        max_size=25,
    ).map(" ".join)
    | st.lists(st.sampled_from(["# Plan", "* one", "2) two", "```py", "Wait...", "", "ok", "a" * 90]), max_size=25).map(
        "\n".join
    )
)
lines = st.lists(st.tuples(st.sampled_from(["user", "assistant", "Ana"]), texts), max_size=12).map(
    lambda said: [SummaryLine(number, speaker, text) for number, (speaker, text) in enumerate(said, 1)]
)


def talk(*said: tuple[str, str]) -> list[SummaryLine]:
    return [SummaryLine(number, speaker, text) for number, (speaker, text) in enumerate(said, 1)]


def squeezed(text: str) -> str:
    return " ".join(text.split())


def quoted(line: str) -> list[str]:
    """What a line of a summary says that someone said: its words without stand-ins, at the gaps."""
    found = _LINE.fullmatch(line)
    assert found, line
    return [part.strip() for part in _OURS.split(found["words"])]


@pytest.mark.parametrize("counter", COUNTERS)
@given(said=lines, limit=st.integers(-1, 400))
def test_never_over_the_limit(counter: str, said: list[SummaryLine], limit: int) -> None:
    count = COUNTERS[counter]
    summary = summarise(said, limit, count)
    assert summary == "" or count(summary) <= limit


@given(said=lines, limit=st.integers(1, 400))
def test_every_line_is_somebodys_words(said: list[SummaryLine], limit: int) -> None:
    numbers = []
    for line in summarise(said, limit, quarters).split("\n"):
        if not line:
            continue
        found = _LINE.fullmatch(line)
        assert found, line
        entry = said[int(found["number"]) - 1]
        numbers.append(entry.number)
        assert found["speaker"] == entry.speaker
        whole = squeezed(entry.text)
        if _OURS.search(whole):
            continue  # such a line cannot be taken apart
        for part in quoted(line):
            assert part in whole
    assert numbers == sorted(set(numbers))


@given(said=lines, limit=st.integers(1, 200))
def test_the_same_again(said: list[SummaryLine], limit: int) -> None:
    assert summarise(said, limit, quarters) == summarise(list(said), limit, quarters)


def test_the_same_in_another_process() -> None:
    """Sets of text have another order in every process; that must not show."""
    program = (
        "from holdfast.context.summary import SummaryLine, summarise\n"
        "places = 'Oslo Bergen Turku Gdansk Riga Kiel Malmo Visby'.split()\n"
        "said = [SummaryLine(i, 'ab'[i % 2], f'The ferry to {p} leaves from pier {q}. Nobody sails to {q} via {p}.')\n"
        "        for i, (p, q) in enumerate((p, q) for p in places for q in places)]\n"
        "print(summarise(said, 300, lambda text: len(text) // 4 + 1))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1
    assert b"ferry" in outputs.pop()


def test_what_matters_stays_and_talk_goes() -> None:
    said = talk(
        ("user", "Hello there! How are you? Thanks for being around."),
        ("assistant", "Hi! I'm glad to help. Let me know what you need."),
        ("user", "Great. Book the morning flight to Oslo on 12 May, budget 400 EUR. Thank you so much!"),
        ("assistant", "Sure, thanks! The booking failed with error 502 from the payment server."),
        ("user", "Oh no. OK, thanks!"),
        ("assistant", "You are welcome! Feel free to ask."),
        ("user", "I am allergic to peanuts, so please order a special meal."),
        ("assistant", "Sure! Great! Sounds good!"),
    )
    summary = summarise(said, 62, quarters)
    for kept in ("12 May, budget 400 EUR. (#3)", "error 502", "allergic to peanuts"):
        assert kept in summary
    for gone in ("Hello", "welcome", "Feel free", "Sounds good"):
        assert gone not in summary


def test_one_line_is_as_promised() -> None:
    said = [SummaryLine(17, "user", "Book the morning flight to Oslo, budget 400 EUR")]
    assert summarise(said, 100, quarters) == "- user: Book the morning flight to Oslo, budget 400 EUR (#17)"


def test_a_repetition_is_told_once() -> None:
    said = talk(
        *[("user" if n % 2 else "assistant", "The parcel weighs 31 kilos and goes to Gdansk.") for n in range(10)]
    )
    assert summarise(said, 400, quarters).count("parcel") == 1


def test_a_question_that_nobody_answered_stays() -> None:
    filler = [
        (
            "assistant",
            f"Section {n} explains turbine model {n * 7} with {n * 13} blades and bearing type {n * 3} in detail.",
        )
        for n in range(1, 30)
    ]
    said = talk(*filler[:10], ("user", "May I bring my dog?"), ("user", "Go on with the turbines."), *filler[10:])
    assert "May I bring my dog? (#11)" in summarise(said, 100, quarters)
    said = talk(*filler, ("user", "And who pays for it?"))
    assert "And who pays for it? (#30)" in summarise(said, 100, quarters)


def test_every_long_stretch_is_heard() -> None:
    rich = [("user", f"Invoice {n}{n}7 over {n * 31} EUR is due on {n % 28 + 1} June in Turku.") for n in range(1, 61)]
    plain = [("assistant", "The weather stayed grey while everybody waited for the bus.")]
    said = talk(*rich[:30], *plain * 20, *rich[30:])
    summary = summarise(said, 400, quarters)
    numbers = [int(found) for found in re.findall(r"\(#(\d+)\)", summary)]
    assert any(30 < number <= 50 for number in numbers)


def test_code_and_long_lists_are_mentioned() -> None:
    items = "\n".join(f"- item {n}" for n in range(12))
    said = talk(
        ("user", "This parser loses the last row of the file:\n```python\nfor row in rows[:-1]:\n    parse(row)\n```"),
        ("assistant", f"Before the release on 3 June check these points:\n{items}"),
        ("user", "```\nonly = code\n```"),
    )
    summary = summarise(said, 42, quarters)
    assert "- user: This parser loses the last row of the file: [code] (#1)" in summary
    assert "- assistant: Before the release on 3 June check these points: [a list of 12] " in summary
    assert "rows[:-1]" not in summary
    assert summarise(said[2:], 60, quarters) == "- user: [code] (#3)"


def test_a_day_is_told_when_it_begins() -> None:
    first = datetime(2024, 3, 15, 9, tzinfo=UTC)
    said = [
        SummaryLine(n, "user", f"Meter {n * 11} shows {n * 137} units.", first + timedelta(hours=8 * n))
        for n in range(6)
    ]
    summary = summarise(said, 500, quarters)
    assert [found for found in re.findall(r"\(#\d+(?:, ([-\d]+))?\)", summary)] == [
        *("2024-03-15", ""),
        *("2024-03-16", "", ""),
        "2024-03-17",
    ]


@pytest.mark.parametrize(
    ("chatter", "telling"),
    [
        ("はい、わかりました。", "飛行機は五月十二日の朝八時にオスロへ出発します。"),
        ("好的\uff0c知道了。", "会议改到星期四下午三点\uff0c在二号楼四层举行。"),
        ("Да, понятно.", "Поезд в Казань отправляется в 7:40 на третьем пути."),
        ("نعم، حسنا.", "موعد الطبيب يوم الثلاثاء الساعة 10 في شارع النيل."),
        ("हाँ, ठीक है।", "डॉक्टर से मुलाकात मंगलवार को सुबह 10 बजे है।"),
    ],
)
def test_any_script(chatter: str, telling: str) -> None:
    said = talk(
        *[("user", chatter), ("assistant", chatter)] * 6, ("user", f"{chatter} {telling}"), ("assistant", chatter)
    )
    summary = summarise(said, len(telling) + 24, len)
    assert telling in summary
    assert summary.endswith("(#13)")


def test_one_long_entry_takes_no_long_time() -> None:
    """Sentences of the same entry are not counted again and again; a counter tells how much was asked of it."""
    asked = 0

    def count(text: str) -> int:
        nonlocal asked
        asked += len(text)
        return len(text) // 4 + 1

    text = " ".join(f"Sensor {n} in hall {n % 17} reads {n * 7919 % 1009} degrees." for n in range(3000))
    summary = summarise([SummaryLine(1, "tool", text)], 12_000, count)
    assert 40_000 < len(summary) < 48_000
    assert asked < 20 * len(text)


@pytest.mark.parametrize("limit", [5, 8, 12, 20])
def test_a_small_limit_cuts_a_sentence(limit: int) -> None:
    said = talk(("user", "The " + "very " * 50 + "long sentence about the budget of Oslo goes on and on"))
    summary = summarise(said, limit, quarters)
    assert quarters(summary) <= limit
    assert not summary or summary.endswith(f"{ELLIPSIS} (#1)")
    assert summary or limit < 8


def test_nothing_said() -> None:
    assert summarise([], 100, quarters) == ""
    assert summarise(talk(("user", ""), ("assistant", " \n ")), 100, quarters) == ""
    assert summarise(talk(("user", "Book it.")), 0, quarters) == ""


@settings(max_examples=settings().max_examples // 2)
@given(st.integers(1, 12))
def test_more_room_tells_more(step: int) -> None:
    said = talk(
        *[
            ("user", f"Order {n} of {n * 37} bolts goes to hall {n * 5}. Then crane {n + 200} lifts it.")
            for n in range(40)
        ]
    )
    small, large = (len(summarise(said, limit, quarters)) for limit in (step * 50, step * 100))
    assert small < large or large > 40 * 60
