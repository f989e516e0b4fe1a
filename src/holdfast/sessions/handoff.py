"""Handing over: what a session leaves for the next one, in the thread's handoff.

A model is asked for goal, steps, blockers, next action, decisions and context; without one, the context is an
extractive summary, and an unanswered question is the next action. What people wrote into the handoff stays.
Deliberately absent: the document itself (``handoff``).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from holdfast.context.sections import Count
from holdfast.context.summary import summarise
from holdfast.context.window import clip
from holdfast.errors import Conflict
from holdfast.handoff import HandoffDocument
from holdfast.ledger.speech import spoken
from holdfast.providers.models.model import Model, Usage
from holdfast.records import Entry
from holdfast.sessions.summaries import lines_of, transcript

if TYPE_CHECKING:
    from holdfast.thread import Thread

_log = logging.getLogger(__name__)
BY = "session"
_TOKENS = 400
_MARK = "From the last session:"
"""A session writes below this line; what is above it is someone else's, and stays."""
_ANSWER = re.compile(r"Answer #\d+: ")
_ITEMS = 12
_LOOKED_BACK = 50
_GREETING = 4  # words; who says no more has not said what it is about
_LONG = 300
_NEWEST = 6
_NEXT = re.compile(r"\bnext (?:action|steps?)[*_]{0,2}:[*_]{0,2}\s*([^\n]{3,300})", re.IGNORECASE)
"""Where somebody says what comes next, and calls it that."""
_ASKED = (
    "You end a working session that another agent continues with no memory of it. From the conversation, and from the "
    "progress document as it is, say what it needs: the goal in one sentence, what was done, what is still to do, what "
    "blocks it, the single next action, what was decided that the document does not say yet, and context (facts, "
    "names, numbers, places of files) in short sentences. Say nothing that is not in there. Leave a field empty where "
    "there is nothing to say."
)


class Progress(msgspec.Struct, frozen=True):
    """What a session leaves behind."""

    goal: str = ""
    done: list[str] = []
    todo: list[str] = []
    blockers: list[str] = []
    next_action: str = ""
    decisions: list[str] = []
    context: str = ""


def write(
    thread: Thread,
    entries: Sequence[Entry],
    earlier: Sequence[str],
    unanswered: Entry | None,
    counting: tuple[Count, int],
    model: Model | None,
    timeout_s: float | None,
) -> tuple[int, Usage]:
    """Bring the handoff of a thread up to date from what was said; return its revision.

    ``counting`` says how tokens are counted, and how many a request may have. A person may write while the model
    thinks, or at the moment of writing: then the document is read again, and what they wrote stays.
    """
    seen = thread.handoff.read()
    found, usage = _by_model(entries, earlier, seen, counting, model, timeout_s)
    found = None if found == Progress() else found
    while True:
        before = thread.handoff.read()
        progress = found or _extracted(entries, earlier, before, counting[0])
        try:
            return _update(thread, seen, before, progress, unanswered), usage
        except Conflict as error:
            if error.facts.get("expected") is None:  # it is not that someone else wrote
                raise


def _update(
    thread: Thread, seen: HandoffDocument, before: HandoffDocument, progress: Progress, unanswered: Entry | None
) -> int:
    """Write progress into a handoff that is still as ``before``; otherwise raise ``Conflict``.

    The model cannot have meant to replace what it has not ``seen``.
    """
    unchanged = before.revision == seen.revision  # but for what runs have done, which nobody wrote
    following = progress.next_action or None
    if unanswered is not None:
        asked = " ".join(spoken(unanswered.kind, unanswered.content).split())[:_LONG]
        following = f"Answer #{unanswered.number}: {asked}"
    elif following is None and _ANSWER.match(before.next_action):
        following = ""  # it was answered
    theirs, _, _ = before.context.partition(_MARK)
    ours = f"{theirs.rstrip()}\n\n{_MARK}\n{progress.context}".lstrip() if progress.context else None
    return thread.handoff.update(
        goal=_clean(progress.goal) if progress.goal and not _is_theirs(thread, before) else None,
        done=_items(progress.done),
        todo=_items(progress.todo),
        blockers=_items(progress.blockers) if unchanged or before.blockers == seen.blockers else None,
        next_action=following and _clean(following) if before.next_action == seen.next_action else None,
        decisions=_items(progress.decisions),
        context=ours and _clean(ours),
        expect=before.revision,
        by=BY,
    )


def _is_theirs(thread: Thread, before: HandoffDocument) -> bool:
    """Whether someone other than a session wrote the goal: then it stays."""
    by = ""
    for revision in reversed(thread.handoff.history(last=_LOOKED_BACK)):
        if thread.handoff.read(revision.number).goal != before.goal:
            break
        by = revision.by
    return bool(before.goal) and by != BY


def _clean(text: str) -> str:
    """Without NUL, which a message can hold and a file cannot."""
    return text.replace("\x00", "")


def _items(given: Sequence[str]) -> list[str] | None:
    return [" ".join(_clean(item).split())[:_LONG] for item in given[:_ITEMS] if item.strip()] or None


def _by_model(
    entries: Sequence[Entry],
    earlier: Sequence[str],
    before: HandoffDocument,
    counting: tuple[Count, int],
    model: Model | None,
    timeout_s: float | None,
) -> tuple[Progress | None, Usage]:
    count, room = counting
    if model is None:
        return None, Usage(requests=0)
    said = transcript(lines_of(entries), room, count)
    known = clip("\n".join(earlier), room // 4, count)
    document = msgspec.json.encode(before).decode()
    asked = f"Progress document:\n{document}\n\nEarlier:\n{known}\n\nConversation:\n{said}"
    try:
        return model.extract(
            [{"role": "system", "content": _ASKED}, {"role": "user", "content": asked}], Progress, timeout_s=timeout_s
        )
    except Exception as error:  # the caller's own model may raise anything
        _log.info("the handoff is extractive: %s", error)
        return None, Usage(requests=0)


def _extracted(entries: Sequence[Entry], earlier: Sequence[str], before: HandoffDocument, count: Count) -> Progress:
    lines = lines_of([entry for entry in entries if entry.kind == "message"])
    summary = summarise(lines, _TOKENS, count) if lines else ""
    context = "\n".join(text.strip() for text in (*earlier, summary) if text.strip())
    asked = [line.text.split() for line in lines if line.speaker == "user"]
    wished = next((" ".join(words) for words in asked if len(words) > _GREETING), "")
    goal = before.goal or wished[:_LONG]
    named = next((found[1] for line in reversed(lines[-_NEWEST:]) if (found := _NEXT.search(line.text))), "")
    short = clip(context, 2 * _TOKENS, count) if context else ""
    return Progress(goal=goal, next_action=" ".join(named.split())[:_LONG], context=short)
