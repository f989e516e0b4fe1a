"""The memory tool of Anthropic's SDK, whose files are kept in a folder.

A model reads and writes files under ``/memories``; here each is a file of a folder, so that every version is kept, what
was deleted can be brought back, and two concurrent edits lose nothing. What a command answers, and what
it refuses in which words, is to the letter what the tool that comes with the SDK says, because models know it.
Directories are implied by the paths of files; one that was left empty is kept as a file whose path ends with a slash.
Deliberately absent: names of our own for what a model may do, and a second version of the rules for async callers.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from holdfast import FileDelete, FileWrite, Folder
from holdfast.errors import Conflict, Invalid, NotFound
from holdfast.extension import OpenedStore, StoreOrAddress, compare_and_set, encode, in_thread, path_of, to_micros
from holdfast.types import File

try:
    from anthropic.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
except ImportError as error:
    raise ImportError("this needs Anthropic's SDK: pip install 'holdfast[anthropic]'") from error

if TYPE_CHECKING:
    from anthropic.types.beta import BetaCacheControlEphemeralParam

_NAME = "memories"
_ROOT = f"/{_NAME}"
_MOST_LINES = 999_999
_DIRECTORY_BYTES = 4096  # a directory has no size here; this is what most file systems say
_DEPTH = 2
_AROUND = 2  # lines shown before and after a replacement


class HoldfastMemoryTool(BetaAbstractMemoryTool):
    """The memory tool on a folder of a store; any number of processes may use the same one at once.

    ``store`` is an open store or the address of one; only what was opened here is closed by ``close``. ``user`` and
    ``agent`` say whose memories they are.
    """

    def __init__(
        self,
        store: StoreOrAddress,
        *,
        user: str | None = None,
        agent: str | None = None,
        folder: str = _NAME,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._shelf = _Shelf(store, user, agent, folder)

    # What a model may do

    def view(self, command: Any) -> str:
        """Show a file with line numbers, or what is in a directory."""
        return self._shelf.told(_Shelf.view, command)

    def create(self, command: Any) -> str:
        """Write a file that is not there yet."""
        return self._shelf.told(_Shelf.create, command)

    def str_replace(self, command: Any) -> str:
        """Replace a text that occurs once in a file."""
        return self._shelf.told(_Shelf.str_replace, command)

    def insert(self, command: Any) -> str:
        """Put lines into a file."""
        return self._shelf.told(_Shelf.insert, command)

    def delete(self, command: Any) -> str:
        """Delete a file or a directory; ``restore`` brings it back."""
        return self._shelf.told(_Shelf.delete, command)

    def rename(self, command: Any) -> str:
        """Give a file or a directory another path."""
        return self._shelf.told(_Shelf.rename, command)

    # What only its owner may do

    def history(self, path: str) -> list[File]:
        """Every version of a file, oldest first; one that is ``deleted`` ended it (a rename ends it too)."""
        return self._shelf.history(path)

    def restore(self, path: str, *, version: int | None = None) -> list[str]:
        """Bring back what the last deletion at a path, or under it, took away; return the paths.

        With ``version`` a file gets what it held then. Either way it is one more version, and nothing is lost.
        """
        return self._shelf.restore(path, version)

    def erase(self, path: str = _ROOT) -> int:
        """Remove everything at a path and under it for good, with its history; return how many files went."""
        return self._shelf.erase(path)

    def clear_all_memory(self) -> str:
        """Erase everything: no version of any file is left."""
        return self._shelf.clear()

    def close(self) -> None:
        """Close the store, if this tool opened it."""
        self._shelf.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncHoldfastMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for ``AsyncAnthropic``, on an asyncio loop. A command that was begun runs to its end if cancelled."""

    def __init__(
        self,
        store: StoreOrAddress,
        *,
        user: str | None = None,
        agent: str | None = None,
        folder: str = _NAME,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._shelf = _Shelf(store, user, agent, folder)

    # What a model may do

    async def view(self, command: Any) -> str:
        """Show a file with line numbers, or what is in a directory."""
        return await in_thread(self._shelf.told, _Shelf.view, command)

    async def create(self, command: Any) -> str:
        """Write a file that is not there yet."""
        return await in_thread(self._shelf.told, _Shelf.create, command)

    async def str_replace(self, command: Any) -> str:
        """Replace a text that occurs once in a file."""
        return await in_thread(self._shelf.told, _Shelf.str_replace, command)

    async def insert(self, command: Any) -> str:
        """Put lines into a file."""
        return await in_thread(self._shelf.told, _Shelf.insert, command)

    async def delete(self, command: Any) -> str:
        """Delete a file or a directory; ``restore`` brings it back."""
        return await in_thread(self._shelf.told, _Shelf.delete, command)

    async def rename(self, command: Any) -> str:
        """Give a file or a directory another path."""
        return await in_thread(self._shelf.told, _Shelf.rename, command)

    # What only its owner may do

    async def history(self, path: str) -> list[File]:
        """Every version of a file, oldest first; one that is ``deleted`` ended it (a rename ends it too)."""
        return await in_thread(self._shelf.history, path)

    async def restore(self, path: str, *, version: int | None = None) -> list[str]:
        """Bring back what the last deletion at a path, or under it, took away; return the paths.

        With ``version`` a file gets what it held then. Either way it is one more version, and nothing is lost.
        """
        return await in_thread(self._shelf.restore, path, version)

    async def erase(self, path: str = _ROOT) -> int:
        """Remove everything at a path and under it for good, with its history; return how many files went."""
        return await in_thread(self._shelf.erase, path)

    async def clear_all_memory(self) -> str:
        """Erase everything: no version of any file is left."""
        return await in_thread(self._shelf.clear)

    async def close(self) -> None:
        """Close the store, if this tool opened it."""
        await in_thread(self._shelf.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class _Shelf:
    """What the commands do and answer, for both tools. A refusal is an error of ours with the words a model knows."""

    def __init__(self, store: StoreOrAddress, user: str | None, agent: str | None, folder: str) -> None:
        self._held = OpenedStore(store)
        with self._held.begun() as begun:
            self._folder: Folder = begun.folder(folder, user=user, agent=agent)

    def close(self) -> None:
        self._held.close()

    def told(self, work: Callable[[_Shelf, Any], str], command: Any) -> str:
        """Carry out a command. What a model can do something about comes back to it as a tool's own error."""
        try:
            return work(self, command)
        except (Invalid, NotFound, Conflict) as error:
            raise ToolError(str(error)) from error

    # The commands

    def view(self, command: Any) -> str:
        path = _text(command, "path")
        place = _place(path)
        file = self._folder.find(place) if place else None
        if file is not None:
            return _shown(path, _held(file, path), getattr(command, "view_range", None))
        below = self._folder.files(_under(place))
        if place and not below:
            raise _missing(path)
        return _listed(path, place, below)

    def create(self, command: Any) -> str:
        path, text = _text(command, "path"), _text(command, "file_text")
        place, taken = _place(path), Conflict(f"File {path} already exists")
        if self._exists(place):
            raise taken
        self._refuse_inside_file(place, path)
        try:
            self._folder.write(place, text, expect=0)
        except Conflict as error:
            raise taken from error
        return f"File created successfully at: {path}"

    def str_replace(self, command: Any) -> str:
        path, old, new = (_text(command, name) for name in ("path", "old_str", "new_str"))
        return self._edit(path, lambda text: _replaced(text, old, new, path))

    def insert(self, command: Any) -> str:
        path, lines = _text(command, "path"), _text(command, "insert_text")
        at = getattr(command, "insert_line", None)
        if not isinstance(at, int):
            raise Invalid("`insert_line` must be a whole number")
        return self._edit(path, lambda text: (_inserted(text, at, lines), f"The file {path} has been edited."))

    def delete(self, command: Any) -> str:
        path = _text(command, "path")
        place = _place(path)
        if not place:
            raise Invalid(f"Cannot delete the {_ROOT} directory itself")

        def changes() -> list[FileWrite | FileDelete]:
            files = self._found(place, path)
            return [*(FileDelete(file.path, file.version) for file in files), *self._left_empty(place)]

        self._commit(changes, path)
        return f"Successfully deleted {path}"

    def rename(self, command: Any) -> str:
        path, to = _text(command, "old_path"), _text(command, "new_path")
        place, target = _place(path), _place(to)
        if not place:
            raise Invalid(f"Cannot rename the {_ROOT} directory itself")

        def changes() -> list[FileWrite | FileDelete]:
            if self._exists(target):
                raise Conflict(f"The destination {to} already exists")
            files = self._found(place, path)
            if target.startswith(f"{place}/"):
                raise Invalid(f"The path {path} cannot be moved into itself")
            self._refuse_inside_file(target, to)
            gone = [FileDelete(file.path, file.version) for file in files]
            return [*gone, *(self._moved(file, place, target) for file in files), *self._left_empty(place, target)]

        self._commit(changes, path)
        return f"Successfully renamed {path} to {to}"

    # What only the owner may do

    def history(self, path: str) -> list[File]:
        place = _place(path)
        return self._folder.history(place) if place else []

    def restore(self, path: str, version: int | None) -> list[str]:
        place = _place(path)
        if version is not None:
            held = self._folder.read(place, version=version)
            self._refuse_in_the_way([place])
            self._folder.write(place, held.content, tags=held.tags)
            return [_outside(place)]
        ever = filter(None, map(self._folder.history, self._ever(place)))  # what is erased meanwhile has none
        ended = [history[-2:] for history in ever if history[-1].deleted]
        last = max((end.time for _, end in ended), default=None)
        taken = [held for held, end in ended if end.time == last]
        if not taken:
            raise NotFound(f"nothing was deleted at {path}", path=path)
        self._refuse_in_the_way([file.path for file in taken])
        self._bring(taken)
        return [_outside(file.path) for file in taken]

    def erase(self, path: str) -> int:
        """In one commit, so that a crash leaves all of it or nothing."""
        paths = self._ever(_place(path))
        self._folder.filebook.erase([FileDelete(at) for at in paths])
        return sum(not at.endswith("/") for at in paths)

    def clear(self) -> str:
        self.erase(_ROOT)
        return "All memory cleared"

    # Changing

    def _edit(self, path: str, change: Callable[[str], tuple[str, str]]) -> str:
        """Change the text of a file and answer; who was overtaken does it again, on the text as it is then."""
        place, answer = _place(path), ""

        def changes() -> list[FileWrite | FileDelete]:
            nonlocal answer
            file = self._folder.find(place) if place else None
            if file is None:
                raise Invalid(f"The path {path} is not a file.") if self._exists(place) else _missing(path)
            text, answer = change(_held(file, path))
            return [self._written(file, place, text, file.version)]

        self._commit(changes, path)
        return answer

    def _commit(self, changes: Callable[[], list[FileWrite | FileDelete]], path: str) -> None:
        compare_and_set(changes, self._folder.commit, f"The path {path}", path=path)

    def _bring(self, files: Iterable[File]) -> None:
        self._folder.commit([FileWrite(file.path, file.content, 0, file.tags) for file in files])

    def _written(self, file: File, place: str, content: Any, expect: int) -> FileWrite:
        """The next version of a file, or the same one elsewhere, with the tags and the end that others gave it."""
        expires = None if file.expires is None else to_micros(file.expires)
        return FileWrite(place, content, expect, file.tags, expires)

    def _moved(self, file: File, place: str, target: str) -> FileWrite:
        return self._written(file, target + file.path[len(place) :], file.content, 0)

    def _left_empty(self, place: str, target: str = "") -> list[FileWrite]:
        """The mark of a directory, where nothing else keeps the one that a place is in."""
        parent = _parent(place)
        if not parent or target.startswith(_under(parent)):
            return []
        others = [at for at in self._folder.paths(_under(parent)) if at != place and not at.startswith(_under(place))]
        return [] if others else [FileWrite(_under(parent), None)]

    # Looking

    def _exists(self, place: str) -> bool:
        return not place or self._folder.find(place) is not None or bool(self._folder.paths(_under(place)))

    def _found(self, place: str, path: str) -> list[File]:
        """The file at a place, or all that a directory holds."""
        file = self._folder.find(place)
        files = self._folder.files(_under(place)) if file is None else [file]
        if not files:
            raise NotFound(f"The path {path} does not exist")
        return files

    def _refuse_inside_file(self, place: str, path: str) -> None:
        for parent in _parents(place):
            if self._folder.find(parent) is not None:
                raise Invalid(f"The path {path} is inside {_outside(parent)}, which is a file and not a directory.")

    def _refuse_in_the_way(self, places: Iterable[str]) -> None:
        """Refuse to bring files back where there is a directory by now, or inside of what is a file by now."""
        there = set(self._folder.paths())
        directories = {parent for at in there for parent in _parents(at)}
        for place in places:
            file = next((at for at in _parents(place) if at in there), None)
            if file is not None or place in directories:
                path = _outside(file or place)
                raise Conflict(f"{path} is in the way of {_outside(place)}: rename or delete it first", path=path)

    def _ever(self, place: str) -> list[str]:
        """Every path at a place or under it that has a history, whether or not there still is a file."""
        paths = sorted(map(path_of, self._folder.filebook.ever()))
        return [path for path in paths if path == place or path.startswith(_under(place))]


# Paths


def _place(path: str) -> str:
    """The path in the folder that a model's path means; empty for the root. It never leads out of it."""
    if not path.startswith(_ROOT):
        raise Invalid(f"Path must start with {_ROOT}, got: {path}")
    if "\x00" in path:
        raise Invalid("Path must not contain a NUL character")
    inside = posixpath.normpath(f"{_NAME}/{path[len(_ROOT) :]}")
    if inside != _NAME and not inside.startswith(f"{_NAME}/"):
        raise Invalid(f"Path {path} would escape {_ROOT} directory")
    return inside[len(_NAME) + 1 :]


def _outside(place: str) -> str:
    return f"{_ROOT}/{place}".rstrip("/")


def _under(place: str) -> str:
    """What the paths begin with that are under a place; everything is under the root."""
    return f"{place}/" if place else ""


def _parent(place: str) -> str:
    return place.rpartition("/")[0]


def _parents(place: str) -> Iterator[str]:
    """The directories that a place is in, the nearest first."""
    while place := _parent(place):
        yield place


# What is in a command or in a file


def _text(command: Any, name: str) -> str:
    """A field of a command. Nothing has checked what a model sent."""
    value = getattr(command, name, None)
    if not isinstance(value, str):
        raise Invalid(f"`{name}` must be text")
    return value


def _held(file: File, path: str) -> str:
    if not isinstance(file.content, str):
        raise Invalid(f"Unsupported file type for {path}")
    return file.content


def _missing(path: str) -> NotFound:
    return NotFound(f"The path {path} does not exist. Please provide a valid path.")


# What is answered


def _shown(path: str, text: str, between: Any) -> str:
    lines, first = text.split("\n"), 1
    if len(lines) > _MOST_LINES:
        raise Invalid(f"File {path} exceeds maximum line limit of {_MOST_LINES:,} lines.")
    if between and len(between) == 2:
        if not all(isinstance(number, int) for number in between):
            raise Invalid("`view_range` must be two whole numbers")
        first = max(1, between[0])
        lines = lines[first - 1 : None if between[1] == -1 else between[1]]
    return f"Here's the content of {path} with line numbers:\n{_numbered(lines, first)}"


def _numbered(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, first))


def _listed(path: str, place: str, files: Sequence[File]) -> str:
    """The items of a directory, two levels deep, each directory before what is in it."""
    shown: dict[tuple[str, ...], str] = {}
    for file in files:
        parts = tuple(file.path[len(_under(place)) :].split("/"))
        for depth in range(1, min(len(parts), _DEPTH) + 1):
            name = parts[depth - 1]
            if not name or name.startswith("."):
                break  # a mark of an empty directory, or hidden
            ends = depth == len(parts)
            size = _size(_bytes(file.content) if ends else _DIRECTORY_BYTES)
            shown[parts[:depth]] = f"{size}\t{path}/{'/'.join(parts[:depth])}{'' if ends else '/'}"
    head = f"Here're the files and directories up to {_DEPTH} levels deep in {path}, excluding hidden items:"
    return "\n".join([head, f"{_size(_DIRECTORY_BYTES)}\t{path}", *(shown[parts] for parts in sorted(shown))])


def _bytes(content: Any) -> int:
    if isinstance(content, str | bytes):
        return len(content.encode() if isinstance(content, str) else content)
    return len(encode(content))


def _size(count: int) -> str:
    """A number of bytes as people write it, with one place where it is not whole."""
    power = min(max(count.bit_length() - 1, 0) // 10, 3)
    amount = count / 1024**power
    return f"{amount:.{0 if amount == int(amount) else 1}f}{'BKMG'[power]}"


def _replaced(text: str, old: str, new: str, path: str) -> tuple[str, str]:
    """The text after a replacement, and the answer that shows the lines around it."""
    count = text.count(old)
    if count == 0:
        raise Invalid(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
    if count > 1:
        raise Invalid(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
            f"{', '.join(map(str, _lines_of(text, old)))}. Please ensure it is unique"
        )
    at = text.count("\n", 0, text.find(old))
    changed = text.replace(old, new)
    first = max(0, at - _AROUND)
    snippet = _numbered(changed.split("\n")[first : at + _AROUND + 1], first + 1)
    answer = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
    return changed, f"{answer}\n{snippet}"


def _lines_of(text: str, part: str) -> Iterable[int]:
    """The line of each place where a part begins; places may overlap."""
    at, before, line = text.find(part), 0, 1
    while at >= 0:
        line += text.count("\n", before, at)
        yield line
        at, before = text.find(part, at + 1), at


def _inserted(text: str, at: int, more: str) -> str:
    lines = text.removesuffix("\n").split("\n") if text else []
    if not 0 <= at <= len(lines):
        raise Invalid(f"Invalid `insert_line` parameter: {at}. It should be within the range [0, {len(lines)}].")
    lines.insert(at, more.rstrip("\n"))
    changed = "\n".join(lines)
    return changed if changed.endswith("\n") else f"{changed}\n"
