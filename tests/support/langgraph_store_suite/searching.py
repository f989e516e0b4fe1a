"""What ``search`` promises without a query: where it looks, how it pages, and what a filter leaves."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.store.base import BaseStore, PutOp, SearchItem

from langgraph_store_suite.scene import Scene, keys, needs, refused

GOODS = [("pen", 2, "blue", True), ("ink", 9, "blue", False), ("cup", 10, "red", True), ("hat", 10.5, "red", None)]


@needs("sync")
class SearchPromises(Scene):
    """Promises about a search that only says where."""

    def test_a_search_finds_what_is_in_a_namespace_and_below(self, store: BaseStore) -> None:
        """A namespace is a prefix here; what merely ends alike is not found."""
        for namespace in [("a",), ("a", "b"), ("a", "b", "c"), ("b",), ("b", "a")]:
            store.put(namespace, "k", {"at": "/".join(namespace)})
        assert sorted(item.value["at"] for item in store.search(("a",))) == ["a", "a/b", "a/b/c"]
        assert sorted(item.value["at"] for item in store.search(("a", "b"))) == ["a/b", "a/b/c"]
        assert store.search(("c",)) == []

    def test_an_empty_prefix_means_everything(self, store: BaseStore) -> None:
        """Every namespace lies below the empty one."""
        for namespace in [("a",), ("b", "c")]:
            store.put(namespace, "k", {})
        assert len(store.search(())) == 2

    def test_a_search_gives_ten_unless_told(self, store: BaseStore) -> None:
        """As the interface says; a limit gives fewer, or more where there are more."""
        store.batch([PutOp(("a",), str(n), {"n": n}) for n in range(12)])
        assert len(store.search(("a",))) == 10
        assert len(store.search(("a",), limit=3)) == 3
        assert len(store.search(("a",), limit=100)) == 12

    def test_pages_have_everything_once(self, store: BaseStore) -> None:
        """Whoever pages through a search sees each item, and none twice."""
        store.batch([PutOp(("a", str(n % 3)), str(n), {"n": n}) for n in range(25)])
        pages = [store.search(("a",), limit=10, offset=offset) for offset in (0, 10, 20, 30)]
        assert [len(page) for page in pages] == [10, 10, 5, 0]
        assert sorted(item.value["n"] for page in pages for item in page) == list(range(25))

    def test_without_a_query_there_is_no_score(self, store: BaseStore) -> None:
        """What is found is a ``SearchItem``, and nothing was asked that it could be near to."""
        store.put(("a",), "k", {})
        (item,) = store.search(("a",))
        assert isinstance(item, SearchItem)
        assert item.score is None


@needs("sync")
class FilterPromises(Scene):
    """Promises about what a filter leaves of a search."""

    @pytest.fixture
    def shop(self, store: BaseStore) -> BaseStore:
        for name, price, colour, sold in GOODS:
            store.put(("shop",), name, {"name": name, "price": price, "colour": colour, "sold": sold})
        return store

    def found(self, store: BaseStore, **wanted: Any) -> list[str]:
        return sorted(keys(store.search(("shop",), filter=wanted)))

    def test_a_filter_compares_exactly(self, shop: BaseStore) -> None:
        """A text matches the same text, and no part of it and no other case; None matches None."""
        assert self.found(shop, colour="red") == ["cup", "hat"]
        assert self.found(shop, price=9) == ["ink"]
        assert self.found(shop, sold=True) == ["cup", "pen"]
        assert self.found(shop, sold=None) == ["hat"]
        assert self.found(shop, colour="re") == []
        assert self.found(shop, colour="RED") == []

    def test_every_condition_must_hold(self, shop: BaseStore) -> None:
        """Several fields of a filter are joined by and."""
        assert self.found(shop, colour="blue", sold=True) == ["pen"]
        assert self.found(shop, colour="blue", price=10) == []

    @needs("operators")
    @pytest.mark.parametrize(
        ("operator", "price", "expected"),
        [
            ("$eq", 10, ["cup"]),
            ("$ne", 10, ["hat", "ink", "pen"]),
            ("$gt", 9, ["cup", "hat"]),
            ("$gte", 9, ["cup", "hat", "ink"]),
            ("$lt", 10, ["ink", "pen"]),
            ("$lte", 10, ["cup", "ink", "pen"]),
        ],
        ids=["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"],
    )
    def test_an_operator_compares_numbers_as_numbers(
        self, shop: BaseStore, operator: str, price: float, expected: list[str]
    ) -> None:
        """10 is more than 9, whole or not, and ``$ne`` leaves what differs."""
        assert self.found(shop, price={operator: price}) == expected

    @needs("operators")
    def test_a_field_may_have_several_operators(self, shop: BaseStore) -> None:
        """All of them must hold, also beside those of another field."""
        assert self.found(shop, price={"$gt": 2, "$lt": 10.5}) == ["cup", "ink"]
        assert self.found(shop, price={"$gte": 10}, colour={"$ne": "blue"}) == ["cup", "hat"]

    @needs("operators")
    def test_an_item_without_the_field_is_not_found_by_comparing(self, shop: BaseStore) -> None:
        """What has no price, or None for one, is neither dear nor cheap, and no error."""
        shop.put(("shop",), "gift", {"name": "gift"})
        shop.put(("shop",), "odd", {"price": None})
        assert self.found(shop, price={"$gte": 0}) == ["cup", "hat", "ink", "pen"]

    @needs("operators")
    def test_texts_compare_as_texts(self, store: BaseStore) -> None:
        """So that dates as people write them in data can be compared."""
        for day in ("2026-01-05", "2026-02-01", "2025-12-31"):
            store.put(("shop",), day, {"day": day})
        assert self.found(store, day={"$gte": "2026-01-01"}) == ["2026-01-05", "2026-02-01"]

    @needs("operators")
    def test_an_operator_that_is_none_is_refused(self, shop: BaseStore) -> None:
        """A misspelt operator is an error, not a search that finds nothing."""
        assert refused(lambda: shop.search(("shop",), filter={"price": {"$near": 1}}))

    def test_a_filter_holds_before_the_limit(self, store: BaseStore) -> None:
        """A limit counts what passed the filter, and so do pages."""
        store.batch([PutOp(("a",), f"{n:03}", {"n": n, "rare": n in (0, 50, 99)}) for n in range(100)])
        assert len(store.search(("a",), filter={"rare": True}, limit=3)) == 3
        pages = [store.search(("a",), filter={"rare": True}, limit=1, offset=n) for n in range(4)]
        assert sorted(keys([item for page in pages for item in page])) == ["000", "050", "099"]

    @pytest.mark.parametrize(
        "field",
        ["x') OR 1=1 --", "x' OR '1'='1", '"; DROP TABLE store; --', "$.name", "name\x00", "", "%", "a'b", "{}"],
    )
    def test_a_hostile_field_is_a_name_like_any_other(self, shop: BaseStore, field: str) -> None:
        """It finds nothing, or is refused; it is never part of a statement."""
        assert refused(lambda: self.found(shop, **{field: 1})) or self.found(shop, **{field: 1}) == []
        assert len(shop.search(("shop",))) == 4

    @pytest.mark.parametrize("value", ["' OR 1=1 --", "red' OR 'a'='a", "%", "*", "[a-z]*", "\\", "null", '{"$ne": 1}'])
    def test_a_hostile_value_is_a_text_like_any_other(self, shop: BaseStore, value: str) -> None:
        """It matches the item that has this very text, and no other."""
        assert self.found(shop, colour=value) == []
        shop.put(("shop",), "it", {"colour": value})
        assert self.found(shop, colour=value) == ["it"]
