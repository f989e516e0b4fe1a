"""Coroutines for callers that block.

A coroutine runs in the caller's thread if that is free, and in its own thread if an event loop is already running,
as in a notebook. A stream always has a thread, which ends with the last piece, with an error, or when
the caller stops iterating. Deliberately absent: a loop that lives longer than one call, and with it a thread that
someone would have to end.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

_TRIES, _PATIENCE_S = 20, 0.25
T = TypeVar("T")
P = TypeVar("P")


class _StreamEnd:
    """The last thing in the queue: what the coroutine returned, or what it raised."""

    def __init__(self, value: Any = None, error: BaseException | None = None) -> None:
        self.value = value
        self.error = error


def wait_for(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What the coroutine returns."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    pieces: Generator[T, None, None] = listen(lambda _: make())
    with contextlib.closing(pieces):
        return next(pieces)


def listen(make: Callable[[Callable[[P], None]], Coroutine[Any, Any, T]]) -> Generator[P | T, None, None]:
    """What the coroutine hands over while it runs, and what it returns as the last item."""
    line: queue.SimpleQueue[Any] = queue.SimpleQueue()
    loop = asyncio.new_event_loop()

    def work() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                end = _StreamEnd(runner.run(make(line.put)))
        except BaseException as error:  # everything goes to the caller, whose exception it is
            end = _StreamEnd(error=error)
        line.put(end)

    thread = threading.Thread(target=work, name="holdfast-model", daemon=True)
    thread.start()
    try:
        while not isinstance(item := line.get(), _StreamEnd):
            yield item
        if item.error is not None:
            raise item.error
        yield item.value
    finally:
        _stop(loop, thread)


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    """End the work, whose caller may have been interrupted and does not wait forever.

    A cancellation can be swallowed by a client that was just closing something, so it is repeated.
    """
    for _ in range(_TRIES):
        with contextlib.suppress(RuntimeError):  # the loop is closed: the work is over
            loop.call_soon_threadsafe(_cancel_all, loop)
        thread.join(_PATIENCE_S)
        if not thread.is_alive():
            return


def _cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    for task in asyncio.all_tasks(loop):
        task.cancel()
