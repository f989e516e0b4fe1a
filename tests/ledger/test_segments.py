"""Lists that are saved again and again: each version reads back exactly, and takes no more than what is new in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.engine.contract import Append, Event, Mark, Put
from holdfast.errors import Corrupt, Unsupported
from holdfast.ledger import segments
from holdfast.ledger.segments import EMPTY, SEGMENT, Element, ElementRef, ListVersion


class Lists:
    """One segment in a store, and every version that was saved of it."""

    def __init__(self, store: holdfast.Store) -> None:
        self.engine, self.tenant = store.core.engine, store.tenant
        self.head = 0
        self.saved: list[tuple[ListVersion, list[bytes]]] = [(EMPTY, [])]
        self.bytes = 0
        log = tuple(Event("message", b"entry %d" % number, 0) for number in range(20))
        self.engine.commit(self.tenant, (Append("thread", "log", log, 0, Put("thread", "log", b"")),), 0)
        record = self.engine.get(self.tenant, "thread", "log")
        assert record is not None
        self.log = record.mark.stream

    def elements(self, values: Sequence[bytes]) -> list[Element]:
        """Values as elements; those that are entries of the log are where they are."""
        return [
            Element(value, b"", ElementRef(self.log, int(value[6:]) + 1))
            if value.startswith(b"entry ")
            else Element(segments.digest_of(value), value)
            for value in values
        ]

    def save(self, values: Sequence[bytes], before: int = -1) -> ListVersion:
        events, version = segments.saved(self.saved[before][0], self.head, self.elements(values), 0)
        if events:
            op = Append(SEGMENT, "list", tuple(events), self.head, Put(SEGMENT, "list", b""))
            self.engine.commit(self.tenant, (op,), 0)
        self.head += len(events)
        self.bytes += sum(len(event.body) for event in events)
        self.saved.append((version, list(values)))
        return version

    @property
    def stream(self) -> int:
        record = self.engine.get(self.tenant, SEGMENT, "list")
        return 0 if record is None else record.mark.stream

    def read(self, position: int) -> list[bytes]:
        places, _ = segments.places_at(self.engine, self.tenant, self.stream, position)
        return segments.bodies_at(self.engine, self.tenant, self.stream, places)

    def check(self) -> None:
        for version, values in self.saved:
            assert self.read(version.position) == values
            places, noted = segments.places_at(self.engine, self.tenant, self.stream, version.position)
            assert places == version.places
            assert noted == version.noted


@pytest.fixture
def lists(store: holdfast.Store, any_engine: None) -> Lists:
    return Lists(store)


VALUES = st.sampled_from([b"a", b"b", b"c", b"", b"x" * 50, *(b"entry %d" % number for number in range(20))])
FRESH = st.binary(min_size=1, max_size=12).filter(lambda value: not value.startswith(b"entry "))
MANY = st.lists(VALUES | FRESH, max_size=6) | st.lists(VALUES, min_size=30, max_size=90)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["grow", "grow", "grow", "shrink", "edit", "reorder", "insert", "same", "other", "empty"]),
        MANY, st.integers(0, 1_000), st.booleans(),
    ),
    max_size=14,
)  # fmt: skip


def changed(values: list[bytes], what: str, more: list[bytes], number: int) -> list[bytes]:
    place = number % (len(values) + 1)
    return {
        "grow": [*values, *more], "shrink": values[:place], "insert": [*values[:place], *more, *values[place:]],
        "edit": [*values[:place], *more[:1], *values[place + 1 :]], "reorder": [*values[place:], *values[:place]],
        "same": values, "other": more, "empty": [],
    }[what]  # fmt: skip


@given(steps=STEPS)
def test_any_sequence_of_versions_reads_back(steps: list[Any]) -> None:
    with holdfast.open("ram:", embedder="none") as store:
        lists = Lists(store)
        for what, more, number, forks in steps:
            before = number % len(lists.saved) if forks else -1
            lists.save(changed(lists.saved[before][1], what, more, number), before)
        lists.check()


@given(steps=STEPS)
def test_a_writer_that_read_a_version_goes_on_like_one_that_wrote_it(steps: list[Any]) -> None:
    with holdfast.open("ram:", embedder="none") as store:
        lists = Lists(store)
        for what, more, number, forks in steps:
            before = number % len(lists.saved) if forks else -1
            known, values = lists.saved[before]
            places, noted = segments.places_at(lists.engine, lists.tenant, lists.stream, known.position)
            digests = tuple(element.digest for element in lists.elements(values))
            lists.saved[before] = ListVersion(known.position, places, digests, noted), values
            lists.save(changed(values, what, more, number), before)
        lists.check()


def test_a_list_that_grows_takes_what_is_in_it(lists: Lists) -> None:
    values: list[bytes] = []
    for number in range(600):
        values = [*values, b"%d " % number * 10]
        lists.save(values)
    content = sum(map(len, values))
    assert lists.bytes < 1.2 * content + 600
    assert lists.read(lists.saved[300][0].position) == values[:300]
    assert lists.head < 600 + 600 // 16


def test_a_window_that_moves_takes_what_is_new_and_a_few_bytes_for_each_element(lists: Lists) -> None:
    values = [b"%d " % number * 10 for number in range(40)]
    for number in range(400):
        values = [*values[1:], b"new %d " % number * 10]
        lists.save(values)
    assert lists.bytes < 1.2 * 440 * 60 + 400 * 40 * 16
    lists.check()


def test_an_edit_of_a_long_list_takes_one_element_and_a_few_ranges(lists: Lists) -> None:
    values = [b"%d " % number * 10 for number in range(1_000)]
    lists.save(values)
    full = lists.bytes
    for number in range(20):
        values[500] = b"edited %d" % number
        lists.save(values)
    assert lists.bytes - full < 20 * 120
    lists.check()


def test_a_fork_from_an_old_version_shares_it(lists: Lists) -> None:
    lists.save([b"%d " % number * 10 for number in range(200)])
    lists.save([*lists.saved[1][1], b"main"])
    full = lists.bytes
    lists.save([*lists.saved[1][1], b"fork"], before=1)
    assert lists.bytes - full < 60
    lists.check()


def test_equal_elements_are_kept_once(lists: Lists) -> None:
    lists.save([b"x" * 1_000] * 500)
    assert lists.bytes < 20_000
    lists.check()


def test_elements_that_are_elsewhere_are_not_copied(lists: Lists) -> None:
    said = [b"entry %d" % number for number in range(20)]
    for number in range(1, 21):
        lists.save(said[:number])
    lists.save([*said[10:], b"own", *said[:10], b"own"])
    lists.check()
    assert b"entry" not in b"".join(
        event.body for event in lists.engine.read(lists.tenant, Mark(lists.stream, lists.head))
    )


def test_saving_the_same_again_adds_nothing(lists: Lists) -> None:
    version = lists.save([b"a", b"b"])
    assert lists.save([b"a", b"b"]) == version
    assert lists.head == version.position


def test_an_empty_list_after_others_and_before_others(lists: Lists) -> None:
    lists.save([b"a", b"b"])
    lists.save([])
    lists.save([])
    lists.save([b"c"])
    lists.check()


def test_a_version_that_is_not_there_is_corrupt(lists: Lists) -> None:
    lists.save([b"a"])
    with pytest.raises(Corrupt):
        segments.places_at(lists.engine, lists.tenant, lists.stream + 1, 3)
    with pytest.raises(Corrupt):
        segments.bodies_at(lists.engine, lists.tenant, lists.stream, [ElementRef(0, 99)])


def test_an_event_of_an_unknown_kind_is_refused(lists: Lists) -> None:
    lists.save([b"a"])
    lists.engine.commit(lists.tenant, (Append(SEGMENT, "list", (Event("squash", b"j1[]", 0),), lists.head),), 0)
    with pytest.raises(Unsupported, match="squash"):
        segments.places_at(lists.engine, lists.tenant, lists.stream, lists.head + 1)


@given(places=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9)).map(lambda pair: ElementRef(*pair))))
def test_ranges_say_exactly_which_places(places: list[ElementRef]) -> None:
    ranges = segments.ranges_of(places)
    assert [ElementRef(stream, at) for stream, first, last in ranges for at in range(first, last + 1)] == places
    assert len(ranges) <= len(places)
