"""One book: the memories of one exact pair of user and agent, written and read.

A book owns a stream with an event for everything that happened to it, and its memories are records of their own; what
belongs together is one commit. No memory is changed because of a later one. Forgetting and counting uses change what
is said about a memory, by compare and set, never its text. The time of a book never falls, so of two memories in it
the one that was committed later was recorded later, whatever the clocks of their writers say.

Deliberately absent: what is true (``facts``), the other books that a handle sees (``shelf``), and finding by meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from heapq import heappush, heapreplace
from typing import Any

import msgspec

from holdfast.clock import to_datetime, to_micros
from holdfast.engine.codec import decode, encode
from holdfast.engine.contract import Append, Delete, Event, Mark, Op, Put, Query, Receipt, Record, Scope, View
from holdfast.errors import Conflict, Corrupt, Erased, Invalid, KeyReused, NotFound
from holdfast.ids import Ids, check_id
from holdfast.ledger.core import Core, Pending, scan_all
from holdfast.ledger.thread import check_count
from holdfast.memory.drafts import Remembering, checked
from holdfast.memory.names import (
    BOOK,
    MEMORY,
    book_id,
    correction_tag,
    fact_tag,
    folded,
    in_order,
    kind_tag,
    label_tag,
    link_tag,
    memory_id,
    number_of,
    once_number,
    subject_of,
    tags_of,
)
from holdfast.memory.stored import as_remembered, from_plain, read_plain, to_body, to_memory, to_plain
from holdfast.records import MEMORY_KINDS, Memory

_TRIES = 1_000  # of many who change one memory at once only one gets through at a time
_LEAST_PAGE = 100
_PAGE = 500_000
_LAST = 2**63 - 1
_EMPTY_BODY = encode({})
Accept = Callable[[Memory], bool]


class Happening(msgspec.Struct, frozen=True):
    """Something that happened to a book: ``what`` is remember, forget, restore or erase."""

    position: int
    what: str
    id: str
    time: datetime


class Book:
    """The memories of one pair of user and agent, either of whom may be absent."""

    def __init__(self, core: Core, ids: Ids, scope: Scope) -> None:
        self._core, self._ids = core, ids
        self.scope = Scope(scope.user, scope.agent)
        self.id = book_id(self.scope)
        self.subject = subject_of(self.scope)

    def __repr__(self) -> str:
        return f"Book(user={self.scope.user!r}, agent={self.scope.agent!r})"

    # Remembering

    def remember(self, drafts: Sequence[Remembering]) -> list[Memory]:
        """Write memories in one durable commit and return them in the order of their drafts.

        What carries the name of an earlier one (``once``) is not written again: it is given back as it is stored, also
        when it was forgotten since. With other content it is ``KeyReused``; when it was erased it is ``Erased``.
        """
        if not drafts:
            return []
        known: dict[str, Memory] = {}
        for _ in range(_TRIES):
            pending = self.remembering(drafts, known)
            if not pending.ops:
                return pending.finish(Receipt(0, pending.time))
            try:
                return self._core.commit(pending)
            except (Conflict, KeyReused):  # named before, or by chance a number that is taken
                known = self._named_before(drafts)
        raise Conflict(f"book {self.id!r} keeps changing", book=self.id)

    def remembering(
        self, drafts: Sequence[Remembering], known: Mapping[str, Memory] | None = None
    ) -> Pending[list[Memory]]:
        """The write that remembers, worked out but not committed. ``known`` are those that are stored already.

        The commit fails with ``Conflict`` or ``KeyReused`` when one is stored that is not known here; ``remember``
        then looks and settles it.
        """
        time = self._core.clock.now()
        written = [checked(draft, self.subject) for draft in drafts]
        names = [memory_id(number) for number in self._numbers(written, time)]
        new: dict[str, tuple[Remembering, dict[str, Any]]] = {}
        for name, draft in zip(names, written, strict=True):
            plain = self._plain(draft, name, time)
            if name in new and new[name][1] != plain:
                raise _reused(draft.once, name)
            if known is None or name not in known:
                new[name] = (draft, plain)

        def finish(receipt: Receipt) -> list[Memory]:
            made = {name: from_plain(name, plain, receipt.time) for name, (_, plain) in new.items()}
            return [known[name] if known and name in known else made[name] for name in names]

        return Pending(tuple(self._writing(new, time)) if new else (), time, finish)

    def _writing(self, new: dict[str, tuple[Remembering, dict[str, Any]]], time: int) -> Iterator[Op]:
        """First the book, whose time decides the time of all, then the memories."""
        yield self._told(
            *(_event("remember", name, time, once=draft.once is not None) for name, (draft, _) in new.items())
        )
        for name, (draft, plain) in new.items():
            yield Put(MEMORY, name, to_body(plain), 0, self.scope, tags_of(self.id, draft))

    def _numbers(self, drafts: Sequence[Remembering], time: int) -> Iterator[int]:
        """One number after another, so that of two versions in one commit the latter is the later one."""
        number = min(self._ids.stream(time), _LAST - len(drafts))
        for place, draft in enumerate(drafts):
            yield number + place if draft.once is None else once_number(self.id, draft.once)

    def _plain(self, draft: Remembering, name: str, time: int) -> dict[str, Any]:
        over = draft.valid_from is None and draft.valid_to is not None and draft.valid_to <= to_datetime(time)
        if over and (draft.once is None or self._found(name) is None):  # a repetition was in time when it came first
            assert draft.valid_to is not None
            raise Invalid(
                f"valid_to ({draft.valid_to.isoformat()}) is not after now, from when on a memory is true unless it "
                "says otherwise; give valid_from as well"
            )
        return to_plain(draft)

    def _named_before(self, drafts: Sequence[Remembering]) -> dict[str, Memory]:
        """Those of the drafts that are stored under the caller's own name for them."""
        known: dict[str, Memory] = {}
        engine, tenant = self._core.engine, self._core.tenant
        for draft in (checked(draft, self.subject) for draft in drafts if draft.once is not None):
            assert draft.once is not None
            name = memory_id(once_number(self.id, draft.once))
            record = engine.get(tenant, MEMORY, name)
            if record is not None:
                if as_remembered(read_plain(record)) != as_remembered(to_plain(draft)):
                    raise _reused(draft.once, name)
                known[name] = to_memory(record)
            elif (book := self.record()) is not None and engine.read(tenant, book.mark, key=name):
                raise Erased(f"memory {name!r}, remembered once as {draft.once!r}, was erased", memory=name)
        return known

    def _told(self, *events: Event) -> Append:
        new = Put(BOOK, self.id, _EMPTY_BODY, scope=self.scope)
        return Append(BOOK, self.id, events, new=new, same=_never_again)

    # Reading

    def record(self, view: View | None = None) -> Record | None:
        """The book's own record, None before the first memory."""
        return (view or self._core.engine).get(self._core.tenant, BOOK, self.id)

    def position(self, view: View | None = None) -> int:
        """How much has happened to the book."""
        record = self.record(view)
        return 0 if record is None else record.head

    def changes(self, after: int = 0, limit: int | None = None, view: View | None = None) -> list[Happening]:
        """What happened to the book after a position, in order. A book that was erased begins anew at 1."""
        record = self.record(view)
        if record is None or record.head <= after:
            return []
        events = (view or self._core.engine).read(self._core.tenant, record.mark, after=after, limit=limit)
        return [_happening(event) for event in events]

    def find(self, id: str, view: View | None = None) -> Memory | None:
        """A memory of this book, forgotten ones as well, or None."""
        record = self._found(id, view)
        return None if record is None else to_memory(record)

    def get(self, id: str) -> Memory:
        """A memory of this book, forgotten ones as well."""
        return to_memory(self._existing(id))

    def memories(
        self,
        *,
        kind: str | None = None,
        subject: str | None = None,
        tag: str | None = None,
        limit: int | None = 100,
        forgotten: bool = False,
        view: View | None = None,
    ) -> list[Memory]:
        """List memories, the latest recorded first; with ``forgotten`` those that were forgotten instead."""
        if kind is not None and kind not in MEMORY_KINDS:
            raise Invalid(f"kind must be one of {', '.join(MEMORY_KINDS)}, not {kind!r}")
        if limit is not None:
            check_count("limit", limit)
        if tag is not None:
            check_id(tag, "tag")
        about = None if subject is None else folded(check_id(subject, "subject"))
        kinds = MEMORY_KINDS if kind is None else (kind,)
        tags = [kind_tag(self.id, name) for name in kinds] if tag is None else [label_tag(self.id, tag)]

        def wanted(memory: Memory) -> bool:
            return (
                (memory.forgotten_at is not None) == forgotten
                and (about is None or folded(memory.subject) == about)
                and memory.kind in kinds
                and (tag is None or tag in memory.tags)
            )

        if limit is not None and not forgotten and (kind, subject, tag) == (None, None, None):
            with self._still(view) as still:
                return self._last(wanted, limit, still)
        return self._listed(tags, wanted, limit, view)

    def versions(self, subject: str, key: str, view: View | None = None) -> list[Memory]:
        """Every version of one fact that is not forgotten, and every correction that concerns one."""
        check_id(subject, "subject")
        check_id(key, "key")
        with self._still(view) as still:
            found = self._tagged(fact_tag(self.id, subject, key), still)
            about = (folded(subject), folded(key))
            found = [one for one in found if one.key is not None and (folded(one.subject), folded(one.key)) == about]
            return _with_corrections(found, self._tagged(correction_tag(self.id), still)) if found else []

    def facts(self, view: View | None = None) -> list[Memory]:
        """Every version of every fact, and every correction: all that decides what is true, but what is forgotten."""
        with self._still(view) as still:
            found = self._tagged(fact_tag(self.id), still) + self._tagged(correction_tag(self.id), still)
            return list({memory.id: memory for memory in found}.values())

    def links(self, entity: str | None = None, view: View | None = None) -> list[Memory]:
        """Every link that is not forgotten, or those that begin or end at an entity."""
        if entity is None:
            return self._tagged(link_tag(self.id), view)
        ends = folded(check_id(entity, "entity"))
        found = self._tagged(link_tag(self.id, entity), view)
        return [link for link in found if ends in (folded(link.subject), folded(link.object or ""))]

    def procedures(self, view: View | None = None) -> list[Memory]:
        """How to do things, the most useful first."""
        return sorted(self._tagged(kind_tag(self.id, "procedural"), view), key=usefulness, reverse=True)

    def _tagged(self, tag: str, view: View | None) -> list[Memory]:
        return self._listed([tag], lambda memory: memory.forgotten_at is None, None, view)

    def _listed(self, tags: Sequence[str], wanted: Accept, limit: int | None, view: View | None) -> list[Memory]:
        with self._still(view) as still:
            found = self._all(tags, wanted, still) if limit is None else self._newest(tags, wanted, limit, still)
        return sorted(found, key=_age, reverse=True)

    def _all(self, tags: Sequence[str], wanted: Accept, view: View) -> list[Memory]:
        """All of them. In small pages, an engine would sort what is left again for each."""
        tenant, found = self._core.tenant, list[Memory]()
        for query in (Query(MEMORY, tag=tag, limit=_PAGE) for tag in tags):
            page = view.scan(tenant, query)
            while page:
                found += [memory for memory in map(to_memory, page) if wanted(memory)]
                more = len(page) == _PAGE
                last = (page[-1].time, page[-1].id)
                page = view.scan(tenant, msgspec.structs.replace(query, before=last)) if more else []
        return found

    def _newest(self, tags: Sequence[str], wanted: Accept, limit: int, view: View) -> list[Memory]:
        """The latest recorded ones. A scan goes by activity, and nothing is active before it was recorded; so it may
        stop at a record that was last active before the oldest that is kept."""
        kept: list[tuple[datetime, str, Memory]] = []
        for tag in tags if limit else ():
            for record in scan_all(view, self._core.tenant, Query(MEMORY, tag=tag), max(limit, _LEAST_PAGE)):
                full = len(kept) == limit
                if full and to_datetime(record.time) < kept[0][0]:
                    break
                memory = to_memory(record)
                item = (*_age(memory), memory)
                if wanted(memory) and not full:
                    heappush(kept, item)
                elif wanted(memory) and item > kept[0]:
                    heapreplace(kept, item)
        return [memory for _, _, memory in kept]

    def _last(self, wanted: Accept, limit: int, view: View) -> list[Memory]:
        """The latest recorded ones as the book's stream tells, from its end: the rest of the book is not touched."""
        book = self.record(view)
        position, found = 0 if book is None else book.head, list[Memory]()
        while book is not None and position and limit:
            mark = Mark(book.mark.stream, position)
            events = view.read(self._core.tenant, mark, limit=max(limit, _LEAST_PAGE), newest=True)
            for event in reversed(events):
                memory = self.find(_happening(event).id, view) if event.kind == "remember" else None
                if memory is None or not wanted(memory):
                    continue
                if len(found) >= limit and memory.recorded_at < found[-1].recorded_at:
                    position = 1  # what was recorded together is sorted together, so all of that is needed
                    break
                found.append(memory)
            position = min(position, events[0].position) - 1 if events else 0
        return sorted(found, key=_age, reverse=True)[:limit]

    def _still(self, view: View | None) -> AbstractContextManager[View]:
        """A view in which nothing moves: a listing of several pages is of one moment."""
        return self._core.engine.snapshot() if view is None else nullcontext(view)

    # Forgetting, and what is said about a memory

    def forget(self, id: str) -> Memory:
        """Take a memory out of everything but ``get`` and the list of forgotten ones. ``restore`` brings it back."""
        now = self._core.clock.now()
        return self._change(id, lambda plain: {"forgotten": now, **plain}, "forget")

    def restore(self, id: str) -> Memory:
        """Bring back what was forgotten."""
        return self._change(id, lambda plain: {name: plain[name] for name in plain if name != "forgotten"}, "restore")

    def used(self, id: str, helped: bool | None = None) -> Memory:
        """Count a use of a memory, and whether it helped if that is known."""
        if helped is not None and type(helped) is not bool:
            raise Invalid(f"helped is True, False or None, not {helped!r}")
        more = int(helped is True)

        def counted(plain: dict[str, Any]) -> dict[str, Any]:
            return {**plain, "uses": plain.get("uses", 0) + 1, "helped": plain.get("helped", 0) + more}

        return self._change(id, counted)

    def erase(self, id: str) -> None:
        """Remove a memory for good. Its id stays in the book's stream, its text nowhere."""
        for _ in range(_TRIES):
            record = self._existing(id)
            time = self._core.clock.now()
            ops = (self._told(_event("erase", id, time)), Delete(MEMORY, id, record.version))
            try:
                self._core.engine.commit(self._core.tenant, ops, time)
            except Conflict:
                continue
            return
        raise Conflict(f"memory {id!r} keeps changing", memory=id)

    def _change(self, id: str, change: Callable[[dict[str, Any]], dict[str, Any]], what: str | None = None) -> Memory:
        """Change what is said about a memory; again when someone else was faster. No change is no commit."""
        for _ in range(_TRIES):
            record = self._existing(id)
            old = read_plain(record)
            new = change(old)
            if new == old:
                return to_memory(record)
            time = self._core.clock.now()
            put = Put(MEMORY, id, to_body(new), record.version, record.scope, record.tags, record.expires)
            ops = (put,) if what is None else (self._told(_event(what, id, time)), put)
            try:
                self._core.engine.commit(self._core.tenant, ops, time)
            except Conflict:
                continue
            return from_plain(id, new, record.created)
        raise Conflict(f"memory {id!r} keeps changing", memory=id)

    # Never true, and no longer true

    def correct(self, id: str, instead: Remembering | None = None) -> Memory:
        """Say that a memory was never true, and what is true instead if that is known.

        What is true instead is about the same subject and key, for the same time, unless it says otherwise.
        """
        wrong = self.get(id)
        if instead is None:
            instead = Remembering(f"{id} was never true", wrong.kind, wrong.subject, trust=wrong.trust)
        else:
            instead = _in_place_of(wrong, instead)
        return self.remember([msgspec.structs.replace(instead, corrects=id)])[0]

    def end(self, id: str, at: datetime | None = None, draft: Remembering | None = None) -> Memory:
        """Say that a memory is no longer true, from a moment or from now on; ``draft`` may say it in words.

        Of a fact it ends whatever value there is at that moment.
        """
        over = self.get(id)
        moment = (
            max(to_datetime(self._core.clock.now()), over.recorded_at) if at is None else to_datetime(to_micros(at))
        )
        if moment < over.valid_from or (at is not None and moment == over.valid_from):
            start = over.valid_from.isoformat()
            raise Invalid(
                f"memory {id!r} is true from {start} on, so it cannot end before; correct what was never true"
            )
        return self.remember([_ending(over, at, draft)])[0]

    # Inside

    def _found(self, id: str, view: View | None = None) -> Record | None:
        number_of(id)
        record = (view or self._core.engine).get(self._core.tenant, MEMORY, id)
        return record if record is not None and record.scope == self.scope else None

    def _existing(self, id: str) -> Record:
        record = self._found(id)
        if record is None:
            raise NotFound(f"there is no memory {id!r} in this book", memory=id, book=self.id)
        return record


def usefulness(memory: Memory) -> tuple[float, float, datetime, str]:
    """What procedures are sorted by, most useful last: how often they helped, then importance, then the newest."""
    return (memory.helped + 1) / (memory.uses + 2), memory.importance, *_age(memory)


def _age(memory: Memory) -> tuple[datetime, str]:
    return memory.recorded_at, in_order(memory.id)


def _with_corrections(found: Iterable[Memory], corrections: Iterable[Memory]) -> list[Memory]:
    """With all that corrects one of them, and all that corrects such a correction."""
    kept = {memory.id: memory for memory in found}
    for memory in sorted(corrections, key=_age):  # what is corrected came before its correction
        if memory.corrects in kept:
            kept[memory.id] = memory
    return list(kept.values())


def _in_place_of(wrong: Memory, instead: Remembering) -> Remembering:
    return msgspec.structs.replace(
        instead,
        subject=wrong.subject if instead.subject is None else instead.subject,
        key=wrong.key if instead.key is None else instead.key,
        valid_from=wrong.valid_from if instead.valid_from is None else instead.valid_from,
        valid_to=wrong.valid_to if instead.valid_to is None else instead.valid_to,
        ended=False,
    )


def _ending(over: Memory, at: datetime | None, draft: Remembering | None) -> Remembering:
    """What says that a memory is over. It does not repeat the text: erasing that memory must leave it nowhere."""
    fact = over.key is not None
    told = draft or Remembering(f"{over.key} of {over.subject}: no longer" if fact else f"{over.id} is no longer true")
    return msgspec.structs.replace(
        told, kind=over.kind, subject=over.subject, key=over.key, valid_from=at, valid_to=None, relation=None,
        object=None, corrects=None if fact else over.id, ended=True,
    )  # fmt: skip


def _event(what: str, id: str, time: int, *, once: bool = False) -> Event:
    return Event(what, encode({"id": id}), time, id if once else None)


def _never_again(stored: Event, offered: Event) -> bool:
    """A memory of a caller's own name is written once; the second attempt has to look at what the first one wrote."""
    return False


def _happening(event: Event) -> Happening:
    plain = decode(event.body)
    if not isinstance(plain, dict) or not isinstance(plain.get("id"), str):
        raise Corrupt(f"event {event.position} of a book of memories names none; run verify")
    return Happening(event.position, event.kind, plain["id"], to_datetime(event.time))


def _reused(once: str | None, name: str) -> KeyReused:
    return KeyReused(
        f"{once!r} already names another memory ({name}); give another name, or correct that one", key=once, memory=name
    )
