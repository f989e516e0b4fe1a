"""The state of a thread: typed documents saved as revisions, never overwritten.

A revision is an event in the thread's state stream; its number is its position. What is stored is the value as plain
data with the name and version of its schema, and when each tracked field was last confirmed. Loading migrates and
validates in memory; the stored bytes change only with the next save, which is compare-and-set. Refreshers run outside
any commit. Deliberately absent: what a schema, a path or freshness means (see their modules).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Literal, NamedTuple

import msgspec

from holdfast.checks import check_whole
from holdfast.clock import to_datetime, to_micros
from holdfast.engine.codec import decode, encode
from holdfast.engine.contract import Append, Event, Guard, Mark, Op, Put, Receipt, Record, Scope
from holdfast.errors import Conflict, Corrupt, Invalid, NotFound, Stale, quoted
from holdfast.ids import check_id
from holdfast.ledger import freshness, json_path
from holdfast.ledger import schema as schemas
from holdfast.ledger.core import Core
from holdfast.ledger.freshness import Marks
from holdfast.ledger.schema import PLAIN, Schema, Where
from holdfast.records import Loaded, Revision

Expect = int | Literal["any"] | None
OnStale = Literal["report", "refresh", "raise"]
_TRIES = 1_000  # of many who change one state at once only one gets through at a time
_ROUNDS = 20  # of asking the outside world while others keep saving
_PAGE = 50
_EMPTY = encode({})
_log = logging.getLogger(__name__)


class StateDocument(msgspec.Struct, frozen=True):
    """What a revision holds."""

    schema: str
    version: int
    value: Any
    confirmed: Marks = {}
    by: str = ""


class StateSave(NamedTuple):
    """A save that is worked out: its operations, those that must come before the thread is written to, and how to read
    the revision number off the receipt of a commit in which it comes last."""

    before: tuple[Op, ...]
    ops: tuple[Op, ...]
    finish: Callable[[Receipt], int]


class _Base(NamedTuple):
    """What a save follows. ``line`` is the version of the state's record, which every rewind raises: revision 3 before
    a rewind and revision 3 after it are two."""

    revision: int
    document: StateDocument | None = None
    line: int | None = None


class Basis(NamedTuple):
    """What a change is worked out on: the revision, its value, and the schema to save the next one under."""

    base: _Base
    value: Any
    schema: Any


class _Current(NamedTuple):
    """A revision in the form today's code works with."""

    revision: int
    time: int
    document: StateDocument
    schema: Schema
    value: Any
    migrated_from: int | None


def advised(error: Conflict) -> Conflict:
    """A refused save with what to do about it; any other conflict as it is."""
    found, based_on = error.facts.get("actual"), error.facts.get("expected")
    if error.facts.get("kind") != "state" or found is None:
        return error
    return Conflict(
        f"the state of thread {error.facts['id']!r} is at revision {found}, and yours is based on {based_on}: load it "
        f"first with thread.state(), or pass expect={found} to replace that revision, or expect='any' to overwrite",
        **error.facts,
    )


class StateBook:
    """The revisions of one thread's state. It remembers the one it last loaded or saved, for compare-and-set."""

    def __init__(self, core: Core, thread: str, scope: Scope) -> None:
        self._core = core
        self._thread = thread
        self._scope = scope
        self._seen: _Base | None = None
        self._latest: _Base | None = None
        self._loaded_as = ""  # the schema that this handle last loaded the state with

    # Where things are

    def record(self) -> Record | None:
        return self._core.engine.get(self._core.tenant, "state", self._thread)

    def mark_at(self, record: Record, time: int) -> Mark | None:
        """The mark of the revision that was current at a moment."""
        event = self._event_at(record, time)
        return None if event is None else Mark(record.mark.stream, event.position)

    def forget(self) -> None:
        """Forget what was seen, because the thread was moved: an older value must not be saved over it unseen."""
        self._seen = self._latest = None

    # Loading

    def load(
        self,
        type: Any = None,
        *,
        default: Any = None,
        revision: int | None = None,
        as_of: datetime | None = None,
        on_stale: Literal["report", "raise"] = "report",
    ) -> Loaded[Any]:
        newest = revision is None and as_of is None
        record = self.record()
        event = self._find(record, revision, as_of)
        if event is None:
            if newest:
                self._seen = _Base(0, None, None if record is None else record.version)
                self._loaded_as = "" if type is None else schemas.find(self._core.schemas, type).name
            return Loaded(default, 0)
        loaded = self._loaded(self._current(event, type))
        if newest:
            self._see(record, event)
            self._loaded_as = loaded.schema
        if on_stale != "raise" or not (loaded.stale or loaded.must_verify):
            return loaded
        fields = tuple(dict.fromkeys((*loaded.must_verify, *(field.path for field in loaded.stale))))
        where = f"state of thread {self._thread!r}, revision {loaded.revision}"
        raise Stale(
            f"{where}: verify {', '.join(fields)} before acting on it",
            thread=self._thread, revision=loaded.revision, fields=fields,
            stale=loaded.stale, must_verify=loaded.must_verify,
        )  # fmt: skip

    def basis(self, type: Any = None, *, default: Any = None, plainly: bool = False, again: bool = False) -> Basis:
        """The revision to base a change on; it does not count as seen by the caller of this handle.

        The one that this handle last wrote or read is taken to be current, because the commit checks that; ``again``
        asks the store. ``plainly`` gives plain data in today's form; it may be shared, and is replaced, never changed.
        """
        base = None if again else self._latest
        if base is None:
            record = self.record()
            event = self._find(record)
            line = None if record is None else record.version
            base = _Base(0, None, line) if event is None else _Base(event.position, to_document(event), line)
            self._latest = base
        if base.document is None:
            return Basis(base, {} if plainly else default, None if plainly else type)
        current = self._brought(base.document, base.revision, 0, self._type(base.document) if plainly else type)
        if plainly:
            return Basis(base, current.value, None if current.schema is PLAIN else current.schema.type)
        return Basis(base, schemas.revive(current.schema, current.value, Where(self._thread, base.revision)), type)

    def unseen(self, saving: StateSave, base: _Base) -> Callable[[Receipt], int]:
        """How to end a save whose base the caller may not have seen: then the new revision is unseen too."""

        def finish(receipt: Receipt) -> int:
            seen = self._seen
            revision = saving.finish(receipt)
            if seen is None or (seen.revision, seen.line) != (base.revision, base.line):
                self._seen = seen
            return revision

        return finish

    def _see(self, record: Record | None, event: Event) -> None:
        """Remember a revision. Its document is decoded again, because callers may change the value they got."""
        self._seen = _Base(event.position, to_document(event), None if record is None else record.version)

    def _find(self, record: Record | None, revision: int | None = None, as_of: datetime | None = None) -> Event | None:
        if revision is not None and as_of is not None:
            raise Invalid("give either revision or as_of")
        if revision is not None:
            check_whole("a revision", revision)
        if record is None or not record.head:
            if revision is not None:
                raise self._no_revision(revision, 0)
            return None
        if as_of is not None:
            return self._event_at(record, to_micros(as_of))
        wanted = record.head if revision is None else revision
        if not 1 <= wanted <= record.head:
            raise self._no_revision(wanted, record.head)
        return self._event(record, wanted)

    def _no_revision(self, revision: int, head: int) -> NotFound:
        has = f"has revisions 1 to {head}" if head else "has no saved state"
        return NotFound(
            f"thread {self._thread!r} {has}, not {quoted(revision)}", thread=self._thread, revision=revision
        )

    def _event(self, record: Record, revision: int) -> Event:
        mark = Mark(record.mark.stream, revision)
        found = self._core.engine.read(self._core.tenant, mark, after=revision - 1)
        if not found:
            self._refuse_when_gone(record)
            raise Corrupt(
                f"state revision {revision} of thread {self._thread!r} is missing; run verify", thread=self._thread
            )
        return found[0]

    def _refuse_when_gone(self, record: Record) -> None:
        """Data erased between two reads is not damaged."""
        now = self.record()
        if now is None or now.created != record.created:
            raise NotFound(f"thread {self._thread!r} was erased while its state was read", thread=self._thread)

    def _event_at(self, record: Record, time: int) -> Event | None:
        return next((event for event in self._backwards(record) if event.time <= time), None)

    def _backwards(self, record: Record) -> Iterator[Event]:
        position = record.head
        while position:
            mark = Mark(record.mark.stream, position)
            events = self._core.engine.read(self._core.tenant, mark, limit=_PAGE, newest=True)
            if not events:
                return
            yield from reversed(events)
            position = events[0].position - 1

    def _current(self, event: Event, type: Any = None) -> _Current:
        return self._brought(to_document(event), event.position, event.time, type)

    def _brought(self, document: StateDocument, revision: int, time: int, type: Any) -> _Current:
        """Bring a stored revision to today's schema, in memory."""
        where = Where(self._thread, revision)
        if type is dict:  # as stored, whatever it is
            return _Current(revision, time, document, PLAIN, document.value, None)
        name = document.schema
        if type is not None:
            name = self._name_for(document, schemas.find(self._core.schemas, type), where)
        value, migrated_from = schemas.migrate(self._core.schemas, name, document.version, document.value, where)
        schema = schemas.registered(self._core.schemas, name, where)
        if migrated_from is not None:
            marks = freshness.moved(schema, document.value, document.confirmed, value)
            document = msgspec.structs.replace(document, confirmed=marks)
        return _Current(revision, time, document, schema, value, migrated_from)

    def _name_for(self, document: StateDocument, wanted: Schema, where: Where) -> str:
        """The schema to read a document with. A plain dict gets one through its migration from version 0."""
        if document.schema and document.schema != wanted.name:
            raise Invalid(
                f"{where}: the state is of schema {document.schema!r}, not {wanted.name!r}",
                thread=where.thread, revision=where.revision, schema=document.schema, wanted=wanted.name,
            )  # fmt: skip
        return wanted.name

    def _loaded(self, current: _Current) -> Loaded[Any]:
        document, schema, where = current.document, current.schema, Where(self._thread, current.revision)
        value, defaulted = schemas.revived(schema, current.value, where)
        report = freshness.report(schema, current.value, document.confirmed, self._core.clock.now())
        version = document.version if schema is PLAIN else schema.version
        return Loaded(
            value, current.revision, schema.name or document.schema, version, current.migrated_from,
            to_datetime(current.time), report.stale, report.must_verify, defaulted,
        )  # fmt: skip

    # Saving

    def save(
        self,
        value: Any,
        *,
        expect: Expect = None,
        schema: Any = None,
        by: str = "agent",
        key: str | None = None,
        touch: Op,
    ) -> int:
        for _ in range(_TRIES):
            time = self._core.clock.now()
            saving = self.saving(value, expect=expect, schema=schema, by=by, key=key, time=time)
            try:
                return self._commit(saving, touch, time)
            except Conflict as error:
                if expect != "any":
                    raise advised(error) from None
        raise Conflict(f"the state of thread {self._thread!r} keeps changing", thread=self._thread)

    def saving(
        self,
        value: Any,
        *,
        expect: Expect = None,
        schema: Any = None,
        by: str = "agent",
        key: str | None = None,
        time: int,
        base: _Base | None = None,
    ) -> StateSave:
        """Prepare a save: validate, carry over confirmations from the revision it is based on, encode."""
        base = self._base(expect) if base is None else base
        chosen = self._schema_of(value, schema, base)
        plain = schemas.prepare(chosen, value, Where(self._thread, base.revision + 1))
        old_value, old_marks = self._carried(base, chosen)
        marks = freshness.carry(chosen, old_value, old_marks, plain, now=time, by=by)
        return self._saving(StateDocument(chosen.name, chosen.version, plain, marks, by), base, time, key)

    def patch(self, path: str, value: Any, *, expect: int | None, by: str, touch: Op) -> int:
        steps, plain = json_path.parse(path, append=True), schemas.dump(value)

        def change(current: _Current, now: int) -> tuple[Any, Marks]:
            new = json_path.with_value(current.value, steps, plain)
            return new, freshness.carry(current.schema, current.value, current.document.confirmed, new, now=now, by=by)

        return self._rewrite(change, expect, by, touch)

    def confirm(self, path: str, *, by: str, touch: Op) -> int:
        def change(current: _Current, now: int) -> tuple[Any, Marks]:
            return freshness.confirmed(current.schema, current.value, current.document.confirmed, path, now=now, by=by)

        return self._rewrite(change, None, by, touch)

    def _rewrite(
        self,
        change: Callable[[_Current, int], tuple[Any, Marks]],
        expect: int | None,
        by: str,
        touch: Op,
        type: Any = None,
    ) -> int:
        """Turn the current revision into the next; without ``expect``, retry if another process did so first."""
        if expect is not None:
            check_whole("expect is the number of a revision, which", expect)
        for _ in range(_TRIES):
            record = self.record()
            event = self._find(record)
            if record is None or event is None:
                raise NotFound(f"thread {self._thread!r} has no saved state yet", thread=self._thread)
            if expect is not None and expect != event.position:
                raise Conflict(
                    f"state of thread {self._thread!r} is at revision {event.position}, not {quoted(expect)}",
                    thread=self._thread, expected=expect, actual=event.position,
                )  # fmt: skip
            current = self._current(event, self._type(to_document(event)) if type is None else type)
            time = self._core.clock.now()
            changed, marks = change(current, time)
            value = schemas.prepare(current.schema, changed, Where(self._thread, event.position + 1))
            document = StateDocument(current.schema.name, current.schema.version, value, marks, by)
            base = _Base(event.position, None, record.version)
            saving = self._saving(document, base, time, None)
            try:
                return self._commit_rewrite(saving, base, touch, time)
            except Conflict:
                if expect is not None:
                    raise
        raise Conflict(f"the state of thread {self._thread!r} keeps changing", thread=self._thread)

    def _commit_rewrite(self, saving: StateSave, base: _Base, touch: Op, time: int) -> int:
        """Commit a change of the current revision. A caller that has not seen that revision has not seen the new one
        either, so its next save must not count as based on it."""
        seen = self._seen
        revision = self._commit(saving, touch, time)
        if seen is None or (seen.revision, seen.line) != (base.revision, base.line):
            self._seen = seen
        return revision

    def _commit(self, saving: StateSave, touch: Op, time: int) -> int:
        ops = (*saving.before, touch, *saving.ops)
        return saving.finish(self._core.write(ops, time))

    def _saving(self, document: StateDocument, base: _Base, time: int, key: str | None) -> StateSave:
        check_id(document.by, "by")
        body = self._encoded(document)
        event = Event("revision", body, time, None if key is None else check_id(key, "key"))

        def finish(receipt: Receipt) -> int:
            stored = receipt.events[-1][0]
            seen = document if stored.body == body else to_document(stored)
            self._seen = self._latest = _Base(stored.position, seen, base.line or 1)  # a record begins at version 1
            return stored.position

        if base.line is not None:
            op = Append("state", self._thread, (event,), base.revision, self._new(self._scope), _same_document)
            return StateSave((), (Guard("state", self._thread, base.line), op), finish)
        before, new = self._beginning()
        op = Append("state", self._thread, (event,), base.revision, new, _same_document)
        return StateSave(before, (op,), finish)

    def _encoded(self, document: StateDocument) -> bytes:
        # Not msgspec.to_builtins, which would silently convert a date or a set in a plain dict.
        plain = {name: getattr(document, name) for name in document.__struct_fields__}
        what = f"state of thread {self._thread!r}"
        try:
            return encode(plain, what)
        except Invalid:
            encode(document.value, what)  # the same message, with the path as the caller knows it
            raise

    def _beginning(self) -> tuple[tuple[Op, ...], Put]:
        """The operations that create the state's record, with the owner of its thread, whoever saves it first.

        Otherwise erasing a user would leave states of the user's threads behind. If the thread does not exist yet,
        nobody else may create it before this commit.
        """
        thread = self._core.engine.get(self._core.tenant, "thread", self._thread)
        if thread is None:
            return (Guard("thread", self._thread, 0),), self._new(self._scope)
        return (), self._new(thread.scope)

    def _new(self, scope: Scope) -> Put:
        return Put("state", self._thread, _EMPTY, scope=scope)

    def _base(self, expect: Expect) -> _Base:
        """The base of a save: what this handle saw last, or the revision that the caller names."""
        newest = isinstance(expect, str) and expect == "any"
        if expect is not None and not newest and (type(expect) is not int or not 0 <= expect < 2**63):
            raise Invalid(f'expect must be a revision number or "any", not {quoted(expect)}')
        if self._seen is not None and (expect is None or expect == self._seen.revision):
            return self._seen
        record = self.record()
        if record is None:
            return _Base(expect if isinstance(expect, int) else 0)
        revision = record.head if newest else expect or 0
        assert isinstance(revision, int)
        # A missing revision has no document; the commit will report a conflict.
        there = 1 <= revision <= record.head
        return _Base(revision, to_document(self._event(record, revision)) if there else None, record.version)

    def _schema_of(self, value: Any, schema: Any, base: _Base) -> Schema:
        """A plain dict has the schema of the revision it follows, or the one that this handle loaded the state with:
        saved without it, a dict in today's form would be migrated again."""
        if schema is None and type(value) is dict:
            name = (base.document.schema if base.document else "") or self._loaded_as
            return schemas.registered(self._core.schemas, name, Where(self._thread, base.revision))
        return schemas.find(self._core.schemas, type(value) if schema is None else schema)

    def _type(self, document: StateDocument) -> Any:
        """The type to change a stored revision as: a plain dict as what this handle loaded it as, all else as it is."""
        found = None if document.schema else self._core.schemas.named(self._loaded_as)
        return None if found is None else found.type

    def _carried(self, base: _Base, schema: Schema) -> tuple[Any, Marks]:
        previous = base.document
        if previous is None or previous.schema not in ("", schema.name):
            return None, {}
        if previous.schema != schema.name and self._core.schemas.step(schema.name, 0) is None:
            return None, {}  # a plain dict is replaced by something that has nothing to do with it
        where = Where(self._thread, base.revision)
        value, migrated = schemas.migrate(self._core.schemas, schema.name, previous.version, previous.value, where)
        marks = previous.confirmed
        return value, marks if migrated is None else freshness.moved(schema, previous.value, marks, value)

    def refresh(self, type: Any, touch: Op) -> Loaded[Any]:
        """Run the refreshers of stale fields, outside any commit, and save their values as one revision.

        A refresher that raises leaves its field stale, and the log says why; the others still count.
        """
        for _ in range(_ROUNDS):
            record = self.record()
            event = self._find(record)
            if event is None:
                raise NotFound(f"thread {self._thread!r} has no saved state yet", thread=self._thread)
            current = self._current(event, type)
            found = self._fetched(current)
            if not found:
                self._see(record, event)
                return self._loaded(current)

            def change(current: _Current, now: int, found: dict[str, Any] = found) -> tuple[Any, Marks]:
                return self._with_fetched(current, found, now)

            try:
                self._rewrite(change, event.position, "refresher", touch, type)
            except Conflict:
                continue  # someone saved in the meantime: other fields may be stale now
            return self.load(type)
        raise Conflict(f"the state of thread {self._thread!r} keeps changing", thread=self._thread)

    def _fetched(self, current: _Current) -> dict[str, Any]:
        loaded = self._loaded(current)
        stale = dict.fromkeys((*(field.path for field in loaded.stale), *loaded.must_verify))
        found: dict[str, Any] = {}
        for path, refresher in self._refreshers(current.schema.name, stale).items():
            try:
                found[path] = schemas.dump(refresher(loaded.value, path))
            except Exception:
                _log.exception("the refresher of %s in thread %r failed; it stays stale", path, self._thread)
        return found

    def _refreshers(self, schema: str, stale: Iterable[str]) -> dict[str, schemas.Refresh]:
        """The refreshers of stale fields; an item without one of its own is fetched with its whole list."""
        found: dict[str, schemas.Refresh] = {}
        for path in stale:
            steps = json_path.parse(path)
            holders = [steps, steps[:-1]] if isinstance(steps[-1], int) else [steps]
            for place in map(json_path.render, holders):
                refresher = self._core.schemas.refresher_of(schema, place)
                if refresher is not None:
                    found[place] = refresher
                    break
        return found

    def _with_fetched(self, current: _Current, found: dict[str, Any], now: int) -> tuple[Any, Marks]:
        """Insert fetched values and confirm them, even unchanged ones."""
        value = current.value
        for path, item in found.items():
            value = json_path.with_value(value, path, item)
        schema, marks = current.schema, current.document.confirmed
        marks = freshness.carry(schema, current.value, marks, value, now=now, by="refresher")
        for path in found:
            if freshness.inside(schema, value, path):  # a list that came back empty may have nothing to confirm
                value, marks = freshness.confirmed(schema, value, marks, path, now=now, by="refresher")
        return value, marks

    # History

    def revisions(self, last: int | None = None) -> list[Revision]:
        record = self.record()
        if record is None:
            return []
        events = self._core.engine.read(self._core.tenant, record.mark, limit=last, newest=last is not None)
        return [_to_revision(event) for event in events]

    def diff(self, old: int, new: int | None = None) -> list[json_path.Difference]:
        record = self.record()
        before, after = self._find(record, old), self._find(record, new)
        if before is None or after is None:
            raise self._no_revision(old, 0)
        return json_path.diff(to_document(before).value, to_document(after).value)


def to_document(event: Event) -> StateDocument:
    try:
        return msgspec.convert(decode(event.body), StateDocument)
    except msgspec.ValidationError as error:
        raise Corrupt(f"state revision {event.position} is not a stored state: {error}; run verify") from error


def _to_revision(event: Event) -> Revision:
    document = to_document(event)
    return Revision(event.position, to_datetime(event.time), document.schema, document.version, document.by)


def _same_document(stored: Event, offered: Event) -> bool:
    """A repeated save is the same if its value is; confirmation times differ from try to try."""
    old, new = to_document(stored), to_document(offered)
    return (old.schema, old.version) == (new.schema, new.version) and json_path.same(old.value, new.value)
