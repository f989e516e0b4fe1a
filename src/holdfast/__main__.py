"""``python -m holdfast``: the command, for when its launcher is not on the path."""

from __future__ import annotations

from holdfast.doors.cli import main

if __name__ == "__main__":
    main()
