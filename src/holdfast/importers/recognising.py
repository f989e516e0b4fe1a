"""Recognising a source by its content, and opening it.

Databases are recognised by their tables, files by their first words, folders by what they hold; only notes are
recognised by name, because their names are fixed. Anything else is refused, with what it seems to be and what
is supported. Deliberately absent: trying one reader after another until one does not fail.
"""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.archive import formats
from holdfast.archive.contents import FORMAT
from holdfast.errors import HoldfastError, Invalid, NotFound, Unavailable
from holdfast.importers import mem0_stores
from holdfast.importers.agents_sessions import AgentsSessions
from holdfast.importers.database import ForeignDatabase
from holdfast.importers.database import opened as open_database
from holdfast.importers.files import Original
from holdfast.importers.graph_types import Given
from holdfast.importers.knowledge_graph import KnowledgeGraph
from holdfast.importers.langgraph import LangGraphCheckpoints
from holdfast.importers.mem0 import Mem0
from holdfast.importers.memory_files import MemoryFiles
from holdfast.importers.source import ImportOptions, ImportSource

ARCHIVE = "archive"
KINDS = (LangGraphCheckpoints.kind, Mem0.kind, MemoryFiles.kind, KnowledgeGraph.kind, AgentsSessions.kind)
"""What can be imported besides archives of our own."""
_SERVERS = ("postgresql://", "postgres://")
_NAMED = 8
_HEAD = 64 * 1024


def recognise(place: str | Path) -> str:
    """Which of ``KINDS`` this is, or "archive" for what ``store.import_`` reads.

    ``Invalid`` says what else it seems to be, or what is known.
    """
    if is_server(place):
        return LangGraphCheckpoints.kind
    path = local(place)
    if path.is_dir():
        return _folder(path)
    database = open_database(path, glimpse=True)
    if database is not None:
        with database:
            return _database(database)
    if MemoryFiles.fits(path):
        return MemoryFiles.kind
    if _is_graph(path):
        return KnowledgeGraph.kind
    if _is_archive(path):
        return ARCHIVE
    raise _unknown(path)


def read(
    place: str | Path,
    kind: str | None = None,
    *,
    user: str | None = None,
    agent: str | None = None,
    history: str | Path | None = None,
    originals: bool = False,
    types: Given = (),
) -> ImportSource:
    """Open something to import: a file, a folder, or the address of a Postgres database. It is left as it is.

    ``kind`` says which of ``KINDS`` it is, otherwise its content does; what is not of that kind is ``Invalid``, what is
    damaged ``Corrupt``, what is being written ``Conflict`` or ``Unavailable``. ``user`` and ``agent`` say whose things
    are that do not say so themselves. ``history`` is Mem0's history file, where it is not beside its store.
    ``originals`` keeps what memories are made of as well: the files of notes, the payloads of Mem0, in the folder
    ``imported``. ``types`` are the classes of your own that the state of a LangGraph graph may hold: a list, or a
    mapping of the names they are stored under, as in ``{"__main__.Order": Order}``, each of which must be there.
    """
    chosen = recognise(place) if kind is None else kind
    if chosen not in KINDS:
        told = "use store.import_ for archives" if chosen == ARCHIVE else f"choose one of {', '.join(KINDS)}"
        raise Invalid(f"{place} cannot be read as {chosen!r}; {told}", kind=chosen)
    if history is not None and chosen != Mem0.kind:
        raise Invalid(f"history goes with a Mem0 store, and {place} is read as {chosen}")
    if types and chosen != LangGraphCheckpoints.kind:
        raise Invalid(f"types go with LangGraph checkpoints, and {place} is read as {chosen}")
    wanted = ImportOptions(user, agent, originals, types)
    if is_server(place):
        return LangGraphCheckpoints.of_server(str(place), wanted)
    path = local(place)
    if chosen == MemoryFiles.kind:
        return MemoryFiles(path, wanted)
    if chosen == Mem0.kind:
        return Mem0(path, wanted, None if history is None else local(history))
    if path.is_dir():
        raise Invalid(f"{path} is a folder; {chosen} is a file", path=str(path))
    return KnowledgeGraph(Original(path), wanted) if chosen == KnowledgeGraph.kind else _opened(path, chosen, wanted)


def is_server(place: str | Path) -> bool:
    """Whether this is the address of a Postgres database."""
    return isinstance(place, str) and place.startswith(_SERVERS)


def local(place: str | Path) -> Path:
    """A path that is there."""
    try:
        if "\x00" in os.fspath(place):
            raise Invalid("a path must not contain a NUL character")
        path = Path(os.path.abspath(Path(place).expanduser()))
        if not path.exists():
            raise NotFound(f"there is no file or folder {place}", path=str(place))
    except (TypeError, ValueError) as error:
        raise Invalid(f"{place!r} is not a path: {error}") from error
    except OSError as error:
        raise Unavailable(f"{place} cannot be reached: {error.strerror or error}", path=str(place)) from error
    return path


def _opened(path: Path, kind: str, wanted: ImportOptions) -> ImportSource:
    database = open_database(path)
    if database is None:
        raise Invalid(f"{path} is not an SQLite database, but {kind} is", path=str(path))
    try:
        if _database(database) != kind:
            raise Invalid(f"{path} is not {kind}; {_seems(database)}", path=str(path))
        return (
            AgentsSessions(database, wanted)
            if kind == AgentsSessions.kind
            else LangGraphCheckpoints.of_file(database, wanted)
        )
    except BaseException:
        database.close()
        raise


def _folder(path: Path) -> str:
    notes, mem0 = MemoryFiles.fits(path), mem0_stores.holds(path)
    if notes and mem0:
        raise Invalid(f"{path} holds notes and a Mem0 store; say which: {MemoryFiles.kind} or {Mem0.kind}")
    if not notes and not mem0:
        raise Invalid(
            f"nothing to import in {path}: neither notes (MEMORY.md, USER.md, SOUL.md, memory/YYYY-MM-DD.md) nor a "
            "Mem0 store",
            path=str(path),
        )
    return MemoryFiles.kind if notes else Mem0.kind


def _database(database: ForeignDatabase) -> str:
    if database.ours:
        raise Invalid(
            f"{database.path} is a Holdfast store; open it with --db, restore it, or export it and import the archive",
            path=str(database.path),
        )
    if LangGraphCheckpoints.fits(database):
        return LangGraphCheckpoints.kind
    if AgentsSessions.fits(database):
        return AgentsSessions.kind
    if any(is_one(database) for is_one in (mem0_stores.is_points, mem0_stores.is_chroma, mem0_stores.is_history)):
        return Mem0.kind
    raise Invalid(f"{database.path} is an SQLite database of an unknown kind; {_seems(database)}")


def _seems(database: ForeignDatabase) -> str:
    names = sorted(database.tables)
    some = ", ".join(names[:_NAMED]) + (" …" if len(names) > _NAMED else "")
    return f"its tables are {some}" if names else "it has no tables"


def _is_graph(path: Path) -> bool:
    try:
        return KnowledgeGraph.fits(Original(path))
    except Invalid:  # not text, or too long to be such a file
        return False


def _is_archive(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
            formats.recognise(head)
            if FORMAT.encode() not in head:  # some other JSON, or an archive that someone put in another order
                file.seek(0)
                formats.OpenedArchive(file)
    except Invalid:
        return False
    except HoldfastError:
        return True  # a damaged or newer one: reading it will say so
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {error.strerror or error}", path=str(path)) from error
    return True


def _unknown(path: Path) -> Invalid:
    if not path.stat().st_size:
        return Invalid(f"{path} is empty", path=str(path))
    notes = "; to import its notes anyway, give --from memory-files" if MemoryFiles.is_page(path) else ""
    return Invalid(
        f"{path} has no known format: no Holdfast archive, no database of LangGraph, Mem0 or the OpenAI Agents SDK, "
        "no graph of the MCP memory server, and no name that notes have (MEMORY.md, USER.md, SOUL.md, "
        f"YYYY-MM-DD.md){notes}",
        path=str(path),
    )
