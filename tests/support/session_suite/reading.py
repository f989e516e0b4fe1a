"""What ``get_items`` promises: everything in order, or the newest of it."""

from __future__ import annotations

from session_suite.scene import Scene, Sessions, awaited, said


class ReadingPromises(Scene):
    """Promises about what is read."""

    @awaited
    async def test_a_new_session_is_empty(self, sessions: Sessions) -> None:
        """A session need not be made before it is read."""
        session = sessions()
        assert await session.get_items() == []
        assert await session.get_items(limit=5) == []

    @awaited
    async def test_items_come_back_in_the_order_they_were_added(self, sessions: Sessions) -> None:
        """Whoever said them, and however many at a time."""
        session = sessions()
        await session.add_items(said("1", "2"))
        await session.add_items(said("3"))
        await session.add_items(said("4", "5", role="assistant"))
        assert await session.get_items() == [*said("1", "2", "3"), *said("4", "5", role="assistant")]

    @awaited
    async def test_a_limit_gives_the_newest_in_order(self, sessions: Sessions) -> None:
        """The newest are the last ones added, and the oldest of them comes first."""
        session = sessions()
        await session.add_items(said("1", "2", "3"))
        await session.add_items(said("4", "5"))
        assert await session.get_items(1) == said("5")
        assert await session.get_items(limit=3) == said("3", "4", "5")
        assert await session.get_items(limit=5) == await session.get_items(limit=6) == said("1", "2", "3", "4", "5")

    @awaited
    async def test_a_limit_of_zero_gives_nothing(self, sessions: Sessions) -> None:
        """None means everything; zero does not."""
        session = sessions()
        await session.add_items(said("1"))
        assert await session.get_items(limit=0) == []

    @awaited
    async def test_every_limit_of_a_long_session_is_right(self, sessions: Sessions) -> None:
        """Also around the sizes at which a store might read in pages, and far beyond what there is."""
        session = sessions()
        everything = said(*(str(number) for number in range(1_234)))
        await session.add_items(everything)
        for limit in (1, 499, 500, 501, 999, 1_000, 1_001, 1_233, 1_234, 1_235, 2_147_483_647):
            assert await session.get_items(limit) == everything[-limit:]

    @awaited
    async def test_what_was_read_is_the_readers_own(self, sessions: Sessions) -> None:
        """Changing what came back changes nothing in the store."""
        session = sessions()
        await session.add_items([{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}])
        (await session.get_items())[0]["content"][0]["text"] = "changed"
        assert (await session.get_items())[0]["content"][0]["text"] == "hi"
