r"""A handoff as markdown that people know, and back, without loss in either direction.

This is a small line-based reader and not a markdown library: it must give back exactly what was written, also after a
person edited it, and it needs to know only headings, lists in four sections, and fenced code (in which nothing is a
heading). Headings of the first two levels are structure, those of the third only in a file that has its parts there.
Everything else is text, kept as it is. Two promises, both proved by generated cases: ``parse(render(document))`` is the
document, whatever text is in it; and no line that a person wrote is lost by ``render(parse(text))``.

Where text would be taken for structure, one backslash is put in front of it, and one more where there are backslashes
already; the reader takes one away in exactly these places. So ``C:\new`` stays what it is everywhere, and ``## x``
inside a goal is written ``\## x``, which every viewer shows as it was meant. A carriage return inside a text is written
``&#13;``. A fence that says ``json data`` is the data of a context; any other fence is text. Markers of a merge
conflict count as structure too: a text with them holds two versions, and is refused.

Deliberately absent: headings underlined with === or ---, html (a comment with a heading inside is text and a heading),
files, revisions, and the meaning of a ref.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Literal, NamedTuple

from holdfast.errors import Invalid, TooLarge
from holdfast.handoff.document import KINDS, HandoffDocument, HandoffItem, HandoffParts, HandoffSection, Kind, Place
from holdfast.handoff.strict_json import data_block, read_json

MAX_BYTES = 1_000_000
_SHOWN = 40
_BLANK = " \t"
_HEADINGS: dict[Kind, str] = {
    "goal": "Goal",
    "start": "Start",
    "features": "Features",
    "steps": "Steps",
    "blockers": "Blockers",
    "next_action": "Next action",
    "decisions": "Decisions",
    "context": "Context",
}
_WHEN_FILLED = ("start", "features", "decisions")  # the others are a form to fill in
_NAMES: dict[Kind, str] = {
    "goal": "goal|goals|the goal|current goal|main goal|overall goal|project goal|objective|objectives"
    "|current objective|task|the task|current task",
    "start": "start|start here|startup|start up|start-up|run first|start script|startup script|init|init script"
    "|getting started|how to start|how to run",
    "features": "features|feature list|feature status|acceptance criteria|acceptance tests",
    "steps": "steps|step|progress|current progress|tasks|task list|checklist|todo|todos|to do|to-do|todo list"
    "|to-do list|remaining|remaining steps|remaining tasks|remaining work|open|open steps|open tasks|pending"
    "|pending tasks|in progress|steps left|done|done so far|steps done|completed|completed steps|completed work"
    "|completed tasks|finished|accomplished|what was done|what's done|what has been done",
    "blockers": "blockers|blocker|current blockers|current blocker|blocked|blocked by|blocked on|blocking"
    "|blocking issues|issues|issue|known issues|current issues|open issues|problems|known problems",
    "next_action": "next|next step|next steps|next action|next actions|next task|next tasks|next up|up next"
    "|immediate next step|immediate next steps|what is next|what's next|what comes next",
    "decisions": "decisions|decision|key decisions|important decisions|decisions made|design decisions"
    "|technical decisions|decision log",
    "context": "context|notes|note|key context|important context|current context|additional context|further context"
    "|background|important notes|session notes",
}
_KNOWN: dict[str, Kind] = {name: kind for kind, names in _NAMES.items() for name in names.split("|")}
_MIXED = ("steps", "step", "progress", "current progress")  # names that do not say whether what is listed is done
_AROUND = re.compile(r"^(?:[^\w\\]|_|[0-9]+[.)\ufe0f\u20e3])+|(?:[^\w\\]|_)+$")
_LONGEST = 60
_DATA = "```json data"
_HEADING = re.compile(r"(#{1,6})(?=[ \t]|$)(.*)$", re.DOTALL)
_FENCE = re.compile(r"(`{3,})[^`]*$|(~{3,})")
_MARKER = re.compile(r"(?:[-*+]|[0-9]{1,9}[.)])(?=[ \t]|$)")
_CONFLICT = re.compile(r"(?:<{7}|>{7}) ")
_BOX = re.compile(r"\[([ xX])\](?=[ \t]|$)")
_COMMENT = re.compile(
    r"<!--[ \t]*holdfast:[ \t]*(?:thread[ \t](.*),[ \t]*revision[ \t]+([0-9]{1,18})|hidden[ \t](.*))[ \t]*-->[ \t]*$"
)


class Parsed(NamedTuple):
    """What a text said: the document, and the thread and revision it was written from, where it says so."""

    document: HandoffDocument
    thread: str | None = None
    revision: int | None = None


# Writing


def render(document: HandoffDocument, thread: str, revision: int) -> str:
    """Write a document. The last line says which revision of which thread it is."""
    out = [f"# {_title(thread)}", ""]
    _put(out, _free_lines(document.opening))
    _put_sections(out, document, "")
    for kind in KINDS:
        if kind in _WHEN_FILLED and not _is_filled(document, kind):
            continue
        out.append(f"## {_HEADINGS[kind]}")
        _put(out, *_blocks(document, kind))
        if out[-1]:
            out.append("")
        _put_sections(out, document, kind)
    out += [f"<!-- holdfast: hidden {_comment_text(ref)} -->" for ref in document.hidden]
    out.append(f"<!-- holdfast: thread {_comment_text(thread)}, revision {revision} -->")
    return "\n".join(out) + "\n"


def _is_filled(document: HandoffDocument, kind: Kind) -> bool:
    remarks = kind == "features" and document.feature_remarks
    return bool(getattr(document, kind) or remarks or any(section.after == kind for section in document.extra))


def _blocks(document: HandoffDocument, kind: Kind) -> list[list[str]]:
    """The lines of one part, in blocks with a blank line between them."""
    if kind == "steps":
        return [_free_lines(document.remarks, listed=True), list(_step_lines(document.steps))]
    if kind == "features":
        return [_free_lines(document.feature_remarks, listed=True), list(_step_lines(document.features, "-"))]
    if kind in ("blockers", "decisions"):
        return [[line for text in getattr(document, kind) for line in _item_lines("-", text)]]
    if kind != "context":
        return [_free_lines(getattr(document, kind))]
    text = re.sub(r"(?m)^(```json\\*)( data)$", r"\1\\\2", document.context)
    return [_free_lines(text), [] if document.data is None else data_block(document.data).split("\n")]


def _put(out: list[str], *blocks: list[str]) -> None:
    for block in blocks:
        if block:
            out += [*block, ""]


def _put_sections(out: list[str], document: HandoffDocument, after: Place) -> None:
    for section in document.extra:
        if section.after == after:
            out.append(f"{'#' * section.level} {_name(section.heading, section.level)}".rstrip(_BLANK))
            lines = _free_lines(section.text)
            out += [*lines, ""]


def _step_lines(steps: tuple[HandoffItem, ...], marker: str = "") -> Iterator[str]:
    for number, item in enumerate(steps, 1):
        ref = None if item.ref is None else f"<!-- {_comment_text(item.ref)} -->"
        yield from _item_lines(f"{marker or f'{number}.'} [{'x' if item.done else ' '}]", item.text, ref)


def _item_lines(marker: str, text: str, ref: str | None = None) -> Iterator[str]:
    """An item: its first line after the marker, the others indented by four, so that nothing in them is structure."""
    first, *more = _shield(text, "13").split("\n")
    yield " ".join(part for part in (marker, _edges(first, _ends_a_text), ref) if part)
    last = next((number for number in range(len(more), 0, -1) if more[number - 1].strip(_BLANK)), 0)
    for number, line in enumerate(more):
        bare = line.lstrip("\\")
        if not bare.strip(_BLANK) and (bare != line or number >= last):
            line = "\\" + line
        yield f"    {line}" if line else ""


def _free_lines(text: str, *, listed: bool = False) -> list[str]:
    """Free text as lines that are read back as text. ``listed``: a list may follow, so a list in it must not begin."""
    if not text:
        return []
    lines = _shield(text, "13").split("\n")
    filled = [number for number, line in enumerate(lines) if line.strip(_BLANK)]
    first, last = (filled[0], filled[-1]) if filled else (len(lines), -1)
    out = []
    for number, (line, fence) in enumerate(_fenced(lines)):
        mark = None if fence is not None else _mark(line, listed)
        inner_blank = not line.strip(_BLANK) and first < number < last
        out.append(line if mark is None or inner_blank else f"{line[:mark]}\\{line[mark:]}")
    return out


# Reading


class _MarkdownLine(NamedTuple):
    """A line of a section. ``fence`` is how far its code block is indented, None outside of one."""

    text: str
    fence: int | None = None


class _MarkdownPart(NamedTuple):
    """A heading with its lines. The first part of a text has none: level 0."""

    level: int
    name: str
    lines: list[_MarkdownLine]
    heading: str = ""


class _Pages(HandoffParts):
    """What was read so far, and the part that it came to."""

    place: Place = ""

    def add(self, part: _MarkdownPart, kind: Kind | None) -> None:
        if kind in self.items:
            items, free = _read_items(part, kind)
            self.items[kind] += items
            self.say("remarks" if kind == "steps" else "feature_remarks", _free_text(free, listed=True))
        elif kind in self.lists:
            self.lists[kind] += _read_texts(part.lines)
        elif kind == "context":
            self.say("context", self._without_data(part.lines))
        elif kind is not None:
            self.say(kind, _free_text(part.lines))
        else:
            level: Literal[1, 2] = 1 if part.level == 1 else 2
            self.extra.append(HandoffSection(_unname(part.name, level), _free_text(part.lines), self.place, level))
        self.place = self.place if kind is None else kind

    def _without_data(self, lines: list[_MarkdownLine]) -> str:
        """The text of a context. The first block of data in it that can be read is data; what cannot stays text."""
        whole = [line.text for line in lines]
        if _DATA in whole and "```" in whole[(start := whole.index(_DATA)) :]:
            end = whole.index("```", start)
            with suppress(Invalid):
                data = read_json("\n".join(whole[start + 1 : end]))
                if self.data is None and data and isinstance(data, dict | list):
                    self.data = data
                    texts = (_free_text(lines[:start]), _free_text(lines[end + 1 :]))
                    return _undata("\n\n".join(text for text in texts if text))
        return _undata(_free_text(lines))


def _undata(text: str) -> str:
    return re.sub(r"(?m)^(```json\\*)\\( data)$", r"\1\2", text)


def parse(text: str, thread: str = "") -> Parsed:
    """Read a text that ``render`` or a person wrote. ``thread`` is whose title is expected on top.

    Nearly every text can be read: one that is not text at all, or too long, or in the middle of a merge, is
    ``Invalid``.
    """
    lines = _split(text)
    found: dict[str, str] = {}
    hidden: list[str] = []
    parts = _at_their_level(list(_parts(lines, found, hidden)))
    pages = _Pages()
    pages.say("opening", _free_text(parts[0].lines))
    rest = parts[1:]
    if rest and _is_title(rest[0], thread):
        pages.say("opening", _free_text(rest[0].lines))
        rest = rest[1:]
    level = 2 if any(part.level == 2 and known(part.name) for part in rest) else 1
    for part in rest:
        says = any(line.text.strip() for line in part.lines)  # above the others it is a title, unless it has a text
        pages.add(part, known(part.name) if part.level >= level or says else None)
    revision = int(found["revision"]) if "revision" in found else None
    return Parsed(pages.document(tuple(hidden)), found.get("thread"), revision)


def known(name: str) -> Kind | None:
    """Which part of a handoff a heading means, as people word it."""
    return _KNOWN.get(_plain(name))


def _plain(name: str) -> str:
    """A heading without what people put around it: emoji, a number, bold, a colon."""
    if len(name) > _LONGEST:
        return ""
    return re.sub(r"[ \t]+", " ", _AROUND.sub("", name)).replace("\u2019", "'").casefold()


def _at_their_level(parts: list[_MarkdownPart]) -> list[_MarkdownPart]:
    """Put headings of the third level back into the text, unless the parts of the handoff are there."""
    levels = {part.level for part in parts if known(part.name)}
    if 3 in levels and 2 not in levels:
        return parts
    found: list[_MarkdownPart] = []
    for part in parts:
        if part.level == 3:
            found[-1].lines.extend([_MarkdownLine(part.heading), *part.lines])
        else:
            found.append(part)
    return found


def _split(text: str) -> list[str]:
    if (size := len(text.encode(errors="surrogatepass"))) > MAX_BYTES:
        raise TooLarge(f"a handoff is at most {MAX_BYTES:,} bytes long; this has {size:,}", size_bytes=size)
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, line in enumerate(lines, 1):
        if "\x00" in line:
            raise Invalid(f"line {number} contains a NUL character, so this is not text", line=number)
    return lines


def _parts(lines: list[str], found: dict[str, str], hidden: list[str]) -> Iterator[_MarkdownPart]:
    """Cut a text at its headings. Our own comments are taken out; what they say goes to ``found`` and ``hidden``."""
    part = _MarkdownPart(0, "", [])
    for number, (line, fence) in enumerate(_fenced(lines), 1):
        if fence is None and _CONFLICT.match(line):
            raise _unmerged(line, number)
        heading = _HEADING.match(line) if fence is None else None
        if fence is None and (comment := _COMMENT.match(line)):
            _note(comment, found, hidden)
            part.lines.append(_MarkdownLine(""))
        elif heading and len(heading[1]) <= 3:
            yield part
            part = _MarkdownPart(len(heading[1]), _heading_name(heading[2]), [], line)
        else:
            part.lines.append(_MarkdownLine(line, fence))
    yield part


def _unmerged(line: str, number: int) -> Invalid:
    return Invalid(
        f"line {number} is the marker of a merge conflict ({line[:_SHOWN].rstrip()}): decide what to keep, and remove "
        "the markers; put a backslash before one that is meant as text",
        line=number,
    )


def _note(comment: re.Match[str], found: dict[str, str], hidden: list[str]) -> None:
    thread, revision, ref = comment.groups()
    if ref is not None:
        hidden.append(_uncomment(ref.strip(_BLANK)))
    else:
        found.update(thread=_uncomment(thread.strip(_BLANK)), revision=revision)


def _heading_name(rest: str) -> str:
    return re.sub(r"(?:^|[ \t]+)#+$", "", rest.strip(_BLANK))


def _is_title(part: _MarkdownPart, thread: str) -> bool:
    return part.level == 1 and part.name.casefold() in ("handoff", _title(thread).casefold())


def _free_text(lines: list[_MarkdownLine], *, listed: bool = False) -> str:
    lines = _trimmed(lines)
    out = []
    for line, fence in lines:
        mark = None if fence is not None else _mark(line, listed)
        out.append(line if mark is None or line[mark : mark + 1] != "\\" else line[:mark] + line[mark + 1 :])
    return _unshield("\n".join(out), "13")


def _trimmed(lines: list[_MarkdownLine]) -> list[_MarkdownLine]:
    """Without blank lines at both ends: those are how a file looks, not what it says."""
    filled = [number for number, line in enumerate(lines) if line.fence is not None or line.text.strip(_BLANK)]
    return lines[filled[0] : filled[-1] + 1] if filled else []


# Lists


class _Entry:
    """An item while it is read: its first line, and those that follow it with whether they are indented with it."""

    def __init__(self, first: str, done: bool = False, ref: str | None = None) -> None:
        self.first, self.done, self.ref = first, done, ref
        self.more: list[tuple[_MarkdownLine, bool]] = []

    def add(self, line: _MarkdownLine) -> None:
        """Take a line as part of the item: less indented ones are continued text, code keeps its own indentation."""
        if line.fence is not None:
            self.more.append((line, line.fence >= 2))
        elif _width(line.text) >= 2 or not line.text.strip(_BLANK):
            self.more.append((line, True))
        else:
            self.more.append((_MarkdownLine(line.text.lstrip(_BLANK)), False))

    def text(self, base: int) -> str:
        kept = len(_trimmed([_MarkdownLine("."), *(line for line, _ in self.more)])) - 1
        more = self.more[:kept]
        widths = [_width(line.text) for line, indented in more if indented and line.text.strip(_BLANK)]
        cut = min([base + 4, *widths])
        lines = [line if not indented else line._replace(text=_unindented(line.text, cut)) for line, indented in more]
        return _unshield("\n".join([self.first, *map(_unslashed, lines)]), "13")


def _read_items(part: _MarkdownPart, kind: Kind) -> tuple[list[HandoffItem], list[_MarkdownLine]]:
    """The items of a part, and its lines that belong to none. Deeper headings may say what is done."""
    items: list[HandoffItem] = []
    free: list[_MarkdownLine] = []
    chunks = [part._replace(lines=[])]
    for line in part.lines:
        heading = _HEADING.match(line.text) if line.fence is None else None
        if heading and known(name := _heading_name(heading[2])) == kind:
            chunks.append(_MarkdownPart(0, name, []))
        else:
            chunks[-1].lines.append(line)
    for chunk in chunks:
        entries, base, above = _entries(chunk.lines, says_done(chunk.name))
        if not entries and kind == "steps" and _plain(chunk.name) not in _MIXED:
            items += [HandoffItem(text, says_done(chunk.name)) for text in _read_texts(chunk.lines)]
        else:
            items += [HandoffItem(entry.text(base), entry.done, entry.ref) for entry in entries]
            free += above
    return items, free


def _entries(lines: list[_MarkdownLine], default: bool) -> tuple[list[_Entry], int, list[_MarkdownLine]]:
    """The list in some lines, how far it is indented, and the lines above it."""
    entries: list[_Entry] = []
    base: int | None = None
    free: list[_MarkdownLine] = []
    for line in lines:
        width = _width(line.text)
        if line.fence is None and (base is None or width <= base + 1) and (begun := _begun(line.text, default)):
            base = width if base is None else base
            entries.append(begun)
        elif entries:
            entries[-1].add(line)
        else:
            free.append(line)
    return entries, base or 0, free


def says_done(name: str) -> bool:
    """Whether what is listed under a heading is done."""
    return re.search(r"\b(done|completed|finished|accomplished)\b", name, re.IGNORECASE) is not None


def _begun(line: str, default: bool) -> _Entry | None:
    """The step that a line begins, if it is a list line: with or without a box, with or without a ref."""
    bare = line.lstrip(_BLANK)
    marker = _MARKER.match(bare)
    if marker is None:
        return None
    rest, done, ref = bare[marker.end() :].strip(_BLANK), default, None
    if box := _BOX.match(rest):
        done, rest = box[1] != " ", rest[box.end() :].strip(_BLANK)
    if (start := _ref_start(rest)) is not None:
        ref, rest = _uncomment(rest[start + 4 : -3].strip(_BLANK)), rest[:start].rstrip(_BLANK)
    return _Entry(_unedged(rest, _ends_a_text), done, ref)


def _read_texts(lines: list[_MarkdownLine]) -> list[str]:
    """Each list line is a text, and each paragraph outside of the list."""
    entries: list[_Entry] = []
    base, gap = None, True
    for line in lines:
        width, blank = _width(line.text), not line.text.strip(_BLANK)
        marker = None if line.fence is not None else _MARKER.match(line.text.lstrip(_BLANK))
        if marker and (base is None or width <= base + 1):
            base = width if base is None else base
            first = line.text.lstrip(_BLANK)[marker.end() :].strip(_BLANK)
            entries.append(_Entry(_unedged(first, _ends_a_text)))
        elif not entries or (gap and not blank and width < 2 and line.fence is None):
            if not blank:
                entries.append(_Entry(line.text.strip(_BLANK)))
        else:
            entries[-1].add(line)
        gap = blank and line.fence is None
    return [entry.text(base or 0) for entry in entries]


def _width(line: str) -> int:
    """How far a line is indented, a tab counting as four."""
    return len(line[: len(line) - len(line.lstrip(_BLANK))].replace("\t", "    "))


def _unindented(line: str, cut: int) -> str:
    taken = width = 0
    while width < cut and taken < len(line) and line[taken] in _BLANK:
        width += 4 if line[taken] == "\t" else 1
        taken += 1
    return line[taken:]


def _unslashed(line: _MarkdownLine) -> str:
    """The line of an item as it was meant: one that is only backslashes and blanks has one too many."""
    text, fence = line
    return text[1:] if fence is None and text.startswith("\\") and not text.lstrip("\\").strip(_BLANK) else text


# What is structure


def _fenced(lines: list[str]) -> Iterator[_MarkdownLine]:
    """Tell lines inside fenced code from others. A fence that is never closed is an ordinary line."""
    number = 0
    hopeless: dict[str, int] = {}  # the shortest fence of each kind that nothing closes any more: looked for once
    while number < len(lines):
        end = _fence_end(lines, number, hopeless)
        if end is None:
            yield _MarkdownLine(lines[number])
            number += 1
            continue
        width = _width(lines[number])
        yield from (_MarkdownLine(line, width) for line in lines[number : end + 1])
        number = end + 1


def _fence_end(lines: list[str], number: int, hopeless: dict[str, int]) -> int | None:
    bare = lines[number].lstrip(" ")
    fence = _FENCE.match(bare)
    if fence is None or len(lines[number]) - len(bare) > 3:
        return None
    char, length = bare[0], len(fence[1] or fence[2])
    if length >= hopeless.get(char, length + 1):
        return None
    closing = re.compile(rf" {{0,3}}{char}{{{length},}}[ \t]*$")
    for end in range(number + 1, len(lines)):
        if closing.match(lines[end]):
            return end
    hopeless[char] = length
    return None


def _mark(line: str, listed: bool) -> int | None:
    """Where a line of text keeps its backslashes, if without them it would be structure."""
    if not line.strip(_BLANK):
        return 0
    bare = line.lstrip(_BLANK)
    indent = line[: len(line) - len(bare)]
    rest = bare.lstrip("\\")
    heading = _HEADING.match(rest)
    if not indent and (not rest.strip(_BLANK) or _COMMENT.match(rest)):
        return 0
    if not indent and _CONFLICT.match(rest):
        return 0
    if not indent and heading and (listed or len(heading[1]) <= 2):
        return 0
    fence = "\t" not in indent and len(indent) <= 3 and _FENCE.match(rest)
    return len(indent) if fence or (listed and _MARKER.match(rest)) else None


# Text on one line


def _title(thread: str) -> str:
    return f"Handoff: {_edges(_shield(thread, '10|13'), _ends_a_name)}"


def _name(text: str, level: int) -> str:
    """A heading's name on one line, that is read back as this name and not as a known part."""
    line = _edges(_shield(text, "10|13"), _ends_a_name)
    return "\\" + line if known(line.lstrip("\\")) else line


def _unname(line: str, level: int) -> str:
    if line.startswith("\\") and known(line.lstrip("\\")):
        line = line[1:]
    return _unshield(_unedged(line, _ends_a_name), "10|13")


def _comment_text(text: str) -> str:
    """Text inside an html comment, which must hold no line break, no comment and no double dash."""
    shielded = _shield(text, "10|13|45|60|62", "\n\r<>").replace("--", "-&#45;")
    return _edges(shielded, _ends_a_name)


def _uncomment(text: str) -> str:
    return _unshield(_unedged(text, _ends_a_name), "10|13|45|60|62")


def _ends_a_name(text: str) -> bool:
    return text[-1:] in (" ", "\t", "#")


def _ends_a_text(text: str) -> bool:
    return text[-1:] in (" ", "\t") or _ref_start(text) is not None


def _ref_start(text: str) -> int | None:
    """Where the comment begins that names the step of a run, when the text ends in one."""
    start = text.rfind("<!--")
    inner = text[start + 4 : -3]
    return start if start >= 0 and text.endswith("-->") and "/" in inner and "-->" not in inner else None


def _edges(text: str, ends: Callable[[str], bool]) -> str:
    """Protect blanks and other things at both ends that the reader would take away."""
    if ends(text.rstrip("\\")):
        text += "\\"
    return "\\" + text if text.lstrip("\\")[:1] in (" ", "\t") else text


def _unedged(text: str, ends: Callable[[str], bool]) -> str:
    if text.startswith("\\") and text.lstrip("\\")[:1] in (" ", "\t"):
        text = text[1:]
    return text[:-1] if text.endswith("\\") and ends(text.rstrip("\\")) else text


def _shield(text: str, codes: str, chars: str | None = None) -> str:
    """Write characters as html entities, and add one ``amp;`` to what looks like such an entity already."""
    text = re.sub(rf"&(?=(?:amp;)*#(?:{codes});)", "&amp;", text)
    for char in chars if chars is not None else [chr(int(code)) for code in codes.split("|")]:
        text = text.replace(char, f"&#{ord(char)};")
    return text


def _unshield(text: str, codes: str) -> str:
    def back(found: re.Match[str]) -> str:
        return chr(int(found[1])) if found[1] else "&"

    return re.sub(rf"&(?:#({codes});|amp;(?=(?:amp;)*#(?:{codes});))", back, text)
