"""Memory in a database with vectors of your own: search by cosine, newest by type, filters on metadata.

Lacks: superseded, corrected and forgotten memories, a cache of the vectors, one book for each user and agent, recall
by words beside vectors, counting what is recalled, and Postgres.
"""

import json
import math
import sqlite3
from contextlib import closing
from tempfile import TemporaryDirectory
from typing import Any


def embed(text: str) -> list[float]:  # stands for your embedding model
    return [float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]


NOTES = [
    ("The Petrel needs a new mast", "insight", {"boat": "Petrel", "yard": "north"}),
    ("Mast steps rot in wet winters", "insight", {"yard": "north"}),
    ("Invoice 88 was paid", "event", {"boat": "Petrel"}),
    ("Invoice 89 was paid", "event", {"boat": "Kittiwake"}),
]


class Memories:
    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        db.execute(
            "CREATE TABLE IF NOT EXISTS memories (id INTEGER PRIMARY KEY, agent TEXT, type TEXT, text TEXT, "
            "metadata TEXT, model TEXT, vector TEXT)"
        )

    def remember(self, agent: str, text: str, type: str, metadata: dict[str, Any], vector: list[float]) -> None:
        with self.db:
            query = "INSERT INTO memories (agent, type, text, metadata, model, vector) VALUES (?, ?, ?, ?, ?, ?)"
            self.db.execute(query, (agent, type, text, json.dumps(metadata), "letters", json.dumps(vector)))

    def newest(
        self, agent: str, limit: int = -1, type: str | None = None, where: dict[str, Any] | None = None
    ) -> list[tuple[str, list[float]]]:
        query, values = "SELECT text, vector FROM memories WHERE agent = ?", [agent]
        if type is not None:
            query, values = f"{query} AND type = ?", [*values, type]
        for name, value in (where or {}).items():
            query, values = f"{query} AND json_extract(metadata, ?) = ?", [*values, f'$."{name}"', value]
        rows = self.db.execute(f"{query} ORDER BY id DESC LIMIT ?", [*values, limit])
        return [(text, json.loads(vector)) for text, vector in rows]

    def nearest(
        self, agent: str, vector: list[float], k: int, least: float = -1.0, **only: Any
    ) -> list[tuple[str, float]]:
        scored = [(text, cosine(vector, other)) for text, other in self.newest(agent, **only)]
        best = sorted(reversed(scored), key=lambda pair: -pair[1])
        return [(text, score) for text, score in best if score >= least][:k]


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True)) / (math.hypot(*one) * math.hypot(*other) or 1.0)


with TemporaryDirectory() as folder, closing(sqlite3.connect(f"{folder}/agent.db")) as db:
    memory = Memories(db)
    for text, type_, metadata in NOTES:
        memory.remember("yard", text, type_, metadata, embed(text))

    print([(text, round(score, 2)) for text, score in memory.nearest("yard", embed("invoice paid"), 5, least=0.7)])
    print([text for text, _ in memory.newest("yard", 1, type="event")])
    print([text for text, _ in memory.newest("yard", where={"boat": "Petrel"})])
    only = memory.nearest("yard", embed("mast"), 1, type="insight", where={"boat": "Petrel"})
    print([text for text, _ in only])
