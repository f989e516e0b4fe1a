"""Holding a thread exclusively, for async callers.

Deliberately absent: rules of its own; it wraps its blocking twin, and waits without a thread.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

from holdfast.aio.offload import surely
from holdfast.steps.hold import Hold

_LOOK_S = 0.05


class AsyncHold:
    """A ``Hold`` that is awaited: ``async with thread.hold(): …``."""

    def __init__(self, hold: Hold, carried: Callable[..., Awaitable[Any]]) -> None:
        """``carried`` runs blocking work to its end in a thread."""
        self._hold, self._carried = hold, carried

    def __repr__(self) -> str:
        return f"Async{self._hold!r}"

    async def take(self) -> Self:
        tries, taken = self._hold.tries(), False

        def tried() -> float | None:
            nonlocal taken
            pause = next(tries, None)
            taken = pause is None
            return pause

        try:
            while (pause := await self._carried(tried)) is not None:
                await asyncio.sleep(min(pause, _LOOK_S))  # blocking a thread for each would use up the executor
        except asyncio.CancelledError:
            if taken:  # just as the caller was cancelled
                await self.release()
            raise
        return self

    async def release(self) -> None:
        """Release it, even if the caller is cancelled meanwhile, however often."""
        await surely(self._hold.release)

    async def __aenter__(self) -> Self:
        return await self.take()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await surely(functools.partial(self._hold.__exit__, kind, error, trace))
