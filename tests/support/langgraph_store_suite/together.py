"""What a store promises to many at once: callers that await, and callers in threads."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from langgraph.store.base import BaseStore, GetOp, ListNamespacesOp, PutOp, SearchOp

from langgraph_store_suite.scene import Run, Scene, keys, needs, value_at


@needs("async")
class AsyncPromises(Scene):
    """Promises about the calls that are awaited."""

    def test_the_awaited_calls_do_the_same(self, store: BaseStore, run: Run) -> None:
        """Each call that blocks has one that is awaited, with the same outcome."""

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

    def test_many_at_once_lose_nothing(self, store: BaseStore, run: Run) -> None:
        """A hundred puts that wait side by side are all stored."""

        async def crowd() -> list[Any]:
            await asyncio.gather(*(store.aput(("a", str(n % 5)), str(n), {"n": n}) for n in range(100)))
            return list(await asyncio.gather(*(store.aget(("a", str(n % 5)), str(n)) for n in range(100))))

        assert [item.value["n"] for item in run(crowd())] == list(range(100))

    def test_a_batch_is_awaited_as_a_whole(self, store: BaseStore, run: Run) -> None:
        """When ``abatch`` returns, all of it was done, and the last put of a key won."""

        async def work() -> list[Any]:
            await store.abatch([PutOp(("a",), "k", {"n": number}) for number in range(5)])
            return list(await store.abatch([GetOp(("a",), "k"), SearchOp(("a",)), ListNamespacesOp()]))

        item, found, spaces = run(work())
        assert item.value == {"n": 4}
        assert keys(found) == ["k"]
        assert spaces == [("a",)]

    @needs("sync")
    def test_both_ways_see_the_same(self, store: BaseStore, run: Run) -> None:
        """What was put by a call that blocks is got by one that is awaited, and the other way round."""
        store.put(("a",), "k", {"n": 1})

        async def change() -> Any:
            item = await store.aget(("a",), "k")
            assert item is not None
            await store.aput(("a",), "k", {"n": item.value["n"] + 1})

        run(change())
        assert value_at(store, ("a",), "k") == {"n": 2}


@needs("sync")
class ThreadPromises(Scene):
    """Promises about one store in several threads."""

    def test_threads_lose_nothing_of_each_other(self, store: BaseStore) -> None:
        """Each reads what it has just put, and in the end everything is there."""

        def work(me: int) -> list[int]:
            seen = []
            for number in range(25):
                store.put(("a", str(me)), str(number), {"n": number})
                seen.append(value_at(store, ("a", str(me)), str(number))["n"])
            return seen

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(work, range(8))) == [list(range(25))] * 8
        assert len(store.search(("a",), limit=500)) == 200
