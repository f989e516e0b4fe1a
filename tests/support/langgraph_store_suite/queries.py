"""What ``search`` promises with a query, of a store that can be asked in words: the order, and what is left out.

Where the best is asked for, it shares words with the query and the rest does not, so that any embedder will do.
"""

from __future__ import annotations

import pytest
from langgraph.store.base import BaseStore, PutOp

from langgraph_store_suite.scene import Scene, keys, needs, value_at

PLACES = {
    "paris": "croissants and coffee beside the river seine",
    "kyoto": "temples and maple gardens in autumn rain",
    "cairo": "pyramids camels and desert heat",
}


@needs("sync", "query")
class QueryPromises(Scene):
    """Promises about a search that says what it is about."""

    @pytest.fixture
    def places(self, store: BaseStore) -> BaseStore:
        for key, text in PLACES.items():
            store.put(("trips", "ana"), key, {"text": text})
        return store

    def test_the_best_comes_first_with_a_score(self, places: BaseStore) -> None:
        """What speaks of what was asked is found first, whole, and says how near it is."""
        for key, query in [
            ("kyoto", "maple gardens"),
            ("cairo", "camels in the desert"),
            ("paris", "coffee croissants"),
        ]:
            found = places.search(("trips",), query=query)
            assert found[0].key == key
            assert found[0].score is not None
            assert found[0].value == {"text": PLACES[key]}

    def test_scores_fall_from_the_first_to_the_last(self, places: BaseStore) -> None:
        """The order is that of the scores."""
        found = places.search(("trips",), query="temples in desert heat")
        scores = [item.score for item in found if item.score is not None]
        assert scores == sorted(scores, reverse=True)

    def test_pages_of_a_query_are_parts_of_the_whole(self, store: BaseStore) -> None:
        """Joined, they are what one search with a higher limit gives, in its order."""
        store.batch([PutOp(("a",), str(n), {"text": "blue whale " + "sea " * n}) for n in range(9)])
        whole = keys(store.search(("a",), query="blue whale", limit=9))
        pages = [keys(store.search(("a",), query="blue whale", limit=3, offset=offset)) for offset in (0, 3, 6)]
        assert sorted(whole) == [str(n) for n in range(9)]
        assert [key for page in pages for key in page] == whole

    def test_a_filter_holds_before_the_limit_of_a_query(self, store: BaseStore) -> None:
        """However many better ones the filter leaves out, what passes it is found."""
        store.batch([PutOp(("a",), f"w{n}", {"text": f"blue whale {n}", "kind": "whale"}) for n in range(40)])
        store.put(("a",), "boat", {"text": "a boat that once met a blue whale far away", "kind": "boat"})
        assert keys(store.search(("a",), query="blue whale", filter={"kind": "boat"}, limit=1)) == ["boat"]

    def test_a_prefix_holds_before_the_limit_of_a_query(self, store: BaseStore) -> None:
        """However many better ones other namespaces have, what is in this one is found."""
        store.batch([PutOp(("acme-corp",), f"w{n}", {"text": f"blue whale {n}"}) for n in range(40)])
        store.put(("acme",), "boat", {"text": "a boat that once met a blue whale far away"})
        assert keys(store.search(("acme",), query="blue whale", limit=1)) == ["boat"]

    def test_what_is_not_indexed_gets_no_score(self, store: BaseStore) -> None:
        """Put with ``index=False`` an item is not near to anything; it is got and listed as any other."""
        store.put(("a",), "shown", {"text": "a boat and a blue whale"})
        store.put(("a",), "hidden", {"text": "blue whale"}, index=False)
        found = store.search(("a",), query="blue whale")
        assert found[0].key == "shown"
        assert all(item.score is None for item in found if item.key == "hidden")
        assert value_at(store, ("a",), "hidden") == {"text": "blue whale"}
        assert sorted(keys(store.search(("a",)))) == ["hidden", "shown"]

    def test_only_the_fields_that_were_named_are_searched(self, store: BaseStore) -> None:
        """``index=[…]`` of a put names them, also inside lists."""
        store.put(("a",), "one", {"title": "blue whale", "body": "camels"}, index=["title"])
        store.put(("a",), "two", {"title": "camels", "body": "blue whale"}, index=["title"])
        store.put(("a",), "deep", {"parts": [{"text": "maple"}, {"text": "gardens"}]}, index=["parts[*].text"])
        assert store.search(("a",), query="blue whale")[0].key == "one"
        assert store.search(("a",), query="camels")[0].key == "two"
        assert store.search(("a",), query="maple gardens")[0].key == "deep"

    def test_a_new_value_is_found_by_what_it_says_now(self, places: BaseStore) -> None:
        """A second put replaces what an item is found by."""
        places.put(("trips", "ana"), "paris", {"text": "maple gardens and temples"})
        places.put(("trips", "ana"), "kyoto", {"text": "croissants and coffee"})
        assert places.search(("trips",), query="maple gardens and temples")[0].key == "paris"
        assert places.search(("trips",), query="croissants and coffee")[0].key == "kyoto"

    def test_what_is_no_longer_indexed_gets_no_score(self, places: BaseStore) -> None:
        """A second put with ``index=False`` takes the item out of what queries find."""
        places.put(("trips", "ana"), "cairo", {"text": PLACES["cairo"]}, index=False)
        found = places.search(("trips",), query=PLACES["cairo"])
        assert all(item.score is None for item in found if item.key == "cairo")

    def test_items_that_say_the_same_are_all_found(self, store: BaseStore) -> None:
        """Equal texts are several items, also in one batch."""
        store.batch([PutOp(("a",), str(n), {"text": "blue whale"}) for n in range(4)])
        assert sorted(keys(store.search(("a",), query="blue whale"))) == ["0", "1", "2", "3"]

    def test_what_was_deleted_is_not_found_by_a_query(self, places: BaseStore) -> None:
        """Not even by its own words."""
        places.delete(("trips", "ana"), "cairo")
        assert "cairo" not in keys(places.search(("trips",), query=PLACES["cairo"]))

    def test_a_hostile_query_is_words_like_any_other(self, places: BaseStore) -> None:
        """No sign in a query is an operator, and no length is an error."""
        for query in ("' OR 1=1 --", '"', "maple AND (", "NEAR/", "*", "col:x", "🦊", "a" * 5_000):
            assert len(places.search(("trips",), query=query)) <= 3
