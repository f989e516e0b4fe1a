"""An answer that is to be learned from is learned from once, wherever whoever gave it was killed, and by whomever.

The model here never says a thing in the same words twice, so that learning twice shows.
"""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast import aio
from holdfast.errors import Unavailable
from holdfast.providers.models.model import Reply, Usage
from holdfast.sessions import learning
from holdfast.sessions.log_events import USAGE, is_event
from holdfast.sessions.session import Session
from holdfast.testing.crashing import Crash, Fuse, MortalEngine

HOME = "I live in Porto."
ANSWERED = 3  # the points of a turn: before and after the commit of the question, and so of the answer


class Agent:
    """A model that finds where somebody lives. Asked about ``broken`` words, it fails to say anything."""

    name = "agent"
    words = count(1)

    def __init__(self, broken: str = "") -> None:
        self._broken = broken
        self.asked: list[str] = []

    def stream(self, messages: Sequence[dict[str, Any]], **_: Any) -> Iterator[str | Reply]:
        yield Reply("Good to know.")

    def reply(self, messages: Sequence[dict[str, Any]], **_: Any) -> Reply:
        return Reply("- they talked")

    def extract(self, messages: Sequence[dict[str, Any]], shape: Any, **_: Any) -> tuple[Any, Usage]:
        said = messages[-1]["content"].partition("Entries:")[2]
        if not said:  # of a handoff
            return shape(), Usage()
        self.asked.append(said)
        if self._broken and self._broken in said:
            raise RuntimeError("no idea")
        facts = [
            {"text": f"Ana lives in {at[2]}, I hear ({next(self.words)}).", "entry": int(at[1]), "quote": at[0][-14:]}
            for at in re.finditer(r"\[(\d+)\] user[^\n]* I live in (\w+)", said)
        ]
        return msgspec.convert({"facts": facts}, shape), Usage()


class House:
    """Somebody's thread in a place, and processes that come and go in it."""

    def __init__(self, place: Any, name: str = "t", **ways: Any) -> None:
        self.place, self.name, self.ways = place, name, ways

    def session(self, fuse: Fuse | None = None, **ways: Any) -> Session:
        """A session of another process, which is struck at a point."""
        store = self.place.open(own=True, through=lambda engine: MortalEngine(engine, fuse or Fuse()))
        self.store: holdfast.Store = store
        return store.session(self.thread, **{"model": Agent(), "learn": "model", "budget": 4_000, **self.ways, **ways})

    @property
    def thread(self) -> holdfast.Thread:
        return self.store.thread(self.name, user=f"ana-{self.name}")

    def killed(self, at: int = ANSWERED, act: Callable[[Session], object] | None = None, **ways: Any) -> None:
        """A process that is killed at a point of what it does: of its first turn, if nothing is said."""
        act = act or (lambda session: session.turn(HOME))
        with pytest.raises(Crash):
            act(self.session(Fuse(at), **ways))
        self.place.lapse()

    def known(self) -> list[str]:
        return [memory.text for memory in self.store.memory(user=f"ana-{self.name}").memories()]

    def usages(self) -> list[dict[str, Any]]:
        return [entry.content for entry in self.thread.log() if is_event(entry, USAGE)]


@pytest.fixture
def house(place: Any) -> House:
    return House(place)


@pytest.fixture
def home(here: Any) -> House:
    return House(here)


def points(house: House, act: Callable[[Session], object], **ways: Any) -> int:
    fuse = Fuse()
    act(house.session(fuse, **ways))
    return len(fuse.names)


def going_on(session: Session) -> None:
    """What a program does that is started again."""
    if session.start().unanswered is not None:
        session.resume()
    else:
        session.turn("And now?" if session.thread.exists() else HOME)


WAYS: dict[str, Callable[[], dict[str, Any]]] = {
    "model": lambda: {"model": Agent(), "learn": "model"},
    "broken model": lambda: {"model": Agent(broken="Porto"), "learn": "model"},
    "rules": lambda: {"learn": "rules"},
}
by_way = pytest.mark.parametrize("way", WAYS)


# Killed


@pytest.mark.every_engine
@by_way
def test_what_was_answered_is_learned_from_once_wherever_a_process_is_killed(place: Any, way: str) -> None:
    ask = lambda session: session.turn(HOME)  # noqa: E731
    for at in range(points(House(place, "dry", **WAYS[way]()), ask)):
        house = House(place, f"t{at}", **WAYS[way]())
        house.killed(at, ask)
        for _ in range(3):
            going_on(house.session())
            place.lapse()
        assert len(house.known()) == 1, (at, house.known())


@by_way
def test_a_second_kill_in_the_middle_of_making_up_for_it_changes_nothing(here: Any, way: str) -> None:
    dry = House(here, "dry", **WAYS[way]())
    dry.killed()
    for at in range(points(dry, going_on)):
        house = House(here, f"t{at}", **WAYS[way]())
        house.killed()
        house.killed(at, going_on)
        for _ in range(2):
            going_on(house.session())
            here.lapse()
        assert len(house.known()) == 1, (at, house.known())


@by_way
def test_two_who_make_up_for_the_same_learn_it_once(here: Any, way: str) -> None:
    """Between any two commits of one, another process does all of it."""
    dry = House(here, "dry", **WAYS[way]())
    dry.killed()
    for at in range(points(dry, going_on)):
        house = House(here, f"t{at}", **WAYS[way]())
        house.killed()
        going_on(house.session(Fuse(at, lambda house=house: going_on(house.session()))))  # type: ignore[misc]
        here.lapse()
        going_on(house.session())
        assert len(house.known()) == 1, (at, house.known())


@pytest.mark.every_engine
def test_whoever_was_only_slow_finds_it_learned(house: House) -> None:
    others: list[Any] = []
    slow = house.session(Fuse(ANSWERED, lambda: others.append(house.session().turn("And now?"))))
    answer = slow.turn(HOME)
    assert len(house.known()) == 1
    assert [memory.text for memory in answer.learned] == house.known()
    assert answer.notes == ()
    assert others[0].notes == ()


# By whom


def test_the_end_of_a_session_makes_up_for_it(house: House) -> None:
    house.killed()
    session = house.session()
    session.end()
    assert len(house.known()) == 1
    assert session.usage.requests > 0


@pytest.mark.parametrize("learn", ["model", "rules"])
def test_a_question_that_is_asked_again_makes_up_for_it(house: House, learn: str) -> None:
    ask = lambda session: session.turn(HOME, key="msg-1")  # noqa: E731
    house.killed(act=ask, learn=learn)
    answer = ask(house.session(learn=learn))
    assert answer.repeated
    assert len(house.known()) == 1
    assert ask(house.session(learn=learn)).repeated
    assert len(house.known()) == 1


def test_an_exchange_in_halves_makes_up_for_it(house: House) -> None:
    house.killed(act=lambda session: session.turn(HOME).reply("Good."), model=None, learn="rules")
    house.session(model=None, learn="rules").turn("And now?").reply("Nothing.")
    assert house.known() == ["ana-t lives in Porto"]


def test_many_in_a_row_are_all_made_up_for(house: House) -> None:
    for town in ("Porto", "Lisbon", "Faro"):
        house.killed(act=lambda session, town=town: session.turn(f"I live in {town}."))  # type: ignore[misc]
    house.session().turn("And now?")
    assert sorted(text.split(",")[0] for text in house.known()) == [f"Ana lives in {at}" for at in
                                                                    ("Faro", "Lisbon", "Porto")]  # fmt: skip


def test_async_sessions_make_up_for_it(tmp_path: Path) -> None:
    where = tmp_path / "agent.db"

    async def story() -> list[str]:
        async with aio.open(where, embedder=None) as store:
            session = store.session(store.thread("t", user="ana"), model=Agent())
            session._session._after = dying  # type: ignore[method-assign]
            with pytest.raises(Crash):
                await session.turn(HOME)
            await store.session(store.thread("t", user="ana"), model=Agent()).turn("And now?")
            return [memory.text for memory in await store.memory(user="ana").memories()]

    def dying(*_: Any) -> Any:
        raise Crash("killed")

    assert len(asyncio.run(story())) == 1


# Nothing to do


def test_a_session_that_learns_nothing_leaves_nothing_to_do(house: House) -> None:
    house.killed(learn="off")
    agent = Agent()
    house.session(model=agent).turn("And now?")
    assert house.known() == []
    assert len(agent.asked) == 1
    assert "learn" not in house.usages()[0]


@by_way
def test_what_was_missed_waits_for_a_session_that_learns_and_the_turns_between_are_left_alone(
    house: House, way: str
) -> None:
    house.ways = WAYS[way]()
    house.killed()
    house.session(learn="off").turn("I live in Lisbon.")
    assert house.known() == []
    house.session().turn("And now?")
    assert len(house.known()) == 1
    assert "Porto" in house.known()[0]


def test_who_begins_to_learn_does_not_learn_from_all_that_was_said_before(house: House) -> None:
    session = house.session(learn="off")
    for town in ("Porto", "Lisbon"):
        session.turn(f"I live in {town}.")
    agent = Agent()
    house.session(model=agent).turn("I live in Faro.")
    assert len(agent.asked) == 1
    assert [text.split(",")[0] for text in house.known()] == ["Ana lives in Faro"]


def test_a_thread_of_nobody_teaches_nothing(here: Any) -> None:
    house = House(here)
    session = house.session()
    thread = house.store.thread("nobody")
    for _ in range(2):
        answer = house.store.session(thread, model=Agent()).turn(HOME)
        assert len(answer.notes) == 1
    assert session.turn("Hello.").notes == ()


@by_way
def test_a_turn_after_one_that_was_learned_from_looks_for_nothing(home: House, way: str) -> None:
    """The same session costs no call of the engine more, and after an end nobody else's does."""
    home.ways = WAYS[way]()
    calls: list[tuple[str, Any]] = []

    class Counting(MortalEngine):
        def commit(self, *args: Any) -> Any:
            calls.append(("commit", args))
            return super().commit(*args)

        def get(self, *args: Any) -> Any:
            calls.append(("get", args))
            return super().get(*args)

    store = home.place.open(through=lambda engine: Counting(engine, Fuse()))
    home.store = store
    session = store.session(home.thread, budget=4_000, **{"model": Agent(), **WAYS[way]()})
    session.turn(HOME)
    sizes = []
    for number in range(3):
        before = earlier(home.thread)
        calls.clear()
        session.turn(f"And now, {number}?")
        assert not any(name in str(args) for what, args in calls for name in before if what == "get")
        sizes.append(len(calls))
    assert sizes[1] == sizes[2]
    session.end()
    before = earlier(home.thread)
    calls.clear()
    store.session(home.thread, budget=4_000, **{"model": Agent(), **WAYS[way]()}).turn("And now, then?")
    assert not any(name in str(args) for what, args in calls for name in before if what == "get")
    assert len([what for what, _ in calls if what == "commit"]) == (2 if way == "rules" else 6)


def earlier(thread: holdfast.Thread) -> list[str]:
    """The names of the lessons so far, whether there are such runs or not."""
    usages = [entry for entry in thread.log() if is_event(entry, USAGE)]
    return [learning.run_name(thread.entry(usage.content["question"]), usage) for usage in usages]


def test_the_log_says_how_far_it_was_learned_from(home: House) -> None:
    session = home.session()
    for _ in range(3):
        session.turn("Hello.")
    session.end()
    log = home.thread.log()
    assert [(usage["learn"], usage["learned"]) for usage in home.usages()] == [("model", 1), ("model", 4), ("model", 7)]
    assert learning.missed(log, ()) == []
    assert [entry.number for entry in learning.missed(log[:-1], ())] == [9]


# Forks, rewinds, and what fails


def test_a_lesson_that_a_model_failed_in_is_over(house: House) -> None:
    house.session(model=Agent(broken="Porto")).turn(HOME)
    agent = Agent()
    house.session(model=agent).turn("And now?")
    assert len(agent.asked) == 1
    assert house.known() == ["ana-t lives in Porto"]


def test_a_fork_does_not_learn_what_its_origin_did(house: House) -> None:
    session = house.session()
    session.turn(HOME)
    house.place.clock.advance(5)
    session.turn("And now?")
    known = house.known()
    for at, user in ((3, None), (None, None), (3, "bo")):
        fork = house.thread.fork(f"fork-{at}-{user}", at=at, user=user)
        house.store.session(fork, model=Agent(), budget=4_000).turn("Elsewhere.")
    assert house.known() == known
    assert house.store.memory(user="bo").memories() == []


def test_what_was_rewound_is_not_learned_from(house: House) -> None:
    house.killed()
    session = house.session()
    session.start()
    house.thread.rewind(1)
    agent = Agent()
    house.session(model=agent).turn("I live in Faro.")
    assert [text.split(",")[0] for text in house.known()] == ["Ana lives in Faro"]
    assert len(agent.asked) == 1


def test_a_mark_of_entries_that_are_gone_counts_for_nothing(home: House) -> None:
    """Whoever answered while the thread was rewound says that more was learned from than there is."""
    home.killed()
    home.session()
    log = home.thread.log()
    late = holdfast.event(USAGE, question=1, learn="rules", learned=90)
    home.thread.append(late)
    found = learning.missed(home.thread.log(), ())
    assert [entry.number for entry in found] == [log[-1].number, log[-1].number + 1]


def test_what_cannot_be_learned_fails_no_turn_is_tried_again_and_given_up_at_last(
    home: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.ways = {"learn": "rules"}
    home.killed()
    real, tried = learning.by_rules, list[int]()

    def away(memory: Any, entries: Sequence[holdfast.types.Entry]) -> Any:
        tried.append(entries[0].number)
        if entries[0].number == 1:
            raise Unavailable("the store is away")
        return real(memory, entries)

    monkeypatch.setattr(learning, "by_rules", away)
    session = home.session()
    for number in range(learning.MOST_ANSWERS + 3):
        answer = session.turn(f"And now, {number}?")
        assert answer.text == "Good to know."
    assert answer.notes == ()
    assert 1 < tried.count(1) <= learning.MOST_ANSWERS + 1
    monkeypatch.undo()


def test_a_lesson_that_failed_for_want_of_a_disk_is_taken_up_by_the_next_turn(
    home: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise OSError("the disk is full")

    session = home.session()
    with monkeypatch.context() as patch:
        patch.setattr("holdfast.sessions.learning.take", full)
        assert "the disk is full" in session.turn(HOME).notes[0]
    assert home.known() == []
    session.turn("And now?")
    assert len(home.known()) == 1
    assert isinstance(session.model, Agent)
    assert len(session.model.asked) == 2


# Killed with a signal

CHILD = """
import os, signal, sys
import holdfast
from tests.sessions.test_lessons import Agent, HOME

db, how, learn = sys.argv[1:]
with holdfast.open(db, embedder=None) as store:
    session = store.session(store.thread("t", user="ana"), model=Agent(), learn=learn)
    if how == "killed":
        session._after = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        session.turn(HOME)
    sys.stdin.readline()
    session.turn("And now?")
"""


@pytest.mark.slow
@pytest.mark.parametrize("learn", ["model", "rules"])
def test_processes_that_come_after_one_that_was_killed_learn_once(tmp_path: Path, learn: str) -> None:
    def child(how: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", CHILD, str(tmp_path / "agent.db"), how, learn]
        return subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0, cwd=Path(__file__).parents[2])

    with child("killed") as killed:
        assert killed.wait(60) == -signal.SIGKILL
    with holdfast.open(tmp_path / "agent.db", embedder=None) as store:
        assert store.memory(user="ana").memories() == []
        assert store.thread("t").log()[-1].content["learn"] == learn
    others = [child("next") for _ in range(3)]
    for other in others:
        assert other.stdin is not None
        other.stdin.write(b"\n")
    for other in others:
        other.communicate(timeout=60)
    assert [other.returncode for other in others] == [0, 0, 0]
    with holdfast.open(tmp_path / "agent.db", embedder=None) as store:
        assert len(store.memory(user="ana").memories()) == 1
