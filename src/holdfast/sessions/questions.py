"""Questions and what became of them: answered, left, or open.

An answer names its question in the usage that is committed with it. A question that was given up for another is marked
as left. Any other is open, unless somebody who does not use sessions answered it with a message of an assistant. What
is done for a question is kept in a run that is named after it. Deliberately absent: asking and answering.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from holdfast.errors import NotFound, RunEnded, StepError
from holdfast.records import Draft, Entry, event, observation, tool_call
from holdfast.sessions.marks import UNANSWERED, USAGE, is_event
from holdfast.steps import ending

if TYPE_CHECKING:
    from holdfast.providers.models.model import ToolCall
    from holdfast.steps.flow import Flow
    from holdfast.steps.run import Run
    from holdfast.thread import Thread

HANDLER = "holdfast.turn"
_GIVEN_UP = "it was broken off, and something else was asked"
_ASSISTANTS = ("assistant", "model", "ai")


def unanswered(entries: Sequence[Entry]) -> Entry | None:
    """The newest question of a user that is open."""
    over: set[Any] = set()
    for entry in reversed(entries):
        if is_event(entry, USAGE) or (is_event(entry, UNANSWERED) and entry.content.get("left") is True):
            over.add(entry.content.get("question"))
        elif role_of(entry) in _ASSISTANTS and not _is_ours(entry):
            return None
        elif role_of(entry) == "user" and entry.number not in over:
            return entry
    return None


def is_left(entries: Sequence[Entry], number: int) -> bool:
    """Whether a question was given up for another."""
    marks = (entry.content for entry in entries if is_event(entry, UNANSWERED))
    return any(mark.get("question") == number and mark.get("left") is True for mark in marks)


def role_of(entry: Entry) -> str:
    role = entry.content.get("role") if entry.kind == "message" and isinstance(entry.content, dict) else ""
    return role if isinstance(role, str) else ""


def _is_ours(entry: Entry) -> bool:
    """Whether something was said in an answer of a session, which names its question: its entries have its key."""
    return entry.key is not None and entry.key.startswith("answer:")


def partial_of(entries: Sequence[Entry], question: Entry) -> str:
    """What had come of an answer before it broke off."""
    for entry in reversed(entries):
        if is_event(entry, UNANSWERED) and entry.content.get("question") == question.number:
            return str(entry.content.get("partial", ""))
    return ""


def answer_key(question: Entry) -> str:
    return f"answer:{question.number}:{question.digest.hex()[:8]}"


# What is done for a question


def run_name(question: Entry) -> str:
    """The digest is in it, so that a thread that was rewound does not take up another question's."""
    return f"turn-{question.number}-{question.digest.hex()[:8]}"


def run_of(thread: Thread, question: Entry) -> tuple[str, bool]:
    """The name of the run of a question, and whether it is under way already.

    One that is over is not taken up again: what is done anew is done in another. It is over only once the question was
    answered, so whoever looks for the answer after this finds it.
    """
    base = run_name(question)
    for attempt in count(1):
        name = base if attempt == 1 else f"{base}-{attempt}"
        try:
            info = thread._runs.info(thread.id, name)
        except NotFound:
            return name, False
        if info.status not in ("done", "cancelled"):
            return name, True
    raise AssertionError("count does not end")


def has_begun(thread: Thread, name: str) -> bool:
    """Whether there is a run of this name, over or not."""
    try:
        thread._runs.record(thread.id, name)
    except NotFound:
        return False
    return True


def left(question: Entry, taken: Iterable[tuple[ToolCall, str]]) -> list[Draft]:
    """What goes on record of a question that is given up for another: what was done for it, and that it is left."""
    drafts: list[Draft] = []
    told: list[str] = []
    for call, result in taken:
        drafts += [tool_call(call.name, call.arguments, id=call.id), observation(result, of=call.id)]
        told.append(call.id)
    more: dict[str, Any] = {"told": told} if told else {}
    return [*drafts, event(UNANSWERED, question=question.number, why=_GIVEN_UP, left=True, **more)]


def told_of(entries: Iterable[Entry], question: Entry) -> frozenset[str]:
    """The calls that went on record when a question was left: when it is answered after all, they are there already."""
    marks = (entry.content for entry in entries if is_event(entry, UNANSWERED))
    told = (mark.get("told", ()) for mark in marks if mark.get("question") == question.number)
    return frozenset(id for ids in told if isinstance(ids, list) for id in ids if isinstance(id, str))


def end(run: Run, question: Entry) -> None:
    """What was done for a question is on record with its answer, so its run is over."""
    _end(run, ending.finish(run._work, {"question": question.number}))


def set_aside(run: Run) -> None:
    """The question of a run was left. It may be asked again by its key; what was done is not done again then."""
    _end(run, ending.fail(run._work, StepError(_GIVEN_UP), settled=True))


def _end(run: Run, flow: Flow[Any]) -> None:
    """End a run; one with a step of which nobody knows stays visible."""
    try:
        run._drive(flow)
    except RunEnded:
        return
    except StepError:
        run.release("the turn is over, and a step of it is still to be settled")
