"""A Mem0 store: its memories, with their earlier texts if there is a history.

A memory goes to the collection of its user and agent; its run and other simple metadata become tags, and if
requested, its whole payload is kept in the folder ``imported``. Each text of a memory is one memory, true since
Mem0 wrote it; an update ends the one before. What was deleted in Mem0 is not imported. Deliberately absent: the
entities that Mem0 derives for its own search, and the ten last messages that it keeps for its prompts.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from holdfast import Origin
from holdfast.errors import Invalid
from holdfast.extension import (
    MAX_ID_BYTES,
    Remembering,
    Scope,
    collection_id,
    memory_id,
    once_number,
    subject_of,
    to_datetime,
)
from holdfast.importers.mem0_stores import Mem0Folder, Payloads
from holdfast.importers.memory_files import FOLDER
from holdfast.importers.parts import ImportedFiles, ImportedMemories
from holdfast.importers.source import ImportOptions, ImportSource, RefusedItem, fingerprint, micros, tagged

_OWN = {
    "data", "memory", "hash", "created_at", "updated_at", "user_id", "agent_id", "run_id", "actor_id", "role",
    "text_lemmatized", "attributed_to", "expiration_date", "memory_type",
}  # fmt: skip
_DAY = 86_400_000_000
_EARLIER, _ENDINGS, _NOW = "earlier texts", "endings", "memories"  # in the order in which they come in
_DERIVED = ("_entities", "mem0migrations")


class Mem0Version(NamedTuple):
    """One text of a memory, and since when it was so."""

    text: Any
    since: int | None


class Mem0(ImportSource):
    """Such a store. All of it is read when it is opened; ``history`` is a file elsewhere."""

    kind = "mem0"
    title = "Mem0 store"

    def __init__(self, place: Path, wanted: ImportOptions, history: Path | None = None) -> None:
        self.place = str(place)
        found = Mem0Folder(place, history)
        if not found:
            raise Invalid(f"{place} holds nothing of Mem0: no Qdrant, Chroma or FAISS store, and no history")
        kept = {name: payloads for name, payloads in found.collections.items() if not name.endswith(_DERIVED)}
        payloads = {id: payload for of in kept.values() for id, payload in of.items()}
        if len(payloads) != sum(map(len, kept.values())):
            raise Invalid(f"{place} has one memory in two collections; import each of them by itself")
        versions = _versions(found.history or [])
        if not kept:
            if wanted.user is None and wanted.agent is None:
                raise Invalid(
                    f"{place} holds only the history of Mem0, which does not say whose memories these are; import the "
                    "folder of its vector store with history (--history), or say whose they are (--user, --agent)"
                )
            payloads = {id: {"data": texts[-1].text} for id, texts in versions.items() if texts}
        self._parts = list(_parts(payloads, versions, wanted))
        self.counts = {"memories": len(payloads)}
        if found.history is not None:
            self.counts["changes"] = len(found.history)
        self.notes = tuple(_notes(found, kept, payloads, wanted))
        self.expected = sum(1 if isinstance(part, RefusedItem) else part.size for part in self._parts)

    def parts(self) -> Iterator[ImportedMemories | ImportedFiles | RefusedItem]:
        yield from self._parts


def _notes(found: Mem0Folder, kept: dict[str, Any], payloads: Payloads, wanted: ImportOptions) -> Iterator[str]:
    for name in sorted(found.collections.keys() - kept.keys()):
        yield f"collection {name} does not come along: Mem0 derives it"
    if found.messages:
        yield f"{found.messages:,} recent messages of Mem0's own prompts do not come along"
    if found.history is None:
        yield "there is no history here, so earlier texts of updated memories do not come along (see --history)"
    rich = sum(not _simple(payload) for payload in payloads.values())
    if rich and not wanted.originals:
        have = "memory has" if rich == 1 else "memories have"
        yield f"{rich:,} {have} more metadata than tags can hold; --originals keeps it in files"


def _versions(history: list[tuple[Any, ...]]) -> dict[str, list[Mem0Version]]:
    """Every text that a memory had, in order; none for one that was deleted."""
    found: dict[str, list[Mem0Version]] = {}
    for id, _, new, event, created, updated, deleted in history:
        texts = found.setdefault(str(id), [])
        if event == "DELETE" or deleted:
            texts.clear()
        elif new is not None and (not texts or texts[-1].text != new):
            texts.append(Mem0Version(new, micros(updated) or micros(created)))
    return found


def _parts(
    payloads: Payloads, versions: dict[str, list[Mem0Version]], wanted: ImportOptions
) -> Iterator[ImportedMemories | ImportedFiles | RefusedItem]:
    """Memories and files by whose they are."""
    books: dict[Scope, dict[str, list[Remembering]]] = {}
    files: dict[Scope, dict[str, Any]] = {}
    for id, payload in payloads.items():
        scope = _scope(payload, wanted)
        if scope is None:
            yield RefusedItem(f"memory {id}", "its user_id or agent_id is not text")
            continue
        book = books.setdefault(scope, {what: [] for what in (_EARLIER, _ENDINGS, _NOW)})
        for what, draft in _drafts(id, payload, versions.get(id, []), scope):
            book[what].append(draft)
        if wanted.originals:
            files.setdefault(scope, {})[f"mem0/{id}.json"] = payload
    for scope, book in books.items():
        for what, drafts in book.items():
            if drafts:
                yield ImportedMemories(tagged(drafts, Mem0.tag()), scope.user, scope.agent, what)
    for scope, papers in files.items():
        yield ImportedFiles(FOLDER, papers, scope.user, scope.agent, (Mem0.tag(),))


def _scope(payload: dict[str, Any], wanted: ImportOptions) -> Scope | None:
    user, agent = payload.get("user_id"), payload.get("agent_id")
    if any(name is not None and not isinstance(name, str) for name in (user, agent)):
        return None
    return Scope(user or None, agent or None) if user or agent else Scope(wanted.user, wanted.agent)


def _drafts(
    id: str, payload: dict[str, Any], earlier: list[Mem0Version], scope: Scope
) -> Iterator[tuple[str, Remembering]]:
    """The texts of a memory, and what ends those of before."""
    text = payload.get("data", payload.get("memory"))
    if earlier and earlier[-1].text == text:
        now, before = earlier[-1], earlier[:-1]
    else:  # written without its history, or not all of it
        now, before = Mem0Version(text, micros(payload.get("updated_at")) or micros(payload.get("created_at"))), earlier
    kind = "procedural" if payload.get("memory_type") == "procedural_memory" else "semantic"
    origin = Origin(by=_text(payload.get("actor_id")) or _text(payload.get("role")), channel="mem0")
    subject = subject_of(scope)
    for version, after in pairwise([*before, now]):
        old = Remembering(
            version.text, kind, subject, origin=Origin(channel="mem0"), valid_from=_moment(version.since),
            once=_once(id, version),
        )  # fmt: skip
        yield _EARLIER, old
        if after.since is not None and version.since is not None and after.since > version.since:
            yield _ENDINGS, _ending(old, scope, after)
    current = Remembering(
        now.text, kind, subject, tags=_tags(payload), origin=origin, valid_from=_moment(now.since),
        valid_to=_expiry(payload, now), once=_once(id, now),
    )  # fmt: skip
    yield _NOW, current


def _ending(old: Remembering, scope: Scope, after: Mem0Version) -> Remembering:
    """What says that a text is true no longer, as ``end`` would say it."""
    assert old.once is not None
    name = memory_id(once_number(collection_id(scope), old.once))
    return Remembering(
        f"{name} is no longer true", old.kind, old.subject, origin=Origin(channel="mem0"),
        valid_from=_moment(after.since), once=f"{old.once}:end", corrects=name, ended=True,
    )  # fmt: skip


def _once(id: str, version: Mem0Version) -> str:
    return f"mem0:{id}:{fingerprint(str(version.text), str(version.since))}"


def _tags(payload: dict[str, Any]) -> tuple[str, ...]:
    """The run, and metadata that is one short word or number."""
    named = {"run": payload.get("run_id"), **{name: payload[name] for name in payload if name not in _OWN}}
    return tuple(f"{name}:{value}" for name, value in named.items() if value is not None and _taggable(name, value))


def _taggable(name: str, value: Any) -> bool:
    tag = f"{name}:{value}"
    fits = len(tag.encode("utf-8", "replace")) <= MAX_ID_BYTES and "\x00" not in tag
    return isinstance(value, str | int | float | bool) and fits and tag.isprintable()


def _simple(payload: dict[str, Any]) -> bool:
    """Whether tags hold all of the metadata."""
    return all(name in _OWN or value is None or _taggable(name, value) for name, value in payload.items())


def _expiry(payload: dict[str, Any], version: Mem0Version) -> datetime | None:
    """The end of the day on which it expires; without a beginning, which Mem0 always writes, there is no end."""
    day = micros(payload.get("expiration_date"))
    if day is None or version.since is None:
        return None
    return _moment(max(day + _DAY, version.since + 1))


def _moment(at: int | None) -> datetime | None:
    return None if at is None else to_datetime(at)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None
