"""A process is killed after it acted and before it recorded that; nothing is done twice.

Lacks: a lease and a fence (two processes may resume at once), a check that the input is still the same, a policy for
when the probe cannot say, retries, a timeline, and an entry in the conversation in the same commit.
"""

import json
import multiprocessing
import os
import signal
import sqlite3
import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


class Steps:
    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        with db:
            db.execute(
                "CREATE TABLE IF NOT EXISTS steps (thread TEXT, run TEXT, step TEXT, key TEXT, done INT DEFAULT 0, "
                "result TEXT, PRIMARY KEY (thread, run, step))"
            )

    def once(self, name: tuple[str, str, str], do: Callable[[str], Any], probe: Callable[[str], Any]) -> Any:
        where = "WHERE thread = ? AND run = ? AND step = ?"
        row = self.db.execute(f"SELECT key, done, result FROM steps {where}", name).fetchone()
        if row and row[1]:
            return json.loads(row[2]), "recorded"
        key, result, how = row[0] if row else uuid.uuid4().hex, None, "ran"
        if row:
            result, how = probe(key), "probed"
        else:
            with self.db:
                self.db.execute("INSERT INTO steps (thread, run, step, key) VALUES (?, ?, ?, ?)", (*name, key))
        if result is None:
            result, how = do(key), "ran"
        with self.db:
            self.db.execute(f"UPDATE steps SET done = 1, result = ? {where}", (json.dumps(result), *name))
        return result, how


def refit(address: str, crane: Path, die: bool) -> None:
    def book(key: str) -> str:
        with crane.open("a") as bookings:
            bookings.write(f"{key} 3 May\n")
        if die:
            os.kill(os.getpid(), signal.SIGKILL)
        return "3 May"

    def find(key: str) -> str | None:
        return "3 May" if key in crane.read_text() else None

    with closing(sqlite3.connect(address)) as db:
        day, how = Steps(db).once(("refit-9", "crane", "book"), book, find)
        print(f"{day}, {how}, bookings: {len(crane.read_text().splitlines())}")


with TemporaryDirectory() as folder:
    address, crane = f"{folder}/agent.db", Path(folder, "crane.txt")
    child = multiprocessing.get_context("fork").Process(target=refit, args=(address, crane, True))
    child.start()
    child.join()
    print("killed:", child.exitcode == -signal.SIGKILL)
    refit(address, crane, die=False)
