"""The command that finds what is relevant to a question, and says why it ranks so.

Deliberately absent: ranking, and drawing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.doors import plain
from holdfast.doors.cli import options, wording
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.links import as_text
from holdfast.doors.cli.memories import owners
from holdfast.doors.cli.render import Column, Screen
from holdfast.errors import Invalid
from holdfast.memory.names import folded
from holdfast.text import words

if TYPE_CHECKING:
    from holdfast.types import Hit, Link, Recalled, RecallReport

_FORMS = {".dot": "dot", ".gv": "dot", ".mmd": "mermaid"}
_GLIMPSE = 240
_WHERE = 28
_CELL = 8  # what a number takes in a table, with room for a sign and the space before it


def recall(  # noqa: PLR0913 - each option of the command is a parameter
    desk: Desk,
    query: options.QueryText,
    user: options.ForUser = None,
    agent: options.ForAgent = None,
    k: options.HowMany = 10,
    kind: options.Kinds = None,
    tag: options.WithTags = None,
    since: options.SaidSince = None,
    until: options.SaidUntil = None,
    thread: options.InThread = None,
    subject: options.OfSubject = None,
    by: options.SaidBy = None,
    channel: options.OnChannel = None,
    tool: options.FromTool = None,
    trust: options.AtLeast = None,
    type: options.OnlyType = None,
    where: options.Where = None,
    as_of: options.TrueAsOf = None,
    explain: options.Explain = False,
    within_ms: options.WithinMs = None,
    log: options.WithLog = True,
    files: options.WithFiles = True,
    graph: options.GraphPath = None,
    embedder: options.EmbedderName = None,
) -> None:
    """Find what is relevant: memories, messages and files.

    The best come first; hits that repeat a better one come last. What was superseded, corrected or ended is left out.
    It tells you when nothing relevant was found.

    \b
    Examples:
      holdfast recall "which seat does she like?" --user ana
      holdfast recall "the cello" --user ana --since "last month" --explain
      holdfast recall "what to pack" --user ana --by Tom --no-log
      holdfast recall "who works at Acme?" --graph acme.dot
    """
    _check_graph(graph)
    moment = desk.moment(as_of)
    with desk.open(embedder=desk.embedder(embedder)) as store:
        memory = store.memory(user=user, agent=agent)
        found = memory.recall(
            query, k, as_of=moment, explain=explain, within_ms=within_ms, kind=kind or None, tag=tag or None,
            since=desk.moment(since), until=desk.moment(until), thread=thread, subject=subject, by=by, channel=channel,
            tool=tool, trust=trust, type=type, where=wording.named_values(where), log=log, files=files,
        )  # fmt: skip
        near = [] if graph is None else _around(memory.links(as_of=moment), query, found)
        hint = "" if found.relevant else owners(store, user, agent)
    _write_graph(graph, near, query)
    desk.tell(_data(found, graph, near), lambda screen: _show(desk, screen, found, explain))
    if hint:
        desk.note(hint)
    _remarks(desk, found.report)
    _note_graph(desk, graph, near)


# As data


def _data(found: Recalled, graph: str | None, links: list[Link]) -> dict[str, Any]:
    data = {
        "query": found.report.query,
        "relevant": found.relevant,
        "confidence": round(found.confidence, 4),
        "hits": [
            plain.hit(hit, rank, again)
            for rank, (hit, again) in enumerate(zip(found, _repeated(found), strict=True), 1)
        ],
        "report": plain.plain(found.report),
    }
    return data if graph is None else {**data, "graph": {"path": graph, "links": plain.plain(links)}}


# For people


def _show(desk: Desk, screen: Screen, found: Recalled, explain: bool) -> None:
    if not found.relevant:
        screen.line(("Nothing relevant was found.", "warn"), " The closest:" if found.hits else "")
    rows = [_left(desk, rank, hit) for rank, hit in enumerate(found, 1)]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(5)]
    widths[3] = min(widths[3], _WHERE) if screen.terminal else widths[3]
    styles = ("quiet", "quiet", "quiet", "name", "person")
    for hit, row, again in zip(found, rows, _repeated(found), strict=True):
        cells = [
            (cell.rjust(width) if column < 2 else cell, style)
            for column, (cell, width, style) in enumerate(zip(row, widths, styles, strict=True))
        ]
        screen.hanging(cells, widths, _text(screen, hit), *_remarked(hit, again))
    if explain:
        _show_parts(screen, found)
        _show_stages(screen, found.report)


def _left(desk: Desk, rank: int, hit: Hit) -> list[str]:
    """Rank, score, age, where it is, and who said it or whom it is about."""
    return [str(rank), f"{hit.score:.2f}", desk.when(hit.time), hit.id, _who(hit)]


def _who(hit: Hit) -> str:
    if hit.memory is not None:
        return hit.memory.subject
    if hit.file is not None:
        return hit.kind
    assert hit.entry is not None
    content = hit.entry.content
    name = content.get("name") if hit.kind == "message" and isinstance(content, dict) else None
    return name if isinstance(name, str) else wording.speaker(hit.entry)


def _text(screen: Screen, hit: Hit) -> str:
    """What was found: whole in a pipe, its beginning where a person looks."""
    text = " ".join(hit.text.split())
    return text[:_GLIMPSE].rstrip() + "…" if screen.terminal and len(text) > _GLIMPSE else text


def _remarked(hit: Hit, again: int | None) -> Iterable[tuple[str, str]]:
    if again is not None:
        yield f"  (repeats {again})", "quiet"
    if hit.superseded_by:
        yield f"  (superseded by {hit.superseded_by})", "warn"
    if hit.disputed_by:
        yield f"  (disputed by {', '.join(hit.disputed_by)})", "warn"


def _repeated(found: Recalled) -> list[int | None]:
    """For each hit the rank of the one before it that says the same: why it stands last, whatever its score."""
    first: dict[str, int] = {}
    said = [" ".join(words(hit.text)) for hit in found]
    ranks = [first.setdefault(text, rank) for rank, text in enumerate(said, 1)]
    return [None if rank == own else rank for own, rank in enumerate(ranks, 1)]


def _show_parts(screen: Screen, found: Recalled) -> None:
    """What each part adds to the score of each hit; parts that add nothing to any are left out.

    A terminal has room for so many hits; a pipe for all.
    """
    hits = found[: max(1, screen.width // _CELL - 2)] if screen.terminal else found.hits
    names = [name for name in dict.fromkeys(name for hit in hits for name in hit.why)]
    names = [name for name in names if any(round(hit.why.get(name, 0.0), 2) for hit in hits)]
    if not names:
        return
    screen.blank()
    screen.line(("What the scores are made of", "title"))
    names.sort(key=lambda name: -sum(abs(hit.why.get(name, 0.0)) for hit in hits))
    columns = [Column("part", "name"), *(Column(str(rank), right=True) for rank in range(1, len(hits) + 1))]
    rows = [(name, *(_number(hit.why.get(name, 0.0)) for hit in hits)) for name in names]
    screen.table(columns, [*rows, ("score", *(f"{hit.score:.2f}" for hit in hits))], indent=2)


def _number(value: float) -> str:
    return f"{value:.2f}" if round(value, 2) else ""


def _show_stages(screen: Screen, report: RecallReport) -> None:
    screen.blank()
    looked = f" {report.candidates:,} of {report.searched:,} looked at in {report.ms:.1f} ms"
    screen.line(("Stages", "title"), (looked, "quiet"))
    rows = [(each.name, "" if each.skipped else f"{each.ms:.2f}", each.skipped) for each in report.stages]
    screen.table([Column("stage", "name"), Column("ms", right=True), Column("left out", "quiet")], rows, indent=2)


def _remarks(desk: Desk, report: RecallReport) -> None:
    """What a person should know about the answer."""
    late = [stage.name for stage in report.stages if stage.skipped == "no time left"]
    if late:
        desk.note(f"There was no time for: {', '.join(late)}.")
    for note in report.notes:
        desk.note(f"{note[:1].upper()}{note[1:]}")
    if report.pending:
        desk.note(f"{wording.counted(report.pending, 'passage')} without a vector yet: found by words alone.")


# Links around what was found


def _around(links: list[Link], query: str, found: Recalled) -> list[Link]:
    """The links of everything that a hit is about or that the query names, then those one hop further."""
    wanted = {folded(name) for hit in found if hit.memory for name in (hit.memory.subject, hit.memory.object) if name}
    ends = {folded(end) for link in links for end in (link.subject, link.object)}
    wanted |= {end for end in ends if _words(end).strip() and _words(end) in _words(query)}
    near = [link for link in links if _ends(link) & wanted]
    beyond = {end for link in near for end in _ends(link)}
    return near + [link for link in links if _ends(link) & beyond and not _ends(link) & wanted]


def _ends(link: Link) -> set[str]:
    return {folded(link.subject), folded(link.object)}


def _words(text: str) -> str:
    """Words with a space on either side, so that one text is in another only as whole words."""
    return " ".join(["", *re.findall(r"\w+", folded(text)), ""])


def _check_graph(path: str | None) -> None:
    if path is not None and Path(path).suffix.lower() not in _FORMS:
        raise Invalid(f"--graph writes DOT or Mermaid, and the file's suffix says which: .dot or .mmd, not {path!r}")


def _write_graph(path: str | None, links: list[Link], title: str) -> None:
    if path is not None:
        Path(path).write_text(as_text(links, _FORMS[Path(path).suffix.lower()], title), encoding="utf-8")


def _note_graph(desk: Desk, path: str | None, links: list[Link]) -> None:
    if path is not None:
        desk.note(f"{wording.counted(len(links), 'link')} written to {path}.")
