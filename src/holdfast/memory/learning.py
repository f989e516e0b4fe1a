"""Learning from a thread without a model: what its messages say becomes memories that name their source.

Each finding has a name made of the entry's digest and the rule, under which it is remembered once; so learning again
changes nothing, nor does learning from a fork. Deliberately absent: the rules (``memory.rules``), and any model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

import msgspec

from holdfast.clock import to_datetime
from holdfast.engine.contract import Event, Scope
from holdfast.errors import Erased, Invalid, NotFound
from holdfast.ids import check_id
from holdfast.ledger.core import Core
from holdfast.ledger.speech import ASSISTANTS, Speech, voices
from holdfast.ledger.thread import check_count, refuse_other_owner
from holdfast.memory.drafts import Remembering
from holdfast.memory.extraction import DECISION, Extraction, Extractor
from holdfast.memory.names import folded, memory_id, once_number
from holdfast.memory.rules import extract
from holdfast.memory.visible import VisibleMemories
from holdfast.records import EntryRef, Memory, Origin

_LATELY = timedelta(days=62)
_DECIDED = ("about", "choice", "instead_of")
_DECISIONS = 1_000
_NEAR, _QUESTION = 8, 500
_READ = 20_000
"""How many characters of a message are read for facts: a pasted log says nothing about its sender."""


def learn(
    core: Core, visible: VisibleMemories, thread: str, after: int, extractor: Extractor = extract
) -> list[Memory]:
    """Extract facts from the messages of a thread after a number, and remember them in a handle's own collection."""
    check_count("after", after)
    record = core.engine.get(core.tenant, "thread", check_id(thread, "thread id"))
    if record is None:
        raise NotFound(f"there is no thread {thread!r}", thread=thread)
    refuse_other_owner(record, Scope(visible.scope.user, visible.scope.agent))
    if record.scope.user != visible.scope.user:
        raise Invalid(
            f"thread {thread!r} belongs to user {record.scope.user!r}; learn from it with that user's memory",
            thread=thread,
        )
    asked = asked_before(core, thread, after + 1)
    learned: list[Memory] = []
    for event in core.engine.read(core.tenant, record.mark, after=after):
        if event.kind == "message":
            learned += learned_from(core, visible, thread, event, extractor, asked)
            asked = _question_of(event)
    return learned


def asked_before(core: Core, thread: str, number: int) -> str | None:
    """What an assistant said right before an entry of a thread: the question that it may answer."""
    record = core.engine.get(core.tenant, "thread", thread)
    if record is None or number < 2:
        return None
    near = core.engine.read(core.tenant, record.mark, after=max(0, number - 1 - _NEAR), limit=min(_NEAR, number - 1))
    said = [event for event in near if event.kind == "message"]
    return _question_of(said[-1]) if said else None


def _question_of(event: Event) -> str | None:
    said = voices(event)[0]
    return said.text[-_QUESTION:] if said.role.casefold() in ASSISTANTS and "?" in said.text else None


def learned_from(
    core: Core,
    visible: VisibleMemories,
    thread: str,
    event: Event,
    extractor: Extractor = extract,
    asked: str | None = None,
) -> Iterator[Memory]:
    """Learn from one message of a thread. Repeating it changes nothing. ``asked`` is what it may answer.

    What came from outside in it is read by itself, in the role of a tool: the rules learn nothing from that.
    """
    counts: Counter[str] = Counter()
    ref = EntryRef(thread, event.position)
    for said in voices(event):
        named = _speaker(said)
        findings = extractor(
            said.text[:_READ],
            speaker=named,
            role=said.role,
            time=to_datetime(said.time),
            subject=named or visible.subject,
            ref=ref,
            asked=asked,
        )
        yield from _remembered(core, visible, event, ref, said, findings, counts)


def _remembered(
    core: Core,
    visible: VisibleMemories,
    event: Event,
    ref: EntryRef,
    said: Speech,
    findings: Sequence[Extraction],
    counts: Counter[str],
) -> Iterator[Memory]:
    time = to_datetime(said.time)
    for found in findings:
        counts[found.rule] += 1
        once = f"{event.digest.hex()}/{found.rule}/{counts[found.rule]}"  # of this entry, wherever it is shared
        known = core.engine.get(core.tenant, "memory", memory_id(once_number(visible.own.id, once)))
        if known is not None:
            yield visible.get(known.id)
            continue
        if (same := _said_before(visible, found, time, ref.thread)) is not None:
            yield same
            continue
        with suppress(Erased):  # it was learned before, and someone erased it
            yield from visible.own.remember([_draft(visible, _about_what_is(visible, found), once, said, ref)])


def _speaker(said: Speech) -> str | None:
    """The name of the speaker, if one is given that can be a subject."""
    try:
        named = said.speaker != said.role and check_id(said.speaker, "name").strip()
    except Invalid:
        return None
    return said.speaker if named else None


def _draft(visible: VisibleMemories, found: Extraction, once: str, said: Speech, ref: EntryRef) -> Remembering:
    return Remembering(
        text=found.text,
        kind=found.kind,
        subject=found.subject,
        key=_same_decision(visible, found) if found.type == DECISION else found.key,
        tags=found.tags,
        importance=found.importance,
        origin=Origin(by=_speaker(said) or said.role or None, tool=f"rule:{found.rule}", entries=(ref,)),
        trust=said.trust,
        valid_from=_since(visible, found, to_datetime(said.time)),
        valid_to=found.valid_to,
        relation=found.relation,
        object=None if found.relation is None else found.object,
        once=once,
        corrects=_wrong(visible, found),
        ended=found.ended,
        type=found.type,
        metadata=found.metadata,
    )


def _said_before(visible: VisibleMemories, found: Extraction, time: datetime, thread: str) -> Memory | None:
    """The value that the same thread gave a fact before, if this only says it again. What another thread said counts
    again here: erasing that thread takes its own memory along."""
    if found.key is None or found.ended or found.corrects:
        return None
    holding = [one.memory for one in visible.history(found.key, found.subject) if one.holds(time)]
    same = holding[-1] if holding and not holding[-1].ended else None
    says = same is not None and (same.text, same.kind, same.object) == (found.text, found.kind, found.object)
    return same if says and same is not None and {ref.thread for ref in same.origin.entries} == {thread} else None


def _same_decision(visible: VisibleMemories, found: Extraction) -> str | None:
    """The key of the earlier decision that this one takes the place of: about the same, or, where no subject is named,
    for what this one chooses or turns down. Choosing one thing for two purposes is two decisions."""
    about, choice, instead_of = (folded(str(found.metadata.get(what, ""))) for what in _DECIDED)
    keys = set[str]()
    for earlier in visible.memories(type=DECISION, subject=found.subject, limit=_DECISIONS):
        of, chosen, _ = (folded(str(earlier.metadata.get(what, ""))) for what in _DECIDED)
        turned_down = bool(instead_of) and chosen == instead_of and (not about or not of or of == about)
        again = bool(choice) and chosen == choice and not about and not of
        if earlier.key is not None and ((about and of == about) or turned_down or again):
            keys.add(earlier.key)
    return keys.pop() if len(keys) == 1 else found.key


def _about_what_is(visible: VisibleMemories, found: Extraction) -> Extraction:
    """What ends something ends only that: "I no longer live in Paris" says nothing to someone who lives in Berlin."""
    if not found.ended or found.key is None or found.object is None:
        return found
    values = [version.memory for version in visible.history(found.key, found.subject) if version.until is None]
    over = folded(found.object)
    if not values or any(over in folded(f"{value.object or ''} {value.text}") for value in values[-1:]):
        return found
    return msgspec.structs.replace(found, key=None, ended=False, kind="episodic", relation=None, object=None)


def _since(visible: VisibleMemories, found: Extraction, said: datetime) -> datetime:
    """From when it is true. What was said later does not lose to what was said before because "last month" began
    earlier; a date that lies further back is a date."""
    since = found.valid_from or said
    if found.key is None or since >= said or said - since > _LATELY:
        return since
    known = [version.memory.valid_from for version in visible.history(found.key, found.subject)]
    return said if any(since <= moment <= said for moment in known) else since


def _wrong(visible: VisibleMemories, found: Extraction) -> str | None:
    """The memory that was never true, when that is what the text says: the value that the fact has now."""
    if not found.corrects or found.key is None:
        return None
    values = [version.memory for version in visible.history(found.key, found.subject) if version.corrected_by is None]
    return values[-1].id if values and visible.collection_of(values[-1].id).scope == visible.scope else None
