"""The state of this conversation and what was learned in others, joined for one turn.

Lacks: vectors and ranking (a word must match), knowing that nothing relevant was found unless no word matches, history
of facts, and a token budget.
"""

import json
import re
import sqlite3
from contextlib import closing
from tempfile import TemporaryDirectory
from typing import Any

COMMON = {"which", "does", "she", "may", "we", "use", "who", "the", "in", "a", "is", "it"}


class Memory:
    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        db.executescript(
            "CREATE TABLE IF NOT EXISTS states (thread TEXT PRIMARY KEY, document TEXT);"
            "CREATE VIRTUAL TABLE IF NOT EXISTS facts USING "
            "fts5(user UNINDEXED, key UNINDEXED, text, tokenize = 'porter');"
        )

    def save(self, thread: str, state: dict[str, Any]) -> None:
        with self.db:
            self.db.execute("INSERT OR REPLACE INTO states VALUES (?, ?)", (thread, json.dumps(state)))

    def remember(self, user: str, text: str, key: str | None = None) -> None:
        with self.db:
            self.db.execute("DELETE FROM facts WHERE user = ? AND key = ?", (user, key))
            self.db.execute("INSERT INTO facts VALUES (?, ?, ?)", (user, key, text))

    def recall(self, user: str, text: str, k: int) -> list[str]:
        words = [word for word in re.findall(r"\w+", text.lower()) if word not in COMMON]
        query = "SELECT text FROM facts WHERE facts MATCH ? AND user = ? ORDER BY rank LIMIT ?"
        asked = " OR ".join(f'"{word}"' for word in words)
        return [row[0] for row in self.db.execute(query, (asked, user, k))] if words else []

    def load_context(self, thread: str, user: str, text: str) -> dict[str, Any]:
        row = self.db.execute("SELECT document FROM states WHERE thread = ?", (thread,)).fetchone()
        return {**json.loads(row[0]), "memories": self.recall(user, text, k=1)}

    def packed(self, thread: str, user: str, text: str) -> dict[str, str]:
        known = self.db.execute("SELECT text FROM facts WHERE user = ? AND key IS NOT NULL", (user,))
        system, found = "\n".join(row[0] for row in known), self.load_context(thread, user, text)
        return {"system": system, "recalled": "\n".join(found.pop("memories")), "state": json.dumps(found)}


with TemporaryDirectory() as folder, closing(sqlite3.connect(f"{folder}/agent.db")) as db:
    memory = Memory(db)
    memory.remember("ana", "Allergic to epoxy")
    memory.remember("ana", "Prefers calls before nine")
    memory.remember("ana", "Sails the Petrel", key="boat")
    memory.remember("ana", "Sails the Kittiwake", key="boat")
    memory.save("refit-9", {"task": "repair the hull", "step": 2})
    for text in ("Which boat does she sail?", "May we use epoxy?", "Who won the regatta in 1987?"):
        print(memory.load_context("refit-9", "ana", text))
    page = memory.packed("refit-9", "ana", "May we use epoxy?")
    print("packed:", "epoxy" in page["recalled"], "hull" in page["state"], "Kittiwake" in page["system"])
