"""The published behaviour suite for session stores, against ours and against one that it must not let pass."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from agents import SQLiteSession
from session_suite import Sessions, SessionSuite

import holdfast
from holdfast.adapters.openai_agents import HoldfastSession


class TestOnSQLite(SessionSuite):
    """Each session opens the file for itself, as programs of their own would."""

    def make(self, place: Path, session_id: str) -> HoldfastSession:
        return HoldfastSession(session_id, place / "agent.db")


class TestInOneStore(SessionSuite):
    """All sessions share one open store, as in a server."""

    engine = "sqlite"

    @pytest.fixture(autouse=True)
    def _one_store(self, opened: Callable[[str], holdfast.Store]) -> None:
        self.store = opened(self.engine)

    def make(self, place: Path, session_id: str) -> HoldfastSession:
        return HoldfastSession(session_id, self.store, user="ana", agent="desk")


class TestOnPostgres(TestInOneStore):
    engine = "postgres"


class TestInMemory(TestInOneStore):
    engine, durable = "ram", False


class TestBundled(SessionSuite):
    """The SDK's own session keeps every promise but two, so the suite asks for nothing strange."""

    test_what_is_no_list_of_items_is_refused = None  # type: ignore[assignment]  # it stores the letters of a text
    test_what_is_not_plain_comes_back_or_is_refused = None  # type: ignore[assignment]  # a key 1 comes back as "1"

    def make(self, place: Path, session_id: str) -> SQLiteSession:
        return SQLiteSession(session_id, place / "sessions.db")


class Careless:
    """A session that keeps what it was given in a list, as one writes it in a minute."""

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    async def get_items(self, limit: int | None = None) -> list[Any]:
        return self.items[-limit:] if limit else self.items

    async def add_items(self, items: list[Any]) -> None:
        for item in items:
            await asyncio.sleep(0)
            self.items.append(json.loads(json.dumps(item, default=str)))

    async def pop_item(self) -> Any:
        if not self.items:
            return None
        newest = self.items[-1]
        await asyncio.sleep(0)
        if self.items:
            self.items.pop()
        return newest

    async def clear_session(self) -> None:
        self.items.clear()


class CarelessSuite(SessionSuite):
    def __init__(self) -> None:
        self.kept: dict[str, list[Any]] = {}

    def make(self, place: Path, session_id: str) -> Careless:
        return Careless(self.kept.setdefault(session_id.strip().lower(), []))


@pytest.mark.parametrize(
    "test",
    [
        "test_a_limit_of_zero_gives_nothing",
        "test_what_was_read_is_the_readers_own",
        "test_one_bad_item_keeps_all_of_its_batch_out",
        "test_every_id_is_a_session_of_its_own",
        "test_no_add_of_many_at_once_is_lost",
        "test_no_item_is_popped_twice",
        "test_a_reader_sees_whole_batches",
        "test_a_cancelled_add_wrote_all_or_nothing",
    ],
)
def test_a_careless_session_is_found_out(test: str, tmp_path: Path) -> None:
    suite = CarelessSuite()
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        getattr(suite, test)(Sessions(partial(suite.make, tmp_path)))


def test_a_suite_must_say_how_a_session_is_opened(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match="make"):
        SessionSuite().make(tmp_path, "trip")
