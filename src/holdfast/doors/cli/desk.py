"""What a command works with: the options that hold for all of them, the store, and the places to write to.

``--db``, ``--tenant`` and ``--json`` may stand before or after a command's name; ``with_desk`` adds them to each.
Errors become one line (or one JSON document) and an exit code here, once for all. Deliberately absent: any command.
"""

from __future__ import annotations

import inspect
import io
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import typer

import holdfast
from holdfast import config
from holdfast.clock import Clock, SystemClock
from holdfast.doors import plain
from holdfast.doors.cli import exits, wording
from holdfast.doors.cli.options import AsJson, Db, Tenant
from holdfast.doors.cli.render import Screen
from holdfast.engine.registry import scheme_of, sqlite_path
from holdfast.errors import HoldfastError, Misconfigured, NotFound, Unavailable
from holdfast.providers.choose import AUTO, NONE


class Options(NamedTuple):
    """The options that hold for every command."""

    db: str | None = None
    tenant: str | None = None
    json: bool = False

    def over(self, other: Options) -> Options:
        """These where they are given, the others where not."""
        db = other.db if self.db is None else self.db
        tenant = other.tenant if self.tenant is None else self.tenant
        return Options(db, tenant, self.json or other.json)


class Desk:
    """One run of one command."""

    def __init__(self, options: Options, clock: Clock | None = None) -> None:
        self.options = options
        self.clock = clock or SystemClock()
        self.screen = Screen(sys.stdout)
        self.notes = Screen(sys.stderr)

    def url(self) -> str:
        """The database that the caller named."""
        url = config.database() if self.options.db is None else self.options.db
        if not url:
            raise Misconfigured(f"no database: give --db agent.db, or set {config.DATABASE_VARIABLE}")
        return url

    def open(self, *, create: bool = False, embedder: str | None = None) -> holdfast.Store:
        """Open the store, with an embedder if one is needed. Without ``create`` a file that is not there is
        ``NotFound``, and is not made."""
        url = self.url()
        file = _file(url)
        if not create and file is not None and not file.exists():
            raise NotFound(f"there is no store at {_near(file)}", path=str(file))
        return holdfast.open(url, tenant=self.options.tenant, embedder=embedder or NONE)

    def embedder(self, named: str | None) -> str:
        """What makes vectors: what the caller named, or what the environment names, or else what is installed."""
        return (config.embedder() if named is None else named) or AUTO

    def moment(self, text: str | None) -> datetime | None:
        """Read a moment that the caller gave."""
        return None if text is None else wording.moment(text, self.clock)

    def when(self, moment: datetime | None) -> str:
        """On a terminal how long ago; elsewhere the moment itself, which stays the same from run to run."""
        return wording.ago(moment, self.clock) if self.screen.terminal else wording.stamp(moment)

    def tell(self, data: Any, show: Callable[[Screen], None]) -> None:
        """Print the answer: as a JSON document when that was asked for, otherwise for people."""
        if self.options.json:
            self.document(data)
        else:
            show(self.screen)

    def document(self, data: Any, *, indent: int | None = 2) -> None:
        print(_dump(data, sys.stdout, indent=indent))

    def live(self) -> None:
        """From here on, let each line out as it is written, also into a pipe: someone watches."""
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(line_buffering=True)

    def note(self, text: str) -> None:
        """Say something beside the answer; nothing where the answer is JSON."""
        if not self.options.json:
            self.notes.line(text)

    def attend(self, command: Callable[..., int | None], given: dict[str, Any]) -> int:
        """Run a command and return its exit code; what it raises is reported."""
        try:
            code = command(self, **given)
            sys.stdout.flush()
            return code or exits.OK
        except BrokenPipeError:
            discard_output()
            return exits.READER_GONE
        except HoldfastError as error:
            return self._refuse(error)
        except OSError as error:
            if error.filename is None:  # then it is the output itself that failed
                discard_output()
            return self._refuse(_in_our_words(error))

    def _refuse(self, error: HoldfastError) -> int:
        report(plain.error(error), self.options.json)
        if error.code == NotFound.code and set(error.facts) == {"thread"}:
            self.note("To list them: holdfast threads")
        return exits.exit_code(error)


def _in_our_words(error: OSError) -> HoldfastError:
    """What the system refused: a file that the caller named, or the output."""
    kind = NotFound if isinstance(error, FileNotFoundError) else Unavailable
    place = f"{error.filename}: " if error.filename else ""
    return kind(f"{place}{error.strerror or error}", path=error.filename)


def report(facts: dict[str, Any], as_json: bool) -> None:
    """Write an error to standard error."""
    if as_json:
        print(_dump({"error": facts}, sys.stderr), file=sys.stderr)
    else:
        Screen(sys.stderr).line(("error:", "bad"), f" {facts['message']}")


def _dump(data: Any, stream: Any, *, indent: int | None = 2) -> str:
    whole = (getattr(stream, "encoding", None) or "").lower().replace("-", "") == "utf8"
    return json.dumps(data, ensure_ascii=not whole, indent=indent, allow_nan=False)


def discard_output() -> None:
    """Send what is still buffered nowhere, so that nothing complains about an output that is gone."""
    with (
        suppress(OSError, ValueError),
        Path(os.devnull).open("wb") as nowhere,
    ):  # an output without a file needs nothing
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _near(file: Path) -> Path:
    """A path as people would type it here."""
    here = Path.cwd()
    return file.relative_to(here) if file.is_relative_to(here) else file


def _file(url: str) -> Path | None:
    """The file that a URL means, None for a server or for memory."""
    return sqlite_path(url) if scheme_of(url) == "sqlite" else None


def with_desk(command: Callable[..., int | None]) -> Callable[..., None]:
    """Turn a command whose first parameter is a desk into a function that typer can read."""
    signature = inspect.signature(command, eval_str=True)
    own = list(signature.parameters.values())[1:]
    shared = [_option("db", Db, None), _option("tenant", Tenant, None), _option("as_json", AsJson, False)]
    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    parameters = [context, *(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own), *shared]

    def run(ctx: typer.Context, **given: Any) -> None:
        here = Options(given.pop("db"), given.pop("tenant"), given.pop("as_json"))
        before = ctx.obj if isinstance(ctx.obj, Options) else Options()
        raise typer.Exit(Desk(here.over(before)).attend(command, given))

    run.__doc__, run.__name__ = command.__doc__, command.__name__
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _option(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
