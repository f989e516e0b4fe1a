"""Sessions of ADK as threads: an event is an entry, and goes in with the state it changes in one commit.

State whose keys begin with ``app:`` or ``user:`` is shared by the sessions of an app, or of a user of it, and is a file
of its own; ``temp:`` stays with the invocation. Two writers lose nothing: an event is appended wherever the log has
come to, and its changes are merged into the state as it is then. Deliberately absent: a session that is refused
because another one wrote meanwhile, and one that comes back after it was deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.platform import uuid as adk_uuid
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig, ListSessionsResponse
from google.adk.sessions.session import Session
from google.adk.sessions.state import State

from holdfast import FileWrite
from holdfast.adapters.adk.events import is_event, plain, timestamp_of, to_draft, to_event
from holdfast.adapters.adk.service import TAG, Service, SessionPlace
from holdfast.errors import Erased, NotFound
from holdfast.extension import (
    FILE,
    Append,
    FileBook,
    Guard,
    Mark,
    Op,
    Put,
    Query,
    Receipt,
    Record,
    StateBook,
    View,
    check_id,
    compare_and_set,
    encode,
    fetch,
    fetch_events,
    in_thread,
    log,
    scan_all,
    to_document,
    to_file,
)
from holdfast.types import Entry

_SHARED = "adk state"
_FILE = "state"
_PAGE = 500
_EMPTY = encode({})


class _Change(NamedTuple):
    """What is to be changed in the state of an app, of a user and of a session."""

    app: dict[str, Any]
    user: dict[str, Any]
    session: dict[str, Any]

    @classmethod
    def of(cls, delta: dict[str, Any]) -> _Change:
        change = cls({}, {}, {})
        for key, value in plain(delta, "state").items():
            if key.startswith(State.APP_PREFIX):
                change.app[key.removeprefix(State.APP_PREFIX)] = value
            elif key.startswith(State.USER_PREFIX):
                change.user[key.removeprefix(State.USER_PREFIX)] = value
            elif not key.startswith(State.TEMP_PREFIX):
                change.session[key] = value
        return change


class HoldfastSessionService(Service, BaseSessionService):
    """Keeps ADK's sessions in a store: ``HoldfastSessionService("agent.db")``."""

    # What ADK asks for

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        """Begin a session, under an id of its own if none is given. ``AlreadyExistsError`` when there is one of it."""
        place = SessionPlace(app_name, user_id, (session_id or "").strip() or adk_uuid.new_uuid())
        return await in_thread(self._create, place, _Change.of(state or {}))

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """The session with its events and state as they were at one moment, None when there is none."""
        place = SessionPlace(app_name, user_id, session_id.strip())
        return await in_thread(self._get, place, config or GetSessionConfig()) if place.session else None

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """Sessions without their events, of one user or of all, the latest active last."""
        return ListSessionsResponse(sessions=await in_thread(self._list, app_name, user_id))

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Erase a session with its events, state, artifacts and whatever was learned from it alone.

        A caller that still holds it can no longer write to it, even if a session of the same id is created again.
        """
        place = SessionPlace(app_name, user_id, session_id.strip())
        if place.session:
            await in_thread(self._store.erase, thread=place.thread, forever=False)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """What all sessions of a user share, by keys without ``user:``."""
        file = await in_thread(self._folder(_SHARED, app=app_name, user=user_id).find, _FILE)
        return {} if file is None else file.content

    async def append_event(self, session: Session, event: Event) -> Event:
        """Append an event and apply what it changes in the state, in one commit; a partial one is not kept.

        The same event again changes nothing. ``SessionNotFoundError`` when the session was deleted.
        """
        if event.partial:
            return event
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        await in_thread(self._append, session, event)
        if any(known == event for known in session.events if known.id == event.id):
            return event
        session.last_update_time = event.timestamp
        return self._commit_event_to_session(session, event)

    # Writing

    def _create(self, place: SessionPlace, change: _Change) -> Session:
        new = Put("thread", place.thread, _EMPTY, scope=place.scope, tags=(TAG,))

        def ops(time: int) -> Sequence[Op]:
            if self._core.engine.get(self._core.tenant, "thread", place.thread) is not None:
                raise AlreadyExistsError(f"Session with id {place.session} already exists.")
            begun = (Guard("thread", place.thread, 0), Append("thread", place.thread, new=new))
            return (*begun, *self._changing(place, change, "app", time))

        self._commit(place, ops)
        session = self._get(place, GetSessionConfig(num_recent_events=0))
        if session is None:
            raise SessionNotFoundError(f"Session {place.session} was deleted while it was created.")
        return session

    def _append(self, session: Session, event: Event) -> None:
        place = SessionPlace(session.app_name, session.user_id, session.id)
        draft, change = to_draft(event), _Change.of(event.actions.state_delta)

        def ops(time: int) -> Sequence[Op]:
            record = self._existing(session, place)
            changing = self._changing(place, change, event.author or "agent", time)
            if self._core.engine.read(self._core.tenant, record.mark, key=event.id):
                changing = ()  # it was applied then, and others may have changed it since
            guard = Guard("thread", place.thread, record.version, record.stream)
            append = Append("thread", place.thread, (log.to_event(draft, time),), same=log.same_entry)
            return (guard, append, *changing)

        self._commit(place, ops)

    def _existing(self, session: Session, place: SessionPlace) -> Record:
        """The thread of a session that a caller holds. One that was recreated since is another."""
        record = self._core.engine.get(self._core.tenant, "thread", place.thread)
        if record is None or session._storage_update_marker not in (None, str(record.created)):
            raise SessionNotFoundError(f"Session {session.id} not found.")
        return record

    def _changing(self, place: SessionPlace, change: _Change, by: str, time: int) -> tuple[Op, ...]:
        """The operations that merge a change into the state as it is; ``Conflict`` where it is another by then."""
        ops: list[Op] = []
        if change.session:
            book = StateBook(self._core, place.thread, place.scope)
            basis = book.basis(plainly=True, again=True)
            merged = {**basis.value, **change.session}
            ops += book.saving(merged, schema=basis.schema, by=by, time=time, base=basis.base).ops
        if change.app:
            ops += self._merging(self._app_state(place.app), change.app, time)
        if change.user:
            ops += self._merging(self._user_state(place.app, place.user), change.user, time)
        return tuple(ops)

    def _merging(self, files: FileBook, change: dict[str, Any], time: int) -> list[Op]:
        record = files.record(_FILE)
        found = files.files([record]) if files.is_here(record) else []
        before = found[0].content if found else {}
        return files.ops(FileWrite(_FILE, {**before, **change}), record, time)

    def _commit(self, place: SessionPlace, ops: Callable[[int], Sequence[Op]]) -> Receipt:
        """Commit operations, prepared again as long as another process changes the session first."""
        core = self._core

        def commit(time: int) -> Receipt:
            try:
                return core.write(ops(time), time)
            except Erased:
                raise
            except NotFound as error:  # deleted by another in between
                raise SessionNotFoundError(f"Session {place.session} not found.") from error

        return compare_and_set(core.clock.now, commit, f"session {place.session!r}", thread=place.thread)

    # Reading

    def _get(self, place: SessionPlace, config: GetSessionConfig) -> Session | None:
        wanted, after = config.num_recent_events, config.after_timestamp
        with self._core.engine.snapshot() as view:
            record = view.get(self._core.tenant, "thread", place.thread)
            if record is None:
                return None
            entries = self._newest(view, record, wanted)
            session = self._sessions(view, [record])[0]
        events = map(to_event, entries)
        session.events = [event for event in events if after is None or event.timestamp >= after]
        return session

    def _newest(self, view: View, record: Record, wanted: int | None) -> list[Entry]:
        """The newest entries that are events of ADK, oldest first; others may have written in between."""
        found: list[Entry] = []
        mark, page = record.mark, _PAGE if wanted is None else min(wanted, _PAGE)
        while mark.position and (wanted is None or len(found) < wanted):
            read = view.read(self._core.tenant, mark, limit=page, newest=True)
            entries = (log.to_entry(record.id, event) for event in reversed(read))
            found += [entry for entry in entries if is_event(entry)]
            mark, page = Mark(mark.stream, read[0].position - 1), _PAGE
        return found[:wanted][::-1]

    def _list(self, app: str, user: str | None) -> list[Session]:
        check_id(app, "app_name")
        if user is not None:
            check_id(user, "user_id")
        with self._core.engine.snapshot() as view:
            found = scan_all(view, self._core.tenant, Query("thread", user=user, agent=app, tag=TAG))
            sessions = self._sessions(view, [record for record in found if SessionPlace.of(record.id) is not None])
        return sorted(sessions, key=lambda session: (session.last_update_time, session.user_id, session.id))

    def _sessions(self, view: View, records: Sequence[Record]) -> list[Session]:
        """Sessions without their events: what is theirs alone, and above it what they share."""
        places = [(place, record) for record in records if (place := SessionPlace.of(record.id)) is not None]
        shared = {self._app_state(place.app).id(_FILE) for place, _ in places}
        shared |= {self._user_state(place.app, place.user).id(_FILE) for place, _ in places}
        files = fetch(view, self._core.tenant, FILE, sorted(shared))
        states = fetch(view, self._core.tenant, "state", [record.id for record in records])
        marks = [record.mark for record in (*files.values(), *states.values(), *records) if record.head]
        events = fetch_events(view, self._core.tenant, marks)

        def file(book: FileBook, prefix: str) -> dict[str, Any]:
            record = files.get(book.id(_FILE))
            kept = {} if record is None else to_file(record, events[record.mark]).content
            return {f"{prefix}{key}": value for key, value in kept.items()}

        def own(id: str) -> dict[str, Any]:
            record = states.get(id)
            return {} if record is None or not record.head else to_document(events[record.mark]).value

        def updated(record: Record) -> float:
            """The time of the last event, as it says itself; before there is one, when the session was created."""
            last = [log.to_entry(record.id, events[record.mark])] if record.mark in events else []
            if record.head and not (last and is_event(last[0])):  # rewound, or another program wrote to the thread
                last = self._newest(view, record, 1)
            return timestamp_of(last[0]) if last else record.created / 1_000_000

        return [
            _session(place, record, updated(record), {
                **own(record.id),
                **file(self._app_state(place.app), State.APP_PREFIX),
                **file(self._user_state(place.app, place.user), State.USER_PREFIX),
            })
            for place, record in places
        ]  # fmt: skip

    def _app_state(self, app: str) -> FileBook:
        return self._folder(_SHARED, app=app).filebook

    def _user_state(self, app: str, user: str) -> FileBook:
        return self._folder(_SHARED, user=user, app=app).filebook


def _session(place: SessionPlace, record: Record, updated: float, state: dict[str, Any]) -> Session:
    app, user, id = place
    session = Session(id=id, app_name=app, user_id=user, state=state, last_update_time=updated)
    session._storage_update_marker = str(record.created)
    return session
