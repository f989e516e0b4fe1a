"""The commands that measure recall and contexts on conversations and notes with known answers.

Deliberately absent: ingesting, asking and measuring (``evaluation`` does that).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from holdfast.doors.cli import options
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.render import Advance, Column, Screen
from holdfast.doors.cli.wording import counted, database
from holdfast.errors import Invalid
from holdfast.evaluation import (
    BUDGETS,
    LADDER,
    MEASURES,
    ContextScores,
    Conversation,
    Group,
    Measured,
    Scores,
    Shares,
    Trial,
    ask_for_contexts,
    opened,
    picture,
    read,
    stage_names,
)

HELP = """Measure how well recall and contexts work.

\b
Examples:
  holdfast eval recall notes.txt
  holdfast eval context conversations.json.gz
"""
_SHOWN = tuple(f"{method}@{budget}" for method in ("gold", "whole") for budget in BUDGETS)
_WAYS = {"window": "last turns", "bm25": "top-k by words", "topk": "top-k by vectors", "gold": "context"}
_PLAIN = {"bm25": "BM25", "bm25_window": "BM25, window"}


def recall(
    desk: Desk,
    files: options.DataFiles,
    engine: options.TrialEngine = None,
    embedder: options.EmbedderName = None,
    plot: options.PlotPath = None,
    without: options.WithoutStages = None,
) -> None:
    """Measure recall on your own notes or conversations, with questions that you know the answers to.

    A text file holds one note per line, and questions among them or below:

    \b
      Rita keeps the spare key of the flat.
      The dentist moved to Oak Street 12.
      ? Who can let me in? => Rita key
      ? Where do I have my teeth checked? => #2
      ?! What does the dentist charge?

    After => stand words that only the right note has, in any order, or the line it is on. ?! asks what no note answers.
    Headings (#) and blank lines are passed over, and so is the bullet before a line.

    The same as JSON: {"notes": [{"id", "text"}], "questions": [{"text", "gold": [note ids]}], "unanswerable":
    [{"text"}], "offtopic": ["text"]}. Conversations: [{"id", "turns": [{"id", "session", "time", "speaker", "text"}],
    "queries": [{"id", "kind", "text", "gold": [turn ids]}]}]; a query without gold has no answer. A name that ends in
    .txt or .md means text, .json JSON; any of them may be gzipped.

    Notes are remembered, and conversations are appended to threads, in a temporary store; each file or conversation is
    a user of its own. Every question is asked, and what is found is compared with what is right: recall@N is the share
    of it among the first N, all@10 how often all of it is among the first ten, mrr 1 divided by the place of the first
    right one. BM25 ranks the same turns by words alone; its window is a turn and its two neighbours as one text. Where
    there are questions without an answer, you see how many were refused, and for each tenth of confidence how many
    questions had an answer. With --json you get one line per file.

    \b
    Examples:
      holdfast eval recall notes.txt
      holdfast eval recall conversations.json.gz
      holdfast eval recall one.json two.json --json --embedder none
      holdfast eval recall one.json two.json --plot stages.svg
    """
    _check(desk, plot)
    if plot is not None and without:
        raise Invalid("--plot already compares with and without each stage; leave out --without")
    _check_stages(without or [])
    trials = [(file, read(file)) for file in files]  # all of them, before any work is done
    groups = []
    for number, (file, conversations) in enumerate(trials):
        steps = [rung.without for rung in LADDER] if plot is not None else [frozenset(without or ())]
        with _trial(desk, file, conversations, engine, embedder) as trial:
            results = [trial.ask(step) for step in steps]  # what was ingested is asked again
        measured = results[-1]
        _tell(desk, file, measured, first=number == 0)
        groups.append(Group(_name(file), _counts(measured), tuple(each.overall.recall_10 for each in results)))
    if plot is not None:
        note = f"recall@10, higher is better · {_kept(measured)}"
        drawn = picture([rung.name for rung in LADDER], groups, title="What each stage of recall adds", note=note)
        Path(plot).write_text(drawn, encoding="utf-8")
        desk.note(f"The stages are compared in {plot}.")


def context(
    desk: Desk,
    files: options.DataFiles,
    engine: options.TrialEngine = None,
    embedder: options.EmbedderName = None,
    tokens: options.CountedBy = None,
    plot: options.MethodsPath = None,
) -> None:
    """Measure how much of what answers a question is in a context of 1,000, 4,000 and 8,000 tokens.

    The files are those of eval recall. Each question is asked in a new thread of the conversation's user. gold@N is the
    share of the right turns that a context of N tokens cites, whole@N the share that it shows in full. For comparison,
    at the same budgets: the last turns (window), the nearest by vector (topk) and the best by words (bm25), packed best
    first until nothing more fits. With --json you get one line per file.

    \b
    Examples:
      holdfast eval context conversations.json.gz
      holdfast eval context one.json two.json --json --embedder none
      holdfast eval context one.json two.json --plot contexts.svg
    """
    _check(desk, plot)
    trials = [(file, read(file)) for file in files]
    groups: list[Group] = []
    for number, (file, conversations) in enumerate(trials):
        with _trial(desk, file, conversations, engine, embedder) as trial:
            packed = ask_for_contexts(trial, tokens)
        if desk.options.json:
            desk.document(packed.summary(file), indent=None)
        else:
            _show_packed(desk, file, packed, first=number == 0)
        groups += [
            Group(_name(file), f"{budget:,} tokens", tuple(packed.overall[f"{way}@{budget}"] for way in _ways(packed)))
            for budget in BUDGETS
        ]
    if plot is not None:
        note = f"share of the right turns in the prompt, higher is better · {_kept(packed)}"
        bars = [_WAYS[way] for way in _ways(packed)]
        drawn = picture(bars, groups, title="What is in a context", note=note)
        Path(plot).write_text(drawn, encoding="utf-8")
        desk.note(f"The ways to fill a prompt are compared in {plot}.")


def _check(desk: Desk, plot: str | None) -> None:
    if desk.options.db is not None:
        raise Invalid("eval does not read your store; use --engine DATABASE to choose where it ingests")
    if plot is not None and Path(plot).suffix.lower() != ".svg":
        raise Invalid(f"--plot writes SVG: use a name that ends in .svg, not {plot!r}")


def _check_stages(without: Sequence[str]) -> None:
    known = stage_names() if without else []
    for stage in without:
        if stage not in known:
            raise Invalid(f"there is no stage {stage!r} to leave out; there are {', '.join(known)}")


@contextmanager
def _trial(
    desk: Desk, file: str, conversations: list[Conversation], engine: str | None, embedder: str | None
) -> Iterator[Trial]:
    """The conversations of a file in a store, and progress on the screen meanwhile."""
    with (
        desk.notes.progress() as advance,
        opened(
            conversations, engine, embedder=desk.embedder(embedder), tenant=desk.options.tenant,
            progress=_titled(advance, _name(file)),
        ) as trial,
    ):  # fmt: skip
        yield trial


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
    if measured.questions:
        _show_measures(screen, measured)
    said = [f"{measured.ms:.1f} ms a question (p95 {measured.ms_p95:.1f})"]
    if measured.newer_first is not None:
        said.append(f"newer first in {measured.newer_first:.0%} of updates")
    if measured.wrongly_refused is not None:
        said.append(f"wrongly refused {measured.wrongly_refused:.0%}")
    said += [f"{kind}: refused {held:.0%} of {count}" for kind, (held, count) in measured.refused.items()]
    screen.line(" · ".join(said), indent=2)
    if measured.calibration:
        screen.blank()
        columns = [Column("confidence", "name"), Column("questions", right=True), Column("answerable", right=True)]
        rows = [
            (f"{tenth.least:.1f} to {tenth.least + 0.1:.1f}", str(tenth.questions), str(tenth.answerable))
            for tenth in measured.calibration
            if tenth.questions
        ]
        screen.table(columns, rows, indent=2)


def _show_measures(screen: Screen, measured: Measured) -> None:
    """What recall found, by kind and overall; then simpler rankings, and how much better recall is."""
    columns = [Column("kind", "name", fits=True), *(Column(name, right=True) for name in MEASURES)]
    columns.append(Column("questions", right=True))
    rows = [_row(kind, scores, count) for kind, (scores, count) in measured.kinds.items()]
    total = rows.pop() if len(rows) == 1 else _row("all kinds", measured.overall, measured.questions)
    plain = []
    for name, scores in measured.plain.items():
        plain.append((_PLAIN[name], *(f"{value:.3f}" for value in scores.named().values()), ""))
        plain.append(("  margin", *(f"{value:+.3f}" for value in measured.margins(name).values()), ""))
    screen.table(columns, [*rows, tuple((cell, "title") for cell in total), *plain], indent=2)


def _show_packed(desk: Desk, file: str, packed: ContextScores, *, first: bool) -> None:
    screen = desk.screen
    if not first:
        screen.blank()
    screen.line((_name(file), "title"), (f"  {_counts(packed)} · {_kept(packed)}", "quiet"))
    columns = [Column("kind", "name", fits=True), *(Column(name, right=True) for name in _SHOWN)]
    columns.append(Column("questions", right=True))
    rows = [_shares(kind, shares, count) for kind, (shares, count) in packed.kinds.items()]
    total = _shares("all kinds", packed.overall, packed.questions)
    screen.table(columns, [*rows, tuple((cell, "title") for cell in total)], indent=2)
    screen.blank()
    columns = [Column("tokens", "name"), *(Column(f"{budget:,}", right=True) for budget in BUDGETS)]
    screen.table(
        columns,
        [(_WAYS[way], *(f"{packed.overall[f'{way}@{budget}']:.3f}" for budget in BUDGETS)) for way in _ways(packed)],
        indent=2,
    )
    used = ", ".join(f"{packed.tokens[budget]:,.0f}" for budget in BUDGETS)
    over = "none" if not packed.over else counted(packed.over, "context")
    screen.line(
        f"{packed.ms:.1f} ms a context (p95 {packed.ms_p95:.1f}) · {used} tokens used ({packed.counter}), "
        f"{over} over the budget",
        indent=2,
    )
    for note in packed.notes:
        desk.note(f"{note[:1].upper()}{note[1:]}")


def _ways(packed: ContextScores) -> list[str]:
    """What is compared. Without vectors there is one plain ranking, not two."""
    return [way for way in _WAYS if way != "topk" or packed.embedder != "none"]


def _shares(kind: str, shares: Shares, count: int) -> tuple[str, ...]:
    return (kind, *(f"{shares[name]:.3f}" for name in _SHOWN), str(count))


def _row(kind: str, scores: Scores, count: int) -> tuple[str, ...]:
    return (kind, *(f"{value:.3f}" for value in scores.named().values()), str(count))


def _counts(measured: Measured | ContextScores) -> str:
    conversations = measured.conversations
    held = counted(conversations, "conversation") if conversations else counted(measured.turns, "note")
    return f"{counted(measured.questions, 'question')} · {held}"


def _kept(measured: Measured | ContextScores) -> str:
    return f"{database(measured.engine)} · {'no embedder' if measured.embedder == 'none' else measured.embedder}"


def _name(file: str) -> str:
    return Path(file).name
