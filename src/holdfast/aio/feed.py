"""Watching and following the feed from an event loop, without a thread for each waiting caller.

Deliberately absent: rules of its own. The blocking twin decides what is read, and when a follower moves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

from holdfast.aio.offload import Offload
from holdfast.engine.contract import Commit, Interest, Listens
from holdfast.ledger.core import Core
from holdfast.ledger.feed import Deadline, Follower, check_timeout, page_of

_POLL_S = 0.05  # for an engine that does not notify


async def watching(
    core: Core, offload: Offload, after: int, only: Interest | None, timeout_s: float | None
) -> AsyncGenerator[Commit, None]:
    """Yield matching commits after a position; end after ``timeout_s`` without one."""
    patience, came = Deadline(timeout_s), list[Commit]()
    while True:
        commits, upto = (came, 0) if came else await offload.run(page_of, core.engine, core.tenant, after, only)
        for commit in commits:
            yield commit
        after = max(upto, commits[-1].position if commits else after)
        if commits:
            came = []
            patience.renew()
        elif patience.left_s:
            came = await _coming(core, after, only, patience.left_s)
        else:
            return


async def _coming(core: Core, after: int, only: Interest | None, wait_s: float) -> list[Commit]:
    """The commits that arrive within a time; none if nothing came, or if the caller has to read them."""
    if not isinstance(core.engine, Listens):
        await asyncio.sleep(min(wait_s, _POLL_S))
        return []
    loop = asyncio.get_running_loop()
    came: asyncio.Future[list[Commit]] = loop.create_future()

    def call(commits: list[Commit]) -> None:
        loop.call_soon_threadsafe(lambda: None if came.done() else came.set_result(commits))

    cancel = core.engine.listen(core.tenant, after, call, only)
    try:
        return await asyncio.wait_for(came, wait_s)
    except TimeoutError:
        return []
    finally:
        cancel()


class AsyncFollower:
    """A ``Follower`` whose methods are awaited."""

    def __init__(self, follower: Follower, offload: Offload) -> None:
        self._follower, self._offload = follower, offload
        self.name = follower.name

    def __repr__(self) -> str:
        return f"AsyncFollower({self.name!r})"

    async def position(self) -> int:
        return await self._offload.run(lambda: self._follower.position)

    async def lag(self) -> int:
        return await self._offload.run(lambda: self._follower.lag)

    async def read(self, *, timeout_s: float | None = 0.0) -> list[Commit]:
        check_timeout(timeout_s)
        follower, patience = self._follower, Deadline(timeout_s)
        while True:
            commits, upto = await self._offload.run(follower.page)
            if commits or not patience.left_s:
                return commits
            await _coming(follower.core, upto, follower.only, patience.left_s)

    async def follow(self, *, timeout_s: float | None = None) -> AsyncIterator[Commit]:
        check_timeout(timeout_s)
        follower, patience = self._follower, Deadline(timeout_s)
        while True:
            commits, upto = await self._offload.run(follower.page)
            for commit in commits:
                at = follower.known
                yield commit
                if follower.known != at:  # moved by hand in the meantime: continue from there
                    break
                await self.advance(commit.position)
            if commits:
                patience.renew()
            elif patience.left_s:
                await _coming(follower.core, upto, follower.only, patience.left_s)
            else:
                return

    async def advance(self, position: int) -> None:
        await self._offload.run(self._follower.advance, position)

    async def reset(self, position: int = 0) -> None:
        await self._offload.run(self._follower.reset, position)

    async def remove(self) -> None:
        await self._offload.run(self._follower.remove)
