"""The command that measures recall on conversations with known answers.

Deliberately absent: ingesting, asking and measuring (``evaluation`` does that).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from holdfast.doors.cli import options
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.render import Advance, Column, Screen
from holdfast.doors.cli.wording import counted, database
from holdfast.errors import Invalid
from holdfast.evaluation import LADDER, Conversation, Group, Measured, Scores, opened, picture, read, stage_names

HELP = """Measure how well things are found again.

\b
Examples:
  holdfast eval recall conversations.json.gz
"""
_MEASURES = ("recall@5", "recall@10", "recall@20", "all@10", "ndcg@10")


def recall(
    desk: Desk,
    files: options.DataFiles,
    engine: options.TrialEngine = None,
    embedder: options.EmbedderName = None,
    plot: options.PlotPath = None,
    without: options.WithoutStages = None,
) -> None:
    """Measure recall on conversations with questions.

    A file is a JSON list of {"id", "turns": [{"id", "session", "time", "speaker", "text"}], "queries": [{"id", "kind",
    "text", "gold": [turn ids]}]}. Each conversation goes into a store as a user of its own, every question is asked,
    and the turns found are compared with gold. Nothing stays in the store. With --json each file gives one line.

    \b
    Examples:
      holdfast eval recall conversations.json.gz
      holdfast eval recall one.json two.json --json --embedder none
      holdfast eval recall one.json two.json --plot stages.svg
    """
    if desk.options.db is not None:
        raise Invalid("eval does not look into your store; --engine DATABASE says where to ingest")
    if plot is not None and Path(plot).suffix.lower() != ".svg":
        raise Invalid(f"--plot writes SVG: give a name that ends in .svg, not {plot!r}")
    if plot is not None and without:
        raise Invalid("--plot compares with and without each stage by itself; leave --without out")
    _check_stages(without or [])
    trials = [(file, read(file)) for file in files]  # all of them, before any work is done
    groups = []
    for number, (file, conversations) in enumerate(trials):
        steps = [rung.without for rung in LADDER] if plot is not None else [frozenset(without or ())]
        results = _measured(desk, file, conversations, engine, embedder, steps)
        measured = results[-1]
        _tell(desk, file, measured, first=number == 0)
        groups.append(Group(_name(file), _counts(measured), tuple(each.overall.recall_10 for each in results)))
    if plot is not None:
        note = f"recall@10, higher is better · {_kept(measured)}"
        drawn = picture([rung.name for rung in LADDER], groups, title="What each stage of recall adds", note=note)
        Path(plot).write_text(drawn, encoding="utf-8")
        desk.note(f"The stages are compared in {plot}.")


def _check_stages(without: Sequence[str]) -> None:
    known = stage_names() if without else []
    for stage in without:
        if stage not in known:
            raise Invalid(f"there is no stage {stage!r} to leave out; there are {', '.join(known)}")


def _measured(
    desk: Desk,
    file: str,
    conversations: list[Conversation],
    engine: str | None,
    embedder: str | None,
    steps: Sequence[frozenset[str]],
) -> list[Measured]:
    """The same questions once for each set of stages to leave out; what was ingested is asked again."""
    with ExitStack() as stack:
        advance = stack.enter_context(desk.notes.progress())
        trial = stack.enter_context(
            opened(
                conversations, engine, embedder=desk.embedder(embedder), tenant=desk.options.tenant,
                progress=_titled(advance, _name(file)),
            )
        )  # fmt: skip
        return [trial.ask(step) for step in steps]


def _titled(advance: Advance | None, name: str) -> Advance | None:
    return None if advance is None else lambda stage, done, total: advance(f"{name}: {stage}", done, total)


# For people


def _tell(desk: Desk, file: str, measured: Measured, *, first: bool) -> None:
    if desk.options.json:
        desk.document(measured.summary(file), indent=None)
    else:
        _show(desk.screen, file, measured, first=first)
        for note in measured.notes:
            desk.note(f"{note[:1].upper()}{note[1:]}")


def _show(screen: Screen, file: str, measured: Measured, *, first: bool) -> None:
    if not first:
        screen.blank()
    screen.line((_name(file), "title"), (f"  {_counts(measured)} · {_kept(measured)}", "quiet"))
    columns = [Column("kind", "name", fits=True), *(Column(name, right=True) for name in _MEASURES)]
    columns.append(Column("questions", right=True))
    rows = [_row(kind, scores, count) for kind, (scores, count) in measured.kinds.items()]
    total = _row("all kinds", measured.overall, measured.questions)
    screen.table(columns, [*rows, tuple((cell, "title") for cell in total)], indent=2)
    said = [f"{measured.ms:.1f} ms a question (p95 {measured.ms_p95:.1f})"]
    if measured.newer_first is not None:
        said.append(f"newer first in {measured.newer_first:.0%} of updates")
    said.append(f"judged relevant {measured.relevant:.0%}")
    if measured.false_alarms is not None:
        said.append(f"without an answer, judged relevant {measured.false_alarms:.0%}")
    screen.line(" · ".join(said), indent=2)


def _row(kind: str, scores: Scores, count: int) -> tuple[str, ...]:
    named = scores.named()
    return (kind, *(f"{named[name]:.3f}" for name in _MEASURES), str(count))


def _counts(measured: Measured) -> str:
    return f"{counted(measured.questions, 'question')} · {counted(measured.conversations, 'conversation')}"


def _kept(measured: Measured) -> str:
    return f"{database(measured.engine)} · {'no embedder' if measured.embedder == 'none' else measured.embedder}"


def _name(file: str) -> str:
    return Path(file).name
