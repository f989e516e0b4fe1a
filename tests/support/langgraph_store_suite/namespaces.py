"""What namespaces promise: which there can be, that each is its own, and how they are listed."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from langgraph.store.base import BaseStore, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp

from langgraph_store_suite.scene import NAMES, Scene, needs, value_at


@needs("sync")
class NamespacePromises(Scene):
    """Promises about what may be a namespace, and about the borders between them."""

    @pytest.mark.parametrize(
        "namespace", [(), ("a", ""), ("",), ("a.b",), ("a", 1), ("langgraph",), ("langgraph", "a")]
    )
    def test_a_namespace_that_could_be_mistaken_is_refused(self, store: BaseStore, namespace: Any) -> None:
        """Putting into it is LangGraph's ``InvalidNamespaceError``, and nothing is stored."""
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "k", {})
        assert store.search(()) == []

    @pytest.mark.parametrize("label", [name for name in NAMES if "." not in name])
    def test_a_label_is_any_text_without_a_dot(self, store: BaseStore, label: str) -> None:
        """No sign in a label means anything: a search finds this namespace and what is below, and no other."""
        store.put((label,), "k", {"n": 1})
        store.put((label, "b"), "k", {"n": 2})
        store.put((f"{label}x",), "k", {"n": 3})
        assert value_at(store, (label,), "k") == {"n": 1}
        assert sorted(item.value["n"] for item in store.search((label,))) == [1, 2]
        assert sorted(item.namespace for item in store.search((label,))) == [(label,), (label, "b")]

    def test_a_label_is_not_a_part_of_a_name(self, store: BaseStore) -> None:
        """``acme`` is not the beginning of ``acme-corp``: whoever searches one tenant sees nothing of another."""
        for label in ("acme", "acme-corp", "acme2", "acm", "ACME"):
            store.put((label,), "k", {"of": label})
            store.put((label, "eu"), "k", {"of": label})
        found = store.search(("acme",))
        assert sorted(item.namespace for item in found) == [("acme",), ("acme", "eu")]
        assert {item.value["of"] for item in found} == {"acme"}
        assert store.list_namespaces(prefix=("acme",)) == [("acme",), ("acme", "eu")]

    def test_a_namespace_and_a_key_are_not_confused(self, store: BaseStore) -> None:
        """However a store joins labels and keys, what differs in any of them is another item."""
        store.put(("a", "b"), "c", {"n": 1})
        store.put(("a",), "b/c", {"n": 2})
        store.put(("a",), "b.c", {"n": 3})
        store.put(("a/b",), "c", {"n": 4})
        found = {(item.namespace, item.key): item.value["n"] for item in store.search(())}
        assert found == {(("a", "b"), "c"): 1, (("a",), "b/c"): 2, (("a",), "b.c"): 3, (("a/b",), "c"): 4}


@needs("sync")
class ListPromises(Scene):
    """Promises about ``list_namespaces``."""

    SPACES: ClassVar = [
        ("docs", "ana", "draft"),
        ("docs", "ana", "final"),
        ("docs", "bob", "draft"),
        ("docs", "bob", "draft", "old"),
        ("notes", "ana"),
        ("notes",),
    ]

    @pytest.fixture
    def full(self, store: BaseStore) -> BaseStore:
        store.batch([PutOp(space, key, {"at": [*space, key]}) for space in self.SPACES for key in ("one", "two")])
        return store

    def test_every_namespace_is_listed_once_and_in_order(self, full: BaseStore) -> None:
        """However many items one has; a namespace without items of its own is not listed."""
        assert full.list_namespaces() == sorted(self.SPACES)

    def test_a_prefix_lists_what_begins_with_its_labels(self, full: BaseStore) -> None:
        """Whole labels count: the beginning of one is none."""
        assert full.list_namespaces(prefix=("docs", "bob")) == [
            ("docs", "bob", "draft"),
            ("docs", "bob", "draft", "old"),
        ]
        assert full.list_namespaces(prefix=("doc",)) == []

    def test_a_suffix_lists_what_ends_with_its_labels(self, full: BaseStore) -> None:
        """Whole labels count: the end of one is none."""
        assert full.list_namespaces(suffix=("draft",)) == [("docs", "ana", "draft"), ("docs", "bob", "draft")]
        assert full.list_namespaces(suffix=("ana",)) == [("notes", "ana")]
        assert full.list_namespaces(suffix=("raft",)) == []

    def test_a_star_is_any_one_label(self, full: BaseStore) -> None:
        """In a prefix and in a suffix, at any place; it stands for one label, not for none and not for two."""
        assert full.list_namespaces(prefix=("docs", "*", "final")) == [("docs", "ana", "final")]
        assert full.list_namespaces(prefix=("*", "ana")) == [
            ("docs", "ana", "draft"), ("docs", "ana", "final"), ("notes", "ana"),
        ]  # fmt: skip
        assert full.list_namespaces(suffix=("bob", "*")) == [("docs", "bob", "draft")]
        assert full.list_namespaces(prefix=("notes", "*")) == [("notes", "ana")]

    def test_a_prefix_and_a_suffix_hold_together(self, full: BaseStore) -> None:
        """Every condition must hold, in the call and in the operation of a batch."""
        assert full.list_namespaces(prefix=("docs", "ana"), suffix=("draft",)) == [("docs", "ana", "draft")]
        conditions = (MatchCondition("prefix", ("docs",)), MatchCondition("suffix", ("old",)))
        assert full.batch([ListNamespacesOp(conditions)]) == [[("docs", "bob", "draft", "old")]]

    def test_a_depth_cuts_and_counts_once(self, full: BaseStore) -> None:
        """Conditions look at the whole namespace; what is the same after the cut is listed once."""
        assert full.list_namespaces(max_depth=1) == [("docs",), ("notes",)]
        assert full.list_namespaces(max_depth=2) == [("docs", "ana"), ("docs", "bob"), ("notes",), ("notes", "ana")]
        assert full.list_namespaces(prefix=("docs",), suffix=("draft",), max_depth=2) == [
            ("docs", "ana"),
            ("docs", "bob"),
        ]

    def test_pages_of_namespaces_have_each_once(self, full: BaseStore) -> None:
        """Pages follow the order of the list, and are counted after the cut."""
        pages = [full.list_namespaces(limit=4, offset=offset) for offset in (0, 4, 8)]
        assert [len(page) for page in pages] == [4, 2, 0]
        assert pages[0] + pages[1] == sorted(self.SPACES)
        assert full.list_namespaces(max_depth=2, limit=2, offset=1) == [("docs", "bob"), ("notes",)]

    def test_a_namespace_goes_with_its_last_item(self, full: BaseStore) -> None:
        """It is listed as long as one item is in it, and no longer."""
        full.delete(("notes",), "one")
        assert ("notes",) in full.list_namespaces()
        full.delete(("notes",), "two")
        assert ("notes",) not in full.list_namespaces()
        assert full.list_namespaces(prefix=("notes",)) == [("notes", "ana")]

    def test_looking_makes_no_namespace(self, store: BaseStore) -> None:
        """Getting and searching where nothing is changes nothing."""
        store.get(("ghost",), "k")
        store.search(("ghost", "b"))
        assert store.list_namespaces() == []
