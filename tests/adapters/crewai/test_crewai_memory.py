"""CrewAI's memory on Holdfast: the real ``Memory`` with an embedder of its own, and the backend by itself."""

from __future__ import annotations

import asyncio
import copy
import json
import math
import random
import struct
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from crewai import Agent, Crew, Memory, Task
from crewai.llms.base_llm import BaseLLM
from crewai.memory.storage.backend import EmbeddingDimensionMismatchError, StorageBackend
from crewai.memory.storage.factory import resolve_memory_storage
from crewai.memory.types import MemoryRecord
from pydantic import Field

import holdfast
from holdfast.adapters.crewai import HoldfastStorage, install, uninstall
from holdfast.engine.contract import Scope
from holdfast.errors import Corrupt, Invalid, Misconfigured

Embed = Callable[[list[str]], list[list[float]]]
NOON = datetime(2026, 5, 1, 12, 0)


class Scripted(BaseLLM):
    """A language model that says what it was told to, offline."""

    answers: list[str] = Field(default_factory=list)

    def call(self, messages: Any, *args: Any, **kwargs: Any) -> str:
        return self.answers.pop(0)


def f32(*numbers: float) -> list[float]:
    """Numbers as four bytes hold them."""
    return [struct.unpack("<f", struct.pack("<f", one))[0] for one in numbers]


def record(text: str = "a text", embedding: list[float] | None = None, **fields: Any) -> MemoryRecord:
    return MemoryRecord(content=text, embedding=f32(1, 0) if embedding is None else embedding, **fields)


def texts(records: list[MemoryRecord]) -> list[str]:
    return sorted(one.content for one in records)


@pytest.fixture
def storage(store: holdfast.Store) -> HoldfastStorage:
    return HoldfastStorage(store, user="ana")


# Through CrewAI's own memory


def make_memory(storage: HoldfastStorage, embed: Embed, *answers: str) -> Memory:
    return Memory(storage=storage, embedder=embed, llm=Scripted(model="scripted", answers=list(answers)))


def test_what_is_remembered_is_recalled(storage: HoldfastStorage, embed: Embed) -> None:
    memory = make_memory(storage, embed)
    try:
        for text, scope in (
            ("Ana prefers an aisle seat", "/travel/seats"),
            ("Ana eats no fish", "/travel/food"),
            ("The office closes at six", "/office"),
        ):
            memory.remember(text, scope=scope, categories=["fact"], metadata={"by": "desk"}, importance=0.5)
        found = memory.recall("which seat does Ana want", depth="shallow", limit=2)
        assert found[0].record.content == "Ana prefers an aisle seat"
        near = memory.recall("which seat does Ana want", scope="/office", depth="shallow")
        assert [hit.record.content for hit in near] == ["The office closes at six"]
        assert memory.list_scopes("/") == ["/office", "/travel"]
        assert memory.info("/travel").record_count == 2
        assert "/travel (2 records)" in memory.tree()
        assert memory.forget(scope="/travel/food") == 1
        assert texts(memory.list_records()) == ["Ana prefers an aisle seat", "The office closes at six"]
    finally:
        memory.close()


def test_a_deep_recall_looks_through_the_scopes(storage: HoldfastStorage, embed: Embed) -> None:
    memory = make_memory(storage, embed)
    try:
        memory.remember("Ana prefers an aisle seat", scope="/travel", categories=[], importance=0.5)
        memory.remember("The office closes at six", scope="/office", categories=[], importance=0.5)
        found = memory.recall("office closes at six")
        assert found[0].record.content == "The office closes at six"
    finally:
        memory.close()


def test_what_is_brought_together_keeps_its_id_and_its_history(storage: HoldfastStorage, embed: Embed) -> None:
    """A near repetition makes CrewAI ask its model, which here wants the old record changed and no new one."""
    memory = make_memory(storage, embed)
    try:
        first = memory.remember("Ana likes aisle seats", scope="/a", categories=["seat"], importance=0.6)
        assert first is not None
        memory._llm_instance.answers = [  # type: ignore[union-attr]
            '{"insert_new": false, "actions": [{"action": "update", "record_id": "'
            + first.id
            + '", "new_content": "Ana likes aisle seats on the left"}]}'
        ]
        memory.remember("Ana likes aisle seats", scope="/a", categories=["seat"], importance=0.6)
        [kept] = memory.list_records()
        assert (kept.id, kept.content) == (first.id, "Ana likes aisle seats on the left")
        assert kept.embedding == pytest.approx(embed([kept.content])[0], abs=1e-7)
        versions = storage._folder.history(f"record/{first.id}")
        assert [version.content["text"] for version in versions] == [first.content, kept.content]
    finally:
        memory.close()


def test_an_update_by_hand_keeps_the_vector_as_it_is(storage: HoldfastStorage, embed: Embed) -> None:
    memory = make_memory(storage, embed)
    try:
        made = memory.remember("Ana likes aisle seats", scope="/a", categories=[], importance=0.6)
        assert made is not None
        memory.update(made.id, categories=["seat"], metadata={"seen": 2})
        again = storage.get_record(made.id)
        assert again is not None
        assert (again.categories, again.metadata) == (["seat"], {"seen": 2})
        assert again.embedding == pytest.approx(made.embedding, abs=1e-7)
        assert len(storage._folder.history(f"vector/{made.id}")) == 1
        assert memory.recall("aisle seats", depth="shallow")[0].record.id == made.id
    finally:
        memory.close()


def test_recalling_writes_nothing(storage: HoldfastStorage, embed: Embed) -> None:
    memory = make_memory(storage, embed)
    try:
        memory.remember("Ana likes aisle seats", scope="/a", categories=[], importance=0.6)
        before = [(file.path, file.version) for file in storage._folder.files()]
        assert memory.recall("aisle seats", depth="shallow")
        assert [(file.path, file.version) for file in storage._folder.files()] == before
    finally:
        memory.close()


class Clerk(BaseLLM):
    """A model for a whole crew: it answers, says what is worth keeping, and where. It writes down what it was told."""

    told: list[str] = Field(default_factory=list)

    def call(self, messages: Any, *args: Any, **kwargs: Any) -> str:
        text = json.dumps(messages)
        self.told.append(text)
        if "extract discrete, reusable memory statements" in text:
            return '{"memories": ["Ana sits on the aisle"]}'
        if "analyze content to be stored" in text:
            return '{"suggested_scope": "/travel", "categories": ["seat"], "importance": 0.9}'
        return "Thought: I know.\nFinal Answer: on the aisle"


def test_a_crew_learns_and_another_is_told(store: holdfast.Store, embed: Embed) -> None:
    def work(question: str) -> Clerk:
        clerk = Clerk(model="clerk")
        memory = Memory(storage=HoldfastStorage(store, user="ana"), embedder=embed, llm=clerk)
        agent = Agent(role="desk", goal="to book", backstory="a desk", llm=clerk)
        task = Task(description=question, expected_output="a seat", agent=agent)
        try:
            assert str(Crew(agents=[agent], tasks=[task], memory=memory).kickoff()) == "on the aisle"
        finally:
            memory.close()
        return clerk

    first = work("Ana is here")
    [kept] = HoldfastStorage(store, user="ana").list_records()
    assert (kept.content, kept.scope.endswith("/travel"), kept.categories) == ("Ana sits on the aisle", True, ["seat"])
    second = work("Where does Ana sit?")
    assert "Ana sits on the aisle" not in first.told[0]
    assert "Ana sits on the aisle" in second.told[0]


def test_a_private_record_is_for_its_source_alone(storage: HoldfastStorage, embed: Embed) -> None:
    memory = make_memory(storage, embed)
    try:
        memory.remember(
            "the safe opens with 4711", scope="/", categories=[], importance=0.5, source="ana", private=True
        )
        assert memory.recall("safe", depth="shallow") == []
        assert len(memory.recall("safe", depth="shallow", source="ana")) == 1
    finally:
        memory.close()


# The backend by itself


def test_it_is_a_storage_backend(storage: HoldfastStorage) -> None:
    assert isinstance(storage, StorageBackend)


@pytest.mark.every_engine
@pytest.mark.parametrize(
    "given",
    [
        record(),
        record("ünïcode \n 日本 🧭", scope="/a b/c", categories=["x", "y"], importance=0.0),
        record(metadata={"deep": {"list": [1, 2.5, None, True, {"x": []}]}, "": ""}, source="ana", private=True),
        record(created_at=datetime(2020, 2, 29, 1, 2, 3, 4, tzinfo=UTC), last_accessed=NOON),
        record(embedding=f32(0.1, -2e-30, 3e30)),
        record(id="an id / with % and 'quotes'"),
        MemoryRecord(content="no vector"),
        record(""),
    ],
)
def test_a_record_comes_back_as_it_was(storage: HoldfastStorage, given: MemoryRecord) -> None:
    storage.save([given])
    for found in (storage.get_record(given.id), *storage.list_records()):
        assert found == given
        assert found is not None
        assert found.embedding == given.embedding  # == of a pydantic model looks at it too; this says so


def test_what_is_given_back_may_be_changed(storage: HoldfastStorage) -> None:
    storage.save([record("one", id="1", metadata={"list": [1]})])
    mine = storage.get_record("1")
    assert mine is not None
    mine.metadata["list"].append(2)
    mine.categories.append("x")
    again = storage.get_record("1")
    assert again is not None
    assert (again.metadata, again.categories) == ({"list": [1]}, [])


def test_a_scope_is_a_path_and_not_a_beginning(storage: HoldfastStorage) -> None:
    scopes = ["/", "/acme", "/acme/sales", "/acme/sales/eu", "/acme-corp", "/acme_x", "/a%me", "acme/loose", "/beta/"]
    storage.save([record(scope, scope=scope, id=str(number)) for number, scope in enumerate(scopes)])
    acme = ["/acme", "/acme/sales", "/acme/sales/eu", "acme/loose"]
    for name in ("/acme", "/acme/", "acme", "//acme//"):
        assert texts(storage.list_records(name)) == acme
        assert texts([hit for hit, _ in storage.search([1.0, 0.0], scope_prefix=name, limit=99)]) == acme
        assert storage.count(name) == 4
    assert texts(storage.list_records("/a%me")) == ["/a%me"]
    assert storage.count() == storage.count("/") == len(scopes)
    assert storage.list_scopes("/") == ["/a%me", "/acme", "/acme-corp", "/acme_x", "/beta"]
    assert storage.list_scopes("/acme") == ["/acme/loose", "/acme/sales"]
    assert storage.list_scopes("/acme/sales/eu") == []
    storage.reset("/acme")
    assert texts(storage.list_records()) == ["/", "/a%me", "/acme-corp", "/acme_x", "/beta/"]


def test_the_info_of_a_scope(storage: HoldfastStorage) -> None:
    storage.save(
        [
            record(scope="/a", categories=["x"], created_at=NOON),
            record(scope="/a/b", categories=["x", "y"], created_at=(NOON - timedelta(days=2)).replace(tzinfo=UTC)),
            record(scope="/c", categories=["z"]),
        ]
    )
    info = storage.get_scope_info("/a/")
    assert (info.path, info.record_count, info.categories, info.child_scopes) == ("/a", 2, ["x", "y"], ["/a/b"])
    assert (info.oldest_record, info.newest_record) == ((NOON - timedelta(days=2)).replace(tzinfo=UTC), NOON)
    assert storage.list_categories("/a") == {"x": 2, "y": 1}
    nothing = storage.get_scope_info("/nowhere")
    assert (nothing.record_count, nothing.oldest_record, nothing.child_scopes) == (0, None, [])


@pytest.mark.every_engine
def test_records_are_listed_the_newest_first(storage: HoldfastStorage) -> None:
    storage.save([record(str(day), created_at=NOON + timedelta(days=day)) for day in (3, 1, 4, 0, 2)])
    assert [one.content for one in storage.list_records()] == ["4", "3", "2", "1", "0"]
    assert [one.content for one in storage.list_records(limit=2, offset=1)] == ["3", "2"]
    assert storage.list_records(limit=0) == storage.list_records(offset=-1) == storage.list_records(offset=9) == []


@pytest.mark.every_engine
def test_search_is_exact(storage: HoldfastStorage) -> None:
    """Beside the plainest way to do it, over growth, deletions and replacements."""
    chance = random.Random(7)

    def vector() -> list[float]:
        return f32(*(chance.gauss(0, 1) for _ in range(6)))

    kept = {
        str(number): record(
            str(number), vector(), id=str(number), scope=chance.choice(["/a", "/a/b", "/c"]),
            categories=chance.sample(["x", "y", "z"], 2), metadata={"n": number % 3},
        )
        for number in range(60)
    }  # fmt: skip
    storage.save(list(kept.values()))
    gone = [str(number) for number in range(0, 60, 7)]
    assert storage.delete(record_ids=gone) == len(gone)
    kept = {id: one for id, one in kept.items() if id not in gone}
    for number in (1, 60, 61):
        kept[str(number)] = record(str(number), vector(), id=str(number), scope="/a", metadata={"n": 0})
        storage.save([kept[str(number)]])
    for wanted in (
        {}, {"scope_prefix": "/a"}, {"categories": ["x"]}, {"metadata_filter": {"n": 0}}, {"min_score": 0.3},
        {"limit": 3}, {"scope_prefix": "/a", "categories": ["x", "y"], "metadata_filter": {"n": 1}, "limit": 4},
    ):  # fmt: skip
        query = vector()
        found = storage.search(query, **{"limit": 99, **wanted})  # type: ignore[arg-type]
        expected = plainly(kept, query, wanted)
        assert [one.id for one, _ in found] == [id for id, _ in expected]
        assert [score for _, score in found] == pytest.approx([score for _, score in expected], abs=1e-6)


def plainly(kept: dict[str, MemoryRecord], query: list[float], wanted: dict[str, Any]) -> list[tuple[str, float]]:
    def cosine(one: list[float]) -> float:
        return sum(a * b for a, b in zip(one, query, strict=True)) / math.hypot(*one) / math.hypot(*query)

    scored = [
        (one.id, cosine(one.embedding or []))
        for one in kept.values()
        if (not wanted.get("scope_prefix") or one.scope.split("/")[1] == wanted["scope_prefix"].strip("/"))
        and (not wanted.get("categories") or set(wanted["categories"]) & set(one.categories))
        and all(one.metadata[name] == value for name, value in wanted.get("metadata_filter", {}).items())
    ]
    best = sorted((pair for pair in scored if pair[1] >= wanted.get("min_score", 0.0)), key=lambda pair: -pair[1])
    return best[: wanted.get("limit", 99)]


def test_what_has_no_vector_is_listed_and_not_found(storage: HoldfastStorage) -> None:
    storage.save([MemoryRecord(content="none", id="none"), record("zeros", [0.0, 0.0], id="zeros"), record("some")])
    assert [(hit.content, score) for hit, score in storage.search([2.0, 0.0])] == [("some", 1.0), ("zeros", 0.0)]
    assert storage.count() == 3
    assert storage.search([]) == []
    storage.update(record("some now", id="none"))
    assert len(storage.search([1.0, 0.0], min_score=0.5)) == 2
    storage.update(MemoryRecord(content="none again", id="none"))
    assert len(storage.search([1.0, 0.0], min_score=0.5)) == 1


def test_a_query_of_any_length_is_the_same_question(storage: HoldfastStorage) -> None:
    storage.save([record("across", [1.0, 0.0]), record("up", [0.0, 1.0])])
    for length in (1e-38, 1.0, 3e38):
        assert [hit.content for hit, _ in storage.search([0.0, length], min_score=0.5)] == ["up"]
        assert [score for _, score in storage.search([length, length])] == pytest.approx([0.5**0.5] * 2)


def test_only_what_is_all_of_it_is_deleted(storage: HoldfastStorage) -> None:
    def fill() -> None:
        storage.reset()
        storage.save(
            [
                record("1", id="1", scope="/a", categories=["x"], metadata={"k": 1}, created_at=NOON),
                record("2", id="2", scope="/a", categories=["y"], metadata={"k": 2}, created_at=NOON),
                record("3", id="3", scope="/b", categories=["x"], created_at=NOON + timedelta(days=1)),
            ]
        )

    for criteria, left in (
        ({"scope_prefix": "/a", "categories": ["x"]}, "23"),
        ({"record_ids": ["1", "3"], "scope_prefix": "/b"}, "12"),
        ({"record_ids": ["1", "absent"]}, "23"),
        ({"record_ids": []}, "123"),
        ({"older_than": NOON + timedelta(hours=1)}, "3"),
        ({"older_than": (NOON + timedelta(hours=1)).replace(tzinfo=UTC), "metadata_filter": {"k": 2}}, "13"),
        ({"categories": ["z"]}, "123"),
        ({}, ""),
    ):
        fill()
        assert storage.delete(**criteria) == 3 - len(left), criteria  # type: ignore[arg-type]
        assert texts(storage.list_records()) == list(left), criteria


def test_a_deleted_record_can_be_read_in_the_history(storage: HoldfastStorage) -> None:
    storage.save([record("said once", id="1")])
    storage.reset()
    assert storage.get_record("1") is None
    assert [version.deleted for version in storage._folder.history("record/1")] == [False, True]


def test_recall_finds_the_text_and_no_vector(storage: HoldfastStorage, store: holdfast.Store) -> None:
    storage.save([record("Ana keeps bees", [0.0, 0.0], id="1"), record("The office closes at six", id="2")])
    hits = store.memory(user="ana").recall("who keeps bees?")
    assert hits[0].text == "Ana keeps bees"
    assert {hit.file.path for hit in hits if hit.file is not None} <= {"record/1", "record/2"}
    file = store.folder("crewai", user="ana").read("record/1")
    assert file.content["text"] == "Ana keeps bees"
    assert "embedding" not in file.content["value"]


def test_users_and_agents_are_apart(store: holdfast.Store) -> None:
    ana, ben = HoldfastStorage(store, user="ana"), HoldfastStorage(store, user="ben")
    crew = HoldfastStorage(store, user="ana", agent="crew")
    ana.save([record("ana's")])
    ben.save([record("ben's", [1.0, 2.0, 3.0])])
    assert (texts(ana.list_records()), texts(ben.list_records()), crew.count()) == (["ana's"], ["ben's"], 0)
    store.erase(user="ana")
    assert (ana.count(), ben.count(), ana.search([1.0, 0.0])) == (0, 1, [])


# Several of them


def test_what_another_handle_does_is_seen(store: holdfast.Store) -> None:
    mine, other = HoldfastStorage(store, user="ana"), HoldfastStorage(store, user="ana")
    assert mine.count() == other.count() == 0
    other.save([record("first", id="1")])
    assert [hit.content for hit, _ in mine.search([1.0, 0.0])] == ["first"]
    other.update(record("second", [0.0, 1.0], id="1"))
    assert [(hit.content, score) for hit, score in mine.search([0.0, 1.0])] == [("second", 1.0)]
    other.delete(record_ids=["1"])
    assert mine.search([0.0, 1.0]) == [] == mine.list_records()
    store.thread("t").append({"role": "user", "content": "something else"})
    other.save([record(str(number), id=str(number)) for number in range(3)])
    assert mine.count() == 3


def test_another_handle_may_begin_anew_with_longer_vectors(store: holdfast.Store) -> None:
    """Of all that changed meanwhile the old vectors go first, whatever the order in which it is looked at."""
    mine, other = HoldfastStorage(store), HoldfastStorage(store)
    mine.save([record(str(number), id=str(number)) for number in range(9)])
    assert mine.count() == other.count() == 9
    other.reset()
    other.save([record(str(number), [1.0, 2.0, 3.0], id=str(number)) for number in range(4, 14)])
    assert len(mine.search([1.0, 2.0, 3.0], limit=99)) == 10
    with pytest.raises(EmbeddingDimensionMismatchError):
        mine.save([record("of before")])


def test_a_handle_that_slept_long_catches_up(store: holdfast.Store) -> None:
    mine, other = HoldfastStorage(store), HoldfastStorage(store)
    mine.save([record("old", id="old")])
    assert mine.count() == 1
    folder = store.folder("crewai")
    for number in range(600):
        folder.write("notes", number)
    other.delete(record_ids=["old"])
    other.save([record("new")])
    assert texts(mine.list_records()) == ["new"]


@pytest.mark.every_engine
def test_what_another_process_wrote_is_found(address: str) -> None:
    script = textwrap.dedent("""
        import sys
        from crewai.memory.types import MemoryRecord
        from holdfast.adapters.crewai import HoldfastStorage
        storage = HoldfastStorage(sys.argv[1], user="ana")
        storage.save([MemoryRecord(id="2", content="from over there", embedding=[0.0, 1.0])])
        storage.delete(record_ids=["1"])
        storage.close()
    """)
    with holdfast.open(address, embedder="none") as store:
        storage = HoldfastStorage(store, user="ana")
        storage.save([record("from here", id="1")])
        assert storage.count() == 1
        subprocess.run([sys.executable, "-c", script, address], check=True, timeout=60)
        assert [hit.content for hit, _ in storage.search([0.0, 1.0])] == ["from over there"]
        assert storage.get_record("1") is None


@pytest.mark.every_engine
def test_many_writers_lose_nothing_and_delete_once(store: holdfast.Store) -> None:
    storages = [HoldfastStorage(store), HoldfastStorage(store)]
    start = threading.Barrier(8)

    def work(number: int) -> int:
        storage = storages[number % 2]
        start.wait()
        for part in range(10):
            storage.save([record(f"{number}.{part}", id=f"{number}.{part}", scope=f"/{number}")])
            storage.search([1.0, 0.0])
        start.wait()
        return storage.delete(scope_prefix="/0") + storage.delete(scope_prefix="/1")

    with ThreadPoolExecutor(8) as pool:
        deleted = sum(pool.map(work, range(8)))
    assert deleted == 20
    assert storages[0].count() == storages[1].count() == 60
    assert len(storages[1].search([1.0, 0.0], limit=99)) == 60


def test_a_record_that_another_deleted_first_is_not_counted(
    store: holdfast.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = HoldfastStorage(store), HoldfastStorage(store)
    mine.save([record("1", id="1"), record("2", id="2")])
    commit, deletes = mine._folder.commit, [other.delete]

    def late(changes: Any) -> Any:
        if deletes:
            assert deletes.pop()(record_ids=["1"]) == 1
        return commit(changes)

    monkeypatch.setattr(mine._folder, "commit", late)
    assert mine.delete() == 1
    assert [version.deleted for version in mine._folder.history("record/1")] == [False, True]


def test_a_record_that_was_deleted_while_it_is_saved_keeps_its_vector(
    store: holdfast.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The vector was there, so it was not to be written again; and then it was gone."""
    mine, other = HoldfastStorage(store), HoldfastStorage(store)
    mine.save([record("1", id="1")])
    commit, deletes = mine._folder.commit, [other.delete]

    def late(changes: Any) -> Any:
        if deletes:
            assert deletes.pop()(record_ids=["1"]) == 1
        return commit(changes)

    monkeypatch.setattr(mine._folder, "commit", late)
    mine.update(record("1 again", id="1"))
    assert [hit.content for hit, _ in other.search([1.0, 0.0])] == ["1 again"]


@pytest.mark.parametrize("before", [[], [record("1", id="1", embedding=[])]])
def test_a_record_without_a_vector_does_not_get_that_of_another(
    store: holdfast.Store, monkeypatch: pytest.MonkeyPatch, before: list[MemoryRecord]
) -> None:
    """Both saved the same id at once: what stays is what one of them saved."""
    mine, other = HoldfastStorage(store), HoldfastStorage(store)
    mine.save(before)
    commit, saves = mine._folder.commit, [other.save]

    def late(changes: Any) -> Any:
        if saves:
            saves.pop()([record("theirs", id="1")])
        return commit(changes)

    monkeypatch.setattr(mine._folder, "commit", late)
    mine.save([record("mine", id="1", embedding=[])])
    assert texts(other.list_records()) == ["mine"]
    assert other.search([1.0, 0.0]) == []


@pytest.mark.every_engine
def test_what_the_engine_erased_without_a_name_is_gone(store: holdfast.Store) -> None:
    storage = HoldfastStorage(store, user="ana")
    storage.save([record()])
    assert storage.count() == 1
    store.core.engine.erase(store.tenant, Scope(user="ana"), time=store.core.clock.now())
    assert storage.count() == 0


def test_what_others_do_in_the_store_does_not_make_it_read_all_again(
    store: holdfast.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, other = HoldfastStorage(store, user="ana"), HoldfastStorage(store, user="ana")
    storage.save([record("first", id="1")])
    assert storage.count() == 1
    other.save([record("second", id="2")])
    for number in range(520):
        store.thread("busy").append({"role": "user", "content": str(number)})
    other.save([record("third", id="3")])
    with monkeypatch.context() as patch:
        patch.setattr(storage._folder, "files", lambda: pytest.fail("the folder was read anew"))
        assert storage.count() == 3
    monkeypatch.setattr("holdfast.adapters.crewai._PAGE", 2)
    for number in range(50):
        other.save([record(str(number), id=f"n{number}")])
    assert storage.count() == 53, "so much was written that all is read again"


def test_the_room_of_what_is_gone_is_used_again(storage: HoldfastStorage) -> None:
    storage.save([record("stays", [0.0, 1.0], id="stays")])
    for number in range(30):
        storage.save([record(str(number), id=str(number))])
        assert [hit.content for hit, _ in storage.search([1.0, 0.0], min_score=0.5)] == [str(number)]
        storage.delete(record_ids=[str(number)])
    assert len(storage._vectors._names) == 2
    assert [hit.content for hit, _ in storage.search([0.0, 1.0])] == ["stays"]


def test_a_loop_is_not_held_up(storage: HoldfastStorage) -> None:
    async def work() -> None:
        await asyncio.gather(*(storage.asave([record(str(number), scope=f"/{number % 2}")]) for number in range(20)))
        found = await storage.asearch([1.0, 0.0], scope_prefix="/1", limit=99, min_score=0.5)
        assert len(found) == 10
        assert await storage.adelete(scope_prefix="/0") == 10

    asyncio.run(work())
    assert storage.count() == 10


# What is refused


def test_vectors_of_another_length_are_refused(storage: HoldfastStorage) -> None:
    with pytest.raises(EmbeddingDimensionMismatchError):
        storage.save([record("two"), record("three", [1.0, 2.0, 3.0])])
    assert storage.count() == 0
    storage.save([record("two", id="1")])
    for wrong in (
        lambda: storage.save([record("three", [1.0, 2.0, 3.0])]),
        lambda: storage.update(record("three", [1.0, 2.0, 3.0], id="1")),
        lambda: storage.search([1.0, 2.0, 3.0]),
    ):
        with pytest.raises(EmbeddingDimensionMismatchError):
            wrong()
    assert texts(storage.list_records()) == ["two"]
    storage.reset()
    storage.save([record("three", [1.0, 2.0, 3.0])])
    assert len(storage.search([1.0, 2.0, 3.0])) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        record(embedding=[math.nan, 1.0]),
        record(embedding=[math.inf, 1.0]),
        record(embedding=[1e39, 1.0]),
        record(metadata={"when": NOON}),
        record(metadata={"x": {1, 2}}),
        record(metadata={"x": math.nan}),
        record("lone \ud800"),
        record(id="x" * 600),
        record(id=""),
    ],
)
def test_what_cannot_come_back_as_it_was_is_refused(storage: HoldfastStorage, wrong: MemoryRecord) -> None:
    with pytest.raises(Invalid):
        storage.save([record("fine"), wrong])
    assert storage.count() == 0  # all of them or none


@pytest.mark.parametrize("query", [[math.nan, 0.0], ["a", "b"], [[1.0, 0.0]], "text"])
def test_a_query_that_is_no_vector_is_refused(storage: HoldfastStorage, query: Any) -> None:
    storage.save([record()])
    with pytest.raises(Invalid):
        storage.search(query)


def test_a_file_that_is_no_record_is_named(storage: HoldfastStorage, store: holdfast.Store) -> None:
    store.folder("crewai", user="ana").write("record/1", "something else")
    with pytest.raises(Corrupt, match="record/1"):
        storage.count()
    store.folder("crewai", user="ana").delete("record/1")
    store.folder("crewai", user="ana").write("vector/1", b"x")
    with pytest.raises(Corrupt, match="vector/1"):
        storage.count()


# Belonging to a process


def test_what_is_copied_keeps_its_store(storage: HoldfastStorage) -> None:
    """CrewAI copies crews with all they have."""
    assert copy.deepcopy({"storage": storage})["storage"] is storage


def test_a_memory_that_is_closed_leaves_the_store_open(storage: HoldfastStorage, embed: Embed) -> None:
    make_memory(storage, embed).close()
    assert storage.count() == 0


def test_a_store_that_was_opened_by_the_storage_is_closed_by_it(tmp_path: Path) -> None:
    with HoldfastStorage(tmp_path / "agent.db") as storage:
        storage.save([record()])
    with pytest.raises(Misconfigured):
        storage.count()


def test_installed_it_is_what_a_memory_uses(store: holdfast.Store, embed: Embed) -> None:
    assert install(store, user="ana") is store
    memory = Memory(embedder=embed, llm=Scripted(model="scripted"))
    try:
        memory.remember("Ana keeps bees", scope="/", categories=[], importance=0.5)
    finally:
        memory.close()
    assert texts(HoldfastStorage(store, user="ana").list_records()) == ["Ana keeps bees"]
    assert resolve_memory_storage("./a-folder-of-its-own") is None
    assert resolve_memory_storage("qdrant-edge") is None
    uninstall()
    assert resolve_memory_storage("lancedb") is None


def test_without_the_framework_the_extra_is_named() -> None:
    script = "import sys; sys.modules['crewai'] = None; import holdfast.adapters.crewai"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert "pip install 'holdfast[crewai]'" in done.stderr


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[holdfast.Store]:
    """The stores that adapters opened themselves."""
    stores: list[holdfast.Store] = []

    def opening(*given: Any) -> holdfast.Store:
        stores.append(holdfast.open(*given))
        return stores[-1]

    monkeypatch.setattr("holdfast.extension.open_store", opening)
    return stores


def closed(store: holdfast.Store) -> bool:
    try:
        store.threads()
    except Misconfigured:
        return True
    return False


def test_what_is_refused_leaves_no_store_open(made: list[holdfast.Store]) -> None:
    for refused in (
        lambda: HoldfastStorage("ram:", folder=""),
        lambda: HoldfastStorage("ram:", user=""),
        lambda: install("ram:", user=""),
    ):
        with pytest.raises(Invalid):
            refused()
    assert all(map(closed, made))
    assert len(made) == 3
