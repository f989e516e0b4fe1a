"""Saved indexes: used again after reopening, repaired when damaged, and never anything but derived."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.engine.codec import decode, encode
from holdfast.engine.contract import Delete, Put, Record
from holdfast.retrieval import index
from holdfast.testing.embedders import Flaky, HashEmbedder

pytestmark = pytest.mark.usefixtures("soon")

ANIMALS = [f"animal{number} lives in country{number % 7}" for number in range(40)]
Saved = Callable[[holdfast.Store], list[Record]]


def said(words: str) -> dict[str, Any]:
    return {"role": "user", "content": words}


def top(store: holdfast.Store, query: str = "country3 animal10", k: int = 8) -> list[tuple[str, float]]:
    return [(hit.text, round(hit.score, 3)) for hit in store.memory(user="ana").recall(query, k)]


def again(place: Any, store: holdfast.Store, embedder: Any = None) -> holdfast.Store:
    """The same place as a new process sees it: nothing is in memory."""
    if place.engine == "sqlite":
        store.close()
    opened: holdfast.Store = place.open(embedder, own=True)
    return opened


def told(store: holdfast.Store) -> None:
    store.memory(user="ana").remember_all(ANIMALS)
    store.thread("t", user="ana").append(*(said(f"we saw animal{number}") for number in range(10)))


# Used again


def test_nothing_saved_is_embedded_again(place: Any, saved: Saved) -> None:
    counting = Flaky(HashEmbedder(16))
    store = place.open(counting, own=True)
    told(store)
    before = top(store)
    assert saved(store)
    assert counting.texts == len(ANIMALS) + 10 + 1
    counting = Flaky(HashEmbedder(16))
    store = again(place, store, counting)
    assert top(store) == before
    assert counting.texts == 1  # the question
    store.memory(user="ana").remember("a new zebra")
    assert top(store, "zebra")[0][0] == "a new zebra"
    assert counting.texts == 3


def test_only_the_unsaved_rest_is_read_again(place: Any) -> None:
    counting = Flaky(HashEmbedder(16))
    store = place.open(HashEmbedder(16), own=True)
    told(store)
    top(store)
    store.memory(user="ana").remember_all(["a zebra", "an okapi"])
    top(store)
    store = again(place, store, counting)
    assert top(store, "zebra")[0][0] == "a zebra"
    assert counting.texts == 3


def test_costly_vectors_are_saved_at_once_and_never_made_twice(place: Any) -> None:
    class Dear(Flaky):
        local = False

    first = Dear(HashEmbedder(16))
    store = place.open(first, own=True)
    for number in range(30):
        store.memory(user="ana").remember(f"animal{number}")
        top(store, "question")
    assert first.texts == 31
    second = Dear(HashEmbedder(16))
    store = again(place, store, second)
    assert top(store, "animal7")[0][0] == "animal7"
    assert second.texts == 1


def test_costly_vectors_survive_a_time_without_the_embedder(here: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Dear(Flaky):
        local = False

    monkeypatch.setattr(index, "RETRY_S", 0.0)
    store = here.open(Dear(HashEmbedder(16)))
    for number in range(4):
        store.memory(user="ana").remember(f"animal{number}")
        top(store, "question")
    away = Dear(HashEmbedder(16), fail_times=1_000)
    store = here.open(away)
    for number in range(4, 12):
        store.memory(user="ana").remember(f"animal{number}")
        top(store, "question")
    counting = Dear(HashEmbedder(16))
    store = here.open(counting)
    assert store.memory(user="ana").recall("question").report.pending == 0
    assert counting.texts == 8 + 1


def test_who_always_has_a_budget_has_a_saved_index_too(here: Any, saved: Saved) -> None:
    class Dear(Flaky):
        local = False

    store = here.open(Dear(HashEmbedder(16)))
    told(store)
    for _ in range(3):
        report = store.memory(user="ana").recall("animal", within_ms=60_000).report
    assert report.pending == 0
    assert saved(store)


def test_many_small_parts_are_joined(place: Any, saved: Saved, orphans: Callable[..., set[str]]) -> None:
    store = place.open(own=True)
    for number in range(30):
        store.memory(user="ana").remember_all([f"animal{number} {one}" for one in range(24)])
        top(store)
    assert len(saved(store)) < 20
    assert orphans(store) == set()
    assert store.verify().problems == ()
    store = again(place, store)
    assert len(store.memory(user="ana").recall("animal17", 1_000)) == 720
    assert {text for text, _ in top(store, "animal17", 24)} == {f"animal17 {one}" for one in range(24)}


@pytest.mark.every_engine
def test_a_large_value_is_kept_in_pieces(place: Any, saved: Saved, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.retrieval.index_store._PART_BYTES", 1_000)
    store = place.open(HashEmbedder(16), own=True)
    told(store)
    before = top(store)
    assert max(len(record.body) for record in saved(store) if "manifest" not in record.tags) == 1_000
    counting = Flaky(HashEmbedder(16))
    store = again(place, store, counting)
    assert top(store) == before
    assert counting.texts == 1
    assert store.verify().problems == ()


def test_a_batch_that_is_cut_is_found_whole(ram: holdfast.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_BATCH", 16)
    seen: list[tuple[int, int]] = []
    told(ram)
    assert ram.memory(user="ana").rebuild(lambda done, total: seen.append((done, total))) == 50
    assert seen[-1] == (50, 50)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert len(ram.memory(user="ana").recall("animal", 1_000)) == 50


# Damaged


def _flipped(store: holdfast.Store, record: Record) -> None:
    body = bytearray(record.body)
    body[len(body) // 2] ^= 0x40
    _put(store, record, bytes(body))


def _gone(store: holdfast.Store, record: Record) -> None:
    store.core.engine.commit(store.tenant, [Delete("index", record.id)], 1)


def _put(store: holdfast.Store, record: Record, body: bytes) -> None:
    put = Put("index", record.id, body, record.version, record.scope, record.tags)
    store.core.engine.commit(store.tenant, [put], store.core.clock.now())


def _changed(**fields: Any) -> Callable[[holdfast.Store, Record], None]:
    def change(store: holdfast.Store, record: Record) -> None:
        _put(store, record, _signed({**decode(record.body)["manifest"], **fields}))

    return change


def _signed(manifest: dict[str, Any]) -> bytes:
    """A manifest whose digest is right, whatever it says."""
    return encode({"manifest": manifest, "digest": blake2b(encode(manifest), digest_size=16).hexdigest()})


def _part(records: list[Record], what: str) -> Record:
    mark = {"terms": "/t/", "vectors": "/v/", "manifest": "/"}[what]
    return next(r for r in records if mark in r.id and (what == "manifest") == ("manifest" in r.tags))


DAMAGE = {
    "terms flipped": ("terms", _flipped),
    "terms gone": ("terms", _gone),
    "vectors flipped": ("vectors", _flipped),
    "vectors gone": ("vectors", _gone),
    "manifest garbage": ("manifest", lambda store, record: _put(store, record, b"\x00\xffgarbage")),
    "manifest of something else": ("manifest", lambda store, record: _put(store, record, encode(["hello"]))),
    "other words": ("manifest", _changed(words=99)),
    "other form": ("manifest", _changed(form=99)),
    "segments that are none": ("manifest", _changed(segments=[{"token": 5}])),
    "no segments at all": ("manifest", _changed(segments=[])),
}


@pytest.mark.parametrize("damage", list(DAMAGE))
def test_damage_is_named_and_repaired(near: Any, saved: Saved, damage: str) -> None:
    _damaged(near, saved, damage)


@pytest.mark.every_engine
@pytest.mark.parametrize("damage", ["vectors flipped", "manifest garbage"])
def test_damage_is_repaired_on_any_engine(place: Any, saved: Saved, damage: str) -> None:
    _damaged(place, saved, damage)


def _damaged(place: Any, saved: Saved, damage: str) -> None:
    store = place.open(HashEmbedder(16), own=True)
    told(store)
    before = top(store)
    what, hand = DAMAGE[damage]
    hand(store, _part(saved(store), what))
    store = again(place, store, HashEmbedder(16))
    problems = store.verify().problems
    if damage != "no segments at all":  # nothing is wrong with an index that holds nothing yet
        assert [(problem.kind, problem.id) for problem in problems] == [("index", "user/ana")]
        assert "rebuild" in problems[0].what
    assert top(store) == before
    assert store.verify().problems == ()
    assert top(again(place, store, HashEmbedder(16))) == before


@pytest.mark.parametrize("damage", [name for name in DAMAGE if name != "no segments at all"])
def test_rebuild_repairs_damage_too(here: Any, saved: Saved, damage: str) -> None:
    store = here.open(HashEmbedder(16))
    told(store)
    before = top(store)
    what, hand = DAMAGE[damage]
    hand(store, _part(saved(store), what))
    store = here.open(HashEmbedder(16))
    assert store.rebuild() == 50
    assert store.verify().problems == ()
    assert top(store) == before


@pytest.mark.parametrize("damage", [name for name in DAMAGE if name != "no segments at all"])
def test_no_part_is_left_behind(here: Any, saved: Saved, damage: str) -> None:
    """A part that no manifest names would stay for ever, with words in it that may be erased later."""
    store = here.open(HashEmbedder(16))
    told(store)
    top(store)
    count = len(saved(store))
    what, hand = DAMAGE[damage]
    hand(store, _part(saved(store), what))
    store = here.open(HashEmbedder(16))
    top(store)
    assert len(saved(store)) == count


def test_an_index_that_says_something_else_than_ground_is_named(here: Any, saved: Saved) -> None:
    """Sound bytes with a right digest, and wrong all the same."""
    store = here.open()
    told(store)
    top(store)
    other = here.open(tenant="elsewhere")
    other.memory(user="ana").remember_all(ANIMALS[::-1])
    other.thread("t", user="ana").append(*(said("something else") for _ in range(10)))
    top(other)
    ours, theirs = saved(store), saved(other)
    wrong = decode(_part(theirs, "manifest").body)["manifest"]["segments"][0]
    _changed(segments=[wrong])(store, _part(ours, "manifest"))
    part = _part(theirs, "terms")
    store.core.engine.commit(store.tenant, [Put("index", part.id, part.body, scope=part.scope)], 1)
    assert [problem.id for problem in store.verify().problems] == ["user/ana"]
    assert store.rebuild() == 50
    assert store.verify().problems == ()


def test_rebuild_changes_no_answer(place: Any) -> None:
    store = place.open(HashEmbedder(16), own=True)
    told(store)
    before = top(store)
    assert store.memory(user="ana").rebuild() == 50
    assert top(store) == before
    assert store.rebuild() == 50
    assert top(store) == before
    assert top(again(place, store, HashEmbedder(16))) == before


def test_a_store_without_indexes_has_none_to_rebuild(ram: holdfast.Store) -> None:
    assert ram.rebuild() == 0
    assert ram.memory(user="ana").rebuild() == 0
    assert ram.verify().problems == ()


def test_verify_looks_at_every_tenant(here: Any, saved: Saved) -> None:
    one, other = here.open(), here.open(tenant="other")
    for store in (one, other):
        told(store)
        top(store)
    _flipped(other, _part(saved(other), "terms"))
    problems = one.verify().problems
    assert [(problem.tenant, problem.kind) for problem in problems] == [("other", "index")]


# Elsewhere


@pytest.mark.every_engine
@pytest.mark.parametrize("suffix", ["json", "yaml", "msgpack"])
def test_memories_that_were_moved_are_found_there(here: Any, place: Any, tmp_path: Path, suffix: str) -> None:
    source, target = here.open(), place.open()
    memory = source.memory(user="ana")
    memory.remember("lives in Rome", key="city")
    memory.remember("lives in Oslo", key="city")
    memory.forget(memory.remember("a forgotten zebra").id)
    source.memory(user="ana", agent="helper").remember("prefers okapi")
    source.thread("t", user="ana").append(said("I saw a tapir"))
    target.memory(user="ana").recall("nothing yet")
    source.export(tmp_path / f"ana.{suffix}", user="ana")
    target.import_(tmp_path / f"ana.{suffix}")
    there = target.memory(user="ana")
    assert [fact.text for fact in there.facts()] == ["lives in Oslo"]
    found = {hit.text for hit in there.recall("lives okapi tapir zebra", 50)}
    assert found == {"lives in Oslo", "prefers okapi", "I saw a tapir"}
    assert there.recall("tapir")[0].text == "I saw a tapir"
    target.import_(tmp_path / f"ana.{suffix}")
    assert {hit.text for hit in there.recall("lives okapi tapir zebra", 50)} == found
    assert target.verify().problems == ()


def test_a_backup_brings_its_memories_back(tmp_path: Path, saved: Saved) -> None:
    with holdfast.open(tmp_path / "store.db", embedder=HashEmbedder(16)) as store:
        told(store)
        before = [text for text, _ in top(store)]
        assert saved(store)
        store.backup(tmp_path / "copy.db")
    holdfast.restore(tmp_path / "copy.db", tmp_path / "back.db")
    counting = Flaky(HashEmbedder(16))
    with holdfast.open(tmp_path / "back.db", embedder=counting) as store:
        assert [text for text, _ in top(store)] == before
        assert store.verify().problems == ()
        assert counting.texts <= 1 + 50
