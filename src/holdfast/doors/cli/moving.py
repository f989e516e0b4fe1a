"""Commands that move and keep whole stores: export, import, backup, restore, verify.

Deliberately absent: what an archive contains and how it is proved sound; the transfer room knows.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import holdfast
from holdfast.doors.cli import exits, plain
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.render import Screen
from holdfast.doors.cli.wording import counted
from holdfast.errors import Invalid
from holdfast.records import Report

_FORMATS = ("json", "yaml", "msgpack")
_STDOUT = "-"


def export(
    desk: Desk,
    path: Annotated[str, typer.Argument(metavar="PATH", help="The file to write; - for standard output.")] = _STDOUT,
    thread: Annotated[str | None, typer.Option(metavar="ID", help="Only this thread.")] = None,
    user: Annotated[str | None, typer.Option(metavar="NAME", help="Only this user's threads.")] = None,
    format: Annotated[str | None, typer.Option(metavar="FORMAT", help=f"One of {', '.join(_FORMATS)}. Without it, the file's suffix says.")] = None,
) -> None:
    """Write threads to a portable file.

    Their logs, every revision of their states, and their checkpoints, with a manifest of counts and hashes.

    \b
    Examples:
      holdfast export everything.json
      holdfast export trip.yaml --thread trip-42
      holdfast export - --user ana | gzip > ana.json.gz
    """  # fmt: skip
    if thread is not None and user is not None:
        raise Invalid("give either --thread or --user")
    out = path == _STDOUT
    if out and format == "msgpack" and sys.stdout.isatty():
        raise Invalid("msgpack is not text: name a file, or send the output to one")
    with desk.open() as store, desk.notes.progress("exporting") as progress:
        manifest = store.export_to(
            sys.stdout.buffer if out else Path(path),
            thread=thread,
            user=user,
            format=(format or "json") if out else format,
            progress=progress,
        )
    if out:
        desk.note(f"Exported {_content(manifest.counts)}.")
        return
    desk.tell(
        {"path": path, "manifest": plain.plain(manifest)},
        lambda screen: screen.line(f"Exported {_content(manifest.counts)} to ", (path, "name"), "."),
    )


def _content(counts: Any) -> str:
    parts = [
        counted(counts.threads, "thread"),
        counted(counts.entries, "entry", "entries"),
        counted(counts.revisions, "state revision"),
        counted(counts.checkpoints, "checkpoint"),
    ]
    return ", ".join(parts)


def import_(
    desk: Desk,
    path: Annotated[str, typer.Argument(metavar="PATH", help="A file that export wrote.", show_default=False)],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything and say what would come in, but write nothing.")] = False,
) -> None:
    """Bring in what export wrote.

    The file is checked whole before anything is written, and repeating an import is harmless.

    \b
    Examples:
      holdfast import everything.json --dry-run
      holdfast --db new.db import everything.json
    """  # fmt: skip
    with desk.open(create=not dry_run) as store, desk.notes.progress("importing") as progress:
        report = store.import_from(Path(path), dry_run=dry_run, progress=progress)
    desk.tell({"path": path, "dry_run": dry_run, **plain.plain(report)}, lambda screen: _show_import(screen, report, dry_run))


def _show_import(screen: Screen, report: Any, dry_run: bool) -> None:
    screen.line(f"{'Would import' if dry_run else 'Imported'} {report}.")


def backup(
    desk: Desk,
    path: Annotated[str, typer.Argument(metavar="PATH", help="The file to write the copy to.", show_default=False)],
) -> None:
    """Write a verified copy of the whole store.

    Others may keep writing meanwhile. The copy holds every tenant.

    \b
    Examples:
      holdfast backup agent-2026-05-01.backup
    """
    with desk.open() as store:
        store.backup(Path(path))
    size = Path(path).stat().st_size if Path(path).is_file() else None
    shown = f" ({size:,} bytes)" if size is not None else ""
    desk.tell({"path": path, "size_bytes": size}, lambda screen: screen.line("Backup written to ", (path, "name"), f"{shown}."))


def restore(
    desk: Desk,
    backup: Annotated[str, typer.Argument(metavar="BACKUP", help="What backup wrote.", show_default=False)],
) -> None:
    """Make a new store from a backup, where --db says.

    \b
    Examples:
      holdfast --db agent.db restore agent-2026-05-01.backup
    """
    url = desk.url()
    report = holdfast.restore(Path(backup), url, tenant=desk.options.tenant)
    desk.tell({"path": backup, "database": url, **plain.plain(report)}, lambda screen: screen.line("Restored ", (backup, "name"), " to ", (url, "name"), "."))  # fmt: skip


def verify(desk: Desk) -> int:
    """Prove that nothing stored was changed or lost.

    Every digest and count is computed again, and whatever does not agree is named. Exit code 1 means that something was.

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
