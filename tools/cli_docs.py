"""Write docs/cli.md from the command itself, so that the page cannot disagree with it.

``python tools/cli_docs.py`` writes the page; ``render()`` returns it, and a test compares the two. Only the attributes
that click's and typer's commands share are used. Deliberately absent: text about a single command; that is its help.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"

_STANDARD = {"help", "install_completion", "show_completion"}  # every such command has them
_HEAD = """\
# The command

This page is written by `make docs` from the command's own help. Do not edit it by hand.
"""


def command() -> Any:
    """Return the root command of ``holdfast``."""
    import typer.main  # noqa: PLC0415 - the page can be checked for staleness only where the command is installed

    from holdfast.doors.cli.app import app  # noqa: PLC0415 - same

    return typer.main.get_command(app)


def walk(node: Any, path: str = "holdfast") -> Iterator[tuple[str, Any]]:
    """Yield (full name, command) for a command and everything under it, in the order of its help."""
    if getattr(node, "hidden", False):
        return
    yield path, node
    for name, child in getattr(node, "commands", {}).items():
        yield from walk(child, f"{path} {name}")


def render() -> str:
    """Return the whole page."""
    return "\n".join([_HEAD, *(_section(path, node) for path, node in walk(command()))])


def _section(path: str, node: Any) -> str:
    params = [param for param in node.params if not getattr(param, "hidden", False) and param.name not in _STANDARD]
    arguments = [param for param in params if param.param_type_name == "argument"]
    options = [param for param in params if param.param_type_name == "option"]
    usage = " ".join([path, *(_place(argument) for argument in arguments), *(["[options]"] if options else [])])
    if getattr(node, "commands", None):
        usage += " COMMAND"
    parts = [f"## {path}", "", f"```\n{usage}\n```", "", _text(node.help)]
    parts += ["", _text(node.epilog)] if node.epilog else []
    rows = [(f"`{_place(argument)}`", _text(getattr(argument, "help", None))) for argument in arguments]
    rows += [(_flags(option), _text(option.help) + _default(option)) for option in options]
    if rows:
        parts += ["", "| | |", "|---|---|", *(f"| {left} | {right} |" for left, right in rows)]
    return "\n".join(parts).rstrip() + "\n"


def _place(argument: Any) -> str:
    name = (argument.metavar or argument.name or "").upper().strip("[]")
    return name if argument.required else f"[{name}]"


def _flags(option: Any) -> str:
    names = "`, `".join([*option.opts, *option.secondary_opts])
    variable = f" (or `{option.envvar}`)" if isinstance(option.envvar, str) else ""
    return f"`{names}`{variable}"


def _default(option: Any) -> str:
    plain = isinstance(option.default, str | int | float) and not isinstance(option.default, bool)
    return f" Default: `{option.default}`." if plain and option.default != "" else ""


def _text(help_text: str | None) -> str:
    """Return help as paragraphs; one that begins with a backspace keeps its lines, and is shown as code."""
    return "\n\n".join(_paragraph(text) for text in inspect.cleandoc(help_text or "").split("\n\n"))


def _paragraph(text: str) -> str:
    if not text.startswith("\b\n"):
        return " ".join(text.split()).replace("|", "\\|")
    title, _, body = text.removeprefix("\b\n").partition("\n")
    return f"{title}\n\n```\n{textwrap.dedent(body)}\n```"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(PAGE.parent.parent)}")
