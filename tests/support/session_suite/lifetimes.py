"""What a durable store promises: what was there before everything was closed is there after it is opened again."""

from __future__ import annotations

from typing import ClassVar

import pytest

from session_suite.scene import CONVERSATION, Scene, Sessions, awaited, exactly, said


class RestartPromises(Scene):
    """Promises about a store that was closed."""

    durable: ClassVar[bool] = True

    @pytest.fixture
    def restarts(self) -> None:
        if not self.durable:
            pytest.skip("capability durable: this store keeps nothing when it is closed")

    @pytest.mark.usefixtures("restarts")
    @awaited
    async def test_items_outlive_a_restart(self, sessions: Sessions) -> None:
        """All of them, as they were."""
        await sessions().add_items(CONVERSATION)
        await sessions.close()
        assert exactly(await sessions().get_items()) == exactly(CONVERSATION)

    @pytest.mark.usefixtures("restarts")
    @awaited
    async def test_what_was_taken_away_stays_away_after_a_restart(self, sessions: Sessions) -> None:
        """What was popped and what was cleared do not come back, and the session goes on where it was."""
        await sessions("cleared").add_items(said("1"))
        await sessions("cleared").clear_session()
        await sessions().add_items(said("1", "2", "3"))
        await sessions().pop_item()
        await sessions.close()
        assert await sessions("cleared").get_items() == []
        session = sessions()
        assert await session.get_items() == said("1", "2")
        await session.add_items(said("4"))
        assert await session.get_items() == said("1", "2", "4")
