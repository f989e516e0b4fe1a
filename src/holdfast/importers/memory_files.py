"""A folder of notes that an agent keeps for itself: MEMORY.md, USER.md, SOUL.md and a file for each day.

What is listed, and each paragraph, becomes a memory with the headings above it as tags: what MEMORY.md and USER.md say
is so (semantic), what the file of a day says happened that day (episodic), SOUL.md and its like say how to act
(procedural). The files themselves are kept too, in the folder ``imported``, where that is wanted; recall then finds
both. A note is named by its file and its words: an edited one is imported beside the old one. Deliberately absent:
judging what a note means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from holdfast import Origin
from holdfast.errors import Invalid
from holdfast.extension import MAX_ID_BYTES, Remembering
from holdfast.importers.files import Original
from holdfast.importers.parts import ImportedFiles, ImportedMemories
from holdfast.importers.source import ImportOptions, ImportSource, RefusedItem, fingerprint, tagged

FOLDER = "imported"
_KINDS = {
    "MEMORY.md": "semantic", "USER.md": "semantic", "SOUL.md": "procedural", "IDENTITY.md": "procedural",
    "AGENTS.md": "procedural", "TOOLS.md": "procedural", "HEARTBEAT.md": "procedural", "CLAUDE.md": "procedural",
}  # fmt: skip
_TELLING = ("MEMORY.md", "USER.md", "SOUL.md", "IDENTITY.md")  # the others are found in any repository
_DAYS = "memory"
_DAY = re.compile(r"(\d{4})-(\d{2})-(\d{2})\.md")
_DAY_IN_FOLDER = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:[-_ ].*)?\.(?:md|markdown)", re.IGNORECASE)
_PAGE = re.compile(r".+\.(?:md|markdown)", re.IGNORECASE)
_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*?)\s*#*\s*")
_BULLET = re.compile(r"(\s*)(?:[-*+]|\d{1,9}[.)])\s+(\S.*)")
_FENCE = re.compile(r"\s*(```+|~~~+)")
_RULE = re.compile(r"\s*(?:([-*_])\s*)(?:\1\s*){2,}")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_FRONT = re.compile(r"\A---[ \t]*\n.*?\n---[ \t]*(?:\n|\Z)", re.DOTALL)


class MemoryFiles(ImportSource):
    """Such a folder, or one file of it."""

    kind = "memory-files"
    title = "memory files"

    def __init__(self, place: Path, wanted: ImportOptions) -> None:
        self.place, self._wanted = str(place), wanted
        pages = _pages(place) if place.is_dir() else {place.name: place}
        if not pages:
            raise Invalid(f"{place} has no MEMORY.md, USER.md, SOUL.md or memory/YYYY-MM-DD.md", path=str(place))
        self._originals = {name: Original(path) for name, path in sorted(pages.items())}
        drafts = [draft for name, original in self._originals.items() for draft in _drafts(name, original.text)]
        self._drafts = tagged(drafts, self.tag())
        self._files = {name: original.data.decode() for name, original in self._originals.items()}
        self.counts = {"files": len(self._files), "notes": len(drafts)}
        self._files = self._files if wanted.originals else {}
        self.expected = len(self._files) + len(self._drafts)
        if repeated := len(drafts) - len(self._drafts):
            self.notes = (f"{repeated:,} notes occur twice under one heading, and are imported once",)

    @staticmethod
    def fits(place: Path) -> bool:
        """Whether this is such a folder, or a file with such a name."""
        if not place.is_dir():
            return _known(place.name)
        return any(_day(name) or name in _TELLING for name in _pages(place))

    @staticmethod
    def is_page(place: Path) -> bool:
        """Whether this is a page, which may be read as notes when the caller says so."""
        return _PAGE.fullmatch(place.name) is not None

    def parts(self) -> Iterator[ImportedMemories | ImportedFiles | RefusedItem]:
        if self._files:
            yield ImportedFiles(FOLDER, self._files, self._wanted.user, self._wanted.agent, (self.tag(),))
        yield ImportedMemories(self._drafts, self._wanted.user, self._wanted.agent)

    def settle(self) -> None:
        for original in self._originals.values():
            original.settle()


def _pages(folder: Path) -> dict[str, Path]:
    """The pages that mean something: those of the folder itself whose names are known, letter by letter, because other
    pages have names like them; and every page in its ``memory``."""
    pages = {path.name: path for path in folder.iterdir() if path.is_file() and _known(path.name)}
    days = next((path for path in folder.iterdir() if path.is_dir() and path.name == _DAYS), None)
    if days is not None:
        for path in days.rglob("*"):
            if path.is_file() and _PAGE.fullmatch(path.name):
                pages[f"{_DAYS}/{path.relative_to(days).as_posix()}"] = path
    return pages


def _known(name: str) -> bool:
    return name in _KINDS or _day(name) is not None


def _drafts(name: str, text: str) -> Iterator[Remembering]:
    day = _day(name)
    kind = "episodic" if day else _KINDS.get(name.rsplit("/", 1)[-1], "semantic")
    for note in _notes(text):
        yield Remembering(
            note.text, kind, tags=note.headings, origin=Origin(channel=name), valid_from=day,
            once=f"notes:{fingerprint(name, *note.headings, note.text)}",
        )  # fmt: skip


def _day(name: str) -> datetime | None:
    pattern = _DAY_IN_FOLDER if name.startswith(f"{_DAYS}/") else _DAY
    found = pattern.fullmatch(name.rsplit("/", 1)[-1])
    try:
        return datetime(int(found[1]), int(found[2]), int(found[3]), tzinfo=UTC) if found else None
    except ValueError:  # such as the 31st of June: a name, then, and no day
        return None


class Note(NamedTuple):
    """One thing that a page says, and the headings it stands under."""

    text: str
    headings: tuple[str, ...]


def _notes(text: str) -> Iterator[Note]:
    """What a page says, piece by piece: a listed item with all that is indented below it, or a paragraph."""
    headings, lines, fence = dict[int, str](), list[str](), ""
    for line in [*_body(text).split("\n"), ""]:
        mark = _FENCE.match(line)
        if fence or mark:
            if not fence and lines and not (_listed(lines) and _indent(line) > _indent(lines[0])):
                yield from _note(lines, headings)
                lines = []
            lines.append(line)
            fence = "" if fence and mark and mark[1].startswith(fence) else fence or (mark[1] if mark else "")
            continue
        heading, bullet = _HEADING.fullmatch(line), _BULLET.fullmatch(line)
        begins = bullet is not None and not (lines and _listed(lines) and len(bullet[1]) > _indent(lines[0]))
        if not line.strip() or heading or begins or _RULE.fullmatch(line):
            yield from _note(lines, headings)
            lines = []
        if heading:
            headings = {level: title for level, title in headings.items() if level < len(heading[1])}
            headings[len(heading[1])] = _short(heading[2])
        elif line.strip() and not _RULE.fullmatch(line):
            lines.append(line)
    yield from _note(lines, headings)  # a fence that is never closed goes to the end


def _body(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _COMMENT.sub("", _FRONT.sub("", text))


def _note(lines: list[str], headings: dict[int, str]) -> Iterator[Note]:
    if not lines:
        return
    first = _BULLET.fullmatch(lines[0])
    text = "\n".join([first[2] if first else lines[0], *lines[1:]]).strip()
    if text:
        yield Note(text, tuple(title for title in headings.values() if title))


def _listed(lines: list[str]) -> bool:
    return _BULLET.fullmatch(lines[0]) is not None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _short(title: str) -> str:
    """A heading as a tag, which has a limit."""
    title = title.replace("\x00", "").strip()
    while len(title.encode("utf-8", "replace")) > MAX_ID_BYTES:
        title = title[: len(title) * 9 // 10]
    return title
