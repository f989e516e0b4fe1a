"""The values that Holdfast returns: records of what is stored, and reports of what was done. All are frozen.

You rarely create one yourself; use the names for annotations and to look up what each field means. Deliberately
absent: handles, drafts and decorators, which are in ``holdfast`` itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from holdfast.engine.contract import Change, Commit, Problem
from holdfast.engine.postgres_options import PostgresOptions
from holdfast.handoff import HandoffDocument, HandoffFile, HandoffItem, HandoffRevision, HandoffSection
from holdfast.ledger.expiry import Expired
from holdfast.ledger.feed import FollowerInfo
from holdfast.ledger.quotas import QuotaUsage
from holdfast.memory.conflicts import Contradiction
from holdfast.memory.facts import FactVersion
from holdfast.memory.graph import Link
from holdfast.records import (
    Checkpoint,
    Draft,
    Entry,
    EntryRef,
    Erasure,
    File,
    FolderInfo,
    Hit,
    Loaded,
    Memory,
    OwnVector,
    Recalled,
    RecallReport,
    Revision,
    StageReport,
    StaleField,
    ThreadInfo,
    UserInfo,
    VerifyReport,
)
from holdfast.steps.replay import Replayed
from holdfast.steps.resume import Resumed
from holdfast.steps.signals import Signal
from holdfast.steps.timeline import Moment, RunInfo, StepInfo, Timeline

if _TYPE_CHECKING:
    from holdfast.archive import ArchiveManifest, ImportReport, Restored
    from holdfast.sessions import (
        Answer,
        ContextReport,
        Dropped,
        Model,
        Opening,
        Reply,
        SectionReport,
        Share,
        ToolCall,
        Usage,
    )

__all__ = [
    "Answer",
    "ArchiveManifest",
    "Change",
    "Checkpoint",
    "Commit",
    "ContextReport",
    "Contradiction",
    "Draft",
    "Dropped",
    "Entry",
    "EntryRef",
    "Erasure",
    "Expired",
    "FactVersion",
    "File",
    "FolderInfo",
    "FollowerInfo",
    "HandoffDocument",
    "HandoffFile",
    "HandoffItem",
    "HandoffRevision",
    "HandoffSection",
    "Hit",
    "ImportReport",
    "Link",
    "Loaded",
    "Memory",
    "Model",
    "Moment",
    "Opening",
    "OwnVector",
    "PostgresOptions",
    "Problem",
    "QuotaUsage",
    "RecallReport",
    "Recalled",
    "Replayed",
    "Reply",
    "Restored",
    "Resumed",
    "Revision",
    "RunInfo",
    "SectionReport",
    "Share",
    "Signal",
    "StageReport",
    "StaleField",
    "StepInfo",
    "ThreadInfo",
    "Timeline",
    "ToolCall",
    "Usage",
    "UserInfo",
    "VerifyReport",
]

_OF_ARCHIVES = {"ArchiveManifest", "ImportReport", "Restored"}


def __getattr__(name: str) -> _Any:
    """The values of archives, contexts and sessions, loaded on first use."""
    if name in _OF_ARCHIVES:
        from holdfast import archive  # noqa: PLC0415

        return getattr(archive, name)
    if name in __all__:
        from holdfast import sessions  # noqa: PLC0415

        return getattr(sessions, name)
    raise AttributeError(f"module 'holdfast.types' has no attribute {name!r}")
