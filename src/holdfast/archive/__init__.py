"""The room that moves data out of a store and back: archives, export, import, backup and restore.

``contents`` is the document and its forms, ``audit`` proves it, ``as_json``, ``as_yaml`` and ``as_msgpack`` write and
read it, ``formats`` picks one of them. ``selection`` says what belongs to a selection, ``export``, ``importing`` and
``backup`` are what the store calls, ``output`` where archives go. Deliberately absent: clocks, and anything printed.
"""

from __future__ import annotations

from holdfast.archive.backup import Restored, restore_engine, restore_file, write_backup
from holdfast.archive.contents import ArchiveManifest, Selection
from holdfast.archive.export import export
from holdfast.archive.formats import Progress
from holdfast.archive.importing import ImportReport, check_archive, import_archive
from holdfast.archive.output import format_of, written

__all__ = [
    "ArchiveManifest",
    "ImportReport",
    "Progress",
    "Restored",
    "Selection",
    "check_archive",
    "export",
    "format_of",
    "import_archive",
    "restore_engine",
    "restore_file",
    "write_backup",
    "written",
]
