"""Names of a framework as parts of a name of ours.

What a framework knows by several names is kept under one: its parts are joined by slashes, and a slash inside a part is
written as "%2F", so that no two things share a name and a name tells which thing it is. Deliberately absent: what the
parts are, and what may be in them.
"""

from __future__ import annotations


def escaped(part: str) -> str:
    """A part as it stands between slashes."""
    return part.replace("%", "%25").replace("/", "%2F")


def unescaped(part: str) -> str:
    """A part as the framework knows it."""
    return part.replace("%2F", "/").replace("%25", "%")
