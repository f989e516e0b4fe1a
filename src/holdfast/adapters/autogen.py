"""AutoGen on Holdfast: a memory for agents, and a place where agents and teams keep their state.

``HoldfastMemory`` is the memories of a user or an agent: recalled before each answer, seen by every other part of the
store. ``HoldfastStateKeeper`` keeps the state of an agent or a team in a thread. AutoGen's states repeat the whole
conversation, for the team and once more for each agent. Here each message is an entry of the log, stored a single time,
and the state is the rest with the numbers of the entries, so keeping a long conversation again costs what is new in it.
Deliberately absent: running agents, and a state that is kept while they run (AutoGen's own would not fit together).
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import msgspec

from holdfast import Folder, Thread
from holdfast.errors import Conflict, Corrupt, Invalid, TooLarge, Unsupported
from holdfast.extension import (
    FRAMEWORK,
    MAX_HITS,
    MEMORY_KINDS,
    RESERVED,
    Draft,
    OpenedStore,
    StoreOrAddress,
    compare_and_set,
    encode,
    framework_parts,
    in_thread,
    kept_address,
    quoted,
    whole_address,
)
from holdfast.types import Entry, Hit, Revision
from holdfast.types import Memory as Remembered

try:
    from autogen_core import CancellationToken, Component
    from autogen_core.memory import Memory, MemoryContent, MemoryMimeType, MemoryQueryResult, UpdateContextResult
    from autogen_core.model_context import ChatCompletionContext
    from autogen_core.models import SystemMessage
    from pydantic import BaseModel
except ImportError as error:
    raise ImportError("the adapter for AutoGen needs its extra: pip install 'holdfast[autogen]'") from error

T = TypeVar("T")

_LISTED_BY = ("kind", "subject", "tag")
_FORM = "form:"
_ENTRIES = "$entries"
_PART = "autogen"
_SILENT = f"{RESERVED}autogen."
"""What the names of events begin with that repeat what stands elsewhere: recall and contexts leave them out."""
_CONTEXT = f"{_SILENT}context"
_RECALLED = "MemoryQueryEvent"


class HoldfastMemoryConfig(BaseModel):
    """What a memory can be made again from."""

    store: str
    user: str | None = None
    agent: str | None = None
    k: int = 5
    log: bool = False
    files: bool = False


class HoldfastMemory(Memory, Component[HoldfastMemoryConfig]):
    """A memory for AutoGen's agents: ``AssistantAgent(…, memory=[HoldfastMemory("agent.db", user="ana")])``.

    It is ``store.memory(user=, agent=)``. At most ``k`` memories are recalled at a time; with ``log`` and ``files``
    messages of the threads and files in this scope too.
    """

    component_type = "memory"
    component_config_schema = HoldfastMemoryConfig
    component_provider_override = "holdfast.adapters.autogen.HoldfastMemory"

    def __init__(
        self,
        store: StoreOrAddress,
        *,
        user: str | None = None,
        agent: str | None = None,
        k: int = 5,
        log: bool = False,
        files: bool = False,
    ) -> None:
        if type(k) is not int or not 1 <= k <= MAX_HITS:
            raise Invalid(
                f"k is how many memories are recalled at most, a whole number from 1 to {MAX_HITS:,}, not {quoted(k)}"
            )
        self._address = kept_address(store) if isinstance(store, str | Path) else None
        self._options: dict[str, Any] = {"k": k, "log": log, "files": files}
        self._scope: dict[str, Any] = {"user": user, "agent": agent}
        self._held = OpenedStore(store)
        with self._held.begun() as begun:
            self._memory = begun.memory(user=user, agent=agent)
            self._forms = begun.folder("autogen", user=user, agent=agent)

    async def add(self, content: MemoryContent, cancellation_token: CancellationToken | None = None) -> None:
        """Remember a text, or a dict as its JSON, with its type and its metadata."""
        await _unless_cancelled(in_thread(self._remember, content), cancellation_token)

    async def query(
        self, query: str | MemoryContent = "", cancellation_token: CancellationToken | None = None, **kwargs: Any
    ) -> MemoryQueryResult:
        """Recall what is relevant to a text, best first; without a text, what was remembered last.

        Keyword arguments are those of ``Memories.recall``: ``k``, ``as_of``, ``kind``, ``since`` and so on; without a
        text only ``k``, ``kind``, ``tag`` and ``subject``. What was found carries its id, kind, time, score and whether
        it is thought to answer under ``metadata["holdfast"]``.
        """
        text = query if isinstance(query, str) else _text(query)
        found = await _unless_cancelled(in_thread(self._recall, text, kwargs), cancellation_token)
        return MemoryQueryResult(results=found)

    async def update_context(self, model_context: ChatCompletionContext) -> UpdateContextResult:
        """Recall what the last message makes relevant, and add what the context does not show yet."""
        messages = await model_context.get_messages()
        said = [message.content for message in messages if isinstance(message.content, str)]
        shown = [message.content for message in messages if isinstance(message, SystemMessage)]
        found = (await self.query(said[-1])).results if said and said[-1].strip() else []
        fresh = [one for one in found if not any(_line(one) in text.splitlines() for text in shown)]
        if fresh:
            lines = "\n".join(map(_line, fresh))
            await model_context.add_message(SystemMessage(content=f"Remembered, the most relevant first:\n{lines}"))
        return UpdateContextResult(memories=MemoryQueryResult(results=fresh))

    async def clear(self) -> None:
        """Forget every memory of this scope, by whomever it was remembered. ``Memories.restore`` brings one back."""
        await in_thread(lambda: [self._memory.forget(kind=kind) for kind in MEMORY_KINDS])

    async def close(self) -> None:
        """Close the store, if this memory opened it."""
        await in_thread(self._held.close)

    def _to_config(self) -> HoldfastMemoryConfig:
        if self._address is None:
            raise Unsupported("a memory on a store that is open already has no configuration: give it the address")
        return HoldfastMemoryConfig(store=self._address, **self._scope, **self._options)

    @classmethod
    def _from_config(cls, config: HoldfastMemoryConfig) -> Self:
        return cls(**{**dict(config), "store": whole_address(config.store)})

    def _remember(self, content: MemoryContent) -> None:
        """What is more than a plain text is kept in a file beside it, written first: a file alone does no harm."""
        text, form = _text(content), _form(content)
        tags = ["autogen"]
        if form is not None:
            name = blake2b(encode(form, "the content"), digest_size=16).hexdigest()
            if self._forms.find(name) is None:
                self._forms.write(name, msgspec.msgpack.encode(form))  # which is not text, so recall passes it by
            tags.append(_FORM + name)
        self._memory.remember(text, origin={"channel": "autogen"}, tags=tags)

    def _recall(self, query: str, options: dict[str, Any]) -> list[MemoryContent]:
        if not query.strip():
            return self._latest(**options)
        recalled = self._memory.recall(query, **{**self._options, **options})
        return [
            _content(hit.text, self._forms, hit.memory, _facts_of(hit) | {"relevant": recalled.relevant})
            for hit in recalled
        ]

    def _latest(self, k: int | None = None, **only: Any) -> list[MemoryContent]:
        if unknown := sorted(only.keys() - _LISTED_BY):
            raise Invalid(f"{', '.join(unknown)}: a query without a text is narrowed down by {', '.join(_LISTED_BY)}")
        latest = self._memory.memories(limit=self._options["k"] if k is None else k, **only)
        return [_content(one.text, self._forms, one, _facts_of(one)) for one in latest]


async def _unless_cancelled(work: Awaitable[T], token: CancellationToken | None) -> T:
    future = asyncio.ensure_future(work)
    if token is not None:
        token.link_future(future)
    return await future


def _text(content: MemoryContent) -> str:
    if not isinstance(content, MemoryContent):
        raise Invalid(f"give a MemoryContent, not {type(content).__name__}: MemoryContent(content=…, mime_type=…)")
    given = content.content
    if isinstance(given, str):
        return given
    if isinstance(given, dict):
        encode(given, "the content")  # says what in it is not plain data, and where
        return json.dumps(given, ensure_ascii=False)
    raise Unsupported(f"a memory is text or a dict, not {type(given).__name__}: remember what it says, and where it is")


def _form(content: MemoryContent) -> dict[str, Any] | None:
    """All of a content but its text; None for a plain text, which has nothing more."""
    kind = content.mime_type
    if isinstance(content.content, str) and kind is MemoryMimeType.TEXT and content.metadata is None:
        return None
    form: dict[str, Any] = {"metadata": content.metadata, "listed": isinstance(kind, MemoryMimeType)}
    form["mime_type"] = kind.value if isinstance(kind, MemoryMimeType) else kind
    return form if isinstance(content.content, str) else {**form, "content": content.content}


def _content(text: str, forms: Folder, memory: Remembered | None, facts: dict[str, Any]) -> MemoryContent:
    """What was added, as it was, with what is known of it besides."""
    name = next((tag.removeprefix(_FORM) for tag in memory.tags if tag.startswith(_FORM)), None) if memory else None
    file = None if name is None else forms.find(name)
    if file is None:
        return MemoryContent(content=text, mime_type=MemoryMimeType.TEXT, metadata={"holdfast": facts})
    form = msgspec.msgpack.decode(file.content)
    return MemoryContent(
        content=form.get("content", text),
        mime_type=MemoryMimeType(form["mime_type"]) if form["listed"] else form["mime_type"],
        metadata={**(form["metadata"] or {}), "holdfast": facts},
    )


def _facts_of(found: Hit | Remembered) -> dict[str, Any]:
    if isinstance(found, Hit):
        return {"id": found.id, "kind": found.kind, "time": found.time.isoformat(), "score": found.score}
    return {"id": found.id, "kind": found.kind, "time": found.recorded_at.isoformat()}


def _line(content: MemoryContent) -> str:
    text = content.content if isinstance(content.content, str) else json.dumps(content.content, ensure_ascii=False)
    return "- " + " ".join(text.split())


class Stateful(Protocol):
    """What can be kept: an agent, a team, a model context, a runtime."""

    async def save_state(self) -> Mapping[str, Any]: ...

    async def load_state(self, state: Mapping[str, Any]) -> None: ...


class HoldfastStateKeeper:
    """Keeps the state of one agent or team in a thread: ``HoldfastStateKeeper("agent.db", "team-1", user="ana")``.

    Every state that was kept stays a revision. Of two programs that go on from the same one, the second to keep its
    state gets ``Conflict`` instead of overwriting the first.
    """

    def __init__(
        self, store: StoreOrAddress, thread: str, *, user: str | None = None, agent: str | None = None
    ) -> None:
        self._held = OpenedStore(store)
        with self._held.begun() as begun:
            self._thread = begun.thread(thread, user=user, agent=agent, tags=("autogen",))

    @property
    def thread(self) -> Thread:
        """The thread, for all else that threads can do: its log, checkpoints, forks, going back."""
        return self._thread

    async def keep(self, what: Stateful) -> int:
        """Keep the state of an agent or team, and what was said since, in one commit; return the revision.

        ``Conflict`` when another one was kept since this keeper last restored or kept: restore it, go on from there.
        """
        return await in_thread(self._keep, dict(await what.save_state()))

    async def restore(self, what: Stateful, *, revision: int | None = None) -> int:
        """Give an agent or team the state that was kept last, or an older one; return its revision.

        0 means that nothing was kept yet, and nothing was changed. What is kept next becomes the newest revision.
        """
        found, state = await in_thread(self._load, revision)
        if found:
            await what.load_state(state)
        return found

    async def revisions(self) -> list[Revision]:
        """What was kept, oldest first, and when."""
        return await in_thread(self._thread.revisions)

    async def close(self) -> None:
        """Close the store, if this keeper opened it."""
        await in_thread(self._held.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def _keep(self, state: dict[str, Any]) -> int:
        def commit(folding: _Folding) -> int | None:
            folded = folding.folded(state)
            try:
                with self._thread.turn(expect=folding.count) as turn:
                    if folding.drafts:
                        turn.append(*folding.drafts)
                    turn.save(folded, by="autogen")
                return turn.revision
            except Conflict:
                if self._thread.logbook.head() != folding.count:
                    raise  # something was appended, so the entries get other numbers
                return None

        thread = self._thread
        kept = compare_and_set(lambda: _Folding(thread.log()), commit, f"thread {thread.id!r}", thread=thread.id)
        if kept is None:
            raise Conflict(
                f"another state of {thread.id!r} was kept since this keeper last restored or kept one: "
                "await keeper.restore(…) first, and go on from there",
                thread=thread.id,
            )
        return kept

    def _load(self, revision: int | None) -> tuple[int, dict[str, Any]]:
        loaded = self._thread.state(dict)  # what is kept next is based on the newest, whichever is given back
        if revision is not None:
            loaded = self._thread.state(dict, revision=revision)
        if not loaded:
            return 0, {}
        entries = {entry.number: entry for entry in self._thread.log()}
        return loaded.revision, _unfolded(loaded.value, entries)


class _Folding:
    """Takes the messages out of a state: those that the log has are named by their number, the others go into it.

    What was said twice is two entries: the second time in a list is the second such entry, for everyone who has it.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.count = entries[-1].number if entries else 0
        self.drafts: list[Draft] = []
        self._numbers: defaultdict[bytes, list[int]] = defaultdict(list)
        self._said: dict[tuple[str, str], int] = {}
        by_number = {entry.number: entry for entry in entries}
        for entry in entries:
            if _is_message(entry):
                self._know(_message(entry, by_number), entry.number, said=entry.kind == "message")

    def folded(self, state: dict[str, Any]) -> Any:
        with suppress(TooLarge):  # which it may be as a whole: the messages of it are weighed one by one
            encode(state, "the state")  # says what in it is not plain data, and where
        # Of a team, what all see is the conversation; the contexts of its agents are made of it and of their own.
        for messages in list(_lists(state, "message_thread")) or list(_lists(state, "messages")):
            self._numbered(messages, said=True)
        return self._fold(state)

    def _fold(self, value: Any) -> Any:
        if isinstance(value, dict):
            folded = {name: self._fold(item) for name, item in value.items()}
            return {_ENTRIES: folded} if _ENTRIES in folded else folded
        if not isinstance(value, list | tuple):
            return value
        if _are_messages(value):
            return {_ENTRIES: _ranges(self._numbered(value))}
        return [self._fold(item) for item in value]

    def _numbered(self, messages: Sequence[dict[str, Any]], *, said: bool = False) -> list[int]:
        """The entries of a list of messages, some of which may be on their way."""
        times: Counter[bytes] = Counter()
        numbers = []
        for message in messages:
            digest = _digest(message)
            known, time = self._numbers[digest], times[digest]
            times[digest] += 1
            if time == len(known):
                draft = self._draft(message, said and message["type"] != "SystemMessage")
                self.drafts.append(draft)
                self._know(message, self.count + len(self.drafts), said=draft.kind == "message")
            numbers.append(known[time])
        return numbers

    def _know(self, message: dict[str, Any], number: int, *, said: bool) -> None:
        self._numbers[_digest(message)].append(number)
        if said:
            self._said.setdefault((str(message.get("source")), message["content"]), number)

    def _draft(self, message: dict[str, Any], said: bool) -> Draft:
        """A text that was said is a message. What an agent's context holds is an event, and repeats no text.

        What was recalled is not repeated either: the next recall finds it where it was remembered.
        """
        rest = {name: value for name, value in message.items() if name != "content"}
        text, source, kind = message["content"], str(message.get("source")), message["type"]
        part = {FRAMEWORK: {_PART: rest}}
        if not isinstance(text, str):
            name = kind if said and kind != _RECALLED else _SILENT + kind
            return Draft("event", {"name": name, "content": text, **part})
        if said:
            return Draft("message", {"role": _role(message), "content": text, **part})
        number = self._said.get((source, text))
        if number is not None:
            return Draft("event", {"name": _CONTEXT, "of": number, **part})
        return Draft("event", {"name": _CONTEXT, "content": text, **part})


def _lists(value: Any, wanted: str, name: str = "") -> Iterator[list[dict[str, Any]]]:
    """The lists of messages under a name, however deep."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _lists(item, wanted, key)
    elif isinstance(value, list | tuple):
        if name == wanted and _are_messages(value):
            yield list(value)
        elif not _are_messages(value):
            for item in value:
                yield from _lists(item, wanted)


def _are_messages(value: Sequence[Any]) -> bool:
    return bool(value) and all(
        isinstance(item, dict) and isinstance(item.get("type"), str) and "content" in item for item in value
    )


def _role(message: dict[str, Any]) -> str:
    if message["type"] == "AssistantMessage":
        return "assistant"
    return "user" if message["type"] == "UserMessage" or message.get("source") == "user" else "assistant"


def _digest(message: dict[str, Any]) -> bytes:
    """What makes two messages the same, whatever the order of their fields."""
    return blake2b(msgspec.json.encode(message, order="sorted"), digest_size=16).digest()


def _ranges(numbers: Iterable[int]) -> list[list[int]]:
    """Numbers as pairs of the first and the last of those that follow each other."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ranges


def _unfolded(value: Any, entries: dict[int, Entry]) -> Any:
    if isinstance(value, list):
        return [_unfolded(item, entries) for item in value]
    if not isinstance(value, dict):
        return value
    inside = value.get(_ENTRIES) if len(value) == 1 else None
    if isinstance(inside, list):
        numbers = (number for first, last in inside for number in range(first, last + 1))
        return [_message(_entry(entries, number), entries) for number in numbers]
    return {name: _unfolded(item, entries) for name, item in (inside or value).items()}


def _is_message(entry: Entry) -> bool:
    """Whether an entry stands for a message. Others may write into the thread what they like."""
    content = entry.content
    if not isinstance(framework_parts(content).get(_PART), dict):
        return False
    if entry.kind == "event":
        return "content" in content or (content.get("name") == _CONTEXT and "of" in content)
    return isinstance(content.get("content"), str)


def _message(entry: Entry, entries: dict[int, Entry]) -> dict[str, Any]:
    """The message that an entry stands for, as it was."""
    content = entry.content
    text = content if "content" in content else _entry(entries, content["of"]).content
    return {**framework_parts(content)[_PART], "content": text["content"]}


def _entry(entries: dict[int, Entry], number: int) -> Entry:
    if number not in entries:
        raise Corrupt(f"the state names entry {number}, which the log does not have; run verify", number=number)
    return entries[number]
