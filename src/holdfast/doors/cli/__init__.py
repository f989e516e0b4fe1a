"""The command: everything a person does with a store from a shell.

``app`` names the commands and where each is found, ``desk`` is what they work with, ``options`` what they are called
with, ``render`` and ``wording`` how they speak. The other modules are the commands themselves, ``demo`` the
demonstration. Only ``main`` is here: it can say that the extra is missing before anything of it is imported.
Deliberately absent: rules about threads or state.
"""

from __future__ import annotations

import json
import sys

_EXTRA = {"typer", "rich", "click", "shellingham", "pydantic"}  # typer and rich, and what they bring along
_ADVICE = 'the command needs {name}, which is not installed: pip install "holdfast[command]"'


def main() -> None:
    """Run the command with this process's arguments and end the process with its exit code."""
    try:
        from holdfast.doors.cli.app import run  # noqa: PLC0415 - needs the extra, whose absence has words of its own
    except ModuleNotFoundError as error:
        name = (error.name or "").split(".")[0]
        if name not in _EXTRA:
            raise
        sys.exit(_without_the_extra(_ADVICE.format(name=name)))
    sys.exit(run(sys.argv[1:]))


def _without_the_extra(advice: str) -> int:
    facts = {"code": "unsupported", "message": advice, "extra": "command"}
    print(json.dumps({"error": facts}) if "--json" in sys.argv else f"holdfast: {advice}", file=sys.stderr)
    return 2  # not that of Unsupported: nothing was asked of a store yet
