"""Stores of Mem0, as it wrote them."""

from __future__ import annotations

import json
import pickle
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast
from holdfast import importers
from holdfast.errors import Corrupt, Invalid, Unsupported

Make = Callable[[str], Path]


def take(store: holdfast.Store, place: Path, **ways: object) -> importers.ImportOutcome:
    with importers.read(place, **ways) as source:  # type: ignore[arg-type]
        return importers.import_into(store, source)


@pytest.mark.parametrize("kind", ["qdrant", "chroma", "faiss"])
def test_memories_go_to_whom_they_are_about(store: holdfast.Store, mem0: Make, kind: str) -> None:
    done = take(store, mem0(kind))
    assert done.counts == {"memories": 3, "changes": 6}
    assert done.new == {"memories": 3, "earlier texts": 1, "endings": 1}
    assert {(owner.user, owner.agent, owner.new) for owner in done.owners} == {
        ("ana", None, 1), ("ana", "travel", 3), ("bo", None, 1),
    }  # fmt: skip
    (seats,) = store.memory(user="ana").visible.own.memories()
    assert (seats.text, seats.tags, seats.origin.by) == (
        "Ana prefers aisle seats",
        ("category:travel", "import:mem0"),
        "user",
    )
    assert seats.valid_from < seats.recorded_at
    home = store.memory(user="ana", agent="travel")
    assert home.recall("Ana lives in Porto or Lisbon", kind="semantic").hits[0].text == "Ana lives in Lisbon"
    assert "Ana lives in Porto" not in [hit.text for hit in home.recall("Ana lives in Porto").hits]
    before = home.recall("Ana lives in Porto", as_of=_moment(home, "Ana lives in Porto")).hits
    assert before[0].text == "Ana lives in Porto"
    assert _tags(home, "Ana lives in Lisbon") == ("import:mem0", "run:trip-42")
    assert [memory.text for memory in store.memory(user="bo").memories()] == ["Bo likes tea ☕ żółć"]


def _moment(memory: holdfast.Memories, text: str) -> object:
    return next(one for one in memory.memories() if one.text == text).valid_from


def _tags(memory: holdfast.Memories, text: str) -> tuple[str, ...]:
    return next(one for one in memory.memories() if one.text == text).tags


def test_what_was_deleted_there_does_not_come_in(store: holdfast.Store, mem0: Make) -> None:
    take(store, mem0("qdrant"))
    with store.core.engine.snapshot() as view:
        from holdfast.engine.contract import Query  # noqa: PLC0415

        assert not [one for one in view.scan(store.tenant, Query("memory")) if b"to be deleted" in one.body]


def test_a_store_first_and_its_history_later(store: holdfast.Store, mem0: Make) -> None:
    folder = mem0("qdrant")
    first = take(store, folder / "store")
    assert first.new == {"memories": 3}
    assert "there is no history here" in first.notes[0]
    second = take(store, folder / "store", history=folder / "history.db")
    assert (second.new, second.here) == ({"earlier texts": 1, "endings": 1}, {"memories": 3})


def test_an_update_there_ends_what_was_imported(store: holdfast.Store, mem0: Make) -> None:
    folder = mem0("faiss")
    take(store, folder)
    path = folder / "mem0.json"
    whole = json.loads(path.read_text(encoding="utf-8"))
    id = next(id for id, payload in whole["docstore"].items() if payload["data"].startswith("Bo"))
    later = "2999-01-01T00:00:00+00:00"
    whole["docstore"][id].update(data="Bo likes coffee", updated_at=later)
    path.write_text(json.dumps(whole), encoding="utf-8")
    connection = sqlite3.connect(folder / "history.db")
    connection.execute(
        "INSERT INTO history (id, memory_id, old_memory, new_memory, event, updated_at, is_deleted) "
        "VALUES ('x', ?, 'Bo likes tea ☕ żółć', 'Bo likes coffee', 'UPDATE', ?, 0)", (id, later),
    )  # fmt: skip
    connection.commit()
    connection.close()
    again = take(store, folder)
    assert again.new == {"memories": 1, "endings": 1}
    assert again.here == {"memories": 2, "earlier texts": 2, "endings": 1}


def test_a_history_alone_needs_to_be_told_whose(store: holdfast.Store, mem0: Make) -> None:
    path = mem0("chroma") / "history.db"
    assert importers.recognise(path) == "mem0"
    with pytest.raises(Invalid, match="does not say whose"):
        importers.read(path)
    assert take(store, path, user="ana").new == {"memories": 3, "earlier texts": 1, "endings": 1}
    assert len(store.memory(user="ana").memories()) == 5


def test_payloads_are_kept_where_that_is_wanted(store: holdfast.Store, mem0: Make) -> None:
    folder = mem0("qdrant")
    assert "1 memory has more metadata than tags can hold" in take(store, folder).notes[0]
    done = take(store, folder, originals=True)
    assert done.new == {"files": 3}
    (file,) = store.folder("imported", user="ana").files("mem0/")
    assert file.content["nested"] == {"a": [1, 2]}


def test_what_mem0_derives_stays_behind(store: holdfast.Store, mem0: Make, tmp_path: Path) -> None:
    folder = mem0("qdrant")
    derived = folder / "store" / "collection" / "mem0_entities"
    derived.mkdir()
    (derived / "storage.sqlite").write_bytes((folder / "store" / "collection" / "mem0" / "storage.sqlite").read_bytes())
    done = take(store, folder)
    assert done.counts["memories"] == 3
    assert "collection mem0_entities does not come along" in done.notes[0]


def test_two_of_a_kind_are_not_mixed_up(mem0: Make) -> None:
    folder = mem0("qdrant")
    (folder / "other.db").write_bytes((folder / "history.db").read_bytes())
    with pytest.raises(Invalid, match="two histories"):
        importers.read(folder)
    with pytest.raises(Invalid, match="not a history of Mem0"):
        importers.read(folder / "store", history=folder / "store" / "collection" / "mem0" / "storage.sqlite")
    with pytest.raises(Invalid, match="history goes with a Mem0 store"):
        importers.read(folder / "history.db", "openai-agents", history=folder / "history.db")


class Harmful:
    """What a pickle can do: it would make a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


class Knot:
    """An object that is part of itself."""

    def __init__(self) -> None:
        self.inside = self


@pytest.mark.parametrize("harm", ["touch", "cycle", "knot", "cut"])
def test_a_pickle_is_read_and_never_loaded(mem0: Make, tmp_path: Path, harm: str) -> None:
    folder = mem0("qdrant")
    cycle: list[object] = []
    cycle.append(cycle)
    harms = {
        "touch": pickle.dumps(Harmful(tmp_path / "harm")), "cycle": pickle.dumps(cycle), "knot": pickle.dumps(Knot()),
        "cut": b"\x80\x04]",
    }  # fmt: skip
    connection = sqlite3.connect(folder / "store" / "collection" / "mem0" / "storage.sqlite")
    connection.execute("INSERT INTO points VALUES ('x', ?)", (harms[harm],))
    connection.commit()
    connection.close()
    with pytest.raises((Corrupt, Unsupported), match="point 4"):
        importers.read(folder)
    assert not (tmp_path / "harm").exists()


def test_harm_inside_a_payload_is_refused(store: holdfast.Store, tmp_path: Path) -> None:
    """An older FAISS store is pickled whole: what is plain in it is read, what is an object is not."""
    payload = {"data": "Ana likes tea", "user_id": "ana", "created_at": "2026-05-01T00:00:00+00:00"}
    (tmp_path / "old.faiss").write_bytes(b"")
    (tmp_path / "old.pkl").write_bytes(pickle.dumps(({"a": payload}, {0: "a"})))
    assert take(store, tmp_path).new == {"memories": 1}
    bad = {**payload, "data": Harmful(tmp_path / "harm")}
    (tmp_path / "old.pkl").write_bytes(pickle.dumps(({"a": bad}, {0: "a"})))
    with pytest.raises(Invalid, match="must be a string, not Thing"):
        take(store, tmp_path)
    assert not (tmp_path / "harm").exists()


def test_expired_and_odd_payloads(store: holdfast.Store, tmp_path: Path) -> None:
    made = "2026-05-01T10:00:00+00:00"
    docs = {
        "a": {"data": "expired", "user_id": "ana", "created_at": made, "expiration_date": "2026-05-03"},
        "b": {"data": "no times", "user_id": "ana"},
        "c": {"data": "  ", "user_id": "ana"},
        "d": {"data": "odd owner", "user_id": 7},
        "e": {"data": "how to", "agent_id": "helper", "memory_type": "procedural_memory", "created_at": made},
        "f": {"no": "text"},
    }
    (tmp_path / "x.faiss").write_bytes(b"")
    (tmp_path / "x.json").write_text(json.dumps({"docstore": docs, "index_to_id": {}}), encoding="utf-8")
    with importers.read(tmp_path) as source:
        done = importers.import_into(store, source, skip=True)
    assert done.new == {"memories": 3}
    assert len(done.refused) == 3
    expired = next(one for one in store.memory(user="ana").memories() if one.text == "expired")
    assert f"{expired.valid_to:%Y-%m-%d}" == "2026-05-04"
    assert store.memory(agent="helper").procedures()[0].text == "how to"
    for broken in (b"{", b"[]", b'{"docstore": [1]}'):
        (tmp_path / "x.json").write_bytes(broken)
        with pytest.raises(Corrupt):
            importers.read(tmp_path)
