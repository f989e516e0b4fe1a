"""Commands about what is remembered: remember, learn, correct, end, forget, and what can be listed or made again.

Deliberately absent: recall and links, which have a module of their own, and every rule about what is true.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any

import typer

from holdfast import Store
from holdfast.clock import to_datetime
from holdfast.doors import plain
from holdfast.doors.cli import exits, options
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.render import Advance, Column, Screen
from holdfast.doors.cli.wording import counted
from holdfast.errors import Invalid, NotFound
from holdfast.memory.conflicts import Contradiction
from holdfast.memory.facts import FactVersion
from holdfast.memory.handle import Memories
from holdfast.records import Memory

_LOOKED_AT = 200  # so many threads, the latest, are asked whose they are
_NAMED = 5


def remember(  # noqa: PLR0913 - each option of the command is a parameter
    desk: Desk,
    text: options.MemoryText = None,
    user: options.ForUser = None,
    agent: options.ForAgent = None,
    kind: options.MemoryKind = "semantic",
    key: options.FactKey = None,
    subject: options.About = None,
    tag: options.NewTags = None,
    importance: options.Importance = 0.5,
    valid_from: options.ValidFrom = None,
    valid_to: options.ValidTo = None,
    origin: options.OriginOf = None,
    trust: options.Trusted = "stated",
    relation: options.Relation = None,
    object: options.LinkedTo = None,
) -> None:
    """Remember something, to be found by recall from now on.

    With --key it is the value of a fact: the newest one counts, the older ones stay in its history. With --relation
    and --object it links its subject to something else.

    \b
    Examples:
      holdfast remember "Prefers the aisle" --user ana --key seat
      holdfast remember --user ana --relation "works at" --object Acme
      holdfast remember - --kind procedural --agent travel < how-to-rebook.txt
    """
    said = _said(text)
    if said is None and relation is None and object is None:
        raise Invalid("say what to remember: a TEXT, or a link with --relation and --object")
    with desk.open(create=True) as store:
        made = store.memory(user=user, agent=agent).remember(
            said or "", kind=kind, subject=subject, key=key, origin=_origin(origin), tags=tag or (),
            importance=importance, trust=trust, valid_from=desk.moment(valid_from), valid_to=desk.moment(valid_to),
            relation=relation, object=object,
        )  # fmt: skip
    what = f" as {made.key} of {made.subject}" if made.key is not None else ""
    desk.tell({"memory": plain.plain(made)}, lambda screen: screen.line("Remembered ", (made.id, "name"), f"{what}."))


def _said(text: str | None) -> str | None:
    return sys.stdin.read() if text == options.STANDARD else text


def _origin(text: str | None) -> str | dict[str, Any] | None:
    """A name, or the parts of an origin as JSON."""
    if text is None or not text.lstrip().startswith("{"):
        return text
    try:
        parts: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise Invalid(f"--origin begins like JSON and is none ({error})") from error
    return parts


# Facts


def facts(
    desk: Desk,
    user: options.ForUser = None,
    agent: options.ForAgent = None,
    subject: options.OfSubject = None,
    as_of: options.TrueAsOf = None,
    known_at: options.KnownAt = None,
    history: options.HistoryOf = None,
) -> None:
    """List facts: what is true now, or was at a moment.

    With --known-at it is answered from what was recorded by then, without what came to be known later.

    \b
    Examples:
      holdfast facts --user ana
      holdfast facts --user ana --as-of 2026-05-01
      holdfast facts --user ana --as-of 2026-05-01 --known-at 2026-05-03
      holdfast facts --user ana --history seat
    """
    if history is not None and as_of is not None:
        raise Invalid("give either --history, which shows every time, or --as-of")
    with desk.open() as store:
        memory = store.memory(user=user, agent=agent)
        if history is not None:
            _history(desk, memory, history, subject, desk.moment(known_at))
            return
        found = memory.facts(subject=subject, as_of=desk.moment(as_of), known_at=desk.moment(known_at))
        hint = "" if found else _without_key(memory, subject) or owners(store, user, agent)
    desk.tell({"facts": plain.plain(found)}, lambda screen: _show_facts(desk, screen, found))
    if hint:
        desk.note(hint)


def _without_key(memory: Memories, subject: str | None) -> str:
    if not memory.memories(subject=subject, limit=1):
        return ""
    return "There are memories that are no facts, as they have no key: recall finds them."


def owners(store: Store, user: str | None, agent: str | None) -> str:
    """For those who named nobody and found nothing: whom they could name. Empty where there is no such hint."""
    if user is not None or agent is not None:
        return ""
    there = dict.fromkeys(info.user for info in store.threads(limit=_LOOKED_AT) if info.user is not None)
    names = ", ".join(list(there)[:_NAMED])
    return f"What belongs to a user is found with --user alone. There are threads of: {names}." if names else ""


def _show_facts(desk: Desk, screen: Screen, found: list[Memory]) -> None:
    if not found:
        screen.line("No facts.")
        return
    columns = [
        Column("subject", "person", fits=True),
        Column("key", "name", fits=True),
        Column("value", fits=True),
        Column("since"),
        Column("id", "quiet"),
    ]
    rows = [(each.subject, each.key or "", each.text, desk.when(each.valid_from), each.id) for each in found]
    screen.table(columns, rows)


def _history(desk: Desk, memory: Memories, key: str, subject: str | None, known_at: datetime | None) -> None:
    found, now = memory.history(key, subject, known_at=known_at), to_datetime(desk.clock.now())
    if not found:
        raise NotFound(f"there is no fact {key!r} here{'' if known_at is None else ' that was known then'}", key=key)
    stands = [_standing(version, now) for version in found]
    data = [{**plain.plain(version), "stands": how} for version, how in zip(found, stands, strict=True)]
    desk.tell({"key": key, "versions": data}, lambda screen: _show_history(desk, screen, found, stands))


def _standing(version: FactVersion, now: datetime) -> str:
    """How a value stands today, in a word."""
    if version.corrected_by is not None:
        return "never true"
    if now < version.since:
        return "not yet"
    if version.holds(now):
        return "has no value" if version.memory.ended else "holds"
    return "over" if version.superseded_by is None else "superseded"


def _show_history(desk: Desk, screen: Screen, found: list[FactVersion], stands: list[str]) -> None:
    columns = [
        Column("since"), Column("until"), Column("stands", "quiet"), Column("value", fits=True), Column("id", "quiet")
    ]  # fmt: skip
    rows = [
        (desk.when(each.since), desk.when(each.until), how, each.memory.text, each.memory.id)
        for each, how in zip(found, stands, strict=True)
    ]
    screen.table(columns, rows)


# Forgetting


def forget(  # noqa: PLR0913 - each option of the command is a parameter
    desk: Desk,
    id: options.MemoryId = None,
    user: options.ForUser = None,
    agent: options.ForAgent = None,
    key: options.OfKey = None,
    tag: options.AllWithTag = None,
    kind: options.OfKind = None,
    subject: options.AllAbout = None,
    erase: options.Erase = False,
    undo: options.Undo = False,
    dry_run: options.OnlyLook = False,
    yes: options.Yes = False,
) -> int:
    """Forget a memory, a fact, or many at once.

    What is forgotten is not found any more; --undo brings it back by its id. With --erase the text is gone for good,
    also of what was forgotten before. On a terminal it asks before it forgets several, or erases.

    An id may be of any memory that --user and --agent see. The options choose among those of that user and agent;
    without --agent, of that user with every agent.

    \b
    Examples:
      holdfast forget maaay7h2k5xq4c --user ana
      holdfast forget maaay7h2k5xq4c --user ana --undo
      holdfast forget --user ana --key seat
      holdfast forget --user ana --tag trip-42 --dry-run
    """
    common = {"key": key, "subject": subject, "tag": tag, "kind": kind}
    if undo and (id is None or erase or dry_run or any(value is not None for value in common.values())):
        raise Invalid("--undo takes the ID of what was forgotten, and no other choice")
    with desk.open() as store:
        memory = store.memory(user=user, agent=agent)
        if undo:
            _bring_back(desk, memory, str(id))
            return exits.OK
        asks = not dry_run and not yes and sys.stdin.isatty()
        chosen = memory.forget(id, **common, erase=erase, dry_run=dry_run or asks)
        if not chosen:
            raise NotFound(_nothing(common))
        if asks and not _agreed(chosen, erase):
            desk.note("Nothing was forgotten.")
            return exits.NO
        for each in chosen if asks else ():  # one by one: what came in meanwhile was not agreed to
            memory.forget(each.id, erase=erase)
    verb = "erased" if erase else "forgotten"
    data = {verb: plain.plain(chosen), "dry_run": dry_run}
    desk.tell(data, lambda screen: _show_forgotten(screen, chosen, verb, dry_run))
    return exits.OK


def _nothing(common: dict[str, str | None]) -> str:
    said = ", ".join(f"{name} {value!r}" for name, value in common.items() if value is not None)
    return (
        f"nothing to forget with {said}; what belongs to another pair of user and agent goes by its id, or with the "
        "--user and --agent it was remembered for"
    )


def _bring_back(desk: Desk, memory: Memories, id: str) -> None:
    gone = memory.get(id).forgotten_at is not None
    found = [memory.unforget(id)]

    def picture(screen: Screen) -> None:
        screen.line("Restored: 1 memory." if gone else "It was not forgotten.")
        _show_memories(screen, found)

    desk.tell({"restored": plain.plain(found if gone else [])}, picture)


def _agreed(chosen: list[Memory], erase: bool) -> bool:
    if len(chosen) == 1 and not erase:
        return True
    question = f"{'Erase' if erase else 'Forget'} {_memories(len(chosen))}{' for good' if erase else ''}?"
    return typer.confirm(question, err=True)


def _show_forgotten(screen: Screen, chosen: list[Memory], verb: str, dry_run: bool) -> None:
    screen.line(f"{'Would be ' if dry_run else ''}{verb}: {_memories(len(chosen))}.".capitalize())
    _show_memories(screen, chosen)


def _show_memories(screen: Screen, found: list[Memory]) -> None:
    for each in found:
        about = each.subject if each.key is None else f"{each.subject}, {each.key}"
        screen.cut((each.id, "name"), (f"  {about}  ", "person"), " ".join(each.text.split()), indent=2)


def _memories(number: int) -> str:
    return counted(number, "memory", "memories")


# What was never true, and what is over


def correct(
    desk: Desk,
    id: options.OneMemory,
    text: options.TrueInstead = None,
    user: options.ForUser = None,
    agent: options.ForAgent = None,
    origin: options.OriginOf = None,
) -> None:
    """Say that a memory was never true.

    TEXT is true instead: about the same subject and key, and for the same time. What was wrong stays in
    the history of its fact, marked. What was true and is no longer is not wrong: end it, or remember a new value.

    To take a correction back, forget it by its own id.

    \b
    Examples:
      holdfast correct maaay7h2k5xq4c "Prefers the window" --user ana
      holdfast correct maaay7h2k5xq4c --user ana
    """
    instead = _said(text)
    if instead is None and origin is not None:
        raise Invalid("--origin says who gave the TEXT; there is none")
    with desk.open() as store:
        memory = store.memory(user=user, agent=agent)
        wrong, made = memory.get(id), memory.correct(id, instead, origin=_origin(origin))
    _tell_about(desk, "never true", wrong, made, instead=instead is not None)


def end(
    desk: Desk,
    id: options.OneMemory,
    user: options.ForUser = None,
    agent: options.ForAgent = None,
    at: options.EndsAt = None,
) -> None:
    """Say that a memory is no longer true.

    Of a fact it says that there is no value from then on. Its history keeps what was true before. To take it back,
    forget the memory that this recorded, by its own id.

    \b
    Examples:
      holdfast end maaay7h2k5xq4c --user ana
      holdfast end maaay7h2k5xq4c --user ana --at 2026-05-01
    """
    with desk.open() as store:
        memory = store.memory(user=user, agent=agent)
        over, made = memory.get(id), memory.end(id, desk.moment(at))
    _tell_about(desk, "no longer true", over, made)


def _tell_about(desk: Desk, how: str, old: Memory, made: Memory, *, instead: bool = False) -> None:
    """What was said of a memory, and the memory that says so."""

    def picture(screen: Screen) -> None:
        screen.line(f"{how.capitalize()}:")
        _show_memories(screen, [old])
        if instead:
            screen.line("True instead:")
            _show_memories(screen, [made])
        else:
            screen.line("Recorded as ", (made.id, "name"), ".")

    desk.tell({how.replace(" ", "_"): plain.plain(old), "memory": plain.plain(made)}, picture)


# What else can be listed


def procedures(
    desk: Desk,
    user: options.ForUser = None,
    agent: options.ForAgent = None,
    limit: options.AtMost = 50,
) -> None:
    """List how to do things, the most useful first.

    \b
    Examples:
      holdfast procedures --agent travel
      holdfast procedures --user ana --agent travel --limit 5
    """
    with desk.open() as store:
        found = store.memory(user=user, agent=agent).procedures(limit or None)
    desk.tell({"procedures": plain.plain(found)}, lambda screen: _show_procedures(screen, found))


def _show_procedures(screen: Screen, found: list[Memory]) -> None:
    if not found:
        screen.line("No procedures.")
        return
    columns = [
        Column("used", right=True), Column("helped", right=True), Column("how", fits=True), Column("id", "quiet")
    ]  # fmt: skip
    rows = [(str(each.uses), str(each.helped), " ".join(each.text.split()), each.id) for each in found]
    screen.table(columns, rows)


def contradictions(desk: Desk, user: options.ForUser = None, agent: options.ForAgent = None) -> None:
    """List memories that say opposite things, in pairs.

    Nothing is decided: correct or end the one that is wrong, or leave both. Values of one fact are no contradiction.

    \b
    Examples:
      holdfast contradictions --user ana
    """
    with desk.open() as store:
        found = store.memory(user=user, agent=agent).contradictions()
    desk.tell({"contradictions": plain.plain(found)}, lambda screen: _show_contradictions(screen, found))


def _show_contradictions(screen: Screen, found: list[Contradiction]) -> None:
    if not found:
        screen.line("No contradictions.")
    for pair in found:
        screen.line((pair.rule, "warn"), f": {pair.why}")
        _show_memories(screen, [pair.first, pair.second])


# Learning, and tending the indexes


def learn(desk: Desk, thread: options.ThreadId, after: options.FromEntry = 0) -> None:
    """Extract facts from the messages of a thread, by rules.

    No model is asked. What is learned belongs to the thread's user and agent, and names the entry it comes from.
    Learning the same messages again changes nothing.

    \b
    Examples:
      holdfast learn trip-42
      holdfast learn trip-42 --after 120
    """
    with desk.open() as store:
        info = store.thread(thread).info()
        found = store.memory(user=info.user, agent=info.agent).learn(thread, after=after)

    def picture(screen: Screen) -> None:
        screen.line(f"{_memories(len(found))} from ", (thread, "name"), "." if not found else ":")
        _show_memories(screen, found)

    desk.tell({"thread": thread, "memories": plain.plain(found)}, picture)


def rebuild(
    desk: Desk,
    user: options.ForUser = None,
    agent: options.ForAgent = None,
    reembed: options.Reembed = False,
    rollback: options.Rollback = False,
    embedder: options.EmbedderName = None,
) -> None:
    """Make the indexes of recall again from what is stored.

    They keep up by themselves; this is for when one is in doubt, or with --reembed for another embedder. Recall goes on
    meanwhile. What was done stays done when it is interrupted.

    Without --user and --agent, every index that is saved in the store. A small one is not saved: it is made whenever it
    is needed.

    \b
    Examples:
      holdfast rebuild
      holdfast rebuild --user ana
      holdfast rebuild --user ana --reembed --embedder minilm
      holdfast rebuild --user ana --rollback
    """
    if reembed and rollback:
        raise Invalid("give either --reembed or --rollback")
    everything = user is None and agent is None
    with desk.open(embedder=desk.embedder(embedder)) as store:
        memory = store.memory(user=user, agent=agent)
        if rollback:
            _roll_back(desk, memory)
            return
        with desk.notes.progress() as advance:
            if reembed:
                data = {"passages": memory.reembed(_told(advance, "embedding"))}
            elif everything:
                data = {"documents": store.rebuild(progress=_told(advance, "rebuilding"))}
            else:
                data = {"documents": memory.rebuild(_told(advance, "rebuilding"))}
    desk.tell(data, lambda screen: screen.line(_rebuilt(data, everything=everything)))


def _told(advance: Advance | None, stage: str) -> Callable[[int, int], None] | None:
    return None if advance is None else lambda done, total: advance(stage, done, total)


def _rebuilt(data: dict[str, int], *, everything: bool) -> str:
    if "passages" in data:
        return f"{counted(data['passages'], 'passage')} got a new vector."
    if not data["documents"] and everything:
        return "There is no saved index yet: a small one is made whenever it is needed. --user or --agent makes theirs."
    return f"Indexes made again: {counted(data['documents'], 'document')}."


def _roll_back(desk: Desk, memory: Memories) -> None:
    model = memory.rollback()
    said = "Recall goes without vectors." if model is None else f"Recall uses the vectors of {model} again."
    desk.tell({"embedder": model}, lambda screen: screen.line(said))
