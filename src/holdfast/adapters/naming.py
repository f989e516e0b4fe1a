"""Names of a framework as parts of a name of ours.

What a framework knows by several names is kept under one: its parts are joined by slashes, and a slash inside a part is
written as "%2F", so that no two things share a name and a name tells which thing it is. Control characters, which no
name of ours may hold, are written so too. Deliberately absent: what the parts are, and what may be in them.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

_SPECIAL = re.compile("[%/\x00-\x1f\x7f-\x9f\u2028\u2029]")


def escaped(part: str) -> str:
    """A part as it stands between slashes."""
    return _SPECIAL.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), part)


def unescaped(part: str) -> str:
    """A part as the framework knows it."""
    return unquote(part)
