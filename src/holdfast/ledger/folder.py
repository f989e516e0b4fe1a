"""Folders: files by path, every version kept, written by compare-and-set.

A file is a record of its own with a stream of its versions, so each write is one event and history costs no copy. What
is in a file is plain data (text, or anything JSON can hold) or bytes. A version is whole in its event: content, tags
and when it expires; the record repeats of the newest what listing and finding need. Deleting leaves a mark in the
history, so that a late writer with an old version is refused and the file can be brought back; erasing leaves nothing.
Deliberately absent: what the files mean (tools for models, artifacts of a framework and items of its store are kept
here alike), and how they are found by content, which is passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

import msgspec

from holdfast.clock import to_datetime, to_micros
from holdfast.engine.codec import MAX_BODY_BYTES, MSGPACK, decode, encode
from holdfast.engine.contract import Append, Delete, Event, Mark, Op, Put, Query, Record, Scope, View
from holdfast.errors import Conflict, Corrupt, Invalid, KeyReused, NotFound, TooLarge, Unsupported
from holdfast.ids import MAX_ID_BYTES, check_id
from holdfast.ledger.core import Core, fetch, fetch_events, scan_all
from holdfast.ledger.thread import check_count, check_tags
from holdfast.records import File, FolderInfo, Recalled

FILE = "file"
_WRITTEN, _DELETED = "written", "deleted"
_TRIES = 100  # of many who write one file at once only one gets through at a time
_PLACE = 32  # characters of a record's id that say which folder it is in
_LATEST = 253_402_300_799_999_999
LONGEST_BYTES = MAX_ID_BYTES - _PLACE - 1
"""How long a path and a tag may be."""


class Writing(NamedTuple):
    """One file on its way in. ``expect``: None any version, 0 there is no such file, n it is at version n."""

    path: str
    content: Any
    expect: int | None = None
    tags: tuple[str, ...] = ()
    expires: int | None = None
    key: str | None = None


class Deleting(NamedTuple):
    """One file on its way out."""

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


class Finds(Protocol):
    """What finds files by what is in them."""

    def search(self, within: Within, query: str, k: int, *, explain: bool, within_ms: float | None) -> Recalled: ...

    def purge(self, scope: Scope) -> None:
        """Something of an owner was erased: know none of its words any more."""
        ...


class Folder:
    """The files of one place. ``store.folder("notes", user="ana")`` gives one; it comes into being with its first."""

    def __init__(self, core: Core, name: str, scope: Scope, finding: Callable[[], Finds] | None = None) -> None:
        self._core, self._scope, self._finding = core, scope, finding
        self.name = check_id(name, "folder")
        self._place = place_of(scope, name)

    def __repr__(self) -> str:
        return f"Folder({self.name!r}, user={self._scope.user!r}, agent={self._scope.agent!r})"

    # Reading

    def read(self, path: str, *, version: int | None = None) -> File:
        """The file at a path, or an older version of it. ``NotFound`` when it is not there (any more)."""
        file = self.find(path) if version is None else self._older(path, version)
        if file is None:
            which = "" if version is None else f" in version {version}"
            raise NotFound(f"there is no file {path!r}{which} in folder {self.name!r}", folder=self.name, path=path)
        return file

    def find(self, path: str) -> File | None:
        """The file at a path, or None."""
        record = self._record(path)
        return None if record is None else next(iter(self._files([record], self._core.engine)), None)

    def version(self, path: str) -> int:
        """The number that the next write must expect: of the file as it is, and 0 where there is none."""
        file = self.find(path)
        return 0 if file is None else file.version

    def files(self, prefix: str = "", *, tag: str | None = None, limit: int | None = None) -> list[File]:
        """The files whose paths begin with a prefix, by path; with ``tag`` those that carry it."""
        if limit is not None:
            check_count("limit", limit)
        with self._core.engine.snapshot() as view:
            found = self._listed(view, _prefix(prefix), self._place if tag is None else self._tag(tag))
            return self._files(sorted(found, key=path_of)[:limit], view)

    def paths(self, prefix: str = "") -> list[str]:
        """The paths that begin with a prefix, in order, without reading what is in the files."""
        return sorted(map(path_of, self._listed(self._core.engine, _prefix(prefix), self._place)))

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        prefix: str = "",
        tag: str | None = None,
        among: Iterable[str] | None = None,
        explain: bool = False,
        within_ms: float | None = None,
    ) -> Recalled:
        """Find files by what is in them, best first: by words and by meaning, as ``recall`` does.

        Only the newest versions are looked at, of files whose paths begin with ``prefix``, that carry ``tag`` and whose
        paths are ``among`` some. Bytes that are no text (UTF-8) are not found. ``explain`` and ``within_ms`` are as
        with ``recall``.
        """
        if self._finding is None:
            raise Unsupported("this handle was made without what finds; store.folder(...) gives one that can search")
        if among is not None and (isinstance(among, str) or not isinstance(among, Iterable)):
            raise Invalid(f"among is several paths, not {among!r}")
        named = None if among is None else frozenset(map(self._id, among))
        within = Within(self._scope, f"{self._place}/{_prefix(prefix)}", named, tag)
        return self._finding().search(within, query, k, explain=explain, within_ms=within_ms)

    def history(self, path: str) -> list[File]:
        """Every version of a file, oldest first; one whose content is None and that is ``deleted`` ended it."""
        record = self._core.engine.get(self._core.tenant, FILE, self._id(path))
        if record is None:
            return []
        events = self._core.engine.read(self._core.tenant, record.mark)
        return [to_file(record, event) for event in events]

    # Writing

    def write(
        self,
        path: str,
        content: Any,
        *,
        expect: int | None = None,
        tags: Iterable[str] = (),
        expires: int | None = None,
        key: str | None = None,
    ) -> File:
        """Write a file as its next version, and return it.

        With ``expect`` it must be at that version (0: not there), or it is ``Conflict``. ``tags`` and ``expires``
        (microseconds since 1970) replace those of before. With ``key`` a repetition changes nothing.
        """
        return self.commit([Writing(path, content, expect, check_tags(tags), expires, key)])[0]

    def delete(self, path: str, *, expect: int | None = None, key: str | None = None, erase: bool = False) -> bool:
        """Delete a file; its history stays, unless ``erase`` is given. Return whether it was there."""
        change = Deleting(path, expect, key)
        if not erase:
            return self.commit([change])[0].version > 0
        self._refuse_wrong(change)
        record = self._core.engine.get(self._core.tenant, FILE, self._id(path))
        self._refuse_unmet(change, record)
        if record is None:
            return False
        gone_for_good = Delete(FILE, record.id, record.version if expect is not None else None)
        self._core.engine.commit(self._core.tenant, (gone_for_good,), self._core.clock.now())
        if self._finding is not None:
            self._finding().purge(self._scope)
        return True

    def move(self, path: str, to: str) -> File:
        """Give a file another path, in one commit; its earlier versions stay under the old one."""
        if path == to:
            raise Invalid(f"file {path!r} has this path already")
        file = self.read(path)
        expires = None if file.expires is None else to_micros(file.expires)
        return self.commit([Deleting(path, file.version), Writing(to, file.content, 0, file.tags, expires)])[1]

    def commit(self, changes: Sequence[Writing | Deleting]) -> list[File]:
        """Carry out several writes and deletions in one commit, all of them or none; one change for each path.

        Deleting what is not there changes nothing, and is told by a version of 0.
        """
        for change in changes:
            self._refuse_wrong(change)
        ids = [self._id(change.path) for change in changes]
        if len(set(ids)) < len(ids):
            raise Invalid("one commit holds one change of each file")
        for _ in range(_TRIES):
            found = fetch(self._core.engine, self._core.tenant, FILE, ids)
            try:
                return self._committed(changes, found)
            except Conflict as error:
                now = fetch(self._core.engine, self._core.tenant, FILE, ids)
                for change, id in zip(changes, ids, strict=True):
                    self._refuse_unmet(change, now.get(id))
                last = error  # nobody's expectation was hurt: somebody wrote in between, so look again
        raise last

    def _refuse_wrong(self, change: Writing | Deleting) -> None:
        """Refuse what no change can be, before anything is read."""
        if not isinstance(change, Writing | Deleting):
            raise Invalid(f"a commit takes Writing and Deleting, not {type(change).__name__}")
        if change.expect is not None:
            check_count("expect", change.expect)
        if change.key is not None:
            check_id(change.key, "key")
        if isinstance(change, Writing):
            for tag in check_tags(change.tags):
                self._tag(tag)
            if change.expires is not None and (type(change.expires) is not int or not 0 <= change.expires <= _LATEST):
                raise Invalid(f"expires is microseconds since 1970, until the year 9999, not {change.expires!r}")

    def _committed(self, changes: Sequence[Writing | Deleting], found: dict[str, Record]) -> list[File]:
        time = self._core.clock.now()
        done: dict[str, Event] = {}
        fresh: list[str] = []
        ops: list[Op] = []
        for change in changes:
            record = found.get(self._id(change.path))
            if (event := self._repeated(change, record)) is not None:
                done[change.path] = event
                continue
            self._refuse_unmet(change, record)
            if isinstance(change, Deleting) and not self._here(record):
                continue
            ops += self._ops(change, record, time)
            fresh.append(change.path)
        if ops:
            receipt = self._core.engine.commit(self._core.tenant, ops, time)
            done |= {path: events[0] for path, events in zip(fresh, receipt.events, strict=True)}
        return [self._done(change.path, found, done.get(change.path), time) for change in changes]

    def _repeated(self, change: Writing | Deleting, record: Record | None) -> Event | None:
        """What a change under a key came to before, whatever was written since."""
        if change.key is None or record is None:
            return None
        found = self._core.engine.read(self._core.tenant, record.mark, key=change.key)
        if found and not _same(found[0], _event(change, 0)):
            raise KeyReused(f"key {change.key!r} was used for another change of file {change.path!r}", key=change.key)
        return found[0] if found else None

    def _refuse_unmet(self, change: Writing | Deleting, record: Record | None) -> None:
        here = record.head if record is not None and self._here(record) else 0
        if change.expect is not None and change.expect != here:
            raise Conflict(
                f"file {change.path!r} of folder {self.name!r} is at version {here}, not {change.expect}: "
                "read it again",
                folder=self.name, path=change.path, expected=change.expect, found=here,
            )  # fmt: skip

    def _ops(self, change: Writing | Deleting, record: Record | None, time: int) -> list[Op]:
        """A record is written along with its event: it carries the tags by which a file is found, or no longer is."""
        id, event = self._id(change.path), _event(change, time)
        head: dict[str, Any] = {"folder": self.name, "path": change.path}
        tags = shared_tags(self._scope)
        if isinstance(change, Writing):
            tags += (self._place, *map(self._tag, change.tags))
            head |= {} if change.expires is None else {"expires": change.expires}
        put = Put(FILE, id, encode(head), None if record is None else record.version, self._scope, tags)
        if record is None:
            return [Append(FILE, id, (event,), 0, put, same=_same)]
        return [put, Append(FILE, id, (event,), record.head, same=_same)]

    def _done(self, path: str, found: dict[str, Record], event: Event | None, time: int) -> File:
        """What a change came to; without an event it was the deletion of what was not there."""
        before = found.get(self._id(path))
        if event is None:
            return File(path, None, 0, to_datetime(time), to_datetime(time), deleted=True, folder=self.name)
        return _file(self.name, path, event.time if before is None else before.created, event)

    # Inside

    def _record(self, path: str) -> Record | None:
        record = self._core.engine.get(self._core.tenant, FILE, self._id(path))
        return record if self._here(record) else None

    def _here(self, record: Record | None) -> bool:
        return record is not None and here(record, self._core.clock.now())

    def _listed(self, view: View, prefix: str, tag: str) -> Iterator[Record]:
        now = self._core.clock.now()
        for record in scan_all(view, self._core.tenant, Query(FILE, tag=tag)):
            if path_of(record).startswith(prefix) and here(record, now):
                yield record

    def _files(self, records: Sequence[Record], view: View) -> list[File]:
        events = fetch_events(view, self._core.tenant, [record.mark for record in records])
        return [to_file(record, events[record.mark]) for record in records if record.mark in events]

    def _older(self, path: str, version: int) -> File | None:
        if type(version) is not int:
            raise Invalid(f"a version is a whole number, not {version!r}")
        record = self._core.engine.get(self._core.tenant, FILE, self._id(path))
        if record is None or not 1 <= version <= record.head:
            return None
        mark = Mark(record.mark.stream, version)
        event = fetch_events(self._core.engine, self._core.tenant, [mark]).get(mark)
        return None if event is None or event.kind == _DELETED else to_file(record, event)

    def _tag(self, tag: str) -> str:
        return f"{self._place}:{_short(tag, 'tag')}"

    def _id(self, path: str) -> str:
        return f"{self._place}/{_short(path, 'path')}"


def folders(core: Core, scope: Scope) -> list[FolderInfo]:
    """The folders that hold files of a user or an agent, or of anybody where neither is named, by name and owner."""
    now = core.clock.now()
    found: dict[tuple[str, str, str], list[Record]] = {}
    for record in scan_all(core.engine, core.tenant, Query(FILE, user=scope.user, agent=scope.agent)):
        if here(record, now):
            name = (folder_of(record), record.scope.user or "", record.scope.agent or "")
            found.setdefault(name, []).append(record)
    return [
        FolderInfo(
            name, records[0].scope.user, records[0].scope.agent, len(records), to_datetime(max(r.time for r in records))
        )
        for (name, *_), records in sorted(found.items(), key=lambda item: item[0])
    ]


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
    """Whether a file is there: neither is its newest version its deletion, nor has it expired."""
    if edition(record) > record.head:
        return False
    expires = decode(record.body).get("expires")
    return expires is None or expires > now


def _prefix(prefix: object) -> str:
    if not isinstance(prefix, str):
        raise Invalid(f"a prefix is text, not {type(prefix).__name__}")
    return prefix


def _short(value: object, what: str) -> str:
    """A path or a tag: as what every id may be, and short enough to stand behind the place of its folder."""
    text = check_id(value, what)
    if (size := len(text.encode())) > LONGEST_BYTES:
        raise Invalid(f"{what} takes {size} bytes; at most {LONGEST_BYTES} are allowed", what=what)
    return text


# Versions as events


def _event(change: Writing | Deleting, time: int) -> Event:
    if isinstance(change, Deleting):
        return Event(_DELETED, encode({}), time, change.key)
    more: dict[str, Any] = {"tags": list(dict.fromkeys(change.tags))} if change.tags else {}
    if change.expires is not None:
        more["expires"] = change.expires
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
    """Whether a change repeats another: a second attempt may well give a file longer to live."""
    if stored.kind != offered.kind:
        return False
    ours, theirs = (_body(decode(event.body).get("content"), "", {}) for event in (stored, offered))
    return ours == theirs


def to_file(record: Record, event: Event) -> File:
    """A version of a file, as it is stored."""
    return _file(folder_of(record), path_of(record), record.created, event)


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


def wrong(record: Record, event: Event) -> str | None:
    """What does not agree between a file's record and its newest version, None when all is well."""
    try:
        file, head = to_file(record, event), decode(record.body)
        expires = None if file.expires is None else to_micros(file.expires)
    except (Corrupt, Unsupported, LookupError, TypeError, ValueError, OverflowError, AttributeError) as error:
        return f"it cannot be read: {error}"
    if head.get("path") != file.path or place_of(record.scope, file.folder) != record.id[:_PLACE]:
        return "its id is not made of its owner, folder and path"
    if file.deleted != (edition(record) > record.head) or head.get("expires") != expires:
        return "it does not agree with its newest version"
    tags = {f"{record.id[:_PLACE]}:{tag}" for tag in file.tags}
    return (
        None if {tag for tag in record.tags if ":" in tag} == tags else "its tags are not those of its newest version"
    )


def text_of(content: Any) -> str:
    """What can be read of a file's content: text as it is, of other data every value, each with its name.

    A dict with a ``value`` and a ``text`` says itself what is to be read of it, or with None that nothing is.
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
            yield from _lines(item, key if len(value) > 1 else name)  # the name of an only value tells nothing apart
    elif isinstance(value, list):
        for item in value:
            yield from _lines(item, name)
    elif value is not None and value != "":
        yield f"{name}: {value}" if name else str(value)
