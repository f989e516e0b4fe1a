"""The async classes have the names, parameters and defaults of their blocking twins: nobody has to learn two stores."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any, get_overloads

import pytest

import holdfast
from holdfast import aio
from holdfast.aio import AsyncRun, AsyncSubtask

TWINS = [
    (holdfast.Store, aio.AsyncStore),
    (holdfast.Turn, aio.AsyncTurn),
    (holdfast.Thread, aio.AsyncThread),
    (holdfast.Run, aio.AsyncRun),
    (holdfast.Subtask, aio.AsyncSubtask),
    (holdfast.Handoff, aio.AsyncHandoff),
    (holdfast.Memories, aio.AsyncMemories),
    (holdfast.Folder, aio.AsyncFolder),
    (holdfast.Session, aio.AsyncSession),
    (holdfast.Follower, aio.AsyncFollower),
    (holdfast.Exchange, aio.AsyncExchange),
]
# What waits for nothing stays an ordinary call.
NOT_AWAITED = {
    ("Store", "for_tenant"), ("Store", "acting_as"), ("Store", "follower"),
    ("Store", "memory"), ("Store", "folder"), ("Store", "session"), ("Memories", "tools"), ("Exchange", "append"),
    ("Session", "turn"), ("Session", "resume"),  # what they give is awaited, or used in ``async with``
    ("Store", "thread"), ("Thread", "turn"), ("Turn", "append"), ("Turn", "save"),
    ("Thread", "run"), ("Thread", "hold"),  # what they give is awaited, or used in ``async with``
}  # fmt: skip
RETURNS = {
    "Store": "AsyncStore",
    "Follower": "AsyncFollower",
    "Thread": "AsyncThread",
    "Turn": "AsyncTurn",
    "Memories": "AsyncMemories",
    "Folder": "AsyncFolder",
    "Graph": "AsyncGraph",
    "Session": "AsyncSession",
    "Run": "RunOpening",
    "Hold": "AsyncHold",
    "Self": "AsyncThread",  # a fork is a thread of the same kind
    "Iterator[Commit]": "AsyncIterator[Commit]",
    "Iterator[str]": "AsyncIterator[str]",
}
TAKES = {"Thread | str": "AsyncThread | str"}
# No callers' names: what is built on the store stands on these, and waits in ways of its own.
BENEATH = {
    "core", "wiring", "blocking", "logbook", "statebook", "filebook", "runbook", "visible", "work", "draft", "page",
    "only", "known",
}  # fmt: skip


@pytest.fixture(scope="module")
def instances() -> Iterator[dict[type, Any]]:
    """One of each class, because some public names are there only once an object is made."""

    async def opened() -> aio.AsyncStore:
        return await aio.open("ram:")

    with holdfast.open("ram:") as store:
        thread = store.thread("t")
        twin = asyncio.run(opened())
        twin_thread = twin.thread("t")
        run = thread.run("r")
        made = (store, thread, thread.turn(), run, twin, twin_thread, twin_thread.turn())
        runs = (AsyncRun(run.work, twin._offload), holdfast.Subtask(run.work), AsyncSubtask(run.work, twin._offload))
        twins = (*runs, thread.handoff, twin_thread.handoff, store.memory(), twin.memory())
        twins += (store.folder("f"), twin.folder("f"))
        session = store.session("talk")
        exchange = session.turn("hello")
        twins += (store.follower("f"), twin.follower("f"))
        twins += (session, exchange, twin.session("talk"), aio.AsyncExchange(exchange, twin._offload))
        yield {type(each): each for each in (*made, *twins)}
        asyncio.run(twin.close())


def public(thing: Any) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")} - BENEATH


def methods(kind: type) -> list[str]:
    return sorted(name for name in public(kind) if inspect.isfunction(inspect.getattr_static(kind, name)))


METHODS = [
    pytest.param(plain, twin, name, id=f"{plain.__name__}.{name}") for plain, twin in TWINS for name in methods(plain)
]


@pytest.mark.parametrize(("plain", "twin"), TWINS, ids=lambda kind: kind.__name__)
def test_the_public_names_are_the_same(plain: type, twin: type, instances: dict[type, Any]) -> None:
    assert public(instances[twin]) == public(instances[plain])


def described(signature: inspect.Signature) -> list[tuple[str, Any, Any, Any]]:
    return [
        (each.name, each.kind, each.default, TAKES.get(each.annotation, each.annotation))
        for each in signature.parameters.values()
    ]


@pytest.mark.parametrize(("plain", "twin", "name"), METHODS)
def test_parameters_and_defaults_are_the_same(plain: type, twin: type, name: str) -> None:
    ours, theirs = (inspect.signature(getattr(kind, name)) for kind in (plain, twin))
    assert described(theirs) == described(ours)
    assert theirs.return_annotation == RETURNS.get(ours.return_annotation, ours.return_annotation)


@pytest.mark.parametrize(("plain", "twin", "name"), METHODS)
def test_type_checkers_are_told_the_same(plain: type, twin: type, name: str) -> None:
    ours, theirs = ([inspect.signature(each) for each in get_overloads(getattr(kind, name))] for kind in (plain, twin))
    assert [described(each) for each in theirs] == [described(each) for each in ours]
    assert [each.return_annotation for each in theirs] == [each.return_annotation for each in ours]


@pytest.mark.parametrize(("plain", "twin", "name"), METHODS)
def test_what_may_wait_is_awaited_and_nothing_else(plain: type, twin: type, name: str) -> None:
    method = getattr(twin, name)
    awaited = inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)
    assert awaited == ((plain.__name__, name) not in NOT_AWAITED)
    assert inspect.isasyncgenfunction(method) == inspect.isgeneratorfunction(getattr(plain, name))


@pytest.mark.parametrize(
    ("plain", "twin"), [TWINS[0], TWINS[1], TWINS[3], TWINS[-3], TWINS[-1]], ids=lambda kind: kind.__name__
)
def test_a_with_block_becomes_an_async_with_block(plain: type, twin: type) -> None:
    assert hasattr(plain, "__enter__")
    assert inspect.iscoroutinefunction(twin.__aenter__)  # type: ignore[attr-defined]
    assert inspect.iscoroutinefunction(twin.__aexit__)  # type: ignore[attr-defined]
    assert not hasattr(twin, "__enter__")


def test_opening_takes_the_same() -> None:
    assert described(inspect.signature(aio.open)) == described(inspect.signature(holdfast.open))


def test_the_twins_would_be_told_apart() -> None:
    def one(self: Any, a: int = 1, *, b: str | None = None) -> int: ...
    def two(self: Any, a: int = 2, *, b: str | None = None) -> int: ...

    assert described(inspect.signature(one)) != described(inspect.signature(two))
