"""Database-backed memory with vectors of your own: search by cosine, newest by type, filters on metadata."""

import sys
from tempfile import TemporaryDirectory

import holdfast


def embed(text: str) -> list[float]:  # stands for your embedding model
    return [float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]


NOTES = [
    ("The Petrel needs a new mast", "insight", {"boat": "Petrel", "yard": "north"}),
    ("Mast steps rot in wet winters", "insight", {"yard": "north"}),
    ("Invoice 88 was paid", "event", {"boat": "Petrel"}),
    ("Invoice 89 was paid", "event", {"boat": "Kittiwake"}),
]

with TemporaryDirectory() as folder, holdfast.open(sys.argv[1] if sys.argv[1:] else f"{folder}/agent.db") as store:
    memory = store.memory(agent="yard")
    for text, type_, metadata in NOTES:
        memory.remember(text, type=type_, metadata=metadata, vector=embed(text), model="letters")

    near = memory.nearest(embed("invoice paid"), k=5, model="letters", min_score=0.7)
    print([(hit.text, round(hit.score, 2)) for hit in near])
    print([one.text for one in memory.recent(1, type="event")])
    print([one.text for one in memory.memories(where={"boat": "Petrel"})])
    only = memory.nearest(embed("mast"), k=1, model="letters", type="insight", where={"boat": "Petrel"})
    print([hit.text for hit in only])

# prints:
# [('Invoice 88 was paid', 0.93), ('Invoice 89 was paid', 0.93)]
# ['Invoice 89 was paid']
# ['Invoice 88 was paid', 'The Petrel needs a new mast']
# ['The Petrel needs a new mast']
