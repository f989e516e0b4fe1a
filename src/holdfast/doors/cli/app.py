"""The command's table of contents: its name, its global options, its commands in groups, and how a run ends.

``app`` can be read by tools (``make docs`` writes the reference from it); ``run`` is what ``main`` calls. Usage errors,
interrupts and faults end here with their exit codes; errors of the store end at the desk. Deliberately absent: what
any command does.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import typer
import typer.main

import holdfast
from holdfast.doors.cli import (
    chat,
    erasing,
    evaluating,
    exits,
    files,
    graph,
    handoff,
    log,
    looking,
    memory,
    moving,
    options,
    points,
    recalling,
    resuming,
    runs,
    state,
)
from holdfast.doors.cli.demo.command import demo
from holdfast.doors.cli.desk import Desk, Options, discard_output, report, with_desk

# What typer raises for a wrong call lives in click or in typer's own copy of it, depending on the version; the class
# that is public in both is a child of it.
_UsageError = cast("type[Exception]", typer.BadParameter.__mro__[1])

_HELP = """Keep an AI agent's conversations and state where they survive.

\b
Examples:
  holdfast demo                          an agent is killed, and goes on
  holdfast --db agent.db chat            talk, be killed, go on
  holdfast --db agent.db threads         what is in a store
  holdfast --db agent.db show trip-42    one thread of it
  holdfast --db agent.db runs            what was done, and what was left
  holdfast --db agent.db recall "seats"  what is known about something
  export HOLDFAST_DB=agent.db            from here on without --db
"""
_EXIT_CODES = "\b\nExit codes:\n" + "\n".join(f"{code:>5}  {meaning}" for code, meaning in exits.MEANINGS.items())

app = typer.Typer(
    name="holdfast",
    help=_HELP,
    epilog=_EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
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


def _add(panel: str, *commands: Callable[..., int | None], to: typer.Typer = app) -> None:
    for command in commands:
        name = command.__name__.rstrip("_")
        to.command(name, rich_help_panel=panel)(with_desk(command))


_add("Begin", demo, chat.chat)
_add("Look", looking.threads, looking.show, log.log, state.state, graph.graph, files.files, files.file)
_add("Remember", memory.remember, memory.learn, memory.correct, memory.end, memory.forget)
_add(
    "Recall", recalling.recall, memory.facts, recalling.links, memory.procedures, memory.contradictions, memory.rebuild
)
_add("See work through", runs.runs, resuming.resume, runs.signal_, runs.settle, runs.cancel, handoff.handoff)
_add("Go back, or try another way", points.checkpoint, points.fork, points.rewind)
_add("Move and keep", moving.export, moving.import_, moving.backup, moving.restore, moving.verify)


def _group(name: str, help: str, panel: str, *commands: Callable[..., int | None]) -> None:
    group = typer.Typer(name=name, help=help)

    @group.callback()
    def _options(
        ctx: typer.Context, db: options.Db = None, tenant: options.Tenant = None, as_json: options.AsJson = False
    ) -> None:
        ctx.obj = Options(db, tenant, as_json).over(ctx.obj)

    _add(panel, *commands, to=group)
    app.add_typer(group, rich_help_panel=panel)


_group("erase", erasing.HELP, "Erase", erasing.thread, erasing.user, erasing.agent, erasing.file_)
_group("eval", evaluating.HELP, "Measure", evaluating.recall, evaluating.context)


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
        report({"message": "this is a fault in Holdfast; the lines above say where"}, as_json)
    return exits.INTERNAL
