"""An old, long observation becomes a short stand-in that keeps every error.

Lacks: kinds of output (tests, JSON, tables, tracebacks), similar lines joined, a limit for output that is nothing but
errors, rendering for several vendors, and a window that stays the same for a provider's cache.
"""

import json
import re
import sqlite3
from contextlib import closing
from tempfile import TemporaryDirectory
from typing import Any

OUTPUT = "\n".join(f"frame {number}: ok" for number in range(2000))
OUTPUT += "\nERROR frame 1127: crack of 4 mm\n1 error in 2000 frames\n"
ERROR = re.compile(r"\b(error|errors|exception|traceback|failed|fatal|panic)\b", re.IGNORECASE)


def mask(text: str, fetch: str) -> str:
    lines = text.splitlines()
    kept = [line for line in lines if ERROR.search(line)]
    shown = [f"| {line}" for line in dict.fromkeys([lines[0], *kept, lines[-1]])]
    return "\n".join([f"[masked: {len(lines)} lines; the whole text: {fetch}]", *shown])


def append(db: sqlite3.Connection, thread: str, *entries: dict[str, Any]) -> None:
    with db:
        rows = [(thread, json.dumps(entry)) for entry in entries]
        db.executemany("INSERT INTO log (thread, entry) VALUES (?, ?)", rows)


def context(db: sqlite3.Connection, thread: str, text: str, verbatim: int = 3) -> tuple[list[dict[str, Any]], int]:
    rows = db.execute("SELECT number, entry FROM log WHERE thread = ? ORDER BY number", (thread,))
    entries = [(number, json.loads(entry)) for number, entry in rows]
    turns = [number for number, entry in entries if entry["role"] == "user"]
    recent = turns[-verbatim] if 0 < verbatim <= len(turns) else 0 if verbatim else float("inf")
    masked, messages = 0, []
    for number, entry in entries:
        if entry["role"] == "tool" and number < recent and len(entry["content"]) > 500:
            entry, masked = {**entry, "content": mask(entry["content"], f"{thread}#{number}")}, masked + 1
        messages.append(entry)
    return [*messages, {"role": "user", "content": text}], masked


def tokens(messages: list[dict[str, Any]]) -> int:
    return sum(len(json.dumps(message)) // 4 for message in messages)


with TemporaryDirectory() as folder, closing(sqlite3.connect(f"{folder}/agent.db")) as db:
    db.execute("CREATE TABLE log (number INTEGER PRIMARY KEY, thread TEXT, entry TEXT)")
    append(
        db,
        "survey-3",
        {"role": "user", "content": "Is the hull sound?"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "call-1", "function": {"name": "scan_hull"}}]},
        {"role": "tool", "tool_call_id": "call-1", "content": OUTPUT},
        {"role": "assistant", "content": "Not quite: frame 1127 has a crack."},
    )
    whole, _ = context(db, "survey-3", "What do we repair?")
    messages, count = context(db, "survey-3", "What do we repair?", verbatim=0)
    print("tokens:", tokens(whole) > 5_000, tokens(messages) < 400, "masked:", count)
    call, shown, said = messages[-4:-1]
    print("the error is there:", "ERROR frame 1127: crack of 4 mm" in shown["content"])
    print("what was said is whole:", said["content"])
    stored = db.execute("SELECT entry FROM log WHERE number = 3").fetchone()[0]
    print("the log has all of it:", json.loads(stored)["content"] == OUTPUT)
