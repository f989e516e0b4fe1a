"""What every adapter begins with: a store, however it was given, and a way to work on it without holding up a loop.

Deliberately absent: anything of a framework.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from holdfast.aio.hands import to_end
from holdfast.aio.store import AsyncStore
from holdfast.errors import Invalid
from holdfast.store import Store
from holdfast.store import open as open_store

P = ParamSpec("P")
T = TypeVar("T")

Given = Store | AsyncStore | str | Path
"""A store that is open already, blocking or async, or the address of one to open."""


def opened(given: Given) -> Store:
    """The store that was given, or the one at an address. Who gave an address has it closed by the adapter."""
    if isinstance(given, Store):
        return given
    if isinstance(given, AsyncStore):
        return given._store
    if isinstance(given, str | Path):
        return open_store(given)
    raise Invalid(f"give a store, or the address of one, not {type(given).__name__}")


async def away(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do blocking work in a thread; a caller that is cancelled meanwhile leaves it whole, never half written."""
    return await to_end(None, functools.partial(work, *args, **kwargs))
