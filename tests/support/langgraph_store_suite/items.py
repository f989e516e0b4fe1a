"""What ``put``, ``get`` and ``delete`` promise of one item: its value, its key and its times."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from langgraph.store.base import BaseStore

from langgraph_store_suite.scene import NAMES, Scene, keys, needs, refused, value_at

NOT_PLAIN = {
    "object": {"x": object()},
    "set": {"x": {1, 2}},
    "bytes": {"x": b"\xff"},
    "key 1": {1: "x"},
    "lone surrogate": {"x": "\ud800"},
}


@needs("sync")
class ItemPromises(Scene):
    """Promises about an item, wherever it is."""

    def test_what_was_put_is_got(self, store: BaseStore) -> None:
        """An item comes back under its namespace and key, with its value."""
        store.put(("users", "ana"), "diet", {"food": "vegan"})
        item = store.get(("users", "ana"), "diet")
        assert item is not None
        assert (item.namespace, item.key, item.value) == (("users", "ana"), "diet", {"food": "vegan"})

    def test_what_is_absent_is_none(self, store: BaseStore) -> None:
        """Getting what is not there is no error, and neither a namespace above nor one below is looked into."""
        store.put(("a",), "here", {"n": 1})
        assert store.get(("a",), "there") is None
        assert store.get(("b",), "here") is None
        assert store.get(("a", "b"), "here") is None
        assert store.get((), "here") is None

    def test_a_second_put_replaces_the_value_as_a_whole(self, store: BaseStore) -> None:
        """Fields of the value before are gone, and there is still one item."""
        store.put(("a",), "k", {"old": 1, "both": 1})
        store.put(("a",), "k", {"new": 2, "both": 2})
        assert value_at(store, ("a",), "k") == {"new": 2, "both": 2}
        assert len(store.search(("a",))) == 1

    def test_a_key_is_its_own_in_each_namespace(self, store: BaseStore) -> None:
        """The same key in two namespaces is two items, also where one namespace lies in the other."""
        spaces = [("a",), ("b",), ("a", "b"), ("b", "a"), ("a", "b", "c")]
        for number, namespace in enumerate(spaces):
            store.put(namespace, "k", {"n": number})
        assert [value_at(store, space, "k") for space in spaces] == [{"n": number} for number in range(5)]

    def test_what_was_deleted_is_gone_and_nothing_else(self, store: BaseStore) -> None:
        """A deleted item is neither got nor found; its neighbour is both."""
        for key in ("one", "two"):
            store.put(("a",), key, {"key": key})
        store.delete(("a",), "one")
        assert store.get(("a",), "one") is None
        assert value_at(store, ("a",), "two") == {"key": "two"}
        assert keys(store.search(("a",))) == ["two"]

    def test_deleting_what_is_not_there_is_no_error(self, store: BaseStore) -> None:
        """It does nothing: no item and no namespace comes of it."""
        store.delete(("a",), "never")
        store.delete(("never",), "k")
        assert store.search(()) == []
        assert store.list_namespaces() == []

    def test_what_was_deleted_can_be_put_again(self, store: BaseStore) -> None:
        """A deletion says nothing about what comes later."""
        store.put(("a",), "k", {"n": 1})
        store.delete(("a",), "k")
        store.put(("a",), "k", {"n": 2})
        assert value_at(store, ("a",), "k") == {"n": 2}

    def test_a_value_comes_back_as_it_was(self, store: BaseStore) -> None:
        """Whatever JSON has comes back equal, got or found: any text, nothing, numbers, empty lists, odd names."""
        value = {
            "text": "Ünïcödé 🦊 \u2028 \\ \" '", "none": None, "yes": True, "no": False, "int": 2**53, "float": 0.1,
            "list": [1, [2, {"three": []}], ""], "dict": {"": {}, "a.b": 1, "$gt": 2}, "empty": "",
        }  # fmt: skip
        store.put(("a",), "k", value)
        assert value_at(store, ("a",), "k") == value
        assert store.search(("a",))[0].value == value

    def test_what_a_caller_does_to_a_result_stays_with_the_caller(self, store: BaseStore) -> None:
        """Changing what was got changes nothing in the store."""
        store.put(("a",), "k", {"list": [1]})
        item = store.get(("a",), "k")
        assert item is not None
        item.value["list"].append(2)
        item.value["more"] = True
        assert value_at(store, ("a",), "k") == {"list": [1]}

    def test_what_a_caller_does_to_a_value_after_putting_it_stays_with_the_caller(self, store: BaseStore) -> None:
        """Changing what was put changes nothing in the store."""
        value: dict[str, Any] = {"list": [1]}
        store.put(("a",), "k", value)
        value["list"].append(2)
        value["more"] = True
        assert value_at(store, ("a",), "k") == {"list": [1]}

    def test_times_are_moments(self, store: BaseStore) -> None:
        """Both times of an item are datetimes, and it was not updated before it was created."""
        store.put(("a",), "k", {})
        item = store.get(("a",), "k")
        assert item is not None
        assert isinstance(item.created_at, datetime)
        assert isinstance(item.updated_at, datetime)
        assert item.created_at <= item.updated_at

    def test_an_item_keeps_the_moment_it_was_created(self, store: BaseStore, tick: Callable[[], None]) -> None:
        """A second put moves ``updated_at`` on and leaves ``created_at`` where it was."""
        store.put(("a",), "k", {"n": 1})
        first = store.get(("a",), "k")
        tick()
        store.put(("a",), "k", {"n": 2})
        second = store.get(("a",), "k")
        assert first is not None
        assert second is not None
        assert second.created_at == first.created_at
        assert second.updated_at > first.updated_at

    @pytest.mark.parametrize("key", NAMES)
    def test_a_key_is_any_text(self, store: BaseStore, key: str) -> None:
        """No sign in a key means anything: the item comes back under that key, and no other is touched."""
        store.put(("a",), "other", {"n": 0})
        store.put(("a",), key, {"n": 1})
        item = store.get(("a",), key)
        assert item is not None
        assert (item.key, item.value) == (key, {"n": 1})
        assert value_at(store, ("a",), "other") == {"n": 0}

    @pytest.mark.parametrize("value", NOT_PLAIN.values(), ids=NOT_PLAIN)
    def test_what_cannot_be_kept_is_refused_and_never_changed(self, store: BaseStore, value: Any) -> None:
        """A value that is not plain is kept as it is, or the put raises and the value before stays."""
        store.put(("a",), "k", {"n": 1})
        if refused(lambda: store.put(("a",), "k", value)):
            assert value_at(store, ("a",), "k") == {"n": 1}
        else:
            assert value_at(store, ("a",), "k") == value
