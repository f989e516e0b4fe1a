"""The file that carries a handoff to people: written whole or not at all, read only when it is text.

Deliberately absent: what is in the file, git, and opening anything that may be a database, because even closing such a
handle would drop the locks of a store that is open in this process.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from threading import get_ident
from typing import Any

from holdfast.errors import Invalid, NotFound, TooLarge, Unavailable, quoted

_DATABASES = (".db", ".sqlite", ".sqlite3")
_TRIES = 1_000


def located(path: Any) -> Path:
    """The absolute path of the file that is meant, behind any symbolic links; ``Invalid`` when it cannot be a file."""
    try:
        text = os.fspath(path)
        if not isinstance(text, str) or not text or "\x00" in text:
            raise Invalid(f"a file path is non-empty text without a NUL character, not {quoted(path)}")
        target = Path(os.path.realpath(Path(text).expanduser()))
        mode = _mode(target)
    except (TypeError, UnicodeEncodeError, RuntimeError) as error:
        raise Invalid(f"{quoted(path)} is not a path: {error}") from error
    except OSError as error:
        raise Invalid(f"{quoted(path)} cannot be the path of a file: {error.strerror}") from error
    if mode is not None and stat.S_ISDIR(mode):
        raise Invalid(f"{target} is a directory; name the file in it", path=str(target))
    if mode is not None and not stat.S_ISREG(mode):
        raise Invalid(f"{target} is not a regular file", path=str(target))
    if target.suffix.lower() in _DATABASES or any(os.path.exists(f"{target}{end}") for end in ("-wal", "-shm")):
        raise Invalid(f"{target} looks like a database; name a markdown or JSON file", path=str(target))
    return target


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def read_bytes(path: Path, limit: int) -> bytes | None:
    """What is in a file, None when there is no file; at most one byte more than ``limit``, so that more is noticed."""
    try:
        with path.open("rb") as file:
            return file.read(limit + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {error.strerror}", path=str(path)) from error


def to_text(data: bytes, limit: int, what: str) -> str:
    """The text in some bytes. What is not UTF-8 text, or too long, is ``Invalid`` and says where."""
    if len(data) > limit:
        raise TooLarge(f"{what} is longer than {limit:,} bytes; a handoff is short", limit_bytes=limit)
    if (nul := data.find(b"\x00")) >= 0:
        line = data.count(b"\n", 0, nul) + 1
        raise Invalid(f"{what}, line {line}: a NUL character, so this is not text in UTF-8", line=line)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Invalid(f"{what}, line {line}: not UTF-8 ({error.reason}); save it as UTF-8", line=line) from error


def read_text(path: Path, limit: int) -> str:
    """The text of a file."""
    data = read_bytes(path, limit)
    if data is None:
        raise NotFound(f"there is no file {path}", path=str(path))
    return to_text(data, limit, str(path))


def write_text(path: Path, text: str) -> None:
    """Put a text in the place of a file, durably: after a crash it is the old file or the new one, whole.

    The file keeps its mode, and its owner where that is allowed. One that is not writable is left alone.
    """
    if not path.parent.is_dir():
        raise Invalid(f"{path.parent} is not a directory; make it first", path=str(path))
    try:
        _replace(path, text.encode())
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror}", path=str(path)) from error


def _replace(path: Path, data: bytes) -> None:
    old = path.stat() if path.exists() else None
    if old is not None and not os.access(path, os.W_OK):
        raise PermissionError(13, "it is read-only")
    draft, handle = _draft(path.parent)
    try:
        with open(handle, "wb") as file:
            file.write(data)
            if old is not None:
                _keep(draft, old)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
    _sync_folder(path.parent)


def _draft(folder: Path) -> tuple[Path, int]:
    """A new file beside the one to be written. What a killed process of the same number left is not touched."""
    for number in range(_TRIES):
        draft = folder / f".holdfast-{os.getpid()}-{get_ident()}-{number}.tmp"
        with suppress(FileExistsError):
            return draft, os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    raise FileExistsError(17, "too many leftover .holdfast-*.tmp files in its directory; remove them")


def _keep(draft: Path, old: os.stat_result) -> None:
    if hasattr(os, "chown") and (old.st_uid, old.st_gid) != (draft.stat().st_uid, draft.stat().st_gid):
        with suppress(OSError):  # only some may give files away; the content matters more
            os.chown(draft, old.st_uid, old.st_gid)
    os.chmod(draft, stat.S_IMODE(old.st_mode))


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # no handle of a directory there
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
