"""The command that lists what is linked to what, or prints it as text that a program draws.

Deliberately absent: which links hold, and drawing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.doors import plain
from holdfast.doors.cli import options
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.render import Column, Screen
from holdfast.errors import Invalid

if TYPE_CHECKING:
    from holdfast.types import Link


def links(
    desk: Desk,
    entity: options.Entity = None,
    user: options.ForUser = None,
    agent: options.ForAgent = None,
    hops: options.Hops = None,
    as_of: options.TrueAsOf = None,
    dot: options.AsDot = False,
    mermaid: options.AsMermaid = False,
) -> None:
    """List what is linked to what.

    All links that hold now or held at a moment, or only those from and to an entity. --dot and --mermaid print the
    same links as text that Graphviz or Mermaid draws.

    \b
    Examples:
      holdfast links --user ana
      holdfast links Acme --user ana --hops 2
      holdfast links Acme --dot | dot -Tsvg > acme.svg
      holdfast links Acme --mermaid > acme.mmd
    """
    if dot and mermaid:
        raise Invalid("give either --dot or --mermaid")
    if hops is not None and entity is None:
        raise Invalid("--hops counts from an ENTITY: name one")
    with desk.open() as store:
        found = store.memory(user=user, agent=agent).links(entity, hops=hops or 1, as_of=desk.moment(as_of))
    data: dict[str, Any] = {"entity": entity, "links": plain.plain(found)}
    if not dot and not mermaid:
        desk.tell(data, lambda screen: _show_links(desk, screen, found))
        return
    form = "dot" if dot else "mermaid"
    drawn = as_text(found, form, title=entity)
    desk.tell({**data, form: drawn}, lambda screen: screen.verbatim(drawn.rstrip()))


def as_text(links: list[Link], form: str, title: str | None) -> str:
    """Links as DOT or Mermaid. All of them hold, so all do at the moment the last one began."""
    from holdfast.memory.drawing import to_dot, to_mermaid  # noqa: PLC0415 - few calls draw

    moment = max((link.since for link in links), default=None)
    return (to_dot if form == "dot" else to_mermaid)(links, moment, title=title)


def _show_links(desk: Desk, screen: Screen, found: list[Link]) -> None:
    if not found:
        screen.line("No links.")
        return
    columns = [
        Column("subject", "person", fits=True),
        Column("relation", fits=True),
        Column("object", "person", fits=True),
        Column("since"),
        Column("id", "quiet"),
    ]
    rows = [(each.subject, each.relation, each.object, desk.when(each.since), each.id) for each in found]
    screen.table(columns, rows)
