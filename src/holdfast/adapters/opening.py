"""What every adapter begins with: a store, however it was given, and a way to work on it without holding up a loop.

Deliberately absent: anything of a framework.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import ParamSpec, Self, TypeVar

from holdfast import config
from holdfast.aio.hold import AsyncHold
from holdfast.aio.offload import to_end
from holdfast.aio.store import AsyncStore
from holdfast.engine.contract import Scope
from holdfast.errors import Invalid
from holdfast.ledger.folder import Folder
from holdfast.store import Store
from holdfast.store import open as open_store

P = ParamSpec("P")
T = TypeVar("T")

_PASSWORD = (
    (re.compile(r"^(\w+://[^/?#:@]*):[^@]*@"), r"\1@"),
    (re.compile(r"([?&])password=[^&]*&?"), r"\1"),
    (re.compile(r"[?&]$"), ""),
)
Given = Store | AsyncStore | str | Path
"""A store that is open already, blocking or async, or the address of one to open."""


def opened(given: Given) -> Store:
    """The store that was given, or the one at an address."""
    if isinstance(given, Store):
        return given
    if isinstance(given, AsyncStore):
        return given.blocking
    if isinstance(given, str | Path):
        return open_store(given)
    raise Invalid(f"give a store, or the address of one, not {type(given).__name__}")


def kept_address(address: str | Path) -> str:
    """An address as it may stand in a configuration, which people copy and check in: without its password."""
    text = str(address)
    for pattern, plain in _PASSWORD:
        text = pattern.sub(plain, text)
    return text


def whole_address(kept: str) -> str:
    """An address out of a configuration; its password is the one that the environment has for it, if any.

    ``HOLDFAST_DB`` may hold the whole address; ``PGPASSWORD`` and a password file are read by Postgres's own library.
    """
    known = config.database()
    return known if known is not None and kept_address(known) == kept else kept


class OpenedStore:
    """The store of an adapter: one that was given stays open, one that was opened for it is closed with it."""

    def __init__(self, given: Given) -> None:
        self.store = opened(given)
        self._mine = isinstance(given, str | Path)

    def close(self) -> None:
        """Close the store, if it was opened here."""
        if self._mine:
            self.store.close()

    @contextmanager
    def begun(self) -> Iterator[Store]:
        """Around what an adapter begins with: refused there, nothing that was opened stays open."""
        try:
            yield self.store
        except BaseException:
            self.close()
            raise

    def folder(self, name: str, scope: Scope) -> Folder:
        """A folder whose files are erased with the thread that the scope names."""
        return self.store.wiring.folder(name, scope)

    def purge(self, owner: Scope) -> None:
        """The adapter erased something of an owner by itself: neither indexes nor contexts know it any more."""
        self.store.wiring.purge({owner})


class Alone(AsyncHold):
    """A thread that one run has to itself, for the length of a ``with`` or an ``async with``."""

    def __enter__(self) -> Self:
        self._hold.take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._hold.__exit__(kind, error, trace)


async def away(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do blocking work in a thread; a caller that is cancelled meanwhile leaves it whole, never half written."""
    return await to_end(None, functools.partial(work, *args, **kwargs))
