"""Hybrid memory: the state of this conversation and what was learned in others, joined for one turn.

Short-term: the thread's state. Long-term: memories of the user, found by what the input is about.
"""

import sys
from tempfile import TemporaryDirectory
from typing import Any

import holdfast


def load_context(store: holdfast.Store, thread: holdfast.Thread, text: str) -> dict[str, Any]:
    found = store.memory("ana").recall(text, k=1, log=False)
    return {**thread.state(dict).value, "memories": [hit.text for hit in found] if found.relevant else []}


with TemporaryDirectory() as folder, holdfast.open(sys.argv[1] if sys.argv[1:] else f"{folder}/agent.db") as store:
    store.memory("ana").remember_all(
        ["Allergic to epoxy", "Prefers calls before nine", {"text": "Sails the Petrel", "key": "boat"}]
    )
    store.memory("ana").remember("Sails the Kittiwake", key="boat")  # the newest value counts
    thread = store.thread("refit-9", user="ana")
    thread.save({"task": "repair the hull", "step": 2})

    for text in ("Which boat does she sail?", "May we use epoxy?", "Who won the regatta in 1987?"):
        print(load_context(store, thread, text))
    ctx = store.context(thread, "May we use epoxy?", budget=2000)  # the same, packed for a model
    print("packed:", "epoxy" in ctx.section("recalled"), "hull" in ctx.section("state"), "Kittiwake" in ctx.system)

# prints:
# {'task': 'repair the hull', 'step': 2, 'memories': ['Sails the Kittiwake']}
# {'task': 'repair the hull', 'step': 2, 'memories': ['Allergic to epoxy']}
# {'task': 'repair the hull', 'step': 2, 'memories': []}
# packed: True True True
