"""Threads are found by owner, tag and time of activity, without reading what is in them, and kept from other owners."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

import holdfast
from holdfast import errors
from holdfast.adapters.langgraph.reading import Graph, graphs_of
from holdfast.clock import to_datetime
from holdfast.engine.contract import Append, Event, Put, Scope
from holdfast.testing import ManualClock
from holdfast.thread import replay
from holdfast.wiring import Wiring

HELLO = {"role": "user", "content": "hello"}
START = datetime(2026, 3, 1, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)


def ids(found: list[holdfast.types.ThreadInfo]) -> list[str]:
    return [info.id for info in found]


@pytest.fixture
def week(store: holdfast.Store, clock: ManualClock) -> holdfast.Store:
    """Five threads, one each day from the first of March on, at ten."""
    made: list[tuple[str | None, str | None, list[str]]] = [
        ("ana", "travel", ["open"]),
        ("ben", "travel", []),
        ("ana", "food", ["open", "vip"]),
        ("ben", "food", []),
        (None, None, []),
    ]
    for day, (user, agent, tags) in enumerate(made):
        clock.set(START + timedelta(days=day))
        store.thread(f"t{day}", user=user, agent=agent, tags=tags).append(HELLO)
    return store


@pytest.mark.usefixtures("any_engine")
def test_an_empty_store_lists_nothing(store: holdfast.Store) -> None:
    assert store.threads() == []


@pytest.mark.every_engine
def test_the_latest_activity_comes_first(week: holdfast.Store, clock: ManualClock) -> None:
    assert ids(week.threads()) == ["t4", "t3", "t2", "t1", "t0"]
    clock.set(START + timedelta(days=9))
    week.thread("t1").append(HELLO)
    assert ids(week.threads()) == ["t1", "t4", "t3", "t2", "t0"]


@pytest.mark.every_engine
def test_threads_of_one_moment_are_in_order_of_their_names(store: holdfast.Store, clock: ManualClock) -> None:
    for name in ("b", "c", "a"):
        clock.set(START)
        store.thread(name).append(HELLO)
    assert ids(store.threads()) == ["c", "b", "a"]
    assert ids(store.threads(limit=2)) == ["c", "b"]


@pytest.mark.every_engine
def test_threads_are_found_by_owner_tag_and_time(week: holdfast.Store) -> None:
    """Whatever is named narrows the listing; together they all do."""
    queries: list[tuple[dict[str, Any], list[str]]] = [
        ({"user": "ana"}, ["t2", "t0"]),
        ({"agent": "travel"}, ["t1", "t0"]),
        ({"user": "ben", "agent": "food"}, ["t3"]),
        ({"tag": "open"}, ["t2", "t0"]),
        ({"tag": "vip", "user": "ana"}, ["t2"]),
        ({"tag": "vip", "user": "ben"}, []),
        ({"user": "nobody"}, []),
        ({"since": START + timedelta(days=3)}, ["t4", "t3"]),
        ({"until": START + timedelta(days=1)}, ["t0"]),
        ({"since": START + timedelta(days=1), "until": START + timedelta(days=3), "agent": "travel"}, ["t1"]),
        ({"limit": 2}, ["t4", "t3"]),
        ({"limit": 0}, []),
        ({"limit": None}, ["t4", "t3", "t2", "t1", "t0"]),
    ]
    assert [(wanted, ids(week.threads(**wanted))) for wanted, _ in queries] == queries


@pytest.mark.every_engine
def test_since_is_inclusive_and_until_is_not(store: holdfast.Store, clock: ManualClock) -> None:
    store.thread("t").append(HELLO)
    active = store.thread("t").info().active
    assert ids(store.threads(since=active)) == ["t"]
    assert store.threads(until=active) == []
    assert ids(store.threads(until=active + timedelta(microseconds=1))) == ["t"]


@pytest.mark.usefixtures("any_engine")
def test_a_moment_in_another_time_zone_is_the_same_moment(week: holdfast.Store) -> None:
    there = (START + timedelta(days=4)).astimezone(timezone(timedelta(hours=-7)))
    assert ids(week.threads(since=there)) == ["t4"]


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("name", ["since", "until"])
def test_a_moment_without_a_time_zone_is_refused(store: holdfast.Store, name: str) -> None:
    with pytest.raises(errors.Invalid, match="no time zone"):
        store.threads(**{name: datetime(2026, 3, 1)})


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("limit", [-1, 1.5, "1", True])
def test_a_limit_that_is_no_count_is_invalid(store: holdfast.Store, limit: Any) -> None:
    with pytest.raises(errors.Invalid, match="limit must be a whole number"):
        store.threads(limit=limit)


@pytest.mark.every_engine
def test_more_threads_than_fit_one_page_are_all_listed_once(store: holdfast.Store, clock: ManualClock) -> None:
    """The store asks its engine for 500 at a time; a listing of many hours crosses pages inside an hour and between."""
    many = [f"t{number:04}" for number in range(1_203)]
    for first in range(0, len(many), 100):
        ops = [Put("thread", id, b"j1{}", scope=Scope(thread=id)) for id in many[first : first + 100]]
        store.core.engine.commit(store.tenant, ops, clock.now())
        clock.advance(40 * 60)
    assert ids(store.threads(limit=None)) == sorted(many, key=lambda id: (many.index(id) // 100, id), reverse=True)
    assert ids(store.threads(limit=700)) == ids(store.threads(limit=None))[:700]
    assert len(store.threads()) == 100


def test_the_listing_tells_what_a_thread_is_without_what_is_in_it(store: holdfast.Store, clock: ManualClock) -> None:
    clock.set(START)
    thread = store.thread("t", user="ana", agent="travel", tags=["vip", "open", "vip"])
    thread.append(HELLO, HELLO)
    clock.set(START + HOUR)
    thread.save({"mood": "good"})
    tick = timedelta(microseconds=1)
    assert store.threads() == [
        holdfast.types.ThreadInfo("t", "ana", "travel", ("open", "vip"), 2, START + tick, START + HOUR + tick)
    ]
    assert store.threads() == [thread.info()]


def test_a_listing_decodes_neither_state_nor_log(store: holdfast.Store, clock: ManualClock) -> None:
    """A thread whose every stored value is rubbish is listed like any other; only reading it fails."""
    now = clock.now()
    scope = Scope(user="ana", thread="t")
    store.core.engine.commit(
        store.tenant,
        [
            Append(kind, "t", (Event(kind, b"\xff\xfe", now),), new=Put(kind, "t", b"\xff", scope=scope))
            for kind in ("thread", "state")
        ],
        now,
    )
    assert ids(store.threads(user="ana")) == ["t"]
    assert store.thread("t").info().entries == 1
    with pytest.raises(errors.Unsupported):
        store.thread("t").state()
    with pytest.raises(errors.Unsupported):
        store.thread("t").log()


def test_every_write_counts_as_activity(store: holdfast.Store, clock: ManualClock) -> None:
    clock.set(START)
    thread, other = store.thread("t"), store.thread("other")
    writes: dict[str, Callable[[], Any]] = {
        "append": lambda: thread.append(HELLO),
        "save": lambda: thread.save({}),
        "turn": lambda: _turn(thread),
        "tag": lambda: thread.tag("x"),
        "checkpoint": lambda: thread.checkpoint("x"),
        "rewind": lambda: thread.rewind(0),
    }
    for write in writes.values():
        other.append(HELLO)
        clock.advance(3600)
        before = clock.now()
        write()
        assert ids(store.threads()) == ["t", "other"]
        assert thread.info().active > to_datetime(before)


def test_reading_is_no_activity(store: holdfast.Store) -> None:
    thread = store.thread("t")
    thread.append(HELLO)
    before = thread.info()
    thread.log()
    thread.state()
    thread.checkpoints()
    assert thread.info() == before


# Tags


def test_tags_are_added_and_taken_away(store: holdfast.Store) -> None:
    thread = store.thread("t", tags=["open"])
    thread.append(HELLO)
    assert thread.tag("vip", "late", "vip").tags == ("late", "open", "vip")
    assert thread.tag(remove=["open", "never there"]).tags == ("late", "vip")
    assert ids(store.threads(tag="vip")) == ["t"]
    assert store.threads(tag="open") == []


@pytest.mark.usefixtures("any_engine")
def test_tags_of_a_handle_count_when_the_thread_is_made_and_not_later(store: holdfast.Store) -> None:
    store.thread("t", tags=["first"]).append(HELLO)
    store.thread("t", tags=["second"]).append(HELLO)
    assert store.thread("t").info().tags == ("first",)


@pytest.mark.usefixtures("any_engine")
def test_tagging_leaves_the_log_and_the_owner_alone(store: holdfast.Store) -> None:
    thread = store.thread("t", user="ana", agent="travel")
    thread.append(HELLO)
    before = thread.log()
    info = thread.tag("x")
    assert (info.user, info.agent, info.entries, thread.log()) == ("ana", "travel", 1, before)


@pytest.mark.every_engine
def test_a_tag_survives_appends_and_a_restart(store: holdfast.Store, reopen: Callable[[], holdfast.Store]) -> None:
    store.thread("t").append(HELLO)
    store.thread("t").tag("x")
    store.thread("t").append(HELLO)
    assert ids(reopen().threads(tag="x")) == ["t"]


@pytest.mark.every_engine
def test_many_who_tag_at_once_lose_no_tag(store: holdfast.Store) -> None:
    store.thread("t").append(HELLO)
    names = [f"tag-{number:02}" for number in range(25)]
    together = threading.Barrier(len(names))

    def tag(name: str) -> None:
        together.wait()
        store.thread("t").tag(name)

    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(tag, names))
    assert store.thread("t").info().tags == tuple(names)


@pytest.mark.usefixtures("any_engine")
def test_tags_that_never_stop_changing_are_a_conflict(store: holdfast.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    class Busy:
        """An engine on which someone else always tags first."""

        def __getattr__(self, name: str) -> Any:
            return getattr(store.core.engine, name)

        def commit(self, *args: Any) -> Any:
            store.thread("t").tag("theirs")
            return store.core.engine.commit(*args)

    monkeypatch.setattr("holdfast.ledger.core._TRIES", 5)
    store.thread("t").append(HELLO)
    engine: Any = Busy()
    with pytest.raises(errors.Conflict, match="keeps changing"):
        holdfast.Store(Wiring(store.core._replace(engine=engine))).thread("t").tag("ours")
    assert store.thread("t").info().tags == ("theirs",)


@pytest.mark.usefixtures("any_engine")
def test_one_string_is_not_several_tags(store: holdfast.Store) -> None:
    with pytest.raises(errors.Invalid, match="a collection of strings"):
        store.thread("t", tags="vip")


# Owners


@pytest.fixture
def anas(store: holdfast.Store) -> holdfast.Store:
    thread = store.thread("t", user="ana", agent="travel")
    thread.append(HELLO)
    thread.save({"secret": 1})
    thread.checkpoint("here")
    thread.run("begun").release()
    store.wiring.runs.close()  # where stores share an engine nobody closes this one
    return store


def _turn(thread: holdfast.Thread) -> None:
    with thread.turn() as turn:
        turn.append(HELLO)


ACTIONS: dict[str, Callable[[holdfast.Thread], Any]] = {
    "append": lambda thread: thread.append(HELLO),
    "log": lambda thread: thread.log(),
    "entry": lambda thread: thread.entry(1),
    "info": lambda thread: thread.info(),
    "exists": lambda thread: thread.exists(),
    "messages": lambda thread: thread.messages(),
    "hold": lambda thread: thread.hold().take(),
    "graphs": graphs_of,
    "graph": lambda thread: Graph(thread).frames(),
    "tag": lambda thread: thread.tag("x"),
    "untag": lambda thread: thread.tag(remove=["x"]),
    "turn": _turn,
    "state": lambda thread: thread.state(),
    "refreshed state": lambda thread: thread.state(on_stale="refresh"),
    "save": lambda thread: thread.save({}, expect="any"),
    "patch": lambda thread: thread.patch("secret", 2),
    "confirm": lambda thread: thread.confirm("secret"),
    "refresh": lambda thread: thread.refresh(),
    "revisions": lambda thread: thread.revisions(),
    "checkpoint": lambda thread: thread.checkpoint("there"),
    "checkpoints": lambda thread: thread.checkpoints(),
    "rewind": lambda thread: thread.rewind("here"),
    "fork": lambda thread: thread.fork("copy"),
    "run": lambda thread: thread.run("begun"),
    "new run": lambda thread: thread.run("new"),
    "submit": lambda thread: thread.submit("new"),
    "runs": lambda thread: thread.runs(),
    "timeline": lambda thread: thread.timeline("begun"),
    "replay": lambda thread: replay(thread, "begun", lambda run: None),
    "signal": lambda thread: thread.signal("go"),
    "cancel": lambda thread: thread.cancel("begun"),
    "handoff": lambda thread: thread.handoff.read(),
    "written handoff": lambda thread: thread.handoff.update(goal="steal"),
}


def test_every_public_method_is_tried_by_a_wrong_owner() -> None:
    public = {name for name in dir(holdfast.Thread) if not name.startswith("_")}
    assert public <= {name.split()[-1] for name in ACTIONS}


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("action", ACTIONS)
def test_a_handle_of_another_owner_neither_reads_nor_writes(anas: holdfast.Store, action: str) -> None:
    before = list(anas.watch(timeout_s=0))
    for owner in ({"user": "eve"}, {"agent": "other"}, {"user": "ana", "agent": "other"}):
        with pytest.raises(errors.Invalid):
            ACTIONS[action](anas.thread("t", **owner))
    assert list(anas.watch(timeout_s=0)) == before


@pytest.mark.every_engine
@pytest.mark.parametrize("action", ["append", "log", "save", "turn"])
def test_the_engine_too_keeps_another_owner_out(anas: holdfast.Store, action: str) -> None:
    with pytest.raises(errors.Invalid, match="belongs to user 'ana', not 'eve'"):
        ACTIONS[action](anas.thread("t", user="eve"))


@pytest.mark.parametrize("owner", [{}, {"user": "ana"}, {"agent": "travel"}], ids=str)
def test_a_handle_that_names_no_other_owner_may_do_everything(anas: holdfast.Store, owner: dict[str, str]) -> None:
    thread = anas.thread("t", **owner)
    thread.append(HELLO)
    assert (thread.logbook.head(), thread.state().value) == (2, {"secret": 1})
    assert anas.threads(user="ana") == [thread.info()]


def test_a_thread_that_nobody_owns_is_nobodys(store: holdfast.Store) -> None:
    """Otherwise it would be read and written for Ana, and erasing Ana would leave it."""
    store.thread("t").append(HELLO)
    with pytest.raises(errors.Invalid, match="belongs to user None, not 'ana'"):
        store.thread("t", user="ana").append(HELLO)
    with pytest.raises(errors.Invalid, match="belongs to user None"):
        store.thread("t", user="ben").logbook.head()
    assert store.thread("t", agent="travel").logbook.head() == 1
