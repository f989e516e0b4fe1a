"""One collection: the memories of one exact pair of user and agent, written and read.

A collection owns a stream with an event for everything that happened to it, and its memories are records of their own;
what belongs together is one commit. No memory changes because of a later one. Forgetting and counting uses change
what is recorded about a memory, by compare-and-set, never its text. A collection's time never goes back, so of two
memories in it the one that was committed later was recorded later, whatever the clocks of their writers say.

Deliberately absent: what is true (``facts``), the other collections that a handle sees (``visible``), and finding by
meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import datetime
from heapq import heappush, heapreplace
from typing import Any, Unpack

import msgspec

from holdfast.clock import to_datetime, to_micros
from holdfast.engine.codec import decode, encode
from holdfast.engine.contract import Append, Delete, Event, Mark, Op, Put, Query, Receipt, Record, Scope, View
from holdfast.errors import Conflict, Corrupt, Erased, Invalid, KeyReused, NotFound, Unsupported, quoted
from holdfast.ids import Ids, check_id
from holdfast.ledger import secrets
from holdfast.ledger.core import Core, Pending, fetch, fetch_tagged, scan_all
from holdfast.ledger.thread import check_count
from holdfast.memory.batch import WriteBatch, note_tag
from holdfast.memory.drafts import Remembering, check_trust, checked
from holdfast.memory.facts import denial, fact_of, rank, timeline
from holdfast.memory.filters import ListFilters, MemoryFilter, age
from holdfast.memory.metadata import count_of
from holdfast.memory.names import (
    COLLECTION,
    MEMORY,
    collection_id,
    correction_tag,
    fact_tag,
    folded,
    key_tag,
    kind_tag,
    label_tag,
    link_tag,
    memory_id,
    number_of,
    once_number,
    subject_of,
    type_tag,
    vector_tag,
)
from holdfast.memory.stored import (
    as_remembered,
    from_plain,
    read_plain,
    readable,
    rewritten,
    to_body,
    to_memory,
    to_plain,
)
from holdfast.records import Memory, OwnVector

_TRIES = 1_000  # of many concurrent changes, one gets through at a time
_LEAST_PAGE = 100
_LARGEST_PAGE = 1_000
_MANY = 300  # of more than that, all of their sort are read at once
_PAGE = 500_000
_LAST = 2**63 - 1
_EMPTY_BODY = encode({})
Accept = Callable[[Memory], bool]


class MemoryCollection:
    """The memories of one pair of user and agent, either of whom may be absent."""

    def __init__(self, core: Core, ids: Ids, scope: Scope) -> None:
        self._core, self._ids = core, ids
        self.scope = Scope(scope.user, scope.agent)
        self.id = collection_id(self.scope)
        self.subject = subject_of(self.scope)

    def __repr__(self) -> str:
        return f"Collection(user={self.scope.user!r}, agent={self.scope.agent!r})"

    # Remembering

    def remember(self, drafts: Sequence[Remembering]) -> list[Memory]:
        """Write memories in one durable commit and return them in the order of their drafts.

        A memory with the name of an earlier one (``once``) is not written again: the stored one is returned, even
        if it was forgotten since. With other content it raises ``KeyReused``; if it was erased, ``Erased``.
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
        raise Conflict(f"collection {self.id!r} keeps changing", collection=self.id)

    def remembering(
        self, drafts: Sequence[Remembering], known: Mapping[str, Memory] | None = None
    ) -> Pending[list[Memory]]:
        """The write that remembers, prepared but not committed. ``known`` are those already stored.

        The commit fails with ``Conflict`` or ``KeyReused`` when one is stored that is not known here; ``remember``
        then reads it and decides.
        """
        time = self._core.clock.now()
        written = [checked(draft, self.subject) for draft in drafts]
        self._check_lengths(written)
        names = [memory_id(number) for number in self._numbers(written, time)]
        plains = [self._plain(draft, name, time) for draft, name in zip(written, names, strict=True)]
        tags = [note_tag(self.id, draft, plain) for draft, plain in zip(written, plains, strict=True)]
        batch = WriteBatch(self.id, time, self._notes([tag for tag in tags if tag is not None]))
        for place, (draft, plain, tag) in enumerate(zip(written, plains, tags, strict=True)):
            name = names[place]
            if name in batch.new and batch.new[name][1] != plain:
                raise _reused(draft.once, name)
            if known is None or name not in known:
                names[place] = batch.add(name, draft, plain, tag)

        def finish(receipt: Receipt) -> list[Memory]:
            made = {**batch.memories(receipt.time), **(known or {})}
            return [made[name] for name in names]

        return Pending((*self._writing(batch, time), *batch.writing()), time, finish)

    def _writing(self, batch: WriteBatch, time: int) -> Iterator[Op]:
        """First the collection, whose time decides the time of all, then the memories."""
        new = batch.new
        if new:
            yield self._told(
                *(_event("remember", name, time, once=draft.once is not None) for name, (draft, _) in new.items())
            )
        for name, (_, plain) in new.items():
            yield Put(MEMORY, name, to_body(plain), 0, self.scope, batch.tags(name))

    def _notes(self, tags: Sequence[str]) -> dict[str, Record]:
        """The notes under some tags, but those that were forgotten, corrected or ended."""
        found = fetch_tagged(self._core.engine, self._core.tenant, MEMORY, tags, _PAGE) if tags else {}
        standing = [(tag, one) for tag, notes in found.items() for one in notes if "forgotten" not in read_plain(one)]
        over = {
            one.corrects
            for one in self._with_tags([correction_tag(self.id, one.id) for _, one in standing], self._core.engine)
        }
        return {tag: one for tag, one in standing if one.id not in over}

    def _check_lengths(self, drafts: Sequence[Remembering]) -> None:
        """Refuse a vector that is not as long as the others of its model: none of them could be compared with it."""
        lengths: dict[str, int] = {}
        for vector in (draft.vector for draft in drafts if draft.vector is not None):
            length = lengths.get(vector.model)
            if length is None:
                length = self._length(vector)
            lengths[vector.model] = length
            if len(vector.data) != length:
                here, given = count_of(length), count_of(len(vector.data))
                raise Invalid(
                    f"the vectors of {vector.model!r} have {here} numbers, not {given}; two models need two names",
                    model=vector.model,
                )

    def _length(self, vector: OwnVector) -> int:
        """How long the data of this model's vectors is here; that of this one if it is the first."""
        tag = vector_tag(self.id, vector.model)
        some = fetch_tagged(self._core.engine, self._core.tenant, MEMORY, [tag], 1).get(tag, ())
        known = next((one.vector for one in readable(some) if one.vector is not None), vector)
        return len(known.data)

    def _numbers(self, drafts: Sequence[Remembering], time: int) -> Iterator[int]:
        """One number after another, so that of two versions in one commit the latter is the later one."""
        number = min(self._ids.stream(time), _LAST - len(drafts))
        for place, draft in enumerate(drafts):
            yield number + place if draft.once is None else once_number(self.id, draft.once)

    def _plain(self, draft: Remembering, name: str, time: int) -> dict[str, Any]:
        if draft.corrects is not None:
            number_of(draft.corrects)
        over = draft.valid_from is None and draft.valid_to is not None and draft.valid_to <= to_datetime(time)
        if over and (draft.once is None or self._found(name) is None):  # a repetition was in time when it came first
            assert draft.valid_to is not None
            raise Invalid(
                f"valid_to ({draft.valid_to.isoformat()}) is not after now, the default for valid_from; "
                "give valid_from as well"
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
            elif (collection := self.record()) is not None and engine.read(tenant, collection.mark, key=name):
                raise Erased(f"memory {name!r}, remembered once as {draft.once!r}, was erased", memory=name)
        return known

    def _told(self, *events: Event) -> Append:
        new = Put(COLLECTION, self.id, _EMPTY_BODY, scope=self.scope)
        return Append(COLLECTION, self.id, events, new=new, same=_never_again)

    # Reading

    def record(self, view: View | None = None) -> Record | None:
        """The collection's own record, None before the first memory."""
        return (view or self._core.engine).get(self._core.tenant, COLLECTION, self.id)

    def find(self, id: str, view: View | None = None) -> Memory | None:
        """A memory of this collection, forgotten ones as well, or None."""
        record = self._found(id, view)
        return None if record is None else to_memory(record)

    def get(self, id: str) -> Memory:
        """A memory of this collection, forgotten ones as well."""
        return self._one(id)

    def memories(
        self, *, limit: int | None = 100, view: View | None = None, **only: Unpack[ListFilters]
    ) -> list[Memory]:
        """List memories, latest first; with ``forgotten``, the forgotten ones instead."""
        wanted = MemoryFilter.of(**only)
        if limit is not None:
            check_count("limit", limit)
            if wanted.by_stream is not None:
                with self._still(view) as still:
                    found = self._last(wanted, limit, still)
                if found is not None:
                    return found
        if wanted.tag is not None:
            tags = [label_tag(self.id, wanted.tag)]
        elif wanted.type is not None:
            tags = [type_tag(self.id, wanted.type)]
        else:
            tags = [kind_tag(self.id, kind) for kind in wanted.kinds]
        return self._listed(tags, wanted.accepts, limit, view)

    def vectors(self, model: str | None = None, limit: int | None = None, view: View | None = None) -> list[Memory]:
        """The memories with a vector of their caller's; those of one model when it is named."""
        return self._listed([vector_tag(self.id, model)], lambda memory: memory.vector is not None, limit, view)

    def since(self, position: int, mark: Mark) -> list[Memory] | None:
        """What was remembered after a position of the stream, up to a mark; None if something was erased since."""
        events = self._core.engine.read(self._core.tenant, mark, after=position)
        if any(event.kind == "erase" for event in events):
            return None
        return list(self._remembered(events, self._core.engine))

    def values(
        self, key: str, subject: str | None = None, view: View | None = None, *, forgotten: bool | None = False
    ) -> list[Memory]:
        """Every value of the facts with a key, or of one subject's alone; ``forgotten`` None: whether or not."""
        check_id(key, "key")
        about = None if subject is None else folded(check_id(subject, "subject"))
        tag = key_tag(self.id, key) if subject is None else fact_tag(self.id, subject, key)

        def wanted(memory: Memory) -> bool:
            fact = fact_of(memory)
            if fact is None or fact[1] != folded(key) or (about is not None and fact[0] != about):
                return False  # another text with the same hash
            return forgotten is None or (memory.forgotten_at is not None) == forgotten

        return self._listed([tag], wanted, None, view)

    def versions(self, subject: str, key: str, view: View | None = None) -> list[Memory]:
        """Every version of one fact that is not forgotten, and every correction that concerns one."""
        return self.deciding([(subject, key)], view=view)

    def deciding(
        self, facts: Iterable[tuple[str, str]], also: Iterable[Memory] = (), view: View | None = None
    ) -> list[Memory]:
        """All that decides whether these facts (subject and key) and some memories of this collection are true.

        That is every value of the facts, and every correction of one or of the memories, which are given back too.
        """
        named = {(folded(subject), folded(key)): (key, subject) for subject, key in facts}
        with self._still(view) as still:
            if len(named) > _MANY:
                found = [one for one in self._tagged(fact_tag(self.id), still) if fact_of(one) in named]
            else:
                tags = [fact_tag(self.id, subject, key) for key, subject in named.values()]
                found = [one for one in self._with_tags(tags, still) if fact_of(one) in named]
            return self._with_corrections([*found, *also], still)

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
        """How to do things, most useful first."""
        return sorted(self._tagged(kind_tag(self.id, "procedural"), view), key=usefulness, reverse=True)

    def _with_corrections(self, found: Iterable[Memory], view: View) -> list[Memory]:
        """With all that corrects one of them, and all that corrects such a correction."""
        kept = {memory.id: memory for memory in found}
        waiting = list(kept)
        if len(kept) > _MANY:
            waiting = []
            for memory in sorted(self._tagged(correction_tag(self.id), view), key=age):
                if memory.corrects in kept:  # what is corrected came before its correction
                    kept[memory.id] = memory
        while waiting:
            more = self._with_tags([correction_tag(self.id, id) for id in waiting], view)
            waiting = [one.id for one in more if one.id not in kept and one.corrects in kept]
            kept.update((one.id, one) for one in more if one.corrects in kept)
        return list(kept.values())

    def _with_tags(self, tags: Sequence[str], view: View) -> list[Memory]:
        """What has one of these tags and is not forgotten, by few questions."""
        found = fetch_tagged(view, self._core.tenant, MEMORY, tags, _PAGE)
        return [one for records in found.values() for one in readable(records) if one.forgotten_at is None]

    def _tagged(self, tag: str, view: View | None) -> list[Memory]:
        return self._listed([tag], lambda memory: memory.forgotten_at is None, None, view)

    def _listed(self, tags: Sequence[str], wanted: Accept, limit: int | None, view: View | None) -> list[Memory]:
        with self._still(view) as still:
            found = self._all(tags, wanted, still) if limit is None else self._newest(tags, wanted, limit, still)
        return sorted(found, key=age, reverse=True)

    def _all(self, tags: Sequence[str], wanted: Accept, view: View) -> list[Memory]:
        """All of them. In small pages, an engine would sort what is left again for each."""
        tenant, found = self._core.tenant, list[Memory]()
        for query in (Query(MEMORY, tag=tag, limit=_PAGE) for tag in tags):
            page = view.scan(tenant, query)
            while page:
                found += [memory for memory in readable(page) if wanted(memory)]
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
                for memory in filter(wanted, readable([record])):
                    item = (*age(memory), memory)
                    if not full:
                        heappush(kept, item)
                    elif item > kept[0]:
                        heapreplace(kept, item)
        return [memory for _, _, memory in kept]

    def _last(self, wanted: MemoryFilter, limit: int, view: View) -> list[Memory] | None:
        """The latest recorded ones, read from the end of the stream: the rest is not touched.

        None when there are too few among as many as the filter is worth: then they are found by a tag.
        """
        collection = self.record(view)
        if collection is None or not limit:
            return []
        position, found = self._end(collection, wanted.before, view), list[Memory]()
        page, left = limit, wanted.by_stream or 0
        while position:
            if len(found) < limit and left <= 0:
                return None
            left -= page
            mark = Mark(collection.mark.stream, position)
            events = view.read(self._core.tenant, mark, limit=page, newest=True)
            for memory in self._remembered(reversed(events), view):
                if not wanted.accepts(memory):
                    continue
                if len(found) >= limit and memory.recorded_at < found[-1].recorded_at:
                    position = 1  # what was recorded together is sorted together, so all of that is needed
                    break
                found.append(memory)
            position = min(position, events[0].position) - 1 if events else 0
            page = min(2 * page, _LARGEST_PAGE)
        return sorted(found, key=age, reverse=True)[:limit]

    def _end(self, collection: Record, before: Memory | None, view: View) -> int:
        """The last position at which something was recorded as early as the end of the page before, or earlier."""
        low, high = 0, collection.head
        last = high if before is None else to_micros(before.recorded_at)
        while before is not None and low < high:
            middle = (low + high + 1) // 2
            events = view.read(self._core.tenant, Mark(collection.mark.stream, middle), after=middle - 1)
            low, high = (middle, high) if events and events[0].time <= last else (low, middle - 1)
        return high

    def _remembered(self, events: Iterable[Event], view: View) -> Iterator[Memory]:
        """The memories that events say were remembered, as far as they are still here and can be read."""
        ids = [id for event in events if event.kind == "remember" and (id := id_of(event)) is not None]
        records = fetch(view, self._core.tenant, MEMORY, ids)
        here = (records[id] for id in ids if id in records and records[id].scope == self.scope)
        return readable(here)

    def _still(self, view: View | None) -> AbstractContextManager[View]:
        """A view in which nothing moves: a listing of several pages is of one moment."""
        return self._core.engine.snapshot() if view is None else nullcontext(view)

    # Forgetting, and what is said about a memory

    def forget(self, id: str) -> Memory:
        """Take a memory out of everything but ``get`` and the list of forgotten ones. ``restore`` brings it back."""
        now = self._core.clock.now()
        return self._change(id, lambda plain: {"forgotten": now, **plain}, "forget")

    def unforget(self, id: str) -> Memory:
        """Bring back a forgotten memory."""
        return self._change(id, lambda plain: {name: plain[name] for name in plain if name != "forgotten"}, "restore")

    def used(self, id: str, helped: bool | None = None) -> Memory:
        """Count a use of a memory, and whether it helped if that is known."""
        if helped is not None and type(helped) is not bool:
            raise Invalid(f"helped is True, False or None, not {quoted(helped)}")
        more = int(helped is True)

        def counted(plain: dict[str, Any]) -> dict[str, Any]:
            uses, helped = plain.get("uses", 0) + 1, plain.get("helped", 0) + more
            return {**plain, "uses": uses, "helped": helped, "used": self._core.clock.now()}

        return self._change(id, counted)

    def recalled(self, ids: Sequence[str]) -> None:
        """Count that memories were recalled, in one commit. Where another process changes one meanwhile, it is not
        counted: a count is not worth a second try."""
        time = self._core.clock.now()
        ops = [
            rewritten(record, {**plain, "recalls": plain.get("recalls", 0) + 1, "recalled": time})
            for record in fetch(self._core.engine, self._core.tenant, MEMORY, ids).values()
            if record.scope == self.scope and (plain := read_plain(record))
        ]
        if ops:
            with suppress(Conflict):
                self._core.write(tuple(ops), time)

    def erase(self, id: str) -> None:
        """Remove a memory for good, even a damaged one. Its id stays in the collection's stream, its text nowhere."""
        for _ in range(_TRIES):
            record = self._existing(id)
            time = self._core.clock.now()
            gone = Delete(MEMORY, id, record.version, bury=True)
            ops = (self._told(_event("erase", id, time)), gone, secrets.erased())
            try:
                self._core.write(ops, time)
            except Conflict:
                continue
            return
        raise Conflict(f"memory {id!r} keeps changing", memory=id)

    def _change(self, id: str, change: Callable[[dict[str, Any]], dict[str, Any]], what: str | None = None) -> Memory:
        """Change what is recorded about a memory; retry if another process did so first. No change, no commit."""
        for _ in range(_TRIES):
            record = self._existing(id)
            old = read_plain(record)
            new = change(old)
            if new == old:
                return to_memory(record)
            time = self._core.clock.now()
            put = rewritten(record, new)
            ops = (put,) if what is None else (self._told(_event(what, id, time)), put)
            try:
                self._core.write(ops, time)
            except Conflict:
                continue
            return from_plain(id, new, record.created)
        raise Conflict(f"memory {id!r} keeps changing", memory=id)

    # Never true, and no longer true

    def correct(self, id: str, instead: Remembering | None = None) -> Memory:
        """Mark a memory as never true, and say what is true instead if that is known.

        What is true instead is about the same subject and key, for the same time, unless it says otherwise. It must be
        trusted as much as what it corrects.
        """
        wrong = self.get(id)
        if instead is None:
            instead = Remembering(denial(id), wrong.kind, wrong.subject, trust=wrong.trust)
        else:
            instead = _in_place_of(wrong, instead)
        _refuse_less_trust(wrong, instead, "correct")
        return self.remember([msgspec.structs.replace(instead, corrects=id)])[0]

    def end(
        self,
        id: str,
        at: datetime | None = None,
        draft: Remembering | None = None,
        beside: Sequence[MemoryCollection] = (),
    ) -> Memory:
        """Mark a memory as no longer true, from a moment or from now on; ``draft`` may say it in words.

        A value of a fact must still be the value at that moment, in this collection and those ``beside`` it; one that
        has ended cannot end, and later values are not touched. The words must be trusted as much as what they end.
        """
        for _ in range(_TRIES):
            with self._core.engine.snapshot() as view:
                over = self._one(id, view)
                ending = _ending(over, at, draft)
                _refuse_less_trust(over, ending, "end")
                if ending.once is not None and (known := self._named_before([ending])):
                    return next(iter(known.values()))
                collection = self.record(view)
                assert collection is not None
                now = max(self._core.clock.now(), collection.time)
                moment = to_datetime(now if at is None else to_micros(at))
                _refuse_before(over, at, moment)
                if over.key is not None:
                    around = [one for each in (self, *beside) for one in each.versions(over.subject, over.key, view)]
                    _refuse_over(over, around, moment)
            pending = self.remembering([ending])
            told = msgspec.structs.replace(pending.ops[0], expect=collection.head)  # nothing came in between
            try:
                return self._core.commit(pending._replace(ops=(told, *pending.ops[1:])))[0]
            except Conflict:
                continue
        raise Conflict(f"collection {self.id!r} keeps changing", collection=self.id)

    # Inside

    def _found(self, id: str, view: View | None = None) -> Record | None:
        number_of(id)
        record = (view or self._core.engine).get(self._core.tenant, MEMORY, id)
        return record if record is not None and record.scope == self.scope else None

    def _one(self, id: str, view: View | None = None) -> Memory:
        return to_memory(self._existing(id, view))

    def _existing(self, id: str, view: View | None = None) -> Record:
        record = self._found(id, view)
        if record is None:
            raise NotFound(f"there is no memory {id!r} in this collection", memory=id, collection=self.id)
        return record


def usefulness(memory: Memory) -> tuple[float, float, datetime, str]:
    """What procedures are sorted by, most useful last: how often they helped, then importance, then the newest."""
    return (memory.helped + 1) / (memory.uses + 2), memory.importance, *age(memory)


def _in_place_of(wrong: Memory, instead: Remembering) -> Remembering:
    return msgspec.structs.replace(
        instead,
        subject=wrong.subject if instead.subject is None else instead.subject,
        key=wrong.key if instead.key is None else instead.key,
        valid_from=wrong.valid_from if instead.valid_from is None else instead.valid_from,
        valid_to=wrong.valid_to if instead.valid_to is None else instead.valid_to,
        type=wrong.type if instead.type is None else instead.type,
        metadata=wrong.metadata if instead.metadata is None else instead.metadata,
        ended=False,
    )


def _ending(over: Memory, at: datetime | None, draft: Remembering | None) -> Remembering:
    """The memory that ends another. It does not repeat the text: erasing that memory must leave it nowhere."""
    fact = over.key is not None
    words = f"{over.key} of {over.subject}: no longer" if fact else f"{over.id} is no longer true"
    told = draft or Remembering(words, trust=over.trust)
    return msgspec.structs.replace(
        told, kind=over.kind, subject=over.subject, key=over.key, valid_from=at, valid_to=None, relation=None,
        object=None, corrects=None if fact else over.id, ended=True,
    )  # fmt: skip


def _refuse_less_trust(about: Memory, draft: Remembering, what: str) -> None:
    if rank(check_trust(draft.trust)) < rank(about.trust):
        raise Invalid(
            f"memory {about.id!r} is {about.trust}, and something {draft.trust} cannot {what} it; if you vouch for "
            f"it, give trust={about.trust!r}",
            memory=about.id,
        )


def _refuse_before(over: Memory, at: datetime | None, moment: datetime) -> None:
    if moment < over.valid_from or (at is not None and moment == over.valid_from):
        start = over.valid_from.isoformat()
        raise Invalid(
            f"memory {over.id!r} is true from {start} on and cannot end before that; if it was never true, correct it"
        )


def _refuse_over(over: Memory, around: Iterable[Memory], moment: datetime) -> None:
    """Refuse to end a value that is no longer current: the end would apply to the current value instead."""
    version = next((one for one in timeline(around) if one.memory.id == over.id), None)
    if version is None:
        raise Invalid(f"memory {over.id!r} was forgotten, so there is nothing to end; unforget it first")
    if version.corrected_by is not None:
        raise Invalid(f"memory {over.id!r} was never true ({version.corrected_by!r} corrects it), so it cannot end")
    if version.until is not None and version.until <= moment:
        since = version.until.isoformat()
        if version.superseded_by is None:
            raise Invalid(f"memory {over.id!r} already ended at {since}")
        by = version.superseded_by
        raise Invalid(f"memory {over.id!r} already ended at {since}, when {by!r} began; did you mean to end that one?")


def _event(what: str, id: str, time: int, *, once: bool = False) -> Event:
    return Event(what, encode({"id": id}), time, id if once else None)


def _never_again(stored: Event, offered: Event) -> bool:
    """A memory of a caller's own name is written once; the second attempt has to look at what the first one wrote."""
    return False


def id_of(event: Event) -> str | None:
    """The memory that something happened to; None when the event is damaged."""
    try:
        plain = decode(event.body)
    except (Corrupt, Unsupported):
        return None
    id = plain.get("id") if isinstance(plain, dict) else None
    return id if isinstance(id, str) else None


def _reused(once: str | None, name: str) -> KeyReused:
    return KeyReused(
        f"{once!r} already names another memory ({name}); give another name, or correct that one", key=once, memory=name
    )
