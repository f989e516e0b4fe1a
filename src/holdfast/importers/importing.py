"""Importing a source: all of it is read and checked before anything is written, and read back afterwards.

First every part is read, what cannot be stored is found, the count is compared with what the source said, and each part
is planned against the store. Only when nothing is damaged, refused or in conflict is anything written, part by part,
each compared after its commit. Repeat an interrupted import to continue it. Deliberately absent:
changes to the source, and merging what diverged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import msgspec

from holdfast import Store
from holdfast.errors import Conflict, Corrupt, Invalid
from holdfast.extension import Scope
from holdfast.importers.parts import ImportPart, ImportPlan
from holdfast.importers.source import ImportSource, RefusedItem

Progress = Callable[[str, int, int], None]
"""Is told the stage ("check" or "import"), how much is done and how much there is."""
_NAMED = 3


class Owner(msgspec.Struct, frozen=True):
    """Whose some of what came in is, and how many items that are; without user and agent it is everybody's."""

    user: str | None
    agent: str | None
    new: int


class ImportOutcome(msgspec.Struct, frozen=True):
    """What an import did, or with ``dry_run`` would do, by what it is: entries, memories, files, checkpoints.

    ``counts`` is what the source said it holds. ``here`` were here already, ``erased`` were erased here and stay so,
    ``refused`` cannot be stored and were left out. ``compared`` is how many were read back and found the same. All that
    came in carries ``tag``, and ``owners`` says whose it is.
    """

    kind: str
    title: str
    place: str
    tag: str
    dry_run: bool
    counts: dict[str, int]
    new: dict[str, int]
    here: dict[str, int]
    erased: dict[str, int]
    owners: tuple[Owner, ...] = ()
    refused: tuple[RefusedItem, ...] = ()
    notes: tuple[str, ...] = ()
    compared: int = 0


def import_into(
    store: Store, source: ImportSource, *, dry_run: bool = False, skip: bool = False, progress: Progress | None = None
) -> ImportOutcome:
    """Bring everything of a source into a store, and compare what was written with it. Repeating it changes nothing.

    What a store cannot hold is ``Invalid``, and with ``skip`` it is left out and reported; so is a class that the
    caller named and that nothing in the source is. A thread that went another way here is ``Conflict``, as is a source
    that is being written to. Nothing is imported then.
    """
    checked, planned = _Checked(source), _ImportTally()
    moved = _Moved(progress, source.expected)
    for part in checked.parts():
        planned.add(part, part.plan(store), part.whose(store))
        moved.by("check", part.size)
    source.settle()
    if checked.refused and not skip:
        raise _cannot(checked.refused)
    found = planned.total() + len(checked.refused)
    if found != source.expected:
        raise Corrupt(
            f"{source.place} says that it holds {source.expected:,} items, but {found:,} could be read",
            place=source.place,
        )
    if dry_run:
        return planned.report(source, dry_run, checked.refused, compared=0)
    written = _ImportTally()
    for part in checked.parts():
        whose = part.whose(store)
        written.add(part, part.write(store, lambda more: moved.by("import", more)), whose)
    if written.total() != planned.total():
        raise Conflict(f"{source.place} was written to while it was imported; import it again", place=source.place)
    compared = written.total() - sum(written.erased.values())
    return written.report(source, dry_run, checked.refused, compared=compared)


class _Checked:
    """The parts of a source with all that can be stored. What cannot is found the first time they are gone through."""

    def __init__(self, source: ImportSource) -> None:
        self._source = source
        self._bad: dict[int, set[str]] = {}
        self._looked = False
        self.refused: list[RefusedItem] = []

    def parts(self) -> Iterator[ImportPart]:
        first = not self._looked
        for number, part in enumerate(self._source.parts()):
            if isinstance(part, RefusedItem):
                self.refused += [part] if first else []
                continue
            if first:
                problems = part.problems()
                self.refused += [RefusedItem(one.where, one.why) for one in problems]
                self._bad[number] = {one.name for one in problems}
            bad = self._bad.get(number, set())  # a source that grew meanwhile is found out below
            rest = part.without(bad) if bad else part
            if rest.size:
                yield rest
        self._looked = True


def by_reason(refused: Iterable[RefusedItem]) -> list[str]:
    """What was refused, in a sentence for each reason, which names the first item and counts the others."""
    places: dict[str, list[str]] = {}
    for one in refused:
        places.setdefault(one.why, []).append(one.where)
    return [
        f"{where[0]}{f', and {len(where) - 1:,} more' if len(where) > 1 else ''}: {why}"
        for why, where in places.items()
    ]


def _cannot(refused: list[RefusedItem]) -> Invalid:
    reasons = by_reason(refused)
    some = "; ".join(reasons[:_NAMED])
    more = f"; and {len(reasons) - _NAMED:,} other reasons" if len(reasons) > _NAMED else ""
    return Invalid(
        f"{len(refused):,} items cannot be stored, so nothing was imported: {some}{more}. Leave them out with "
        "skip (--skip)",
        refused=[{"where": one.where, "why": one.why} for one in refused],
    )


class _Moved:
    """Tells the caller how far an import is."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total = progress, total
        self._done = Counter[str]()

    def by(self, stage: str, more: int) -> None:
        self._done[stage] += more
        if self._progress is not None and more:
            self._progress(stage, self._done[stage], self._total)


class _ImportTally:
    """What parts came to, together."""

    def __init__(self) -> None:
        self.new, self.here, self.erased = Counter[str](), Counter[str](), Counter[str]()
        self.owners = Counter[Scope]()

    def add(self, part: ImportPart, plan: ImportPlan, whose: Scope) -> None:
        if plan.new:
            self.owners[whose] += plan.new
        for counter, count in ((self.new, plan.new), (self.here, plan.here), (self.erased, plan.erased)):
            if count:
                counter[part.what] += count

    def total(self) -> int:
        return sum(self.new.values()) + sum(self.here.values()) + sum(self.erased.values())

    def report(self, source: ImportSource, dry_run: bool, refused: list[RefusedItem], compared: int) -> ImportOutcome:
        owners = tuple(Owner(whose.user, whose.agent, count) for whose, count in self.owners.items())
        return ImportOutcome(
            source.kind, source.title, source.place, source.tag(), dry_run, source.counts, dict(self.new),
            dict(self.here), dict(self.erased), owners, tuple(refused), source.notes, compared,
        )  # fmt: skip
