"""Commands that move and keep whole stores: export, import, backup, restore, verify.

Deliberately absent: what an archive contains and how it is proved sound; the transfer room knows.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import holdfast
from holdfast.doors.cli import exits, options, plain
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.render import Screen
from holdfast.doors.cli.wording import counted, database
from holdfast.errors import Invalid
from holdfast.records import Report


def export(
    desk: Desk,
    path: options.ExportPath = options.STANDARD,
    thread: options.OneThread = None,
    user: options.OfUser = None,
    format: options.Format = None,
) -> None:
    """Write threads to a portable file.

    Their logs, every revision of their states, their checkpoints, and memories, with a manifest of counts and hashes.

    \b
    Examples:
      holdfast export everything.json
      holdfast export trip.yaml --thread trip-42
      holdfast export - --user ana | gzip > ana.json.gz
    """
    out = path == options.STANDARD
    if out and format == "msgpack" and sys.stdout.isatty():
        raise Invalid("msgpack is not text: name a file, or send the output to one")
    target = sys.stdout.buffer if out else Path(path)
    form = (format or "json") if out else format
    with desk.open() as store, desk.notes.progress() as progress:
        manifest = store.export_to(target, thread=thread, user=user, format=form, progress=progress)
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
    return ", ".join(parts)


def import_(desk: Desk, path: options.ImportPath, dry_run: options.DryRun = False) -> None:
    """Bring in what export wrote.

    The file is checked whole before anything is written, and repeating an import is harmless.

    \b
    Examples:
      holdfast import everything.json --dry-run
      holdfast --db new.db import everything.json
    """
    source = sys.stdin.buffer if path == options.STANDARD else Path(path)
    with desk.open(create=not dry_run) as store, desk.notes.progress() as progress:
        report = store.import_from(source, dry_run=dry_run, progress=progress)
    desk.tell({"path": path, **plain.plain(report)}, lambda screen: _show_import(screen, report))


def _show_import(screen: Screen, report: Any) -> None:
    screen.line(f"The file is sound: {_content(report.manifest.counts)}.")
    if not report.records and not report.updated:
        screen.line("Everything in it is here already.")
        return
    entries = counted(report.events, "entry or revision", "entries and revisions")
    screen.line(
        f"{'Would bring in' if report.dry_run else 'Brought in'} {counted(report.threads, 'new thread')}, {entries}."
    )
    screen.line(
        f"Records: {report.records:,} new, {report.updated:,} brought up to date, {report.skipped:,} here already."
    )


def backup(desk: Desk, path: options.BackupPath) -> None:
    """Write a verified copy of the whole store.

    Others may keep writing meanwhile. The copy holds every tenant.

    \b
    Examples:
      holdfast backup agent-2026-05-01.backup
    """
    with desk.open() as store, desk.notes.progress() as progress:
        size = store.backup(Path(path), progress=progress).stat().st_size
    data = {"path": path, "size_bytes": size}
    desk.tell(data, lambda screen: screen.line("Backup written to ", (path, "name"), f" ({size:,} bytes)."))


def restore(desk: Desk, backup: options.Backup, replace: options.Overwrite = False) -> None:
    """Make a new store from a backup, where --db says.

    The new store is proved whole before it gets its name.

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
    """Prove that nothing stored was changed or lost.

    Every digest and count is computed again, and whatever does not agree is named. Exit code 1 means that something
    was.

    \b
    Examples:
      holdfast verify || echo "restore from a backup"
    """
    with desk.open() as store:
        report = store.verify()
    desk.tell({"ok": report.ok, **plain.plain(report)}, lambda screen: _show_report(screen, report))
    return exits.OK if report.ok else exits.NO


def _show_report(screen: Screen, report: Report) -> None:
    looked = f"{counted(report.threads, 'thread')}, {counted(report.entries, 'entry', 'entries')}"
    if report.ok:
        screen.line(("All is well", "good"), f": {looked}, every digest and count agrees.")
        return
    screen.line((counted(len(report.problems), "problem"), "bad"), f" in {looked}:")
    for problem in report.problems:
        screen.line((problem.where, "name"), f": {problem.what}", indent=2)
