"""Export: a selection of a store, written as an archive.

Give it the view of an engine's ``snapshot()``, so that the archive shows one moment even while others write.
One thread at a time is in memory. Every chain is walked on the way out: a damaged history is ``Corrupt`` naming the
entry, and never becomes an archive that looks sound. Left out because the contract cannot list them: expired records,
the feed, and the marks of what was erased. Deliberately absent: files, clocks, and choosing an engine.
"""

from __future__ import annotations

from typing import BinaryIO

from holdfast.archive.audit import Audit
from holdfast.archive.contents import FORMAT, VERSION, ArchiveHeader, ArchiveManifest, Selection
from holdfast.archive.formats import Progress, writer
from holdfast.archive.selection import reach
from holdfast.engine.contract import View


def export(
    view: View, selection: Selection, out: BinaryIO, fmt: str, *, time: int, progress: Progress | None = None
) -> ArchiveManifest:
    """Write the selected part of a store to ``out`` as ``fmt`` ("json", "yaml" or "msgpack"); return the manifest.

    The same content at the same ``time`` gives the same bytes, from any engine. ``NotFound`` when the thread or user
    asked for has nothing; a tenant that holds nothing gives an empty archive. ``progress`` is called with "export", the
    sections written and how many there are.
    """
    header = ArchiveHeader(FORMAT, VERSION, time, selection)
    archive, audit = writer(fmt, out), Audit(header, of="the store")
    parts = reach(view, selection)
    total, done = sum(map(len, parts)), 0
    archive.header(header)
    for part in parts:
        for section in part.sections():
            archive.section(section, audit.section(section))
            done += 1
            if progress is not None:
                progress("export", done, total)
    manifest = audit.manifest()
    archive.manifest(manifest)
    return manifest
