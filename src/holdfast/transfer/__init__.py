"""The room that takes data out of a store and brings it back: archives, export, import, backup and restore.

``archive`` is the document and its forms, ``audit`` proves it, ``as_json``, ``as_yaml`` and ``as_msgpack`` write and
read it, ``formats`` picks one of them. ``reach`` says what belongs to a selection, ``exporter``, ``importer`` and
``backup`` are what the store calls, ``files`` where archives go. Deliberately absent: clocks, and anything printed.
"""

from __future__ import annotations

from holdfast.transfer.archive import Manifest, Selection
from holdfast.transfer.backup import Restored, restore_engine, restore_file, write_backup
from holdfast.transfer.exporter import export
from holdfast.transfer.files import format_of, written
from holdfast.transfer.formats import Progress
from holdfast.transfer.importer import ImportReport, check_archive, import_archive

__all__ = [
    "ImportReport",
    "Manifest",
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
