"""Commands about what is remembered: remember, facts, forget, learn, rebuild.

Deliberately absent: recall, which has a module of its own, and every rule about what is true.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any

import typer

from holdfast.clock import to_datetime
from holdfast.doors.cli import exits, options, plain
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.render import Advance, Column, Screen
from holdfast.doors.cli.wording import counted
from holdfast.errors import Invalid
from holdfast.memories.handle import Memories
from holdfast.memory.facts import Version
from holdfast.records import Memory


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
    said = sys.stdin.read() if text == options.STANDARD else text
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
    history: options.HistoryOf = None,
) -> None:
    """List facts: what is true now, or was at a moment.

    \b
    Examples:
      holdfast facts --user ana
      holdfast facts --user ana --as-of 2026-05-01
      holdfast facts --user ana --history seat
    """
    if history is not None and as_of is not None:
        raise Invalid("give either --history, which shows every time, or --as-of")
    with desk.open() as store:
        memory = store.memory(user=user, agent=agent)
        if history is not None:
            _history(desk, memory, history, subject)
            return
        found = memory.facts(subject=subject, as_of=desk.moment(as_of))
    desk.tell({"facts": plain.plain(found)}, lambda screen: _show_facts(desk, screen, found))


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


def _history(desk: Desk, memory: Memories, key: str, subject: str | None) -> None:
    found, now = memory.history(key, subject), to_datetime(desk.clock.now())
    stands = [_standing(version, now) for version in found]
    data = [{**plain.plain(version), "stands": how} for version, how in zip(found, stands, strict=True)]
    desk.tell({"key": key, "versions": data}, lambda screen: _show_history(desk, screen, found, stands))


def _standing(version: Version, now: datetime) -> str:
    """How a value stands today, in a word."""
    if version.corrected_by is not None:
        return "never true"
    if now < version.since:
        return "not yet"
    if version.holds(now):
        return "has no value" if version.memory.ended else "holds"
    return "over" if version.superseded_by is None else "superseded"


def _show_history(desk: Desk, screen: Screen, found: list[Version], stands: list[str]) -> None:
    if not found:
        screen.line("There never was such a fact.")
        return
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
    dry_run: options.OnlyLook = False,
    yes: options.Yes = False,
) -> int:
    """Forget a memory, a fact, or all that have something in common.

    What is forgotten is not found any more; a program can restore it. With --erase the text is gone for good. On a
    terminal it asks before it forgets several, or erases.

    \b
    Examples:
      holdfast forget maaay7h2k5xq4c --user ana
      holdfast forget --user ana --key seat
      holdfast forget --user ana --tag trip-42 --dry-run
    """
    with desk.open() as store:
        memory = store.memory(user=user, agent=agent)
        chosen = memory.forget(id, key=key, subject=subject, tag=tag, kind=kind, dry_run=True)
        if not dry_run and not yes and not _agreed(chosen, erase):
            desk.note("Nothing was forgotten.")
            return exits.NO
        for each in () if dry_run else chosen:  # one by one: what came in meanwhile was not agreed to
            memory.forget(each.id, erase=erase)
    verb = "erased" if erase else "forgotten"
    data = {verb: plain.plain(chosen), "dry_run": dry_run}
    desk.tell(data, lambda screen: _show_forgotten(screen, chosen, verb, dry_run))
    return exits.OK


def _agreed(chosen: list[Memory], erase: bool) -> bool:
    if not sys.stdin.isatty() or not (len(chosen) > 1 or (chosen and erase)):
        return True
    question = f"{'Erase' if erase else 'Forget'} {_memories(len(chosen))}{' for good' if erase else ''}?"
    return typer.confirm(question, err=True)


def _show_forgotten(screen: Screen, chosen: list[Memory], verb: str, dry_run: bool) -> None:
    if not chosen:
        screen.line("There is nothing to forget.")
        return
    screen.line(f"{'Would be ' if dry_run else ''}{verb}: {_memories(len(chosen))}.".capitalize())
    _show_memories(screen, chosen)


def _show_memories(screen: Screen, found: list[Memory]) -> None:
    for each in found:
        about = each.subject if each.key is None else f"{each.subject}, {each.key}"
        screen.cut((each.id, "name"), (f"  {about}  ", "person"), " ".join(each.text.split()), indent=2)


def _memories(number: int) -> str:
    return counted(number, "memory", "memories")


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

    Without --user and --agent, every index that is saved in the store.

    \b
    Examples:
      holdfast rebuild
      holdfast rebuild --user ana
      holdfast rebuild --user ana --reembed --embedder minilm
      holdfast rebuild --user ana --rollback
    """
    if reembed and rollback:
        raise Invalid("give either --reembed or --rollback")
    with desk.open(embedder=desk.embedder(embedder)) as store:
        memory = store.memory(user=user, agent=agent)
        if rollback:
            _roll_back(desk, memory)
            return
        with desk.notes.progress() as advance:
            if reembed:
                data = {"passages": memory.reembed(_told(advance, "embedding"))}
            elif user is None and agent is None:
                data = {"documents": store.rebuild(progress=_told(advance, "rebuilding"))}
            else:
                data = {"documents": memory.rebuild(_told(advance, "rebuilding"))}
    desk.tell(data, lambda screen: screen.line(_rebuilt(data)))


def _told(advance: Advance | None, stage: str) -> Callable[[int, int], None] | None:
    return None if advance is None else lambda done, total: advance(stage, done, total)


def _rebuilt(data: dict[str, int]) -> str:
    if "passages" in data:
        return f"{counted(data['passages'], 'passage')} got a new vector."
    return f"Indexes made again: {counted(data['documents'], 'document')}."


def _roll_back(desk: Desk, memory: Memories) -> None:
    model = memory.rollback()
    said = "Recall goes without vectors." if model is None else f"Recall uses the vectors of {model} again."
    desk.tell({"embedder": model}, lambda screen: screen.line(said))
