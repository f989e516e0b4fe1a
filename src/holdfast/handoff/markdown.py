r"""A handoff as markdown that people know, and back, without loss in either direction.

This is a small line-based reader and not a markdown library: it must give back exactly what was written, also after a
person edited it, and it needs to know only headings of the first two levels, lists in two sections, and fenced code (in
which nothing is a heading). Everything else is text, kept as it is. Two promises, both proved by generated cases:
``parse(render(document))`` is the document, whatever text is in it; and no line that a person wrote is lost by
``render(parse(text))``.

Where text would be taken for structure, one backslash is put in front of it, and one more where there are backslashes
already; the reader takes one away in exactly these places. So ``C:\new`` stays what it is everywhere, and ``## x``
inside a goal is written ``\## x``, which every viewer shows as it was meant. A carriage return inside a text is written
``&#13;``. Markers of a merge conflict count as structure too: a text with them holds two versions, and is refused.

Deliberately absent: headings underlined with === or ---, html (a comment with a heading inside is text and a heading),
files, revisions, and the meaning of a ref.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from holdfast.errors import Invalid
from holdfast.handoff.document import KINDS, HandoffDocument, HandoffItem, HandoffSection, Kind, Place

MAX_BYTES = 1_000_000
_SHOWN = 40
_BLANK = " \t"
_HEADINGS: dict[Kind, str] = {
    "goal": "Goal",
    "steps": "Steps",
    "blockers": "Blockers",
    "next_action": "Next action",
    "context": "Context",
}
_NAMES: dict[Kind, str] = {
    "goal": "goal|goals|objective|objectives|task|the goal",
    "steps": "steps|step|progress|tasks|todo|todos|to do|to-do|remaining|remaining steps|open|open steps|steps left"
    "|done|done so far|completed|completed steps|completed work|completed tasks|finished|what was done",
    "blockers": "blockers|blocker|blocked|blocked by|blocked on",
    "next_action": "next|next step|next steps|next action|next actions|up next|what is next|what's next",
    "context": "context|notes|note|additional context|further context",
}
_KNOWN: dict[str, Kind] = {name: kind for kind, names in _NAMES.items() for name in names.split("|")}
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
        out.append(f"## {_HEADINGS[kind]}")
        if kind == "steps":
            _put(out, _free_lines(document.remarks, listed=True), list(_step_lines(document.steps)))
        elif kind == "blockers":
            _put(out, [line for text in document.blockers for line in _item_lines("-", text)])
        else:
            _put(out, _free_lines(getattr(document, kind)))
        if out[-1]:
            out.append("")
        _put_sections(out, document, kind)
    out += [f"<!-- holdfast: hidden {_comment_text(ref)} -->" for ref in document.hidden]
    out.append(f"<!-- holdfast: thread {_comment_text(thread)}, revision {revision} -->")
    return "\n".join(out) + "\n"


def _put(out: list[str], *blocks: list[str]) -> None:
    for block in blocks:
        if block:
            out += [*block, ""]


def _put_sections(out: list[str], document: HandoffDocument, after: Place) -> None:
    for section in document.extra:
        if section.after == after:
            out.append(f"{'#' * section.level} {_name(section.heading, after)}".rstrip(_BLANK))
            lines = _free_lines(section.text)
            out += [*lines, ""]


def _step_lines(steps: tuple[HandoffItem, ...]) -> Iterator[str]:
    for number, item in enumerate(steps, 1):
        ref = None if item.ref is None else f"<!-- {_comment_text(item.ref)} -->"
        yield from _item_lines(f"{number}. [{'x' if item.done else ' '}]", item.text, ref)


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


class _Pages:
    """What was read so far. The first text of a kind fills its place; all lists of a kind are joined."""

    def __init__(self) -> None:
        self.opening: list[str] = []
        self.texts: dict[str, str] = {}
        self.steps: list[HandoffItem] = []
        self.remarks: list[str] = []
        self.blockers: list[str] = []
        self.extra: list[HandoffSection] = []
        self.place: Place = ""

    def document(self, hidden: tuple[str, ...]) -> HandoffDocument:
        return HandoffDocument(
            self.texts.get("goal", ""), tuple(self.steps), tuple(self.blockers), self.texts.get("next_action", ""),
            self.texts.get("context", ""), "\n\n".join(self.opening), "\n\n".join(self.remarks),
            tuple(self.extra), hidden,
        )  # fmt: skip

    def add(self, part: _MarkdownPart, kind: Kind | None) -> None:
        if kind == "steps":
            _read_steps(part, self)
        elif kind == "blockers":
            self.blockers += _read_blockers(part.lines)
        elif kind is not None and kind not in self.texts:
            self.texts[kind] = _free_text(part.lines)
        else:
            after: Place = self.place if kind is None else kind
            name, text = _unname(part.name), _free_text(part.lines)
            self.extra.append(HandoffSection(name, text, after, 1 if part.level == 1 else 2))
        self.place = self.place if kind is None else kind

    def open(self, lines: list[_MarkdownLine]) -> None:
        if text := _free_text(lines):
            self.opening.append(text)


def parse(text: str, thread: str = "") -> Parsed:
    """Read a text that ``render`` or a person wrote. ``thread`` is whose title is expected on top.

    Nearly every text can be read: one that is not text at all, or too long, or in the middle of a merge, is
    ``Invalid``.
    """
    lines = _split(text)
    found: dict[str, str] = {}
    hidden: list[str] = []
    parts = list(_parts(lines, found, hidden))
    pages = _Pages()
    pages.open(parts[0].lines)
    rest = parts[1:]
    if rest and _is_title(rest[0], thread):
        pages.open(rest[0].lines)
        rest = rest[1:]
    level = 2 if any(part.level == 2 and known(part.name) for part in rest) else 1
    for part in rest:
        pages.add(part, known(part.name) if part.level >= level else None)
    revision = int(found["revision"]) if "revision" in found else None
    return Parsed(pages.document(tuple(hidden)), found.get("thread"), revision)


def known(name: str) -> Kind | None:
    """Which part of a handoff a heading means, as people word it."""
    plain = re.sub(r"[ \t]+", " ", name.strip(" \t*_`:")).casefold()
    return _KNOWN.get(plain)


def _split(text: str) -> list[str]:
    if (size := len(text.encode(errors="surrogatepass"))) > MAX_BYTES:
        raise Invalid(f"a handoff is at most {MAX_BYTES:,} bytes long; this has {size:,}", size_bytes=size)
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
        elif heading and len(heading[1]) <= 2:
            yield part
            part = _MarkdownPart(len(heading[1]), _heading_name(heading[2]), [])
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


def _read_steps(part: _MarkdownPart, pages: _Pages) -> None:
    default = _says_done(part.name)
    entry: _Entry | None = None
    base: int | None = None
    free: list[_MarkdownLine] = []
    entries: list[_Entry] = []
    for line in part.lines:
        heading = _HEADING.match(line.text) if line.fence is None else None
        width = _width(line.text)
        if heading and known(_heading_name(heading[2])) == "steps":
            default, entry = _says_done(_heading_name(heading[2])), None
        elif line.fence is None and (base is None or width <= base + 1) and (begun := _begun(line.text, default)):
            entry, base = begun, width if base is None else base
            entries.append(begun)
        elif entry is None:
            free.append(line)
        else:
            entry.add(line)
    pages.steps += [HandoffItem(entry.text(base or 0), entry.done, entry.ref) for entry in entries]
    if remarks := _free_text(free, listed=True):
        pages.remarks.append(remarks)


def _says_done(name: str) -> bool:
    return re.search(r"\b(done|completed|finished)\b", name, re.IGNORECASE) is not None


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


def _read_blockers(lines: list[_MarkdownLine]) -> list[str]:
    """Each list line is a blocker, and each paragraph outside of the list."""
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


def _name(text: str, after: Place = "") -> str:
    """A heading's name on one line, that is read back as this name and not as a known part."""
    line = _edges(_shield(text, "10|13"), _ends_a_name)
    kind = known(line.lstrip("\\"))
    if kind is None or (line[0] != "\\" and kind == after and kind not in ("steps", "blockers")):
        return line  # a second section of a kind, behind the first one, is told apart by its place
    return "\\" + line


def _unname(line: str) -> str:
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
