"""The session of the OpenAI Agents SDK, kept in a thread.

Each item of a session is one entry of the thread that bears the session's id, stored once, in the form that logs,
contexts and recall read: what was said is a message, a call of a function is a tool call, what came of it an
observation. What an item has beyond that goes beside it under a mark, which tells the session's items from
whatever else is in the thread, and from both the item is restored as it was given. Removing items hides them, as a
rewind does, and leaves what others wrote. It is a subclass of the SDK's ``SQLiteSession`` and uses nothing of it:
``EncryptedSession`` authenticates what it pops only in one, and from any other session takes away what it cannot read.
Deliberately absent: recognising repeated items by id, because models that are not OpenAI's give the same id to
different answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from holdfast import Thread
from holdfast.errors import Invalid, NotFound
from holdfast.extension import (
    FRAMEWORK,
    RESERVED,
    Append,
    Draft,
    Event,
    Fork,
    Mark,
    Op,
    OpenedStore,
    Pending,
    Point,
    Put,
    Record,
    StoreOrAddress,
    checkpoints,
    compare_and_set,
    decode,
    framework_parts,
    in_thread,
    log,
    quoted,
)

try:
    from agents.memory import SessionSettings, SQLiteSession
    from agents.memory.session import _CompactionSnapshot
    from agents.memory.session_settings import coerce_session_settings, resolve_session_limit
except ImportError as error:
    raise ImportError("this needs the OpenAI Agents SDK: pip install 'holdfast[openai-agents]'") from error

if TYPE_CHECKING:
    from agents.items import TResponseInputItem

T = TypeVar("T")
Check = Callable[["TResponseInputItem"], None]
Prunes = Callable[["TResponseInputItem"], bool]

MARK = "openai_agents"
"""The part of ``FRAMEWORK`` that says that an entry is an item of a session, and holds what the other fields do not."""
_PAGE = 500
_OPEN_TO_CHANGE = ("get_items", "add_items", "pop_item", "clear_session")
_UNSPOKEN = ("compaction", "item_reference")  # nothing that a person or another model could read


class _Form(NamedTuple):
    """How items of one type become entries: of which kind, and which field of the entry is which of the item."""

    kind: str
    fields: dict[str, str]


_FORMS = {
    "message": _Form("message", {"role": "role", "content": "content"}),
    "function_call": _Form("tool_call", {"id": "call_id", "name": "name", "arguments": "arguments"}),
    "function_call_output": _Form("observation", {"of": "call_id", "content": "output"}),
    "custom_tool_call": _Form("tool_call", {"id": "call_id", "name": "name", "arguments": "input"}),
    "custom_tool_call_output": _Form("observation", {"of": "call_id", "content": "output"}),
}


class HoldfastSession(SQLiteSession):
    """A session whose items are entries of the thread ``session_id``; any number of processes may use it at once.

    ``store`` is an open store or the address of one; only what was opened here is closed by ``close``. ``user`` and
    ``agent`` say whose thread it is, so that recall finds it and nobody else's session of the same id is touched.
    """

    def __init__(
        self,
        session_id: str,
        store: StoreOrAddress,
        *,
        user: str | None = None,
        agent: str | None = None,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        self.session_settings = coerce_session_settings({} if session_settings is None else session_settings)
        self.session_id = session_id
        self._held = OpenedStore(store)
        self.store = self._held.store
        with self._held.begun() as begun:
            self.thread: Thread = begun.thread(session_id, user=user, agent=agent)
        self._core = self.store.core

    def __repr__(self) -> str:
        return f"HoldfastSession({self.session_id!r})"

    # What the SDK asks of a session

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The newest ``limit`` items, oldest first; without it as many as ``session_settings`` say, or all.

        What is older than these is not read. 0 gives none, a number below 0 all, as in ``SQLiteSession``.
        """
        limit = resolve_session_limit(limit, self.session_settings)
        if limit is not None and type(limit) is not int:
            raise Invalid(f"limit is a number of items, or None for all of them, not {quoted(limit)}")
        found = await in_thread(self._newest, None if limit is None or limit < 0 else limit)
        return [item_of(event) for event in found]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items in one commit, all of them or none."""
        drafts = _drafts(items)
        if drafts:  # encoded here and now, so that nothing the caller changes meanwhile gets in
            await in_thread(self._core.commit, self.thread.logbook.appending(drafts))

    async def _pop_item_with_validation(self, validate: Check | None = None) -> TResponseInputItem | None:
        """What ``pop_item`` does: take the newest item away and return it; None when there is none.

        Nobody else gets the same one. It is hidden: the checkpoint ``before-pop-N`` of the thread still has it. If
        ``validate`` raises, the item stays where it is.
        """
        return await in_thread(self._insisted, lambda: self._popping(validate))

    async def clear_session(self) -> None:
        """Take all items away. They are hidden, as by ``pop_item``; ``erase`` removes them for good."""
        await self.replace_items([])

    # What it can do beyond that

    async def replace_items(self, items: list[TResponseInputItem]) -> None:
        """Put these items in the place of all there are, in one commit, so that no crash leaves neither."""
        drafts = [log.copied(draft) for draft in _drafts(items)]
        await in_thread(self._insisted, lambda: self._replacing(drafts))

    async def _atomic_replace_items(self, items: list[TResponseInputItem]) -> bool:
        """Where the SDK's compaction looks for a replacement in one piece; without it it clears and then adds."""
        if self._is_extended():
            return False
        await self.replace_items(items)
        return True

    async def _get_compaction_snapshot(
        self, limit: int, *, prune_prefix: Prunes | None = None
    ) -> _CompactionSnapshot | None:
        """Where the SDK's compaction looks for the newest items, and a way to replace the last of them in one piece.

        The replacement is refused when others wrote items meanwhile. It also takes away the oldest items as far as
        ``prune_prefix`` says, which are those that ``EncryptedSession`` knows to have expired.
        """
        if self._is_extended():
            return None
        found = await in_thread(self._newest, limit + 1)
        seen = found[-limit:]

        async def replace_suffix(start: int, output: list[TResponseInputItem]) -> bool:
            drafts = [log.copied(draft) for draft in _drafts(output)]
            return await in_thread(self._insisted, lambda: self._replacing_end(seen[start:], drafts, prune_prefix))

        return _CompactionSnapshot([item_of(event) for event in seen], len(found) <= limit, replace_suffix)

    def _is_extended(self) -> bool:
        """Whether a subclass changes what reading and adding mean, so that nothing may go past these."""
        kind = type(self)
        return any(getattr(kind, name) is not getattr(HoldfastSession, name) for name in _OPEN_TO_CHANGE)

    async def erase(self, *, forever: bool = True) -> None:
        """Remove the whole thread for good: hidden items too, its state and whatever else was written to it.

        With ``forever`` the id cannot be used again, so that a late writer does not bring it back.
        """
        await in_thread(self._erase, forever)

    def close(self) -> None:
        """Close the store, if this session opened it."""
        self._held.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await in_thread(self.close)

    # Reading

    def _newest(self, limit: int | None) -> list[Event]:
        """The entries of the newest items, oldest first."""
        record = self.thread.logbook.record()
        return [] if record is None else self._items_up_to(record.mark, limit)

    def _items_up_to(self, mark: Mark, limit: int | None) -> list[Event]:
        found = (event for event in self._backwards(mark, limit) if item_of(event) is not None)
        return list(islice(found, limit))[::-1]

    def _backwards(self, mark: Mark, size: int | None = None) -> Iterator[Event]:
        """Entries from a mark back to the first, read by the page."""
        page = _PAGE if size is None else max(1, min(size, _PAGE))
        while mark.position:
            events = self._core.engine.read(self._core.tenant, mark, limit=page, newest=True)
            yield from reversed(events)
            mark, page = Mark(mark.stream, events[0].position - 1), _PAGE

    # Taking away

    def _popping(self, validate: Check | None) -> Pending[TResponseInputItem | None]:
        """What takes the newest item away, as things are now."""
        time, here = self._core.clock.now(), self._here()
        newest = [] if here is None else self._items_up_to(here[0].mark, 1)
        if here is None or not newest:
            return Pending((), time, lambda _: None)
        item = item_of(newest[0])
        if validate is not None:
            validate(item)
        return Pending(self._without("pop", here, newest), time, lambda _: item)

    def _replacing(self, drafts: Sequence[Draft]) -> Pending[None]:
        """What puts items in the place of all there are, as things are now."""
        time, here = self._core.clock.now(), self._here()
        fresh = [log.to_event(draft, time) for draft in drafts]
        items = [] if here is None else self._items_up_to(here[0].mark, None)
        if here is None or not items:
            head = 0 if here is None else here[0].head
            return Pending(self._adding(fresh, expect=head), time, lambda _: None)
        return Pending(self._without("clear", here, items, fresh), time, lambda _: None)

    def _replacing_end(self, seen: Sequence[Event], drafts: Sequence[Draft], prunes: Prunes | None) -> Pending[bool]:
        """What puts items in the place of the last ones, if these still are the last; and prunes the first ones."""
        time, here = self._core.clock.now(), self._here()
        if here is None or not seen or self._items_up_to(here[0].mark, len(seen)) != seen:
            return Pending((), time, lambda _: False)
        gone, fresh = list(seen), [log.to_event(draft, time) for draft in drafts]
        if prunes is not None:
            before = self._items_up_to(Mark(here[0].mark.stream, seen[0].position - 1), None)
            gone += takewhile(lambda event: prunes(item_of(event)), before)
        return Pending(self._without("compaction", here, gone, fresh), time, lambda _: True)

    def _here(self) -> tuple[Record, Record | None] | None:
        """The thread and its state as they stood together; None when there is no thread yet, or no longer."""
        try:
            return self.thread.logbook.with_state()
        except NotFound:
            return None

    def _without(
        self, why: str, here: tuple[Record, Record | None], gone: Iterable[Event], fresh: Iterable[Event] = ()
    ) -> tuple[Op, ...]:
        """Hide items with all that follows, and put back behind what stays of that; then what is new.

        What others wrote stays, but for summaries: they tell what was said there.
        """
        places = {event.position for event in gone}
        first = min(places)
        read = self._backwards(here[0].mark, here[0].head - first)
        later = list(takewhile(lambda event: event.position > first, read))[::-1]
        kept = [event for event in later if event.position not in places and event.kind != "summary"]
        return (*self._hiding(why, *here, first), *self._adding([*kept, *fresh]))

    def _hiding(self, why: str, record: Record, state: Record | None, number: int) -> tuple[Op, ...]:
        """Hide the log from an entry on, if it still is what was read; the state stays as it is.

        Each of these writes another version of the thread, so the version names the checkpoint before it.
        """
        before = Point(record.mark, state.mark if state is not None and state.head else None)
        name, note = f"before-{why}-{record.version}", f"before items of a session were hidden ({why})"
        return (
            checkpoints.to_put(self.thread.id, name, before, note, record.scope, replace=True),
            Put(record.kind, record.id, record.body, record.version, record.scope, record.tags),
            Fork(record.kind, record.id, Mark(record.mark.stream, number - 1), expect=record.head),
        )

    def _adding(self, events: Sequence[Event], expect: int | None = None) -> tuple[Op, ...]:
        new = self.thread.logbook.new
        return (Append(new.kind, new.id, tuple(events), expect, new),) if events else ()

    def _insisted(self, prepare: Callable[[], Pending[T]]) -> T:
        """Commit a change of the session, prepared again as long as another process changes it first."""
        return compare_and_set(prepare, self._core.commit, f"session {self.session_id!r}", thread=self.session_id)

    def _erase(self, forever: bool) -> None:
        self.thread.logbook.record()  # a session that names another owner stops here
        self.store.erase(thread=self.session_id, forever=forever)


def to_draft(item: Any) -> Draft:
    """An item as the entry that it is kept in."""
    if not isinstance(item, dict):
        raise Invalid(f"an item of a session is a dict, not {type(item).__name__}")
    form = _form(item)
    if form is not None and all(name in item for name in form.fields.values()):
        lifted = {ours: item[theirs] for ours, theirs in form.fields.items()}
        rest = {name: value for name, value in item.items() if name not in form.fields.values()}
        return Draft(form.kind, {**lifted, FRAMEWORK: {MARK: rest}})
    kind = item.get("type")
    if isinstance(kind, str) and kind not in _UNSPOKEN:  # such as reasoning: a block of what the assistant said
        return Draft("message", {"role": "assistant", "content": [item], FRAMEWORK: {MARK: None}})
    return Draft("event", {"name": f"{RESERVED}{MARK}", FRAMEWORK: {MARK: item}})


def item_of(event: Event) -> Any:
    """The item that an entry holds; None for an entry that is not an item of a session."""
    content = decode(event.body)
    if MARK not in (parts := framework_parts(content)):
        return None
    rest = parts[MARK]
    if rest is None:
        block = content.get("content")
        return block[0] if isinstance(block, list) and block else None
    if event.kind == "event" or not isinstance(rest, dict):
        return rest if isinstance(rest, dict) else None
    form = _form(rest)
    if form is None or not form.fields.keys() <= content.keys():
        return None
    return {**rest, **{theirs: content[ours] for ours, theirs in form.fields.items()}}


def _form(item: dict[str, Any]) -> _Form | None:
    kind = item.get("type")
    return _FORMS.get(kind if isinstance(kind, str) else "message")


def _drafts(items: Iterable[Any]) -> list[Draft]:
    if isinstance(items, str | bytes | dict) or not isinstance(items, Iterable):
        raise Invalid(f"items come as a list of dicts, not as {type(items).__name__}")
    return [to_draft(item) for item in items]
