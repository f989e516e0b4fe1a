"""JSON that people write, read without loss or not at all.

Deliberately absent: what the JSON means (``progress_json``).
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from holdfast.engine.codec import encode
from holdfast.errors import Invalid
from holdfast.handoff.document import json_of


def read_json(text: str, what: str = "this") -> Any:
    """The value in a text. What is no JSON is ``Invalid``, and so is what a reader would drop or change: a key that is
    there twice, ``NaN``, a number or a depth beyond what can be stored."""
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_refused)
    except json.JSONDecodeError as error:
        raise Invalid(f"{what}, line {error.lineno}: not JSON: {error.msg}", line=error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise Invalid(f"{what} cannot be read as JSON: {error}") from error
    encode(value, what)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {twice!r} is there twice; keep one")
    return found


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is not a number that JSON can hold")


def data_block(value: Any) -> str:
    """Data as a block that markdown shows as code, and that is read back as data."""
    return f"```json data\n{json_of(value, 2)}\n```"
