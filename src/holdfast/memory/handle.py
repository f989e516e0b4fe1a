"""The memories of one scope: remember, look up, recall, forget.

A handle holds no data, so any number of handles in any number of processes may name the same scope. Writes go to the
scope's own collection; reads also see the collections around it, and recall also searches every message of the scope's
threads. Deliberately absent: what is true (``memory.facts``), how things are found (``retrieval``), when to extract.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Protocol, TypedDict, Unpack

from holdfast.checks import check_flag, check_function, check_several
from holdfast.engine.contract import Scope
from holdfast.errors import Corrupt, Invalid, NotFound, Unsupported, quoted
from holdfast.ids import check_id
from holdfast.ledger.core import Core
from holdfast.ledger.thread import check_count
from holdfast.memory import tools
from holdfast.memory.conflicts import Contradiction
from holdfast.memory.drafts import Remembering
from holdfast.memory.extraction import DECISION, Extractor, decision_key
from holdfast.memory.facts import FactVersion
from holdfast.memory.graph import Link
from holdfast.memory.learning import learn
from holdfast.memory.metadata import check_metadata
from holdfast.memory.rules import extract
from holdfast.memory.visible import VisibleMemories
from holdfast.records import Memory, Origin, Recalled

Progress = Callable[[int, int], None]
"""Called with how much is done, and the total."""


class NearFilters(TypedDict, total=False):
    """Filters for a search by vector."""

    kind: str | Iterable[str] | None
    tag: str | Iterable[str] | None
    since: datetime | None
    until: datetime | None
    by: str | None
    channel: str | None
    tool: str | None
    trust: str | None
    subject: str | None
    type: str | None
    where: Mapping[str, Any] | None


class Only(NearFilters, total=False):
    """Filters for a recall."""

    thread: str | None
    log: bool
    files: bool


class Details(TypedDict, total=False):
    """Further fields of a memory."""

    tags: Iterable[str]
    importance: float
    trust: str
    valid_from: datetime | None
    valid_to: datetime | None
    relation: str | None
    object: str | None
    once: str | None
    type: str | None
    metadata: Mapping[str, Any] | None
    vector: Sequence[float] | None
    model: str | None


class IndexMaintenance(Protocol):
    """Maintains the indexes that recall searches."""

    def rebuild(self, scope: Scope, progress: Progress | None = None) -> int: ...
    def reembed(self, scope: Scope, progress: Progress | None = None) -> int: ...
    def rollback(self, scope: Scope) -> str: ...
    def purge(self, scopes: Iterable[Scope]) -> None: ...


class FindsMemories(Protocol):
    """Answers recalls (``retrieval.recall``). This room does not know how."""

    @property
    def indexes(self) -> IndexMaintenance: ...

    def recall(
        self,
        scope: Scope,
        query: str,
        k: int,
        as_of: datetime | None,
        explain: bool,
        within_ms: float | None,
        only: Only,
        without: frozenset[str] = frozenset(),
    ) -> Recalled: ...

    def nearest(
        self, scope: Scope, vector: object, k: int, model: str | None, min_score: float | None, only: NearFilters
    ) -> Recalled: ...


class Memories:
    """What is known in one scope. ``store.memory(user="ana")`` returns one."""

    def __init__(
        self,
        core: Core,
        visible: VisibleMemories,
        finding: Callable[[], FindsMemories],
        erased: Callable[[], None] | None = None,
    ) -> None:
        self.core, self.visible, self._finding, self._erased = core, visible, finding, erased

    def __repr__(self) -> str:
        return f"Memories(user={self.visible.scope.user!r}, agent={self.visible.scope.agent!r})"

    # Remembering

    def remember(
        self,
        text: str,
        *,
        kind: str = "semantic",
        subject: str | None = None,
        key: str | None = None,
        origin: str | dict[str, Any] | Origin | None = None,
        **details: Unpack[Details],
    ) -> Memory:
        """Remember something. It is durable, and recall finds it from now on.

        With ``key`` it is the value of a fact about ``subject`` (by default the user of this handle): the newest valid
        value counts, older ones stay in ``history``. Also: ``tags``, ``importance`` from 0 to 1, ``trust``,
        ``valid_from`` and ``valid_to`` for when it is true, ``relation`` and ``object`` to link the subject to
        something, and ``once``, a name of your own: whatever has the same name is remembered only once. ``type`` is a
        word of your own for what sort of memory it is, ``metadata`` plain data to filter by, and ``vector`` an
        embedding of your own, from the ``model`` you name. The same note again is counted, not stored twice.
        """
        return self.visible.own.remember([_draft(text, kind, subject, key, origin, details)])[0]

    def remember_all(self, items: Iterable[str | dict[str, Any]]) -> list[Memory]:
        """Remember many things in one commit. An item is a text, or a dict with the arguments of ``remember``."""
        if isinstance(items, str | bytes | dict) or not isinstance(items, Iterable):
            raise Invalid(f"remember_all takes a list of items, not {type(items).__name__}")
        return self.visible.own.remember([_item(item) for item in items])

    def link(self, subject: str, relation: str, object: str, **details: Any) -> Memory:
        """Remember that one thing is related to another: ``link("ana", "works at", "Acme", key="employer")``."""
        text = details.pop("text", "")  # the link's own text
        return self.remember(text, subject=subject, relation=relation, object=object, **details)

    def decide(
        self,
        decision: str,
        *,
        because: str | None = None,
        about: str | None = None,
        subject: str | None = None,
        origin: str | dict[str, Any] | Origin | None = None,
        **details: Unpack[Details],
    ) -> Memory:
        """Remember a decision with its reason: ``decide("Use Terraform", because="it has a review", about="infra")``.

        A later decision ``about`` the same supersedes it; without ``about`` it stands beside all others. Its type is
        ``"decision"``, and its reason is in its metadata and its text.
        """
        if "type" in details:
            raise Invalid("a decision has the type 'decision'; give a tag to tell decisions apart")
        told = {"about": about, "reason": because}
        for what, value in told.items():
            if value is not None and (not isinstance(value, str) or not value.strip()):
                raise Invalid(f"{'because' if what == 'reason' else what} is text, not {quoted(value)}")
        text = decision if because is None else f"{decision}, because {because}"
        kept = {**check_metadata(details.pop("metadata", None)), **{name: one for name, one in told.items() if one}}
        key = None if about is None else decision_key({"about": about})
        given: Details = {"importance": 0.7, **details, "type": DECISION, "metadata": kept}
        return self.remember(text, subject=subject, key=key, origin=origin, **given)

    # Looking up

    def get(self, id: str) -> Memory:
        """The memory with this id, even if it was forgotten."""
        return self.visible.get(id)

    def memories(
        self,
        *,
        kind: str | None = None,
        subject: str | None = None,
        tag: str | None = None,
        type: str | None = None,
        where: Mapping[str, Any] | None = None,
        limit: int | None = 100,
        before: str | None = None,
        forgotten: bool = False,
    ) -> list[Memory]:
        """List memories, latest first; with ``forgotten``, the forgotten ones instead.

        ``where`` asks for equal values in the metadata. For the next page, give the id of the last memory you got as
        ``before``.
        """
        last = None if before is None else self.visible.get(before)
        return self.core.read(
            lambda core: self.visible.by(core).memories(
                kind=kind, subject=subject, tag=tag, type=type, where=where, limit=limit, before=last,
                forgotten=forgotten,
            )
        )  # fmt: skip

    def recent(
        self,
        limit: int = 20,
        *,
        kind: str | None = None,
        type: str | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> list[Memory]:
        """The newest memories that are true now, latest first."""
        check_count("limit", limit)
        return self.core.read(lambda core: self.visible.by(core).recent(limit, kind=kind, type=type, where=where))

    def facts(
        self,
        *,
        subject: str | None = None,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        trust: str | None = None,
    ) -> list[Memory]:
        """The value of every fact: now, as it was ``as_of`` a moment, or as it was known at ``known_at``.

        With ``trust``, only memories trusted at least that much count.
        """
        return self.visible.facts(subject=subject, as_of=as_of, known_at=known_at, trust=trust)

    def fact(
        self,
        key: str,
        subject: str | None = None,
        *,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        trust: str | None = None,
    ) -> Memory | None:
        """The value of one fact, or None; see ``facts``."""
        versions = self.visible.history(key, subject, known_at=known_at, trust=trust)
        moment = self.visible.moment(None, as_of)
        holding = [version.memory for version in versions if version.holds(moment) and not version.memory.ended]
        return holding[-1] if holding else None

    def history(
        self, key: str, subject: str | None = None, *, known_at: datetime | None = None, trust: str | None = None
    ) -> list[FactVersion]:
        """Every value a fact ever had, in order, with the time each was true."""
        return self.visible.history(key, subject, known_at=known_at, trust=trust)

    def links(self, entity: str | None = None, *, hops: int = 1, as_of: datetime | None = None) -> list[Link]:
        """Links that hold now (or ``as_of`` a moment): all, or those up to ``hops`` away from an entity."""
        return self.visible.links(entity=entity, hops=hops, as_of=self.visible.moment(None, as_of))

    def procedures(self, limit: int | None = None, *, trust: str | None = None) -> list[Memory]:
        """How to do things, most useful first: what an agent should always have at hand."""
        if limit is not None:
            check_count("limit", limit)
        return self.visible.procedures(limit, trust=trust)

    def contradictions(self, *, subject: str | None = None, limit: int | None = 100) -> list[Contradiction]:
        """Memories that contradict each other and are not values of one fact, newest first.

        They are flagged, never merged.
        """
        return self.core.read(lambda core: self.visible.by(core).contradictions(subject=subject, limit=limit))

    # Changing, correcting, forgetting

    def correct(
        self,
        id: str,
        text: str | None = None,
        *,
        origin: str | dict[str, Any] | Origin | None = None,
        **details: Unpack[Details],
    ) -> Memory:
        """Mark a memory as never true; with ``text``, say what is true instead.

        If it was true once, do not correct it: give the fact a new value, or ``end`` it.
        """
        instead = None if text is None else _draft(text, self.visible.get(id).kind, None, None, origin, details)
        return self.visible.collection_of(id).correct(id, instead)

    def end(self, id: str, at: datetime | None = None) -> Memory:
        """Mark a memory as no longer true, from a moment or from now on. A fact then has no value."""
        return self.visible.end(id, at)

    def forget(
        self,
        id: str | None = None,
        *,
        key: str | None = None,
        subject: str | None = None,
        tag: str | None = None,
        kind: str | None = None,
        dry_run: bool = False,
        erase: bool = False,
    ) -> list[Memory]:
        """Forget one memory, all values of a fact (``key``), or all with a subject, tag or kind; return which.

        A forgotten memory is no longer found; ``unforget`` brings it back. With ``erase`` its text is removed for good,
        including memories you forgot earlier. With ``dry_run`` nothing is changed.
        """
        chosen = self._chosen(id, key, subject, tag, kind, gone=check_flag("erase", erase))
        if check_flag("dry_run", dry_run):
            return chosen
        work: Callable[[str], Any] = self._erase if erase else self._forget
        done: list[Any] = []
        try:
            if id is not None:
                done.append(work(id))
            else:
                done += (each for memory in chosen if (each := _unless_gone(work, memory.id)) is not None)
        finally:
            if erase:
                self._finding().indexes.purge(done)  # indexes still hold the erased words
        if not erase:
            return done
        if self._erased is not None:
            self._erased()
        return chosen

    def _forget(self, id: str) -> Memory:
        return self.visible.collection_of(id).forget(id)

    def _erase(self, id: str) -> Scope:
        scope = self.visible.collection_of(id).scope
        self.visible.collection_of(id).erase(id)
        return scope

    def _chosen(
        self,
        id: str | None,
        key: str | None,
        subject: str | None,
        tag: str | None,
        kind: str | None,
        *,
        gone: bool,
    ) -> list[Memory]:
        """The memories that ``forget`` selects; with ``gone``, forgotten ones too."""
        if id is not None:
            if any(value is not None for value in (key, subject, tag, kind)):
                raise Invalid("give either a memory's id, or a key, subject, tag or kind")
            return self._readable(id) if gone else [self.visible.get(id)]
        if key is None and subject is None and tag is None and kind is None:
            raise Invalid("say what to forget: an id, a key, a subject, a tag or a kind")
        if key is not None:
            found = self.visible.values(key, subject, forgotten=None if gone else False)
            if not found:
                raise NotFound(f"there is no fact {key!r} here", key=key)
            found = [one for one in found if (tag is None or tag in one.tags) and (kind is None or kind == one.kind)]
        else:
            found = self.visible.memories(kind=kind, subject=subject, tag=tag, limit=None)
            if gone:
                found += self.visible.memories(kind=kind, subject=subject, tag=tag, limit=None, forgotten=True)
        return [memory for memory in found if self.visible.owns(self.visible.collection_of(memory.id).scope)]

    def _readable(self, id: str) -> list[Memory]:
        """One memory, or none if it exists but cannot be read: that must not stop it from being erased."""
        try:
            return [self.visible.get(id)]
        except (Corrupt, Unsupported):
            return []

    def unforget(self, id: str) -> Memory:
        """Bring back a forgotten memory."""
        return self.visible.collection_of(id).unforget(id)

    def used(self, id: str, *, helped: bool | None = None) -> Memory:
        """Record that a memory was used, and whether it helped. Procedures are listed by how often they helped."""
        return self.visible.collection_of(id).used(id, helped)

    # Recalling

    def recall(
        self,
        query: str,
        k: int = 10,
        *,
        as_of: datetime | None = None,
        explain: bool = False,
        within_ms: float | None = None,
        without: Collection[str] = (),
        touch: bool = False,
        **only: Unpack[Only],
    ) -> Recalled:
        """Find what is relevant to a question or a text: memories, messages of the threads in this scope, and files.

        Best first, at most ``k``. Facts that are superseded, corrected, ended or not yet true are left out; ``as_of``
        recalls what was true and said at an earlier moment. ``within_ms`` is a time budget: stages that do not fit
        are dropped, and the report says which. ``only`` filters: ``kind``, ``tag``, ``since``, ``until``, ``by``,
        ``channel``, ``tool``, ``trust`` (at least), ``thread``, ``subject``, ``type``, ``where`` (equal values in the
        metadata), ``log`` (False: no messages), ``files`` (False: no files).
        ``without`` names stages to skip, to see what they contribute. With ``touch`` the memories it returns record
        that they were recalled, and when.
        """
        stages = frozenset(check_id(stage, "a stage to leave out") for stage in check_several("stages", without))
        check_flag("explain", explain)
        check_flag("touch", touch)
        found = self._finding().recall(self.visible.scope, query, k, as_of, explain, within_ms, only, stages)
        return self._counted(found) if touch else found

    def nearest(
        self,
        vector: Sequence[float],
        k: int = 10,
        *,
        model: str | None = None,
        min_score: float | None = None,
        touch: bool = False,
        **only: Unpack[NearFilters],
    ) -> Recalled:
        """Find memories by vectors of your own: the ``k`` nearest to this one, each with its cosine as score.

        Only memories remembered with ``vector=`` and the same ``model`` are compared, and only those that are true now.
        ``min_score`` is the least cosine; ``only`` filters as in ``recall``, but for threads.
        """
        check_flag("touch", touch)
        found = self._finding().nearest(self.visible.scope, vector, k, model, min_score, only)
        return self._counted(found) if touch else found

    def _counted(self, found: Recalled) -> Recalled:
        self.visible.recalled([hit.memory.id for hit in found if hit.memory is not None])
        return found

    def learn(self, thread: str, *, after: int = 0, extractor: Extractor | None = None) -> list[Memory]:
        """Extract facts from a thread's messages without a model, and remember them with their source.

        The built-in rules read English; give your own function as ``extractor``. Learning the same messages again
        changes nothing. Returns the memories that come from those messages.
        """
        if isinstance(extractor, type):
            raise Invalid("extractor is a function, not a class")
        check_function("extractor", extractor)
        return learn(self.core, self.visible, thread, after, extractor or extract)

    # Tools for a model

    def tools(self, format: str = "openai") -> list[dict[str, Any]]:
        """The tools ``recall``, ``remember`` and ``forget`` in the format of openai or anthropic."""
        return tools.definitions(format)

    def use(
        self,
        name: str,
        arguments: dict[str, Any] | str,
        *,
        origin: str | dict[str, Any] | Origin | None = None,
        trust: str = "stated",
        once: str | None = None,
        thread: str | None = None,
    ) -> str:
        """Carry out a tool call from a model, and return the text to send back to it.

        ``arguments`` are the model's, as a dict or as JSON. If they are wrong, the text begins with ``error:`` and says
        why; only errors that are not the model's are raised. You choose ``origin``, ``trust`` and ``once`` (see
        ``remember``): a model cannot raise the trust of anything. Name the ``thread`` it works in, and what it
        remembers is trusted no more than what it has read there since the user last spoke.
        """
        return tools.use(self, name, arguments, tools.Caller(origin, trust, once, thread))

    # Tending

    def rebuild(self, progress: Progress | None = None) -> int:
        """Rebuild the indexes of this scope from the stored data; return how many documents they hold."""
        check_function("progress", progress)
        return self._finding().indexes.rebuild(self.visible.scope, progress)

    def reembed(self, progress: Progress | None = None) -> int:
        """Switch to the embedder that this store was opened with; return how many passages got a vector.

        Recall uses the old model's vectors until all new ones are ready. An interrupted call keeps its progress.
        ``rollback`` switches back.
        """
        check_function("progress", progress)
        return self._finding().indexes.reembed(self.visible.scope, progress)

    def rollback(self) -> str | None:
        """Switch back to the vectors from before the last ``reembed``; return the model in use now."""
        return self._finding().indexes.rollback(self.visible.scope)


def _draft(
    text: str,
    kind: str,
    subject: str | None,
    key: str | None,
    origin: str | dict[str, Any] | Origin | None,
    details: Details,
) -> Remembering:
    if unknown := set(details) - Details.__annotations__.keys():
        known = ", ".join(sorted(Details.__annotations__))
        raise Invalid(f"a memory has no {', '.join(sorted(unknown))}; it has kind, subject, key, origin, {known}")
    return Remembering(text, kind, subject, key, origin=origin, **details)  # type: ignore[arg-type]


def _item(item: str | dict[str, Any]) -> Remembering:
    if isinstance(item, str):
        return Remembering(item)
    if not isinstance(item, dict):
        raise Invalid(f"an item to remember is a text or a dict, not {type(item).__name__}")
    known = {field for field in Remembering.__struct_fields__ if field not in ("corrects", "ended")}
    if unknown := set(item) - known:
        raise Invalid(f"a memory has no {', '.join(sorted(map(str, unknown)))}; it has {', '.join(sorted(known))}")
    return Remembering(**item)


def _unless_gone(work: Callable[[str], Any], id: str) -> Any:
    """Do something to one of several memories; skip one that someone else erased in the meantime."""
    with suppress(NotFound):
        return work(id)
    return None
