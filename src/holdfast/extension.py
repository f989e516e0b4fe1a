"""What adapters and importers use besides ``holdfast`` itself: the one place where they reach below the surface.

Use it to write your own outside this repository, just as ours are written. It has six parts:

- a store, however it was given (``OpenedStore``), and a way to use it without blocking an event loop (``in_thread``);
- a framework's names as parts of our names (``escaped``): parts are joined by slashes, and a slash inside a part
  is written as "%2F", so that no two things share a name and a name identifies its thing;
- the handles behind the public ones: ``thread.logbook``, ``thread.statebook``, ``folder.filebook`` and
  ``memory.visible`` give operations that you combine into one commit (``Core``, ``Pending``, ``compare_and_set``);
- the engine's words for such a commit: records, events, operations, and how values become bytes;
- the one field for what your framework alone understands (``FRAMEWORK``): put your part of it there under a name of
  your own, and read it with ``framework_parts``; contexts, recall and the command skip the field;
- ``mask``, which shortens a long tool output as contexts do.

Deliberately absent: anything specific to a framework, and anything that a public method already does.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import ParamSpec, Self, TypeVar
from urllib.parse import unquote

from holdfast import atfork, config
from holdfast.aio.hold import AsyncHold
from holdfast.aio.offload import to_end, workers
from holdfast.aio.store import AsyncStore
from holdfast.archive.contents import KINDS, LEASE
from holdfast.clock import to_datetime, to_micros
from holdfast.context import masking
from holdfast.engine.codec import MSGPACK, decode, encode
from holdfast.engine.contract import (
    Append,
    Buries,
    Delete,
    Event,
    Fork,
    Guard,
    Mark,
    Op,
    Problem,
    Put,
    Query,
    Receipt,
    Record,
    Scope,
    View,
)
from holdfast.engine.registry import scheme_of
from holdfast.errors import Invalid, quoted
from holdfast.ids import MAX_ID_BYTES, check_id, check_text
from holdfast.ledger import checkpoints, log
from holdfast.ledger.checkpoints import Point
from holdfast.ledger.core import Core, Pending, compare_and_set, fetch, fetch_events, scan_all
from holdfast.ledger.files import FILE, LONGEST_BYTES, FileBook, here, path_of, text_of, to_file
from holdfast.ledger.folder import Folder
from holdfast.ledger.json_path import same
from holdfast.ledger.log import to_entry, to_event
from holdfast.ledger.schema import Schema
from holdfast.ledger.speech import FRAMEWORK, RESERVED, framework_parts
from holdfast.ledger.state import StateBook, to_document
from holdfast.ledger.thread import check_count
from holdfast.memory.collection import MemoryCollection
from holdfast.memory.drafts import Remembering, checked
from holdfast.memory.names import MEMORY, collection_id, memory_id, once_number, subject_of
from holdfast.memory.stored import as_remembered, read_plain, to_plain
from holdfast.providers.tokens.choose import counter_for
from holdfast.records import MEMORY_KINDS, Draft
from holdfast.retrieval.recall import MAX_HITS
from holdfast.steps.hold import HOLD
from holdfast.store import Store
from holdfast.store import open as open_store

__all__ = [
    "FILE",
    "FRAMEWORK",
    "HOLD",
    "KINDS",
    "LEASE",
    "LONGEST_BYTES",
    "MAX_HITS",
    "MAX_ID_BYTES",
    "MEMORY",
    "MEMORY_KINDS",
    "MSGPACK",
    "RESERVED",
    "Append",
    "Buries",
    "Core",
    "Delete",
    "Draft",
    "Event",
    "FileBook",
    "Fork",
    "Guard",
    "Mark",
    "MemoryCollection",
    "Op",
    "OpenedStore",
    "Pending",
    "Point",
    "Problem",
    "Put",
    "Query",
    "Receipt",
    "Record",
    "Remembering",
    "Schema",
    "Scope",
    "StateBook",
    "StoreOrAddress",
    "ThreadHold",
    "View",
    "as_remembered",
    "check_count",
    "check_id",
    "check_text",
    "checked",
    "checkpoints",
    "collection_id",
    "compare_and_set",
    "decode",
    "encode",
    "escaped",
    "fetch",
    "fetch_events",
    "framework_parts",
    "here",
    "in_thread",
    "kept_address",
    "log",
    "mask",
    "memory_id",
    "once_number",
    "opened",
    "path_of",
    "quoted",
    "read_plain",
    "same",
    "scan_all",
    "scheme_of",
    "subject_of",
    "text_of",
    "to_datetime",
    "to_document",
    "to_entry",
    "to_event",
    "to_file",
    "to_micros",
    "to_plain",
    "unescaped",
    "whole_address",
]

P = ParamSpec("P")
T = TypeVar("T")

_PASSWORD = (
    (re.compile(r"^(\w+://[^/?#:@]*):(?!\d+[/?#])[^@]*@"), r"\1@"),  # a port is followed by what it leads to
    (re.compile(r"([?&])(?:ssl)?password=[^&]*&?"), r"\1"),
    (re.compile(r"[?&]$"), ""),
)
StoreOrAddress = Store | AsyncStore | str | Path
"""An open store, blocking or async, or the address of one to open."""


def opened(given: StoreOrAddress) -> Store:
    """The store that was given, or the one at an address."""
    if isinstance(given, Store):
        return given
    if isinstance(given, AsyncStore):
        return given.blocking
    if isinstance(given, str | Path):
        return open_store(given)
    raise Invalid(f"give a store or its address, not {type(given).__name__}")


def kept_address(address: str | Path) -> str:
    """An address without its password, for a configuration that people copy and check in."""
    text = str(address)
    for pattern, plain in _PASSWORD if "://" in text else ():
        text = pattern.sub(plain, text)
    return text


def whole_address(kept: str) -> str:
    """An address from a configuration, with the password that the environment has for it, if any.

    ``HOLDFAST_DB`` may hold the whole address; ``PGPASSWORD`` and a password file are read by Postgres's own library.
    """
    known = config.database()
    return known if known is not None and kept_address(known) == kept else kept


class OpenedStore:
    """An adapter's store: a store that was given stays open, one opened here is closed with the adapter."""

    def __init__(self, given: StoreOrAddress) -> None:
        self.store = opened(given)
        self._mine = isinstance(given, str | Path)

    def close(self) -> None:
        """Close the store, if it was opened here."""
        if self._mine:
            self.store.close()

    @contextmanager
    def begun(self) -> Iterator[Store]:
        """Wraps an adapter's setup: if the setup fails, a store opened here is closed again."""
        try:
            yield self.store
        except BaseException:
            self.close()
            raise

    def folder(self, name: str, scope: Scope) -> Folder:
        """A folder whose files are erased with the scope's thread."""
        return self.store.wiring.folder(name, scope)

    def purge(self, owner: Scope) -> None:
        """Call this after erasing something of an owner directly, to remove it from indexes and contexts."""
        self.store.wiring.purge({owner})


class ThreadHold(AsyncHold):
    """A thread held by one run for the length of a ``with`` or an ``async with``."""

    def __enter__(self) -> Self:
        self._hold.take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._hold.__exit__(kind, error, trace)


def mask(
    text: str, *, fetch: str, limit: int = masking.LIMIT, tokens: str | Callable[[str], int] | None = None
) -> masking.Masked:
    """A stand-in of at most ``limit`` tokens for a long tool output, or the text itself where that is as short.

    ``fetch`` is the reference by which the whole text can be had, such as "trip-42#17"; it is part of the limit and
    always there. ``tokens`` says how to count, as for a context: a model, an encoding or a function.
    """
    return masking.mask(text, fetch=fetch, limit=limit, count=counter_for(tokens).count)


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do blocking work in a thread; if the caller is cancelled, it still runs to its end, never half written.

    The threads are Holdfast's own: the event loop's default ones are the program's, and saves must not hold them up.
    """
    return await to_end(_threads(), functools.partial(work, *args, **kwargs))


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return workers()


atfork.join(in_child=_threads.cache_clear)  # a forked child has no threads


_SPECIAL = re.compile("[%/\x00-\x1f\x7f-\x9f\u2028\u2029]")


def escaped(part: str) -> str:
    """A part as written between slashes."""
    return _SPECIAL.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), part)


def unescaped(part: str) -> str:
    """A part as the framework knows it."""
    return unquote(part)
