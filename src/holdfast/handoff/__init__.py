"""The room of the handoff: the progress document that bridges two sessions of an agent.

``document`` says what it holds, ``markdown`` and ``progress_json`` how it is written, ``files`` and ``git`` where it
goes, and ``handoff`` keeps its revisions and is the handle that callers use. Deliberately absent: runs and steps (facts
about them are passed in), and anything about models.
"""

from __future__ import annotations

from holdfast.handoff.document import HandoffDocument, HandoffItem, HandoffSection
from holdfast.handoff.handoff import KIND, Handoff, HandoffFile, HandoffRevision

__all__ = ["KIND", "Handoff", "HandoffDocument", "HandoffFile", "HandoffItem", "HandoffRevision", "HandoffSection"]
