"""A conversation as a workload: appends, turns with state, checkpoints and erasures, and what must be left of it.

``converse`` is the script, ``unsound`` and ``broken`` the two halves of its check: a store whose parts do not fit
together, and a store that did not keep its word. Deliberately absent: faults; the script runs on any store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from crashlab.power import Witness
from holdfast.errors import Erased, NotFound
from holdfast.store import Store

ROUNDS = 6
_LONG = 6_000


class Said(NamedTuple):
    """One entry."""

    thread: str
    key: str
    size: int

    def entries(self) -> dict[str, str]:
        return {self.key: self.key.ljust(self.size, ".")}


class Exchanged(NamedTuple):
    """One turn: two entries and a state."""

    thread: str
    number: int

    def entries(self) -> dict[str, str]:
        return {f"{part}-{self.number}": f"{part} {self.number} " + "." * 900 for part in ("question", "answer")}


class Marked(NamedTuple):
    """One checkpoint."""

    thread: str
    name: str

    def entries(self) -> dict[str, str]:
        return {}


class Gone(NamedTuple):
    """One erasure."""

    thread: str

    def entries(self) -> dict[str, str]:
        return {}


Fact = Said | Exchanged | Marked | Gone


def converse(store: Store, witness: Witness, rounds: int = ROUNDS) -> None:
    """The script. Each fact is one commit."""
    for fact in _script(rounds):
        with witness.tries(fact):
            make(store, fact)


def go_on(store: Store, witness: Witness) -> None:
    """A little more, for a store whose trouble is over."""
    for number in range(3):
        with witness.tries(fact := Said("trip", f"later-{number}", _LONG)):
            make(store, fact)


def make(store: Store, fact: Fact) -> None:
    """Do what makes a fact one. Entries have keys, so doing it again changes nothing."""
    match fact:
        case Said(thread, key):
            store.thread(thread).append({"content": fact.entries()[key]}, key=key)
        case Exchanged(thread, number):
            with store.thread(thread).turn() as turn:
                for key, text in fact.entries().items():
                    turn.append({"content": text}, key=key)
                turn.save({"exchange": number}, expect="any")
        case Marked(thread, name):
            store.thread(thread).checkpoint(name)
        case Gone(thread):
            store.erase(thread=thread)


def _script(rounds: int) -> Iterator[Fact]:
    for number in range(1, rounds + 1):
        yield Said("trip", f"said-{number}", 40)
        yield Exchanged("trip", number)
        yield Said(f"aside-{number}", "only", _LONG)
        if number % 2 == 0:
            yield Marked("trip", f"mark-{number}")
        elif number > 1:
            yield Gone(f"aside-{number - 1}")


# What is there


def stands(store: Store, fact: Fact) -> bool:
    """Whether a fact is there, whole."""
    thread = store.thread(fact.thread)
    match fact:
        case Marked(_, name):
            return any(mark.name == name for mark in thread.checkpoints())
        case Gone():
            return not thread.exists()
        case Exchanged(_, number):
            return number in _exchanges(store, fact.thread) and _has(store, fact)
    return _has(store, fact)


def _has(store: Store, fact: Fact) -> bool:
    try:
        found = [store.thread(fact.thread).entry(key=key).content for key in fact.entries()]
    except NotFound:
        return False
    return found == [{"content": text} for text in fact.entries().values()]


def _exchanges(store: Store, thread: str) -> list[int]:
    handle = store.thread(thread)
    return [handle.state(revision=saved.number).value["exchange"] for saved in handle.revisions()]


def superseded(witness: Witness) -> set[str]:
    """Threads that may be erased by now, so that nothing can be said about what was in them."""
    return {fact.thread for fact in (*witness.acked, *witness.unknown) if isinstance(fact, Gone)}


# What is wrong


def wrong(store: Store, witness: Witness) -> Iterator[str]:
    """Everything that is wrong with a store after a fault."""
    yield from unsound(store, witness)
    yield from broken(store, witness)
    yield from _unusable(store, witness)


def unsound(store: Store, witness: Witness) -> Iterator[str]:
    """Damage: problems that verify finds, gaps, halves of a commit, and entries that nobody wrote."""
    yield from (f"verify: {problem.where}: {problem.what}" for problem in store.verify().problems)
    tried = _texts((*witness.acked, *witness.unknown, *(fact for fact, _ in witness.refused)))
    for info in store.threads(limit=None):
        log = store.thread(info.id).log()
        if [entry.number for entry in log] != list(range(1, len(log) + 1)):
            yield f"{info.id} has a gap: {[entry.number for entry in log]}"
        for entry in log:
            if tried.get((info.id, entry.key)) != entry.content["content"]:
                yield f"{info.id} #{entry.number} holds what nobody wrote under {entry.key!r}"
    asked = [entry.key for entry in store.thread("trip").log() if str(entry.key).startswith(("question", "answer"))]
    saved = [f"{part}-{number}" for number in _exchanges(store, "trip") for part in ("question", "answer")]
    if asked != saved:
        yield f"turns are not whole: entries {asked}, states {saved}"
    positions = [commit.position for commit in store.watch(timeout_s=0)]
    if positions != list(range(1, len(positions) + 1)):
        yield f"the feed has a gap: {positions}"


def _texts(facts: Iterable[Any]) -> dict[tuple[str, str | None], str]:
    found: dict[tuple[str, str | None], str] = {}
    for fact in facts:
        if isinstance(fact, Said | Exchanged):
            found.update({(fact.thread, key): text for key, text in fact.entries().items()})
    return found


def broken(store: Store, witness: Witness) -> Iterator[str]:
    """Promises: what was acknowledged is there, what was refused is not."""
    erased = superseded(witness)
    for fact in witness.acked:
        if (isinstance(fact, Gone) or fact.thread not in erased) and not stands(store, fact):
            yield f"acknowledged, but missing: {fact!r}"
    for fact, error in witness.refused:
        if isinstance(fact, Gone) and fact.thread not in _made(witness):
            continue  # a thread that was never made is as absent as an erased one
        if isinstance(fact, Fact) and stands(store, fact):
            yield f"refused with {error!r}, but there: {fact!r}"


def _made(witness: Witness) -> set[str]:
    return {fact.thread for fact in witness.acked if isinstance(fact, Said)}


def _unusable(store: Store, witness: Witness) -> Iterator[str]:
    """A store that is sound takes more: what was said again under the same keys, and something new."""
    erased = superseded(witness)
    said = [fact for fact in (*witness.unknown, *witness.acked[-3:]) if isinstance(fact, Said)]
    for fact in said:
        if fact.thread not in erased:
            make(store, fact)
            keys = [entry.key for entry in store.thread(fact.thread).log()]
            if keys.count(fact.key) != 1:
                yield f"{fact!r} is there {keys.count(fact.key)} times after a retry"
    for fact in witness.acked:
        if isinstance(fact, Gone) and fact.thread in _made(witness) and not _stays_gone(store, fact.thread):
            yield f"{fact.thread} came back after its erasure"
    number = store.thread("new").append({"content": "afterwards"}).number
    if number != 1 or store.verify().problems:
        yield "it took a new entry, but not well"


def _stays_gone(store: Store, thread: str) -> bool:
    try:
        store.thread(thread).append({"content": "late"})
    except Erased:
        return True
    return False
