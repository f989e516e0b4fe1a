"""Moving in: a database of the SDK's own session is imported, and a session here goes on where it was left."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agents import SQLiteSession

import holdfast
from holdfast import importers
from holdfast.adapters.openai_agents import HoldfastSession, to_draft
from holdfast.importers.agents_sessions import entry_of

ITEMS: list[Any] = [
    {"role": "user", "content": "Book me a flight ✈️"},
    {"type": "message", "role": "assistant", "id": "m", "content": [{"type": "output_text", "text": "Where to?"}]},
    {"type": "function_call", "id": "fc", "call_id": "c", "name": "find", "arguments": "{}", "status": "completed"},
    {"type": "function_call_output", "call_id": "c", "output": "TP 1234"},
    {"type": "function_call_output", "call_id": "c"},
    {"type": "custom_tool_call", "call_id": "d", "name": "own", "input": "x"},
    {"type": "custom_tool_call_output", "call_id": "d", "output": [{"type": "input_text", "text": "y"}]},
    {"type": "reasoning", "id": "r", "summary": []},
    {"type": "compaction", "encrypted_content": "…"},
    {"type": "item_reference", "id": "m"},
    {"type": 7, "role": "user", "content": "odd"},
    {"content": "nobody"},
    {},
]


@pytest.mark.parametrize("item", ITEMS)
def test_an_imported_item_is_the_entry_that_the_session_makes(item: Any) -> None:
    draft = to_draft(item)
    assert entry_of(item) == (draft.kind, draft.content)


def test_a_session_goes_on(store: holdfast.Store, tmp_path: Path) -> None:
    async def there() -> None:
        session = SQLiteSession("trip", tmp_path / "sessions.db")
        await session.add_items(ITEMS)
        session.close()

    async def here() -> list[Any]:
        session = HoldfastSession("trip", store, user="ana")
        assert await session.get_items() == ITEMS
        await session.add_items([{"role": "user", "content": "go on"}])
        assert await session.pop_item() == {"role": "user", "content": "go on"}
        return await session.get_items(2)

    asyncio.run(there())
    with importers.read(tmp_path / "sessions.db", user="ana") as source:
        assert importers.import_into(store, source).new == {"entries": len(ITEMS)}
    assert asyncio.run(here()) == ITEMS[-2:]
    with importers.read(tmp_path / "sessions.db", user="ana") as source:
        assert importers.import_into(store, source).new == {}
