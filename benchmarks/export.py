"""Exporting 500 messages: the encoding beside stdlib ``json`` on the same content, and the whole export."""

from __future__ import annotations

import io
import json
import statistics
from pathlib import Path
from typing import Any

import holdfast
from benchmarks.measure import rounds, table
from holdfast.archive.as_json import JsonWriter
from holdfast.archive.audit import Audit
from holdfast.archive.contents import FORMAT, VERSION, ArchiveHeader, ArchiveManifest, Selection
from holdfast.archive.selection import reach

COUNT = 500


def run(folder: Path) -> dict[str, Any]:
    with holdfast.open(folder / "export.db") as store:
        thread = store.thread("trip", user="ana")
        thread.append(*({"role": "user", "content": f"message {n:03}: " + "x" * 487} for n in range(COUNT)))
        encode, document = _encoding(store), io.BytesIO()
        encode(document)
        content = json.loads(document.getvalue())
        spent = rounds(
            {
                "holdfast, encoding": lambda: encode(_Sink()),
                "json.dumps, as bytes": lambda: _drop(json.dumps(content).encode()),
                "json.dumps, as UTF-8": lambda: _drop(json.dumps(content, ensure_ascii=False).encode()),
                "holdfast, whole export": lambda: _drop(store.export(io.BytesIO(), thread="trip", format="json")),
            },
            times=10,
            repeats=61,
        )
    middle = {name: statistics.median(values) * 1e3 for name, values in spent.items()}
    ours = middle["holdfast, encoding"]
    table(
        f"{COUNT} messages of 500 characters as JSON (the whole export also reads, verifies every digest and hashes)",
        [{"what": name, "ms": spent_ms, "to our encoding": spent_ms / ours} for name, spent_ms in middle.items()],
    )
    return {
        "encoding_ms": ours,
        "stdlib_to_encoding": middle["json.dumps, as bytes"] / ours,
        "stdlib_utf8_to_encoding": middle["json.dumps, as UTF-8"] / ours,
        "whole_export_ms": middle["holdfast, whole export"],
    }


def _encoding(store: holdfast.Store) -> Any:
    """A function that only encodes: what it writes was read and verified before."""
    selection = Selection(store.tenant, thread="trip")
    header = ArchiveHeader(FORMAT, VERSION, 0, selection)
    audit = Audit(header, of="the store")
    with store.core.engine.snapshot() as view:
        sections = [(section, audit.section(section)) for part in reach(view, selection) for section in part.sections()]
    manifest: ArchiveManifest = audit.manifest()

    def encode(out: Any) -> None:
        writer = JsonWriter(out)
        writer.header(header)
        for section, seal in sections:
            writer.section(section, seal)
        writer.manifest(manifest)

    return encode


class _Sink:
    """Where encoded pieces go when only the encoding is of interest; a file would take them as they come, too."""

    def write(self, piece: bytes) -> int:
        return len(piece)


def _drop(value: object) -> None:
    """Keep nothing of a result."""
