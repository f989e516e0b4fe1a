"""What cannot be stored exactly is refused with a word that names the culprit, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast import errors
from holdfast.records import Draft

HELLO = {"role": "user", "content": "hello"}

BAD_IDS = {
    "empty": ("", "must not be empty"),
    "10,000 characters": ("x" * 10_000, "takes 10000 bytes; at most 512 are allowed"),
    "NUL": ("a\x00b", "contains a NUL character"),
    "tab": ("a\tb", "contains the control character U+0009"),
    "line break": ("a\nb", "contains the control character U+000A"),
    "escape": ("\x1b[2J", "contains the control character U+001B"),
    "C1": ("a\x9bb", "contains the control character U+009B"),
    "line separator": ("a\u2028b", "contains the control character U+2028"),
    "lone surrogate": ("a\ud800b", "contains a lone surrogate, which is not text"),
    "not a string": (42, "must be a string, not int"),
    "bytes": (b"a", "must be a string, not bytes"),
}
USES: dict[str, tuple[str, Callable[[holdfast.Store, Any], Any]]] = {
    "thread": ("thread id", lambda store, bad: store.thread(bad)),
    "user": ("user", lambda store, bad: store.thread("t", user=bad)),
    "agent": ("agent", lambda store, bad: store.thread("t", agent=bad)),
    "tags": ("tag", lambda store, bad: store.thread("t", tags=[bad])),
    "tag": ("tag", lambda store, bad: store.thread("t").tag(bad)),
    "untag": ("tag", lambda store, bad: store.thread("t").tag(remove=[bad])),
    "key of an append": ("key", lambda store, bad: store.thread("t").append(HELLO, key=bad)),
    "key of several": ("key", lambda store, bad: store.thread("t").append(HELLO, HELLO, key=bad)),
    "key of a draft": ("key", lambda store, bad: store.thread("t").append(holdfast.note("x", key=bad))),
    "key of a turn": ("key", lambda store, bad: store.thread("t").turn(key=bad)),
    "key of a save": ("key", lambda store, bad: store.thread("t").save({}, key=bad)),
    "key to look for": ("key", lambda store, bad: store.thread("t").entry(key=bad)),
    "who saves": ("by", lambda store, bad: store.thread("t").save({}, by=bad)),
    "who patches": ("by", lambda store, bad: store.thread("saved").patch("a", 2, by=bad)),
    "checkpoint": ("checkpoint name", lambda store, bad: store.thread("saved").checkpoint(bad)),
    "fork": ("thread id", lambda store, bad: store.thread("saved").fork(bad)),
    "user of a fork": ("user", lambda store, bad: store.thread("saved").fork("f", user=bad)),
    "agent of a fork": ("agent", lambda store, bad: store.thread("saved").fork("f", agent=bad)),
    "listing of a user": ("user", lambda store, bad: store.threads(user=bad)),
    "listing of an agent": ("agent", lambda store, bad: store.threads(agent=bad)),
    "listing of a tag": ("tag", lambda store, bad: store.threads(tag=bad)),
    "erasing a thread": ("thread id", lambda store, bad: store.erase(thread=bad)),
    "erasing a user": ("user", lambda store, bad: store.erase(user=bad)),
    "erasing an agent": ("agent", lambda store, bad: store.erase(agent=bad)),
}


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("use", USES)
def test_an_id_that_cannot_name_something_everywhere_is_refused(store: holdfast.Store, use: str) -> None:
    store.thread("saved").save({"a": 1})
    before = list(store.watch(timeout_s=0))
    what, call = USES[use]
    for value, why in BAD_IDS.values():
        with pytest.raises(errors.Invalid) as caught:
            call(store, value)
        assert (str(caught.value), caught.value.what) == (f"{what} {why}", what)
    assert list(store.watch(timeout_s=0)) == before


NAMES = ["x" * 512, "é" * 256, "🦊", " ", "a/b", "../x", "a'b\"c", "%s", "a\u202eb", "';--"]


@pytest.mark.every_engine
def test_any_other_text_is_a_name(store: holdfast.Store) -> None:
    for id in NAMES:
        thread = store.thread(id, user=id, agent=id, tags=[id])
        stored = thread.append(HELLO, key=id)
        thread.save({"a": 1}, by=id, key=id)
        thread.checkpoint(id)
        copy = thread.fork(f"fork{id[4:]}")
        assert [info.id for info in store.threads(user=id, agent=id, tag=id)] == [copy.id, id]
        assert thread.entry(key=id) == stored
        assert [point.name for point in thread.checkpoints()] == [id]
        assert store.erase(thread=id) == 3
        assert store.erase(user=id, forever=False) == 2


def nested(levels: int, holder: Callable[[Any], Any]) -> Any:
    """Nothing, in so many holders."""
    value = None
    for _ in range(levels):
        value = holder(value)
    return value


def holding_itself() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["a"] = value
    return value


EXACT: dict[str, Any] = {
    "NUL": {"content": "a\x00b", "k\x00": 1},
    "text of all planes": {"content": "né 漢字 🦊 \u2028 \u200f \uffff \\ \" ' \x7f \x01", "": "an empty name"},
    "numbers": {"content": [0, -0.0, 0.1, 1e308, 5e-324, 2**63 - 1, -(2**63), 1, 1.0, True, None]},
    "100 dicts": nested(100, lambda inner: {"in": inner}),
    "100 lists": {"content": nested(99, lambda inner: [inner])},
    "keys that look like ours": {"j1": "j1{}", "$": 1, "a.b": {"*": []}},
    "a megabyte": {"content": "x" * 1_000_000},
}


@pytest.mark.every_engine
@pytest.mark.parametrize("content", EXACT)
def test_what_can_be_stored_comes_back_exactly(store: holdfast.Store, content: str) -> None:
    thread = store.thread("t")
    thread.append(EXACT[content])
    thread.save(EXACT[content])
    assert repr(thread.entry(1).content) == repr(EXACT[content])
    assert repr(thread.state().value) == repr(EXACT[content])


@pytest.mark.parametrize("empty", [{}, [], (), Draft("note", {})], ids=repr)
def test_what_says_nothing_is_not_appended(store: holdfast.Store, empty: Any) -> None:
    thread = store.thread("t")
    with pytest.raises(errors.Invalid, match="nothing to append"):
        thread.append(empty)
    with pytest.raises(errors.Invalid, match="nothing to append"), thread.turn() as turn:
        turn.append(empty)
    assert not thread.exists()


@pytest.mark.parametrize("role", [5, True, ["user"], {}], ids=repr)
def test_the_role_of_a_message_is_text(store: holdfast.Store, role: Any) -> None:
    with pytest.raises(errors.Invalid, match="the role of a message is text"):
        store.thread("t").append({"role": role, "content": "hello"})
    assert store.thread("t").append({"role": role, "content": "hello"}, kind="event").number == 1


REFUSED: dict[str, tuple[Any, str, str]] = {
    "lone surrogate": ({"a": [{"b": "x\udc80"}]}, "[0]", "lone surrogate"),
    "lone surrogate in a name": ({"a": {"\ud800": 1}}, "ud800", "lone surrogate"),
    "NaN": ({"a": [1, {"b": float("nan")}]}, ".a[1].b", "nan is not a number that JSON can hold"),
    "infinity": ({"a": float("-inf")}, ".a", "-inf is not a number that JSON can hold"),
    "65 bits": ({"a": {"b": 2**63}}, ".a.b", "an integer over 64 bits cannot be stored exactly; store it as text"),
    "-65 bits": ({"a": [-(2**63) - 1]}, ".a[0]", "an integer over 64 bits"),
    "bytes": ({"a": b"x"}, ".a", "bytes is not plain data"),
    "a set": ({"a": {1}}, ".a", "set is not plain data"),
    "an object": ({"a": [object()]}, ".a[0]", "object is not plain data"),
    "a number as a name": ({"a": {1: 2}}, ".a", "the key 1 is int, not text"),
    "201 levels": (nested(201, lambda inner: {"a": inner}), ".a.a.a", "nested deeper than 200 levels"),
    "a holder of itself": (holding_itself(), ".a.a.a", "nested deeper than 200 levels"),
}


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("content", REFUSED)
def test_content_that_would_come_back_different_is_refused_with_its_path(store: holdfast.Store, content: str) -> None:
    value, path, why = REFUSED[content]
    with pytest.raises(errors.Invalid) as caught:
        store.thread("t").append(value)
    assert str(caught.value).startswith("content")
    assert path in caught.value.path
    assert why in str(caught.value)
    assert not store.thread("t").exists()


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("content", REFUSED)
def test_a_state_that_would_come_back_different_is_refused_with_its_path(store: holdfast.Store, content: str) -> None:
    """Also what a serialiser would gladly change into something else: a date, a set, bytes."""
    value, path, why = REFUSED[content]
    with pytest.raises(errors.Invalid) as caught:
        store.thread("t").save(value)
    assert str(caught.value).startswith("state of thread 't'")
    assert path in caught.value.path
    assert "value" not in caught.value.path
    assert why in str(caught.value)
    assert not store.thread("t").exists()


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("value", ["text", 5, None, [1], ("a",), dict])
def test_a_state_is_a_document(store: holdfast.Store, value: Any) -> None:
    with pytest.raises(errors.Invalid):
        store.thread("t").save(value)
    assert not store.thread("t").exists()


@pytest.mark.usefixtures("any_engine")
def test_a_message_of_50_megabytes_is_too_large(store: holdfast.Store) -> None:
    thread = store.thread("t")
    with pytest.raises(errors.TooLarge) as caught:
        thread.append(HELLO, {"content": "x" * 50_000_000})
    assert (caught.value.what, caught.value.limit_bytes) == ("content", 16 * 1024 * 1024)
    assert caught.value.size_bytes > 50_000_000
    with pytest.raises(errors.TooLarge, match="state of thread 't' takes 50,000,"):
        thread.save({"content": "x" * 50_000_000})
    assert not thread.exists()


@pytest.mark.every_engine
def test_a_refused_entry_leaves_the_thread_as_it_was(store: holdfast.Store) -> None:
    thread = store.thread("t")
    thread.append(HELLO)
    thread.save({"a": 1})
    before = thread.info(), thread.log(), thread.revisions()
    for write in (
        lambda: thread.append({"a": float("nan")}),
        lambda: thread.save({"a": float("nan")}),
        lambda: thread.patch("a", float("nan")),
        lambda: thread.checkpoint("x", note="\ud800"),
        lambda: thread.checkpoint("x", note=5),  # type: ignore[arg-type]
    ):
        with pytest.raises(errors.Invalid):
            write()
    assert (thread.info(), thread.log(), thread.revisions(), thread.checkpoints()) == (*before, [])
