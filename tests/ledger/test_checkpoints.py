"""Points of a thread can be named, gone back to and branched off from; nothing is copied, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import errors
from holdfast.engine.contract import Scope
from holdfast.testing import ManualClock
from holdfast.wiring import Wiring


def said(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def texts(thread: holdfast.Thread) -> list[str]:
    return [entry.content["content"] for entry in thread.log()]


@pytest.fixture
def thread(store: holdfast.Store) -> holdfast.Thread:
    """Three turns, each an entry ("1", "2", "3") and a state of the same number."""
    thread = store.thread("trip-42", user="ana", agent="travel", tags=["open"])
    for number in (1, 2, 3):
        with thread.turn() as turn:
            turn.append(said(str(number)), key=f"k{number}")
            turn.save({"n": number})
    return thread


def rows(store: holdfast.Store) -> dict[str, int]:
    """How many rows the tenant takes up, by table."""
    engine: Any = store.core.engine
    if not engine.durable:
        data = engine._tenants[store.tenant]
        events = sum(len(list(own)) for own in data.events.values())
        return {"records": len(data.records), "strands": len(data.strands), "events": events}
    return {
        table: engine._run_outside(store.tenant, f"SELECT count(*) FROM {table}")[0][0]
        for table in ("records", "strands", "events")
    }


# Checkpoints


def test_a_checkpoint_says_where_the_thread_stood(thread: holdfast.Thread, clock: ManualClock) -> None:
    made = thread.checkpoint("before-payment", note="all agreed")
    assert (made.name, made.entries, made.revision, made.note) == ("before-payment", 3, 3, "all agreed")
    assert thread.checkpoints() == [made]


@pytest.mark.usefixtures("any_engine")
def test_a_checkpoint_does_not_move(thread: holdfast.Thread) -> None:
    made = thread.checkpoint("here")
    thread.append(said("4"))
    thread.patch("n", 4)
    thread.rewind(1)
    assert made in thread.checkpoints()


def test_a_thread_without_a_state_can_have_one_too(store: holdfast.Store) -> None:
    store.thread("t").append(said("a"))
    assert store.thread("t").checkpoint("here").revision == 0


@pytest.mark.usefixtures("any_engine")
def test_checkpoints_are_listed_oldest_first(thread: holdfast.Thread) -> None:
    for name in ("c", "a", "b"):
        thread.checkpoint(name)
    assert [point.name for point in thread.checkpoints()] == ["c", "a", "b"]


def test_a_name_is_used_once_unless_it_is_to_move(thread: holdfast.Thread) -> None:
    thread.checkpoint("here")
    thread.append(said("4"))
    with pytest.raises(errors.Conflict, match="already has a checkpoint 'here'; give replace=True") as caught:
        thread.checkpoint("here")
    assert (caught.value.thread, caught.value.checkpoint) == ("trip-42", "here")
    assert [point.entries for point in thread.checkpoints()] == [3]
    assert thread.checkpoint("here", replace=True).entries == 4
    assert [point.entries for point in thread.checkpoints()] == [4]


@pytest.mark.usefixtures("any_engine")
def test_names_of_threads_and_checkpoints_do_not_run_together(store: holdfast.Store) -> None:
    for id, name in (("a/b", "c"), ("a", "b/c"), ("3:a", "b"), ("a/b/c", "d")):
        store.thread(id).append(said(id))
        store.thread(id).checkpoint(name)
    assert [[point.name for point in store.thread(id).checkpoints()] for id in ("a/b", "a", "3:a")] == [
        ["c"],
        ["b/c"],
        ["b"],
    ]


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("use", ["rewind", "fork"])
def test_a_name_that_nobody_gave_is_not_found(thread: holdfast.Thread, use: str) -> None:
    with pytest.raises(errors.NotFound, match="no checkpoint 'nowhere'") as caught:
        thread.rewind("nowhere") if use == "rewind" else thread.fork("copy", at="nowhere")
    assert caught.value.checkpoint == "nowhere"


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("use", ["rewind", "fork"])
@pytest.mark.parametrize("number", [4, -1, 2**70])
def test_a_number_that_the_log_does_not_have_is_not_found(thread: holdfast.Thread, use: str, number: int) -> None:
    with pytest.raises(errors.NotFound, match="has entries 1 to 3"):
        thread.rewind(number) if use == "rewind" else thread.fork("copy", at=number)


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("point", [1.5, True, ["a"], b"here"])
def test_a_point_that_is_neither_is_invalid(thread: holdfast.Thread, point: Any) -> None:
    for use in (lambda: thread.rewind(point), lambda: thread.fork("copy", at=point)):
        with pytest.raises(errors.Invalid, match="the name of a checkpoint or the number of an entry"):
            use()


@pytest.mark.usefixtures("any_engine")
def test_a_rewind_to_nowhere_is_refused(thread: holdfast.Thread) -> None:
    with pytest.raises(errors.Invalid, match="say where to rewind to"):
        thread.rewind(None)  # type: ignore[arg-type]
    assert thread.checkpoints() == []


# Rewinding


def test_a_rewind_to_a_number_takes_log_and_state_back(thread: holdfast.Thread) -> None:
    for number in (3, 2, 1, 0):
        thread.rewind(number)
        assert texts(thread) == ["1", "2", "3"][:number]
        assert thread.state(default="none").value == ({"n": number} if number else "none")
        assert [revision.number for revision in thread.revisions()] == list(range(1, number + 1))


def test_a_rewind_to_a_checkpoint_takes_log_and_state_back(thread: holdfast.Thread) -> None:
    thread.checkpoint("here")
    thread.append(said("4"))
    thread.save({"n": 4})
    thread.save({"n": 5})
    thread.rewind("here")
    assert (texts(thread), thread.state().value, thread.state().revision) == (["1", "2", "3"], {"n": 3}, 3)


def test_a_checkpoint_from_before_the_first_state_takes_the_state_away(store: holdfast.Store) -> None:
    thread = store.thread("t")
    thread.append(said("1"))
    thread.checkpoint("here")
    thread.save({"n": 1})
    thread.rewind("here")
    assert (thread.state(default="none").value, thread.revisions()) == ("none", [])
    assert thread.save({"n": "new"}) == 1
    assert thread.checkpoint("there").revision == 1


def test_the_thread_goes_on_from_there(thread: holdfast.Thread) -> None:
    thread.rewind(1)
    assert thread.append(said("another 2")).number == 2
    thread.state()
    assert thread.save({"n": "another 2"}) == 2
    assert (texts(thread), thread.state().value) == (["1", "another 2"], {"n": "another 2"})
    assert thread.entry(2).content == said("another 2")
    assert thread.log(1) == [thread.entry(2)]


@pytest.mark.every_engine
def test_a_rewind_names_the_place_it_left_and_can_be_undone(thread: holdfast.Thread) -> None:
    before = thread.log(), thread.revisions()
    left = thread.rewind(1)
    assert (left.entries, left.revision, left.note) == (3, 3, "rewound to 1")
    assert left in thread.checkpoints()
    thread.append(said("another way"))
    other = thread.rewind(left.name)
    assert (thread.log(), thread.revisions(), thread.state().value) == (*before, {"n": 3})
    thread.rewind(other.name)
    assert texts(thread) == ["1", "another way"]


@pytest.mark.usefixtures("any_engine")
def test_what_a_handle_saw_before_a_rewind_does_not_count_after_it(thread: holdfast.Thread) -> None:
    thread.state()
    thread.rewind(1)
    with pytest.raises(errors.Conflict):
        thread.save({"n": "blind"})
    assert thread.state().value == {"n": 1}


def test_a_key_that_was_rewound_is_free_and_one_that_was_not_is_known(thread: holdfast.Thread) -> None:
    thread.rewind(1)
    assert thread.append(said("another"), key="k2").number == 2
    assert thread.append(said("1"), key="k1").number == 1
    with pytest.raises(errors.KeyReused):
        thread.append(said("other"), key="k1")
    with pytest.raises(errors.NotFound):
        thread.entry(key="k3")


@pytest.mark.every_engine
def test_a_rewind_survives_a_restart(thread: holdfast.Thread, reopen: Callable[[], holdfast.Store]) -> None:
    left = thread.rewind(1)
    again = reopen().thread("trip-42")
    assert (texts(again), again.state().value) == (["1"], {"n": 1})
    again.rewind(left.name)
    assert texts(again) == ["1", "2", "3"]


def test_a_rewind_to_a_number_is_right_also_when_the_clock_was_put_back(
    store: holdfast.Store, clock: ManualClock
) -> None:
    """What was saved later came later, whatever the clocks of two machines say."""
    thread = store.thread("t")
    for number, hour in ((1, 20), (2, 5), (3, 12), (4, 1)):
        clock.set(datetime(2026, 3, 1, hour, tzinfo=UTC))
        with thread.turn() as turn:
            turn.append(said(str(number)))
            turn.save({"n": number})
    copies = [thread.fork(f"copy-{number}", at=number) for number in (1, 2, 3, 4)]
    assert [copy.state().value["n"] for copy in copies] == [1, 2, 3, 4]
    times = [entry.time for entry in thread.log()]
    assert times == sorted(times)


def test_a_rewind_keeps_owner_and_tags(thread: holdfast.Thread) -> None:
    thread.rewind(1)
    info = thread.info()
    assert (info.user, info.agent, info.tags, info.entries) == ("ana", "travel", ("open",), 1)


# Others who write at the same moment


class Interrupted:
    """An engine on which something happens right after a thread's record was read for the first time."""

    def __init__(self, view: Any, happening: list[Callable[[], Any]]) -> None:
        self._view, self._happening = view, happening

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)

    def get(self, tenant: str, kind: str, id: str) -> Any:
        record = self._view.get(tenant, kind, id)
        if kind == "thread" and self._happening:
            self._happening.pop()()
        return record

    @contextmanager
    def snapshot(self) -> Iterator[Any]:
        with self._view.snapshot() as view:
            yield Interrupted(view, self._happening)


def interrupted(store: holdfast.Store, happening: Callable[[], Any]) -> holdfast.Thread:
    """The thread, for someone who is slow between reading and writing."""
    engine: Any = Interrupted(store.core.engine, [happening])
    return holdfast.Store(Wiring(store.core._replace(engine=engine))).thread("trip-42")


def another_turn(thread: holdfast.Thread) -> Callable[[], None]:
    def take() -> None:
        with thread.turn() as turn:
            turn.append(said("4"))
            turn.save({"n": 4})

    return take


def test_a_checkpoint_never_falls_into_the_middle_of_a_turn(store: holdfast.Store, thread: holdfast.Thread) -> None:
    made = interrupted(store, another_turn(thread)).checkpoint("here")
    assert thread.logbook.head() == 4
    assert made.entries == made.revision


@pytest.mark.parametrize("at", [None, 3])
def test_a_fork_never_falls_into_the_middle_of_a_turn(
    store: holdfast.Store, thread: holdfast.Thread, at: int | None
) -> None:
    copy = interrupted(store, another_turn(thread)).fork("copy", at=at)
    assert thread.logbook.head() == 4
    assert copy.logbook.head() == copy.state().revision


@pytest.mark.every_engine
def test_a_late_writer_is_not_cut_off_unseen(store: holdfast.Store, thread: holdfast.Thread) -> None:
    late = [
        lambda: thread.append(said("4")),
        lambda: thread.save({"n": 4}),
        another_turn(thread),
        lambda: thread.rewind(2),
    ]
    for write in late:
        thread.state()
        with pytest.raises(errors.Conflict):
            interrupted(store, write).rewind(1)
    assert (texts(thread), [point.note for point in thread.checkpoints()]) == (["1", "2"], ["rewound to 2"])


def test_a_log_that_is_as_long_again_is_not_the_same(store: holdfast.Store, thread: holdfast.Thread) -> None:
    """Someone rewinds and writes as much as was there; whoever read before that must not take it for what it read."""

    def other_way() -> None:
        thread.rewind(2)
        thread.append(said("another 3"))
        thread.state()
        thread.save({"n": "another 3"})

    with pytest.raises(errors.Conflict):
        interrupted(store, other_way).rewind(1)
    assert texts(thread) == ["1", "2", "another 3"]


def test_a_first_state_that_comes_late_is_not_cut_off_unseen(store: holdfast.Store) -> None:
    thread = store.thread("trip-42")
    thread.append(said("1"), said("2"))
    with pytest.raises(errors.Conflict):
        interrupted(store, lambda: thread.save({"n": 1})).rewind(1)
    assert (thread.logbook.head(), thread.state().value) == (2, {"n": 1})


@pytest.mark.every_engine
@pytest.mark.parametrize("forever", [True, False])
def test_a_thread_erased_meanwhile_does_not_come_back_for_a_checkpoint(
    store: holdfast.Store, thread: holdfast.Thread, forever: bool
) -> None:
    def erase() -> None:
        engine, tenant = store.core.engine, store.tenant  # below the store, which would wait for this very snapshot
        engine.erase(tenant, Scope(thread="trip-42"), time=store.core.clock.now(), bury=forever)

    late = interrupted(store, erase)
    with pytest.raises(errors.NotFound):
        late.checkpoint("here")
    assert (store.threads(), thread.checkpoints()) == ([], [])


# Forking


def test_a_fork_shares_history_up_to_a_point(thread: holdfast.Thread) -> None:
    thread.checkpoint("here")
    points: list[tuple[str | int | None, int]] = [(None, 3), (0, 0), (2, 2), (3, 3), ("here", 3)]
    for at, length in points:
        copy = thread.fork(f"copy at {at}", at=at)
        assert texts(copy) == ["1", "2", "3"][:length]
        assert copy.state(default="none").value == ({"n": length} if length else "none")
        assert [entry.digest for entry in copy.log()] == [entry.digest for entry in thread.log()][:length]
        assert {entry.thread for entry in copy.log()} <= {copy.id}


def test_a_fork_belongs_to_the_same_owner_unless_another_is_named(
    store: holdfast.Store, thread: holdfast.Thread
) -> None:
    same, other = thread.fork("same").info(), thread.fork("other", user="ben", agent="food").info()
    assert (same.user, same.agent, same.tags) == ("ana", "travel", ("open",))
    assert (other.user, other.agent, other.tags) == ("ben", "food", ("open",))
    assert [info.id for info in store.threads(user="ben")] == ["other"]


def test_what_happens_in_one_does_not_show_in_the_other(thread: holdfast.Thread) -> None:
    copy = thread.fork("copy", at=2)
    copy.append(said("copy"))
    copy.patch("n", "copy")
    thread.append(said("original"))
    thread.patch("n", "original")
    thread.checkpoint("mine")
    assert (texts(copy), copy.state().value) == (["1", "2", "copy"], {"n": "copy"})
    assert (texts(thread), thread.state().value) == (["1", "2", "3", "original"], {"n": "original"})
    assert copy.checkpoints() == []


def test_rewinding_either_does_not_touch_the_other(thread: holdfast.Thread) -> None:
    copy = thread.fork("copy", at=2)
    thread.rewind(0)
    assert (texts(copy), copy.state().value) == (["1", "2"], {"n": 2})
    thread.append(said("new"))
    copy.rewind(1)
    copy.append(said("other"))
    assert (texts(thread), texts(copy)) == (["new"], ["1", "other"])


@pytest.mark.every_engine
def test_a_fork_of_a_fork(thread: holdfast.Thread) -> None:
    second = thread.fork("second", at=2)
    second.append(said("s3"), said("s4"))
    third = second.fork("third", at=3)
    third.append(said("t4"))
    fourth = third.fork("fourth", at=1)
    assert texts(third) == ["1", "2", "s3", "t4"]
    assert (texts(fourth), fourth.state().value) == (["1"], {"n": 1})
    assert third.log(2) == third.log(after=2)
    assert third.entry(1).content == said("1")


def test_keys_of_the_shared_part_are_known_in_the_fork(thread: holdfast.Thread) -> None:
    copy = thread.fork("copy", at=2)
    assert copy.append(said("2"), key="k2").number == 2
    assert copy.append(said("its own 3"), key="k3").number == 3
    assert copy.entry(key="k1").number == 1


def test_a_fork_goes_where_nothing_is(store: holdfast.Store, thread: holdfast.Thread) -> None:
    store.thread("taken").append(said("mine"))
    for id in ("taken", "trip-42"):
        with pytest.raises(errors.Conflict, match="already exists"):
            thread.fork(id)
    assert texts(store.thread("taken")) == ["mine"]


@pytest.mark.every_engine
def test_a_fork_survives_a_restart(thread: holdfast.Thread, reopen: Callable[[], holdfast.Store]) -> None:
    thread.fork("copy", at=2).append(said("copy"))
    store = reopen()
    copy = store.thread("copy")
    assert (texts(copy), copy.state().value) == (["1", "2", "copy"], {"n": 2})
    assert store.verify().ok


@pytest.mark.every_engine
def test_a_fork_stays_readable_when_its_parent_is_erased(store: holdfast.Store, thread: holdfast.Thread) -> None:
    copy = thread.fork("copy", at=2, user="ben")
    third = copy.fork("third", at=1, user="cem")
    store.erase(user="ana")
    assert not store.thread("trip-42").exists()
    assert (texts(copy), copy.state().value, texts(third)) == (["1", "2"], {"n": 2}, ["1"])
    copy.rewind(1)
    copy.append(said("another"))
    assert (texts(copy), store.verify().problems) == (["1", "another"], ())
    store.erase(user="ben")
    assert (texts(third), third.state().value, store.verify().problems) == (["1"], {"n": 1}, ())


# What it costs


@pytest.mark.every_engine
@pytest.mark.parametrize("use", ["fork", "rewind", "checkpoint"])
def test_the_cost_does_not_grow_with_the_thread(store: holdfast.Store, use: str) -> None:
    """The same few rows for a thread of two entries and for one of two thousand, and never an event."""
    added = []
    for length in (2, 2_000):
        thread = store.thread(f"t{length}")
        thread.append(*(said(f"number {number}") for number in range(length)))
        thread.save({"n": 1})
        before = rows(store)
        match use:
            case "fork":
                thread.fork(f"copy{length}")
            case "rewind":
                thread.rewind(length - 1)
            case _:
                thread.checkpoint("here")
        added.append({table: count - before[table] for table, count in rows(store).items()})
    assert added[0] == added[1]
    assert added[1]["events"] == 0
    assert sum(added[1].values()) <= 4


def test_a_fork_adds_next_to_nothing_to_the_file(folder: Path) -> None:
    """A hundred forks of a log of half a megabyte take less than a tenth of it."""
    path = folder / "store.db"

    def size() -> int:
        return path.stat().st_size

    with holdfast.open(path) as store:
        store.thread("t").append(*(said("x" * 250) for _ in range(2_000)))
    before = size()
    with holdfast.open(path) as store:
        for number in range(100):
            store.thread("t").fork(f"copy-{number}")
    assert before > 500_000
    assert size() - before < before / 10
