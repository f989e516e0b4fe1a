"""Files with questions: notes as plain text or JSON, conversations as JSON; each of them gzipped or not.

What is wrong with a file is said with the place where it is wrong. Deliberately absent: any repair.
"""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

from holdfast.errors import Invalid, NotFound
from holdfast.evaluation import notes
from holdfast.evaluation.dataset import Conversation, conversations
from holdfast.evaluation.fields import Wrong

_GZIP = b"\x1f\x8b"


def read(path: str | Path) -> list[Conversation]:
    """The conversations of a file; a file of notes is one. ``Invalid`` says what is wrong with it, and where."""
    file = Path(path)
    try:
        found = _found(file, _text(_bytes(file)))
        if not any(conversation.questions for conversation in found):
            raise Wrong("the file", "there is no question in it")
    except Wrong as wrong:
        raise Invalid(f"{file}: {wrong}", path=str(file)) from wrong
    return found


def _bytes(file: Path) -> bytes:
    try:
        data = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"there is no file {file}", path=str(file)) from error
    except (OSError, ValueError) as error:
        raise Invalid(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}", path=str(file)) from error
    if not data.startswith(_GZIP):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise Wrong("the file", f"it is gzipped, and damaged or cut off ({error})") from error


def _text(data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Wrong(f"byte {error.start}", "this is not UTF-8 text") from error
    if not text.strip():
        raise Wrong("the file", "it is empty")
    return text


def _found(file: Path, text: str) -> list[Conversation]:
    if _is_plain(file, text):
        return [notes.from_text(text)]
    value = _parsed(text)
    return [notes.from_json(value)] if isinstance(value, dict) else conversations(value)


def _is_plain(file: Path, text: str) -> bool:
    """The name tells; where it does not, JSON is what begins like it."""
    named = {suffix.lower() for suffix in file.suffixes}
    return ".json" not in named and (bool(named & {".txt", ".md"}) or text.lstrip()[0] not in "[{")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise Wrong(f"line {error.lineno}, column {error.colno}", f"this is not JSON ({error.msg})") from error
    except RecursionError as error:
        raise Wrong("the file", "it is nested too deeply") from error
