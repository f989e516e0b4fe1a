"""The command's table of contents: its name, its global options, its commands in groups, and how a run ends.

Each command is loaded when it is called, so that starting one does not wait for the rest. ``app`` can be read by tools
(``make docs`` writes the reference from it); ``run`` is what ``main`` calls. Usage errors, interrupts and faults end
here with their exit codes; errors of the store end at the desk. Deliberately absent: what any command does.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, cast

import typer
import typer.core
import typer.main

import holdfast
from holdfast.doors.cli import exits, options
from holdfast.doors.cli.desk import Desk, Options, discard_output, report, with_desk

# What typer raises for a wrong call lives in click or in typer's own copy of it, depending on the version; the class
# that is public in both is a child of it.
_UsageError = cast("type[Exception]", typer.BadParameter.__mro__[1])

_HELP = """Keep an AI agent's conversations, state, steps and memories in one durable store.

\b
Examples:
  holdfast demo                          watch an agent being killed, and going on
  holdfast --db agent.db chat            talk; kill it; go on
  holdfast --db agent.db threads         list the threads of a store
  holdfast --db agent.db show trip-42    show one of them
  holdfast --db agent.db runs            list durable runs, done and unfinished
  holdfast --db agent.db recall "seats"  find what is known
  export HOLDFAST_DB=agent.db            leave out --db from now on
"""
_EXIT_CODES = "\b\nExit codes:\n" + "\n".join(f"{code:>5}  {meaning}" for code, meaning in exits.MEANINGS.items())


class _Place(NamedTuple):
    """Where a command is found: its panel in the help, its module here, and its functions there.

    A group has several functions, and its help in ``HELP``.
    """

    panel: str
    module: str
    functions: tuple[str, ...] = ()


def _panel(title: str, **modules: str) -> dict[str, _Place]:
    """The commands of a panel, in order: each by its name, with the module that has a function of that name."""
    return {name.rstrip("_"): _Place(title, module, (name,)) for name, module in modules.items()}


_COMMANDS: dict[str, _Place] = {
    **_panel("Begin", demo="demo.command", chat="chat"),
    **_panel(
        "Look", threads="threads", users="threads", show="show", log="log", state="state", graph="graph", files="files",
        file="files",
    ),
    **_panel(
        "Write", append="append", remember="memory", learn="memory", correct="memory", end="memory", forget="memory"
    ),
    **_panel(
        "Recall", recall="recalling", memories="memories", facts="memories", links="links", procedures="memories",
        contradictions="memories", rebuild="memory",
    ),
    **_panel(
        "See work through", runs="runs", resume="resuming", signal_="runs", settle="runs", cancel="runs",
        handoff="handoff",
    ),
    **_panel("Go back, or try another way", checkpoint="points", fork="points", rewind="points"),
    **_panel(
        "Move and keep", export="moving", import_="moving", backup="moving", restore="moving", verify="moving"
    ),
    "erase": _Place("Erase", "erasing", ("thread", "user", "agent", "file_")),
    "eval": _Place("Measure", "evaluating", ("recall", "context")),
}  # fmt: skip


class _Commands(Mapping[str, Any]):
    """The commands by name; each is loaded when it is first asked for."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        place = _COMMANDS[name]
        if name not in self._loaded:
            self._loaded[name] = _load(name, place)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


class _Lazy(typer.core.TyperGroup):
    """The root of the command, whose parts are loaded one by one."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.commands = cast(Any, _Commands())


def _load(name: str, place: _Place) -> Any:
    """Load a command, or a group with all of its commands."""
    module = import_module(f"holdfast.doors.cli.{place.module}")
    group = len(place.functions) > 1
    one = typer.Typer(
        name=name, help=module.HELP if group else None, rich_markup_mode=app.rich_markup_mode, add_completion=False,
        rich_help_panel=place.panel,
    )  # fmt: skip
    if group:
        one.callback()(_group_options)
    for function in place.functions:
        one.command(function.rstrip("_"), rich_help_panel=place.panel)(with_desk(getattr(module, function)))
    return typer.main.get_command(one)


def _group_options(
    ctx: typer.Context, db: options.Db = None, tenant: options.Tenant = None, as_json: options.AsJson = False
) -> None:
    ctx.obj = Options(db, tenant, as_json).over(ctx.obj)


_SETTINGS = {"help_option_names": ["-h", "--help"]}
app = typer.Typer(
    name="holdfast",
    help=_HELP,
    epilog=_EXIT_CODES,
    cls=_Lazy,
    context_settings=_SETTINGS,
    pretty_exceptions_enable=False,  # `run` shows what went wrong, in one way for every way of starting
)


@app.callback(invoke_without_command=True)
def _root(
    ctx: typer.Context,
    db: options.Db = None,
    tenant: options.Tenant = None,
    as_json: options.AsJson = False,
    version: options.Version = False,
) -> None:
    ctx.obj = Options(db, tenant, as_json)
    if version:
        raise typer.Exit(Desk(ctx.obj).attend(_version, {}))
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help(), err=True)
        raise typer.Exit(exits.USAGE)


def _version(desk: Desk) -> None:
    number = holdfast.__version__
    desk.tell({"version": number}, lambda screen: screen.line(f"holdfast {number}"))


def run(argv: list[str]) -> int:
    """Run the command with these arguments and return its exit code."""
    _prepare_output()
    as_json = "--json" in argv
    app.rich_markup_mode = "rich" if sys.stdout.isatty() else None
    try:
        code = typer.main.get_command(app).main(argv, prog_name="holdfast", standalone_mode=False)
        sys.stdout.flush()
        return int(code or exits.OK)
    except _UsageError as error:
        return _wrong_call(error, as_json)
    except typer.Abort as error:
        interrupted = isinstance(error.__cause__ or error.__context__, KeyboardInterrupt)
        return exits.INTERRUPTED if interrupted else exits.NO
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except BrokenPipeError:
        discard_output()
        return exits.READER_GONE
    except Exception as error:
        return _fault(error, as_json)


def _prepare_output() -> None:
    """Bear a closed output, and characters that its encoding does not have."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - as long as the process
        else:
            stream.reconfigure(errors="backslashreplace")


def _wrong_call(error: Any, as_json: bool) -> int:
    """Say what is wrong with the call, and where to read how it should be."""
    report({"code": "usage", "message": error.format_message(), "retryable": False}, as_json)
    if not as_json and error.ctx is not None:
        typer.echo(f"Try: {error.ctx.command_path} --help", err=True)
    return exits.USAGE


def _fault(error: Exception, as_json: bool) -> int:
    """Show where Holdfast itself failed; a traceback is what a report of it needs."""
    trace = "".join(traceback.format_exception(error))
    if as_json:
        report({"code": "internal", "message": f"{type(error).__name__}: {error}", "traceback": trace}, as_json)
    else:
        sys.stderr.write(trace)
        report({"message": "this is a bug in Holdfast; the lines above show where"}, as_json)
    return exits.INTERNAL
