"""``HoldfastStore`` keeps every promise of the published suite, on every engine, and those that are its own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, Op, PutOp, SearchOp
from langgraph.store.base.batch import AsyncBatchedBaseStore
from langgraph_store_suite import LangGraphStoreContract, keys

import holdfast
from holdfast.adapters.langgraph.store import HoldfastStore
from holdfast.engine.contract import Query
from holdfast.errors import Conflict, Invalid, Misconfigured, TooLarge
from holdfast.testing import ManualClock
from holdfast.testing.embedders import HashEmbedder
from holdfast.testing.postgres import Server

ALL = LangGraphStoreContract.can | {"query", "ttl", "durable"}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def later(clock: ManualClock) -> Callable[[float], None]:
    return lambda minutes: clock.advance(minutes * 60)


class OnHoldfast(LangGraphStoreContract):
    can = ALL

    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock()

    @pytest.fixture
    def later(self, clock: ManualClock) -> Callable[[float], None]:
        return lambda minutes: clock.advance(minutes * 60)

    @pytest.fixture
    def tick(self, clock: ManualClock) -> Callable[[], None]:
        return lambda: clock.advance(1)

    @pytest.fixture
    def opened(self, clock: ManualClock, address: str) -> Iterator[list[holdfast.Store]]:
        stores = [holdfast.open(address, clock=clock, embedder=HashEmbedder())]
        yield stores
        for one in stores:
            one.close()

    @pytest.fixture
    def store(self, opened: list[holdfast.Store]) -> HoldfastStore:
        return HoldfastStore(opened[0])

    @pytest.fixture
    def reopen(self, clock: ManualClock, opened: list[holdfast.Store], address: str) -> Callable[[], HoldfastStore]:
        def again() -> HoldfastStore:
            opened[0].close()
            opened.append(holdfast.open(address, clock=clock, embedder=HashEmbedder()))
            return HoldfastStore(opened[-1])

        return again


class TestRam(OnHoldfast):
    can = ALL - {"durable"}

    @pytest.fixture
    def address(self) -> str:
        return "ram:"


class TestSqlite(OnHoldfast):
    @pytest.fixture
    def address(self, tmp_path: Path) -> str:
        return str(tmp_path / "agent.db")


class TestPostgres(OnHoldfast):
    @pytest.fixture
    def address(self, server: Server) -> str:
        return server.clone()


class TestWithoutVectors(OnHoldfast):
    """By words alone, as where nothing that makes vectors is installed."""

    can = ALL - {"durable"}

    @pytest.fixture
    def store(self, clock: ManualClock) -> Iterator[HoldfastStore]:
        with holdfast.open("ram:", clock=clock, embedder="none") as inner:
            yield HoldfastStore(inner)


# Beyond the interface


@pytest.fixture(params=["ram", "sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("server").clone())
    return "ram:" if request.param == "ram" else str(tmp_path / "agent.db")


@pytest.fixture
def inner(address: str, clock: ManualClock) -> Iterator[holdfast.Store]:
    with holdfast.open(address, clock=clock, embedder=HashEmbedder()) as inner:
        yield inner


@pytest.fixture
def items(inner: holdfast.Store) -> HoldfastStore:
    return HoldfastStore(inner)


@pytest.mark.every_engine
def test_of_many_who_saw_the_same_version_one_writes(items: HoldfastStore) -> None:
    items.put(("a",), "k", {"by": None})
    start, won, lost = threading.Barrier(8), list[int](), list[int]()

    def race(me: int) -> None:
        start.wait()
        try:
            items.compare_and_put(("a",), "k", {"by": me}, expect=1)
            won.append(me)
        except Conflict:
            lost.append(me)

    threads = [threading.Thread(target=race, args=(me,)) for me in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert len(lost) == 7
    current = items.current(("a",), "k")
    assert current is not None
    assert (current.version, current.value) == (2, {"by": won[0]})


def test_a_version_is_read_written_and_refused(items: HoldfastStore) -> None:
    assert items.current(("a",), "k") is None
    assert items.compare_and_put(("a",), "k", {"n": 1}, expect=0) == 1
    with pytest.raises(Conflict):
        items.compare_and_put(("a",), "k", {"n": 2}, expect=0)
    assert items.compare_and_put(("a",), "k", {"n": 2}, expect=1) == 2
    items.put(("a",), "k", {"n": 3})
    with pytest.raises(Conflict):
        items.compare_and_put(("a",), "k", {"n": 4}, expect=2)
    items.delete(("a",), "k")
    with pytest.raises(Conflict):
        items.compare_and_put(("a",), "k", {"n": 4}, expect=3)
    assert items.compare_and_put(("a",), "k", {"n": 5}, expect=0) == 5
    for nonsense in (None, -1, True, "1"):
        with pytest.raises(Invalid):
            items.compare_and_put(("a",), "k", {"n": 6}, expect=nonsense)  # type: ignore[arg-type]
    with pytest.raises(Invalid):
        items.compare_and_put(("a",), "k", None, expect=5)  # type: ignore[arg-type]


def test_history_has_every_version_and_the_deletion(items: HoldfastStore, clock: ManualClock) -> None:
    for number in range(3):
        clock.advance(60)
        items.put(("a", "b"), "k", {"n": number})
    items.delete(("a", "b"), "k")
    items.put(("a", "b"), "k", {"n": 9})
    history = items.history(("a", "b"), "k")
    assert [(one.version, one.value, one.deleted) for one in history] == [
        (1, {"n": 0}, False), (2, {"n": 1}, False), (3, {"n": 2}, False), (4, None, True), (5, {"n": 9}, False),
    ]  # fmt: skip
    assert {(one.namespace, one.key) for one in history} == {(("a", "b"), "k")}
    assert history[0].created_at == history[2].created_at < history[2].updated_at < history[4].created_at
    assert items.history(("a",), "never") == []


def test_what_comes_back_after_its_deletion_is_new(items: HoldfastStore, clock: ManualClock) -> None:
    items.put(("a",), "k", {})
    first = items.get(("a",), "k")
    items.delete(("a",), "k")
    clock.advance(3600)
    items.put(("a",), "k", {})
    second = items.get(("a",), "k")
    assert first is not None
    assert second is not None
    assert second.created_at - first.created_at >= timedelta(hours=1)


def test_erasing_leaves_no_history(items: HoldfastStore) -> None:
    items.put(("a",), "k", {"secret": 1})
    items.delete(("a",), "k")
    assert items.erase(("a",), "k") is True
    assert items.history(("a",), "k") == []
    assert items.erase(("a",), "k") is False


def test_an_explanation_shows_what_the_stages_gave(items: HoldfastStore) -> None:
    items.put(("trips",), "kyoto", {"text": "maple gardens"})
    items.put(("trips",), "cairo", {"text": "camels"})
    items.put(("other",), "oslo", {"text": "maple gardens"})
    explained = items.explain(("trips",), "maple gardens")
    found = items.search(("trips",), query="maple gardens")
    assert [one.item.key for one in explained] == keys(found)
    assert explained.found[0].item.score == found[0].score
    assert explained.found[0].item.key == "kyoto"
    assert explained.found[0].why
    assert explained.relevant
    assert explained.report.model == "hash-64"
    assert len(items.explain(("trips",), "maple gardens", limit=1)) == 1
    assert [one.item.key for one in items.explain((), "maple gardens", filter={"text": "camels"})] in (["cairo"], [])


@pytest.mark.every_engine
def test_a_batch_of_puts_is_one_commit(items: HoldfastStore, inner: holdfast.Store) -> None:
    before = len(inner.core.engine.feed("default", 0, 1_000))
    items.batch([PutOp(("a", str(n)), "k", {"n": n}) for n in range(50)])
    assert len(inner.core.engine.feed("default", 0, 1_000)) == before + 1


def test_reads_of_a_batch_see_what_was_before_it(items: HoldfastStore) -> None:
    items.put(("a",), "k", {"n": 1})
    ops: list[Op] = [PutOp(("a",), "k", {"n": 2}), PutOp(("b",), "k", {}), GetOp(("a",), "k"), ListNamespacesOp()]
    _, _, item, spaces = items.batch(ops)
    assert item.value == {"n": 1}
    assert spaces == [("a",)]


@pytest.mark.every_engine
def test_the_latest_come_first(items: HoldfastStore) -> None:
    for key in "abcab":
        items.put(("n",), key, {"key": key})
    assert keys(items.search(("n",))) == ["b", "a", "c"]
    assert keys(items.search(("n",), filter={"key": {"$ne": "b"}})) == ["a", "c"]


# What expires


def test_reading_makes_no_version_and_no_change(items: HoldfastStore, later: Callable[[float], None]) -> None:
    items.put(("a",), "k", {"n": 1}, ttl=10)
    before = items.current(("a",), "k")
    later(5)
    got = items.get(("a",), "k")
    after = items.current(("a",), "k")
    assert before is not None
    assert got is not None
    assert after is not None
    assert got.updated_at == before.updated_at == after.updated_at
    assert after.version == 1
    assert before.expires_at is not None
    assert after.expires_at is not None
    assert timedelta(minutes=5) <= after.expires_at - before.expires_at < timedelta(minutes=5, seconds=1)
    assert len(items.history(("a",), "k")) == 1
    assert items.compare_and_put(("a",), "k", {"n": 2}, expect=1, ttl=10) == 2


def test_what_was_read_is_found_by_a_query_as_long_as_it_lives(
    items: HoldfastStore, later: Callable[[float], None]
) -> None:
    items.put(("a",), "k", {"text": "blue whale"}, ttl=10)
    for _ in range(3):
        later(8)
        assert keys(items.search(("a",), query="blue whale")) == ["k"]
    later(11)
    assert items.search(("a",), query="blue whale") == []


def test_what_expired_takes_no_place_from_what_lives(items: HoldfastStore, later: Callable[[float], None]) -> None:
    items.batch([PutOp(("a",), str(n), {"text": f"blue whale {n}"}, ttl=10) for n in range(1_500)])
    items.put(("a",), "alive", {"text": "a boat that met a whale once, far away from here"})
    later(11)
    assert keys(items.search(("a",), query="blue whale", limit=3)) == ["alive"]


def test_a_store_has_a_ttl_of_its_own(inner: holdfast.Store, later: Callable[[float], None]) -> None:
    items = HoldfastStore(inner, ttl={"default_ttl": 10, "refresh_on_read": False})
    items.put(("a",), "own", {})
    items.put(("a",), "said", {}, ttl=20)
    items.put(("a",), "ever", {}, ttl=None)
    items.compare_and_put(("a",), "cas", {}, expect=0)
    later(9)
    assert len(items.search(("a",))) == 4
    later(2)
    assert sorted(keys(items.search(("a",)))) == ["ever", "said"]
    later(10)
    assert keys(items.search(("a",))) == ["ever"]


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), 1e12, True, "1"])
def test_a_ttl_that_means_nothing_is_refused(ttl: Any) -> None:
    with holdfast.open("ram:", embedder="none") as inner:
        with pytest.raises(Invalid, match="ttl"):
            HoldfastStore(inner).put(("a",), "k", {}, ttl=ttl)
        with pytest.raises(Invalid, match="ttl"):
            HoldfastStore(inner, ttl={"default_ttl": ttl})


@pytest.mark.every_engine
def test_a_sweep_removes_what_expired_and_nothing_else(
    items: HoldfastStore, inner: holdfast.Store, later: Callable[[float], None]
) -> None:
    elsewhere = inner.folder("other")
    elsewhere.write("k", "text", expires=1)
    for number in range(30):
        items.put(("a", str(number % 3)), str(number), {"n": number}, ttl=None if number % 10 else 10)
    items.put(("a",), "gone", {})
    items.delete(("a",), "gone")
    assert items.sweep_ttl() == 0
    later(11)
    assert items.sweep_ttl() == 3
    assert items.sweep_ttl() == 0
    assert items.history(("a", "0"), "0") == []
    assert len(items.history(("a",), "gone")) == 2
    assert len(items.search((), limit=100)) == 27
    assert elsewhere.history("k") != []


class Watched(HoldfastStore):
    """Says when a sweep removed something, and fails the first."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.sweeps, self.removed = 0, threading.Event()

    def sweep_ttl(self) -> Any:
        self.sweeps += 1
        if self.sweeps == 1:
            raise Conflict("a disk that was full")
        if swept := super().sweep_ttl():
            self.removed.set()
        return swept


MOMENT: Any = 0.001 / 60


@pytest.mark.every_engine
def test_a_sweeper_sweeps_until_the_store_is_closed(
    inner: holdfast.Store, later: Callable[[float], None], caplog: pytest.LogCaptureFixture
) -> None:
    with Watched(inner, ttl={"default_ttl": 10, "sweep_interval_minutes": MOMENT}) as items:
        items.put(("a",), "k", {"n": 1})
        later(11)
        sweeper = items.start_ttl_sweeper()
        assert items.start_ttl_sweeper() is sweeper
        assert items.removed.wait(60)
        assert items.history(("a",), "k") == []
        assert "a disk that was full" in caplog.text
    assert sweeper.result(60) is None
    assert not [thread for thread in threading.enumerate() if thread.name == "holdfast-sweeper"]


def test_a_sweeper_is_stopped_or_cancelled_and_starts_again(store: holdfast.Store) -> None:
    items = HoldfastStore(store)
    assert items.stop_ttl_sweeper() == True  # noqa: E712 - a number that is true
    first = items.start_ttl_sweeper(60)
    assert items.stop_ttl_sweeper(60)
    assert first.done()
    second = items.start_ttl_sweeper(1e9)  # longer than a thread can wait
    assert second is not first
    assert second.cancel()
    third = items.start_ttl_sweeper(60)
    assert third is not second
    items.close()
    assert third.result(60) is None
    with pytest.raises(Invalid, match="sweep_interval_minutes is a number of minutes over 0"):
        items.start_ttl_sweeper(0)


def test_a_sweeper_ends_when_the_store_beneath_is_closed() -> None:
    with holdfast.open("ram:", embedder="none") as inner:
        sweeper = HoldfastStore(inner).start_ttl_sweeper(MOMENT)
    assert sweeper.result(60) is None


def test_an_async_program_may_await_what_langgraphs_async_stores_await(clock: ManualClock) -> None:
    async def program(items: HoldfastStore) -> None:
        await items.aput(("a",), "k", {}, ttl=1)
        clock.advance(61)
        sweeper = await items.start_ttl_sweeper(60)
        assert await items.sweep_ttl() == 1
        assert await items.asweep_ttl() == 0
        assert await items.stop_ttl_sweeper()
        assert sweeper.done()

    with holdfast.open("ram:", clock=clock, embedder="none") as inner:
        asyncio.run(program(HoldfastStore(inner)))


# Names and values


@pytest.mark.every_engine
def test_labels_and_keys_of_every_kind(items: HoldfastStore) -> None:
    names = ["a.b", "a/b", "a%2Fb", "%", "%25", "a\x00b", "", "/", "日本", "e\u0301", "\u00e9", "*", " ", "\\", "'"]
    labels = [name for name in names if name and "." not in name and "\x00" not in name]  # as LangGraph has it
    spaces = [(label,) for label in labels] + [(label, label) for label in labels]
    items.batch([PutOp(space, key, {"at": [*space, key]}) for space in spaces for key in names])
    got = items.batch([GetOp(space, key) for space in spaces for key in names])
    assert [item.value["at"] for item in got] == [[*space, key] for space in spaces for key in names]
    assert items.batch([ListNamespacesOp(limit=1_000)])[0] == sorted(spaces)
    for label in labels:
        found = items.batch([SearchOp((label,), limit=1_000)])[0]
        assert {item.namespace for item in found} == {(label,), (label, label)}
        assert len(found) == 2 * len(names)


@pytest.mark.parametrize("value", [{"x": "\ud800"}, {"\udfff": 1}, {"x": {"y": ["\ud800"]}}])
def test_a_lone_surrogate_is_refused_where_it_stands(items: HoldfastStore, value: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="surrogate"):
        items.put(("a",), "k", value)
    with pytest.raises(Invalid, match="surrogate"):
        items.put(("a\ud800",), "k", {})
    with pytest.raises(Invalid, match="surrogate"):
        items.put(("a",), "\ud800", {})
    assert items.search(()) == []


@pytest.mark.every_engine
def test_nul_characters_are_kept(items: HoldfastStore) -> None:
    value = {"a\x00b": "c\x00", "list": ["\x00"]}
    items.put(("a",), "k\x00", value)
    assert items.get(("a",), "k\x00").value == value  # type: ignore[union-attr]
    assert keys(items.search(("a",), filter={"a\x00b": "c\x00"})) == ["k\x00"]
    items.search(("a",), query="c\x00 a")


def cyclic() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": {"when": timedelta(1)}}, r"the value of 'k' in \('n',\)\.a\.when: timedelta"),
        ({"a": [1, {2}]}, r"\.a\[1\]: set"),
        ({"a": float("nan")}, r"\.a: nan"),
        ({"a": 2**70}, r"\.a: an integer over 64 bits"),
        ({1: "a"}, "the key 1 is int"),
        (cyclic(), "nested deeper"),
        ([1], "is a dict, not list"),
        ("text", "is a dict, not str"),
    ],
)
def test_a_value_that_is_no_plain_data_is_refused_by_its_path(value: Any, said: str) -> None:
    with holdfast.open("ram:", embedder="none") as inner:
        items = HoldfastStore(inner)
        items.put(("n",), "k", {"n": 1})
        with pytest.raises(Invalid, match=said):
            items.batch([PutOp(("n",), "other", {}), PutOp(("n",), "k", value)])
        assert items.search(("n",))[0].value == {"n": 1}
        assert len(items.search(("n",))) == 1


def test_what_is_too_long_says_how_long_it_may_be(store: holdfast.Store) -> None:
    items = HoldfastStore(store)
    items.put(("a" * 200, "b" * 200), "c" * 77, {"n": 1})
    assert items.get(("a" * 200, "b" * 200), "c" * 77) is not None
    with pytest.raises(Invalid, match="480 bytes; at most 479"):
        items.put(("a" * 200, "b" * 200), "c" * 78, {})
    with pytest.raises(TooLarge):
        items.put(("a",), "k", {"text": "x" * 17_000_000})


@pytest.mark.parametrize(
    "op",
    [
        PutOp((), "k", {}),
        PutOp(("",), "k", {}),
        PutOp(("a", 1), "k", {}),
        PutOp(("a.b",), "k", None),
        GetOp(("a", ""), "k"),
        GetOp(("a\x00",), "k"),
        SearchOp(("",)),
        SearchOp((1,)),
        SearchOp("users"),  # type: ignore[arg-type]
        ListNamespacesOp((MatchCondition("suffix", ("a.b",)),)),
    ],
)
@pytest.mark.parametrize("error", [Invalid, InvalidNamespaceError])
def test_a_namespace_of_an_operation_is_looked_at_too(op: Op, error: type[Exception]) -> None:
    with holdfast.open("ram:", embedder="none") as inner:
        items = HoldfastStore(inner)
        with pytest.raises(error):
            items.batch([PutOp(("valid",), "k", {}), op])
        assert items.search(()) == []


def test_what_put_refuses_is_refused_with_a_version_too(store: holdfast.Store) -> None:
    items = HoldfastStore(store)
    for namespace in ((), ("",), ("a.b",), ("langgraph", "a")):
        with pytest.raises(InvalidNamespaceError):
            items.put(namespace, "k", {})
        with pytest.raises(InvalidNamespaceError):
            items.compare_and_put(namespace, "k", {}, expect=0)
    assert items.search(()) == []


@pytest.mark.parametrize(
    "op",
    [
        GetOp(("a",), 1),  # type: ignore[arg-type]
        PutOp(("a",), "k", {}, index="text"),  # type: ignore[arg-type]
        PutOp(("a",), "k", {}, index=[1]),  # type: ignore[list-item]
        PutOp(("a",), "k", {}, index=True),  # type: ignore[arg-type]
        SearchOp(("a",), limit=-1),
        SearchOp(("a",), offset=-1),
        SearchOp(("a",), limit="1"),  # type: ignore[arg-type]
        SearchOp(("a",), filter=["x"]),  # type: ignore[arg-type]
        SearchOp(("a",), filter={1: "x"}),  # type: ignore[dict-item]
        SearchOp(("a",), filter={"x": {"$gt": [1]}}),
        SearchOp(("a",), filter={"x": {"$in": [1]}}),
        SearchOp(("a",), filter={"x": {"deep": {"$no": 1}}}),
        SearchOp(("a",), filter={"x": {"$regex": ".*"}}, query="blue"),
        ListNamespacesOp(max_depth=0),
        ListNamespacesOp(limit=-1),
        ListNamespacesOp((MatchCondition("infix", ("a",)),)),  # type: ignore[arg-type]
        "get",
    ],
)
def test_nonsense_is_refused_and_nothing_of_its_batch_is_done(op: Any) -> None:
    with holdfast.open("ram:", embedder="none") as inner:
        items = HoldfastStore(inner)
        items.put(("a",), "here", {"x": 1})
        with pytest.raises(Invalid):
            items.batch([PutOp(("a",), "new", {}), op])
        assert keys(items.search(("a",))) == ["here"]


def test_filters_compare_as_json_does(store: holdfast.Store) -> None:
    items = HoldfastStore(store)
    values: dict[str, Any] = {"true": True, "one": 1, "float": 1.0, "text": "1", "none": None, "list": [1, {"a": 2}]}
    for key, value in values.items():
        items.put(("a",), key, {"x": value})
    items.put(("a",), "deep", {"x": {"y": {"z": 5, "more": 0}}})
    items.put(("a",), "absent", {})

    def found(wanted: Any) -> list[str]:
        return sorted(keys(items.search(("a",), filter={"x": wanted}, limit=100)))

    assert found(True) == ["true"]
    assert found(1) == found(1.0) == found({"$eq": 1}) == ["float", "one"]
    assert found("1") == ["text"]
    assert found(None) == ["absent", "none"]
    assert found([1, {"a": 2}]) == found((1, {"a": 2})) == ["list"]
    assert found([1]) == found({"$eq": {"y": {"z": 5}}}) == []
    assert found({"y": {"z": {"$gt": 4}}}) == found({"$eq": {"y": {"z": 5, "more": 0}}}) == ["deep"]
    assert found({"$gte": 0}) == ["float", "one"]
    assert found({"$gte": ""}) == ["text"]
    assert len(found({"$ne": 1})) == 6


def test_a_filter_takes_a_path_with_dots(store: holdfast.Store) -> None:
    items = HoldfastStore(store)
    items.put(("a",), "nested", {"x": {"y": {"z": 5}, "p.q": 7}})
    items.put(("a",), "literal", {"x.y.z": 6, "x": {"y": {"z": 5}}})
    items.put(("a",), "text", {"x": "y"})

    def found(wanted: Any) -> list[str]:
        return sorted(keys(items.search(("a",), filter=wanted)))

    assert found({"x.y.z": 5}) == ["nested"]
    assert found({"x.y.z": 6}) == ["literal"]  # a field of that very name comes first
    assert found({"x.y.z": {"$gte": 5}}) == ["literal", "nested"]
    assert found({"x.y": {"z": 5}}) == found({"x": {"y.z": 5}}) == ["literal", "nested"]
    assert found({"x.p.q": 7}) == ["nested"]
    assert found({"x.y.z": None}) == found({"x.": None, "x.y.z": None}) == ["text"]
    with pytest.raises(Invalid, match=r"filter 'x\.y': there is no operator '\$in'"):
        found({"x": {"y": {"$in": [1]}}})


# Many


def test_ten_thousand_items_in_a_thousand_namespaces(tmp_path: Path) -> None:
    with HoldfastStore(tmp_path / "agent.db") as items:
        for block in range(10):
            items.batch(
                [
                    PutOp(
                        (f"org{n % 10}", f"team{n // 10 % 10}", f"user{n // 100 % 10}"),
                        str(n),
                        {"n": n, "word": f"w{n}"},
                    )
                    for n in range(block * 1_000, block * 1_000 + 1_000)
                ]
            )
        spaces = items.list_namespaces(limit=2_000)
        assert len(spaces) == len(set(spaces)) == 1_000
        assert len(items.list_namespaces(prefix=("org3",), limit=2_000)) == 100
        assert len(items.list_namespaces(prefix=("*", "team4"), suffix=("user7",), limit=2_000)) == 10
        assert len(items.list_namespaces(max_depth=2, limit=2_000)) == 100
        below = items.search(("org3", "team4"), limit=1_000)
        assert sorted(item.value["n"] for item in below) == [n for n in range(10_000) if n % 100 == 43]
        assert len(items.search((), filter={"n": {"$lt": 250}}, limit=1_000)) == 250
        assert keys(items.search(("org3",), query="w4543", limit=1)) == ["4543"]
        assert "4543" not in keys(items.search(("org4",), query="w4543", limit=5))
        assert keys(items.search((), query="w77 w78", filter={"n": 77}, limit=1)) == ["77"]


def test_many_awaited_at_once(store: holdfast.Store) -> None:
    items = HoldfastStore(store)

    async def crowd() -> None:
        await asyncio.gather(*(items.aput(("a", str(n % 10)), str(n), {"n": n}) for n in range(300)))
        assert len(await items.asearch(("a",), limit=1_000)) == 300
        assert await items.acompare_and_put(("a", "0"), "0", {"n": -1}, expect=1) == 2
        current = await items.acurrent(("a", "0"), "0")
        assert current is not None
        assert current.version == 2
        assert len(await items.ahistory(("a", "0"), "0")) == 2
        assert [one.item.key for one in await items.aexplain(("a",), "n -1", limit=1)]
        assert await items.aerase(("a", "0"), "0")
        assert await items.asweep_ttl() == 0

    asyncio.run(crowd())


class Batched(AsyncBatchedBaseStore):
    """What LangGraph builds around a store to gather what is asked for in one tick."""

    def __init__(self, inner: HoldfastStore) -> None:
        super().__init__()
        self.inner, self.batches = inner, 0

    async def abatch(self, ops: Any) -> list[Any]:
        self.batches += 1
        return await self.inner.abatch(ops)


def test_what_is_gathered_in_one_tick_is_one_batch(store: holdfast.Store) -> None:
    async def crowd() -> None:
        batched = Batched(HoldfastStore(store))
        await asyncio.gather(*(batched.aput(("a",), str(n % 50), {"n": n}) for n in range(200)))
        assert batched.batches == 1
        found = await asyncio.gather(*(batched.aget(("a",), str(n)) for n in range(50)))
        assert [item.value["n"] for item in found if item is not None] == list(range(150, 200))

    asyncio.run(crowd())


def test_a_cancelled_caller_leaves_all_or_nothing(tmp_path: Path) -> None:
    async def cut() -> None:
        with HoldfastStore(tmp_path / "agent.db") as items:
            for number in range(20):
                ops = [PutOp(("a", str(number)), str(n), {"n": n}) for n in range(20)]
                task = asyncio.create_task(items.abatch(ops))
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert len(await items.asearch(("a", str(number)), limit=100)) in (0, 20)

    asyncio.run(cut())


# Where it is kept


def test_folders_and_owners_are_apart(inner: holdfast.Store) -> None:
    common, ana = HoldfastStore(inner), HoldfastStore(inner, user="ana")
    other, agent = HoldfastStore(inner, folder="other"), HoldfastStore(inner, agent="travel")
    for number, items in enumerate([common, ana, other, agent]):
        items.put(("a",), "k", {"n": number, "text": "blue whale"})
    for number, items in enumerate([common, ana, other, agent]):
        assert [item.value["n"] for item in items.search(())] == [number]
        assert [item.value["n"] for item in items.search((), query="blue whale")] == [number]
    inner.erase(user="ana")
    assert ana.search(()) == []
    assert ana.search((), query="blue whale") == []
    assert len(common.search(())) == 1


@pytest.mark.every_engine
def test_what_is_kept_is_sound_and_travels(inner: holdfast.Store, later: Callable[[float], None]) -> None:
    items = HoldfastStore(inner)
    items.put(("a",), "k", {"text": "blue whale"}, ttl=10)
    items.put(("a",), "k", {"text": "blue whale again"}, ttl=10)
    later(5)
    items.get(("a",), "k")
    items.search((), query="blue whale")
    items.delete(("a",), "k")
    items.put(("b",), "k", {"n": 1})
    later(60)
    assert inner.verify().ok


def test_an_address_is_opened_and_closed(tmp_path: Path) -> None:
    with HoldfastStore(str(tmp_path / "agent.db")) as items:
        items.put(("a",), "k", {"n": 1})

    async def read() -> Any:
        async with HoldfastStore(tmp_path / "agent.db") as again:
            return await again.aget(("a",), "k")

    assert asyncio.run(read()).value == {"n": 1}
    with holdfast.open(tmp_path / "agent.db") as inner:
        with HoldfastStore(inner):
            pass
        assert inner.folder("langgraph").paths() == ["a/k"]
    with pytest.raises(Invalid):
        HoldfastStore(7)  # type: ignore[arg-type]


def test_an_index_says_what_is_searched(store: holdfast.Store) -> None:
    items = HoldfastStore(store, index={"fields": ["title"]})
    items.put(("a",), "one", {"title": "blue whale", "body": "camels"})
    items.put(("a",), "two", {"title": "maple", "body": "blue whale"})
    items.put(("a",), "three", {"title": "maple", "body": "desert camels"}, index=["body"])
    assert items.search(("a",), query="whale")[0].key == "one"
    assert items.search(("a",), query="camels")[0].key == "three"
    HoldfastStore(store, index={})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"index": {"dims": 3, "embed": len}}, r"holdfast\.open\(address, embedder=…\)"),
        ({"index": {"dims": 3, "fields": ["a"]}}, "leave out dims and embed"),
        ({"index": {"field": ["a"]}}, "no 'field'; there are dims, embed, fields"),
        ({"index": ["a"]}, "index is a dict such as"),
        ({"index": {"fields": "title"}}, "a list of fields, not 'title'"),
        ({"ttl": 60}, r'ttl is a dict such as \{"default_ttl": 60\}, not 60'),
        ({"ttl": {"default": 60}}, "no 'default'; there are default_ttl, omit_expired, refresh_on_read"),
        ({"ttl": {"default_ttl": 0}}, "default_ttl is a number of minutes over 0"),
        ({"ttl": {"sweep_interval_minutes": "1"}}, "sweep_interval_minutes is a number of minutes over 0"),
        ({"ttl": {"default_ttl": 5, "refresh_on_read": "no"}}, "refresh_on_read is True or False, not 'no'"),
        ({"folder": ""}, "folder"),
        ({"user": ""}, "user"),
    ],
)
def test_a_store_that_could_not_be_meant_is_refused_and_nothing_stays_open(
    options: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[holdfast.Store] = []

    def opening(given: str) -> holdfast.Store:
        made.append(holdfast.open(given))
        return made[-1]

    monkeypatch.setattr("holdfast.extension.open_store", opening)
    with pytest.raises(Invalid, match=said):
        HoldfastStore("ram:", **options)
    for one in made:
        with pytest.raises(Misconfigured):
            one.threads()


def test_a_text_is_no_namespace(store: holdfast.Store) -> None:
    items = HoldfastStore(store)
    items.put(("users",), "k", {"n": 1})
    for attempt in (
        lambda: items.put("users", "k", {"n": 2}),  # type: ignore[arg-type]
        lambda: items.get("users", "k"),  # type: ignore[arg-type]
        lambda: items.delete("users", "k"),  # type: ignore[arg-type]
        lambda: items.search("users"),  # type: ignore[arg-type]
        lambda: items.list_namespaces(prefix="users"),  # type: ignore[arg-type]
        lambda: items.list_namespaces(suffix="users"),  # type: ignore[arg-type]
    ):
        with pytest.raises(Invalid, match=r"tuple of labels, not 'users': write \('users',\)"):
            attempt()
    assert items.list_namespaces() == [("users",)]
    items.batch([PutOp(["users", "ana"], "k", {"n": 3})])  # type: ignore[arg-type]
    assert items.get(("users", "ana"), "k") is not None


def test_a_file_holds_the_value_and_what_else_is_needed(clock: ManualClock) -> None:
    with holdfast.open("ram:", clock=clock, embedder="none") as inner:
        items, folder = HoldfastStore(inner), inner.folder("langgraph")

        def kept(key: str) -> Any:
            return folder.read(f"a/{key}").content

        items.put(("a",), "plain", {"text": "likes tea", "n": (1, 2)})
        assert kept("plain") == {"value": {"text": "likes tea", "n": [1, 2]}}
        items.put(("a",), "one field", {"text": "likes tea", "secret": "x"}, index=["text"])
        assert kept("one field") == {"value": {"text": "likes tea", "secret": "x"}, "text": "likes tea"}
        items.put(("a",), "unseen", {"text": "likes tea"}, index=False)
        assert kept("unseen") == {"value": {"text": "likes tea"}, "text": None}
        items.put(("a",), "mortal", {"text": "likes tea", "n": 1}, ttl=5)
        assert kept("mortal") == {"value": {"text": "likes tea", "n": 1}, "text": "text: likes tea\nn: 1", "ttl": 5}
        items.delete(("a",), "plain")
        clock.advance(60)
        items.put(("a",), "plain", {"text": "likes tea"})
        again = items.get(("a",), "plain")
        assert again is not None
        assert kept("plain") == {
            "value": {"text": "likes tea"}, "text": "likes tea", "created": again.created_at.isoformat()
        }  # fmt: skip
        clock.advance(60)
        items.put(("a",), "plain", {"text": "likes coffee"})
        assert items.get(("a",), "plain").created_at == again.created_at  # type: ignore[union-attr]
        found = items.search(("a",), query="tea")
        assert {item.key for item in found} >= {"one field", "mortal"}
        assert "unseen" not in keys(found)


def test_of_two_who_put_a_new_item_at_once_both_say_when_it_came_into_being(store: holdfast.Store) -> None:
    one, other = HoldfastStore(store), HoldfastStore(store)
    late = one._changes({"a/k": PutOp(("a",), "k", {"n": 1})})
    other.put(("a",), "k", {"n": 2})
    first = other.get(("a",), "k")
    one._folder.commit(late)
    second = one.get(("a",), "k")
    assert first is not None
    assert second is not None
    assert (second.value, second.created_at) == ({"n": 1}, first.created_at)


@pytest.mark.parametrize("engine", ["ram:", "sqlite:agent.db"])
def test_what_was_swept_is_in_no_saved_index(
    engine: str, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("holdfast.retrieval.index.SAVE_AT", 24)
    with holdfast.open(engine, clock=clock, embedder="none") as store:
        _swept(store, clock)


def _swept(store: holdfast.Store, clock: ManualClock) -> None:
    items = HoldfastStore(store)
    items.batch([PutOp(("a",), str(n), {"text": f"animal{n}"}) for n in range(40)])
    items.put(("a",), "secret", {"text": "quokka"}, ttl=10)
    assert items.search(("a",), query="quokka")[0].key == "secret"

    assert store.core.engine.scan(store.tenant, Query("index", limit=1))
    clock.advance(11 * 60)
    assert items.sweep_ttl() == 1
    assert not [item for item in items.search(("a",), query="quokka") if item.key == "secret"]
    assert store.verify().ok  # what is saved of an index is what would be made now


PROCESS = """
import sys
from holdfast.adapters.langgraph.store import HoldfastStore
with HoldfastStore(sys.argv[1]) as items:
    items.put(("users", "ana"), "diet", {"text": "Ana eats no meat"}, ttl=10_000)
    items.put(("users", "bob"), "diet", {"text": "Bob eats everything"})
    items.compare_and_put(("users", "ana"), "diet", {"text": "Ana is vegan since May"}, expect=1)
"""


def test_another_process_finds_what_one_left(tmp_path: Path) -> None:
    file = tmp_path / "agent.db"
    subprocess.run([sys.executable, "-c", PROCESS, str(file)], check=True, timeout=120)
    with HoldfastStore(file) as items:
        assert keys(items.search(("users", "ana"), query="vegan")) == ["diet"]
        assert [one.version for one in items.history(("users", "ana"), "diet")] == [1, 2]
        assert items.list_namespaces() == [("users", "ana"), ("users", "bob")]
