"""Updates that could vanish without anyone being told, and entries that could change: each is refused or kept."""

from __future__ import annotations

import pytest

import holdfast
from holdfast import errors
from holdfast.testing import ManualClock


def test_a_patch_does_not_make_an_older_value_current(store: holdfast.Store) -> None:
    """A loads, B saves, A patches on top of B: A's old value must not go over both in a later save."""
    ours, theirs = store.thread("t"), store.thread("t")
    ours.save({"a": 1, "b": 1})
    theirs.state()
    theirs.save({"a": 1, "b": 2})
    ours.patch("a", 2)
    with pytest.raises(errors.Conflict):
        ours.save({"a": 3, "b": 1})
    assert store.thread("t").state().value == {"a": 2, "b": 2}


def test_a_patch_on_what_was_seen_may_be_followed_by_a_save(store: holdfast.Store) -> None:
    thread = store.thread("t")
    thread.save({"a": 1})
    thread.patch("a", 2)
    assert thread.save({"a": 3}) == 3


@pytest.mark.every_engine
def test_the_state_at_an_entry_does_not_depend_on_clocks(store: holdfast.Store, clock: ManualClock) -> None:
    thread = store.thread("t")
    thread.append({"n": 1})
    clock.advance(-1000)
    thread.save({"s": "later"})
    thread.append({"n": 2})
    assert thread.fork("early", at=1).state().value is None
    assert thread.fork("late", at=2).state().value == {"s": "later"}
    times = [entry.time for entry in thread.log()]
    assert times == sorted(times)


def test_a_key_over_several_entries_names_all_of_them(store: holdfast.Store) -> None:
    thread = store.thread("t")
    thread.append({"n": 1}, {"n": 2}, key="k")
    with pytest.raises(errors.KeyReused):
        thread.append({"n": 1}, {"n": 2}, {"n": 3}, key="k")
    with pytest.raises(errors.KeyReused), thread.turn(key="k") as turn:
        turn.append({"n": 1}, {"n": 2}, {"n": 3})
    assert thread.logbook.head() == 2


def test_a_turn_holds_what_it_was_given(store: holdfast.Store) -> None:
    thread, message, state = store.thread("t"), {"c": "one"}, {"s": ["one"]}
    with thread.turn() as turn:
        turn.append(message)
        turn.save(state)
        message["c"] = "two"
        state["s"].append("two")
        turn.append(message)
    assert [entry.content["c"] for entry in thread.log()] == ["one", "two"]
    assert thread.state().value == {"s": ["one"]}


@pytest.mark.every_engine
def test_text_of_another_type_is_text(store: holdfast.Store) -> None:
    class Name(str):
        pass

    entry = store.thread(Name("t"), user=Name("ana"), tags=[Name("x")]).append(
        {"n": 1}, kind=Name("note"), key=Name("k")
    )
    assert (type(entry.kind), type(entry.key)) == (str, str)
    assert [info.tags for info in store.threads(user="ana")] == [("x",)]
