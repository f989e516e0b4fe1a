"""Memory as markdown files: who the agent is, what it knows, and a note for each day; versions and search included.

Lacks: vectors, several files in one commit, owners, expiry, tags, deleting with a history, and files among what recall
finds for a context.
"""

import re
import sqlite3
from contextlib import closing
from tempfile import TemporaryDirectory


class Conflict(Exception): ...


class Folder:
    def __init__(self, db: sqlite3.Connection, name: str) -> None:
        self.db, self.name = db, name
        db.executescript(
            "CREATE TABLE IF NOT EXISTS files (folder TEXT, path TEXT, version INT, content TEXT, "
            "PRIMARY KEY (folder, path, version));"
            "CREATE VIRTUAL TABLE IF NOT EXISTS newest USING "
            "fts5(folder UNINDEXED, path UNINDEXED, version UNINDEXED, content, tokenize = 'porter');"
        )

    def history(self, path: str) -> list[tuple[int, str]]:
        query = "SELECT version, content FROM files WHERE folder = ? AND path = ? ORDER BY version"
        return self.db.execute(query, (self.name, path)).fetchall()

    def paths(self, prefix: str = "") -> list[str]:
        query = "SELECT DISTINCT path FROM files WHERE folder = ? AND substr(path, 1, ?) = ? ORDER BY path"
        return [row[0] for row in self.db.execute(query, (self.name, len(prefix), prefix))]

    def write(self, path: str, content: str, expect: int | None = None) -> None:
        with self.db:
            self.db.execute("BEGIN IMMEDIATE")
            version = len(self.history(path))
            if expect is not None and expect != version:
                raise Conflict(f"{path} is at version {version}, not {expect}: read it again")
            row = (self.name, path, version + 1, content)
            self.db.execute("INSERT INTO files VALUES (?, ?, ?, ?)", row)
            self.db.execute("DELETE FROM newest WHERE folder = ? AND path = ?", (self.name, path))
            self.db.execute("INSERT INTO newest VALUES (?, ?, ?, ?)", row)

    def search(self, text: str, k: int) -> list[str]:
        asked = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", text))
        query = "SELECT path, version FROM newest WHERE newest MATCH ? AND folder = ? ORDER BY rank LIMIT ?"
        rows = self.db.execute(query, (asked, self.name, k)) if asked else ()
        return [f"{self.name}/{path}@{version}" for path, version in rows]


with TemporaryDirectory() as folder:
    with closing(sqlite3.connect(f"{folder}/agent.db")) as db:
        files = Folder(db, "notes")
        files.write("SOUL.md", "You are calm and brief.")
        files.write("MEMORY.md", "- Berth 12 is 2.5 metres deep\n")
        files.write("memory/2026-05-02.md", "The crane broke at noon. Jorge repairs it.")
        files.write("memory/2026-05-03.md", "The Petrel arrived with a broken mast.")

    with closing(sqlite3.connect(f"{folder}/agent.db")) as db:
        files = Folder(db, "notes")
        always = [files.history(path)[-1][1].splitlines()[0] for path in ("SOUL.md", "MEMORY.md")]
        print(always, files.paths("memory/"))
        version, facts = files.history("MEMORY.md")[-1]
        files.write("MEMORY.md", facts + "- Jorge repairs cranes\n", expect=version)
        try:
            files.write("MEMORY.md", "written without looking", expect=version)
        except Conflict:
            print("versions:", [version for version, _ in files.history("MEMORY.md")])
        print(files.search("Who repairs the crane?", 2))
