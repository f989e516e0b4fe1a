"""The digest chain over a stream, and the walk that finds where it breaks.

An event's digest (BLAKE2b, 128 bits) covers the digest before it, so a changed, missing or swapped event shows. The
chain names neither tenant nor stream: a thread keeps its digests when it is exported, imported or forked.
Deliberately absent: a secret. Anyone who can write the whole file can rebuild the whole chain; keep a digest elsewhere
to notice that.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from hashlib import blake2b

from holdfast.engine.contract import GENESIS, Event

DIGEST_BYTES = len(GENESIS)
_FRAME = struct.Struct(">qqii").pack


def link(previous: bytes, position: int, kind: str, key: str | None, time: int, body: bytes) -> bytes:
    """Return the digest of an event that follows ``previous``. Lengths keep neighbouring fields apart."""
    name = kind.encode()
    mark = b"" if key is None else key.encode()
    frame = _FRAME(position, time, len(name), -1 if key is None else len(mark))
    return blake2b(b"".join((previous, frame, name, mark, body)), digest_size=DIGEST_BYTES).digest()


def breaks(events: Iterable[Event], position: int, digest: bytes) -> Iterator[tuple[int, str]]:
    """Yield (position, what is wrong) for events that should follow ``position`` and ``digest`` without a gap."""
    for event in events:
        missing = range(position + 1, event.position)
        if missing:
            span = str(missing[0]) if len(missing) == 1 else f"{missing[0]} to {missing[-1]}"
            yield missing[0], f"entry {span} is missing"
        elif not _follows(event, digest):
            yield event.position, f"entry {event.position} was changed after it was written"
        position, digest = event.position, event.digest


def _follows(event: Event, digest: bytes) -> bool:
    try:
        return link(digest, event.position, event.kind, event.key, event.time, event.body) == event.digest
    except (AttributeError, TypeError, struct.error):  # another tool wrote text for bytes, or a number no engine would
        return False
