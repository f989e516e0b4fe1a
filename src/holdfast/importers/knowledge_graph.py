"""The file of the reference memory server for MCP: one JSON object a line, entities with observations, and relations.

An observation becomes a memory about its entity, a relation a link, and the type of an entity a link too ("is a"), so
that nothing of the graph is lost. Observations and relations have no names of their own, so what they say names them:
the same one twice is one. Deliberately absent: times, because the file has none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from holdfast import Origin
from holdfast.errors import Corrupt, Invalid
from holdfast.extension import Remembering
from holdfast.importers.files import Original
from holdfast.importers.parts import ImportedMemories
from holdfast.importers.source import ImportOptions, ImportSource, RefusedItem, fingerprint, tagged

_ORIGIN = Origin(channel="mcp-memory")
IS_A = "is a"
_SHAPES: dict[str, dict[str, type]] = {
    "entity": {"name": str, "entityType": str, "observations": list},
    "relation": {"from": str, "to": str, "relationType": str},
}


class KnowledgeGraph(ImportSource):
    """Such a file."""

    kind = "mcp-memory"
    title = "MCP memory server's graph"

    def __init__(self, original: Original, wanted: ImportOptions) -> None:
        self._original, self._wanted = original, wanted
        self.place = str(original.path)
        lines = list(_lines(original))
        entities = [line for line in lines if line["type"] == "entity"]
        self.counts = {
            "entities": len(entities),
            "observations": sum(len(entity["observations"]) for entity in entities),
            "relations": len(lines) - len(entities),
        }
        drafts = [draft for line in lines for draft in _drafts(line)]
        self._drafts = tagged(drafts, self.tag())
        self.expected = len(self._drafts)
        if repeated := len(drafts) - self.expected:
            self.notes = (f"{repeated:,} lines or observations occur twice, and are imported once",)

    @staticmethod
    def fits(original: Original) -> bool:
        """Whether the first line is one of such a file."""
        try:
            first = json.loads(next(line for line in original.text.splitlines() if line.strip()))
        except (StopIteration, ValueError, RecursionError):
            return False
        return isinstance(first, dict) and first.get("type") in _SHAPES

    def parts(self) -> Iterator[ImportedMemories | RefusedItem]:
        yield ImportedMemories(self._drafts, self._wanted.user, self._wanted.agent)

    def settle(self) -> None:
        self._original.settle()


def _lines(original: Original) -> Iterator[dict[str, Any]]:
    lines = original.text.split("\n")
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        where = f"{original.path}, line {number}"
        try:
            line = json.loads(text)
        except (ValueError, RecursionError) as error:
            last = " (it is the last one, so the file may be cut short)" if number == len(lines) else ""
            raise Corrupt(f"{where}: not JSON: {error}{last}", path=str(original.path), line=number) from error
        kind = line.get("type") if isinstance(line, dict) else None
        if kind not in _SHAPES:
            raise Invalid(f"{where}: neither an entity nor a relation", path=str(original.path), line=number)
        for name, type_ in _SHAPES[kind].items():
            if not isinstance(line.get(name), type_):
                raise Corrupt(f"{where}: {name} of the {kind} is missing, or not a {type_.__name__}", line=number)
        yield line


def _drafts(line: dict[str, Any]) -> Iterator[Remembering]:
    if line["type"] == "relation":
        yield _link(line["from"], line["relationType"], line["to"])
        return
    name, kind = line["name"], line["entityType"]
    if kind.strip():
        yield _link(name, IS_A, kind)
    elif not line["observations"]:
        yield Remembering(name, subject=name, origin=_ORIGIN, once=f"mcp:entity:{fingerprint(name)}")
    for text in line["observations"]:
        once = f"mcp:observation:{fingerprint(name, str(text))}"
        yield Remembering(text, subject=name, origin=_ORIGIN, once=once)


def _link(subject: str, relation: str, object: str) -> Remembering:
    once = f"mcp:relation:{fingerprint(subject, relation, object)}"
    return Remembering("", subject=subject, relation=relation, object=object, origin=_ORIGIN, once=once)
