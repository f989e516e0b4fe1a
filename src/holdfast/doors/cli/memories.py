"""Commands that list what is remembered: memories, facts, procedures and contradictions.

Deliberately absent: finding by a question (``recalling``), links (``links``), and every rule about what is true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.clock import to_datetime
from holdfast.doors import plain
from holdfast.doors.cli import options
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.render import Column, Screen
from holdfast.doors.cli.wording import counted, named_values
from holdfast.errors import Invalid, NotFound

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast import Memories, Store
    from holdfast.types import Contradiction, FactVersion, Memory

_LOOKED_AT = 200  # so many threads, the latest, are asked whose they are
_NAMED = 5


def memories(  # noqa: PLR0913 - each option of the command is a parameter
    desk: Desk,
    user: options.ForUser = None,
    agent: options.ForAgent = None,
    kind: options.OnlyKind = None,
    subject: options.OfSubject = None,
    tag: options.WithTag = None,
    type: options.OnlyType = None,
    where: options.Where = None,
    forgotten: options.Forgotten = False,
    limit: options.AtMost = 50,
    offset: options.Offset = 0,
) -> None:
    """List memories, the latest first.

    The list includes old values of facts; use facts to see what holds now.

    \b
    Examples:
      holdfast memories --user ana
      holdfast memories --user ana --kind procedural --tag trip-42
      holdfast memories --user ana --where project=apollo --where build=7
      holdfast memories --user ana --limit 20 --offset 20
      holdfast memories --user ana --forgotten
    """
    with desk.open() as store:
        memory = store.memory(user=user, agent=agent)
        most = offset + limit + 1 if limit else None  # one more says whether there are more
        found = memory.memories(
            kind=kind, subject=subject, tag=tag, type=type, where=named_values(where), limit=most, forgotten=forgotten
        )[offset:]
        hint = "" if found or offset else owners(store, user, agent)
    more = bool(limit) and len(found) > limit
    shown = found[:limit] if limit else found
    data = {"memories": plain.plain(shown), "offset": offset, "more": more}
    desk.tell(data, lambda screen: _show_list(desk, screen, shown))
    if more:
        desk.note(f"There are more: --offset {offset + limit} lists the next.")
    if hint:
        desk.note(hint)


def _show_list(desk: Desk, screen: Screen, found: list[Memory]) -> None:
    if not found:
        screen.line("No memories.")
        return
    columns = [
        Column("recorded"), Column("kind", "quiet"), Column("subject", "person", fits=True),
        Column("key", "name", fits=True), Column("text", fits=True), Column("tags", "quiet", fits=True),
        Column("id", "quiet"),
    ]  # fmt: skip
    rows = [
        (desk.when(each.recorded_at), each.kind, each.subject, each.key or "", " ".join(each.text.split()),
         ",".join(each.tags), each.id)
        for each in found
    ]  # fmt: skip
    screen.table(columns, rows)


def show_memories(screen: Screen, found: list[Memory]) -> None:
    """Show memories one below the other, each on a line."""
    for each in found:
        about = each.subject if each.key is None else f"{each.subject}, {each.key}"
        screen.cut((each.id, "name"), (f"  {about}  ", "person"), " ".join(each.text.split()), indent=2)


def number_of(memories: int) -> str:
    """Write how many memories there are."""
    return counted(memories, "memory", "memories")


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
    """List facts: what is true now, or was true at a given time.

    --known-at answers from what was recorded by then, without what became known later.

    \b
    Examples:
      holdfast facts --user ana
      holdfast facts --user ana --as-of "3 days ago"
      holdfast facts --user ana --as-of 2026-05-01 --known-at 2026-05-03
      holdfast facts --user ana --history seat
    """
    if history is not None and as_of is not None:
        raise Invalid("give either --history, which covers all times, or --as-of")
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
    return "There are memories without a key, which are not facts: list them with memories."


def owners(store: Store, user: str | None, agent: str | None) -> str:
    """A hint for a search that named no one and found nothing: which users there are. Empty where there is none."""
    if user is not None or agent is not None:
        return ""
    there = dict.fromkeys(info.user for info in store.threads(limit=_LOOKED_AT) if info.user is not None)
    names = ", ".join(list(there)[:_NAMED])
    return f"Memories of a user need --user. Users with threads: {names}." if names else ""


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
        raise NotFound(f"there is no fact {key!r} here{'' if known_at is None else ' that was known by then'}", key=key)
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


# Procedures and contradictions


def procedures(
    desk: Desk,
    user: options.ForUser = None,
    agent: options.ForAgent = None,
    limit: options.AtMost = 50,
) -> None:
    """List how-to memories, the most useful first.

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
    """List pairs of memories that contradict each other.

    Nothing is changed: correct or end the wrong one, or keep both. Two values of one fact are not a contradiction.

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
        show_memories(screen, [pair.first, pair.second])
