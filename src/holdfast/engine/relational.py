"""What the SQL engines have in common: the reading half, the rows a plan writes, pruning and checking.

SQL here is the part both dialects understand, with ``?`` for values; an engine brings a function that runs it.
Deliberately absent: connections, transactions, locks and errors of a driver. Those differ, and live with the engine.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from holdfast.clock import Clock
from holdfast.engine import chain, lineage
from holdfast.engine.contract import (
    Change,
    Commit,
    Event,
    Interest,
    Mark,
    Problem,
    Query,
    Record,
    Removed,
    Scope,
    Strand,
)
from holdfast.engine.plan import Changes, Limits, Measured, Name, Published, hour_of
from holdfast.errors import Corrupt

Row = tuple[Any, ...]

RECORD = (
    "kind, id, version, body, scope_user, scope_agent, scope_thread, created, time, expires, tags, "
    "stream, base, head, digest, derived"
)
EVENT = "kind, body, time, key, position, digest"
STRAND = "stream, kind, id, parent, base, digest"
FEED = "position, time, actor, scope_user, scope_agent, scope_thread, changes"
_PAGE = 1_000
_PLACES, _PARTS = 500, 50
_FEW = 20
_KNOWN_LIMIT = 10_000

_tags_decoder = msgspec.json.Decoder(tuple[str, ...])
_SIGNS = {
    "append": "+", "put": "=", "delete": "-", "fork": "<", "adopt": ">", "erase": "x", "trim": "~", "limit": "^",
}  # fmt: skip
_ACTIONS = {sign: action for action, sign in _SIGNS.items()}
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", "\t": r"\t"})
_MEANT = {escape: chr(letter) for letter, escape in _ESCAPES.items()}
_ESCAPED = re.compile(r"\\.")
_MIXED = ""
"""In a feed row's scope: its changes differ in this, and each says its own. No user, agent or thread is named so."""
_encoder = msgspec.json.Encoder()

INSERT_EVENT = (
    "INSERT INTO events (tenant, stream, position, kind, key, time, digest, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
INSERT_STRAND = (
    f"INSERT INTO strands (tenant, {STRAND}) VALUES (?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (tenant, stream) DO UPDATE SET kind = excluded.kind, id = excluded.id"  # its owner came back
)
MOVE_RECORD = "UPDATE records SET head = ?, digest = ?, time = ? WHERE tenant = ? AND kind = ? AND id = ?"
UPSERT_RECORD = (
    f"INSERT INTO records (tenant, {RECORD}, hour) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (tenant, kind, id) DO UPDATE SET version = excluded.version, body = excluded.body, "
    "scope_user = excluded.scope_user, scope_agent = excluded.scope_agent, scope_thread = excluded.scope_thread, "
    "created = excluded.created, time = excluded.time, expires = excluded.expires, tags = excluded.tags, "
    "stream = excluded.stream, base = excluded.base, head = excluded.head, digest = excluded.digest, "
    "derived = excluded.derived, hour = excluded.hour"
)
DELETE_RECORD = "DELETE FROM records WHERE tenant = ? AND kind = ? AND id = ?"
DELETE_TAG = "DELETE FROM tags WHERE tenant = ? AND kind = ? AND tag = ? AND id = ?"
IN_ORDER = "hour > -10000000000"
"""What always holds, and only those ask for who want records in order: the index for them is of no use to others."""
INSERT_TAG = "INSERT INTO tags (tenant, kind, tag, id) VALUES (?, ?, ?, ?)"
INSERT_FEED = f"INSERT INTO feed (tenant, {FEED}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
TRIM_FEED = "DELETE FROM feed WHERE tenant = ? AND position <= ? AND position < ?"
FORGET_ACTOR = "UPDATE feed SET actor = NULL WHERE tenant = ? AND actor = ?"
UPDATE_FEED = (
    "UPDATE feed SET actor = ?, scope_user = ?, scope_agent = ?, scope_thread = ?, changes = ? "
    "WHERE tenant = ? AND position = ?"
)
DELETE_LIMIT = "DELETE FROM limits WHERE tenant = ? AND measure = ? AND kind = ?"
INSERT_LIMIT = "INSERT INTO limits (tenant, measure, kind, most, used) VALUES (?, ?, ?, ?, 0)"
SET_USED = "UPDATE limits SET used = ? WHERE tenant = ? AND measure = ? AND kind = ?"
ADD_USED = "UPDATE limits SET used = used + ? WHERE tenant = ? AND measure = ? AND kind = ?"
_COUNTS = {
    "events": (
        "SELECT count(*) FROM strands s JOIN events e ON e.tenant = s.tenant AND e.stream = s.{number} "
        "WHERE s.tenant = ? AND s.kind = ?"
    ),
    "records": "SELECT count(*) FROM records WHERE tenant = ? AND kind = ? AND NOT derived",
    "bytes": (
        "SELECT (SELECT coalesce(sum(length(body)), 0) FROM records WHERE tenant = ? AND NOT derived) + "
        "(SELECT coalesce(sum(length(body)), 0) FROM events WHERE tenant = ?)"
    ),
}
INSERT_GRAVE = "INSERT INTO graves (tenant, grave) VALUES (?, ?) ON CONFLICT DO NOTHING"


class RunStatement(Protocol):
    """Runs a query for a tenant and returns all its rows."""

    def __call__(self, tenant: str, sql: str, values: Sequence[Any] = ()) -> list[Row]: ...


class RunMany(Protocol):
    """Runs one statement for each row of values."""

    def __call__(self, tenant: str, sql: str, rows: Iterable[Sequence[Any]]) -> None: ...


class Keys:
    """How a dialect names a tenant and a stream in its statements: as they are, unless it knows something shorter.

    And how it finds the records with a tag, of a tenant and kind. Here from the tags, each by its name: the planner of
    Postgres, as long as it knows nothing of its tables, might otherwise compare each with each.
    """

    numbered = "stream"
    """The column of a strand that its events name it by."""
    tagged = (
        "(SELECT tenant AS of_tenant, kind AS of_kind, id AS named FROM tags "
        "WHERE tenant = ? AND kind = ? AND tag = ? OFFSET 0) AS tagged, "
        "LATERAL (SELECT * FROM records WHERE tenant = of_tenant AND kind = of_kind AND id = named OFFSET 0) AS found"
    )

    def with_tag(self, tenant: str, query: Query) -> str:
        """What to select the records with a tag from; its parameters are tenant, kind and tag."""
        return self.tagged

    def tenants(self, run: RunStatement) -> list[str]:
        return [name for (name,) in run("", "SELECT name FROM tenants ORDER BY name")]

    def tenant(self, name: str) -> Any:
        return name

    def stream(self, tenant: str, number: int) -> Any:
        return number


AS_THEY_ARE = Keys()


class Reads:
    """The ``View`` verbs over any way to run a query.

    With ``remember`` strands are looked up once; what is ``frozen`` does not change while this is used.
    """

    def __init__(
        self,
        run: RunStatement,
        clock: Clock,
        *,
        remember: bool = False,
        frozen: bool = False,
        keys: Keys = AS_THEY_ARE,
    ) -> None:
        self._run = run
        self._clock = clock
        self._keys = keys
        self._is_frozen = frozen
        self._strands: dict[tuple[str, int], Strand] | None = {} if remember else None

    def get(self, tenant: str, kind: str, id: str) -> Record | None:
        sql = f"SELECT {RECORD} FROM records WHERE tenant = ? AND kind = ? AND id = ?"
        rows = self._run(tenant, sql, (self._keys.tenant(tenant), kind, id))
        return record_from(rows[0]) if rows else None

    def get_many(self, tenant: str, kind: str, ids: Sequence[str]) -> list[Record]:
        found: list[Record] = []
        for at in range(0, len(ids), _PAGE):
            some = ids[at : at + _PAGE]
            marks = ", ".join("?" * len(some))
            sql = f"SELECT {RECORD} FROM records WHERE tenant = ? AND kind = ? AND id IN ({marks})"
            rows = self._run(tenant, sql, (self._keys.tenant(tenant), kind, *some))
            found += [record_from(row) for row in rows]
        return found

    def ids_tagged(self, tenant: str, kind: str, tags: Sequence[str], limit: int) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for at in range(0, len(tags), _PAGE):
            some = tags[at : at + _PAGE]
            marks = ", ".join("?" * len(some))
            sql = f"SELECT tag, id FROM tags WHERE tenant = ? AND kind = ? AND tag IN ({marks}) LIMIT ?"
            found += self._run(tenant, sql, (self._keys.tenant(tenant), kind, *some, limit - len(found)))
        return [(tag, id) for tag, id in found]

    def events_at(self, tenant: str, marks: Sequence[Mark]) -> list[tuple[Mark, Event]]:
        # Stream by stream, each with its own search in the index: of a long OR some planners make a scan of everything.
        wanted: dict[int, list[int]] = {}
        for mark in marks:
            wanted.setdefault(mark.stream, []).append(mark.position)
        streams = {number: stream for stream in wanted if (number := self._keys.stream(tenant, stream))}
        found: list[tuple[Mark, Event]] = []
        for some in _portions({number: wanted[stream] for number, stream in streams.items()}):
            parts, values = list[str](), list[Any]()
            for number, positions in some:
                places = ", ".join("?" * len(positions))
                parts.append(
                    f"SELECT stream, {EVENT} FROM events WHERE tenant = ? AND stream = ? AND position IN ({places})"
                )
                values += [self._keys.tenant(tenant), number, *positions]
            for number, *event in self._run(tenant, " UNION ALL ".join(parts), values):
                read = Event(*event)
                found.append((Mark(streams[number], read.position), read))
        return found

    def scan(self, tenant: str, query: Query) -> list[Record]:
        number = self._keys.tenant(tenant)
        where, values = _conditions(number, query, self._clock.now())
        source = "records"
        if query.tag is not None:
            source, values = self._keys.with_tag(tenant, query), [number, query.kind, query.tag, *values]
        # The index knows the hour; only records active in the same hour are sorted here.
        order = "ORDER BY hour DESC, time DESC, id DESC LIMIT ?"
        rows = self._run(tenant, f"SELECT {RECORD} FROM {source} WHERE {where} {order}", (*values, query.limit))
        return [record_from(row) for row in rows]

    def read(
        self,
        tenant: str,
        mark: Mark,
        *,
        after: int = 0,
        limit: int | None = None,
        newest: bool = False,
        key: str | None = None,
    ) -> list[Event]:
        parts: Iterable[lineage.StreamPart] = lineage.parts(
            lambda stream: self._line(tenant, stream, mark), mark, after
        )
        if key is not None:
            return self._read_key(tenant, parts, key)
        if not newest:
            parts = reversed(list(parts))
        events: list[Event] = []
        for part in parts:
            left = None if limit is None else limit - len(events)
            if left is not None and left <= 0:
                break
            found = self._read_part(tenant, part, left, newest)
            events = found + events if newest else events + found
        return events

    def feed(
        self, tenant: str, after: int = 0, limit: int = 100, timeout_s: float = 0.0, only: Interest | None = None
    ) -> list[Commit]:
        if only is None:
            found = self._feed_page(tenant, after, limit)
            if found and found[0].position > after + 1:
                raise lineage.trimmed(after, found[0].position)
            return found
        wanted: list[Commit] = []
        while len(wanted) < limit:
            page = self._feed_of(tenant, after, limit, only)
            wanted += [commit for one in page if (commit := only.of(one)) is not None]
            if len(page) < limit:
                break
            after = page[-1].position
        return wanted[:limit]

    def _feed_page(self, tenant: str, after: int, limit: int) -> list[Commit]:
        sql = f"SELECT {FEED} FROM feed WHERE tenant = ? AND position > ? ORDER BY position LIMIT ?"
        return [commit_from(row) for row in self._run(tenant, sql, (self._keys.tenant(tenant), after, limit))]

    def _feed_of(self, tenant: str, after: int, limit: int, only: Interest) -> list[Commit]:
        """Items that may be of interest. Those of one user, of nobody and of several are each found by an index."""
        place = self._keys.tenant(tenant)
        queries = ["SELECT min(position), 0, NULL, NULL, NULL, NULL, '' FROM feed WHERE tenant = ?"]
        values: list[Any] = [place]
        for at, (where, given) in enumerate(_feed_parts(only)):
            queries.append(
                f"SELECT * FROM (SELECT {FEED} FROM feed WHERE tenant = ?{where} AND position > ? "
                f"ORDER BY position LIMIT ?) AS part{at}"
            )
            values += [place, *given, after, limit]
        rows = self._run(tenant, " UNION ALL ".join(queries), values)
        first = next(row[0] for row in rows if not row[-1])  # every item of the feed has a change
        if first is not None and first > after + 1:
            raise lineage.trimmed(after, first)
        found = (commit_from(row) for row in rows if row[-1])
        return sorted(found, key=lambda commit: commit.position)[:limit]

    def head(self, tenant: str) -> int:
        sql = "SELECT max(position) FROM feed WHERE tenant = ?"
        return int(self._run(tenant, sql, (self._keys.tenant(tenant),))[0][0] or 0)

    def limits(self, tenant: str) -> Limits:
        sql = "SELECT measure, kind, most, used FROM limits WHERE tenant = ?"
        rows = self._run(tenant, sql, (self._keys.tenant(tenant),))
        return {(measure, kind): (most, used) for measure, kind, most, used in rows}

    def strand(self, tenant: str, stream: int) -> Strand | None:
        sql = f"SELECT {STRAND} FROM strands WHERE tenant = ? AND stream = ?"
        rows = self._run(tenant, sql, (self._keys.tenant(tenant), stream))
        return Strand(*rows[0]) if rows else None

    def tenants(self) -> list[str]:
        return self._keys.tenants(self._run)

    def buried(self, tenant: str, kind: str, id: str) -> bool:
        sql = "SELECT 1 FROM graves WHERE tenant = ? AND grave = ?"
        return bool(self._run(tenant, sql, (self._keys.tenant(tenant), lineage.grave(kind, id))))

    def strands_of(self, tenant: str) -> Iterator[Strand]:
        """Yield every strand of a tenant in order of its number."""
        last = -1
        sql = f"SELECT {STRAND} FROM strands WHERE tenant = ? AND stream > ? ORDER BY stream LIMIT ?"
        while rows := self._run(tenant, sql, (self._keys.tenant(tenant), last, _PAGE)):
            yield from (Strand(*row) for row in rows)
            last = rows[-1][0]

    def own_events(self, tenant: str, strand: Strand) -> Iterator[Event]:
        """Yield all events stored under a strand, also those no record counts any more."""
        last = 0
        place = self._place(tenant, strand.stream)
        sql = f"SELECT {EVENT} FROM events WHERE tenant = ? AND stream = ? AND position > ? ORDER BY position LIMIT ?"
        while rows := self._run(tenant, sql, (*place, last, _PAGE)):
            yield from (Event(*row) for row in rows)
            last = rows[-1][4]

    def _line(self, tenant: str, stream: int, mark: Mark) -> Strand | None:
        """A strand for reading along. Ancestors may be remembered, as they stay while they are shared; the stream
        that was asked for may have been erased meanwhile."""
        if self._strands is None or (stream == mark.stream and not self._is_frozen):
            return self.strand(tenant, stream)
        strand = self._strands.get((tenant, stream)) or self.strand(tenant, stream)
        if strand is not None:
            if len(self._strands) >= _KNOWN_LIMIT:
                self._strands.clear()
            self._strands[(tenant, stream)] = strand
        return strand

    def _place(self, tenant: str, stream: int) -> tuple[Any, Any]:
        return self._keys.tenant(tenant), self._keys.stream(tenant, stream)

    def _read_part(self, tenant: str, part: lineage.StreamPart, limit: int | None, newest: bool) -> list[Event]:
        order = "DESC" if newest else "ASC"
        sql = (
            f"SELECT {EVENT} FROM events WHERE tenant = ? AND stream = ? AND position > ? AND position <= ? "
            f"ORDER BY position {order}"
        )
        values: tuple[Any, ...] = (*self._place(tenant, part.stream), part.after, part.upto)
        if limit is not None:
            sql, values = f"{sql} LIMIT ?", (*values, limit)
        events = [Event(*row) for row in self._run(tenant, sql, values)]
        if newest:
            events.reverse()
        return events

    def _read_key(self, tenant: str, parts: Iterable[lineage.StreamPart], key: str) -> list[Event]:
        sql = (
            f"SELECT {EVENT} FROM events WHERE tenant = ? AND stream = ? AND key = ? AND position > ? AND position <= ?"
        )
        for part in parts:
            rows = self._run(tenant, sql, (*self._place(tenant, part.stream), key, part.after, part.upto))
            if rows:
                return [Event(*rows[0])]
        return []


def _conditions(tenant: Any, query: Query, now: int) -> tuple[str, list[Any]]:
    where, values = ["tenant = ?", "kind = ?", IN_ORDER], [tenant, query.kind]
    for column, value in (("user", query.user), ("agent", query.agent), ("thread", query.thread)):
        if value is not None:
            where.append(f"scope_{column} = ?")
            values.append(value)
    if query.since is not None:
        where.append("hour >= ? AND time >= ?")
        values += [hour_of(query.since), query.since]
    if query.until is not None:
        where.append("hour <= ? AND time < ?")
        values += [hour_of(query.until), query.until]
    if query.before is not None:
        where.append("hour <= ? AND (time, id) < (?, ?)")
        values += [hour_of(query.before[0]), *query.before]
    where.append("(expires IS NULL OR expires > ?)" if query.expired_before is None else "expires <= ?")
    values.append(now if query.expired_before is None else query.expired_before)
    return " AND ".join(where), values


def _feed_parts(only: Interest) -> list[tuple[str, list[Any]]]:
    """Conditions that find what may be of interest, each with its values; together they find all of it."""
    rest, given = "", list[Any]()
    for column, value in (("agent", only.agent), ("thread", only.thread)):
        if value is not None:
            rest, given = f"{rest} AND scope_{column} IN (?, ?)", [*given, value, _MIXED]
    if only.unowned:
        owners: list[tuple[str, list[Any]]] = [(" AND scope_user IS NULL", []), (" AND scope_user = ?", [_MIXED])]
    elif only.user is not None:
        owners = [(" AND scope_user = ?", [only.user]), (" AND scope_user = ?", [_MIXED])]
    else:
        owners = [("", [])]
    return [(f"{owner}{rest}", [*whose, *given]) for owner, whose in owners]


def record_from(row: Row) -> Record:
    (kind, id, version, body, user, agent, thread, created, time, expires, tags, stream, base, head, digest,
     derived) = row  # fmt: skip
    names = () if tags == "[]" else _tags_decoder.decode(tags)
    return Record(
        kind, id, version, body, Scope(user, agent, thread), created, time, expires, names, stream, base, head, digest,
        bool(derived),
    )  # fmt: skip


def record_row(tenant: Any, record: Record) -> Row:
    scope = record.scope
    tags = _encoder.encode(record.tags).decode() if record.tags else "[]"
    return (
        tenant, record.kind, record.id, record.version, record.body, scope.user, scope.agent, scope.thread,
        record.created, record.time, record.expires, tags, record.stream, record.base, record.head, record.digest,
        record.derived, hour_of(record.time),
    )  # fmt: skip


def feed_row(tenant: Any, position: int, published: Published) -> Row:
    """A row of the feed. The scope that all of its changes share is said once, in columns that can be searched."""
    scopes = [change.scope for change in published.changes if change.action != "erase"]
    whole = len(scopes) == len(published.changes)
    users, agents, threads = ({getattr(scope, what) for scope in scopes} for what in ("user", "agent", "thread"))
    shared = [next(iter(some)) if whole and len(some) == 1 else _MIXED for some in (users, agents, threads)]
    return (
        tenant, position, published.time, published.actor, *shared, changes_text(published.changes, _MIXED in shared)
    )  # fmt: skip


def changes_text(changes: Sequence[Change], scoped: bool) -> str:
    """What a commit changed, a line for each change: every commit has a row of it, so its size counts.

    With ``scoped`` each line says whose the change is, because they differ.
    """
    return "\n".join(
        "\t".join((f"{_SIGNS[change.action]}{change.version}", _escaped(change.kind), _escaped(change.id), *scope))
        for change in changes
        for scope in [_scope_fields(change.scope) if scoped else ()]
    )


def _scope_fields(scope: Scope) -> tuple[str, ...]:
    if scope == Scope():
        return ()
    return tuple("" if name is None else _escaped(name) for name in (scope.user, scope.agent, scope.thread))


def commit_from(row: Row) -> Commit:
    position, time, actor, user, agent, thread, text = row
    shared = Scope() if _MIXED in (user, agent, thread) else Scope(user, agent, thread)
    found = []
    try:
        for line in text.split("\n"):
            what, kind, id, *scope = line.split("\t")
            whose = Scope(*(_unescaped(name) or None for name in scope)) if scope else shared
            found.append(Change(_ACTIONS[what[0]], _unescaped(kind), _unescaped(id), int(what[1:]), whose))
    except (ValueError, LookupError, TypeError) as error:
        raise Corrupt(f"the feed holds an unreadable row: {text[:80]!r}") from error
    return Commit(position, time, tuple(found), actor)


def _escaped(text: str) -> str:
    return text.translate(_ESCAPES)


def _pattern(id: str) -> str:
    """A pattern that the text of every change with this id meets, and maybe others: no letter of it is an escape."""
    return _escaped(id).replace("\\", "_")


def _forgetting_parts(forgetting: lineage.Forgetting) -> Iterator[tuple[str, list[Any]]]:
    """Conditions that find the rows which may speak of what is to be forgotten, each with its values."""
    scope = forgetting.scope
    if scope.user is not None:
        yield " AND scope_user = ?", [scope.user]
    elif scope != Scope():
        named = {"agent": scope.agent, "thread": scope.thread}
        given = {column: name for column, name in named.items() if name is not None}
        where = "".join(f" AND scope_{column} IN (?, ?)" for column in given)
        yield where, [value for name in given.values() for value in (name, _MIXED)]
    # The database leaves out what cannot name any of them, as long as they are few.
    names = sorted({*forgetting.ids, *([scope.user] if scope.user is not None else [])})
    few = 0 < len(names) <= _FEW
    naming = f" AND ({' OR '.join(['changes LIKE ?'] * len(names))})" if few else ""
    patterns = [f"%{_pattern(name)}%" for name in names] if few else []
    if names:
        yield f" AND scope_user = ?{naming}", [_MIXED, *patterns]
        yield f" AND scope_user IS NULL{naming}", patterns
    for owner in sorted({owner.user for owner in forgetting.ids.values() if owner.user not in (None, scope.user)}):
        yield f" AND scope_user = ?{naming}", [owner, *patterns]


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: _MEANT[found[0]], text) if "\\" in text else text


def write(tenant: str, changes: Changes, run_many: RunMany, keys: Keys = AS_THEY_ARE, *, source: Any) -> None:
    """Write everything a plan decided, apart from the feed, whose positions the engine gives out."""
    place = keys.tenant(tenant)
    rows: list[Row]
    if changes.strands:
        run_many(tenant, INSERT_STRAND, strand_rows(place, changes))
    if changes.events:
        rows = [
            (place, keys.stream(tenant, stream), e.position, e.kind, e.key, e.time, e.digest, e.body)
            for stream, e in changes.events
        ]
        run_many(tenant, INSERT_EVENT, rows)
    if changes.moved:
        rows = [(r.head, r.digest, r.time, place, kind, id) for (kind, id), r in changes.moved.items()]
        run_many(tenant, MOVE_RECORD, rows)
    if changes.records:
        _write_records(tenant, changes.records, run_many, place, source)


def strand_rows(place: Any, changes: Changes) -> list[Row]:
    return [(place, s.stream, s.kind, s.id, s.parent, s.base, s.digest) for s in changes.strands.values()]


def _write_records(tenant: str, written: dict[Name, Record | None], run_many: RunMany, place: Any, source: Any) -> None:
    """Write records, and of their tags what changed: most writes leave them alone, and few know where they are."""
    gone = [(place, *name) for name, record in written.items() if record is None]
    kept = [record for record in written.values() if record is not None]
    off: list[Row] = []
    on: list[Row] = []
    for (kind, id), record in written.items():
        stored = source.get(tenant, kind, id)  # the plan asked for it already
        old, new = set() if stored is None else set(stored.tags), set() if record is None else set(record.tags)
        off += [(place, kind, tag, id) for tag in sorted(old - new)]
        on += [(place, kind, tag, id) for tag in sorted(new - old)]
    for sql, rows in (
        (DELETE_TAG, off),
        (DELETE_RECORD, gone),
        (UPSERT_RECORD, [record_row(place, record) for record in kept]),
        (INSERT_TAG, on),
    ):
        if rows:
            run_many(tenant, sql, rows)


def _held(run: RunStatement, tenant: str, keys: Keys, measure: str, kind: str) -> int:
    """How much a tenant holds of what is limited."""
    place = keys.tenant(tenant)
    ((held,),) = run(tenant, _COUNTS[measure].format(number=keys.numbered), (place, kind) if kind else (place, place))
    return int(held)


class Tending:
    """What deletes rows: both verbs need to look and to write in the same transaction."""

    def __init__(self, run: RunStatement, run_many: RunMany, keys: Keys = AS_THEY_ARE) -> None:
        self._run, self._run_many, self._keys = run, run_many, keys
        self._reads = Reads(run, _NoClock(), keys=keys)

    def prune(self, tenant: str, names: Collection[Name], alive: Collection[int] = ()) -> None:
        """Delete what the strands of these names alone reach; what a surviving fork shares stays, under no name."""
        doomed = self._doomed(tenant, names, alive)
        if not doomed:
            return
        place = self._keys.tenant(tenant)
        kept = lineage.keeps([*doomed.values(), *self._children(tenant, doomed)], set(doomed))
        events = [(place, self._keys.stream(tenant, stream), keep) for stream, keep in kept.items()]
        gone = [(place, stream) for stream, keep in kept.items() if keep == 0]
        shared = [(place, stream) for stream, keep in kept.items() if keep > 0]
        self._run_many(tenant, "DELETE FROM events WHERE tenant = ? AND stream = ? AND position > ?", events)
        self._run_many(tenant, "DELETE FROM strands WHERE tenant = ? AND stream = ?", gone)
        self._run_many(tenant, "UPDATE strands SET kind = '', id = '' WHERE tenant = ? AND stream = ?", shared)

    def _doomed(self, tenant: str, names: Collection[Name], alive: Collection[int]) -> dict[int, Strand]:
        """The strands of these names, with the nameless ancestors that may have been kept for them alone."""
        place = self._keys.tenant(tenant)
        sql = f"SELECT {STRAND} FROM strands WHERE tenant = ? AND kind = ? AND id = ?"
        owned = [Strand(*row) for name in names for row in self._run(tenant, sql, (place, *name))]
        doomed = {strand.stream: strand for strand in owned if strand.stream not in alive}
        for strand in owned:
            parent = self._reads.strand(tenant, strand.parent) if strand.parent is not None else None
            while parent is not None and not parent.kind and parent.stream not in doomed:
                doomed[parent.stream] = parent
                parent = self._reads.strand(tenant, parent.parent) if parent.parent is not None else None
        return doomed

    def _children(self, tenant: str, doomed: Collection[int]) -> list[Strand]:
        place = self._keys.tenant(tenant)
        sql = f"SELECT {STRAND} FROM strands WHERE tenant = ? AND parent = ?"
        return [Strand(*row) for stream in doomed for row in self._run(tenant, sql, (place, stream))]

    def erase(
        self, tenant: str, scope: Scope, *, bury: bool, free: Collection[str] = ()
    ) -> tuple[Removed, tuple[Change, ...]]:
        """Delete a scope's records, tags and events; return what went, and what the feed will say of it."""
        place = self._keys.tenant(tenant)
        records = inside(self._run, tenant, place, scope)
        names = [(place, r.kind, r.id) for r in records]
        if names:
            self._run_many(tenant, DELETE_TAG, [(place, r.kind, tag, r.id) for r in records for tag in r.tags])
            self._run_many(tenant, DELETE_RECORD, names)
            self.prune(tenant, [(r.kind, r.id) for r in records if r.stream is not None])
            self.bury(tenant, lineage.graves(records, free) if bury else ())
            self.recount(tenant)
        # Also where nothing is there any more: what was deleted before is still spoken of.
        gone = {r.id: r.scope for r in records if not r.derived}
        forgotten = self.forget(tenant, lineage.Forgetting(gone, scope))
        removed = lineage.removed(records)
        return removed, lineage.erasure(removed, forgotten)

    def bury(self, tenant: str, names: Iterable[Name]) -> None:
        """Leave a tombstone of each, so that it does not come back."""
        place = self._keys.tenant(tenant)
        if rows := [(place, lineage.grave(*name)) for name in names]:
            self._run_many(tenant, INSERT_GRAVE, rows)

    def forget(self, tenant: str, forgetting: lineage.Forgetting) -> int:
        """Take what was erased out of the feed: what happened stays, not to whom. Return how many items changed."""
        parts = _forgetting_parts(forgetting)
        forgotten = sum(self._forget_where(tenant, forgetting, where, values) for where, values in parts)
        if forgetting.actor is not None:
            whose = (self._keys.tenant(tenant), forgetting.actor)
            forgotten += self._run(tenant, "SELECT count(*) FROM feed WHERE tenant = ? AND actor = ?", whose)[0][0]
            self._run_many(tenant, FORGET_ACTOR, [whose])
        return forgotten

    def _forget_where(self, tenant: str, forgetting: lineage.Forgetting, where: str, values: Sequence[Any]) -> int:
        place, last, forgotten = self._keys.tenant(tenant), 0, 0
        sql = f"SELECT {FEED} FROM feed WHERE tenant = ? AND position > ?{where} ORDER BY position LIMIT ?"
        while rows := self._run(tenant, sql, (place, last, *values, _PAGE)):
            changed = (commit for row in rows if (commit := forgetting.of(commit_from(row))) is not None)
            told = ((c.position, Published(c.time, c.actor, c.changes)) for c in changed)
            updates = [(*feed_row(place, at, one)[3:], place, at) for at, one in told]
            self._run_many(tenant, UPDATE_FEED, updates)
            last, forgotten = rows[-1][0], forgotten + len(updates)
        return forgotten

    def finish(self, tenant: str, changes: Changes, position: int) -> None:
        """What follows once a plan's rows and its feed are written: ids forgotten, the feed trimmed, things counted."""
        place = self._keys.tenant(tenant)
        self.bury(tenant, changes.graves)
        for forgetting in lineage.forgettings(changes.erased, position - len(changes.feed)):
            self.forget(tenant, forgetting)
        if changes.trimmed:
            self._run_many(tenant, TRIM_FEED, [(place, changes.trimmed, position)])
        if changes.limits or changes.released:
            self.recount(tenant, changes.limits)
        elif changes.grown:
            self._run_many(tenant, ADD_USED, [(more, place, *what) for what, more in changes.grown.items() if more])

    def recount(self, tenant: str, limits: Mapping[Measured, int | None] | None = None) -> None:
        """Recount what is limited, after setting ``limits`` if given."""
        place = self._keys.tenant(tenant)
        for (measure, kind), most in (limits or {}).items():
            self._run_many(tenant, DELETE_LIMIT, [(place, measure, kind)])
            if most is not None:
                self._run_many(tenant, INSERT_LIMIT, [(place, measure, kind, most)])
        for measure, kind in self._reads.limits(tenant):
            used = _held(self._run, tenant, self._keys, measure, kind)
            self._run_many(tenant, SET_USED, [(used, place, measure, kind)])


def inside(run: RunStatement, tenant: str, place: Any, scope: Scope) -> list[Record]:
    """Every record of a scope, without its body: nobody who erases looks at it."""
    lineage.refuse_empty(scope)
    where, values = ["tenant = ?"], [place]
    for column, value in (("user", scope.user), ("agent", scope.agent), ("thread", scope.thread)):
        if value is not None:
            where.append(f"scope_{column} = ?")
            values.append(value)
    columns = RECORD.replace("body", "digest", 1)
    rows = run(tenant, f"SELECT {columns} FROM records WHERE {' AND '.join(where)}", values)
    return [record_from(row) for row in rows]


def check(view: Reads, run: RunStatement, keys: Keys = AS_THEY_ARE, only: str | None = None) -> list[Problem]:
    """Walk every chain of one tenant, or of all, and compare it with what records and forks count on."""
    problems: list[Problem] = []
    for tenant in view.tenants() if only is None else [only]:
        needed: dict[int, int] = {}
        for strand in view.strands_of(tenant):
            if strand.parent is not None:
                needed[strand.parent] = max(needed.get(strand.parent, 0), strand.base)
        sql = "SELECT stream, kind, id, base, head, digest FROM records WHERE tenant = ? AND stream IS NOT NULL"
        heads = {row[0]: _Head(*row) for row in run(tenant, sql, (keys.tenant(tenant),))}
        for stream, head in heads.items():
            needed[stream] = max(needed.get(stream, 0), head.head)
        for strand in view.strands_of(tenant):
            problems += _check_strand(view, tenant, strand, needed.pop(strand.stream, 0), heads.get(strand.stream))
        problems += [_missing(tenant, stream, heads.get(stream)) for stream in needed]
        problems += _check_derived(tenant, run, keys.tenant(tenant))
        for (measure, kind), (_, used) in view.limits(tenant).items():
            if used != (held := _held(run, tenant, keys, measure, kind)):
                what = f"the count is {used} {measure}, but there are {held}"
                problems.append(Problem(f"the quota of {kind or 'all'}", what, tenant))
    return problems


_OWNERLESS = (
    "SELECT DISTINCT s.kind, s.id FROM strands s LEFT JOIN records r "
    "ON r.tenant = s.tenant AND r.kind = s.kind AND r.id = s.id WHERE s.tenant = ? AND s.kind <> '' AND r.id IS NULL"
)
_WRONG_HOUR = "SELECT kind, id FROM records WHERE tenant = ? AND time >= 0 AND hour <> time / 3600000000"
_TAGGED = "SELECT kind, id, tags FROM records WHERE tenant = ? AND tags <> '[]'"


def _check_derived(tenant: str, run: RunStatement, place: Any) -> list[Problem]:
    """Compare what is kept twice for speed, and look for owners and commits that are gone."""
    found = [
        (kind, id, "its record is missing, but its history exists") for kind, id in run(tenant, _OWNERLESS, (place,))
    ]
    found += [(kind, id, "it is listed under the wrong hour") for kind, id in run(tenant, _WRONG_HOUR, (place,))]
    listed = {tuple(row) for row in run(tenant, "SELECT kind, id, tag FROM tags WHERE tenant = ?", (place,))}
    worn = {(kind, id, tag) for kind, id, tags in run(tenant, _TAGGED, (place,)) for tag in _tags_decoder.decode(tags)}
    found += [(kind, id, f"tag {tag!r} and its index disagree") for kind, id, tag in sorted(listed ^ worn)]
    problems = [Problem(f"{kind} {id!r}", what, tenant, kind, id) for kind, id, what in found]
    sql = "SELECT count(*), max(position), min(position) FROM feed WHERE tenant = ?"
    ((count, last, first),) = run(tenant, sql, (place,))
    if count and count != last - first + 1:
        problems.append(Problem("the feed", f"it has {count} of the {last - first + 1} commits since {first}", tenant))
    return problems


class _Head(NamedTuple):
    """What a record counts on."""

    stream: int
    kind: str
    id: str
    base: int
    head: int
    digest: bytes


def _missing(tenant: str, stream: int, head: _Head | None) -> Problem:
    what = "the whole stream is missing"
    if head is None:
        return Problem(f"stream {stream}", what, tenant)
    return Problem(f"{head.kind} {head.id!r}", what, tenant, head.kind, head.id, head.base + 1)


def _check_strand(view: Reads, tenant: str, strand: Strand, needed: int, head: _Head | None) -> list[Problem]:
    last, final = strand.base, strand.digest

    def watched() -> Iterator[Event]:
        nonlocal last, final
        for event in view.own_events(tenant, strand):
            yield event
            last, final = event.position, event.digest

    problems = lineage.problems(tenant, strand, chain.breaks(watched(), strand.base, strand.digest))
    problems += lineage.short(tenant, strand, last, needed)
    if not problems and head is not None and (head.head, head.digest) != (last, final):
        problems += lineage.problems(tenant, strand, iter([(last, "the head does not match the last entry")]))
    return problems


class _NoClock:
    """For reads that ask no time."""

    def now(self) -> int:
        return 0


def _portions(wanted: Mapping[int, Sequence[int]]) -> Iterator[list[tuple[int, Sequence[int]]]]:
    """Positions by stream, as many at a time as one statement can name."""
    some: list[tuple[int, Sequence[int]]] = []
    size = 0
    for number, positions in wanted.items():
        for at in range(0, len(positions), _PLACES):
            part = positions[at : at + _PLACES]
            if some and (size + len(part) > _PLACES or len(some) == _PARTS):
                yield some
                some, size = [], 0
            some.append((number, part))
            size += len(part)
    if some:
        yield some
