"""The chain of digests: every field of an event counts, and every break is found where it is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.engine import chain
from holdfast.engine.contract import GENESIS, Event

FIELDS: dict[str, Any] = {"previous": b"p" * 32, "position": 3, "kind": "say", "key": "k", "time": 7, "body": b"hello"}


def chained(*bodies: bytes) -> list[Event]:
    events: list[Event] = []
    digest = GENESIS
    for position, body in enumerate(bodies, 1):
        digest = chain.link(digest, position, "say", None, 0, body)
        events.append(Event("say", body, 0, None, position, digest))
    return events


def found(events: list[Event], after: int = 0, digest: bytes = GENESIS) -> list[int]:
    return [position for position, _ in chain.breaks(events, after, digest)]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("previous", GENESIS), ("position", 4), ("kind", "do"), ("key", None), ("key", ""), ("key", "l"), ("time", 8),
        ("time", -7), ("body", b"hello "), ("body", b""),
    ],
)  # fmt: skip
def test_every_field_counts(field: str, value: object) -> None:
    assert chain.link(**{**FIELDS, field: value}) != chain.link(**FIELDS)


texts = st.text(alphabet="ab\x00 -k1", max_size=3)
fields = st.tuples(st.integers(1, 12), texts, st.none() | texts, st.integers(0, 12), texts.map(str.encode))


@given(fields, fields)
def test_neighbouring_fields_do_not_run_into_each_other(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    """Moving a character from the kind into the key, or from the key into the body, is a change."""
    assert (chain.link(GENESIS, *one) == chain.link(GENESIS, *other)) == (one == other)


def test_the_chain_is_the_same_in_every_version() -> None:
    """Stored digests outlive the code: this value may never change."""
    digest = chain.link(GENESIS, 1, "message", "k", 1_767_225_600_000_000, b"j1{}")
    assert digest.hex() == "b970e8f47fd8279306f90d6c362604f0"


def test_a_whole_chain_has_no_breaks() -> None:
    assert found(chained(b"a", b"b", b"c")) == []
    assert found([]) == []


def test_a_chain_may_begin_in_the_middle() -> None:
    events = chained(b"a", b"b", b"c")
    assert found(events[1:], 1, events[0].digest) == []
    assert found(events[1:], 1, GENESIS) == [2]


@pytest.mark.parametrize("change", [{"body": b"x"}, {"kind": "do"}, {"key": "k"}, {"time": 1}])
def test_a_changed_event_is_named(change: dict[str, Any]) -> None:
    events = chained(b"a", b"b", b"c")
    events[1] = msgspec.structs.replace(events[1], **change)
    assert list(chain.breaks(events, 0, GENESIS)) == [(2, "entry 2 was changed after it was written")]


def test_a_changed_event_with_a_fitting_digest_shows_at_the_next() -> None:
    events = chained(b"a", b"b", b"c")
    events[1] = chained(b"a", b"x")[1]
    assert found(events) == [3]


@pytest.mark.parametrize(
    ("left", "where", "what"),
    [([0, 2], 2, "entry 2 is"), ([0, 4], 2, "entry 2 to 4 is"), ([3], 1, "entry 1 to 3 is")],
)
def test_missing_events_are_named(left: list[int], where: int, what: str) -> None:
    events = chained(b"a", b"b", b"c", b"d", b"e")
    assert list(chain.breaks([events[index] for index in left], 0, GENESIS)) == [(where, f"{what} missing")]


def test_swapped_events_are_found() -> None:
    a, b, c = chained(b"a", b"b", b"c")
    swapped = [a, msgspec.structs.replace(c, position=2), msgspec.structs.replace(b, position=3)]
    assert found(swapped) == [2, 3]


def test_every_break_is_reported_once() -> None:
    events = chained(b"a", b"b", b"c", b"d", b"e", b"f")
    events[1] = msgspec.structs.replace(events[1], body=b"x")
    del events[3]
    assert found(events) == [2, 4]
