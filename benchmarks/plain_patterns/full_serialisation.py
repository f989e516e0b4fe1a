"""A whole conversation goes into a file, and another store goes on from it.

Lacks: msgpack and YAML, times, keys and forks, a check before anything is written, an import that may be repeated,
and digests that tell which entry was changed.
"""

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


class Talks:
    def __init__(self, address: str) -> None:
        self.db = sqlite3.connect(address)
        self.db.executescript(
            "CREATE TABLE IF NOT EXISTS log (thread TEXT, number INT, message TEXT, PRIMARY KEY (thread, number));"
            "CREATE TABLE IF NOT EXISTS states (thread TEXT PRIMARY KEY, document TEXT);"
        )

    def close(self) -> None:
        self.db.close()

    def save(self, thread: str, messages: list[dict[str, Any]], state: dict[str, Any]) -> None:
        with self.db:
            rows = [(thread, number, json.dumps(message)) for number, message in enumerate(messages, 1)]
            self.db.executemany("INSERT INTO log VALUES (?, ?, ?)", rows)
            self.db.execute("INSERT OR REPLACE INTO states VALUES (?, ?)", (thread, json.dumps(state)))

    def load(self, thread: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        rows = self.db.execute("SELECT message FROM log WHERE thread = ? ORDER BY number", (thread,))
        state = self.db.execute("SELECT document FROM states WHERE thread = ?", (thread,)).fetchone()
        return [json.loads(row[0]) for row in rows], json.loads(state[0])

    def export(self, thread: str, file: Path) -> None:
        body = json.dumps([thread, *self.load(thread)])
        file.write_text(json.dumps({"digest": hashlib.sha256(body.encode()).hexdigest(), "body": body}))

    def import_(self, file: Path) -> None:
        found = json.loads(file.read_text())
        if hashlib.sha256(found["body"].encode()).hexdigest() != found["digest"]:
            raise ValueError(f"{file} was changed")
        self.save(*json.loads(found["body"]))


with TemporaryDirectory() as folder:
    file, damaged = Path(folder, "talk.json"), Path(folder, "damaged.json")
    with closing(Talks(f"{folder}/agent.db")) as talks:
        messages = [
            {"role": "system", "content": "You let berths in a harbour."},
            {"role": "user", "content": "Is berth 12 free in May?"},
            {"role": "assistant", "content": "Yes, from the 3rd."},
        ]
        talks.save("berth-12", messages, {"berth": 12, "from": "3 May"})
        talks.export("berth-12", file)
    with closing(Talks(":memory:")) as copy:
        copy.import_(file)
        print("talk.json", copy.load("berth-12")[0] == messages, copy.load("berth-12")[1])
    damaged.write_text(file.read_text().replace("May?", "June?"))
    with closing(Talks(":memory:")) as copy:
        try:
            copy.import_(damaged)
        except ValueError:
            threads = copy.db.execute("SELECT count(*) FROM states").fetchone()[0]
            print("a file that was changed is refused;", threads, "threads")
