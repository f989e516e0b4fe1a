"""An index damaged on the disk, behind the store's back: named by verify, repaired by the next recall, nothing lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

import holdfast
from holdfast.retrieval import index
from holdfast.testing import ManualClock
from holdfast.testing.embedders import HashEmbedder

TOLD = [f"animal{number} lives in country{number % 5}" for number in range(40)]
TERMS, VECTORS, MANIFEST = "id LIKE '%/t/%'", "id LIKE '%/v/%'", "tags LIKE '%manifest%'"
Hand = Callable[[apsw.Connection], None]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store whose index is saved in several parts."""
    monkeypatch.setattr(index, "SAVE_AT", 8)
    path = tmp_path / "store.db"
    with open_store(path) as store:
        for at in range(0, len(TOLD), 10):
            store.memory(user="ana").remember_all(TOLD[at : at + 10])
            answer(store)
    return path


def open_store(path: Path) -> holdfast.Store:
    return holdfast.open(path, embedder=HashEmbedder(16), clock=ManualClock())


def answer(store: holdfast.Store) -> list[str]:
    return [hit.text for hit in store.memory(user="ana").recall("animal7 country2", 40)]


def change(path: Path, hand: Hand) -> None:
    connection = apsw.Connection(str(path))
    hand(connection)
    connection.close()


def parts(connection: apsw.Connection, which: str) -> list[tuple[int, bytes]]:
    rows = connection.execute(f"SELECT rowid, body FROM records WHERE kind = 'index' AND {which}")
    return [(int(row[0]), bytes(row[1])) for row in rows]


def flipped(which: str, at: float) -> Hand:
    def hand(connection: apsw.Connection) -> None:
        found = parts(connection, which)
        assert found
        for row, body in found:
            data = bytearray(body)
            data[min(int(len(data) * at), len(data) - 1)] ^= 0x11
            connection.execute("UPDATE records SET body = ? WHERE rowid = ?", (bytes(data), row))

    return hand


def reworded(old: bytes, new: bytes) -> Hand:
    """The manifest with something else in it."""

    def hand(connection: apsw.Connection) -> None:
        ((row, body),) = parts(connection, MANIFEST)
        assert old in body
        connection.execute("UPDATE records SET body = ? WHERE rowid = ?", (body.replace(old, new, 1), row))

    return hand


def cut(which: str) -> Hand:
    def hand(connection: apsw.Connection) -> None:
        for row, body in parts(connection, which)[:1]:
            connection.execute("UPDATE records SET body = ? WHERE rowid = ?", (body[: len(body) // 2], row))

    return hand


def emptied(which: str) -> Hand:
    def hand(connection: apsw.Connection) -> None:
        for row, _ in parts(connection, which)[:1]:
            connection.execute("UPDATE records SET body = ? WHERE rowid = ?", (b"", row))

    return hand


def deleted(which: str) -> Hand:
    def hand(connection: apsw.Connection) -> None:
        for row, _ in parts(connection, which)[:1]:
            connection.execute("DELETE FROM records WHERE rowid = ?", (row,))

    return hand


DAMAGE: dict[str, Hand] = {
    **{f"terms flipped at {at}": flipped(TERMS, at) for at in (0.0, 0.2, 0.5, 0.8, 1.0)},
    **{f"vectors flipped at {at}": flipped(VECTORS, at) for at in (0.0, 0.5, 1.0)},
    "manifest flipped at its beginning": flipped(MANIFEST, 0.0),
    "manifest flipped at its end": flipped(MANIFEST, 1.0),
    "terms cut": cut(TERMS),
    "vectors cut": cut(VECTORS),
    "manifest cut": cut(MANIFEST),
    "terms empty": emptied(TERMS),
    "vectors empty": emptied(VECTORS),
    "manifest empty": emptied(MANIFEST),
    "terms deleted": deleted(TERMS),
    "vectors deleted": deleted(VECTORS),
}


@pytest.mark.parametrize("damage", list(DAMAGE))
def test_damage_on_the_disk_is_named_and_repaired(path: Path, damage: str) -> None:
    with open_store(path) as store:
        before = answer(store)
    change(path, DAMAGE[damage])
    with open_store(path) as store:
        assert any(problem.kind == "index" for problem in store.verify().problems)
        assert answer(store) == before
        assert store.verify().problems == ()
    with open_store(path) as store:
        assert answer(store) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"segments"', b'"segmentb"'),
        (b'"vectors"', b'"vectorb"'),
        (b'"hash-16"', b'"hash-17"'),
        (b'"rows":10', b'"rows":90'),
        (b'"passages":10', b'"passages":90'),
        (b'"chosen":false', b'"chosen":true'),
    ],
)
def test_a_change_in_a_manifest_is_named(path: Path, old: bytes, new: bytes) -> None:
    change(path, reworded(old, new))
    with open_store(path) as store:
        assert any(problem.kind == "index" for problem in store.verify().problems)


@pytest.mark.parametrize("damage", ["terms flipped at 0.5", "terms deleted", "vectors cut", "manifest empty"])
def test_damage_under_an_open_store_is_borne(path: Path, damage: str) -> None:
    """What is in memory goes on, and what is saved afterwards is whole again for everybody."""
    with open_store(path) as store:
        before = answer(store)
        change(path, DAMAGE[damage])
        assert answer(store) == before
        store.memory(user="ana").remember_all([f"plant{number}" for number in range(20)])
        assert "plant7" in [hit.text for hit in store.memory(user="ana").recall("plant7")]
    with open_store(path) as store:
        assert "plant7" in [hit.text for hit in store.memory(user="ana").recall("plant7")]
        assert set(TOLD) <= {hit.text for hit in store.memory(user="ana").recall("animal", 100)}
        store.rebuild()
        assert store.verify().problems == ()


def lost(connection: apsw.Connection) -> None:
    connection.execute(f"DELETE FROM records WHERE kind = 'index' AND {MANIFEST}")
    connection.execute("DELETE FROM tags WHERE kind = 'index'")


def all_lost(connection: apsw.Connection) -> None:
    connection.execute("DELETE FROM records WHERE kind = 'index'")
    connection.execute("DELETE FROM tags WHERE kind = 'index'")


@pytest.mark.parametrize("hand", [lost, all_lost])
def test_a_store_that_lost_its_indexes_is_whole(path: Path, hand: Hand) -> None:
    """Indexes are derived: without any of them nothing is lost."""
    with open_store(path) as store:
        before = answer(store)
    change(path, hand)
    with open_store(path) as store:
        assert answer(store) == before
        assert store.verify().problems == ()
