"""Functions that continue runs, and classes that a state holds, from the module that you name in the call.

The name comes from the person who types the command, as for ``python -m``. Deliberately absent: names that were stored.
A run says only which of these functions it wants.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from holdfast.errors import Invalid
from holdfast.steps.declare import is_async
from holdfast.steps.resume import Handler, check_handlers

_USUAL = ("HANDLERS", "handlers")


def handlers(given: str) -> dict[str, Handler]:
    """The functions by the names of the runs they carry out, from ``MODULE`` or ``MODULE:NAME``."""
    name, _, attribute = given.partition(":")
    module = _module(name, given)
    try:
        return _named(_attribute(module, attribute), given)
    except Invalid:
        raise
    except (Exception, SystemExit) as error:  # looking may call code of theirs: a __getattr__, an __iter__
        raise _broken(name, error, "does not give its functions") from error


def classes(given: Sequence[str]) -> dict[str, type]:
    """The classes that are named as ``MODULE:CLASS`` or ``STORED=MODULE:CLASS``, by what they are stored as."""
    found: dict[str, type] = {}
    for each in given:
        stored, _, place = each.rpartition("=")
        name, _, attribute = place.partition(":")
        value = _attribute(_module(name, place, "--type"), attribute) if attribute else None
        if not isinstance(value, type):
            raise Invalid(
                f"--type is MODULE:CLASS, as in myapp.state:Trip, or STORED=MODULE:CLASS, as in "
                f"__main__.Trip=myapp.state:Trip, and {each!r} names no class"
            )
        found[stored or f"{value.__module__}.{value.__name__}"] = value
    return found


def _named(found: Any, given: str) -> dict[str, Handler]:
    if callable(found) and not isinstance(found, Mapping):
        found = [found]
    named = check_handlers(found)
    if not named:
        raise Invalid(f"{given!r} has no functions")
    for handler, function in named.items():
        if is_async(function):
            raise Invalid(f"handler {handler!r} is async; resume it from a program with holdfast.aio")
    return named


def _module(name: str, given: str, option: str = "--handlers") -> ModuleType:
    if name.endswith(".py") or "/" in name:
        raise Invalid(f"{option} names a module, not a file: {_as_module(name)}, not {name}")
    if not all(part.isidentifier() for part in name.split(".")):
        raise Invalid(f"{option} is MODULE or MODULE:NAME, as in myapp.work:HANDLERS, not {given!r}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _broken(name, error) from error
        raise Invalid(f"there is no module {error.name!r} in this directory or installed") from error
    except (Exception, SystemExit) as error:
        raise _broken(name, error) from error


def _as_module(path: str) -> str:
    return ".".join(Path(path).with_suffix("").parts).strip("./")


def _broken(name: str, error: BaseException, what: str = "does not import") -> Invalid:
    """What a module of the caller's raised as it was imported or looked at, and in which line of theirs."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_theirs(frame.filename)]
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return Invalid(f"module {name!r} {what}: {type(error).__name__}: {error}{where}", module=name)


def _is_theirs(file: str) -> bool:
    return not file.startswith("<") and Path(file) != Path(__file__) and "importlib" not in Path(file).parts


def _attribute(module: ModuleType, attribute: str) -> Any:
    if not attribute:
        for usual in _USUAL:
            if hasattr(module, usual):
                return getattr(module, usual)
        raise Invalid(
            f"module {module.__name__!r} has neither {' nor '.join(_USUAL)}: name its functions, as in "
            f"--handlers {module.__name__}:NAME"
        )
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise Invalid(f"module {module.__name__!r} has no {attribute!r}", module=module.__name__)
        found = getattr(found, part)
    return found
