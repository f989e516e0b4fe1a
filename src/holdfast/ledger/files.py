"""Files as records and streams: what ``Folder`` and everything else kept in files is built on.

A file is a record of its own with a stream of its versions, so each write is one event and history costs no copy. A
version is whole in its event: content, tags and when it expires; the record repeats what listing and finding need. A
``FileBook`` is the files of one folder in these terms: their ids and tags, those that exist, and the operations of a
change, so that it can be committed along with other things. Deliberately absent: what the files mean (tools for models,
artifacts of a framework and items of its store are all kept here), and finding them by content, which is passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol, TypeGuard

import msgspec

from holdfast.checks import check_several
from holdfast.clock import to_datetime, to_micros
from holdfast.engine.codec import MAX_BODY_BYTES, MSGPACK, decode, encode
from holdfast.engine.contract import Append, Delete, Event, Op, Problem, Put, Query, Receipt, Record, Scope, View
from holdfast.errors import Conflict, Corrupt, Invalid, KeyReused, TooLarge, Unsupported, quoted
from holdfast.ids import MAX_ID_BYTES, check_id, check_text
from holdfast.ledger import secrets
from holdfast.ledger.core import Core, Pending, compare_and_set, fetch, fetch_events, scan_all, scan_ever
from holdfast.ledger.thread import check_count, check_tags
from holdfast.records import File, Recalled

FILE = "file"
_WRITTEN, _DELETED = "written", "deleted"
_PLACE = 32  # characters of a record's id that say which folder it is in
_LATEST = 253_402_300_799_999_999
LONGEST_BYTES = MAX_ID_BYTES - _PLACE - 1
"""How long a path and a tag may be."""


class FileWrite(NamedTuple):
    """A file to write. ``expect``: None any version, 0 no such file, n it is at version n. ``expires``: a datetime with
    a zone, or microseconds since 1970."""

    path: str
    content: Any
    expect: int | None = None
    tags: tuple[str, ...] = ()
    expires: datetime | int | None = None
    key: str | None = None


class FileDelete(NamedTuple):
    """A file to delete."""

    path: str
    expect: int | None = None
    key: str | None = None


class Within(NamedTuple):
    """Which files to look into: of an owner, those whose ids begin with ``under``, and of them those that are named
    and that carry a tag."""

    scope: Scope
    under: str
    among: frozenset[str] | None = None
    tag: str | None = None


class FindsFiles(Protocol):
    """Finds files by content."""

    def search(self, within: Within, query: str, k: int, *, explain: bool, within_ms: float | None) -> Recalled: ...

    def purge(self, scope: Scope) -> None:
        """Something of an owner was erased: forget its words."""
        ...


class FileBook:
    """The files of one folder, as records and operations."""

    def __init__(self, core: Core, name: str, scope: Scope, finding: Callable[[], FindsFiles] | None = None) -> None:
        self.core, self.scope, self.finding = core, scope, finding
        self.name = check_id(name, "folder")
        self.place = place_of(scope, self.name)

    def id(self, path: str) -> str:
        """The id of a file's record."""
        return f"{self.place}/{_short(path, 'path')}"

    def tag(self, tag: str) -> str:
        """The tag of a record by which files of this folder alone are found."""
        return f"{self.place}:{_short(check_id(tag, 'tag'), 'tag')}"

    # Reading

    def record(self, path: str) -> Record | None:
        """The record of a file, even if it was deleted or has expired."""
        return self.core.engine.get(self.core.tenant, FILE, self.id(path))

    def records(self, paths: Sequence[str]) -> dict[str, Record]:
        """The records of some files, by path."""
        found = fetch(self.core.engine, self.core.tenant, FILE, [self.id(path) for path in paths])
        return {path_of(record): record for record in found.values()}

    def ever(self) -> Iterator[Record]:
        """The records of all files, including those that were deleted or have expired."""
        found = scan_ever(self.core.engine, self.core.tenant, listing(self.scope))
        return (record for record in found if record.id.startswith(f"{self.place}/"))

    def listed(
        self, view: View, prefix: str = "", tag: str | None = None, *, wanted: int | None = None
    ) -> Iterator[Record]:
        """The existing files whose paths begin with a prefix, latest first; with ``tag``, those that carry it.

        With a small ``limit``, fewer are read at a time.
        """
        query, now = Query(FILE, tag=self.place if tag is None else self.tag(tag)), self.core.clock.now()
        for record in scan_all(view, self.core.tenant, query, wanted):
            if path_of(record).startswith(prefix) and here(record, now):
                yield record

    def is_here(self, record: Record | None) -> TypeGuard[Record]:
        """Whether a file exists now."""
        return record is not None and here(record, self.core.clock.now())

    def files(self, records: Sequence[Record], view: View | None = None) -> list[File]:
        """The newest versions of files, read together."""
        events = fetch_events(view or self.core.engine, self.core.tenant, [record.mark for record in records])
        return [to_file(record, events[record.mark]) for record in records if record.mark in events]

    # Writing

    def commit(self, changes: Sequence[FileWrite | FileDelete]) -> list[File]:
        """Carry out changes in one commit, all or none; at most one change per path.

        Deleting a file that does not exist changes nothing, and returns version 0.
        """
        changes = [self._checked(change) for change in check_several("changes", changes)]
        if len({self.id(change.path) for change in changes}) < len(changes):
            raise Invalid("one commit holds at most one change per file")
        return compare_and_set(
            lambda: self._changing(changes), self.core.commit, f"folder {self.name!r}", folder=self.name
        )

    def ops(self, change: FileWrite | FileDelete, record: Record | None, time: int) -> list[Op]:
        """The operations of a change to the file of ``record``; none if the file to delete does not exist.

        The record is written along with the event: it carries the tags by which a file is found.
        """
        self._refuse_unmet(change, record)
        if isinstance(change, FileDelete) and not self.is_here(record):
            return []
        id, event = self.id(change.path), _event(change, time)
        head = {"folder": self.name, "path": change.path}
        tags = shared_tags(self.scope)
        if isinstance(change, FileWrite):
            tags += (self.place, *map(self.tag, change.tags))
        version = None if record is None else record.version
        expires = _expires(change) if isinstance(change, FileWrite) else None
        put = Put(FILE, id, encode(head), version, self.scope, tags, expires)
        if record is None:
            return [Append(FILE, id, (event,), 0, put, same=_same)]
        return [put, Append(FILE, id, (event,), record.head, same=_same)]

    def prolonging(self, record: Record, expires: int) -> Put:
        """The operation that makes the file of ``record`` expire later; its version stays the same."""
        return Put(FILE, record.id, record.body, record.version, record.scope, record.tags, expires)

    def erase(self, changes: Sequence[FileDelete]) -> int:
        """Remove files with all their versions in one commit, and return how many there were."""
        changes = [self._checked(change) for change in changes]
        found = self.records([change.path for change in changes])
        ops: list[Op] = []
        for change in changes:
            record = found.get(change.path)
            self._refuse_unmet(change, record)
            if record is not None:
                expect = record.version if change.expect is not None else None
                ops.append(Delete(FILE, record.id, expect, erase=True, bury=True))
        if ops:
            self.core.write([*ops, secrets.erased()], self.core.clock.now())
            self.purge()
        return len(ops)

    def purge(self) -> None:
        """Something was erased: the search must forget its words."""
        if self.finding is not None:
            self.finding().purge(Scope(self.scope.user, self.scope.agent))

    def _checked(self, change: Any) -> Any:
        """A change as it is stored; refuse an invalid one before anything is read."""
        if not isinstance(change, FileWrite | FileDelete):
            raise Invalid(f"a commit takes FileWrite and FileDelete, not {type(change).__name__}")
        if change.expect is not None:
            check_count("expect", change.expect)
        if isinstance(change, FileWrite):
            for tag in check_tags(change.tags):
                self.tag(tag)
            _expires(change)
        key = None if change.key is None else check_id(change.key, "key")
        return change._replace(path=_short(change.path, "path"), key=key)

    def _refuse_unmet(self, change: FileWrite | FileDelete, record: Record | None) -> None:
        if change.expect is None:
            return
        if change.expect != (found := record.head if self.is_here(record) else 0):
            raise Conflict(
                f"file {change.path!r} of folder {self.name!r} is at version {found}, not {change.expect}: "
                "read it again",
                folder=self.name, path=change.path, expected=change.expect, found=found,
            )  # fmt: skip

    def _changing(self, changes: Sequence[FileWrite | FileDelete]) -> Pending[list[File]]:
        """Prepare the one commit for changes to the files as they are now."""
        paths = [change.path for change in changes]
        time, found = self.core.clock.now(), self.records(paths)
        done: dict[str, Event] = {}
        fresh: list[str] = []
        ops: list[Op] = []
        for change in changes:
            record = found.get(change.path)
            if (event := self._repeated(change, record)) is not None:
                done[change.path] = event
            elif more := self.ops(change, record, time):
                ops += more
                fresh.append(change.path)

        def finish(receipt: Receipt) -> list[File]:
            told = done | {path: events[0] for path, events in zip(fresh, receipt.events, strict=True)}
            return [self._done(path, found.get(path), told.get(path), time) for path in paths]

        return Pending(tuple(ops), time, finish)

    def _repeated(self, change: FileWrite | FileDelete, record: Record | None) -> Event | None:
        """The earlier outcome of a change with the same key, whatever was written since."""
        if change.key is None or record is None:
            return None
        found = self.core.engine.read(self.core.tenant, record.mark, key=change.key)
        if found and not _same(found[0], _event(change, 0)):
            raise KeyReused(f"key {change.key!r} was used for another change of file {change.path!r}", key=change.key)
        return found[0] if found else None

    def _done(self, path: str, before: Record | None, event: Event | None, time: int) -> File:
        """The outcome of a change; without an event it deleted a file that did not exist."""
        if event is None:
            return File(path, None, 0, to_datetime(time), to_datetime(time), deleted=True, folder=self.name)
        return _file(self.name, path, event.time if before is None else before.created, event)


# Records


def place_of(scope: Scope, name: str) -> str:
    """What the ids of a folder's files begin with. The feed keeps ids, so they do not say whose the folder is."""
    return blake2b(encode([scope.user, scope.agent, name]), digest_size=_PLACE // 2).hexdigest()


def shared_tags(scope: Scope) -> tuple[str, ...]:
    """What else the files of no user carry, so that they are listed without reading those of all users."""
    return () if scope.user is not None else (place_of(scope, ""),)


def listing(scope: Scope) -> Query:
    """Every file of a user, or else of an agent or of nobody, also those that were deleted or have expired."""
    return Query(FILE, user=scope.user) if scope.user is not None else Query(FILE, tag=shared_tags(scope)[0])


def edition(record: Record) -> int:
    """The version that can be read; once the file was deleted, the one that would come next."""
    return record.head if record.id[:_PLACE] in record.tags else record.head + 1


def path_of(record: Record) -> str:
    return record.id[_PLACE + 1 :]


def folder_of(record: Record) -> str:
    return str(decode(record.body)["folder"])


def here(record: Record, now: int) -> bool:
    """Whether a file exists: its newest version is no deletion, and it has not expired."""
    if edition(record) > record.head:
        return False
    return record.expires is None or record.expires > now


def _short(value: object, what: str) -> str:
    """Check a path or a tag: valid as an id, and short enough to follow the folder's part of it."""
    text = check_text(value, what)
    if (size := len(text.encode())) > LONGEST_BYTES:
        raise Invalid(f"{what} takes {size} bytes; at most {LONGEST_BYTES} are allowed", what=what)
    return text


# Versions as events


def _expires(change: FileWrite) -> int | None:
    moment = to_micros(change.expires) if isinstance(change.expires, datetime) else change.expires
    if moment is not None and (type(moment) is not int or not 0 <= moment <= _LATEST):
        raise Invalid(
            "expires is a datetime with a time zone, or microseconds since 1970, until the year 9999, not "
            f"{quoted(change.expires)}"
        )
    return moment


def _event(change: FileWrite | FileDelete, time: int) -> Event:
    if isinstance(change, FileDelete):
        return Event(_DELETED, encode({}), time, change.key)
    more: dict[str, Any] = {"tags": list(dict.fromkeys(change.tags))} if change.tags else {}
    if change.expires is not None:
        more["expires"] = _expires(change)
    return Event(_WRITTEN, _body(change.content, change.path, more), time, change.key)


def _body(content: Any, path: str, more: dict[str, Any]) -> bytes:
    if not isinstance(content, bytes | bytearray | memoryview):
        return encode({"content": content, **more}, f"file {path!r}")
    body = MSGPACK + msgspec.msgpack.encode({"content": bytes(content), **more})
    if len(body) > MAX_BODY_BYTES:
        raise TooLarge(
            f"file {path!r} takes {len(body):,} bytes; at most {MAX_BODY_BYTES:,} are accepted",
            size_bytes=len(body), limit_bytes=MAX_BODY_BYTES, what=path,
        )  # fmt: skip
    return body


def _same(stored: Event, offered: Event) -> bool:
    """Whether a change repeats another; a second attempt may set a later expiry."""
    if stored.kind != offered.kind:
        return False
    ours, theirs = (_body(decode(event.body).get("content"), "", {}) for event in (stored, offered))
    return ours == theirs


def to_file(record: Record, event: Event) -> File:
    """A version of a file, as it is stored; the newest expires when its record says, which may have been put off."""
    file = _file(folder_of(record), path_of(record), record.created, event)
    if event.position != record.head or file.deleted or record.expires is None:
        return file
    return msgspec.structs.replace(file, expires=to_datetime(record.expires))


def _file(folder: str, path: str, created: int, event: Event) -> File:
    stored = decode(event.body)
    expires = stored.get("expires")
    return File(
        path=path,
        content=stored.get("content"),
        version=event.position,
        created=to_datetime(created),
        time=to_datetime(event.time),
        expires=None if expires is None else to_datetime(expires),
        deleted=event.kind == _DELETED,
        folder=folder,
        tags=tuple(stored.get("tags", ())),
    )


def problems(view: View, tenant: str) -> Iterator[Problem]:
    """Files of a tenant whose record does not match their newest version, or that cannot be read."""
    for record in scan_ever(view, tenant, Query(FILE)):
        for event in view.read(tenant, record.mark, after=record.head - 1):
            if (what := wrong(record, event)) is not None:
                yield Problem(f"file {path_of(record)!r}", what, tenant, FILE, record.id)


def wrong(record: Record, event: Event) -> str | None:
    """How a file's record and its newest version differ, or None."""
    try:
        file, head = _file(folder_of(record), path_of(record), record.created, event), decode(record.body)
        written, expires = None if file.expires is None else to_micros(file.expires), record.expires
        put_off = written is not None and expires is not None and expires > written
    except (Corrupt, Unsupported, LookupError, TypeError, ValueError, OverflowError, AttributeError) as error:
        return f"it cannot be read: {error}"
    if head.get("path") != file.path or place_of(record.scope, file.folder) != record.id[:_PLACE]:
        return "its id does not match its owner, folder and path"
    if file.deleted != (edition(record) > record.head) or (expires != written and not put_off):
        return "it does not agree with its newest version"
    tags = {f"{record.id[:_PLACE]}:{tag}" for tag in file.tags}
    return (
        None if {tag for tag in record.tags if ":" in tag} == tags else "its tags are not those of its newest version"
    )


def text_of(content: Any) -> str:
    """What can be read of a file's content: text as it is, of other data every value, each with its name.

    A dict with a ``value`` and a ``text`` says itself what to read: the text, or nothing if that is None.
    """
    if isinstance(content, dict) and content.keys() >= {"value", "text"} and isinstance(content["text"], str | None):
        return content["text"] or ""
    if isinstance(content, bytes):
        try:
            return content.decode()
        except UnicodeDecodeError:
            return ""
    return content if isinstance(content, str) else "\n".join(_lines(content, ""))


def _lines(value: Any, name: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _lines(item, key if len(value) > 1 else name)  # the name of a single value adds nothing
    elif isinstance(value, list):
        for item in value:
            yield from _lines(item, name)
    elif value is not None and value != "":
        yield f"{name}: {value}" if name else str(value)
