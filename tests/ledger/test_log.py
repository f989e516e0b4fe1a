"""What goes into a thread's log comes out as it went in, in order, and once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pydantic
import pytest

import holdfast
from holdfast import errors
from holdfast.testing import ManualClock

HELLO = {"role": "user", "content": "hello"}


def said(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def texts(entries: list[holdfast.types.Entry]) -> list[str]:
    return [entry.content["content"] for entry in entries]


@pytest.fixture
def thread(store: holdfast.Store) -> holdfast.Thread:
    return store.thread("trip-42", user="ana", agent="travel")


@pytest.fixture
def ten(thread: holdfast.Thread) -> holdfast.Thread:
    """A thread of ten entries, "1" to "10"."""
    thread.append(*(said(str(number)) for number in range(1, 11)))
    return thread


# Writing


def test_entries_are_numbered_from_one_without_gaps(thread: holdfast.Thread) -> None:
    numbers = [thread.append(said(str(number))).number for number in range(4)]
    more = thread.append(HELLO, HELLO, HELLO)
    assert numbers + [entry.number for entry in more] == [1, 2, 3, 4, 5, 6, 7]


def test_an_append_returns_what_is_stored(thread: holdfast.Thread, clock: ManualClock) -> None:
    clock.set(datetime(2026, 3, 1, tzinfo=UTC))
    entry = thread.append(HELLO, key="msg-1")
    assert entry == thread.entry(1)
    assert (entry.thread, entry.number, entry.kind, entry.key) == ("trip-42", 1, "message", "msg-1")
    assert (entry.content, entry.time) == (HELLO, datetime(2026, 3, 1, microsecond=1, tzinfo=UTC))
    assert len(entry.digest) == 16


@pytest.mark.every_engine
def test_several_items_are_one_commit(store: holdfast.Store, thread: holdfast.Thread) -> None:
    thread.append(HELLO, HELLO)
    assert len(list(store.watch(timeout_s=0))) == 1


def test_a_bad_item_keeps_the_good_ones_out(thread: holdfast.Thread) -> None:
    with pytest.raises(errors.Invalid):
        thread.append(HELLO, {"content": object()})
    assert not thread.exists()


@pytest.mark.usefixtures("any_engine")
def test_an_append_of_nothing_is_refused(thread: holdfast.Thread) -> None:
    with pytest.raises(errors.Invalid, match="nothing to append"):
        thread.append()


@pytest.mark.usefixtures("any_engine")
def test_the_five_kinds_have_constructors_that_name_their_parts(thread: holdfast.Thread) -> None:
    thread.append(
        holdfast.message("user", "hi", name="Ana"),
        holdfast.tool_call("search", {"q": "flights"}, id="call-1"),
        holdfast.observation({"found": 3}, of="call-1"),
        holdfast.event("payment_failed", amount=12),
        holdfast.note("ask again tomorrow"),
    )
    assert [(entry.kind, entry.content) for entry in thread.log()] == [
        ("message", {"role": "user", "content": "hi", "name": "Ana"}),
        ("tool_call", {"id": "call-1", "name": "search", "arguments": {"q": "flights"}}),
        ("observation", {"of": "call-1", "content": {"found": 3}}),
        ("event", {"name": "payment_failed", "amount": 12}),
        ("note", {"text": "ask again tomorrow"}),
    ]


@pytest.mark.usefixtures("any_engine")
def test_what_a_constructor_was_not_given_is_left_out(thread: holdfast.Thread) -> None:
    thread.append(holdfast.tool_call("search", {}), holdfast.observation("none"))
    assert [entry.content for entry in thread.log()] == [{"name": "search", "arguments": {}}, {"content": "none"}]


@pytest.mark.usefixtures("any_engine")
def test_each_constructor_takes_a_key(thread: holdfast.Thread) -> None:
    drafts = (
        holdfast.message("user", "hi", key="a"),
        holdfast.tool_call("search", {}, key="b"),
        holdfast.observation("none", key="c"),
        holdfast.event("begun", key="d"),
        holdfast.note("later", key="e"),
    )
    thread.append(*drafts)
    thread.append(*drafts)
    assert [entry.key for entry in thread.log()] == ["a", "b", "c", "d", "e"]


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("kind", ["message", "tool_call", "observation", "event", "note"])
def test_a_plain_dict_is_of_the_kind_that_is_named(thread: holdfast.Thread, kind: str) -> None:
    assert thread.append({"any": "thing"}, kind=kind).kind == kind


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("kind", ["Message", "state", "", None, 5])
def test_another_kind_is_refused_with_a_list_of_the_five(thread: holdfast.Thread, kind: Any) -> None:
    with pytest.raises(errors.Invalid, match="the kinds are message, tool_call, observation, event, note"):
        thread.append(HELLO, kind=kind)
    assert not thread.exists()


class Model(pydantic.BaseModel):
    role: str
    content: str
    refusal: str | None = None
    at: datetime | None = None


@dataclasses.dataclass
class Data:
    role: str
    content: str
    at: datetime | None = None


class Struct(msgspec.Struct):
    role: str
    content: str
    at: datetime | None = None


MOMENT = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("kind", [Model, Data, Struct])
def test_a_message_object_is_stored_as_the_plain_data_it_stands_for(thread: holdfast.Thread, kind: Any) -> None:
    thread.append(kind(role="assistant", content="hi", at=MOMENT))
    assert thread.entry(1).content == {"role": "assistant", "content": "hi", "at": "2026-03-01T00:00:00Z"}


@pytest.mark.usefixtures("any_engine")
def test_a_pydantic_message_leaves_out_what_it_does_not_say(thread: holdfast.Thread) -> None:
    assert thread.append(Model(role="assistant", content="hi")).content == {"role": "assistant", "content": "hi"}


@pytest.mark.usefixtures("any_engine")
def test_a_list_of_blocks_is_a_message(thread: holdfast.Thread) -> None:
    assert thread.append([{"type": "text", "text": "hi"}]).content == [{"type": "text", "text": "hi"}]


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("bare", ["hello", "", 5, 1.5, True, None])
def test_a_bare_value_is_refused_because_it_says_neither_who_nor_what(thread: holdfast.Thread, bare: Any) -> None:
    with pytest.raises(errors.Invalid, match="has no role"):
        thread.append(bare)
    assert not thread.exists()


class Broken(pydantic.BaseModel):
    def model_dump(self, **_: Any) -> Any:
        raise RuntimeError("no")


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize(
    "item",
    [Data("user", object()), Broken(), Model, Struct],
    ids=["foreign part", "raises", "model class", "struct class"],
)  # type: ignore[arg-type]
def test_a_message_object_that_is_no_plain_data_is_invalid(thread: holdfast.Thread, item: Any) -> None:
    with pytest.raises(errors.Invalid, match=r"cannot be turned into plain data|is a class"):
        thread.append(item)
    assert not thread.exists()


def test_the_log_must_be_as_long_as_expected(ten: holdfast.Thread) -> None:
    assert ten.append(HELLO, expect=10).number == 11
    with pytest.raises(errors.Conflict) as caught:
        ten.append(HELLO, expect=10)
    assert (caught.value.expected, caught.value.actual, ten.logbook.head()) == (10, 11, 11)


def test_a_new_thread_is_expected_with_zero(thread: holdfast.Thread) -> None:
    thread.append(HELLO, expect=0)
    with pytest.raises(errors.Conflict):
        thread.append(HELLO, expect=0)
    assert thread.logbook.head() == 1


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("expect", [-1, 1.0, "1", True])
def test_an_expectation_that_is_no_count_is_invalid(ten: holdfast.Thread, expect: Any) -> None:
    with pytest.raises(errors.Invalid, match="expect must be a whole number"):
        ten.append(HELLO, expect=expect)


# Keys


def test_the_same_key_and_content_is_the_same_entry(thread: holdfast.Thread) -> None:
    first = thread.append(HELLO, key="msg-1")
    thread.append(said("between"))
    assert thread.append(HELLO, key="msg-1") == first
    assert thread.logbook.head() == 2


def test_the_order_of_fields_does_not_make_another_content(thread: holdfast.Thread) -> None:
    first = thread.append({"role": "user", "content": {"a": 1, "b": 2}}, key="k")
    assert thread.append({"content": {"b": 2, "a": 1}, "role": "user"}, key="k") == first


@pytest.mark.every_engine
def test_the_same_key_with_other_content_is_refused(thread: holdfast.Thread) -> None:
    """Also where Python calls them equal: 1, 1.0 and true are three things in JSON."""
    thread.append({"n": 1}, key="k")
    for other in ({"n": 2}, {"n": 1.0}, {"n": True}, {"n": "1"}, {"n": 1, "m": None}, {"m": 1}):
        with pytest.raises(errors.KeyReused) as caught:
            thread.append(other, key="k")
        assert (caught.value.key, caught.value.position, thread.logbook.head()) == ("k", 1, 1)


@pytest.mark.usefixtures("any_engine")
def test_the_same_key_with_another_kind_is_refused(thread: holdfast.Thread) -> None:
    thread.append({"n": 1}, key="k")
    with pytest.raises(errors.KeyReused):
        thread.append({"n": 1}, kind="note", key="k")


def test_one_key_over_several_entries_makes_all_of_them_idempotent(thread: holdfast.Thread) -> None:
    first = thread.append(said("a"), said("b"), said("c"), key="k")
    thread.append(said("between"))
    assert thread.append(said("a"), said("b"), said("c"), key="k") == first
    assert texts(thread.log()) == ["a", "b", "c", "between"]


@pytest.mark.usefixtures("any_engine")
def test_one_key_over_several_entries_refuses_a_changed_one(thread: holdfast.Thread) -> None:
    thread.append(said("a"), said("b"), key="k")
    with pytest.raises(errors.KeyReused):
        thread.append(said("a"), said("B"), key="k")
    assert texts(thread.log()) == ["a", "b"]


def test_one_key_over_more_entries_than_before_is_other_content(thread: holdfast.Thread) -> None:
    thread.append(said("a"), said("b"), key="k")
    with pytest.raises(errors.KeyReused):
        thread.append(said("a"), said("b"), said("c"), key="k")
    assert texts(thread.log()) == ["a", "b"]


@pytest.mark.usefixtures("any_engine")
def test_keys_that_look_like_numbered_ones_do_not_meet_them(thread: holdfast.Thread) -> None:
    thread.append(said("mine"), key="k#2")
    thread.append(said("a"), said("b"), key="k")
    assert texts(thread.log()) == ["mine", "a", "b"]
    with pytest.raises(errors.Invalid, match=r"U\+001F"):
        thread.append(said("forged"), key="k\x1f2")


@pytest.mark.usefixtures("any_engine")
def test_a_key_for_all_and_a_key_for_one_do_not_mix(thread: holdfast.Thread) -> None:
    with pytest.raises(errors.Invalid, match="not both"):
        thread.append(holdfast.note("a", key="mine"), holdfast.note("b"), key="all")


@pytest.mark.usefixtures("any_engine")
def test_a_key_belongs_to_its_thread(store: holdfast.Store) -> None:
    entries = [store.thread(name).append(said(name), key="k") for name in ("one", "two")]
    assert [entry.content["content"] for entry in entries] == ["one", "two"]


def test_a_repetition_does_not_look_at_its_expectation(thread: holdfast.Thread) -> None:
    """Whoever repeats after an unknown outcome repeats the whole call; the first attempt met the expectation."""
    first = thread.append(HELLO, key="k", expect=0)
    thread.append(said("later"))
    assert thread.append(HELLO, key="k", expect=0) == first


def test_a_repetition_writes_nothing(store: holdfast.Store, thread: holdfast.Thread, clock: ManualClock) -> None:
    thread.append(HELLO, key="k")
    before = thread.info(), list(store.watch(timeout_s=0))
    clock.advance(60)
    thread.append(HELLO, key="k")
    assert (thread.info(), list(store.watch(timeout_s=0))) == before


@pytest.mark.every_engine
def test_a_key_is_remembered_over_a_restart(
    thread: holdfast.Thread, reopen: Callable[[], holdfast.Store], clock: ManualClock
) -> None:
    first = thread.append(HELLO, key="k")
    clock.advance(60)
    assert reopen().thread("trip-42").append(HELLO, key="k") == first


# Reading


def test_a_thread_nobody_wrote_to_is_empty_but_no_error(thread: holdfast.Thread) -> None:
    assert (thread.log(), thread.log(5), thread.log(after=3, limit=2)) == ([], [], [])
    assert (thread.logbook.head(), thread.exists(), thread.checkpoints(), thread.revisions()) == (0, False, [], [])


def test_what_needs_a_thread_says_that_there_is_none(thread: holdfast.Thread) -> None:
    for look in (
        thread.info,
        lambda: thread.entry(1),
        lambda: thread.entry(key="k"),
        lambda: thread.tag("x"),
        lambda: thread.checkpoint("x"),
        lambda: thread.rewind(0),
        lambda: thread.fork("x"),
    ):
        with pytest.raises(errors.NotFound, match="no thread 'trip-42'"):
            look()


def test_the_whole_log_is_in_order(ten: holdfast.Thread) -> None:
    assert texts(ten.log()) == [str(number) for number in range(1, 11)]


@pytest.mark.every_engine
def test_the_newest_window(ten: holdfast.Thread) -> None:
    for last in (0, 1, 3, 10, 11, 2**63 - 1):
        assert [entry.number for entry in ten.log(last)] == list(range(1, 11))[max(0, 10 - last) :]
        assert ten.log(last) == ten.log(last=last)


@pytest.mark.every_engine
def test_a_page(ten: holdfast.Thread) -> None:
    for after, limit in ((0, 3), (3, 3), (9, 3), (10, 3), (2**63 - 1, 3), (4, None), (4, 0)):
        wanted = [number for number in range(1, 11) if number > after][:limit]
        assert [entry.number for entry in ten.log(after=after, limit=limit)] == wanted


@pytest.mark.usefixtures("any_engine")
def test_pages_make_up_the_whole_log(ten: holdfast.Thread) -> None:
    pages, after = [], 0
    while page := ten.log(after=after, limit=3):
        pages += page
        after = page[-1].number
    assert pages == ten.log()


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("arguments", [{"last": 3, "after": 1}, {"last": 3, "limit": 1}])
def test_a_window_and_a_page_do_not_mix(ten: holdfast.Thread, arguments: dict[str, int]) -> None:
    with pytest.raises(errors.Invalid, match="either last, or after and limit"):
        ten.log(**arguments)


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("name", ["last", "after", "limit"])
@pytest.mark.parametrize("value", [-1, 1.5, "1", True, 2**63])
def test_a_count_that_is_none_is_invalid(ten: holdfast.Thread, name: str, value: Any) -> None:
    with pytest.raises(errors.Invalid, match=f"{name} must be a whole number"):
        ten.log(**{name: value})


def test_a_single_entry_by_its_number(ten: holdfast.Thread) -> None:
    assert [ten.entry(number).content["content"] for number in (1, 7, 10)] == ["1", "7", "10"]


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("number", [0, -1, 11, 2**70])
def test_a_number_that_the_log_does_not_have_is_not_found(ten: holdfast.Thread, number: int) -> None:
    with pytest.raises(errors.NotFound) as caught:
        ten.entry(number)
    assert (caught.value.thread, caught.value.number) == ("trip-42", number)


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("number", ["1", 1.0, True])
def test_a_number_that_is_none_is_invalid(ten: holdfast.Thread, number: Any) -> None:
    with pytest.raises(errors.Invalid, match="whole number"):
        ten.entry(number)


def test_a_single_entry_by_its_key(ten: holdfast.Thread) -> None:
    stored = ten.append(said("keyed"), key="k")
    ten.append(said("after"))
    assert ten.entry(key="k") == stored
    with pytest.raises(errors.NotFound, match="no entry with key 'other'"):
        ten.entry(key="other")


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("arguments", [{}, {"number": 1, "key": "k"}])
def test_an_entry_is_named_in_one_way(ten: holdfast.Thread, arguments: dict[str, Any]) -> None:
    with pytest.raises(errors.Invalid, match="either a number or a key"):
        ten.entry(**arguments)


def test_two_handles_of_one_thread_see_the_same(store: holdfast.Store) -> None:
    one, other = store.thread("shared"), store.thread("shared")
    one.append(said("a"))
    other.append(said("b"))
    assert texts(one.log()) == texts(other.log()) == ["a", "b"]


@pytest.mark.every_engine
def test_the_log_survives_a_restart(thread: holdfast.Thread, reopen: Callable[[], holdfast.Store]) -> None:
    thread.append(said("a"), said("b"), key="k")
    before = thread.log()
    assert reopen().thread("trip-42", user="ana").log() == before


@pytest.mark.usefixtures("any_engine")
def test_changing_what_was_read_changes_nothing(ten: holdfast.Thread) -> None:
    ten.entry(1).content["content"] = "changed"
    assert ten.entry(1).content["content"] == "1"
