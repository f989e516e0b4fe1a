"""What one exchange adds is one commit: all of it, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast import errors
from holdfast.testing import ManualClock


def said(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


@pytest.fixture
def thread(store: holdfast.Store) -> holdfast.Thread:
    return store.thread("trip-42", user="ana")


def take(
    thread: holdfast.Thread, *items: Any, state: Any = None, last: Callable[[], Any] = lambda: None, **options: Any
) -> holdfast.Turn:
    """Take a turn of these entries and this state; ``last`` happens at the end of its block."""
    with thread.turn(**options) as turn:
        for item in items:
            turn.append(item)
        if state is not None:
            turn.save(state)
        last()
    return turn


def everything(store: holdfast.Store, thread: holdfast.Thread) -> tuple[Any, ...]:
    return thread.log(), thread.revisions(), store.threads(), list(store.watch(timeout_s=0))


@pytest.mark.every_engine
def test_entries_and_state_are_one_commit(store: holdfast.Store, thread: holdfast.Thread) -> None:
    with thread.turn() as turn:
        turn.append(said("a"), said("b"))
        turn.append(holdfast.note("c"))
        turn.save({"n": 1})
    assert [entry.number for entry in turn.entries] == [1, 2, 3]
    assert (turn.revision, thread.state().value) == (1, {"n": 1})
    (commit,) = store.watch(timeout_s=0)
    assert {(change.action, change.kind) for change in commit.changes} >= {("append", "thread"), ("append", "state")}


@pytest.mark.usefixtures("any_engine")
def test_everything_in_a_turn_has_one_time(thread: holdfast.Thread) -> None:
    with thread.turn() as turn:
        turn.append(said("a"), said("b"))
        turn.save({"n": 1})
    assert {entry.time for entry in thread.log()} == {thread.revisions()[0].time}


def test_nothing_is_written_before_the_end(store: holdfast.Store, thread: holdfast.Thread) -> None:
    with thread.turn() as turn:
        turn.append(said("a"))
        turn.save({"n": 1})
        assert (turn.entries, turn.revision) == ([], None)
        assert not store.thread("trip-42").exists()
    assert thread.logbook.head() == 1


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_exception_in_the_block_means_that_nothing_happened(
    store: holdfast.Store, thread: holdfast.Thread, error: type[BaseException]
) -> None:
    thread.append(said("before"))
    before = everything(store, thread)

    def fail() -> None:
        raise error

    with pytest.raises(error):
        take(thread, said("a"), state={"n": 1}, last=fail)
    assert everything(store, thread) == before


def test_when_the_state_is_refused_the_entries_are_too(store: holdfast.Store, thread: holdfast.Thread) -> None:
    thread.append(said("before"))
    before = everything(store, thread)
    with pytest.raises(errors.Invalid, match="nan"):
        take(thread, said("a"), state={"n": float("nan")})
    assert everything(store, thread) == before


@pytest.mark.every_engine
def test_when_an_entry_is_refused_the_state_is_too(store: holdfast.Store, thread: holdfast.Thread) -> None:
    thread.append(said("before"), key="k")
    before = everything(store, thread)
    with pytest.raises(errors.KeyReused):
        take(thread, holdfast.message("user", "other", key="k"), state={"n": 1})
    assert everything(store, thread) == before


@pytest.mark.every_engine
def test_when_someone_else_saved_the_entries_stay_out(store: holdfast.Store, thread: holdfast.Thread) -> None:
    thread.save({"n": 0})
    other = store.thread("trip-42")
    with pytest.raises(errors.Conflict):
        take(thread, said("a"), state={"n": 1}, last=lambda: other.save({"n": 2}, expect=1))
    assert (thread.logbook.head(), thread.state().value) == (0, {"n": 2})


@pytest.mark.usefixtures("any_engine")
def test_a_turn_of_entries_alone_and_one_of_state_alone(thread: holdfast.Thread) -> None:
    with thread.turn() as first:
        first.append(said("a"))
    with thread.turn() as second:
        second.save({"n": 1})
    assert ([entry.number for entry in first.entries], first.revision) == ([1], None)
    assert (second.entries, second.revision) == ([], 1)


@pytest.mark.usefixtures("any_engine")
def test_an_empty_turn_is_refused(store: holdfast.Store, thread: holdfast.Thread) -> None:
    with pytest.raises(errors.Invalid, match="this turn is empty"), thread.turn():
        pass
    assert not thread.exists()


@pytest.mark.usefixtures("any_engine")
def test_of_two_states_the_later_one_counts(thread: holdfast.Thread) -> None:
    with thread.turn() as turn:
        turn.save({"n": 1})
        turn.save({"n": 2}, by="ben")
    assert (thread.state().value, [revision.by for revision in thread.revisions()]) == ({"n": 2}, ["ben"])


@pytest.mark.usefixtures("any_engine")
def test_the_state_of_a_turn_follows_what_the_handle_saw(store: holdfast.Store, thread: holdfast.Thread) -> None:
    for number in range(3):
        with thread.turn() as turn:
            turn.append(said(str(number)))
            turn.save({"n": number})
        assert turn.revision == number + 1
    with pytest.raises(errors.Conflict):
        take(store.thread("trip-42"), state={"n": 9})
    with store.thread("trip-42").turn() as turn:
        turn.save({"n": 9}, expect=3)
    with store.thread("trip-42").turn() as turn:
        turn.save({"n": 10}, expect="any")
    assert turn.revision == 5


# Using a turn


@pytest.mark.usefixtures("any_engine")
def test_a_turn_is_used_once(thread: holdfast.Thread) -> None:
    turn = thread.turn()
    with turn:
        turn.append(said("a"))
    for use in (turn.__enter__, lambda: turn.append(said("b")), lambda: turn.save({}), lambda: turn.save({})):
        with pytest.raises(errors.Invalid, match="this turn is committed"):
            use()
    assert thread.logbook.head() == 1


@pytest.mark.usefixtures("any_engine")
def test_a_turn_does_not_nest_in_itself(thread: holdfast.Thread) -> None:
    with thread.turn() as turn:
        turn.append(said("a"))
        with pytest.raises(errors.Invalid, match="this turn is open, not new"):
            turn.__enter__()
    assert thread.logbook.head() == 1


@pytest.mark.usefixtures("any_engine")
def test_a_turn_outside_its_block_takes_nothing(thread: holdfast.Thread) -> None:
    turn = thread.turn()
    with pytest.raises(errors.Invalid, match="this turn is new, not open"):
        turn.append(said("a"))
    assert not thread.exists()


@pytest.mark.usefixtures("any_engine")
def test_a_turn_that_failed_or_was_abandoned_is_over(thread: holdfast.Thread) -> None:
    failed, abandoned = thread.turn(expect=5), thread.turn()
    with pytest.raises(errors.Conflict), failed:
        failed.append(said("a"))
    with pytest.raises(RuntimeError), abandoned:
        raise RuntimeError
    for turn, word in ((failed, "failed"), (abandoned, "abandoned")):
        with pytest.raises(errors.Invalid, match=f"this turn is {word}, not open"):
            turn.append(said("b"))


def test_turns_of_one_thread_do_not_nest(store: holdfast.Store, thread: holdfast.Thread) -> None:
    """The inner one would be committed first, and stay when the outer one is not."""
    other = store.thread("other")
    with thread.turn() as outer:
        outer.append(said("outer"))
        with pytest.raises(errors.Invalid, match="turns do not nest"), store.thread(thread.id).turn():
            raise AssertionError("not reached")
        with other.turn() as beside:
            beside.append(said("beside"))
    with thread.turn() as after:
        after.append(said("after"))
    assert [entry.content["content"] for entry in thread.log()] == ["outer", "after"]
    assert other.logbook.head() == 1


def test_a_turn_keeps_what_it_was_given_not_what_became_of_it(thread: holdfast.Thread) -> None:
    message, state = said("a"), {"inner": {"n": 1}}
    with thread.turn() as turn:
        turn.append(message)
        turn.save(state)
        message["content"] = "changed"
        state["inner"]["n"] = 2
    assert (thread.entry(1).content, thread.state().value) == (said("a"), {"inner": {"n": 1}})


@pytest.mark.usefixtures("any_engine")
def test_what_cannot_be_kept_is_refused_when_it_is_given(thread: holdfast.Thread) -> None:
    with thread.turn() as turn:
        turn.append(said("a"))
        with pytest.raises(errors.Invalid, match="nan"):
            turn.append({"n": float("nan")})
        with pytest.raises(errors.Invalid, match="copying it failed"):
            turn.save({"n": (number for number in [1])})
    assert (thread.logbook.head(), thread.revisions()) == (1, [])


# Expectation


def test_the_log_must_be_as_long_as_the_turn_expects(thread: holdfast.Thread) -> None:
    thread.append(said("a"))
    take(thread, said("b"), expect=1)
    with pytest.raises(errors.Conflict) as caught:
        take(thread, said("c"), state={"n": 1}, expect=1)
    assert (caught.value.expected, caught.value.actual) == (1, 2)
    assert (thread.logbook.head(), thread.revisions()) == (2, [])


def test_a_turn_that_only_saves_minds_its_expectation_too(thread: holdfast.Thread) -> None:
    thread.append(said("a"))
    with pytest.raises(errors.Conflict):
        take(thread, state={"n": 1}, expect=0)
    assert thread.revisions() == []


# Keys


def test_a_keyed_turn_of_state_alone_is_idempotent_too(store: holdfast.Store, thread: holdfast.Thread) -> None:
    first = take(thread, state={"n": 1}, key="k")
    again = take(store.thread("trip-42"), state={"n": 1}, key="k")
    assert (first.entries, first.revision) == (again.entries, again.revision) == ([], 1)
    with pytest.raises(errors.KeyReused):
        take(thread, state={"n": 2}, key="k")
    assert len(thread.revisions()) == 1


def test_a_keyed_turn_that_grew_or_changed_is_another_one(store: holdfast.Store, thread: holdfast.Thread) -> None:
    take(thread, said("a"), said("b"), key="k")
    before = everything(store, thread)
    for items in ([said("a"), said("b"), said("c")], [said("a"), said("B")]):
        with pytest.raises(errors.KeyReused):
            take(thread, *items, key="k")
    assert everything(store, thread) == before


class Flight(msgspec.Struct):
    price: int


@pytest.fixture
def flights(schemas: holdfast.Registry) -> holdfast.Registry:
    schemas.schema("flight", version=1, fresh={"price": "10m"})(Flight)
    return schemas


def buy(thread: holdfast.Thread, price: int = 100, **options: Any) -> holdfast.Turn:
    with thread.turn(key="turn-7", **options) as turn:
        turn.append(said("buy it"))
        turn.append(holdfast.tool_call("buy", {"price": price}), holdfast.note("done"))
        turn.save(Flight(price))
    return turn


def test_a_key_makes_the_whole_turn_idempotent(
    store: holdfast.Store, thread: holdfast.Thread, flights: holdfast.Registry, clock: ManualClock
) -> None:
    """Also when the state is confirmed at another time by the second attempt."""
    first = buy(thread)
    before = everything(store, thread)
    clock.advance(3600)
    again = buy(thread)
    assert (again.entries, again.revision) == (first.entries, first.revision) == (thread.log(), 1)
    assert everything(store, thread) == before


@pytest.mark.every_engine
def test_a_keyed_turn_can_be_repeated_after_a_restart_with_its_expectation(
    thread: holdfast.Thread, flights: holdfast.Registry, clock: ManualClock, reopen: Callable[[], holdfast.Store]
) -> None:
    first = buy(thread, expect=0)
    clock.advance(3600)
    later = reopen().thread("trip-42")
    later.append(said("meanwhile"))
    again = buy(later, expect=0)
    assert (again.entries, again.revision) == (first.entries, 1)
    assert (later.logbook.head(), len(later.revisions())) == (4, 1)


def test_a_keyed_turn_is_recognised_after_others_saved(
    store: holdfast.Store, thread: holdfast.Thread, flights: holdfast.Registry
) -> None:
    first = buy(thread)
    store.thread("trip-42").save(Flight(500), expect=1)
    again = buy(store.thread("trip-42"))
    assert (again.entries, again.revision) == (first.entries, 1)
    assert thread.state(Flight).value == Flight(500)


def test_the_key_of_a_turn_with_other_content_is_refused_whole(
    store: holdfast.Store, thread: holdfast.Thread, flights: holdfast.Registry
) -> None:
    buy(thread)
    before = everything(store, thread)
    with pytest.raises(errors.KeyReused):
        buy(thread, price=200)
    with pytest.raises(errors.KeyReused):
        take(thread, said("buy it"), state=Flight(200), key="turn-7")
    assert everything(store, thread) == before


@pytest.mark.usefixtures("any_engine")
def test_entries_of_a_keyed_turn_may_have_keys_of_their_own(thread: holdfast.Thread) -> None:
    for _ in range(2):
        with thread.turn(key="turn-7") as turn:
            turn.append(said("a"), key="mine")
            turn.append(said("b"))
    assert [entry.key for entry in thread.log()] == ["mine", "turn-7\x1f2"]
    assert [entry.number for entry in turn.entries] == [1, 2]


def test_the_same_key_twice_in_one_turn_is_one_entry(thread: holdfast.Thread) -> None:
    turn = take(thread, holdfast.note("a", key="k"), holdfast.note("a", key="k"))
    assert [entry.number for entry in turn.entries] == [1, 1]
    with pytest.raises(errors.KeyReused):
        take(thread, holdfast.note("b", key="l"), holdfast.note("c", key="l"))
    assert thread.logbook.head() == 1
