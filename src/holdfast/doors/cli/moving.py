"""Commands that move and keep whole stores: export, import, backup, restore, verify.

Deliberately absent: what an archive contains and how it is proved sound (the transfer room knows), and what other
programs keep (``holdfast.importers`` knows).
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast

import holdfast
from holdfast.archive.output import no_format
from holdfast.doors import plain
from holdfast.doors.cli import exits, importing, options
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.render import Screen
from holdfast.doors.cli.wording import counted, database
from holdfast.errors import Conflict, Invalid, NotFound
from holdfast.records import VerifyReport

if TYPE_CHECKING:
    from holdfast.importers import ImportOutcome, Owner

T = TypeVar("T")

_ONE = {"entities": "entity", "memories": "memory", "entries": "entry"}
_OWNERS = 3
_SPOOL_BYTES = 16 * 1024 * 1024


def export(
    desk: Desk,
    path: options.ExportPath = options.STANDARD,
    thread: options.OneThread = None,
    user: options.OfUser = None,
    format: options.Format = None,
    force: options.OverwriteFile = False,
) -> None:
    """Write threads to a portable file.

    Their logs, every revision of their states, their checkpoints and memories, with a manifest of counts and hashes.
    A file that exists is not overwritten without --force.

    \b
    Examples:
      holdfast export everything.json
      holdfast export trip.yaml --thread trip-42
      holdfast export - --user ana | gzip > ana.json.gz
    """
    out = path == options.STANDARD
    if out and format == "msgpack" and sys.stdout.isatty():
        raise Invalid("msgpack is not text: name a file, or redirect the output")
    if not out and not force and Path(path).is_file():
        raise Conflict(f"{path} already exists and is not overwritten; --force overwrites it", path=path)
    if not out and format is None and (wrong := no_format(path, "--format")):
        raise Invalid(wrong)
    target = sys.stdout.buffer if out else Path(path)
    form = (format or "json") if out else format
    with desk.open() as store, desk.notes.progress() as progress:
        manifest = store.export(target, thread=thread, user=user, format=form, progress=progress)
    content = f"Exported {_content(manifest.counts)}"
    if out:
        desk.note(f"{content}.")
        return
    data = {"path": path, "manifest": plain.plain(manifest)}
    desk.tell(data, lambda screen: screen.line(f"{content} to ", (path, "name"), "."))


def _content(counts: Any) -> str:
    parts = [
        counted(counts.threads, "thread"),
        counted(counts.entries, "entry", "entries"),
        counted(counts.revisions, "state revision"),
        counted(counts.checkpoints, "checkpoint"),
        counted(counts.memories, "memory", "memories"),
    ]
    return ", ".join([*parts, counted(counts.files, "file")] if counts.files else parts)


def import_(  # noqa: PLR0913 - each option of the command is a parameter
    desk: Desk,
    path: options.ImportPath,
    kind: options.FromKind = None,
    dry_run: options.DryRun = False,
    user: options.WhoseUser = None,
    agent: options.WhoseAgent = None,
    history: options.HistoryPath = None,
    originals: options.Originals = False,
    types: options.OwnTypes = None,
    skip: options.Skip = False,
) -> None:
    """Import what export wrote, or another program's data.

    It reads archives, LangGraph's SQLite and Postgres checkpoints, a Mem0 store, a folder of notes (MEMORY.md, SOUL.md,
    memory/YYYY-MM-DD.md), the MCP memory server's file, and sessions of the OpenAI Agents SDK, and recognises them by
    their content. Everything is checked before anything is written, and read back afterwards. The source does not
    change, and you can repeat an import safely. What you import gets the tag import:KIND, so that forget can find it.

    \b
    Examples:
      holdfast import everything.json --dry-run
      holdfast --db new.db import everything.json
      holdfast import ~/.agent/workspace --user ana
      holdfast import /tmp/qdrant --history ~/.mem0/history.db
      holdfast import postgresql://localhost/graphs --type myapp.state:Trip
      holdfast import graphs.db --type __main__.Trip=myapp.state:Trip
    """
    from holdfast import importers  # noqa: PLC0415 - it brings the readers of other programs' files

    if kind is not None and kind not in options.SOURCES:
        raise Invalid(f"--from is one of {', '.join(options.SOURCES)}, not {kind!r}")
    given = (user, agent, history, types, originals or None, skip or None)
    chosen = importers.ARCHIVE if path == options.STANDARD and kind is None else kind or importers.recognise(path)
    if chosen == importers.ARCHIVE:
        if any(value is not None for value in given):
            raise Invalid(f"{path} is an archive, which says everything itself; leave out the other options")
        _import_archive(desk, path, dry_run)
        return
    own = importing.classes(types or ())
    with (
        importers.read(path, chosen, user=user, agent=agent, history=history, originals=originals, types=own) as source,
        desk.notes.progress() as progress,
    ):
        taken = _imported(
            desk,
            dry_run,
            lambda store, dry: importers.import_into(store, source, dry_run=dry, skip=skip, progress=progress),
        )
    reasons = importers.by_reason(taken.refused)
    desk.tell(plain.plain(taken), lambda screen: _show_taken(screen, taken, reasons))


def _imported(desk: Desk, dry_run: bool, take: Callable[[holdfast.Store, bool], T]) -> T:
    """Import into the store. A new store is made only after a trial in an empty one, so that a refused import leaves
    none behind."""
    try:
        store = desk.open()
    except NotFound:
        with holdfast.open("ram:", tenant=desk.options.tenant, embedder="none") as empty:
            tried = take(empty, True)
        if dry_run:
            return tried
        store = desk.open(create=True)
    with store:
        return take(store, dry_run)


def _import_archive(desk: Desk, path: str, dry_run: bool) -> None:
    with _archive(path) as archive, desk.notes.progress() as progress:
        report = _imported(desk, dry_run, lambda store, dry: store.import_(archive(), dry_run=dry, progress=progress))
    desk.tell({"path": path, **plain.plain(report)}, lambda screen: _show_import(screen, report))


@contextmanager
def _archive(path: str) -> Iterator[Callable[[], Path | BinaryIO]]:
    """Gives an archive as often as it is asked for; what comes from a pipe is kept for that."""
    if path != options.STANDARD:
        yield lambda: Path(path)
        return
    with tempfile.SpooledTemporaryFile(_SPOOL_BYTES) as kept:
        shutil.copyfileobj(sys.stdin.buffer, kept)

        def again() -> BinaryIO:
            kept.seek(0)
            return cast(BinaryIO, kept)

        yield again


def _show_taken(screen: Screen, taken: ImportOutcome, reasons: list[str]) -> None:
    screen.line((taken.place, "name"), f": {taken.title}, {_amounts(taken.counts)}.")
    if taken.new:
        screen.line(f"{'Would import' if taken.dry_run else 'Imported'} {_amounts(taken.new)}{_owners(taken)}.")
        screen.line("All of it has the tag ", (taken.tag, "name"), ".")
    else:
        screen.line("Nothing in it is new.")
    if taken.here:
        screen.line(f"Already here: {_amounts(taken.here)}.")
    if taken.erased:
        screen.line(f"Erased here before, so left out: {_amounts(taken.erased)}.")
    if taken.compared:
        screen.line(f"Read back and compared: all {taken.compared:,} are equal.")
    for reason in reasons:
        screen.line(("left out", "warn"), f": {reason}")
    for note in taken.notes:
        screen.line(("note", "quiet"), f": {note}")


def _owners(taken: ImportOutcome) -> str:
    """Whose it is: one after the other, or how many there are."""
    if len(taken.owners) == 1:
        return f" for {_named(taken.owners[0], taken)}"
    if len(taken.owners) > _OWNERS:
        return f" for {len(taken.owners):,} pairs of user and agent"
    return ": " + ", ".join(f"{owner.new:,} for {_named(owner, taken)}" for owner in taken.owners)


def _named(owner: Owner, taken: ImportOutcome) -> str:
    names = [f"{what} {name}" for what, name in (("user", owner.user), ("agent", owner.agent)) if name is not None]
    if names:
        return " with ".join(names)
    return "no user" if taken.new.keys() <= {"entries", "checkpoints"} else "everyone"


def _amounts(counts: dict[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda one: one[0] != "memories")
    named = (counted(count, _ONE.get(what, what.removesuffix("s")), what) for what, count in ordered)
    return ", ".join(named) or "nothing"


def _show_import(screen: Screen, report: Any) -> None:
    screen.line(f"The file is intact: {_content(report.manifest.counts)}.")
    if report.erased:
        screen.line(f"Left out, because it was erased here: {counted(report.erased, 'record')}.")
    if not report.records and not report.updated:
        screen.line("Everything in it is already here.")
        return
    entries = counted(report.events, "entry or revision", "entries and revisions")
    screen.line(
        f"{'Would import' if report.dry_run else 'Imported'} {counted(report.threads, 'new thread')}, {entries}."
    )
    screen.line(f"Records: {report.records:,} new, {report.updated:,} updated, {report.skipped:,} already here.")


def backup(desk: Desk, path: options.BackupPath) -> None:
    """Write a verified copy of the whole store.

    Other processes can keep writing meanwhile. The copy holds every tenant. An existing file is never overwritten.

    \b
    Examples:
      holdfast backup agent-2026-05-01.backup
    """
    with desk.open() as store, desk.notes.progress() as progress:
        size = store.backup(Path(path), progress=progress).stat().st_size
    data = {"path": path, "size_bytes": size}
    desk.tell(data, lambda screen: screen.line("Backup written to ", (path, "name"), f" ({size:,} bytes)."))


def restore(desk: Desk, backup: options.Backup, replace: options.Overwrite = False) -> None:
    """Make a new store from a backup, at --db.

    The new store is verified before it gets its name.

    \b
    Examples:
      holdfast --db agent.db restore agent-2026-05-01.backup
    """
    url = desk.url()
    with desk.notes.progress() as progress:
        restored = holdfast.restore(Path(backup), url, replace=replace, progress=progress)
    place = database(url)
    data = {"path": backup, "database": place, **plain.plain(restored)}
    desk.tell(data, lambda screen: screen.line("Restored ", (backup, "name"), " to ", (place, "name"), "."))


def verify(desk: Desk) -> int:
    """Verify that nothing stored was changed or lost.

    It computes every digest and count again and names what differs. Exit code 1 means that something does.

    \b
    Examples:
      holdfast verify || echo "restore from a backup"
    """
    with desk.open() as store:
        report = store.verify()
    desk.tell({"ok": report.ok, **plain.plain(report)}, lambda screen: _show_report(screen, report))
    return exits.OK if report.ok else exits.NO


def _show_report(screen: Screen, report: VerifyReport) -> None:
    looked = f"{counted(report.threads, 'thread')}, {counted(report.entries, 'entry', 'entries')}"
    if report.ok:
        screen.line(("All is well", "good"), f": {looked}, every digest and count agrees.")
        return
    screen.line((counted(len(report.problems), "problem"), "bad"), f" in {looked}:")
    for problem in report.problems:
        screen.line((problem.where, "name"), f": {problem.what}", indent=2)
