"""Many tenants on one engine: a wall between them, a store for each, and quotas."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import holdfast
from holdfast import aio
from holdfast.errors import Invalid, Misconfigured, QuotaExceeded

pytestmark = pytest.mark.every_engine  # order, clocks and other processes are the engine's


def said(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def test_a_store_for_another_tenant_shares_the_engine_and_nothing_else(store: holdfast.Store) -> None:
    acme = store.for_tenant("acme")
    assert acme.core.engine is store.core.engine
    acme.thread("t").append(said("acme"))
    store.thread("t").append(said("ours"))
    acme.memory(user="ana").remember("likes tea")
    assert [entry.content["content"] for entry in acme.thread("t").log()] == ["acme"]
    assert [entry.content["content"] for entry in store.thread("t").log()] == ["ours"]
    assert store.memory(user="ana").recall("tea").hits == ()
    assert acme.memory(user="ana").recall("tea").hits
    assert acme.feed_head() == 2
    assert set(store.tenants()) >= {"acme", store.tenant}


def test_tenants_are_verified_apart(tmp_path: Path) -> None:
    import apsw  # noqa: PLC0415

    with holdfast.open(tmp_path / "s.db", embedder="none") as store:
        store.thread("t").append(said("one"))
        store.for_tenant("acme").thread("t").append(said("two"))
        connection = apsw.Connection(str(tmp_path / "s.db"))
        connection.execute(
            "UPDATE events SET body = x'00' WHERE tenant = (SELECT num FROM tenants WHERE name = 'acme')"
        )
        connection.close()
        assert store.verify(tenant=store.tenant).problems == ()
        assert store.verify(tenant="acme").problems
        assert store.verify().problems


def test_a_tenants_store_ends_with_the_one_it_came_from(tmp_path: Path) -> None:
    store = holdfast.open(tmp_path / "s.db", embedder="none")
    acme = store.for_tenant("acme")
    acme.thread("t").run("r")
    acme.close()
    store.thread("t").append(said("still open"))
    other = store.for_tenant("other")
    store.close()
    with pytest.raises(Misconfigured):
        other.thread("t").append(said("late"))


def test_async_tenants(tmp_path: Path) -> None:
    async def work() -> None:
        async with aio.open(tmp_path / "s.db", embedder="none") as store:
            acme = store.for_tenant("acme", actor="key")
            await acme.thread("t").append(said("one"))
            await acme.set_quota(entries=1)
            with pytest.raises(QuotaExceeded):
                await acme.thread("t").append(said("two"))
            assert (await acme.usage()).entries is not None
            await acme.close()
            assert await store.tenants() == ["acme"]
            assert [commit.actor async for commit in acme.watch(timeout_s=0)] == ["key", "key"]

    asyncio.run(work())


def test_nothing_of_a_turn_over_quota_is_written(store: holdfast.Store) -> None:
    thread = store.thread("t")
    thread.append(said("one"))
    thread.save({"x": 1})
    store.set_quota(entries=2)
    head = store.feed_head()

    def too_much() -> None:
        with thread.turn() as turn:
            turn.append(said("two"))
            turn.append(said("three"))
            turn.save({"x": 2})

    with pytest.raises(QuotaExceeded) as caught:
        too_much()
    assert (caught.value.most, caught.value.used) == (2, 1)
    assert (thread.logbook.head(), thread.state().value, store.feed_head()) == (1, {"x": 1}, head)
    thread.append(said("two"))
    usage = store.usage().entries
    assert usage is not None
    assert (usage.used, usage.most) == (2, 2)


def test_quotas_of_memories_and_bytes(store: holdfast.Store) -> None:
    memory = store.memory(user="ana")
    memory.remember("one")
    store.set_quota(memories=2)
    memory.remember("two")
    with pytest.raises(QuotaExceeded):
        memory.remember("three")
    store.set_quota(memories=None, bytes=100_000)
    memory.remember("three")
    with pytest.raises(QuotaExceeded):
        store.thread("t").append(said("x" * 100_000))
    assert store.usage().memories is None
    store.erase(user="ana")
    assert store.verify(tenant=store.tenant).problems == ()


def test_recall_works_for_a_tenant_that_is_full(store: holdfast.Store) -> None:
    memory = store.memory(user="ana")
    memory.remember("likes tea")
    store.set_quota(bytes=1, entries=0, memories=0)
    assert memory.recall("tea").hits


@pytest.mark.parametrize("most", [-1, 1.5, "many", True])
def test_a_quota_that_is_none_is_refused(store: holdfast.Store, most: object) -> None:
    with pytest.raises(Invalid):
        store.set_quota(entries=most)  # type: ignore[arg-type]


@pytest.mark.parametrize("tenant", ["", 5, None, "a\x00b"])
def test_a_tenant_needs_a_name(store: holdfast.Store, tenant: object) -> None:
    with pytest.raises(Invalid):
        store.for_tenant(tenant)  # type: ignore[arg-type]
