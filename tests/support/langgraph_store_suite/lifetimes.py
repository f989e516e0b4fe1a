"""What becomes of items with time: those with a time to live expire, and those of a durable store are kept."""

from __future__ import annotations

import pytest
from langgraph.store.base import BaseStore

from langgraph_store_suite.scene import Later, Reopen, Scene, keys, needs, value_at


@needs("sync")
class ExpiryPromises(Scene):
    """Promises about ``ttl``, in minutes."""

    def test_a_ttl_is_taken_or_refused_and_never_passed_over(self, store: BaseStore) -> None:
        """A store that says it has no time to live raises ``NotImplementedError``, and stores nothing."""
        if store.supports_ttl:
            store.put(("a",), "k", {"n": 1}, ttl=60)
            assert value_at(store, ("a",), "k") == {"n": 1}
        else:
            with pytest.raises(NotImplementedError):
                store.put(("a",), "k", {}, ttl=60)
            assert store.search(()) == []

    @needs("ttl")
    def test_what_expired_is_nowhere(self, store: BaseStore, later: Later) -> None:
        """It is not got, not found and its namespace not listed; what lasts longer is."""
        store.put(("brief",), "k", {"n": 1}, ttl=10)
        store.put(("long",), "k", {"n": 2}, ttl=100)
        store.put(("always",), "k", {"n": 3})
        later(11)
        assert store.get(("brief",), "k") is None
        assert sorted(item.value["n"] for item in store.search(())) == [2, 3]
        assert store.list_namespaces() == [("always",), ("long",)]

    @needs("ttl", "query")
    def test_what_expired_is_not_found_by_a_query(self, store: BaseStore, later: Later) -> None:
        """Not even by its own words, which found it before."""
        store.put(("a",), "brief", {"text": "blue whale"}, ttl=10)
        store.put(("a",), "always", {"text": "blue whale"})
        assert sorted(keys(store.search(("a",), query="blue whale", refresh_ttl=False))) == ["always", "brief"]
        later(11)
        assert keys(store.search(("a",), query="blue whale")) == ["always"]

    @needs("ttl")
    def test_what_has_not_expired_is_there(self, store: BaseStore, later: Later) -> None:
        """An item is kept for the whole of its time."""
        store.put(("a",), "k", {"n": 1}, ttl=10)
        later(9)
        assert value_at(store, ("a",), "k") == {"n": 1}

    @needs("ttl")
    def test_a_put_begins_the_time_anew(self, store: BaseStore, later: Later) -> None:
        """It counts from the last put."""
        store.put(("a",), "k", {"n": 1}, ttl=10)
        later(8)
        store.put(("a",), "k", {"n": 2}, ttl=10)
        later(8)
        assert value_at(store, ("a",), "k") == {"n": 2}

    @needs("ttl")
    def test_a_put_with_no_ttl_makes_an_item_last(self, store: BaseStore, later: Later) -> None:
        """``ttl=None`` takes the end away that a put before had set."""
        store.put(("a",), "k", {"n": 1}, ttl=10)
        store.put(("a",), "k", {"n": 2}, ttl=None)
        later(1_000)
        assert value_at(store, ("a",), "k") == {"n": 2}

    @needs("ttl")
    def test_reading_begins_the_time_anew(self, store: BaseStore, later: Later) -> None:
        """With ``refresh_ttl=True`` an item that is got, or found, again and again does not expire."""
        store.put(("a",), "got", {}, ttl=10)
        store.put(("b",), "found", {}, ttl=10)
        for _ in range(3):
            later(8)
            assert store.get(("a",), "got", refresh_ttl=True) is not None
            assert keys(store.search(("b",), refresh_ttl=True)) == ["found"]

    @needs("ttl")
    def test_reading_without_refresh_leaves_the_time_alone(self, store: BaseStore, later: Later) -> None:
        """With ``refresh_ttl=False`` an item expires when it would have anyway."""
        store.put(("a",), "k", {}, ttl=10)
        later(8)
        assert store.get(("a",), "k", refresh_ttl=False) is not None
        assert keys(store.search(("a",), refresh_ttl=False)) == ["k"]
        later(8)
        assert store.get(("a",), "k") is None

    @needs("ttl")
    def test_what_expired_can_be_put_again(self, store: BaseStore, later: Later) -> None:
        """The time of what was there before says nothing about what comes after it."""
        store.put(("a",), "k", {"n": 1}, ttl=10)
        later(11)
        store.put(("a",), "k", {"n": 2})
        assert value_at(store, ("a",), "k") == {"n": 2}
        later(11)
        assert value_at(store, ("a",), "k") == {"n": 2}


@needs("sync", "durable")
class DurablePromises(Scene):
    """Promises about a store that was closed."""

    def test_what_was_put_is_there_after_a_restart(self, store: BaseStore, reopen: Reopen) -> None:
        """And what was deleted is not."""
        store.put(("a", "b"), "k", {"n": 1})
        store.put(("a", "b"), "gone", {"n": 2})
        store.delete(("a", "b"), "gone")
        again = reopen()
        assert value_at(again, ("a", "b"), "k") == {"n": 1}
        assert keys(again.search(("a",))) == ["k"]
        assert again.list_namespaces() == [("a", "b")]
