"""What would be left on a disk if the power went now: a model of synced bytes, unsynced writes and names.

A write, a truncation or a change of a file's name reaches the platter for certain only with a sync. Until then the
power cut decides, by a seeded choice, whether it is kept, dropped or torn at sectors of 512 bytes. Later changes may
be there when earlier ones are not; only changes of the same bytes, and of the same name, happen in their order. Bytes
beside a write are never disturbed, as SQLite assumes of a disk too (powersafe overwrite).

Deliberately absent: SQLite, and the real files; ``disk`` has both.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

SECTOR = 512
_RATES = (0.0, 0.2, 0.5, 0.8, 0.95, 1.0)


class Write(NamedTuple):
    offset: int
    data: bytes


class Truncation(NamedTuple):
    size: int


class Body:
    """The content of one file: what is on the platter, and what is only on its way there."""

    __slots__ = ("pending", "synced")

    def __init__(self, content: bytes = b"") -> None:
        self.synced = bytearray(content)
        self.pending: list[Write | Truncation] = []

    def sync(self) -> None:
        for change in self.pending:
            _apply(self.synced, change)
        self.pending.clear()


class Chance:
    """The power cut's choices. Each cut has a mood of its own, so that nearly all and nearly nothing happen too."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.fates: Counter[str] = Counter()
        self.new_mood()

    def new_mood(self) -> None:
        self._keep, self._tear = self._random.choice(_RATES), self._random.choice((0.0, 0.1, 0.4))

    def part(self, count: int) -> int:
        """How many of ``count`` got through before the rest did not."""
        return self._random.randint(0, count)

    def keeps(self) -> bool:
        return self._random.random() < self._keep

    def survivors(self, change: Write | Truncation) -> Iterator[Write | Truncation]:
        """Yield what becomes of one unsynced change."""
        if isinstance(change, Write) and self._random.random() < self._tear:
            self.fates["torn"] += 1
            yield from self._torn(change)
        elif self.keeps():
            self.fates["kept"] += 1
            yield change
        else:
            self.fates["dropped"] += 1

    def _torn(self, write: Write) -> Iterator[Write]:
        """Some sectors of a write, in rare cases one with anything at all in it."""
        for piece in _sectors(write):
            fate = self._random.random()
            if fate < 0.5:
                yield piece
            elif fate < 0.55:
                yield Write(piece.offset, self._random.randbytes(len(piece.data)))


class Platter:
    """Every file of one folder, as the processes see them and as they would be found after a power cut."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self._names = {name: Body(content) for name, content in files.items()}
        self._synced_names = dict(self._names)
        self._renamed: list[tuple[str, Body | None]] = []

    def create(self, name: str) -> None:
        """Take note of a file that is opened, and made by that if it is not there."""
        if name not in self._names:
            self._names[name] = Body()
            self._renamed.append((name, self._names[name]))

    def change(self, name: str, change: Write | Truncation) -> None:
        self._names[name].pending.append(change)

    def delete(self, name: str) -> None:
        if self._names.pop(name, None) is not None:
            self._renamed.append((name, None))

    def sync(self, name: str) -> None:
        self._names[name].sync()

    def sync_names(self) -> None:
        """The folder was synced: files that were made are there, and deleted ones are gone."""
        self._synced_names = dict(self._names)
        self._renamed.clear()

    def forget(self, name: str, chance: Chance) -> None:
        """A sync failed, and the system takes what it could not write for written: it never tries again."""
        body = self._names[name]
        body.synced = bytearray(_left(body, chance))
        body.pending.clear()

    def left(self, chance: Chance) -> dict[str, bytes]:
        """What a power cut leaves of every file."""
        chance.new_mood()
        names = dict(self._synced_names)
        cut_off: set[str] = set()
        for name, body in self._renamed:
            if name in cut_off or not chance.keeps():
                cut_off.add(name)
                chance.fates["names lost"] += 1
            elif body is None:
                names.pop(name, None)
            else:
                names[name] = body
        return {name: _left(body, chance) for name, body in names.items()}


def _left(body: Body, chance: Chance) -> bytes:
    content = bytearray(body.synced)
    for change in body.pending:
        for survivor in chance.survivors(change):
            _apply(content, survivor)
    return bytes(content)


def _apply(content: bytearray, change: Write | Truncation) -> None:
    end = change.size if isinstance(change, Truncation) else change.offset + len(change.data)
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    if isinstance(change, Truncation):
        del content[end:]
    else:
        content[change.offset : end] = change.data


def _sectors(write: Write) -> Iterator[Write]:
    start, end = write.offset, write.offset + len(write.data)
    while start < end:
        stop = min(end, (start // SECTOR + 1) * SECTOR)
        yield Write(start, write.data[start - write.offset : stop - write.offset])
        start = stop
