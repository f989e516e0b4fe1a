"""Commands about files in folders: what there is, and what is in one of them.

Deliberately absent: writing files, which is for programs, and finding by content, which is ``recall``.
"""

from __future__ import annotations

import sys

from holdfast.doors import plain
from holdfast.doors.cli import options
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.render import Column, Screen
from holdfast.doors.cli.wording import as_text, counted
from holdfast.errors import NotFound
from holdfast.ledger.files import text_of
from holdfast.records import File, FolderInfo


def files(
    desk: Desk,
    folder: options.MaybeFolder = None,
    user: options.FolderUser = None,
    agent: options.FolderAgent = None,
    prefix: options.PathPrefix = "",
    tag: options.WithTag = None,
) -> None:
    """List folders, or the files of one.

    A folder can belong to a user, an agent, both or neither; name its owner to list its files.

    \b
    Examples:
      holdfast files
      holdfast files notes --user ana
      holdfast files notes --user ana --prefix trips/ --json
    """
    with desk.open() as store:
        if folder is None:
            folders = store.folders(user=user, agent=agent)
            desk.tell({"folders": plain.plain(folders)}, lambda screen: _show_folders(desk, screen, folders))
            return
        found = store.folder(folder, user=user, agent=agent).files(prefix, tag=tag)
    data = {"folder": folder, "files": [plain.file(each) for each in found]}
    desk.tell(data, lambda screen: _show_files(desk, screen, found))


def file(
    desk: Desk,
    folder: options.InFolder,
    path: options.FilePath,
    user: options.FolderUser = None,
    agent: options.FolderAgent = None,
    version: options.OfVersion = None,
    history: options.Versions = False,
) -> None:
    """Show what is in a file, or its versions.

    Binary content goes to a pipe as it is; on a terminal you see its size.

    \b
    Examples:
      holdfast file notes trips/lisbon.md --user ana
      holdfast file notes trips/lisbon.md --user ana --version 2
      holdfast file notes trips/lisbon.md --user ana --history
    """
    with desk.open() as store:
        place = store.folder(folder, user=user, agent=agent)
        if not history:
            found = place.read(path, version=version)
            desk.tell({"file": plain.file(found)}, lambda screen: _show_content(screen, found))
            return
        versions = place.history(path)
    if not versions:
        raise NotFound(f"there never was a file {path!r} in folder {folder!r}", folder=folder, path=path)
    data = {"folder": folder, "path": path, "versions": [plain.file(each) for each in versions]}
    desk.tell(data, lambda screen: _show_versions(desk, screen, versions))


# For people


def _show_folders(desk: Desk, screen: Screen, found: list[FolderInfo]) -> None:
    if not found:
        desk.note("No folders.")
        return
    columns = [
        Column("folder", "name", fits=True), Column("user", fits=True), Column("agent", fits=True),
        Column("files", right=True), Column("last written"),
    ]  # fmt: skip
    rows = [(each.name, each.user or "", each.agent or "", str(each.files), desk.when(each.active)) for each in found]
    screen.table(columns, rows)


def _show_files(desk: Desk, screen: Screen, found: list[File]) -> None:
    if not found:
        desk.note("No files.")
        return
    columns = [
        Column("path", "name", fits=True), Column("version", right=True), Column("written"),
        Column("content", fits=True), Column("tags", "quiet", fits=True),
    ]  # fmt: skip
    rows = [(each.path, str(each.version), desk.when(each.time), _glimpse(each), ",".join(each.tags)) for each in found]
    screen.table(columns, rows)


def _show_versions(desk: Desk, screen: Screen, found: list[File]) -> None:
    columns = [Column("version", right=True), Column("written"), Column("content", fits=True)]
    screen.table(columns, [(str(each.version), desk.when(each.time), _glimpse(each)) for each in found])


def _glimpse(file: File) -> str:
    if file.deleted:
        return "(deleted)"
    if isinstance(file.content, bytes):
        return f"({counted(len(file.content), 'byte')})"
    return " ".join(as_text(file.content).split())


def _show_content(screen: Screen, file: File) -> None:
    content = file.content
    if isinstance(content, bytes):
        if (text := text_of(content)) or not content:
            screen.verbatim(text)
        elif screen.terminal:
            screen.line(
                (f"{counted(len(content), 'byte')} of binary content; redirect the output, or use --json", "quiet")
            )
        else:
            sys.stdout.buffer.write(content)
    elif isinstance(content, str):
        screen.verbatim(content)
    else:
        screen.outline(content)
