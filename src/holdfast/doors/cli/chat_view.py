"""What a chat shows: the welcome, an answer as it comes, and the account of it.

Deliberately absent: deciding anything, and reading what was typed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.cells import cell_len

from holdfast.context.page import Dropped
from holdfast.context.report import Context, ContextReport
from holdfast.doors.cli import wording
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.render import Column, Screen, visible
from holdfast.doors.cli.wording import counted
from holdfast.records import Entry, Hit, Memory, ThreadInfo
from holdfast.sessions.session import Opening
from holdfast.sessions.turn import Answer

INDENT = 2
_LABEL = 8
_BAR = 40
_GLIMPSE = 160
_NAMED = 3
KNOWN = ("instructions", "identity", "facts", "news")


# The welcome


def welcome(desk: Desk, screen: Screen, info: ThreadInfo | None, last: Entry | None, facts: int) -> None:
    """Whether anyone was here before, when, and how much is known."""
    known = f" {counted(facts, 'fact')} {'is' if facts == 1 else 'are'} known." if facts else ""
    if info is None:
        screen.line(("A new conversation.", "title"), known)
        return
    entries = counted(info.entries, "entry", "entries")
    when = desk.when(info.active if last is None else last.time)
    screen.line(("Welcome back", "title"), f": {entries}, last active {when}.{known}")


def standing(screen: Screen, opening: Opening) -> None:
    """What the last session left: the goal, what comes next, what blocks it, and what is too old to act on."""
    handoff = opening.handoff
    _labelled(screen, "first", "name", [handoff.start] if handoff.start else [])
    _labelled(screen, "goal", "name", [handoff.goal] if handoff.goal else [])
    _labelled(screen, "next", "name", [handoff.next_action] if handoff.next_action else [])
    _labelled(screen, "blocked", "warn", handoff.blockers)
    ages = {field.path: field.age_s for field in opening.state.stale}
    _labelled(screen, "verify", "bad", [f"{path}, {_confirmed(ages.get(path))}" for path in opening.must_verify])


def _confirmed(age_s: float | None) -> str:
    if age_s is None or age_s == float("inf"):
        return "never confirmed"
    return f"confirmed {wording.age(age_s)} ago"


def _labelled(screen: Screen, label: str, style: str, texts: Iterable[str]) -> None:
    for text in texts:
        screen.hanging([(label, style)], [_LABEL], _one_line(text), indent=INDENT)


def left_open(screen: Screen, opening: Opening) -> None:
    """The question that was never answered, what had been done for it, and what becomes of it now."""
    question = opening.unanswered
    assert question is not None
    screen.blank()
    screen.line((f"Your last question was never answered (#{question.number}):", "warn"))
    screen.line(f"“{_one_line(wording.words(question))}”", indent=INDENT)
    if opening.done:
        screen.line("Already done, and not done again:")
    for tool, result in opening.done:
        screen.hanging([("✓", "good"), (tool, "name")], [1, max(_LABEL, len(tool))], _one_line(result), indent=INDENT)
    if opening.partial:
        screen.line(("It had begun to say: ", "quiet"), _one_line(opening.partial))
    screen.line("Answering it now:")


# An answer


class Flow:
    """Text as it comes: let out at once, and on a terminal indented and broken between words."""

    def __init__(self, screen: Screen) -> None:
        self._screen, self._file = screen, screen.console.file
        self._column, self._word, self._gap = 0, "", ""
        self.begun = False

    def put(self, piece: str) -> None:
        self.begun = True
        if not self._screen.terminal:
            self._file.write(visible(piece))
        else:
            for letter in visible(piece):
                self._letter(letter)
        self._file.flush()

    def end(self) -> None:
        self._let_out()
        self._file.write("\n" if self.begun else "")
        self._file.flush()
        self._column, self.begun = 0, False

    def _letter(self, letter: str) -> None:
        if letter == "\n":
            self._let_out()
            self._file.write("\n")
            self._column, self._gap = 0, ""
        elif letter in " \t":
            self._let_out()
            if self._column > INDENT:
                self._gap = " "
            else:
                self._write(" ")  # at the beginning of a line it means something
        else:
            self._word += letter
            if cell_len(letter) > 1 or cell_len(self._word) >= self._screen.width - INDENT - 1:
                self._let_out()  # scripts without spaces may be broken anywhere, and so must what fits on no line

    def _let_out(self) -> None:
        word, self._word = self._word, ""
        if not word:
            return
        if self._column > INDENT and self._column + cell_len(self._gap + word) >= self._screen.width:
            self._file.write("\n")
            self._column, self._gap = 0, ""
        self._write(self._gap + word)
        self._gap = ""

    def _write(self, text: str) -> None:
        if not self._column:
            self._file.write(" " * INDENT)
            self._column = INDENT
        self._file.write(text)
        self._column += cell_len(text)


def after(screen: Screen, answer: Answer) -> None:
    """What came of a turn besides its text: what was learned, what did not go as it should, what it took."""
    if answer.repeated:
        screen.line(("Another process answered first; its answer counts:", "warn"), indent=INDENT)
        screen.line(answer.text, indent=INDENT)
    if not answer.text.strip():
        screen.line(("(no text)", "quiet"), indent=INDENT)
    for memory in answer.learned:
        screen.line(("✓ ", "good"), (f"remembered: {_one_line(memory.text)}{_key(memory)}", "quiet"), indent=INDENT)
    for note in answer.notes:
        screen.line(("! ", "warn"), (_one_line(note), "quiet"), indent=INDENT)
    if answer.handed_off:
        screen.line(
            ("The context was nearly full, so a handoff was written; the next turn starts afresh.", "quiet"),
            indent=INDENT,
        )


def _key(memory: Memory) -> str:
    return f" ({memory.key})" if memory.key else ""


# The account of it


def show_context(screen: Screen, context: Context) -> None:
    """What a context was made of, as a table, with what was left out and why."""
    report = context.report
    share = report.tokens / report.budget
    full = round(min(1.0, share) * _BAR)
    bar = ("█" * full, "warn" if share > 0.9 else "good"), ("░" * (_BAR - full), "quiet")
    used = f" {report.tokens:,} of {report.budget:,} tokens"
    screen.line(*bar, used, (f", {_counted_by(report)}", "quiet"), indent=INDENT)
    screen.blank()
    rows = [
        (each.name, f"{each.tokens:,}", f"{each.shown:,}", f"{each.dropped:,}" if each.dropped else "")
        for each in report.sections
    ]
    around = report.tokens - sum(each.tokens for each in report.sections)
    if around > 0:
        rows.append(("headings, roles", f"{around:,}", "", ""))
    columns = [Column("section", "name"), Column("tokens", right=True), Column("shown", right=True)]
    screen.table([*columns, Column("dropped", "warn", right=True)], rows, indent=INDENT)
    screen.blank()
    for label, text in _remarks(report, len(context.hits)):
        screen.hanging([(label, "quiet")], [_LABEL], text, indent=INDENT)
    _show_dropped(screen, report.dropped)


def _counted_by(report: ContextReport) -> str:
    if report.exact:
        return f"exact, by {report.counter}"
    method, _, family = report.counter.partition(":")
    if method != "estimate":
        return f"by {report.counter}"
    return "estimated" if family == "any" else f"estimated ({family})"


def _remarks(report: ContextReport, hits: int) -> Iterable[tuple[str, str]]:
    share = f"{100 * report.kept / report.tokens:.0f} %" if report.kept else ""
    same = f"{report.kept:,} tokens ({share}) at the beginning are unchanged, so a provider's cache has them"
    yield "kept", same if report.kept else "nothing is unchanged, so a provider's cache has none of it"
    if report.relevant is not None:
        beside = "" if hits else ", but nothing beyond what is shown anyway"
        yield "recall", f"found something relevant{beside}" if report.relevant else "found nothing relevant"
    if report.skipped:
        yield "skipped", ", ".join(report.skipped)
    if report.masked:
        yield "masked", f"{counted(report.masked, 'tool output')} shortened; each can be looked up"
    if report.clipped:
        yield "clipped", counted(report.clipped, "long text")
    yield "took", f"{report.ms:.1f} ms"
    for note in report.notes:
        yield "note", note


def _show_dropped(screen: Screen, dropped: Sequence[Dropped]) -> None:
    if not dropped:
        return
    screen.blank()
    screen.line(("Left out", "title"))
    rows = []
    for (section, why), group in groupby(sorted(dropped, key=_reason), _reason):
        named = [each.what for each in group]
        more = f" and {len(named) - _NAMED:,} more" if len(named) > _NAMED else ""
        rows.append((section, why, f"{', '.join(named[:_NAMED])}{more}"))
    screen.table([Column("section", "name"), Column("why"), Column("what", "quiet", fits=True)], rows, indent=INDENT)


def _reason(dropped: Dropped) -> tuple[str, str]:
    return dropped.section, dropped.why


def show_why(desk: Desk, screen: Screen, answer: Answer, model: str, quoted: Sequence[str]) -> None:
    """What an answer had to go by: what was recalled, what is known, which tools were used, and what it cost."""
    context = answer.context
    screen.line("Answered by ", (model, "name"), (f", for #{answer.question.number}{_spent(answer)}", "quiet"))
    if quoted:
        screen.line("It quoted ", (", ".join(quoted), "name"))
    if context is not None:
        if context.window is not None:
            first, last = context.window
            screen.line((f"It saw entries {first} to {last} of this conversation, and:", "quiet"))
        _show_recalled(desk, screen, context)
        for name in KNOWN:
            _show_section(screen, name, context.section(name))
    _show_tools(screen, answer.entries)


def _spent(answer: Answer) -> str:
    usage, context = answer.usage, answer.context
    parts = [] if context is None else [f"context of {context.tokens:,} tokens"]
    if usage.requests:
        cached = f" ({usage.cached:,} cached)" if usage.cached else ""
        asked = counted(usage.requests, "request")
        parts.append(f"{usage.input:,} tokens in{cached}, {usage.output:,} out, {asked}")
    return "".join(f" · {part}" for part in parts)


def _show_recalled(desk: Desk, screen: Screen, context: Context) -> None:
    screen.blank()
    relevant = "" if context.report.relevant is not False else "  nothing relevant was found; the closest"
    screen.line(("Recalled", "title"), (relevant, "quiet"))
    show_hits(desk, screen, sorted(context.hits, key=lambda hit: -hit.score))


def show_hits(desk: Desk, screen: Screen, hits: Sequence[Hit]) -> None:
    if not hits:
        screen.line(("nothing beyond what is shown anyway", "quiet"), indent=INDENT)
        return
    columns = [Column("score", "quiet", right=True), Column("where", "name"), Column("when", "quiet")]
    rows = [(f"{hit.score:.2f}", hit.id, desk.when(hit.time), _one_line(hit.text)) for hit in hits]
    screen.table([*columns, Column("text", fits=True)], rows, indent=INDENT)


def _show_section(screen: Screen, name: str, text: str) -> None:
    if not text:
        return
    screen.blank()
    screen.line((name.capitalize(), "title"))
    for line in text.splitlines():
        screen.line(_glimpse(screen, line.removeprefix("- ")), indent=INDENT)


def _show_tools(screen: Screen, entries: Sequence[Entry]) -> None:
    calls = [entry for entry in entries if entry.kind == "tool_call"]
    results = {entry.content.get("of"): entry for entry in entries if entry.kind == "observation"}
    if not calls:
        return
    screen.blank()
    screen.line(("Tools", "title"))
    for call in calls:
        screen.line((f"{wording.words(call)}", "name"), indent=INDENT)
        if (result := results.get(call.content.get("id"))) is not None:
            screen.line(_glimpse(screen, wording.words(result)), indent=INDENT + 2)


def show_memories(desk: Desk, screen: Screen, facts: Sequence[Memory], others: Sequence[Memory]) -> None:
    """What is known: facts, and the newest of what else is remembered."""
    if not facts and not others:
        screen.line("Nothing is remembered yet.")
        return
    columns = [Column("fact", "name", fits=True), Column("value", fits=True), Column("since"), Column("id", "quiet")]
    rows = [(each.key or each.kind, each.text, desk.when(each.valid_from), each.id) for each in (*facts, *others)]
    screen.table(columns, rows, indent=INDENT)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _glimpse(screen: Screen, text: str) -> str:
    """A text on one line: whole in a pipe, its beginning where a person looks."""
    line = _one_line(text)
    return line[:_GLIMPSE].rstrip() + "…" if screen.terminal and len(line) > _GLIMPSE else line
