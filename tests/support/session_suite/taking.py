"""What ``pop_item`` and ``clear_session`` promise: the newest is taken back, or everything, and the session goes on."""

from __future__ import annotations

from session_suite.scene import CONVERSATION, Scene, Sessions, awaited, exactly, said


class PoppingPromises(Scene):
    """Promises about taking back the newest item."""

    @awaited
    async def test_nothing_can_be_popped_from_an_empty_session(self, sessions: Sessions) -> None:
        """None says so, whether the session is new or its last item was popped."""
        session = sessions()
        assert await session.pop_item() is None
        await session.add_items(said("1"))
        assert await session.pop_item() == said("1")[0]
        assert await session.pop_item() is None
        assert await session.get_items() == []

    @awaited
    async def test_the_newest_is_popped_first(self, sessions: Sessions) -> None:
        """Also among those that were added together."""
        session = sessions()
        await session.add_items(said("1", "2"))
        await session.add_items(said("3"))
        assert [await session.pop_item() for _ in range(4)] == [*said("3", "2", "1"), None]

    @awaited
    async def test_a_session_goes_on_after_a_pop(self, sessions: Sessions) -> None:
        """What is added later follows what is left, for readers, limits and pops."""
        session = sessions()
        await session.add_items(said("1", "2", "3"))
        assert await session.pop_item() == said("3")[0]
        await session.add_items(said("4"))
        assert await session.get_items() == said("1", "2", "4")
        assert await session.get_items(limit=2) == said("2", "4")
        assert [await session.pop_item(), await session.pop_item()] == said("4", "2")
        await session.add_items(said("5"))
        assert await session.get_items() == said("1", "5")

    @awaited
    async def test_what_was_popped_can_be_added_again(self, sessions: Sessions) -> None:
        """So does the SDK when it tries a turn again."""
        session = sessions()
        await session.add_items(CONVERSATION)
        popped = [await session.pop_item() for _ in range(3)]
        await session.add_items(popped[::-1])
        assert exactly(await session.get_items()) == exactly(CONVERSATION)


class ClearingPromises(Scene):
    """Promises about beginning anew."""

    @awaited
    async def test_a_cleared_session_is_empty_and_can_be_used_again(self, sessions: Sessions) -> None:
        """Nothing of what was cleared is read or popped afterwards."""
        session = sessions()
        await session.add_items(said("1", "2"))
        await session.clear_session()
        assert await session.get_items() == []
        assert await session.pop_item() is None
        await session.add_items(said("3"))
        assert await session.get_items() == said("3")
        assert [await session.pop_item(), await session.pop_item()] == [*said("3"), None]

    @awaited
    async def test_clearing_an_empty_session_is_no_error(self, sessions: Sessions) -> None:
        """Neither a new one, nor one that was cleared before."""
        session = sessions()
        await session.clear_session()
        await session.add_items(said("1"))
        await session.clear_session()
        await session.clear_session()
        assert await session.get_items() == []
