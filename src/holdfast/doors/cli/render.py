"""Text on a screen or in a pipe: the same words, coloured and fitted on a terminal, plain and whole elsewhere.

What a store holds was written by users and models, so nothing of it may steer a terminal: control characters and
marks that turn the direction of text are shown, never sent. Colour is off where ``NO_COLOR`` is set. Deliberately
absent: what a thread or a state is; callers bring words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, NoReturn, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

Part = str | tuple[str, str]
Row = Sequence[Part]
Advance = Callable[[str, int, int], None]

_STYLES = {
    "title": "bold",
    "name": "cyan",
    "person": "magenta",
    "quiet": "dim",
    "good": "green",
    "gone": "red",
    "bad": "bold red",
    "warn": "yellow",
}
_GAP = 2
_NARROWEST = 6
_KEPT = "\n\t"
_STEERING = [*range(0x20), 0x7F, *range(0x80, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_SHOWN = {code: repr(chr(code))[1:-1] for code in _STEERING if chr(code) not in _KEPT}
_ON_ONE_LINE = {**_SHOWN, ord("\n"): "\\n", ord("\t"): "\\t"}


def visible(text: str, *, one_line: bool = False) -> str:
    """Return text in which every character that could steer a terminal is spelled out."""
    return text.translate(_ON_ONE_LINE if one_line else _SHOWN)


class Column(NamedTuple):
    """One column of a table. ``fits`` lets it give way, ending in an ellipsis, where a terminal is narrow."""

    title: str
    style: str = ""
    right: bool = False
    fits: bool = False


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError  # the desk ends quietly, with a code of its own


class Screen:
    """One stream of output. ``terminal`` says whether a person is likely to look at it."""

    def __init__(self, file: TextIO, *, width: int | None = None, terminal: bool | None = None) -> None:
        self._file = file
        self.terminal = file.isatty() if terminal is None else terminal
        bare = not self.terminal or Console(file=file).no_color
        self.console = _Console(
            file=file, theme=Theme(_STYLES), highlight=False, markup=False, emoji=False, width=width,
            force_terminal=self.terminal, color_system=None if bare else "auto",
        )  # fmt: skip

    @property
    def width(self) -> int:
        return self.console.width

    def line(self, *parts: Part, indent: int = 0) -> None:
        """Print one line; on a terminal a long one goes on under its own beginning."""
        text = assemble(*parts)
        if not self.terminal:
            space = " " * indent
            self._put(space + text.plain.replace("\n", f"\n{space}"))
            return
        self.console.print(Padding(text, (0, 0, 0, indent)))

    def cut(self, *parts: Part, indent: int = 0) -> None:
        """Print one line; on a terminal what does not fit is left off."""
        text = assemble(*parts)
        text.pad_left(indent)
        if self.terminal:
            text.truncate(self.width, overflow="ellipsis")
        self.console.print(text, soft_wrap=True)

    def blank(self) -> None:
        self._put("")

    def _put(self, line: str) -> None:
        """Print a line as it is: quicker than a console, which would measure it, and exact."""
        self._file.write(line.rstrip() + "\n")

    def hanging(self, left: Sequence[Part], widths: Sequence[int], *text: Part, indent: int = 0) -> None:
        """Print narrow columns and then text, which on a terminal wraps beside them and elsewhere stays on one line."""
        cells = [assemble(part) for part in left]
        if not self.terminal:
            padded = [_pad(cell.plain, width) for cell, width in zip(cells, widths, strict=True)]
            self._put(" " * indent + "  ".join([*padded, assemble(*text, one_line=True).plain]))
            return
        grid = Table.grid(padding=(0, 2, 0, 0))
        for width in widths:
            grid.add_column(width=width, no_wrap=True, overflow="ellipsis")
        grid.add_column(overflow="fold")
        grid.add_row(*cells, assemble(*text))
        self.console.print(Padding(grid, (0, 0, 0, indent)))

    def table(self, columns: Sequence[Column], rows: Sequence[Row], indent: int = 0) -> None:
        """Print rows under a heading. Away from a terminal nothing is cut, and an empty cell is a dash."""
        if self.terminal:
            self.console.print(Padding(_grid(columns, rows, self.width - indent), (0, 0, 0, indent), expand=False))
            return
        cells = [[column.title.upper() for column in columns]]
        cells += [[assemble(part, one_line=True).plain or "-" for part in row] for row in rows]
        widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
        for row in cells:
            padded = [
                _pad(cell, width, right=column.right) for cell, width, column in zip(row, widths, columns, strict=True)
            ]
            self._put(" " * indent + "  ".join(padded))

    def outline(self, value: Any, indent: int = 0) -> None:
        """Print plain data as an indented outline."""
        for depth, label, text in outline(value):
            self.line((label, "name"), " " if label and text else "", text, indent=indent + 2 * depth)

    def markdown(self, text: str) -> None:
        """Print markdown: as it is, or on a terminal as it is meant. A link is text, never something to click."""
        if not self.terminal:
            self._put(visible(text))
            return
        from rich.markdown import Markdown  # noqa: PLC0415 - one command needs it, and it is large

        self.console.print(Markdown(visible(text), hyperlinks=False))

    def verbatim(self, *parts: Part, indent: int = 0) -> None:
        """Print one line that people copy: nothing is put in between, however narrow the terminal is."""
        text = assemble(*parts)
        text.pad_left(indent)
        self.console.print(text, soft_wrap=True)

    @contextmanager
    def progress(self) -> Iterator[Advance | None]:
        """Give a function that moves a bar (stage, done, total or 0); None where there is no terminal."""
        if not self.terminal:
            yield None
            return
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415 - few show a bar

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, console=self.console, transient=True) as bar:
            task = bar.add_task("", total=None)

            def advance(stage: str, done: int, total: int) -> None:
                bar.update(task, description=stage, completed=done, total=total or None)

            yield advance


def assemble(*parts: Part, one_line: bool = False) -> Text:
    """Put styled parts together, made safe."""
    text = Text()
    for part in parts:
        words, style = part if isinstance(part, tuple) else (part, "")
        text.append(visible(words, one_line=one_line), style or None)
    return text


def outline(value: Any, depth: int = 0) -> Iterator[tuple[int, str, str]]:
    """Yield (depth, label, text) for each line of an outline; nested values come below their label."""
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _labelled(depth, f"{name}:", item)
    elif isinstance(value, list) and value:
        for item in value:
            yield from _labelled(depth, "-", item)
    else:
        yield depth, "", scalar(value)


def _labelled(depth: int, label: str, item: Any) -> Iterator[tuple[int, str, str]]:
    if isinstance(item, dict | list) and item:
        yield depth, label, ""
        yield from outline(item, depth + 1)
    else:
        yield depth, label, scalar(item)


def scalar(value: Any) -> str:
    """Return a value that has no parts as text."""
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


def _grid(columns: Sequence[Column], rows: Sequence[Row], room: int) -> Table:
    cells = [[assemble(part, one_line=True) for part in row] for row in rows]
    heads = [assemble(column.title) for column in columns]
    natural = [max(cell.cell_len for cell in column) for column in zip(heads, *cells, strict=True)]
    grid = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="quiet")
    for column, width in zip(columns, _fitting(natural, columns, room), strict=True):
        side: Literal["left", "right"] = "right" if column.right else "left"
        grid.add_column(column.title, style=column.style, justify=side, width=width, no_wrap=True, overflow="ellipsis")
    for row in cells:
        grid.add_row(*row)
    return grid


def _fitting(widths: list[int], columns: Sequence[Column], room: int) -> list[int]:
    """Narrow the columns that may give way, the widest first, until the row fits or they are too narrow to read."""
    widths = list(widths)
    give = [place for place, column in enumerate(columns) if column.fits]
    while give and sum(widths) + _GAP * len(widths) > room:
        widest = max(give, key=lambda place: widths[place])
        if widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
    return widths


def _pad(cell: str, width: int, *, right: bool = False) -> str:
    space = " " * (width - cell_len(cell))
    return space + cell if right else cell + space
