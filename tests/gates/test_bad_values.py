"""Every public method, driven with bad values in every parameter, succeeds or fails with an error of ours, at once.

Methods and parameters are found by inspection, so a new one is driven without being listed here. What is listed is how
to come by an object of each class, a good value for parameters that must be given, and the few exceptions, each with
its reason. The quick form takes some values for each parameter, on ram, and fewer on SQLite and through the async
twins; the slow one takes all of them, and then two bad ones at a time. Deliberately absent: what the right error is;
the tests of each room say that.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import os
import random
import re
import signal
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import holdfast
from holdfast import aio, errors
from holdfast.records import Draft

LONGEST = 1_000  # characters of an error's text
ECHOED = 200  # of them what the caller gave
PATIENCE_S = 10  # a guard against a call that hangs, and no measure of speed


class Hostile:
    """An object that can be neither shown nor compared."""

    def __init__(self, *given: Any) -> None:
        """Its class may be called, as a function of the caller's may."""

    def _refuse(self, *given: Any) -> Any:
        raise RuntimeError("a hostile object was asked")

    __repr__ = __str__ = __eq__ = __hash__ = __bool__ = _refuse  # type: ignore[assignment]


class Word(str):
    """Text of a type of the caller's."""


def _deep() -> Any:
    nested: Any = "bottom"
    for _ in range(100_000):
        nested = [nested]
    return nested


def _cyclic() -> Any:
    mine: list[Any] = []
    mine.append(mine)
    return mine


DEEP = _deep()
BAD: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "minus one": lambda: -1,
    "a huge number": lambda: 2**70,
    "a number of 5000 digits": lambda: 10**5000,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "half": lambda: 0.5,
    "empty text": lambda: "",
    "huge text": lambda: "x" * 100_000,
    "many words": lambda: "word " * 20_000,
    "a lone surrogate": lambda: "a\ud800b",
    "NUL": lambda: "a\x00b",
    "a line break": lambda: "a\nb",
    "an escape": lambda: "\x1b[31m",
    "text of a type": lambda: Word("t"),
    "bytes": lambda: b"\xff\x00",
    "no items": list,
    "no fields": dict,
    "no members": set,
    "odd keys": lambda: {1: 2, None: "\ud800"},
    "odd items": lambda: [Hostile(), "\ud800", 5],
    "deep nesting": lambda: DEEP,
    "a list that holds itself": _cyclic,
    "a generator": lambda: (each for each in (1, "\ud800")),
    "a hostile object": Hostile,
    "a plain object": object,
    "a class": lambda: Hostile,
    "no zone": lambda: datetime(2026, 1, 1),
    "the first moment": lambda: datetime.min.replace(tzinfo=UTC),
    "the last moment": lambda: datetime.max.replace(tzinfo=UTC),
    "a duration": lambda: timedelta.max,
    "a folder": lambda: Path("folder"),
    "a pipe": lambda: "pipe",
    "a device": lambda: Path("device"),
    "nowhere": lambda: Path("missing/file"),
    "a loop of links": lambda: "loop",
    "a home of nobody": lambda: "~nobody-here/file",
    "a path of nobody": lambda: Path("~nobody-here/file"),
    "an address": lambda: "postgresql://u:hush@[::1/db",
}
SECRET = "hush"
SEED = 13


GOOD: dict[str, Any] = {
    "thread": "t", "run": "r", "input": "hello", "handlers": {}, "path": "a.txt", "url": "ram:", "backup": "backup.db",
    "target": Path("out.json"), "source": Path("backup.db"), "name": "n", "fn": lambda *given: 1,
    "handler": lambda *given: 1, "number": 1, "text": "a text", "id": "missing", "key": "k", "old": 1,
    "subject": "ana", "relation": "knows", "object": "Tom", "query": "where?", "items": ({"role": "user"},),
    "arguments": {}, "value": {"a": 1}, "to": "c", "step": "s", "happened": True, "version": 1, "from_version": 1,
    "to_version": 2, "role": "user", "content": "hello", "effect": "pure", "error": KeyError("k"), "reply": "hello",
    "spec": "none", "changes": [holdfast.FileWrite("a.txt", "text")], "progress": 1, "change": lambda state: state,
    "entity": "ana", "attempt": 1, "moment": 1, "tags": ("a",), "drafts": (holdfast.note("a"),), "path_or_text": "a.md",
    "Memories.remember_all.items": ["a text"], "Folder.move.to": "b.txt", "Memories.use.name": "recall",
    "args": (), "at": datetime.now(UTC), "Run.subtask.fn": lambda *given: 1, "amounts": {},
    "Thread.fork.id": "other", "Store.thread.id": "t", "Thread.replay.name": "done", "Thread.timeline.name": "done",
    "tenant": "acme", "actor": "bob", "position": 0, "vector": [1.0, 0.5], "decision": "use it",
}  # fmt: skip
"""What is given for parameters that must be, by their names, or by the names of their methods too."""
STOPPED = threading.Event()
STOPPED.set()
AT_ONCE = {
    "wait_s": 0,
    "Store.watch.timeout_s": 0,
    "Run.wait.timeout_s": 0,
    "Follower.follow.timeout_s": 0,
    "Follower.read.timeout_s": 0,
    "Subtask.wait.timeout_s": 0,
    "stop": STOPPED,
}
"""What is given so that a call waits for nobody; None would mean to wait for ever, and is left out."""
PASSED_OVER = {
    "Model": "a protocol; what implements it is the caller's",
    "Graph": "what a framework keeps there is written by its adapter alone",
    "schema": "Registry.schema, of the registry that all tests share",
    "migration": "Registry.migration, of the registry that all tests share",
    "refresher": "Registry.refresher, of the registry that all tests share",
    "StepContext.collected": "for the run alone",
    "StepContext.saving": "for the run alone",
    "RunInfo.of": "for the runs alone",
    "Follower.page": "for the async twin alone",
}
"""What is not driven, and why."""


class World:
    """A store with a little of everything in it, and a way to each kind of object."""

    def __init__(self, url: str) -> None:
        self.store = holdfast.open(url, embedder="none")
        thread = self.store.thread("t", user="ana")
        thread.append({"role": "user", "content": "I live in Lisbon"}, key="k")
        thread.save({"city": "Lisbon"})
        thread.checkpoint("c")
        thread.handoff.update(goal="a trip")
        with thread.run("done") as run:
            run.step("s", lambda: 1, effect="pure")
        memory = self.store.memory(user="ana")
        self.known = memory.remember("lives in Lisbon", key="city").id
        memory.link("ana", "works at", "Acme", key="employer")
        self.store.folder("f", user="ana").write("a.txt", "text")
        self.number = 0

    def fresh(self) -> holdfast.Thread:
        self.number += 1
        return self.store.thread(f"fresh-{self.number}")


@contextmanager
def _subtask(world: World) -> Iterator[holdfast.Subtask]:
    with world.fresh().run("r") as run:
        yield holdfast.Subtask(run.work)


def _step_context(world: World) -> holdfast.StepContext:
    return holdfast.StepContext(world.store.thread("t"), "r", "s", "k", 1, None, lambda *given, **more: None)


WAYS: dict[type, Callable[[World], Any]] = {
    holdfast.Store: lambda world: nullcontext(world.store),
    holdfast.Thread: lambda world: nullcontext(world.store.thread("t")),
    holdfast.Turn: lambda world: world.store.thread("t").turn(),
    holdfast.Memories: lambda world: nullcontext(world.store.memory(user="ana")),
    holdfast.Folder: lambda world: nullcontext(world.store.folder("f", user="ana")),
    holdfast.Follower: lambda world: nullcontext(world.store.follower("f")),
    holdfast.Run: lambda world: world.fresh().run("r"),
    holdfast.Subtask: _subtask,
    holdfast.StepContext: lambda world: nullcontext(_step_context(world)),
    holdfast.Handoff: lambda world: nullcontext(world.store.thread("t").handoff),
    holdfast.Session: lambda world: nullcontext(world.store.session("t")),
    holdfast.Exchange: lambda world: world.store.session(world.fresh()).turn("hello"),
    holdfast.Context: lambda world: nullcontext(world.store.context("t", "hello", 1_000)),
    holdfast.Registry: lambda world: nullcontext(holdfast.Registry()),
    holdfast.Step: lambda world: nullcontext(holdfast.step(effect="pure")(lambda: 1)),
    holdfast.Retry: lambda world: nullcontext(holdfast.Retry(2)),
    holdfast.AgentState: lambda world: nullcontext(holdfast.AgentState()),
    holdfast.types.Reply: lambda world: nullcontext(holdfast.types.Reply()),
    holdfast.types.Link: lambda world: nullcontext(world.store.memory(user="ana").links()[0]),
    holdfast.types.FactVersion: lambda world: nullcontext(world.store.memory(user="ana").history("city")[0]),
}
"""How to come by an object of each class that has methods. ``with`` begins and ends what has to be."""


class Place(NamedTuple):
    """One parameter of one public function or method."""

    owner: type | None
    call: Callable[..., Any]
    parameter: str

    def named(self, whole: bool) -> str:
        kind = "" if self.owner is None else self.owner.__name__
        return f"{kind}.{self.call.__name__}.{self.parameter}" if whole else self.parameter

    def __str__(self) -> str:
        return f"{self.named(True)}="


def _of_ours(kind: type) -> Iterator[Callable[..., Any]]:
    for name, method in inspect.getmembers(kind, lambda found: inspect.isfunction(found) or inspect.ismethod(found)):
        inherited = any(getattr(base, name, None) is method for base in kind.__mro__[1:] if base in WAYS)
        if not name.startswith("_") and method.__module__.startswith("holdfast") and not inherited:
            yield method


def public() -> Iterator[tuple[type | None, Callable[..., Any]]]:
    """Every function that ``holdfast`` offers, and every method of what it offers."""
    for name in holdfast.__all__:
        found = getattr(holdfast, name)
        if name in PASSED_OVER:
            continue
        if isinstance(found, type):
            yield from ((found, one) for one in _of_ours(found) if f"{name}.{one.__name__}" not in PASSED_OVER)
        elif inspect.isroutine(found):
            yield None, found


def parameters(call: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    found = dict(inspect.signature(call).parameters)
    found.pop("self", None)
    return found


def _named(annotation: str) -> list[str]:
    """The names that ``**options: Unpack[Options]`` takes."""
    found = re.fullmatch(r"Unpack\[(\w+)\]", annotation)
    if found is None:
        return []
    modules = [module for name, module in sys.modules.items() if name.startswith("holdfast.")]
    return list(next(vars(module)[found[1]] for module in modules if found[1] in vars(module)).__annotations__)


def places() -> list[Place]:
    found = []
    for owner, call in public():
        for name, parameter in parameters(call).items():
            more = _named(parameter.annotation) if parameter.kind is parameter.VAR_KEYWORD else []
            found += [Place(owner, call, each) for each in (more or [name])]
    return found


PLACES = places()


def given(place: Place, value: Any, more: dict[str, Any] | None = None) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call with a bad value in one place, maybe more of them, and good ones elsewhere."""
    plain: list[Any] = []
    named: dict[str, Any] = {}
    bad = {place.parameter: value, **(more or {})}
    for name, parameter in parameters(place.call).items():
        full = place._replace(parameter=name).named(True)
        if name in bad:
            fill = bad.pop(name)
        elif full in AT_ONCE or name in AT_ONCE:
            fill = AT_ONCE.get(full, AT_ONCE.get(name))
        elif parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD:
            fill = GOOD.get(full, GOOD.get(name, GOOD))
            assert fill is not GOOD, (
                f"{place.call.__qualname__} has a new parameter: say in GOOD what is good for {name}"
            )
        else:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            plain += list(fill) if fill is GOOD.get(full, GOOD.get(name)) else [fill]
        elif parameter.kind is parameter.VAR_KEYWORD:
            named["more"] = fill
        elif parameter.kind is parameter.KEYWORD_ONLY:
            named[name] = fill
        else:
            plain.append(fill)
    return plain, named | bad  # what is left are names that ``**options`` takes


def used(result: Any, world: World) -> None:
    """Do with a result what callers do with it: what was not looked at before comes to light then."""
    if isinstance(result, holdfast.Store):
        with result:
            result.thread("t").append({"role": "user", "content": "hello"})
    elif isinstance(result, holdfast.Session):
        result.start()
    elif isinstance(result, Draft):
        world.store.thread("t").append(result)
    elif isinstance(result, Iterator):
        list(islice(result, 2))
    elif inspect.isroutine(result):
        result(_Sample if "schema" in result.__qualname__ else lambda *given: 1)
    elif isinstance(result, AbstractContextManager) and not isinstance(result, Path):
        with result:
            pass


@dataclasses.dataclass
class _Sample:
    city: str = ""


class Hangs(BaseException):
    """A call took longer than any should."""


@contextmanager
def guarded() -> Iterator[None]:
    def alarm(*given: Any) -> None:
        raise Hangs(f"it had not come back after {PATIENCE_S} s")

    before = signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def judged(what: str, found: list[str]) -> Iterator[None]:
    """Note what is wrong with how a call came to its end, unless it succeeded or failed our way."""
    told: str | None = None
    try:
        with guarded():
            yield
    except errors.HoldfastError as error:
        told = _wrong_text(str(error))
    except holdfast.Suspended:
        pass
    except BaseException as error:
        ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "/holdfast/" in frame.filename]
        where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "the gate itself"
        told = f"{type(error).__name__}: {str(error)[:100]!a} ({where})"
    if told is not None:
        found.append(f"{what}: {told}")


def _wrong_text(text: str) -> str | None:
    if SECRET in text:
        return f"shows a password: {text}"
    if len(text) > LONGEST or "x" * (ECHOED + 1) in text or text.count("word") > LONGEST // 5:
        return f"echoes too much: {text[:ECHOED]!a}"
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"cannot be printed: {text[:ECHOED]!a}"
    return None


def drive(world: World, place: Place, value: Any, more: dict[str, Any] | None = None) -> None:
    plain, named = given(place, value, more)
    if place.owner is None:
        used(place.call(*plain, **named), world)
        return
    with WAYS[place.owner](world) as thing:
        used(getattr(thing, place.call.__name__)(*plain, **named), world)


class AsyncWorld:
    """The same objects for async callers. They take what their twins take: a test keeps those equal."""

    def __init__(self, store: aio.AsyncStore) -> None:
        self.store, self.number = store, 0
        thread = store.thread("t")
        self._plain = {
            holdfast.Store: store, holdfast.Thread: thread, holdfast.Handoff: thread.handoff,
            holdfast.Memories: store.memory(user="ana"), holdfast.Folder: store.folder("f", user="ana"),
            holdfast.Session: store.session("t"),
        }  # fmt: skip

    def drives(self, place: Place) -> bool:
        return place.owner in self._plain or place.owner is holdfast.Run

    @asynccontextmanager
    async def thing(self, owner: type | None) -> AsyncIterator[Any]:
        if owner is not holdfast.Run:
            yield self._plain[owner]  # type: ignore[index]
            return
        self.number += 1
        async with self.store.thread(f"async-{self.number}").run("r") as run:
            yield run

    async def drive(self, place: Place, value: Any) -> None:
        plain, named = given(place, value)
        async with self.thing(place.owner) as thing:
            result = getattr(thing, place.call.__name__)(*plain, **named)
            if isinstance(result, AbstractAsyncContextManager):
                async with result:
                    pass
            elif isinstance(result, AsyncIterator):
                async for _ in result:
                    break
            elif inspect.isawaitable(result):
                await result


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with things in it that are not files."""
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    os.mkfifo("pipe")
    Path("device").symlink_to("/dev/zero")
    Path("loop").symlink_to("loop")
    with holdfast.open("backup.db") as store:
        store.thread("t").append({"role": "user", "content": "hello"})
    return tmp_path


def test_every_class_with_methods_can_be_driven() -> None:
    missing = sorted({owner.__name__ for owner, _ in public() if owner is not None and owner not in WAYS})
    assert not missing, f"say in WAYS how to come by these, or in PASSED_OVER why not: {missing}"
    names = {f"{owner.__name__}.{call.__name__}" for owner, call in public() if owner is not None}
    assert len(names) > 120, "methods are not found any more"


def values_for(place: Place, most: int | None, chance: random.Random) -> list[str]:
    """Which bad values a parameter is tried with."""
    waits = any(place.named(name) in AT_ONCE for name in (True, False))
    known = [label for label in BAD if label != "None" or not waits]
    return known if most is None else chance.sample(known, most)


def driven(world: World, owner: Any, most: int | None) -> list[str]:
    chance, found = random.Random(SEED), list[str]()
    for place in (place for place in PLACES if owner in (place.owner, ...)):
        for label in values_for(place, most, chance):
            with judged(f"{place} with {label}", found):
                drive(world, place, BAD[label]())
    with judged("closing", found):
        world.store.close()
    return found


async def driven_async(url: str, most: int) -> list[str]:
    chance, found = random.Random(SEED), list[str]()
    async with aio.open(url, embedder="none") as store:
        world = AsyncWorld(store)
        for place in filter(world.drives, PLACES):
            for label in values_for(place, most, chance):
                with judged(f"Async{place} with {label}", found):
                    await world.drive(place, BAD[label]())
    return found


@pytest.mark.parametrize("owner", [None, *WAYS], ids=lambda kind: kind.__name__ if kind else "functions")
def test_bad_values_fail_our_way(owner: type | None, ground: Path) -> None:
    found = driven(World("ram:"), owner, 12)
    assert not found, "\n".join(found)


def test_bad_values_fail_our_way_on_sqlite(ground: Path) -> None:
    found = driven(World("agent.db"), ..., 2)
    assert not found, "\n".join(found)


def test_bad_values_fail_our_way_in_async_code(ground: Path) -> None:
    World("agent.db").store.close()
    found = asyncio.run(driven_async("agent.db", 2))
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("url", ["ram:", "agent.db"])
def test_every_bad_value_fails_our_way(url: str, ground: Path) -> None:
    found = driven(World(url), ..., None)
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_two_bad_values_at_once_fail_our_way(ground: Path) -> None:
    chance, found, world = random.Random(SEED), list[str](), World("agent.db")
    methods: dict[Any, list[Place]] = {}
    for place in PLACES:
        if not any(place.named(name) in AT_ONCE for name in (True, False)):
            methods.setdefault((place.owner, place.call), []).append(place)
    for places in (places for places in methods.values() if len(places) > 1):
        for _ in range(30):
            first, second = chance.sample(places, 2)
            labels = chance.choice(list(BAD)), chance.choice(list(BAD))
            with judged(f"{first} with {labels[0]}, {second.parameter} with {labels[1]}", found):
                drive(world, first, BAD[labels[0]](), {second.parameter: BAD[labels[1]]()})
    world.store.close()
    assert not found, "\n".join(found)
