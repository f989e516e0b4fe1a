"""Where Mem0 keeps its memories on disk: the payloads of a local Qdrant, a Chroma or a FAISS store, and its history.

All are read without the programs that wrote them. Qdrant keeps each point pickled, which is read and never loaded
(``pickled``). Each reader gives the collections with their payloads by id. Deliberately absent: vectors, which are made
again, stores on servers, and what a payload means.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.errors import Corrupt, HoldfastError, Invalid
from holdfast.importers import pickled
from holdfast.importers.database import ForeignDatabase
from holdfast.importers.database import opened as open_database
from holdfast.importers.files import Original

Payloads = dict[str, dict[str, Any]]
_POINT = ("id", "point")
_CHROMA = ("collections", "segments", "embeddings", "embedding_metadata")
_HISTORY = ("memory_id", "old_memory", "new_memory", "event")
_DEPTH = 4
_MOST_FILES = 2_000


def is_points(database: ForeignDatabase) -> bool:
    """Whether this is a collection of a local Qdrant."""
    return set(database.tables.get("points", ())) == set(_POINT)


def is_chroma(database: ForeignDatabase) -> bool:
    return set(_CHROMA) <= set(database.tables)


def is_history(database: ForeignDatabase) -> bool:
    return set(_HISTORY) <= set(database.tables.get("history", ()))


def qdrant(database: ForeignDatabase) -> Payloads:
    """The payloads of a collection. Of two rows of one point the later counts."""
    found: Payloads = {}
    for row, data in database.rows("SELECT rowid, point FROM points ORDER BY rowid"):
        try:
            point = pickled.read(bytes(data))
            fields = point.state["__dict__"]
            if not isinstance(fields["payload"], dict | None):
                raise TypeError(f"its payload is {type(fields['payload']).__name__}")
            found[str(fields["id"])] = fields["payload"] or {}
        except (AttributeError, KeyError, TypeError) as error:
            raise Corrupt(f"{database.path}, point {row}: this is not a point of Qdrant ({error!r})") from error
        except HoldfastError as error:
            raise type(error)(f"{database.path}, point {row}: {error}") from error
    return found


def chroma(database: ForeignDatabase) -> dict[str, Payloads]:
    """The metadata of every collection."""
    sql = """
        SELECT c.name, e.embedding_id, m.key, m.string_value, m.int_value, m.float_value, m.bool_value
        FROM embeddings e
        JOIN segments s ON s.id = e.segment_id
        JOIN collections c ON c.id = s.collection
        LEFT JOIN embedding_metadata m ON m.id = e.id
        ORDER BY c.name, e.id
    """
    found: dict[str, Payloads] = {}
    for collection, id, key, text, whole, real, flag in database.rows(sql):
        payload = found.setdefault(collection, {}).setdefault(id, {})
        if key is not None and key != "chroma:document":
            values = [value for value in (text, whole, real) if value is not None]
            payload[key] = bool(flag) if flag is not None else values[0] if values else None
    return found


def faiss(index: Path) -> Payloads:
    """The documents beside an index: JSON, or pickled by older versions."""
    beside = index.with_suffix(".json")
    if beside.is_file():
        original = Original(beside)
        try:
            whole = json.loads(original.text)
            documents = whole["docstore"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise Corrupt(f"{beside} is damaged: {error}", path=str(beside)) from error
    else:
        beside = index.with_suffix(".pkl")
        whole = pickled.read(Original(beside).data)
        documents = whole[0] if isinstance(whole, tuple) and whole else None
    if not isinstance(documents, dict) or not all(isinstance(payload, dict) for payload in documents.values()):
        raise Corrupt(f"{beside} holds no documents by their ids", path=str(beside))
    return documents


class Mem0Folder:
    """What a folder, or a file, holds of Mem0: collections by name, and the history, if it is there."""

    def __init__(self, place: Path, history: Path | None = None) -> None:
        self.collections: dict[str, Payloads] = {}
        self.history: list[tuple[Any, ...]] | None = None
        self.messages = 0
        for path in _files(place):
            self._look(path)
        if history is not None:
            self.history = None
            with _must_be_database(history) as database:
                if not is_history(database):
                    raise Invalid(f"{history} is not a history of Mem0", path=str(history))
                self._read_history(database)

    def __bool__(self) -> bool:
        return bool(self.collections) or self.history is not None

    def _look(self, path: Path) -> None:
        if path.suffix == ".faiss":
            self._add(path.stem, faiss(path))
            return
        database = open_database(path)
        if database is None:
            return
        with database:
            if is_points(database):
                self._add(path.parent.name, qdrant(database))
            elif is_chroma(database):
                for name, payloads in chroma(database).items():
                    self._add(name, payloads)
            elif is_history(database):
                self._read_history(database)

    def _add(self, name: str, payloads: Payloads) -> None:
        if name in self.collections:
            raise Invalid(f"there are two collections {name!r} here; import each of them by itself")
        self.collections[name] = payloads

    def _read_history(self, database: ForeignDatabase) -> None:
        if self.history is not None:
            raise Invalid("there are two histories of Mem0 here; import one of them by itself, or name it")
        columns = database.tables["history"]
        wanted = ("memory_id", "old_memory", "new_memory", "event", "created_at", "updated_at", "is_deleted")
        asked = ", ".join(name if name in columns else f"NULL AS {name}" for name in wanted)
        self.history = list(database.rows(f"SELECT {asked} FROM history ORDER BY rowid"))
        if len(self.history) != database.count("history"):
            raise Corrupt(f"{database.path}: the history cannot be read whole", path=str(database.path))
        if "messages" in database.tables:
            self.messages = database.count("messages")


def holds(place: Path) -> bool:
    """Whether there is anything of Mem0 in a folder."""
    for path in _files(place):
        if path.suffix == ".faiss":
            return True
        database = open_database(path, glimpse=True)
        if database is not None:
            with database:
                if is_points(database) or is_chroma(database) or is_history(database):
                    return True
    return False


def _files(place: Path) -> Iterator[Path]:
    """The files that may be Mem0's: databases and indexes, not deeper than it puts them."""
    if place.is_file():
        yield place
        return
    for seen, path in enumerate(sorted(place.rglob("*"))):
        if seen >= _MOST_FILES:
            raise Invalid(f"{place} has more than {_MOST_FILES:,} files; name the folder of the store itself")
        deep = len(path.relative_to(place).parts)
        indexed = path.suffix == ".faiss" and (
            path.with_suffix(".json").is_file() or path.with_suffix(".pkl").is_file()
        )
        if deep <= _DEPTH and path.is_file() and (indexed or path.suffix in (".db", ".sqlite", ".sqlite3")):
            yield path


def _must_be_database(path: Path) -> ForeignDatabase:
    if not path.is_file():
        raise Invalid(f"there is no file {path}", path=str(path))
    database = open_database(path)
    if database is None:
        raise Invalid(f"{path} is not an SQLite database", path=str(path))
    return database
