"""What becomes of a turn when somebody else does something between any two of its looks at the store.

One session acts; before its first, second, third … call of the engine another process acts too, on the same question
or beside it, and the whole is repeated for every such moment; here for every third, in `make long` for all. So what is
looked at in one moment and relied upon in the next is found, without waiting for two processes to meet there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import count, pairwise
from typing import Any

import pytest

import holdfast
from holdfast.errors import Fenced, ModelFailed, RunHeld
from holdfast.providers.models.model import Reply, ToolCall, Usage
from holdfast.sessions.session import Session
from holdfast.steps.step_context import current_step

ASKED = "Charge me for flight"
DOCUMENTED = (RunHeld, Fenced, ModelFailed)


class World:
    """One thread, and what was done outside for it."""

    def __init__(self, place: Any) -> None:
        self.place = place
        self.charged: list[tuple[str, str]] = []
        self.told: list[Any] = []

    def tool(self) -> Any:
        def find(what: str) -> str | None:
            found = (f"charged {done}" for key, done in self.charged if key == current_step().key)
            return next(found, None)

        @holdfast.step(effect="once", probe=find)
        def charge(what: str) -> str:
            self.charged.append((current_step().key, what))
            return f"charged {what}"

        return charge

    def session(self, store: holdfast.Store, name: str, **ways: Any) -> Session:
        given = {"model": Agent(name), "tools": [self.tool()], "budget": 4_000, "learn": "off", **ways}
        return store.session(store.thread("t", user="ana"), **given)

    def halves(self, store: holdfast.Store) -> Session:
        return self.session(store, "", model=None, tools=[])

    def told_by(self, act: Act, store: holdfast.Store, name: str) -> None:
        with suppress(*DOCUMENTED):
            answer = act(self, store, name)
            if answer is not None:
                self.told.append(answer)


class Agent:
    """Charges for what is asked last, unless it sees that this was done; and says who it is."""

    def __init__(self, name: str, breaks: bool = False) -> None:
        self.name, self._breaks = name, breaks

    def stream(self, messages: Sequence[dict[str, Any]], **_: Any) -> Iterator[str | Reply]:
        what = str([one for one in messages if one["role"] == "user"][-1]["content"]).rsplit(" ", 1)[-1]
        if not any(one["role"] == "tool" and one["content"] == f"charged {what}" for one in messages):
            yield Reply("", (ToolCall("1", "charge", {"what": what}),))
            return
        yield "You were "
        if self._breaks:
            raise RuntimeError("down")
        yield Reply(f"You were charged for {what} by {self.name}.")

    def reply(self, messages: Any, **_: Any) -> Reply:
        return Reply("- they talked of charges")

    def extract(self, messages: Any, shape: Any, **_: Any) -> Any:
        return shape(), Usage()


class Visited:
    """An engine that lets somebody in before one of its calls."""

    def __init__(self, engine: Any, at: int, visit: Callable[[], None]) -> None:
        self._engine, self._at, self._visit = engine, at, visit
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._engine, name)
        if not callable(found):
            return found

        def called(*args: Any, **options: Any) -> Any:
            self.calls += 1
            if self.calls == self._at:
                self._visit()
            return found(*args, **options)

        return called


Act = Callable[[World, holdfast.Store, str], Any]


def asks_with_the_key(world: World, store: holdfast.Store, name: str) -> Any:
    return world.session(store, name).turn(ASKED, key="k")


def asks_something_else(world: World, store: holdfast.Store, name: str) -> Any:
    return world.session(store, name).turn(f"Charge me for {name}")


def resumes(world: World, store: holdfast.Store, name: str) -> Any:
    return world.session(store, name).resume()


def breaks_off(world: World, store: holdfast.Store, name: str) -> Any:
    return world.session(store, name, model=Agent(name, breaks=True)).turn(ASKED, key="k")


def does_it_in_halves(world: World, store: holdfast.Store, name: str) -> Any:
    with world.halves(store).turn(ASKED, key="k") as turn:
        if turn.answer is None:
            if not any(one["role"] == "tool" for one in turn.messages):
                turn.step("charge", world.tool(), "flight")
            turn.reply(f"Charged by {name}.")
    return turn.answer


ACTS = (asks_with_the_key, asks_something_else, resumes, breaks_off, does_it_in_halves)
OTHERS = (asks_with_the_key, asks_something_else, resumes, does_it_in_halves)


def nothing(world: World) -> None:
    """Nobody has asked yet."""


def charged(world: World) -> None:
    """It was asked, and somebody died after charging for it."""
    turn = world.halves(world.place.open(own=True)).turn(ASKED, key="k")
    plain = {"text": "", "calls": [{"id": "1", "name": "charge", "arguments": {"what": "flight"}}]}
    turn._opened().step("model-0", lambda: plain, effect="pure", log=False)
    turn.step("charge-0.0", world.tool(), what="flight")
    world.place.lapse()


def assert_whole(world: World, store: holdfast.Store) -> None:
    """Every question once, with one answer at most, which nobody denies; everything done once, and on record once."""
    log = store.thread("t").log()
    told: dict[int, str] = {}
    left: Counter[int] = Counter()
    for before, entry in pairwise([None, *log]):
        if entry is None or entry.kind != "event":
            continue
        number = entry.content.get("question")
        if entry.content["name"] == "holdfast.usage":
            assert before is not None
            assert number not in told
            told[number] = before.content["content"]
        if entry.content["name"] == "holdfast.unanswered":
            assert number not in told
            left[number] += entry.content.get("left", False)
    assert max(left.values(), default=0) <= 1
    assert [told[answer.question.number] for answer in world.told] == [answer.text for answer in world.told]
    questions = Counter(e.content["content"] for e in log if e.kind == "message" and e.content["role"] == "user")
    assert set(questions.values()) <= {1}
    for entry, after in pairwise(log):
        assert entry.kind != "tool_call" or after.content.get("of") == entry.content["id"]
    on_record = Counter(str(entry.content["arguments"]) for entry in log if entry.kind == "tool_call")
    assert set(on_record.values()) <= {1}
    assert set(Counter(what for _, what in world.charged).values()) <= {1}
    assert store.verify().problems == ()


def visited(place: Any, before: Callable[[World], None], act: Act, other: Act, at: int, late: bool) -> bool:
    """Let one act, and another before its call of this number; say whether there was one."""
    world = World(place)
    before(world)
    second = place.open(own=True)

    def visit() -> None:
        if late:
            place.lapse()
        world.told_by(other, second, "other")

    first = place.open(own=True, through=lambda engine: Visited(engine, at, visit))
    world.told_by(act, first, "one")
    assert_whole(world, second)
    return bool(first.core.engine.calls >= at)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "late"),
    [
        pytest.param(nothing, False, id="a new question"),
        pytest.param(charged, False, id="one that was begun"),
        pytest.param(charged, True, id="one that was begun, and a long sleep"),
    ],
)
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("act", ACTS)
def test_a_turn_during_which_somebody_else_acts(
    here: Any, act: Act, other: Act, before: Callable[[World], None], late: bool, some: Any
) -> None:
    for at in some(count(1), 3):
        here.tenant = f"{here.tenant.partition('/')[0]}/{at}"
        if not visited(here, before, act, other, at, late):
            return
