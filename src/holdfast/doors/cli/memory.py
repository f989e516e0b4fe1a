"""Commands that change what is remembered: remember, learn, correct, end, forget; and rebuild, for its indexes.

Deliberately absent: listing and finding, which have modules of their own, and every rule about what is true.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import typer

from holdfast.doors import plain
from holdfast.doors.cli import exits, options
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.memories import number_of, show_memories
from holdfast.doors.cli.render import Advance, Screen
from holdfast.doors.cli.wording import counted, named_values
from holdfast.errors import Invalid, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast import Memories
    from holdfast.types import Memory


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
    type: options.NewType = None,
    meta: options.Metadata = None,
) -> None:
    """Remember something, so that recall finds it.

    With --key it becomes the value of a fact: the newest value counts, older ones stay in its history. With --relation
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
            relation=relation, object=object, type=type, metadata=named_values(meta),
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
        raise Invalid(f"--origin looks like JSON but is not valid ({error})") from error
    return parts


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

    Recall no longer finds what you forget; --undo brings it back by its id. With --erase the text is gone for good,
    even if it was forgotten before. On a terminal it asks before it forgets several memories, or erases.

    ID can be any memory that --user and --agent see. The options choose among the memories of that user and agent;
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
        raise Invalid("--undo needs the ID of a forgotten memory, and no other option")
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
        f"there is nothing to forget with {said}; to forget what belongs to another user or agent, give its id, or its "
        "--user and --agent"
    )


def _bring_back(desk: Desk, memory: Memories, id: str) -> None:
    gone = memory.get(id).forgotten_at is not None
    found = [memory.unforget(id)]

    def picture(screen: Screen) -> None:
        screen.line("Restored: 1 memory." if gone else "It is not forgotten.")
        show_memories(screen, found)

    desk.tell({"restored": plain.plain(found if gone else [])}, picture)


def _agreed(chosen: list[Memory], erase: bool) -> bool:
    if len(chosen) == 1 and not erase:
        return True
    question = f"{'Erase' if erase else 'Forget'} {number_of(len(chosen))}{' for good' if erase else ''}?"
    return typer.confirm(question, err=True)


def _show_forgotten(screen: Screen, chosen: list[Memory], verb: str, dry_run: bool) -> None:
    screen.line(f"{'Would be ' if dry_run else ''}{verb}: {number_of(len(chosen))}.".capitalize())
    show_memories(screen, chosen)


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

    TEXT is true instead, for the same subject, key and time. The wrong value stays in the history of its fact, marked.
    If it was true once, use end, or remember a new value.

    To undo a correction, forget it by its own id.

    \b
    Examples:
      holdfast correct maaay7h2k5xq4c "Prefers the window" --user ana
      holdfast correct maaay7h2k5xq4c --user ana
    """
    instead = _said(text)
    if instead is None and origin is not None:
        raise Invalid("--origin says where TEXT comes from: give a TEXT too")
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

    A fact then has no value from that time on; its history keeps what was true before. To undo it, forget the memory
    that this records, by its own id.

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
        show_memories(screen, [old])
        if instead:
            screen.line("True instead:")
            show_memories(screen, [made])
        else:
            screen.line("Recorded as ", (made.id, "name"), ".")

    desk.tell({how.replace(" ", "_"): plain.plain(old), "memory": plain.plain(made)}, picture)


# Learning, and tending the indexes


def learn(desk: Desk, thread: options.ThreadId, after: options.FromEntry = 0) -> None:
    """Extract facts from the messages of a thread, by rules.

    It uses no model. What it learns belongs to the thread's user and agent, and names the entry it comes from.
    Learning from the same messages again changes nothing.

    \b
    Examples:
      holdfast learn trip-42
      holdfast learn trip-42 --after 120
    """
    with desk.open() as store:
        info = store.thread(thread).info()
        found = store.memory(user=info.user, agent=info.agent).learn(thread, after=after)

    def picture(screen: Screen) -> None:
        screen.line(f"{number_of(len(found))} from ", (thread, "name"), "." if not found else ":")
        show_memories(screen, found)

    desk.tell({"thread": thread, "memories": plain.plain(found)}, picture)


def rebuild(
    desk: Desk,
    user: options.ForUser = None,
    agent: options.ForAgent = None,
    reembed: options.Reembed = False,
    rollback: options.Rollback = False,
    embedder: options.EmbedderName = None,
) -> None:
    """Rebuild the indexes of recall from what is stored.

    They stay up to date by themselves. Use this when you doubt one, or with --reembed to change the embedder. Recall
    keeps working meanwhile, and if you interrupt it, the finished part stays.

    Without --user and --agent it rebuilds every index saved in the store. A small index is not saved, but built when it
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
        return "There is no saved index; a small one is built when needed. Name a --user or --agent to build theirs."
    return f"Rebuilt: {counted(data['documents'], 'document')}."


def _roll_back(desk: Desk, memory: Memories) -> None:
    model = memory.rollback()
    said = "Recall now works without vectors." if model is None else f"Recall uses the vectors of {model} again."
    desk.tell({"embedder": model}, lambda screen: screen.line(said))
