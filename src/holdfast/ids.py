"""Identifiers: the ones we make, and the check of the ones callers give us.

A stream number is 63 bits: milliseconds first, so that numbers made later sort later, then randomness, so that two
processes never need to agree. Deliberately absent: meaning inside a caller's id; it is text that we compare.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

from holdfast.errors import Invalid

MAX_ID_BYTES = 512
_RANDOM_BITS = 21
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""What moves a terminal or breaks a line: ids stand in listings, logs and file names."""


class Ids:
    """Makes stream numbers from a moment and a source of randomness."""

    def __init__(self, randbits: Callable[[int], int] = secrets.randbits) -> None:
        self._randbits = randbits

    def stream(self, now: int) -> int:
        return ((now // 1_000) << _RANDOM_BITS | self._randbits(_RANDOM_BITS)) & (2**63 - 1)

    def key(self) -> bytes:
        """Bytes that nobody can guess."""
        return self._randbits(256).to_bytes(32, "little")

    def token(self) -> str:
        """Eight characters that tell two of a kind apart, as two holders in one process."""
        return f"{self._randbits(32):08x}"


def check_id(value: object, what: str) -> str:
    """Return ``value`` when it can name something on every engine, otherwise raise ``Invalid`` saying why not."""
    text = check_text(value, what)
    if (found := _CONTROL.search(text)) is not None:
        raise Invalid(f"{what} contains the control character U+{ord(found[0]):04X}", what=what)
    return text


def check_text(value: object, what: str) -> str:
    """The same for what is stored where ids are, but is none: the path of a file may break a line, if it must."""
    if not isinstance(value, str):
        raise Invalid(f"{what} must be a string, not {type(value).__name__}", what=what)
    if type(value) is not str:  # it would be stored as its text and come back as str: what is compared is that
        value = str.__str__(value)
    if not value:
        raise Invalid(f"{what} must not be empty", what=what)
    if "\x00" in value:
        raise Invalid(f"{what} contains a NUL character", what=what)
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise Invalid(f"{what} contains a lone surrogate, which is not text", what=what) from None
    if size > MAX_ID_BYTES:
        raise Invalid(f"{what} takes {size} bytes; at most {MAX_ID_BYTES} are allowed", what=what)
    return value
