"""Another program's file, read once and whole, with a check that it was not written to meanwhile.

Deliberately absent: databases (``database`` has them), and what is in a file.
"""

from __future__ import annotations

from pathlib import Path

from holdfast.errors import Conflict, Invalid, NotFound, Unavailable

LARGEST = 256 * 1024 * 1024


class Original:
    """A text file as it was when it was opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._before = _stamp(path)
        if self._before[1] > LARGEST:
            raise Invalid(f"{path} has {self._before[1]:,} bytes; at most {LARGEST:,} can be read", path=str(path))
        try:
            self.data = path.read_bytes()
        except OSError as error:
            raise Unavailable(f"{path} cannot be read: {error.strerror or error}", path=str(path)) from error
        self.settle()

    @property
    def text(self) -> str:
        """What it says, without the mark that some editors begin a file with."""
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise Invalid(
                f"{self.path} is not UTF-8 text (byte {error.start}); save it as UTF-8", path=str(self.path)
            ) from error

    def settle(self) -> None:
        """Raise ``Conflict`` when it was written to since."""
        if _stamp(self.path) != self._before:
            raise Conflict(f"{self.path} was written to while it was read; import it again", path=str(self.path))


def _stamp(path: Path) -> tuple[int, int, int]:
    try:
        about = path.stat()
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {path}", path=str(path)) from error
    except OSError as error:
        raise Unavailable(f"{path} cannot be reached: {error.strerror or error}", path=str(path)) from error
    return about.st_ino, about.st_size, about.st_mtime_ns
