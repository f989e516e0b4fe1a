"""Moving in: what people have elsewhere, read where it is and taken into a store.

``recognising`` tells what something is and opens it; each kind has a module that reads it (``langgraph``, ``mem0``,
``memory_files``, ``knowledge_graph``, ``agents_sessions``); ``parts`` are what comes in, ``taking`` brings it in and
compares. *Invariant:* a source is read at one moment and never changed, all of it is checked before the first commit,
and repeating an import changes nothing. Deliberately absent: the programs that the sources belong to; only what graphs
hold needs LangGraph to be read.
"""

from __future__ import annotations

from holdfast.moving.recognising import ARCHIVE, KINDS, read, recognise
from holdfast.moving.source import Refused, Source
from holdfast.moving.taking import Progress, Taken, take_in

__all__ = ["ARCHIVE", "KINDS", "Progress", "Refused", "Source", "Taken", "read", "recognise", "take_in"]
