"""What people rely on in a store of LangGraph, as tests: for ours, those that come with LangGraph, and yours.

A store is proved by a class of a few lines::

    class TestMyStore(LangGraphStoreContract):
        can = LangGraphStoreContract.can | {"ttl"}

        @pytest.fixture
        def store(self, tmp_path):
            with MyStore(tmp_path / "store.db") as store:
                yield store

        @pytest.fixture
        def later(self, store):          # for "ttl": a function that lets minutes pass for the store
            return lambda minutes: store.clock.advance(minutes * 60)

``can`` names what a store makes a claim to; a promise about anything else is skipped by that name. Every promise
follows from the words of ``langgraph.store.base``, or from what a caller cannot do without. Deliberately absent:
speed, and what a store offers beyond the interface.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from datetime import datetime
from typing import Any, ClassVar, TypeVar

import pytest
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchItem,
    SearchOp,
)

T = TypeVar("T")
Later = Callable[[float], None]
Reopen = Callable[[], BaseStore]

CAPABILITIES = {
    "sync": "calls that block",
    "async": "calls that are awaited",
    "operators": "filters that compare",
    "query": "search by what is asked, in words",
    "ttl": "items that expire",
    "durable": "items that are there after the store was closed",
}

NAMES = ["a/b", "a.b", "a b", "a'b\"c", "%", "_", "*", "[a]", "?", "a%2Fb", "..", "Ünï", "日本", "🦊", "-" * 300]


class Scene:
    """What the promises ask of every store: fixtures, and the skipping of what it makes no claim to."""

    can: ClassVar[frozenset[str]] = frozenset({"sync", "async", "operators"})

    @pytest.fixture(autouse=True)
    def _claimed(self, request: pytest.FixtureRequest) -> None:
        for name in getattr(request.function, "needs", ()):
            if name not in self.can:
                pytest.skip(f"capability {name}: this store makes no claim to {CAPABILITIES[name]}")

    @pytest.fixture
    def store(self) -> Iterator[BaseStore]:
        pytest.fail("supply the fixture `store`: a new, empty store")

    @pytest.fixture
    def later(self) -> Later:
        pytest.fail("a store with `ttl` must supply the fixture `later`: let this many minutes pass")

    @pytest.fixture
    def tick(self) -> Callable[[], None]:
        """How time passes, so much that a store can see it: some databases tell it in seconds."""
        return lambda: time.sleep(1.1)

    @pytest.fixture
    def reopen(self) -> Reopen:
        pytest.fail("a `durable` store must supply the fixture `reopen`: close the store, and open it again")

    @pytest.fixture
    def run(self) -> Callable[[Coroutine[Any, Any, Any]], Any]:
        """How coroutines are run; a store that lives in one event loop runs them there."""
        return asyncio.run


def needs(*names: str) -> Callable[[T], T]:
    """Say what a promise, or each of a class, is about. No mark of pytest's: a class would inherit those of all."""

    def told(promise: T) -> T:
        inside = [part for name, part in vars(promise).items() if name.startswith("test_")]
        for function in inside if isinstance(promise, type) else [promise]:
            vars(function)["needs"] = (*names, *vars(function).get("needs", ()))
        return promise

    return told


def keys(found: list[Any]) -> list[str]:
    return [item.key for item in found]


def value_at(store: BaseStore, namespace: tuple[str, ...], key: str) -> Any:
    item = store.get(namespace, key)
    return None if item is None else item.value


def refused(call: Callable[[], Any]) -> bool:
    """Whether a store says no, in whatever words."""
    try:
        call()
    except Exception:
        return True
    return False


@needs("sync")
class ItemPromises(Scene):
    def test_what_was_put_is_got(self, store: BaseStore) -> None:
        store.put(("users", "ana"), "diet", {"food": "vegan"})
        item = store.get(("users", "ana"), "diet")
        assert item is not None
        assert (item.namespace, item.key, item.value) == (("users", "ana"), "diet", {"food": "vegan"})

    def test_what_is_absent_is_none(self, store: BaseStore) -> None:
        store.put(("a",), "here", {"n": 1})
        assert store.get(("a",), "there") is None
        assert store.get(("b",), "here") is None
        assert store.get(("a", "b"), "here") is None
        assert store.get((), "here") is None

    def test_a_second_put_replaces_the_value_as_a_whole(self, store: BaseStore) -> None:
        store.put(("a",), "k", {"old": 1, "both": 1})
        store.put(("a",), "k", {"new": 2, "both": 2})
        assert value_at(store, ("a",), "k") == {"new": 2, "both": 2}
        assert len(store.search(("a",))) == 1

    def test_a_key_is_its_own_in_each_namespace(self, store: BaseStore) -> None:
        for number, namespace in enumerate([("a",), ("b",), ("a", "b"), ("b", "a"), ("a", "b", "c")]):
            store.put(namespace, "k", {"n": number})
        assert [value_at(store, space, "k") for space in [("a",), ("b",), ("a", "b"), ("b", "a")]] == [
            {"n": 0}, {"n": 1}, {"n": 2}, {"n": 3},
        ]  # fmt: skip

    def test_what_was_deleted_is_gone_and_nothing_else(self, store: BaseStore) -> None:
        for key in ("one", "two"):
            store.put(("a",), key, {"key": key})
        store.delete(("a",), "one")
        assert store.get(("a",), "one") is None
        assert value_at(store, ("a",), "two") == {"key": "two"}
        assert keys(store.search(("a",))) == ["two"]

    def test_deleting_what_is_not_there_is_no_error(self, store: BaseStore) -> None:
        store.delete(("a",), "never")
        store.delete(("never",), "k")
        assert store.search(()) == []
        assert store.list_namespaces() == []

    def test_what_was_deleted_can_be_put_again(self, store: BaseStore) -> None:
        store.put(("a",), "k", {"n": 1})
        store.delete(("a",), "k")
        store.put(("a",), "k", {"n": 2})
        assert value_at(store, ("a",), "k") == {"n": 2}

    def test_a_value_comes_back_as_it_was(self, store: BaseStore) -> None:
        value = {
            "text": "Ünïcödé 🦊 \u2028 \\ \" '", "none": None, "yes": True, "no": False, "int": 2**53, "float": 0.1,
            "list": [1, [2, {"three": []}], ""], "dict": {"": {}, "a.b": 1, "$gt": 2}, "empty": "",
        }  # fmt: skip
        store.put(("a",), "k", value)
        assert value_at(store, ("a",), "k") == value
        assert store.search(("a",))[0].value == value

    def test_what_a_caller_does_to_a_result_stays_with_the_caller(self, store: BaseStore) -> None:
        store.put(("a",), "k", {"list": [1]})
        item = store.get(("a",), "k")
        assert item is not None
        item.value["list"].append(2)
        item.value["more"] = True
        assert value_at(store, ("a",), "k") == {"list": [1]}

    def test_what_a_caller_does_to_a_value_after_putting_it_stays_with_the_caller(self, store: BaseStore) -> None:
        value: dict[str, Any] = {"list": [1]}
        store.put(("a",), "k", value)
        value["list"].append(2)
        value["more"] = True
        assert value_at(store, ("a",), "k") == {"list": [1]}

    def test_times_are_moments(self, store: BaseStore) -> None:
        store.put(("a",), "k", {})
        item = store.get(("a",), "k")
        assert item is not None
        assert isinstance(item.created_at, datetime)
        assert isinstance(item.updated_at, datetime)
        assert item.created_at <= item.updated_at

    def test_an_item_keeps_the_moment_it_was_created(self, store: BaseStore, tick: Callable[[], None]) -> None:
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
        store.put(("a",), "other", {"n": 0})
        store.put(("a",), key, {"n": 1})
        item = store.get(("a",), key)
        assert item is not None
        assert (item.key, item.value) == (key, {"n": 1})
        assert value_at(store, ("a",), "other") == {"n": 0}

    @pytest.mark.parametrize("value", [{"x": object()}, {"x": {1, 2}}, {"x": b"\xff"}, {1: "x"}, {"x": "\ud800"}])
    def test_what_cannot_be_kept_is_refused_and_never_changed(self, store: BaseStore, value: Any) -> None:
        store.put(("a",), "k", {"n": 1})
        if refused(lambda: store.put(("a",), "k", value)):
            assert value_at(store, ("a",), "k") == {"n": 1}
        else:
            assert value_at(store, ("a",), "k") == value


@needs("sync")
class NamespacePromises(Scene):
    @pytest.mark.parametrize(
        "namespace", [(), ("a", ""), ("",), ("a.b",), ("a", 1), ("langgraph",), ("langgraph", "a")]
    )
    def test_a_namespace_that_could_be_mistaken_is_refused(self, store: BaseStore, namespace: Any) -> None:
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "k", {})
        assert store.search(()) == []

    @pytest.mark.parametrize("label", [name for name in NAMES if "." not in name])
    def test_a_label_is_any_text_without_a_dot(self, store: BaseStore, label: str) -> None:
        store.put((label,), "k", {"n": 1})
        store.put((label, "b"), "k", {"n": 2})
        store.put((f"{label}x",), "k", {"n": 3})
        assert value_at(store, (label,), "k") == {"n": 1}
        assert sorted(item.value["n"] for item in store.search((label,))) == [1, 2]
        assert sorted(item.namespace for item in store.search((label,))) == [(label,), (label, "b")]

    def test_a_label_is_not_a_part_of_a_name(self, store: BaseStore) -> None:
        for label in ("acme", "acme-corp", "acme2", "acm", "ACME"):
            store.put((label,), "k", {"of": label})
            store.put((label, "eu"), "k", {"of": label})
        found = store.search(("acme",))
        assert sorted(item.namespace for item in found) == [("acme",), ("acme", "eu")]
        assert {item.value["of"] for item in found} == {"acme"}
        assert store.list_namespaces(prefix=("acme",)) == [("acme",), ("acme", "eu")]

    def test_a_namespace_and_a_key_are_not_confused(self, store: BaseStore) -> None:
        store.put(("a", "b"), "c", {"n": 1})
        store.put(("a",), "b/c", {"n": 2})
        store.put(("a",), "b.c", {"n": 3})
        store.put(("a/b",), "c", {"n": 4})
        found = {(item.namespace, item.key): item.value["n"] for item in store.search(())}
        assert found == {(("a", "b"), "c"): 1, (("a",), "b/c"): 2, (("a",), "b.c"): 3, (("a/b",), "c"): 4}


@needs("sync")
class BatchPromises(Scene):
    def test_results_are_in_the_order_of_what_was_asked(self, store: BaseStore) -> None:
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
        store.batch([PutOp(("a",), "k", {"n": number}) for number in range(5)])
        assert value_at(store, ("a",), "k") == {"n": 4}

    def test_a_put_and_a_deletion_of_one_key_count_in_their_order(self, store: BaseStore) -> None:
        store.batch([PutOp(("a",), "gone", {}), PutOp(("a",), "gone", None)])
        store.batch([PutOp(("a",), "here", None), PutOp(("a",), "here", {"n": 1})])
        assert keys(store.search(("a",))) == ["here"]

    def test_several_puts_and_deletions_are_all_done(self, store: BaseStore) -> None:
        store.batch([PutOp(("a", str(n % 7)), str(n), {"n": n}) for n in range(100)])
        store.batch([PutOp(("a", str(n % 7)), str(n), None) for n in range(0, 100, 2)])
        assert sorted(item.value["n"] for item in store.search(("a",), limit=200)) == list(range(1, 100, 2))

    def test_one_put_that_is_refused_keeps_all_of_its_batch_out(self, store: BaseStore) -> None:
        ops = [PutOp(("a",), "one", {"n": 1}), PutOp(("a",), "bad", {"x": {1, 2}}), PutOp(("a",), "two", {"n": 2})]
        if refused(lambda: store.batch(ops)):
            assert store.search(("a",)) == []
        else:
            assert sorted(keys(store.search(("a",)))) == ["bad", "one", "two"]

    def test_a_batch_may_be_empty_or_come_one_by_one(self, store: BaseStore) -> None:
        assert store.batch([]) == []
        assert store.batch(PutOp(("a",), str(n), {"n": n}) for n in range(3)) == [None, None, None]
        assert len(store.search(("a",))) == 3

    def test_a_label_with_a_dot_reaches_no_other_namespace(self, store: BaseStore) -> None:
        store.put(("a", "b"), "k", {"n": 1})
        refused(lambda: store.batch([PutOp(("a.b",), "k", {"n": 2})]))
        assert value_at(store, ("a", "b"), "k") == {"n": 1}
        assert refused(lambda: store.batch([SearchOp(("a.b",))])) or all(
            item.namespace == ("a.b",) for item in store.batch([SearchOp(("a.b",))])[0]
        )


@needs("sync")
class SearchPromises(Scene):
    def test_a_search_finds_what_is_in_a_namespace_and_below(self, store: BaseStore) -> None:
        for namespace in [("a",), ("a", "b"), ("a", "b", "c"), ("b",), ("b", "a")]:
            store.put(namespace, "k", {"at": "/".join(namespace)})
        assert sorted(item.value["at"] for item in store.search(("a",))) == ["a", "a/b", "a/b/c"]
        assert sorted(item.value["at"] for item in store.search(("a", "b"))) == ["a/b", "a/b/c"]
        assert store.search(("c",)) == []

    def test_an_empty_prefix_means_everything(self, store: BaseStore) -> None:
        for namespace in [("a",), ("b", "c")]:
            store.put(namespace, "k", {})
        assert len(store.search(())) == 2

    def test_a_search_gives_ten_unless_told(self, store: BaseStore) -> None:
        store.batch([PutOp(("a",), str(n), {"n": n}) for n in range(12)])
        assert len(store.search(("a",))) == 10
        assert len(store.search(("a",), limit=3)) == 3
        assert len(store.search(("a",), limit=100)) == 12

    def test_pages_have_everything_once(self, store: BaseStore) -> None:
        store.batch([PutOp(("a", str(n % 3)), str(n), {"n": n}) for n in range(25)])
        pages = [store.search(("a",), limit=10, offset=offset) for offset in (0, 10, 20, 30)]
        assert [len(page) for page in pages] == [10, 10, 5, 0]
        assert sorted(item.value["n"] for page in pages for item in page) == list(range(25))

    def test_without_a_query_there_is_no_score(self, store: BaseStore) -> None:
        store.put(("a",), "k", {})
        (item,) = store.search(("a",))
        assert isinstance(item, SearchItem)
        assert item.score is None


def shop(store: BaseStore) -> None:
    goods = [("pen", 2, "blue", True), ("ink", 9, "blue", False), ("cup", 10, "red", True), ("hat", 10.5, "red", None)]
    for name, price, colour, sold in goods:
        store.put(("shop",), name, {"name": name, "price": price, "colour": colour, "sold": sold})


@needs("sync")
class FilterPromises(Scene):
    def found(self, store: BaseStore, **wanted: Any) -> list[str]:
        return sorted(keys(store.search(("shop",), filter=wanted)))

    def test_a_filter_compares_exactly(self, store: BaseStore) -> None:
        shop(store)
        assert self.found(store, colour="red") == ["cup", "hat"]
        assert self.found(store, price=9) == ["ink"]
        assert self.found(store, sold=True) == ["cup", "pen"]
        assert self.found(store, sold=None) == ["hat"]
        assert self.found(store, colour="re") == []
        assert self.found(store, colour="RED") == []

    def test_every_condition_must_hold(self, store: BaseStore) -> None:
        shop(store)
        assert self.found(store, colour="blue", sold=True) == ["pen"]
        assert self.found(store, colour="blue", price=10) == []

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
    )
    def test_operators(self, store: BaseStore, operator: str, price: float, expected: list[str]) -> None:
        shop(store)
        assert self.found(store, price={operator: price}) == expected

    @needs("operators")
    def test_a_field_may_have_several_operators(self, store: BaseStore) -> None:
        shop(store)
        assert self.found(store, price={"$gt": 2, "$lt": 10.5}) == ["cup", "ink"]
        assert self.found(store, price={"$gte": 10}, colour={"$ne": "blue"}) == ["cup", "hat"]

    @needs("operators")
    def test_an_item_without_the_field_is_not_found_by_comparing(self, store: BaseStore) -> None:
        shop(store)
        store.put(("shop",), "gift", {"name": "gift"})
        store.put(("shop",), "odd", {"price": None})
        assert self.found(store, price={"$gte": 0}) == ["cup", "hat", "ink", "pen"]

    @needs("operators")
    def test_texts_compare_as_texts(self, store: BaseStore) -> None:
        for day in ("2026-01-05", "2026-02-01", "2025-12-31"):
            store.put(("shop",), day, {"day": day})
        assert self.found(store, day={"$gte": "2026-01-01"}) == ["2026-01-05", "2026-02-01"]

    @needs("operators")
    def test_an_operator_that_is_none_is_refused(self, store: BaseStore) -> None:
        shop(store)
        assert refused(lambda: store.search(("shop",), filter={"price": {"$near": 1}}))

    def test_a_filter_holds_before_the_limit(self, store: BaseStore) -> None:
        store.batch([PutOp(("a",), f"{n:03}", {"n": n, "rare": n in (0, 50, 99)}) for n in range(100)])
        assert len(store.search(("a",), filter={"rare": True}, limit=3)) == 3
        pages = [store.search(("a",), filter={"rare": True}, limit=1, offset=n) for n in range(4)]
        assert sorted(keys([item for page in pages for item in page])) == ["000", "050", "099"]

    @pytest.mark.parametrize(
        "field",
        ["x') OR 1=1 --", "x' OR '1'='1", '"; DROP TABLE store; --', "$.name", "name\x00", "", "%", "a'b", "{}"],
    )
    def test_a_hostile_field_is_a_name_like_any_other(self, store: BaseStore, field: str) -> None:
        shop(store)
        assert refused(lambda: self.found(store, **{field: 1})) or self.found(store, **{field: 1}) == []
        assert len(store.search(("shop",))) == 4

    @pytest.mark.parametrize("value", ["' OR 1=1 --", "red' OR 'a'='a", "%", "*", "[a-z]*", "\\", "null", '{"$ne": 1}'])
    def test_a_hostile_value_is_a_text_like_any_other(self, store: BaseStore, value: str) -> None:
        shop(store)
        assert self.found(store, colour=value) == []
        store.put(("shop",), "it", {"colour": value})
        assert self.found(store, colour=value) == ["it"]


PLACES = {
    "paris": "croissants and coffee beside the river seine",
    "kyoto": "temples and maple gardens in autumn rain",
    "cairo": "pyramids camels and desert heat",
}


@needs("sync", "query")
class QueryPromises(Scene):
    def places(self, store: BaseStore) -> None:
        for key, text in PLACES.items():
            store.put(("trips", "ana"), key, {"text": text})

    def test_the_best_comes_first_with_a_score(self, store: BaseStore) -> None:
        self.places(store)
        for key, query in [
            ("kyoto", "maple gardens"),
            ("cairo", "camels in the desert"),
            ("paris", "coffee croissants"),
        ]:
            found = store.search(("trips",), query=query)
            assert found[0].key == key
            assert found[0].score is not None
            assert found[0].value == {"text": PLACES[key]}

    def test_scores_fall(self, store: BaseStore) -> None:
        self.places(store)
        scores = [
            item.score for item in store.search(("trips",), query="temples in desert heat") if item.score is not None
        ]
        assert scores == sorted(scores, reverse=True)

    def test_a_query_has_pages(self, store: BaseStore) -> None:
        store.batch([PutOp(("a",), str(n), {"text": "blue whale " + "sea " * n}) for n in range(9)])
        whole = keys(store.search(("a",), query="blue whale", limit=9))
        pages = [keys(store.search(("a",), query="blue whale", limit=3, offset=offset)) for offset in (0, 3, 6)]
        assert sorted(whole) == [str(n) for n in range(9)]
        assert [key for page in pages for key in page] == whole

    def test_a_filter_holds_before_the_limit_of_a_query(self, store: BaseStore) -> None:
        store.batch([PutOp(("a",), f"w{n}", {"text": f"blue whale {n}", "kind": "whale"}) for n in range(40)])
        store.put(("a",), "boat", {"text": "a boat that once met a blue whale far away", "kind": "boat"})
        assert keys(store.search(("a",), query="blue whale", filter={"kind": "boat"}, limit=1)) == ["boat"]

    def test_a_prefix_holds_before_the_limit_of_a_query(self, store: BaseStore) -> None:
        store.batch([PutOp(("acme-corp",), f"w{n}", {"text": f"blue whale {n}"}) for n in range(40)])
        store.put(("acme",), "boat", {"text": "a boat that once met a blue whale far away"})
        assert keys(store.search(("acme",), query="blue whale", limit=1)) == ["boat"]

    def test_what_is_not_indexed_gets_no_score(self, store: BaseStore) -> None:
        store.put(("a",), "shown", {"text": "a boat and a blue whale"})
        store.put(("a",), "hidden", {"text": "blue whale"}, index=False)
        found = store.search(("a",), query="blue whale")
        assert found[0].key == "shown"
        assert all(item.score is None for item in found if item.key == "hidden")
        assert value_at(store, ("a",), "hidden") == {"text": "blue whale"}
        assert sorted(keys(store.search(("a",)))) == ["hidden", "shown"]

    def test_only_the_fields_that_were_named_are_searched(self, store: BaseStore) -> None:
        store.put(("a",), "one", {"title": "blue whale", "body": "camels"}, index=["title"])
        store.put(("a",), "two", {"title": "camels", "body": "blue whale"}, index=["title"])
        store.put(("a",), "deep", {"parts": [{"text": "maple"}, {"text": "gardens"}]}, index=["parts[*].text"])
        assert store.search(("a",), query="blue whale")[0].key == "one"
        assert store.search(("a",), query="camels")[0].key == "two"
        assert store.search(("a",), query="maple gardens")[0].key == "deep"

    def test_a_new_value_is_found_by_what_it_says_now(self, store: BaseStore) -> None:
        self.places(store)
        store.put(("trips", "ana"), "paris", {"text": "maple gardens and temples"})
        store.put(("trips", "ana"), "kyoto", {"text": "croissants and coffee"})
        assert store.search(("trips",), query="maple gardens and temples")[0].key == "paris"
        assert store.search(("trips",), query="croissants and coffee")[0].key == "kyoto"

    def test_what_is_no_longer_indexed_gets_no_score(self, store: BaseStore) -> None:
        self.places(store)
        store.put(("trips", "ana"), "cairo", {"text": PLACES["cairo"]}, index=False)
        found = store.search(("trips",), query=PLACES["cairo"])
        assert all(item.score is None for item in found if item.key == "cairo")

    def test_items_that_say_the_same_are_all_found(self, store: BaseStore) -> None:
        store.batch([PutOp(("a",), str(n), {"text": "blue whale"}) for n in range(4)])
        assert sorted(keys(store.search(("a",), query="blue whale"))) == ["0", "1", "2", "3"]

    def test_what_was_deleted_is_not_found(self, store: BaseStore) -> None:
        self.places(store)
        store.delete(("trips", "ana"), "cairo")
        assert "cairo" not in keys(store.search(("trips",), query=PLACES["cairo"]))

    def test_a_hostile_query_is_words_like_any_other(self, store: BaseStore) -> None:
        self.places(store)
        for query in ("' OR 1=1 --", '"', "maple AND (", "NEAR/", "*", "col:x", "🦊", "a" * 5_000):
            assert len(store.search(("trips",), query=query)) <= 3


@needs("sync")
class ListPromises(Scene):
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
        assert full.list_namespaces() == sorted(self.SPACES)

    def test_a_prefix(self, full: BaseStore) -> None:
        assert full.list_namespaces(prefix=("docs", "bob")) == [
            ("docs", "bob", "draft"),
            ("docs", "bob", "draft", "old"),
        ]
        assert full.list_namespaces(prefix=("doc",)) == []

    def test_a_suffix(self, full: BaseStore) -> None:
        assert full.list_namespaces(suffix=("draft",)) == [("docs", "ana", "draft"), ("docs", "bob", "draft")]
        assert full.list_namespaces(suffix=("ana",)) == [("notes", "ana")]
        assert full.list_namespaces(suffix=("raft",)) == []

    def test_a_star_is_any_one_label(self, full: BaseStore) -> None:
        assert full.list_namespaces(prefix=("docs", "*", "final")) == [("docs", "ana", "final")]
        assert full.list_namespaces(prefix=("*", "ana")) == [
            ("docs", "ana", "draft"), ("docs", "ana", "final"), ("notes", "ana"),
        ]  # fmt: skip
        assert full.list_namespaces(suffix=("bob", "*")) == [("docs", "bob", "draft")]
        assert full.list_namespaces(prefix=("notes", "*")) == [("notes", "ana")]

    def test_a_prefix_and_a_suffix_hold_together(self, full: BaseStore) -> None:
        assert full.list_namespaces(prefix=("docs", "ana"), suffix=("draft",)) == [("docs", "ana", "draft")]
        conditions = (MatchCondition("prefix", ("docs",)), MatchCondition("suffix", ("old",)))
        assert full.batch([ListNamespacesOp(conditions)]) == [[("docs", "bob", "draft", "old")]]

    def test_a_depth_cuts_and_counts_once(self, full: BaseStore) -> None:
        assert full.list_namespaces(max_depth=1) == [("docs",), ("notes",)]
        assert full.list_namespaces(max_depth=2) == [("docs", "ana"), ("docs", "bob"), ("notes",), ("notes", "ana")]
        assert full.list_namespaces(prefix=("docs",), suffix=("draft",), max_depth=2) == [
            ("docs", "ana"),
            ("docs", "bob"),
        ]

    def test_pages_of_namespaces(self, full: BaseStore) -> None:
        pages = [full.list_namespaces(limit=4, offset=offset) for offset in (0, 4, 8)]
        assert [len(page) for page in pages] == [4, 2, 0]
        assert pages[0] + pages[1] == sorted(self.SPACES)
        assert full.list_namespaces(max_depth=2, limit=2, offset=1) == [("docs", "bob"), ("notes",)]

    def test_a_namespace_goes_with_its_last_item(self, full: BaseStore) -> None:
        full.delete(("notes",), "one")
        assert ("notes",) in full.list_namespaces()
        full.delete(("notes",), "two")
        assert ("notes",) not in full.list_namespaces()
        assert full.list_namespaces(prefix=("notes",)) == [("notes", "ana")]

    def test_looking_makes_no_namespace(self, store: BaseStore) -> None:
        store.get(("ghost",), "k")
        store.search(("ghost", "b"))
        assert store.list_namespaces() == []


@needs("sync")
class LifetimePromises(Scene):
    def test_a_ttl_is_taken_or_refused_and_never_passed_over(self, store: BaseStore) -> None:
        if store.supports_ttl:
            store.put(("a",), "k", {"n": 1}, ttl=60)
            assert value_at(store, ("a",), "k") == {"n": 1}
        else:
            with pytest.raises(NotImplementedError):
                store.put(("a",), "k", {}, ttl=60)
            assert store.search(()) == []

    @needs("ttl")
    def test_what_expired_is_nowhere(self, store: BaseStore, later: Later) -> None:
        store.put(("brief",), "k", {"n": 1}, ttl=10)
        store.put(("long",), "k", {"n": 2}, ttl=100)
        store.put(("always",), "k", {"n": 3})
        later(11)
        assert store.get(("brief",), "k") is None
        assert sorted(item.value["n"] for item in store.search(())) == [2, 3]
        assert store.list_namespaces() == [("always",), ("long",)]

    @needs("ttl", "query")
    def test_what_expired_is_not_found_by_a_query(self, store: BaseStore, later: Later) -> None:
        store.put(("a",), "brief", {"text": "blue whale"}, ttl=10)
        store.put(("a",), "always", {"text": "blue whale"})
        assert sorted(keys(store.search(("a",), query="blue whale", refresh_ttl=False))) == ["always", "brief"]
        later(11)
        assert keys(store.search(("a",), query="blue whale")) == ["always"]

    @needs("ttl")
    def test_what_has_not_expired_is_there(self, store: BaseStore, later: Later) -> None:
        store.put(("a",), "k", {"n": 1}, ttl=10)
        later(9)
        assert value_at(store, ("a",), "k") == {"n": 1}

    @needs("ttl")
    def test_a_put_begins_the_time_anew(self, store: BaseStore, later: Later) -> None:
        store.put(("a",), "k", {"n": 1}, ttl=10)
        later(8)
        store.put(("a",), "k", {"n": 2}, ttl=10)
        later(8)
        assert value_at(store, ("a",), "k") == {"n": 2}

    @needs("ttl")
    def test_a_put_without_ttl_lasts(self, store: BaseStore, later: Later) -> None:
        store.put(("a",), "k", {"n": 1}, ttl=10)
        store.put(("a",), "k", {"n": 2}, ttl=None)
        later(1_000)
        assert value_at(store, ("a",), "k") == {"n": 2}

    @needs("ttl")
    def test_reading_begins_the_time_anew(self, store: BaseStore, later: Later) -> None:
        store.put(("a",), "got", {}, ttl=10)
        store.put(("b",), "found", {}, ttl=10)
        for _ in range(3):
            later(8)
            assert store.get(("a",), "got", refresh_ttl=True) is not None
            assert keys(store.search(("b",), refresh_ttl=True)) == ["found"]

    @needs("ttl")
    def test_reading_without_refresh_does_not(self, store: BaseStore, later: Later) -> None:
        store.put(("a",), "k", {}, ttl=10)
        later(8)
        assert store.get(("a",), "k", refresh_ttl=False) is not None
        assert keys(store.search(("a",), refresh_ttl=False)) == ["k"]
        later(8)
        assert store.get(("a",), "k") is None

    @needs("ttl")
    def test_what_expired_can_be_put_again(self, store: BaseStore, later: Later) -> None:
        store.put(("a",), "k", {"n": 1}, ttl=10)
        later(11)
        store.put(("a",), "k", {"n": 2})
        assert value_at(store, ("a",), "k") == {"n": 2}
        later(11)
        assert value_at(store, ("a",), "k") == {"n": 2}

    @needs("durable")
    def test_what_was_put_is_there_after_a_restart(self, store: BaseStore, reopen: Reopen) -> None:
        store.put(("a", "b"), "k", {"n": 1})
        store.put(("a", "b"), "gone", {"n": 2})
        store.delete(("a", "b"), "gone")
        again = reopen()
        assert value_at(again, ("a", "b"), "k") == {"n": 1}
        assert keys(again.search(("a",))) == ["k"]
        assert again.list_namespaces() == [("a", "b")]


@needs("async")
class AsyncPromises(Scene):
    def test_the_awaited_calls_do_the_same(self, store: BaseStore, run: Callable[..., Any]) -> None:
        async def talk() -> tuple[Any, ...]:
            await store.aput(("a", "b"), "one", {"n": 1})
            await store.aput(("a", "b"), "two", {"n": 2})
            await store.aput(("a",), "three", {"n": 3})
            await store.adelete(("a", "b"), "two")
            return (
                await store.aget(("a", "b"), "one"),
                await store.aget(("a", "b"), "two"),
                await store.asearch(("a",), filter={"n": 3}),
                await store.alist_namespaces(prefix=("a",)),
            )

        one, two, found, spaces = run(talk())
        assert one.value == {"n": 1}
        assert two is None
        assert keys(found) == ["three"]
        assert spaces == [("a",), ("a", "b")]

    def test_many_at_once_lose_nothing(self, store: BaseStore, run: Callable[..., Any]) -> None:
        async def crowd() -> list[Any]:
            await asyncio.gather(*(store.aput(("a", str(n % 5)), str(n), {"n": n}) for n in range(100)))
            return list(await asyncio.gather(*(store.aget(("a", str(n % 5)), str(n)) for n in range(100))))

        assert [item.value["n"] for item in run(crowd())] == list(range(100))

    def test_a_batch_is_awaited_as_a_whole(self, store: BaseStore, run: Callable[..., Any]) -> None:
        async def work() -> list[Any]:
            await store.abatch([PutOp(("a",), "k", {"n": number}) for number in range(5)])
            return list(await store.abatch([GetOp(("a",), "k"), SearchOp(("a",)), ListNamespacesOp()]))

        item, found, spaces = run(work())
        assert item.value == {"n": 4}
        assert keys(found) == ["k"]
        assert spaces == [("a",)]

    @needs("sync")
    def test_both_ways_see_the_same(self, store: BaseStore, run: Callable[..., Any]) -> None:
        store.put(("a",), "k", {"n": 1})

        async def change() -> Any:
            item = await store.aget(("a",), "k")
            await store.aput(("a",), "k", {"n": item.value["n"] + 1})

        run(change())
        assert value_at(store, ("a",), "k") == {"n": 2}


@needs("sync")
class ThreadPromises(Scene):
    def test_threads_lose_nothing_of_each_other(self, store: BaseStore) -> None:
        failed: list[BaseException] = []

        def work(me: int) -> None:
            try:
                for number in range(25):
                    store.put(("a", str(me)), str(number), {"n": number})
                    assert value_at(store, ("a", str(me)), str(number)) == {"n": number}
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(me,)) for me in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        assert len(store.search(("a",), limit=500)) == 200


class LangGraphStoreContract(
    ItemPromises,
    NamespacePromises,
    BatchPromises,
    SearchPromises,
    FilterPromises,
    QueryPromises,
    ListPromises,
    LifetimePromises,
    AsyncPromises,
    ThreadPromises,
):
    """Every promise of a store. Subclass it, say what it ``can``, and supply ``store`` and what that needs."""
