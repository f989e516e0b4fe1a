"""Hits on a page: what was said briefly is shown whole, of long texts what matters, and less of what ranks lower."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.context import hits
from holdfast.context.excerpt import glimpse
from holdfast.context.hits import Viewed, extent, recalled
from holdfast.context.sections import Count, arranged
from holdfast.records import Entry, Hit

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HARBOUR = Viewed("harbour", NOW, "ana")


def words(text: str) -> int:
    return len(text.split())


def hit(number: int, text: str) -> Hit:
    entry = Entry("t", number, "message", {"role": "user", "content": text}, None, 0, b"")
    return Hit(text, 1.0, "message", NOW, "stated", entry=entry)


def long(size: int) -> str:
    """So many words, among them in the middle what is asked for."""
    around = "grass grows there. " * (size // 6)
    return f"{around}The harbour is closed on Monday. {around}"


def shown(text: str, rank: int) -> str:
    found = [hit(number, f"short {number}") for number in range(rank)] + [hit(rank, text)]
    return recalled(found, Viewed("when is the harbour closed?", NOW, "ana"), words)[rank].text.partition(": ")[2]


@pytest.mark.parametrize("rank", [0, 2, 3, 9, 10, 150])
def test_up_to_a_length_a_text_is_shown_whole_and_of_a_longer_one_what_matters(rank: int) -> None:
    whole, part = extent(rank)
    fits = "w " * (whole - 1) + "w"
    assert shown(fits, rank) == fits
    cut = shown(long(whole + 30), rank)
    assert "The harbour is closed on Monday." in cut
    assert words(cut) <= part
    assert cut.startswith("…")


def test_what_ranks_lower_is_shown_shorter() -> None:
    assert [extent(rank).part for rank in (0, 2)] == [hits.EXCERPT] * 2
    assert all(extent(rank + 1) <= extent(rank) for rank in range(300))
    assert extent(300).part < extent(3).part < extent(0).part


def test_the_same_hits_make_the_same_bytes_also_without_those_after_them() -> None:
    found = [hit(number, long(200) if number % 3 else f"harbour {number}") for number in range(30)]
    whole = recalled(found, HARBOUR, words)
    assert whole == recalled(found, HARBOUR, words)
    assert whole[:12] == recalled(found[:12], HARBOUR, words)
    assert arranged(whole) == arranged(reversed(whole))


@given(st.text(), st.text(max_size=60), st.integers(0, 80), st.sampled_from([words, len]))
def test_a_glimpse_never_counts_more_than_it_may(text: str, query: str, limit: int, count: Count) -> None:
    shown = glimpse(text, query, limit, count)
    assert count(shown) <= limit
    parts = [part.strip() for part in shown.split("…")]
    assert all(part in text for part in parts) or "…" in text


def test_a_glimpse_is_where_the_words_of_the_question_stand_together() -> None:
    text = f"The harbour is big. {long(300)} It rains. Is the harbour ever closed? {long(300)}"
    assert glimpse(text, "which Monday was the harbour closing?", 12, words).startswith(
        "… The harbour is closed on Monday."
    )
    assert glimpse(text, "zebra", 12, words).startswith("The harbour is big.")
    assert glimpse("港口很大。" * 99 + "星期一港口关闭。" + "天气很好。" * 99, "星期一关闭吗", 30, len).startswith(
        "… 星期一港口关闭"
    )


@pytest.mark.parametrize("room", [0, 1, 40, 400, 10_000])
def test_with_room_only_what_could_fill_it(room: int) -> None:
    found = [hit(number, f"harbour {number} " + "and so on " * 5) for number in range(50)]
    everything = recalled(found, HARBOUR, words)
    some = recalled(found, HARBOUR, words, room)
    assert some[1:] == everything[1 : len(some)]
    assert room < 40 or some[:1] == everything[:1]
    assert len(some) == 50 or sum(words(piece.text) for piece in some) >= room
    assert sum(words(piece.text) for piece in some[:-1]) < max(room, 1)


def test_what_a_later_hit_outdates_says_so() -> None:
    older = msgspec.structs.replace(hit(1, "I ride a Vespa"), superseded_by="t#2")
    [piece] = recalled([older], Viewed("What do I ride?", NOW, "ana"), words)
    assert piece.text == "- #1 user: I ride a Vespa (superseded by t#2)"


@given(st.integers(20, 700), st.integers(1, 900))
def test_the_best_hit_is_cut_to_the_room_and_still_says_what_matters(room: int, size: int) -> None:
    (piece, *_) = recalled([hit(1, long(size)), hit(2, "short")], HARBOUR, words, room)
    assert words(piece.text) + words(piece.group) <= room
    assert room < 30 or "harbour is closed" in piece.text


def test_hits_of_which_none_answers_are_shown_shorter() -> None:
    found = [hit(number, long(150)) for number in range(3)]
    close = recalled(found, HARBOUR._replace(answers=False), words)
    assert all(words(piece.text) <= 55 for piece in close)
    assert all(words(piece.text) > 100 for piece in recalled(found, HARBOUR, words))


@given(st.lists(st.tuples(st.sampled_from(("trip", "home")), st.integers(0, 2)), min_size=1, max_size=20))
def test_on_the_page_the_best_is_first_and_each_source_stands_best_first(sources: list[tuple[str, int]]) -> None:
    """Whatever the numbers and the days of the entries are."""
    found = [
        Hit(
            "x",
            1.0,
            "message",
            NOW - timedelta(days=ago),
            "stated",
            entry=Entry(thread, 99 - n, "message", {}, None, 0, b""),
        )
        for n, (thread, ago) in enumerate(sources)
    ]
    lines = arranged(recalled(found, HARBOUR, words)).split("\n")
    best: dict[tuple[str, int], list[str]] = {}
    for source, one in zip(sources, found, strict=True):
        best.setdefault(source, []).append(one.id)
    ids = [line.split(" ")[1] for line in lines if line.startswith("- ")]
    assert ids == [f"#{id.rpartition('#')[2]}" for group in best.values() for id in group]
    assert len(lines) == len(found) + len(best)
