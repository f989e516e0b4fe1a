"""Every message is stored as it happens, and after a restart the agent reads the newest ones.

Lacks: keys that make an append safe to repeat, owners, digests, exact token counts, and a window whose beginning
stays the same from turn to turn, for a provider's cache.
"""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from tempfile import TemporaryDirectory

QUESTION = "Which boat came last?"
Row = tuple[int, str, str]


class Log:
    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        db.execute(
            "CREATE TABLE IF NOT EXISTS log (thread TEXT, number INT, role TEXT, content TEXT, "
            "PRIMARY KEY (thread, number))"
        )

    def append(self, thread: str, messages: Iterable[tuple[str, str]]) -> None:
        with self.db:
            self.db.execute("BEGIN IMMEDIATE")
            newest = self.db.execute("SELECT max(number) FROM log WHERE thread = ?", (thread,)).fetchone()[0] or 0
            rows = [(thread, number, *message) for number, message in enumerate(messages, newest + 1)]
            self.db.executemany("INSERT INTO log VALUES (?, ?, ?, ?)", rows)

    def last(self, thread: str, limit: int) -> list[Row]:
        query = "SELECT number, role, content FROM log WHERE thread = ? ORDER BY number DESC LIMIT ?"
        return self.db.execute(query, (thread, limit)).fetchall()[::-1]

    def page(self, thread: str, after: int, limit: int) -> list[Row]:
        query = "SELECT number, role, content FROM log WHERE thread = ? AND number > ? ORDER BY number LIMIT ?"
        return self.db.execute(query, (thread, after, limit)).fetchall()

    def window(self, thread: str, text: str, budget: int) -> tuple[list[Row], int]:
        kept: list[Row] = []
        used = tokens(text)
        for row in reversed(self.last(thread, budget)):
            if used + tokens(row[2]) > budget:
                break
            kept, used = [row, *kept], used + tokens(row[2])
        return kept, used


def tokens(text: str) -> int:
    return len(text) // 4 + 8


with TemporaryDirectory() as folder:
    with closing(sqlite3.connect(f"{folder}/agent.db")) as db:
        Log(db).append("arrivals", [("user", f"Boat {number} arrived.") for number in range(1, 501)])

    with closing(sqlite3.connect(f"{folder}/agent.db")) as db:
        log = Log(db)
        print([content for _, _, content in log.last("arrivals", 2)])
        print("page:", [number for number, _, _ in log.page("arrivals", 100, 3)])
        rows, used = log.window("arrivals", QUESTION, 600)
        first, last = rows[0][0], rows[-1][0]
        print("whole turns, the newest ones:", last, last - first < 60, "within the budget:", used <= 600)
        print(QUESTION)
