"""What is asked of a collection is looked up: the rest of it is not read, and the answer is the same as if it were."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

import pytest

import holdfast
from holdfast.engine.contract import Record
from holdfast.errors import Invalid
from holdfast.memory import stored
from holdfast.memory.drafts import Remembering
from holdfast.memory.facts import fact_of, timeline
from holdfast.memory.graph import neighbours
from holdfast.memory.visible import VisibleMemories
from holdfast.records import TRUST, Memory
from holdfast.testing import ManualClock

MakeVisible = Callable[..., VisibleMemories]
DAY = timedelta(days=1)


class Reads:
    """Counts the memories that are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, self._read = 0, stored.to_memory
        monkeypatch.setattr(stored, "to_memory", self._counted)

    def _counted(self, record: Record) -> Memory:
        self.count += 1
        return self._read(record)

    def of(self, call: Callable[[], object]) -> int:
        before = self.count
        call()
        return self.count - before


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


def one(visible: VisibleMemories, text: str = "x", **more: Any) -> Memory:
    return visible.remember([Remembering(text, **more)])[0]


@pytest.fixture
def full(store: holdfast.Store, visible_to: MakeVisible) -> VisibleMemories:
    """A collection of many facts, links and corrections, of which hardly any matters."""
    visible = visible_to(store, user="ana")
    made = visible.remember(
        [Remembering(f"fact {number}", key=f"key {number}", subject=f"s{number % 7}") for number in range(400)]
    )
    visible.remember([Remembering(f"never {memory.id}", corrects=memory.id) for memory in made[:200]])
    visible.remember([Remembering(relation="knows", object=f"n{n}", subject=f"n{n + 1}") for n in range(300)])
    return visible


def test_a_fact_is_read_alone(full: VisibleMemories, reads: Reads) -> None:
    wrong = one(full, "Bern", key="home")
    first = full.correct(wrong.id)
    second = full.correct(first.id)
    full.correct(second.id)
    one(full, "Basel", key="home")
    assert reads.of(lambda: full.history("home")) == 5
    assert reads.of(lambda: full.values("home")) == 2
    assert reads.of(lambda: full.history("key 9", "s2")) == 2
    assert [(version.memory.text, version.corrected_by) for version in full.history("home")] == [
        ("Bern", first.id),
        ("Basel", None),
    ]


def test_a_fact_of_another_subject_is_found_by_its_key(full: VisibleMemories, reads: Reads) -> None:
    assert reads.of(lambda: full.history("key 300")) == 1
    assert [version.memory.subject for version in full.history("KEY  300")] == ["s6"]
    assert reads.of(lambda: full.history("no such key")) == 0


def test_procedures_read_themselves_and_what_decides_on_them(full: VisibleMemories, reads: Reads) -> None:
    loose, wrong = one(full, "a", kind="procedural"), one(full, "b", kind="procedural")
    old = one(full, "c", kind="procedural", key="way")
    one(full, "d", kind="semantic", key="way")
    one(full, "e", kind="procedural", key="other way")
    full.correct(wrong.id)
    assert [memory.text for memory in full.procedures()] == ["e", "a"]
    assert reads.of(full.procedures) <= 20
    full.end(loose.id)
    full.forget(old.id)
    assert [memory.text for memory in full.procedures()] == ["e"]


def test_a_procedure_superseded_in_another_book_is_left_out(store: holdfast.Store, visible_to: MakeVisible) -> None:
    ana, with_bot = visible_to(store, user="ana"), visible_to(store, user="ana", agent="bot")
    one(ana, "walk", kind="procedural", key="way")
    one(with_bot, "run", kind="procedural", key="Way")
    assert [memory.text for memory in ana.procedures()] == ["run"]
    assert [memory.text for memory in visible_to(store, user="ana", agent="cat").procedures()] == ["walk"]


@pytest.mark.every_engine
def test_links_of_an_entity_are_read_hop_by_hop(full: VisibleMemories, reads: Reads) -> None:
    one(full, relation="lives in", object="Bern", subject="n5", key="home")
    one(full, "somewhere", subject="n5", key="home")
    assert reads.of(lambda: full.links(entity="N5", hops=2)) <= 30
    ends = {(link.subject, link.object) for link in full.links(entity="N5", hops=2)}
    assert ends == {("n5", "Bern"), ("n6", "n5"), ("n5", "n4"), ("n7", "n6"), ("n4", "n3")}
    assert {(link.subject, link.object) for link in full.links(entity="bern")} == {("n5", "Bern")}
    with pytest.raises(Invalid, match="hops"):
        full.links(entity="n5", hops=3)


@pytest.mark.parametrize("seed", range(12))
def test_links_by_entity_are_those_of_all_links(
    ram: holdfast.Store, visible_to: MakeVisible, clock: ManualClock, seed: int
) -> None:
    random, handles = (
        Random(seed),
        [visible_to(ram, user="ana"), visible_to(ram, user="ana", agent="bot"), visible_to(ram)],
    )
    names = ["Ana", "ANA", "Ben", "Cleo", "Dan", "Eve"]
    made: list[tuple[VisibleMemories, Memory]] = []
    for _ in range(40):
        clock.advance(86_400)
        visible = random.choice(handles)
        more: dict[str, Any] = {"key": random.choice([None, None, "friend", "home"]), "subject": random.choice(names)}
        if random.random() < 0.8:
            more |= {"relation": "knows", "object": random.choice(names)}
        made.append((visible, one(visible, **more)))
        where, what = random.choice(made)
        if random.random() < 0.4:
            change = random.choice([where.correct, where.end, where.forget])
            try:
                change(what.id)
            except Invalid:
                continue
    ana = handles[0]
    every = ana.links()
    for name in names:
        assert ana.links(entity=name) == [link for link in every if name.lower() in _ends(link)]
        for moment in (None, clock_moment(ana), clock_moment(ana) - 11 * DAY):
            for hops in (1, 2):
                found = ana.links(entity=name, hops=hops, as_of=moment)
                assert neighbours(found, name, hops, moment) == neighbours(every, name, hops, moment)


def _ends(link: Any) -> tuple[str, str]:
    return link.subject.lower(), link.object.lower()


def clock_moment(visible: VisibleMemories) -> Any:
    return visible.moment()


@pytest.mark.parametrize("many", [300, 0])
@pytest.mark.parametrize("seed", range(6))
def test_one_fact_is_what_all_facts_say_of_it(
    store: holdfast.Store, visible_to: MakeVisible, monkeypatch: pytest.MonkeyPatch, many: int, seed: int
) -> None:
    """However corrections and values are looked up, by their tags or all at once."""
    monkeypatch.setattr("holdfast.memory.collection._MANY", many)
    random, visible, made = Random(seed), visible_to(store, user="ana"), list[Memory]()
    for _ in range(50):
        draft = Remembering(
            "x", random.choice(["semantic", "procedural"]), key=random.choice([None, "a", "b"]),
            trust=random.choice(TRUST), corrects=random.choice(made).id if made and random.random() < 0.5 else None,
            ended=random.random() < 0.2,
        )  # fmt: skip
        made += visible.remember([draft])
        if random.random() < 0.1:
            visible.forget(random.choice(made).id)
    every = visible.memories(limit=None)
    for trust in (None, *TRUST):
        for key in ("a", "b"):
            expected = [one for one in timeline(every, trust=trust) if fact_of(one.memory) == ("ana", key)]
            assert visible.history(key, trust=trust) == expected
        holding = {one.memory.id for one in timeline(every, trust=trust) if one.holds(visible.moment())}
        procedures = {one.id for one in every if one.kind == "procedural" and not one.ended} & holding
        assert {memory.id for memory in visible.procedures(trust=trust)} == procedures


# Values


def test_values_of_a_fact_in_all_books_and_of_what_was_forgotten(
    store: holdfast.Store, visible_to: MakeVisible
) -> None:
    ana, with_bot = visible_to(store, user="ana"), visible_to(store, user="ana", agent="bot")
    first, second = one(ana, "Bern", key="home"), one(with_bot, "Basel", key="HOME")
    third = one(ana, "Chur", key="home")
    one(ana, "Ben's", key="home", subject="Ben")
    ana.forget(first.id)
    assert ana.values("home") == [third, second]
    assert [memory.id for memory in ana.values("home", forgotten=True)] == [first.id]
    assert [memory.id for memory in ana.values("Home", "ANA", forgotten=None)] == [third.id, second.id, first.id]
    assert [ana.collection_of(memory.id).scope.agent for memory in ana.values("home")] == [None, "bot"]
    assert ana.values("home", "nobody") == ana.values("nothing") == []


def test_values_are_of_the_subject_that_history_takes(visible: VisibleMemories) -> None:
    ben = one(visible, "Ben is in Bern", subject="Ben", key="home")
    assert visible.values("home") == [ben]
    cleo = one(visible, "Cleo is in Chur", subject="Cleo", key="home")
    with pytest.raises(Invalid, match="'Ben', 'Cleo'"):
        visible.values("home")
    visible.forget(cleo.id)
    assert visible.values("home") == [ben]
    with pytest.raises(Invalid, match="several subjects"):
        visible.values("home", forgotten=None)
    assert [memory.id for memory in visible.values("home", forgotten=True)] == [cleo.id]
    own = one(visible, "here", key="home")
    assert visible.values("home") == [own]
