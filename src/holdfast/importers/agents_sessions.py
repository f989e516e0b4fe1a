"""Sessions of the OpenAI Agents SDK, as its SQLite sessions keep them: a table of sessions and one of their items.

A session becomes the thread of its id, an item the entry that ``holdfast.adapters.openai_agents`` makes of it, so that
a session opened there goes on where the old one was left. The tables are recognised by their columns; their
names can be chosen. Deliberately absent: the SDK, which is not needed for reading, and items that are encrypted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from holdfast.errors import Invalid, Unsupported
from holdfast.extension import FRAMEWORK
from holdfast.importers.database import ForeignDatabase, quoted
from holdfast.importers.parts import ImportedEntry, ImportedThread
from holdfast.importers.source import ImportOptions, ImportSource, RefusedItem, micros

MARK = "openai_agents"
_COLUMNS = ("id", "session_id", "message_data", "created_at")
_FIELDS = {
    "message": ("message", {"role": "role", "content": "content"}),
    "function_call": ("tool_call", {"id": "call_id", "name": "name", "arguments": "arguments"}),
    "function_call_output": ("observation", {"of": "call_id", "content": "output"}),
    "custom_tool_call": ("tool_call", {"id": "call_id", "name": "name", "arguments": "input"}),
    "custom_tool_call_output": ("observation", {"of": "call_id", "content": "output"}),
}
_UNSPOKEN = ("compaction", "item_reference")
_BRANCHES = ("message_id", "branch_id")


class AgentsSessions(ImportSource):
    """A database of sessions."""

    kind = "openai-agents"
    title = "OpenAI Agents sessions"

    def __init__(self, database: ForeignDatabase, wanted: ImportOptions) -> None:
        tables = database.having(*_COLUMNS)
        if len(tables) != 1:
            found = f"several: {', '.join(sorted(tables))}" if tables else "none"
            raise Invalid(f"{database.path} should have one table of session items, and has {found}")
        _refuse_branches(database)
        self._database, self._wanted, self._table = database, wanted, quoted(tables[0])
        self.place = str(database.path)
        sessions = next(database.rows(f"SELECT count(DISTINCT session_id) FROM {self._table}"))[0]
        self.expected = database.count(tables[0])
        self.counts = {"sessions": sessions, "items": self.expected}

    @staticmethod
    def fits(database: ForeignDatabase) -> bool:
        """Whether this is such a database."""
        return bool(database.having(*_COLUMNS))

    def parts(self) -> Iterator[ImportedThread | RefusedItem]:
        sql = f"SELECT session_id, id, message_data, created_at FROM {self._table} ORDER BY session_id, id"
        for session, rows in groupby(self._database.rows(sql), key=lambda row: row[0]):
            sayings = list[ImportedEntry]()
            for _, id, data, created in rows:
                read = _saying(id, data, created)
                if isinstance(read, RefusedItem):
                    yield RefusedItem(f"session {session!r}, {read.where}", read.why)
                else:
                    sayings.append(read)
            yield ImportedThread(session, tuple(sayings), self._wanted.user, self._wanted.agent, (self.tag(),))

    def close(self) -> None:
        self._database.close()


def _refuse_branches(database: ForeignDatabase) -> None:
    """A session that was branched holds every branch in one table; which one counts, only its program knows."""
    for table in database.having(*_BRANCHES):
        branches = next(database.rows(f"SELECT count(DISTINCT branch_id) FROM {quoted(table)}"))[0]
        if branches > 1:
            raise Unsupported(
                f"{database.path} has sessions with {branches} branches; copy the one you want to a session of "
                "its own, and import that"
            )


def _saying(id: Any, data: Any, created: Any) -> ImportedEntry | RefusedItem:
    where = f"item {id}"
    try:
        item = json.loads(data)
    except (TypeError, ValueError, RecursionError) as error:
        return RefusedItem(where, f"it is not JSON: {error}")
    if not isinstance(item, dict):
        return RefusedItem(where, f"an item is a dict, not {type(item).__name__}")
    if "__enc__" in item:
        return RefusedItem(where, "it is encrypted; read the session with its key and add the items to a new one")
    kind, content = entry_of(item)
    return ImportedEntry(f"{MARK}:{id}", kind, content, micros(created))


def entry_of(item: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The kind and content of the entry that an item is kept in."""
    given = item.get("type")
    kind, fields = _FIELDS.get(given if isinstance(given, str) else "message", ("", {}))
    if kind and all(name in item for name in fields.values()):
        rest = {name: value for name, value in item.items() if name not in fields.values()}
        lifted = {ours: item[theirs] for ours, theirs in fields.items()}
        return kind, {**lifted, FRAMEWORK: {MARK: rest}}
    if isinstance(given, str) and given not in _UNSPOKEN:
        return "message", {"role": "assistant", "content": [item], FRAMEWORK: {MARK: None}}
    return "event", {"name": f"holdfast.{MARK}", FRAMEWORK: {MARK: item}}
