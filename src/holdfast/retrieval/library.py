"""The indexes of one store: found or built for a place, kept while in use, and shared by every handle.

Deliberately absent: what an index covers (``documents``) and how an index is kept (``retrieval.index``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from holdfast import atfork
from holdfast.engine.contract import Problem, Query, Record, Scope
from holdfast.errors import Invalid, Misconfigured
from holdfast.ids import Ids
from holdfast.ledger import secrets
from holdfast.ledger.core import Core, scan_all
from holdfast.memory.collection import MemoryCollection
from holdfast.memory.names import collection_id
from holdfast.memory.visible import VisibleMemories
from holdfast.providers.automatic import Automatic
from holdfast.providers.choose import OFFLINE, choose
from holdfast.retrieval import reembed
from holdfast.retrieval.changes import ChangeTracker
from holdfast.retrieval.documents import IndexScope, StoredDocuments
from holdfast.retrieval.index import Index, Usable
from holdfast.retrieval.index_store import KIND, MANIFEST, IndexManifest, IndexStore
from holdfast.retrieval.own_vectors import OwnVectors
from holdfast.retrieval.source import Embeds, Progress, StreamRange

_KEPT = 64
_PASSAGES = 2_000_000
_WITHOUT = "this store was opened without it"
_COMMON, _THREADS, _FILES = "common", "threads", "files/"


class IndexCache:
    """Every index that this process has in memory, of all tenants of a store together."""

    def __init__(self) -> None:
        self._lock = atfork.lock()
        self._indexes: OrderedDict[tuple[str, IndexScope], Index] = OrderedDict()

    def get(self, tenant: str, place: IndexScope, make: Callable[[], Index]) -> Index:
        """The index of a place. Indexes not used for long are dropped; they are saved, or quickly rebuilt."""
        with self._lock:
            index = self._indexes.get((tenant, place))
            if index is None:
                index = self._indexes[tenant, place] = make()
            self._indexes.move_to_end((tenant, place))
            while len(self._indexes) > 1 and self._too_many():
                self._indexes.popitem(last=False)
            return index

    def _too_many(self) -> bool:
        return len(self._indexes) > _KEPT or sum(index.passages for index in self._indexes.values()) > _PASSAGES


class Indexes:
    """The indexes of one tenant."""

    def __init__(self, core: Core, ids: Ids, embedder: Embeds | None, cache: IndexCache | None = None) -> None:
        self._core, self._ids, self._wanted = core, ids, embedder
        self._reading = core.reading
        self._changes = ChangeTracker(self._reading)
        self._cache = cache or IndexCache()
        self.own_vectors = OwnVectors()

    def index(self, place: IndexScope) -> Index:
        """The index of a place, made when it is first asked for."""

        def make() -> Index:
            return Index(self._depot(place), StoredDocuments(self._reading, place, self._changes), self.usable)

        return self._cache.get(self._core.tenant, place, make)

    def _depot(self, place: IndexScope) -> IndexStore:
        """Where the index of a place is saved. Its name does not reveal the owner, not even by trial."""

        def naming(key: bytes) -> str:
            return _named(place, lambda name: secrets.hidden(key, name))

        return IndexStore(self._core, self._ids, place.scope, naming)

    def usable(self, manifest: IndexManifest, *, latin: bool) -> Usable:
        """The embedders for an index: those that this store was opened with, or the one for what the index records."""
        wanted, recorded = self._wanted, manifest.model
        if wanted is None:
            return Usable((), recorded and f"by words alone: the vectors come from {recorded}, but {_WITHOUT}")
        automatic = isinstance(wanted, Automatic)
        ranked = wanted.ranked(latin=latin) if isinstance(wanted, Automatic) else (wanted,)
        known = wanted.known if isinstance(wanted, Automatic) else {wanted.name: wanted}
        if recorded is None or (recorded in known and not manifest.chosen):
            return Usable(ranked)
        if not automatic and manifest.segments and manifest.whole(wanted.name):
            return Usable(ranked)
        if (found := known.get(recorded) or _installed(recorded)) is not None:
            return Usable((found,))
        if automatic:
            return Usable(ranked[-1:], f"by {ranked[-1].name}: the vectors come from {recorded}, which is not here")
        return Usable((), f"by words alone: the vectors come from {recorded}, but {_WITHOUT}")

    def collections(self, scope: Scope) -> list[MemoryCollection]:
        """The collections that a handle of a scope sees."""
        return VisibleMemories(self._reading, self._ids, scope).collections()

    def has_files(self, scope: Scope) -> bool:
        """Whether a handle of a scope may find files: most stores have none."""
        self._look(scope)
        return self._changes.files

    def _places(self, scope: Scope) -> Iterator[IndexScope]:
        """All places that a handle of a scope looks into."""
        yield from (place for place, _ in places(scope))
        if self.has_files(scope):
            yield from (place for place, _ in filing_places(scope))

    def _look(self, scope: Scope) -> None:
        for owner in {scope.user, None}:
            self._changes.look(owner)

    def rebuild(self, scope: Scope, progress: Progress | None = None) -> int:
        """Make the indexes that a handle of a scope looks into again; return how many documents they hold."""
        return sum(self.index(place).rebuild(progress) for place in self._places(scope))

    def reembed(self, scope: Scope, progress: Progress | None = None) -> int:
        """Move those indexes to the model that the store was opened with; return how many vectors were made."""
        if self._wanted is None:
            raise Misconfigured("this store was opened without an embedder; open it with the one to switch to")
        return sum(self._reembed(self.index(place), self._wanted, progress) for place in self._places(scope))

    def _reembed(self, index: Index, wanted: Embeds, progress: Progress | None) -> int:
        if isinstance(wanted, Automatic):
            return reembed.move(index, wanted.ranked(latin=index.latin)[0], progress, chosen=False)
        return reembed.move(index, wanted, progress)

    def rollback(self, scope: Scope) -> str:
        """Move those indexes back to the model before; return its name."""
        found = [index for place in self._places(scope) if (index := self.index(place)).previous is not None]
        if not found:
            raise Invalid("there is no earlier model to roll back to")
        names = [reembed.back(index) for index in found]
        return names[0]

    def purge(self, scopes: Iterable[Scope]) -> None:
        """Remove what is gone from some scopes: words and vectors go with the data they were made from."""
        self.own_vectors.forget()
        self._core.settle()
        for scope in (scopes := set(scopes)):
            self._look(scope)
        for place in {place for scope in scopes for place in holding(scope)}:
            self.index(place).purge()

    def saved(self) -> Iterator[IndexScope]:
        """Every place whose index is saved in this store."""
        found = scan_all(self._core.engine, self._core.tenant, Query(KIND, tag=MANIFEST))
        yield from {place_of(record) for record in found}

    def problems(self) -> Iterator[Problem]:
        """What in the saved indexes does not agree with what is stored."""
        for place in self.saved():
            name = described(place)
            ground = StoredDocuments(self._core, place, self._changes)
            index = Index(self._depot(place), ground)
            for what in index.problems():
                yield Problem(f"index {name!r}", f"{what}; run rebuild", self._core.tenant, KIND, name)


def holding(scope: Scope) -> Iterator[IndexScope]:
    """The places whose indexes hold what belongs to a scope."""
    yield filing(scope)
    if scope.user is not None:
        yield IndexScope(user=scope.user)
        return
    yield IndexScope()
    yield IndexScope(collection=collection_id(Scope(agent=scope.agent)), agent=scope.agent)


def place_of(record: Record) -> IndexScope:
    """The place that a saved manifest is about."""
    user, agent = record.scope.user, record.scope.agent
    if record.id.startswith(_FILES):
        return filing(record.scope)
    if user is not None:
        return IndexScope(user=user)
    if agent is None and record.id.startswith(f"{_THREADS}/"):
        return IndexScope()
    return IndexScope(collection=collection_id(Scope(agent=agent)), agent=agent)


def places(scope: Scope) -> Iterator[tuple[IndexScope, Callable[[StreamRange], bool]]]:
    """The places that a handle of a scope looks into, each with what of it the handle may see.

    A handle that names a user sees that user's threads and collections: of all agents, or of the agent it names and
    those of none. A handle that names none sees threads of no user. Above both are the agent's collection and the
    common one.
    """
    user, agent = scope.user, scope.agent
    if user is not None:
        yield IndexScope(user=user), lambda reach: agent is None or reach.agent in (agent, None)
    else:
        yield IndexScope(), lambda reach: agent is None or reach.agent in (agent, None)
    if agent is not None:
        yield IndexScope(collection=collection_id(Scope(agent=agent)), agent=agent), lambda reach: True
    yield IndexScope(collection=collection_id(Scope())), lambda reach: True


def filing(scope: Scope) -> IndexScope:
    """The place whose index holds the files of an owner: of a user, else of an agent, else common ones."""
    return IndexScope(user=scope.user, agent=scope.agent if scope.user is None else None, files=True)


def filing_places(scope: Scope) -> Iterator[tuple[IndexScope, Callable[[StreamRange], bool]]]:
    """The places whose files a handle of a scope looks into, each with what of it the handle may see.

    As with collections: its user's, of all agents or of the agent it names and of none; the agent's own; and common
    ones.
    """
    user, agent = scope.user, scope.agent
    if user is not None:
        yield filing(scope), lambda reach: agent is None or reach.agent in (agent, None)
    if agent is not None:
        yield filing(Scope(agent=agent)), lambda reach: True
    yield filing(Scope()), lambda reach: True


@lru_cache(8)
def _installed(model: str) -> Embeds | None:
    """What makes vectors of a model that comes in a wheel, if it is installed."""
    for name in OFFLINE:
        try:
            found = choose(name)
        except Misconfigured:
            continue
        if found is not None and found.name == model:
            return found
    return None


def described(place: IndexScope) -> str:
    """A place as people call it."""
    return _named(place, str)


def _named(place: IndexScope, naming: Callable[[str], str]) -> str:
    what = _FILES if place.files else ""
    if place.user is not None:
        return f"{what}user/{naming(place.user)}"
    if place.agent is not None:
        return f"{what}agent/{naming(place.agent)}"
    return f"{what}{_COMMON}" if place.files or place.collection is not None else _THREADS
