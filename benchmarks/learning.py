"""What the rules learn from everyday sentences, against what a person read in them.

``benchmarks/sentences`` has three sets: ``dev``, which the rules were written with; ``heldout``, which was opened when
they were done, and then used to mend them; and ``strangers``, opened last and not used. Each sentence has the lasting
facts it states, if any. ``read.json`` is a strict reading of what is learned: which memories are wrong (untrue,
passing, of someone else, or not understood alone) and which facts are found. A sentence from which something else is
learned now is *unread*; ``--read SET`` shows every sentence with what is learned from it.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.measure import table
from holdfast.memory import rules

SENTENCES = Path(__file__).parent / "sentences"
SETS = ("dev", "heldout", "strangers")
SAID = datetime(2026, 5, 6, 10, tzinfo=UTC)


def learned(text: str) -> list[str]:
    return [found.text for found in rules.extract(text, time=SAID, subject="ana")]


def measured(name: str) -> dict[str, Any]:
    """The figures of one set, over the sentences that were read."""
    items = json.loads((SENTENCES / f"{name}.json").read_text(encoding="utf-8"))
    reading = json.loads((SENTENCES / "read.json").read_text(encoding="utf-8"))[name]
    memories = wrong = facts = found = unread = silent = 0
    for number, item in enumerate(items):
        now, read = learned(item["text"]), reading.get(str(number), {"memories": [], "wrong": [], "found": []})
        unread += now != read["memories"]
        memories += len(now)
        wrong += sum(text in read["wrong"] for text in now)
        facts += len(item["facts"])
        found += len(read["found"]) if now == read["memories"] else 0
        silent += bool(now) and not item["facts"]
    return {
        "sentences": len(items), "facts": facts, "memories": memories, "wrong": wrong, "found": found, "unread": unread,
        "from_nothing": silent, "precision": round(1 - wrong / max(1, memories), 3), "recall": round(found / facts, 3),
    }  # fmt: skip


def run(folder: Path) -> dict[str, Any]:
    """Print a row for each set. ``folder`` is not used: nothing is stored."""
    results = {name: measured(name) for name in SETS}
    table("what the rules learn from sentences", [{"set": name, **row} for name, row in results.items()])
    return results


def show(name: str) -> None:
    """Print each sentence with its facts and what is learned from it, to be read."""
    for number, item in enumerate(json.loads((SENTENCES / f"{name}.json").read_text(encoding="utf-8"))):
        now = learned(item["text"])
        if now or item["facts"]:
            print(f"{number} {item['text']!r}")
            print(*(f"    fact {each}: {fact}" for each, fact in enumerate(item["facts"])), sep="\n")
            print(*(f"    learned: {text}" for text in now), sep="\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        show(sys.argv[2] if len(sys.argv) > 2 else "dev")
    else:
        print(json.dumps(run(Path())))
