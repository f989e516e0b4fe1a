"""Mark a moment, go back to it, or try another way from it, without losing either.

Lacks: conflicts between two writers, runs that go along with a fork, keys, digests, and reading the newest entries
without walking back one by one.
"""

import json
import sqlite3
from contextlib import closing
from tempfile import TemporaryDirectory
from typing import Any


class Threads:
    """Each node has its parent, the message said and the state after it; a thread and a checkpoint point at a node."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        db.executescript(
            "CREATE TABLE IF NOT EXISTS nodes (id INTEGER PRIMARY KEY, parent INT, message TEXT, state TEXT);"
            "CREATE TABLE IF NOT EXISTS pointers (thread TEXT, name TEXT, node INT, PRIMARY KEY (thread, name));"
        )

    def node(self, thread: str, name: str = "head") -> int | None:
        query = "SELECT node FROM pointers WHERE thread = ? AND name = ?"
        row = self.db.execute(query, (thread, name)).fetchone()
        return row[0] if row else None

    def point(self, thread: str, name: str, node: int | None) -> None:
        with self.db:
            self.db.execute("INSERT OR REPLACE INTO pointers VALUES (?, ?, ?)", (thread, name, node))

    def turn(self, thread: str, message: str, state: dict[str, Any]) -> None:
        with self.db:
            row = (self.node(thread), message, json.dumps(state))
            made = self.db.execute("INSERT INTO nodes (parent, message, state) VALUES (?, ?, ?)", row)
            self.db.execute("INSERT OR REPLACE INTO pointers VALUES (?, 'head', ?)", (thread, made.lastrowid))

    def rewind(self, thread: str, name: str) -> str:
        undo = f"before-rewind-to-{name}"
        self.point(thread, undo, self.node(thread))
        self.point(thread, "head", self.node(thread, name))
        return undo

    def read(self, thread: str) -> tuple[list[str], dict[str, Any]]:
        node, messages, state = self.node(thread), [], "{}"
        while node is not None:
            query = "SELECT parent, message, state FROM nodes WHERE id = ?"
            node, message, found = self.db.execute(query, (node,)).fetchone()
            state = state if messages else found
            messages.insert(0, message)
        return messages, json.loads(state)


with TemporaryDirectory() as folder:
    with closing(sqlite3.connect(f"{folder}/agent.db")) as db:
        threads = Threads(db)
        threads.turn("refit-9", "Paint the hull.", {"colour": None})
        threads.point("refit-9", "before-colour", threads.node("refit-9"))
        threads.turn("refit-9", "In red.", {"colour": "red"})

    with closing(sqlite3.connect(f"{folder}/agent.db")) as db:
        threads = Threads(db)
        threads.point("refit-9-blue", "head", threads.node("refit-9", "before-colour"))
        threads.turn("refit-9-blue", "In blue.", {"colour": "blue"})
        undo = threads.rewind("refit-9", "before-colour")
        print("rewound:", *threads.read("refit-9"))
        threads.rewind("refit-9", undo)
        print("undone:", *threads.read("refit-9"))
        print("fork:", *threads.read("refit-9-blue"))
