"""An exception as plain data that a person can read next year, without pickle and without its class.

Deliberately absent: a way back to the exception object. What was raised is told by ``StepFailed`` with its facts.
"""

from __future__ import annotations

import traceback
from typing import Any

from holdfast.errors import HoldfastError

_LONGEST = 4_000
_FRAMES = 25
_CAUSES = 8


def to_plain(error: BaseException) -> dict[str, Any]:
    """Describe an error: its type, its text, where it was raised, and what caused it."""
    plain = _one(error)
    causes: list[dict[str, Any]] = []
    seen, below = {id(error)}, _below(error)
    while below is not None and id(below) not in seen and len(causes) < _CAUSES:
        causes.append(_one(below, frames=False))
        seen.add(id(below))
        below = _below(below)
    if causes:
        plain["causes"] = causes
    return plain


def say(plain: dict[str, Any]) -> str:
    """One line about a described error."""
    text = str(plain.get("message", "")).strip()
    return f"{plain.get('type', 'error')}: {text}" if text else str(plain.get("type", "error"))


def _one(error: BaseException, *, frames: bool = True) -> dict[str, Any]:
    plain: dict[str, Any] = {"type": type(error).__qualname__, "message": _text(error)}
    if isinstance(error, HoldfastError):
        plain["code"] = error.code
    if frames:
        lines = traceback.format_list(traceback.extract_tb(error.__traceback__)[-_FRAMES:])
        plain["traceback"] = _storable("".join(lines))[-_LONGEST:]
    return plain


def _below(error: BaseException) -> BaseException | None:
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _text(error: BaseException) -> str:
    try:
        return _storable(str(error))[:_LONGEST]
    except Exception:  # an exception class of the caller's may fail even at this
        return "(its text could not be made)"


def _storable(text: str) -> str:
    """Without lone surrogates, which no store can hold."""
    return text.encode("utf-8", "backslashreplace").decode()
