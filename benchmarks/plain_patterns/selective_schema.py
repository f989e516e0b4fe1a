"""A small document of what matters, with a version, migrated on load, whose facts grow old.

Lacks: checks of nested types and of fields that would be lost, freshness of fields without a date of their own (items
of a list, single fields), refreshers, reading the state as of a moment, and digests.
"""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from tempfile import TemporaryDirectory
from typing import Any

VERSION = 2
FIELDS = {"preferences": dict, "confirmed_facts": list, "moorings": list}
FRESH = timedelta(days=30)
MIGRATIONS = {
    0: lambda old: {**old, "preferences": {}},
    1: lambda old: {"moorings": [old.pop("mooring")], **old},
}


class Conflict(Exception): ...


class States:
    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        db.execute(
            "CREATE TABLE IF NOT EXISTS states (thread TEXT, revision INT, version INT, document TEXT, "
            "PRIMARY KEY (thread, revision))"
        )

    def save(self, thread: str, document: dict[str, Any], expect: int, version: int = VERSION) -> int:
        row = (thread, expect + 1, version, json.dumps(document))
        with self.db:
            newest = self.db.execute("SELECT max(revision) FROM states WHERE thread = ?", (thread,)).fetchone()[0] or 0
            if newest != expect:
                raise Conflict(f"{thread} is at revision {newest}, not {expect}: load it again")
            try:
                self.db.execute("INSERT INTO states VALUES (?, ?, ?, ?)", row)
            except sqlite3.IntegrityError as error:
                raise Conflict(f"{thread} has another revision {expect + 1}: load it again") from error
        return expect + 1

    def load(self, thread: str) -> tuple[dict[str, Any], int, int, list[int]]:
        """The document, its revision, the version it had, and the facts that must be verified."""
        query = "SELECT revision, version, document FROM states WHERE thread = ? ORDER BY revision DESC LIMIT 1"
        revision, stored, text = self.db.execute(query, (thread,)).fetchone()
        document = json.loads(text)
        if stored > VERSION:
            raise ValueError(f"{thread} was saved by newer code, as version {stored}")
        for version in range(stored, VERSION):
            document = MIGRATIONS[version](document)
        for field, kind in FIELDS.items():
            if not isinstance(document.get(field), kind):
                raise ValueError(f"{thread}, revision {revision}: {field} is not a {kind.__name__}")
        oldest = datetime.now(UTC) - FRESH
        facts = enumerate(document["confirmed_facts"])
        stale = [place for place, fact in facts if datetime.fromisoformat(fact["confirmed_at"]) < oldest]
        return document, revision, stored, stale

    def confirm(self, thread: str, place: int, by: str) -> None:
        document, revision, _, _ = self.load(thread)
        document["confirmed_facts"][place] |= {"confirmed_at": datetime.now(UTC).isoformat(), "confirmed_by": by}
        self.save(thread, document, revision)


with TemporaryDirectory() as folder, closing(sqlite3.connect(f"{folder}/agent.db")) as db:
    states = States(db)
    old = {"fact": "owns the Petrel", "confirmed_at": "2024-04-28T14:22:00Z"}
    new = {"fact": "pays by invoice", "confirmed_at": datetime.now(UTC).isoformat()}
    states.save("owner-7", {"confirmed_facts": [old, new], "mooring": "N3"}, expect=0, version=0)
    document, revision, version, stale = states.load("owner-7")
    print("from version", version, document["moorings"], document["preferences"])
    facts = document["confirmed_facts"]
    print("ask again:", [facts[place]["fact"] for place in stale], tuple(f"confirmed_facts[{n}]" for n in stale))
    states.save("owner-7", document, expect=revision)
    states.confirm("owner-7", 0, by="ana")
    print("after asking:", tuple(states.load("owner-7")[3]))
