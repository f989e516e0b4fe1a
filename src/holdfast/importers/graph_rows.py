"""The tables in which LangGraph's own savers keep checkpoints, on SQLite and on Postgres, read as rows.

Both give the same: which threads and namespaces there are, and their checkpoints in order, with values still in
LangGraph's bytes. SQLite keeps a checkpoint whole; Postgres keeps each value by its channel and version. A server is
read in one transaction that sees a single moment and cannot write. Deliberately absent: what the bytes mean.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from holdfast.errors import Corrupt, Invalid, Unavailable, Unsupported
from holdfast.importers.database import ForeignDatabase

Typed = tuple[str, bytes]
"""The name of an encoding, and the bytes in it."""
_KEPT = ("thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "type", "checkpoint", "metadata")
_EMPTY = "empty"


class CheckpointWrite(NamedTuple):
    """What a task gave to a channel."""

    task: str
    path: str
    number: int
    channel: str
    value: Typed


class CheckpointRow(NamedTuple):
    """One checkpoint: either ``whole``, or as ``plain`` data with its ``values`` by channel."""

    id: str
    parent: str | None
    metadata: dict[str, Any]
    writes: list[CheckpointWrite]
    whole: Typed | None = None
    plain: dict[str, Any] | None = None
    values: dict[str, Typed] | None = None


class CheckpointRows(ABC):
    """A database of checkpoints at one moment."""

    place: str
    _writes, _value, _path = "checkpoint_writes", "blob", "task_path"  # the table of what tasks wrote, and columns

    @abstractmethod
    def _ask(self, sql: str, *values: Any) -> Iterable[tuple[Any, ...]]:
        """The rows of a question, in which each %s stands for a value."""

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def rows(self, thread: str, namespace: str) -> Iterator[CheckpointRow]:
        """The checkpoints of a namespace, the oldest first."""

    def counts(self) -> dict[str, int]:
        [(threads, checkpoints)] = self._ask("SELECT count(DISTINCT thread_id), count(*) FROM checkpoints")
        [(writes,)] = self._ask(f"SELECT count(*) FROM {self._writes}")
        return {"threads": threads, "checkpoints": checkpoints, "writes": writes}

    def orphans(self) -> int:
        """How many writes belong to no checkpoint."""
        sql = f"""
            SELECT count(*) FROM {self._writes} w WHERE NOT EXISTS (
                SELECT 1 FROM checkpoints c WHERE c.thread_id = w.thread_id AND c.checkpoint_ns = w.checkpoint_ns
                AND c.checkpoint_id = w.checkpoint_id)
        """
        [(count,)] = self._ask(sql)
        return int(count)

    def lines(self) -> list[tuple[Any, ...]]:
        """The threads with their namespaces, and how many checkpoints each has."""
        return list(self._ask("SELECT thread_id, checkpoint_ns, count(*) FROM checkpoints GROUP BY 1, 2 ORDER BY 1, 2"))

    def _written(self, thread: str, namespace: str, id: str) -> list[CheckpointWrite]:
        sql = f"""
            SELECT task_id, {self._path}, idx, channel, type, {self._value} FROM {self._writes}
            WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s ORDER BY 2, 1, 3
        """
        return [
            CheckpointWrite(task, path, number, channel, (kind, _bytes(value)))
            for task, path, number, channel, kind, value in self._ask(sql, thread, namespace, id)
        ]


def is_checkpoints(database: ForeignDatabase) -> bool:
    """Whether LangGraph's SQLite saver wrote this database."""
    return set(_KEPT) <= set(database.tables.get("checkpoints", ()))


class FileRows(CheckpointRows):
    """The tables of the SQLite saver."""

    _writes, _value = "writes", "value"

    def __init__(self, database: ForeignDatabase) -> None:
        self._database, self.place = database, str(database.path)
        columns = database.tables.get("writes")
        if columns is None:
            raise Invalid(f"{self.place} has checkpoints but no table of writes, so it is not LangGraph's")
        self._path = "task_path" if "task_path" in columns else "''"

    def rows(self, thread: str, namespace: str) -> Iterator[CheckpointRow]:
        sql = """
            SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints
            WHERE thread_id = %s AND checkpoint_ns = %s ORDER BY checkpoint_id
        """
        for id, parent, kind, body, metadata in self._ask(sql, thread, namespace):
            yield CheckpointRow(
                id, parent or None, _metadata(metadata, self.place, id), self._written(thread, namespace, id),
                whole=(kind or "json", _bytes(body)),
            )  # fmt: skip

    def _ask(self, sql: str, *values: Any) -> Iterable[tuple[Any, ...]]:
        return self._database.rows(sql.replace("%s", "?"), *values)

    def close(self) -> None:
        self._database.close()


class ServerRows(CheckpointRows):
    """The tables of the Postgres saver, in the schema that the address names."""

    def __init__(self, url: str) -> None:
        try:
            import psycopg  # noqa: PLC0415 - a file needs no driver
        except ImportError as error:
            raise Unsupported("reading Postgres needs a driver: pip install 'holdfast[postgres]'") from error
        self._failure = psycopg.Error
        self.place = masked(url)
        with ExitStack() as closing, self._said():
            self._connection = psycopg.connect(url, autocommit=True)
            closing.callback(self._connection.close)
            self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            self._refuse_others()
            self._closing = closing.pop_all()

    def rows(self, thread: str, namespace: str) -> Iterator[CheckpointRow]:
        where = "WHERE thread_id = %s AND checkpoint_ns = %s"
        ids = self._ask(f"SELECT checkpoint_id FROM checkpoints {where} ORDER BY checkpoint_id", thread, namespace)
        sql = f"SELECT parent_checkpoint_id, checkpoint, metadata FROM checkpoints {where} AND checkpoint_id = %s"
        for (id,) in ids:  # one by one: together they may be large
            [(parent, plain, metadata)] = self._ask(sql, thread, namespace, id)
            blobs = self._ask(
                """
                SELECT b.channel, b.type, b.blob FROM jsonb_each_text(%s::jsonb) v
                JOIN checkpoint_blobs b ON b.channel = v.key AND b.version = v.value
                WHERE b.thread_id = %s AND b.checkpoint_ns = %s
                """,
                json.dumps(plain.get("channel_versions") or {}), thread, namespace,
            )  # fmt: skip
            values = {channel: (kind, _bytes(blob)) for channel, kind, blob in blobs if kind != _EMPTY}
            written = self._written(thread, namespace, id)
            yield CheckpointRow(id, parent or None, metadata, written, plain=plain, values=values)

    def close(self) -> None:
        self._closing.close()

    def _refuse_others(self) -> None:
        for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
            if self._ask("SELECT to_regclass(%s)", table) == [(None,)]:
                raise Invalid(f"{self.place} has no table {table}, so LangGraph's Postgres saver did not write it")

    def _ask(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._said():
            return self._connection.execute(sql.encode(), values or None).fetchall()

    @contextmanager
    def _said(self) -> Iterator[None]:
        try:
            yield
        except self._failure as error:
            said = " ".join(str(error).split())
            raise Unavailable(f"{self.place} cannot be read: {said}", place=self.place) from error


def masked(url: str) -> str:
    """An address without the password that it may carry."""
    url = re.sub(r"(?<=://)([^/@:]*):[^/@]*@", r"\1:***@", url)
    return re.sub(r"(?<=[?&]password=)[^&]+", "***", url)


def _metadata(stored: Any, place: str, id: str) -> dict[str, Any]:
    try:
        found = json.loads(stored) if stored else {}
    except (TypeError, ValueError, RecursionError) as error:
        raise Corrupt(f"{place}: the metadata of checkpoint {id} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise Corrupt(f"{place}: the metadata of checkpoint {id} is not a dict")
    return found


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value or b"")
