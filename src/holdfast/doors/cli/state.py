"""The command that shows a state: the current one, an older one, what changed, the list of revisions.

A state is shown as it is stored, so that no class of the program that saved it is needed. Its freshness is known where
its schema is. Deliberately absent: any writing.
"""

from __future__ import annotations

import shlex
from datetime import datetime
from typing import Any, NamedTuple

from holdfast import Thread
from holdfast.adapters.langgraph.reading import graphs_of
from holdfast.doors import plain
from holdfast.doors.cli import options, wording
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.render import Column, Screen
from holdfast.errors import Invalid, SchemaError, SchemaUnknown
from holdfast.ledger.json_path import Difference
from holdfast.records import Loaded, Revision, StaleField


def state(
    desk: Desk,
    thread: options.ThreadId,
    revision: options.OfRevision = None,
    as_of: options.AsOf = None,
    diff: options.Diff = None,
    history: options.History = False,
) -> None:
    """Show the state of a thread, and what in it is stale.

    You see the state as it is stored, so you do not need the program that saved it.

    \b
    Examples:
      holdfast state trip-42
      holdfast state trip-42 --as-of yesterday
      holdfast state trip-42 --diff 3 5
    """
    if sum((revision is not None, as_of is not None, diff is not None, history)) > 1:
        raise Invalid("give one of --revision, --as-of, --diff and --history")
    with desk.open() as store:
        handle = store.thread(thread)
        handle.info()  # a thread that is not there is an error, not an empty state
        if history:
            _history(desk, handle)
        elif diff is not None:
            _diff(desk, handle, *diff)
        else:
            _state(desk, handle, revision, as_of)


def _state(desk: Desk, handle: Thread, revision: int | None, as_of: str | None) -> None:
    seen = load(handle, revision=revision, as_of=desk.moment(as_of))
    data = {"thread": handle.id, "state": plain.state(*seen) if seen.stored else None}
    if seen.stored:
        desk.tell(data, lambda screen: show_state(desk, screen, seen))
    else:
        desk.tell(data, lambda screen: screen.line(f"No state was saved {'yet' if as_of is None else 'by then'}."))
        if graphs_of(handle):
            desk.note(f"It has a graph: holdfast graph {shlex.quote(handle.id)}")


class StateView(NamedTuple):
    """A state as stored, and as its schema sees it; or why that schema cannot."""

    stored: Loaded[Any]
    fresh: Loaded[Any] | None = None
    refusal: SchemaError | None = None


def load(handle: Thread, *, revision: int | None = None, as_of: datetime | None = None) -> StateView:
    """Load a state as stored, whatever it is, and the same revision as its schema sees it, where that can be had."""
    stored = handle.state(dict, revision=revision, as_of=as_of)
    if not stored:
        return StateView(stored)
    try:
        return StateView(stored, handle.state(revision=stored.revision))
    except SchemaError as error:
        return StateView(stored, refusal=error)


def show_state(desk: Desk, screen: Screen, seen: StateView) -> None:
    """Show a state and what of it is no longer fresh."""
    stored = seen.stored
    schema = f"{stored.schema} version {stored.version}" if stored.schema else "no schema"
    about = f" revision {stored.revision} · {schema} · saved {desk.when(stored.time)}"
    screen.line(("State", "title"), (about, "quiet"))
    screen.outline(stored.value, indent=2)
    if seen.fresh is not None:
        _show_stale(screen, seen.fresh)
    elif isinstance(seen.refusal, SchemaUnknown):
        why = f"The schema {stored.schema!r} belongs to another program, so its freshness is unknown here."
        screen.line((why, "quiet"))
    else:
        screen.blank()
        screen.line(("Does not fit its schema", "bad"), f": {seen.refusal}")


def _show_stale(screen: Screen, fresh: Loaded[Any]) -> None:
    """First what must be verified, then the rest."""
    by_path = {field.path: field for field in fresh.stale}
    urgent = [(path, by_path.get(path)) for path in fresh.must_verify]
    rest = [(field.path, field) for field in fresh.stale if field.path not in fresh.must_verify]
    for title, style, fields in (("Verify before acting", "bad", urgent), ("No longer fresh", "warn", rest)):
        if not fields:
            continue
        screen.blank()
        screen.line((title, style))
        for path, field in fields:
            screen.line((path, "name"), f"  {_staleness(field)}", indent=2)


def _staleness(field: StaleField | None) -> str:
    if field is None or field.confirmed_at is None:
        return "never confirmed"
    by = f" by {field.by}" if field.by else ""
    return f"confirmed {wording.age(field.age_s)} ago{by}, fresh for {wording.age(field.fresh_for_s)}"


def _history(desk: Desk, handle: Thread) -> None:
    found = handle.revisions()
    data = {"thread": handle.id, "revisions": plain.plain(found)}
    desk.tell(data, lambda screen: _show_history(desk, screen, found))


def _show_history(desk: Desk, screen: Screen, found: list[Revision]) -> None:
    if not found:
        screen.line("No state was saved yet.")
        return
    columns = [
        Column("revision", right=True),
        Column("saved"),
        Column("by", fits=True),
        Column("schema", "name", fits=True),
        Column("version", right=True),
    ]
    screen.table(
        columns,
        [(str(each.number), desk.when(each.time), each.by, each.schema or "none", str(each.version)) for each in found],
    )


def _diff(desk: Desk, handle: Thread, old: int, new: int) -> None:
    found = handle.statebook.diff(old, new)
    data = {"thread": handle.id, "old": old, "new": new, "differences": plain.plain(found)}
    desk.tell(data, lambda screen: _show_diff(screen, found))


def _show_diff(screen: Screen, found: list[Difference]) -> None:
    if not found:
        screen.line("No difference.")
    for each in found:
        path = each.path or "(everything)"
        if each.action != "added":
            screen.line((f"- {path}: {wording.as_text(each.old)}", "gone"))
        if each.action != "removed":
            screen.line((f"+ {path}: {wording.as_text(each.new)}", "good"))
