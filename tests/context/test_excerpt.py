"""Excerpts: the matching parts of a long text, never over the limit, never torn apart where people would see it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.context.excerpt import excerpt
from holdfast.context.sentences import ELLIPSIS, bare, cut, pieces

COUNTERS: dict[str, Callable[[str], int]] = {
    "quarters": lambda text: len(text) // 4 + 1,
    "words": lambda text: len(text.split()),
    "characters": len,
    "bytes": lambda text: len(text.encode("utf-8", "surrogatepass")),
    "uneven": lambda text: len(text) + (7 if len(text) % 3 else 0),
}
quarters = COUNTERS["quarters"]

WORDS = [
    "Oslo",
    "ferry",
    "the",
    "budget.",
    "12.5",
    "e.g.",
    "なに\uff1f",
    "東京。",
    "नमस्ते।",
    "👩‍👧",
    "\n",
    "- item",
    "```",
    "é",
    "x" * 80,
]
texts = st.text(st.characters(), max_size=500) | st.lists(st.sampled_from(WORDS), max_size=120).map(" ".join)
queries = st.text(max_size=20) | st.sampled_from(["Oslo ferries", "budget 東京", "item", ""])

PARAGRAPHS = (
    "The harbour opens at six. Boats wait outside until then.\n\n"
    "Tickets are sold at the kiosk. A ticket to Bergen costs 42 EUR. Children travel free.\n\n"
    + "Many people walk along the pier in summer. The cafes are full. Gulls steal the chips.\n" * 12
    + "\nLost luggage is kept in room 7 for thirty days. Ask for Ms. Lind there.\n\n"
    + "The lighthouse was painted last year. It is white again.\n" * 6
)


@pytest.mark.parametrize("counter", COUNTERS)
@given(text=texts, query=queries, limit=st.integers(-1, 150))
def test_never_over_the_limit(counter: str, text: str, query: str, limit: int) -> None:
    count = COUNTERS[counter]
    shown = excerpt(text, query, limit, count)
    assert shown == "" or count(shown) <= limit
    if count(text) <= limit:
        assert shown == text


@given(text=texts.filter(lambda text: ELLIPSIS not in text), query=queries, limit=st.integers(1, 150))
def test_parts_of_the_text_in_order(text: str, query: str, limit: int) -> None:
    at = 0
    for part in excerpt(text, query, limit, len).split(ELLIPSIS):
        if part.strip():
            found = text.find(part.strip(), at)
            assert found >= 0
            at = found + len(part.strip())


@given(text=texts, query=queries, limit=st.integers(1, 100))
def test_the_same_again(text: str, query: str, limit: int) -> None:
    assert excerpt(text, query, limit, quarters) == excerpt(text, query, limit, quarters)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("How much is a ticket to Bergen?", "A ticket to Bergen costs 42 EUR."),
        ("where is my lost luggage", "Lost luggage is kept in room 7 for thirty days."),
        ("painting lighthouses", "The lighthouse was painted last year."),
    ],
)
def test_the_matching_sentence_is_shown_whole(query: str, wanted: str) -> None:
    shown = excerpt(PARAGRAPHS, query, 40, quarters)
    assert wanted in shown
    assert shown.startswith(ELLIPSIS)


def test_what_is_next_to_a_match_comes_with_it() -> None:
    shown = excerpt(PARAGRAPHS, "lost luggage", 25, quarters)
    assert shown == f"{ELLIPSIS} Lost luggage is kept in room 7 for thirty days. Ask for Ms. Lind there. {ELLIPSIS}"


def test_two_places_with_a_gap() -> None:
    shown = excerpt(PARAGRAPHS, "ticket price, lost luggage", 50, quarters)
    assert f"\n{ELLIPSIS}\n" in shown
    assert shown.index("Bergen costs 42 EUR.") < shown.index("Lost luggage")


def test_without_a_match_the_beginning() -> None:
    for query in ("quantum chromodynamics", "", "the of and"):
        shown = excerpt(PARAGRAPHS, query, 20, quarters)
        assert shown.startswith("The harbour opens at six.")
        assert shown.endswith(ELLIPSIS)


def test_a_long_line_is_shown_around_the_match() -> None:
    text = "alpha beta " * 400 + "the password is swordfish " + "gamma delta " * 400
    shown = excerpt(text, "swordfish", 20, quarters)
    assert "swordfish" in shown
    assert quarters(shown) <= 20
    for word in shown.strip(ELLIPSIS).replace(ELLIPSIS, " ").split():
        assert word in text.split()


def test_a_huge_word_is_cut() -> None:
    shown = excerpt("A" * 100_000, "A", 50, quarters)
    assert set(shown) == {"A", ELLIPSIS}
    assert 180 <= len(shown) <= 200


def test_a_script_without_spaces() -> None:
    text = "今日は天気がいいです。" * 20 + "鍵は青い箱の中にあります。" + "明日は海へ行きます。" * 20
    shown = excerpt(text, "鍵はどこですか", 40, len)
    assert "鍵は青い箱の中にあります。" in shown


@given(st.integers(2, 60))
@example(10)
def test_no_visible_character_is_torn(limit: int) -> None:
    for character in ("👩\u200d👩\u200d👧", "e\u0301", "👍\U0001f3fd", "कि", "\ud83d\ude00"):
        shown = cut(character * 40, limit, len).removesuffix(ELLIPSIS)
        if len(shown) >= len(character):
            assert shown == character * (len(shown) // len(character))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Dr. Lind paid 3.50 EUR. Then she left.", ["Dr. Lind paid 3.50 EUR.", "Then she left."]),
        ("See https://a.example/b.c?d=e. Good.", ["See https://a.example/b.c?d=e.", "Good."]),
        (
            "We meet at 9 a.m. in Oslo, e.g. at no. 5. Bring J. Smith!",
            ["We meet at 9 a.m. in Oslo, e.g. at no. 5. Bring J. Smith!"],
        ),
        ("She said no. He left.", ["She said no.", "He left."]),
        ("i went home. it rained", ["i went home.", "it rained"]),
        ("Well... maybe. Really?! Yes.", ["Well... maybe.", "Really?!", "Yes."]),
        ('He said "stop." Then he ran.', ['He said "stop."', "Then he ran."]),
        ("Am 3. Mai fliege ich. Dann nicht.", ["Am 3. Mai fliege ich.", "Dann nicht."]),
        ("明日は雨です。傘は\uff1f「はい。」と彼。", ["明日は雨です。", "傘は\uff1f", "「はい。」", "と彼。"]),
        ("यह ठीक है। चलो।", ["यह ठीक है।", "चलो।"]),
        ("كيف حالك؟ أنا بخير.", ["كيف حالك؟", "أنا بخير."]),
        ("1. First. 2\n- second\n\n* third", ["First.", "2", "second", "third"]),
        ("# Plan\nGo.", ["Plan", "Go."]),
    ],
)
def test_sentences(text: str, wanted: list[str]) -> None:
    assert [bare(text, piece) for piece in pieces(text)] == wanted


@given(texts)
def test_pieces_are_all_of_the_text(text: str) -> None:
    found = pieces(text)
    assert "".join("".join(text[start:end].split()) for start, end, _ in found) == "".join(text.split())
    assert all(start < end for start, end, _ in found)
    assert all(before.end <= after.start for before, after in pairwise(found))


def test_code_is_known_by_its_fence() -> None:
    text = "Look:\n```python\nx = 1. Y\n```\nDone."
    assert [piece.kind for piece in pieces(text)] == ["said", "code", "code", "code", "said"]
