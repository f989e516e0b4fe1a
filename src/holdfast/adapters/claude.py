"""The session store of the Claude Agent SDK, kept in threads.

Each transcript, of a session or of a subagent in it, is a thread; each of its entries is one entry of the log, stored
once. What a person or a model said is in the form that logs, contexts and recall read, and what a tool gave back is an
observation; the rest of an entry goes beside it under a mark, with a hole for each value that stands in front, and out
of both it comes back as it was given. The summary that the SDK folds of a session is derived: kept in a record beside
the thread, written in the same commit, and folded again from the log wherever the two do not agree. Deliberately
absent: what the entries of the SDK mean beyond who said what, and a way back for a session that was deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from weakref import WeakValueDictionary

import msgspec

from holdfast import Thread
from holdfast.errors import Invalid
from holdfast.extension import (
    FRAMEWORK,
    RESERVED,
    Draft,
    Event,
    Op,
    OpenedStore,
    Put,
    Record,
    StoreOrAddress,
    check_id,
    compare_and_set,
    decode,
    encode,
    escaped,
    fetch,
    framework_parts,
    in_thread,
    log,
    quoted,
    to_micros,
    unescaped,
)
from holdfast.types import Entry, ThreadInfo

try:
    from claude_agent_sdk import SessionStore, fold_session_summary
except ImportError as error:
    raise ImportError("this needs the Claude Agent SDK: pip install 'holdfast[claude]'") from error

if TYPE_CHECKING:
    from claude_agent_sdk import (
        SessionKey,
        SessionListSubkeysKey,
        SessionStoreEntry,
        SessionStoreListEntry,
        SessionSummaryEntry,
    )

MARK = "claude"
"""What the ids of these threads begin with, and the part of ``FRAMEWORK`` with what an entry's other fields lack."""
SUMMARY = "claude_summary"
"""The kind of record that a session's summary is kept in, under the id of its thread."""
_SAID = ("user", "assistant")


class HoldfastSessionStore(SessionStore):
    """Transcripts of Claude sessions as threads; any number of processes may write to the same one at once.

    ``store`` is an open store or the address of one; only what was opened here is closed by ``close``. ``user`` and
    ``agent`` say whose the sessions are, so that recall finds them: other people's are then neither listed nor touched.
    """

    def __init__(self, store: StoreOrAddress, *, user: str | None = None, agent: str | None = None) -> None:
        self._held = OpenedStore(store)
        self.store = self._held.store
        self._user, self._agent, self._core = user, agent, self.store.core
        self._queues: WeakValueDictionary[tuple[asyncio.AbstractEventLoop, str], asyncio.Lock] = WeakValueDictionary()
        with self._held.begun() as begun:
            begun.thread(MARK, user=user, agent=agent)  # refuses what can be nobody's name

    def __repr__(self) -> str:
        return f"HoldfastSessionStore(user={self._user!r}, agent={self._agent!r})"

    # What the SDK asks of a session store

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Add entries to a transcript in one commit, in the order of the calls; one whose uuid it has already is left
        out. A session that was deleted takes no more: ``Erased``."""
        place, drafts = _TranscriptPlace.of(key), [_draft(entry) for entry in entries]
        if not drafts:
            return
        queue = self._queues.setdefault((asyncio.get_running_loop(), place.id), asyncio.Lock())
        async with queue:
            await in_thread(self._append if place.subpath is None else self._append_below, place, drafts)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """The entries of a transcript, as they were given; None where nothing was ever appended."""
        return await in_thread(self._load, _TranscriptPlace.of(key)) or None

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """The sessions of a project, the one that was active last first."""
        found = await in_thread(self._sessions, _project(project_key))
        return [{"session_id": _TranscriptPlace.at(info.id).session, "mtime": _milliseconds(info)} for info in found]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """The SDK's summaries of the sessions of a project. They always tell what is in the transcripts."""
        return await in_thread(self._summaries, _project(project_key))

    async def delete(self, key: SessionKey) -> None:
        """Erase a transcript; a session goes with the transcripts of all its subagents, also those yet to come."""
        await in_thread(self._delete, _TranscriptPlace.of(key))

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """The subpaths of the transcripts that belong to a session, in order."""
        return await in_thread(self._subpaths, _TranscriptPlace.of({**key, "subpath": None}))

    # What it can do beyond that

    def thread(self, key: SessionKey) -> Thread:
        """The thread that a transcript is kept in."""
        return self._thread(_TranscriptPlace.of(key))

    def close(self) -> None:
        """Close the store, if this session store opened it."""
        self._held.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await in_thread(self.close)

    # Writing

    def _append(self, place: _TranscriptPlace, drafts: list[Draft]) -> None:
        """Append what is new, and fold it into the summary; who was overtaken looks again at what is new."""
        thread = self._thread(place)

        def look() -> tuple[int, list[Draft]]:
            record = thread.logbook.record()
            return 0 if record is None else record.head, self._fresh(record, drafts)

        def commit(seen: tuple[int, list[Draft]]) -> None:
            head, fresh = seen
            if fresh:
                summary = self._folded(place, thread, head, [_entry(draft.content) for draft in fresh])
                body = encode({"entries": head + len(fresh), "data": summary["data"]})
                self._commit(thread, fresh, head, Put(SUMMARY, place.id, body, scope=thread.logbook.scope))

        compare_and_set(look, commit, f"session {place.session!r}", thread=place.id)

    def _append_below(self, place: _TranscriptPlace, drafts: list[Draft]) -> None:
        """Append to a subagent's transcript, unless its session was deleted: the same commit touches that."""
        self._commit(self._thread(place), drafts, None, self._thread(place.main).logbook.touch())

    def _commit(self, thread: Thread, drafts: list[Draft], expect: int | None, also: Op) -> None:
        time = self._core.clock.now()
        op = msgspec.structs.replace(thread.logbook.append(drafts, time, expect), same=_by_key)
        self._core.write((op, also), time)

    def _fresh(self, record: Record | None, drafts: Iterable[Draft]) -> list[Draft]:
        """The drafts whose keys the log does not hold, each once."""
        seen: set[str] = set()
        fresh = []
        for draft in drafts:
            if draft.key is not None:
                if draft.key in seen or self._holds(record, draft.key):
                    continue
                seen.add(draft.key)
            fresh.append(draft)
        return fresh

    def _holds(self, record: Record | None, key: str) -> bool:
        return record is not None and bool(self._core.engine.read(self._core.tenant, record.mark, key=key))

    def _delete(self, place: _TranscriptPlace) -> None:
        thread = self._thread(place)
        if thread.exists():  # and is not someone else's
            self.store.erase(thread=place.id)
        if place.subpath is None:  # the session is gone, and so no subagent can begin any more
            for info in self._below(place):
                self.store.erase(thread=info.id)

    # Reading

    def _load(self, place: _TranscriptPlace) -> list[Any]:
        return _entries(self._thread(place).log())

    def _sessions(self, project: str) -> list[ThreadInfo]:
        infos = self.store.threads(user=self._user, agent=self._agent, tag=_tag(project), limit=None)
        return [info for info in infos if info.entries]  # one without entries was made by a subagent's

    def _below(self, main: _TranscriptPlace) -> list[ThreadInfo]:
        return self.store.threads(user=self._user, agent=self._agent, tag=main.id, limit=None)

    def _subpaths(self, main: _TranscriptPlace) -> list[str]:
        return sorted(_TranscriptPlace.at(info.id).subpath or "" for info in self._below(main))

    # Summaries

    def _summaries(self, project: str) -> list[SessionSummaryEntry]:
        sessions = self._sessions(project)
        kept = fetch(self._core.engine, self._core.tenant, SUMMARY, [info.id for info in sessions])
        return [self._summary(info, kept.get(info.id)) for info in sessions]

    def _summary(self, info: ThreadInfo, record: Record | None) -> SessionSummaryEntry:
        place, data = _TranscriptPlace.at(info.id), _data(record, info.entries)
        if data is None:
            data = fold_session_summary(None, place.key(), self._load(place))["data"]
        return {"session_id": place.session, "mtime": _milliseconds(info), "data": data}

    def _folded(self, place: _TranscriptPlace, thread: Thread, head: int, more: list[Any]) -> SessionSummaryEntry:
        """The summary of a session's first ``head`` entries, with more of them folded in."""
        record = self._core.engine.get(self._core.tenant, SUMMARY, place.id)
        data = _data(record, head)
        if data is None and head:
            more = [*_entries(thread.log(limit=head)), *more]
        prev: Any = None if data is None else {"session_id": place.session, "mtime": 0, "data": data}
        return fold_session_summary(prev, place.key(), more)

    def _thread(self, place: _TranscriptPlace) -> Thread:
        return self.store.thread(place.id, user=self._user, agent=self._agent, tags=[place.tag])


def _data(record: Record | None, entries: int) -> dict[str, Any] | None:
    """What a summary holds, if it is of exactly so many entries: there may have been a rewind, or someone's remark."""
    kept = None if record is None else decode(record.body)
    return None if kept is None or kept["entries"] != entries else kept["data"]


def _milliseconds(info: ThreadInfo) -> int:
    return to_micros(info.active) // 1_000


def _by_key(stored: Event, offered: Event) -> bool:
    """A uuid says that it is the same entry, and the first one stays."""
    return True


# Keys


class _TranscriptPlace(NamedTuple):
    """Which transcript, and the thread it is in. No two of them have the same id, and an id tells which it is."""

    project: str
    session: str
    subpath: str | None = None

    @staticmethod
    def of(key: Any) -> _TranscriptPlace:
        fields = key if isinstance(key, dict) else {}
        project, session, subpath = (fields.get(name) or None for name in ("project_key", "session_id", "subpath"))
        if not isinstance(project, str) or not isinstance(session, str):
            raise Invalid(f"a session's key has a project_key and a session_id, which are text; not {quoted(key)}")
        if subpath is not None and not isinstance(subpath, str):
            raise Invalid(f"the subpath of a session's key is text, not {type(subpath).__name__}")
        return _TranscriptPlace(project, session, subpath)

    @staticmethod
    def at(id: str) -> _TranscriptPlace:
        _, project, session, *below = id.split("/", 3)
        return _TranscriptPlace(unescaped(project), unescaped(session), *below)

    @property
    def id(self) -> str:
        main = f"{_tag(self.project)}/{escaped(self.session)}"
        return main if self.subpath is None else f"{main}/{self.subpath}"

    @property
    def main(self) -> _TranscriptPlace:
        return self._replace(subpath=None)

    @property
    def tag(self) -> str:
        """By what it is listed: a session by its project, a subagent's transcript by its session."""
        return _tag(self.project) if self.subpath is None else self.main.id

    def key(self) -> SessionKey:
        return {"project_key": self.project, "session_id": self.session}


def _project(key: Any) -> str:
    if not isinstance(key, str) or not key:
        raise Invalid(f"a project_key is text, not {quoted(key)}")
    return key


def _tag(project: str) -> str:
    return f"{MARK}/{escaped(project)}"


# Entries of a transcript, and of a log


def _draft(entry: Any) -> Draft:
    """An entry of a transcript as one of a log."""
    if not isinstance(entry, dict):
        raise Invalid(f"an entry of a transcript is a dict, not {type(entry).__name__}")
    kind, front, rest = _split(entry)
    if isinstance(entry.get("timestamp"), str):  # when it was said, also for what is imported later
        front, rest = {**front, "timestamp": entry["timestamp"]}, {**rest, "timestamp": None}
    return log.copied(Draft(kind, {**front, FRAMEWORK: {MARK: rest}}, _key(entry.get("uuid"))))


def _split(entry: dict[str, Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The kind of an entry, what stands in front, and the rest of it with holes where that was."""
    message = entry.get("message")
    said = isinstance(message, dict) and isinstance(message.get("role"), str) and "content" in message
    if not said or entry.get("type") not in _SAID or entry.get("isMeta") is True:
        return "event", {"name": f"{RESERVED}{MARK}.{entry.get('type')}"}, entry
    assert isinstance(message, dict)
    content = message["content"]
    if (result := _only_result(content)) is not None:
        hollow = {**result, "tool_use_id": None, "content": None}
        front = {"of": result["tool_use_id"], "content": result["content"]}
        return "observation", front, {**entry, "message": {**message, "content": [hollow]}}
    kind = "summary" if entry.get("isCompactSummary") is True else "observation" if _returned(content) else "message"
    front = {"role": message["role"], "content": content}
    return kind, front, {**entry, "message": {**message, "role": None, "content": None}}


def _only_result(content: Any) -> dict[str, Any] | None:
    """The result of a call, where a message is nothing else."""
    if not _returned(content) or len(content) > 1:
        return None
    block: dict[str, Any] = content[0]
    return block if isinstance(block.get("tool_use_id"), str) and "content" in block else None


def _returned(content: Any) -> bool:
    """Whether there is anything in a message that a tool gave back, and that nobody vouches for."""
    blocks = content if isinstance(content, list) else []
    return any(isinstance(block, dict) and block.get("type") == "tool_result" for block in blocks)


def _key(uuid: Any) -> str | None:
    try:
        return check_id(uuid, "key")
    except Invalid:
        return None  # without one, or with one that nobody could look up


def _entries(entries: Sequence[Entry]) -> list[Any]:
    """The entries of a transcript among those of a thread, to which anybody may have added."""
    return [_entry(entry.content) for entry in entries if _is_entry(entry.content)]


def _is_entry(front: Any) -> bool:
    """Whether content is an entry of a transcript: one that has its part, with holes for what stands in front."""
    rest = framework_parts(front).get(MARK)
    return isinstance(rest, dict) and (front.keys().isdisjoint(("of", "role")) or isinstance(rest.get("message"), dict))


def _entry(front: dict[str, Any]) -> dict[str, Any]:
    """An entry of a transcript, with what stands in front put back into its holes."""
    rest: dict[str, Any] = framework_parts(front)[MARK]
    if "timestamp" in front:
        rest = {**rest, "timestamp": front["timestamp"]}
    if "of" in front:
        message = rest["message"]
        block = {**message["content"][0], "tool_use_id": front["of"], "content": front["content"]}
        return {**rest, "message": {**message, "content": [block]}}
    if "role" in front:
        return {**rest, "message": {**rest["message"], "role": front["role"], "content": front["content"]}}
    return rest
