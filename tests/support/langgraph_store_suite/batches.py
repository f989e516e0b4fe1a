"""What ``batch`` promises: every operation is carried out, in order, and the puts together or not at all."""

from __future__ import annotations

from langgraph.store.base import BaseStore, GetOp, ListNamespacesOp, PutOp, SearchOp

from langgraph_store_suite.scene import Scene, keys, needs, refused, value_at


@needs("sync")
class BatchPromises(Scene):
    """Promises about several operations at once."""

    def test_results_are_in_the_order_of_what_was_asked(self, store: BaseStore) -> None:
        """One result for each operation: an item or None, a list, None for a put."""
        for number in range(3):
            store.put(("a",), str(number), {"n": number})
        first, none, found, spaces, put, last = store.batch(
            [
                GetOp(("a",), "2"),
                GetOp(("a",), "no"),
                SearchOp(("a",)),
                ListNamespacesOp(),
                PutOp(("b",), "k", {}),
                GetOp(("a",), "0"),
            ]
        )
        assert (first.value, none, put, last.value) == ({"n": 2}, None, None, {"n": 0})
        assert len(found) == 3
        assert ("a",) in spaces

    def test_the_last_put_of_a_key_wins(self, store: BaseStore) -> None:
        """A batch that puts one key several times leaves the last value."""
        store.batch([PutOp(("a",), "k", {"n": number}) for number in range(5)])
        assert value_at(store, ("a",), "k") == {"n": 4}

    def test_a_put_and_a_deletion_of_one_key_count_in_their_order(self, store: BaseStore) -> None:
        """Put and then deleted it is gone; deleted and then put it is there."""
        store.batch([PutOp(("a",), "gone", {}), PutOp(("a",), "gone", None)])
        store.batch([PutOp(("a",), "here", None), PutOp(("a",), "here", {"n": 1})])
        assert keys(store.search(("a",))) == ["here"]

    def test_several_puts_and_deletions_are_all_done(self, store: BaseStore) -> None:
        """In as many namespaces as a batch names."""
        store.batch([PutOp(("a", str(n % 7)), str(n), {"n": n}) for n in range(100)])
        store.batch([PutOp(("a", str(n % 7)), str(n), None) for n in range(0, 100, 2)])
        assert sorted(item.value["n"] for item in store.search(("a",), limit=200)) == list(range(1, 100, 2))

    def test_one_put_that_is_refused_keeps_all_of_its_batch_out(self, store: BaseStore) -> None:
        """All or nothing: neither what comes before the refused put is stored, nor what comes after it."""
        ops = [PutOp(("a",), "one", {"n": 1}), PutOp(("a",), "bad", {"x": {1, 2}}), PutOp(("a",), "two", {"n": 2})]
        if refused(lambda: store.batch(ops)):
            assert store.search(("a",)) == []
        else:
            assert sorted(keys(store.search(("a",)))) == ["bad", "one", "two"]

    def test_a_batch_may_be_empty_or_come_one_by_one(self, store: BaseStore) -> None:
        """Any iterable of operations will do: none, or a generator."""
        assert store.batch([]) == []
        assert store.batch(PutOp(("a",), str(n), {"n": n}) for n in range(3)) == [None, None, None]
        assert len(store.search(("a",))) == 3

    def test_a_label_with_a_dot_reaches_no_other_namespace(self, store: BaseStore) -> None:
        """A batch passes by the check of ``put``; even so ``a.b`` is not ``a`` and in it ``b``."""
        store.put(("a", "b"), "k", {"n": 1})
        refused(lambda: store.batch([PutOp(("a.b",), "k", {"n": 2})]))
        assert value_at(store, ("a", "b"), "k") == {"n": 1}
        assert refused(lambda: store.batch([SearchOp(("a.b",))])) or all(
            item.namespace == ("a.b",) for item in store.batch([SearchOp(("a.b",))])[0]
        )
