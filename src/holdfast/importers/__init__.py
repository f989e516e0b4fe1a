"""Importing data from other programs: read in place, and written into a store.

``recognising`` tells what something is and opens it; each kind has a module that reads it (``langgraph``, ``mem0``,
``memory_files``, ``knowledge_graph``, ``agents_sessions``), and ``graph_types`` are the classes that a graph may hold;
``parts`` are what is imported, ``importing`` imports and compares. *Invariant:* a source is read at one moment and
never changed, all of it is checked before the first commit, repeating an import changes nothing, and imported data
carries the tag of its source. Deliberately absent: the programs that the sources belong to; only what graphs hold needs
LangGraph to be read.
"""

from __future__ import annotations

from holdfast.importers.importing import ImportOutcome, Owner, Progress, by_reason, import_into
from holdfast.importers.recognising import ARCHIVE, KINDS, read, recognise
from holdfast.importers.source import ImportSource, RefusedItem

__all__ = [
    "ARCHIVE",
    "KINDS",
    "ImportOutcome",
    "ImportSource",
    "Owner",
    "Progress",
    "RefusedItem",
    "by_reason",
    "import_into",
    "read",
    "recognise",
]
