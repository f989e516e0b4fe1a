"""What a store promises to many: sessions do not mix, and many at once lose nothing and get nothing twice."""

from __future__ import annotations

import asyncio
from typing import Any

from session_suite.scene import Scene, Sessions, SessionStore, awaited, said

IDS = (
    "a", "A", "ab", "a ", " a", "a/b", "a%", "a_", "ä", "a\u0308", "'; --", '"', "a:b", "*", "[a]", "东", "🦊",
    "x" * 200,
)  # fmt: skip
TURNS = (0, 1, 2, 3, 5, 10, 100)
"""How many turns of the event loop a call gets before it is cancelled."""


class IsolationPromises(Scene):
    """Promises about which session is meant."""

    @awaited
    async def test_every_id_is_a_session_of_its_own(self, sessions: Sessions) -> None:
        """Whatever differs makes another session: case, blanks, accents, signs that mean something elsewhere."""
        for id in IDS:
            await sessions(id).add_items(said(f"of {id}"))
        for id in IDS:
            assert await sessions(id).get_items() == said(f"of {id}")

    @awaited
    async def test_popping_and_clearing_leave_other_sessions_alone(self, sessions: Sessions) -> None:
        """Also one whose id begins alike."""
        one, other = sessions("a"), sessions("ab")
        await other.add_items(said("1", "2"))
        await one.add_items(said("3"))
        assert [await one.pop_item(), await one.pop_item()] == [*said("3"), None]
        await one.clear_session()
        assert await other.get_items() == said("1", "2")

    @awaited
    async def test_two_handles_of_one_id_are_one_session(self, sessions: Sessions) -> None:
        """What one adds, pops or clears, the other sees at once."""
        one, other = sessions(), sessions()
        await one.add_items(said("1"))
        await other.add_items(said("2"))
        assert await one.get_items() == await other.get_items() == said("1", "2")
        assert await one.pop_item() == said("2")[0]
        assert await other.get_items() == said("1")
        await other.clear_session()
        assert await one.get_items() == []


class ConcurrencyPromises(Scene):
    """Promises about many calls at once, through several handles."""

    @awaited
    async def test_no_add_of_many_at_once_is_lost(self, sessions: Sessions) -> None:
        """And what was added together stands together, in order."""
        handles = [sessions() for _ in range(4)]
        batches = [said(*(f"{number}.{part}" for part in range(3))) for number in range(40)]
        await asyncio.gather(*(handles[at % 4].add_items(batch) for at, batch in enumerate(batches)))
        found = await handles[0].get_items()
        stood = [found[at : at + 3] for at in range(0, len(found), 3)]
        assert sorted(stood, key=str) == sorted(batches, key=str)

    @awaited
    async def test_no_item_is_popped_twice(self, sessions: Sessions) -> None:
        """Each goes to one caller, and those who come too late get None."""
        handles = [sessions() for _ in range(4)]
        everything = [str(number) for number in range(24)]
        await handles[0].add_items(said(*everything))
        popped = await asyncio.gather(*(handles[at % 4].pop_item() for at in range(30)))
        assert sorted(item["content"] for item in popped if item is not None) == sorted(everything)
        assert popped.count(None) == 6
        assert await handles[0].get_items() == []

    @awaited
    async def test_what_was_popped_and_what_is_left_is_what_was_added(self, sessions: Sessions) -> None:
        """However adds and pops meet, no item goes missing and none appears from nowhere."""
        handles = [sessions() for _ in range(4)]
        added = [f"new {number}" for number in range(20)]
        await handles[0].add_items(said("old 1", "old 2"))
        done = await asyncio.gather(
            *(handles[at % 4].add_items(said(text)) for at, text in enumerate(added)),
            *(handles[at % 4].pop_item() for at in range(10)),
        )
        popped, left = [item for item in done if item is not None], await handles[0].get_items()
        texts = [item["content"] for item in (*popped, *left)]
        assert sorted(texts) == sorted([*added, "old 1", "old 2"])

    @awaited
    async def test_a_reader_sees_whole_batches(self, sessions: Sessions) -> None:
        """Never a part of what is added together, and never a later one without those before it."""
        writer, reader = sessions(), sessions()
        writing = asyncio.ensure_future(self._write(writer))
        while not writing.done():
            found = [item["content"] for item in await reader.get_items()]
            assert found == [str(number) for number in range(len(found))]
            assert len(found) % 5 == 0
            await asyncio.sleep(0)  # a store that never waits must not keep the writer from writing
        await writing

    @staticmethod
    async def _write(session: SessionStore) -> None:
        for first in range(0, 100, 5):
            await session.add_items(said(*(str(number) for number in range(first, first + 5))))


class CancellingPromises(Scene):
    """Promises about calls that are cancelled, early and late."""

    @awaited
    async def test_a_cancelled_add_wrote_all_or_nothing(self, sessions: Sessions) -> None:
        """And nothing lands behind the back of the caller once it was told of the cancellation."""
        for turns in TURNS:
            session = sessions(f"cancelled after {turns}")
            await self._cancelled(asyncio.ensure_future(session.add_items(said("1", "2", "3"))), turns)
            found = await session.get_items()
            assert found in ([], said("1", "2", "3"))
            await session.add_items(said("4"))
            assert await session.get_items() == [*found, *said("4")]

    @awaited
    async def test_a_cancelled_pop_takes_one_or_none(self, sessions: Sessions) -> None:
        """And the session goes on."""
        for turns in TURNS:
            session = sessions(f"cancelled after {turns}")
            await session.add_items(said("1", "2", "3"))
            await self._cancelled(asyncio.ensure_future(session.pop_item()), turns)
            assert await session.get_items() in (said("1", "2"), said("1", "2", "3"))
            await session.add_items(said("4"))
            assert (await session.get_items())[-1:] == said("4")

    @staticmethod
    async def _cancelled(task: asyncio.Future[Any], turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
