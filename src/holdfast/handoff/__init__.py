"""The room of the handoff: the progress document that bridges two sessions of an agent.

``document`` says what it holds, ``markdown`` how people read and write it, ``files`` and ``git`` where it goes, and
``book`` keeps its revisions and is the handle that callers use. Deliberately absent: runs and steps (facts about them
are passed in), and anything about models.
"""

from __future__ import annotations

from holdfast.handoff.book import KIND, Handoff, HandoffRevision, Written
from holdfast.handoff.document import Document, Item, Section

__all__ = ["KIND", "Document", "Handoff", "HandoffRevision", "Item", "Section", "Written"]
