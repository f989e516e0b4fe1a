"""What the processes of the demonstration share: one line to the parent at a time, and waiting for their end.

Deliberately absent: anything of Holdfast, and any reaction to being killed.
"""

from __future__ import annotations

import json
import sys
from typing import Any, NoReturn


def tell(event: str, **facts: Any) -> None:
    """Send one line to the parent, now."""
    sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
    sys.stdout.flush()


def wait_for_the_end() -> NoReturn:
    """Do nothing until this process is killed, or until its parent is gone, which nobody is to outlive."""
    sys.stdin.read()
    sys.exit()
