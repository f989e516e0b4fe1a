"""Exporting 500 messages beside stdlib ``json`` encoding the same content."""

from __future__ import annotations

import io
import json
import statistics
from pathlib import Path
from typing import Any

import holdfast
from benchmarks.measure import rounds, table

COUNT = 500


def run(folder: Path) -> dict[str, Any]:
    with holdfast.open(folder / "export.db") as store:
        thread = store.thread("trip", user="ana")
        thread.append(*({"role": "user", "content": f"message {n}: " + "olá, straße " * 40} for n in range(COUNT)))
        document = io.BytesIO()
        store.export_to(document, thread="trip", format="json")
        content = json.loads(document.getvalue())
        spent = rounds(
            {
                "holdfast export": lambda: _drop(store.export_to(io.BytesIO(), thread="trip", format="json")),
                "json.dumps of it": lambda: _drop(json.dumps(content).encode()),
            },
            times=5,
            repeats=21,
        )
    ours, theirs = (statistics.median(spent[name]) for name in spent)
    table(
        f"Export of {COUNT} messages ({len(document.getvalue()):,} bytes): read, encoded, hashed; beside stdlib json",
        [{"what": name, "ms": statistics.median(values) * 1e3} for name, values in spent.items()],
    )
    print(f"  stdlib json (encoding alone) / whole export: {theirs / ours:.2f}")
    return {"export_ms": ours * 1e3, "stdlib_json_ms": theirs * 1e3, "stdlib_to_export": theirs / ours}


def _drop(value: object) -> None:
    """Keep nothing of a result."""
