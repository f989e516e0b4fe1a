"""How the rooms of one store are wired: each part is made when first needed, and given what it needs from others.

``Store`` and ``AsyncStore`` are the public verbs; both use one ``Wiring``, as do the adapters.
Deliberately absent: rules. A room that needs another one is given it here.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING
from weakref import WeakSet

from holdfast import atfork
from holdfast.engine.contract import Query, Scope
from holdfast.errors import HoldfastError
from holdfast.ids import Ids
from holdfast.ledger import secrets
from holdfast.ledger.core import Core
from holdfast.ledger.folder import Folder
from holdfast.memory.handle import Memories
from holdfast.memory.visible import VisibleMemories
from holdfast.privacy.erase import Eraser
from holdfast.providers.embedding import Embedder
from holdfast.providers.reranker import Reranker
from holdfast.steps.resume import Handlers, Resumer
from holdfast.steps.runs import RunBook
from holdfast.thread import Thread

if TYPE_CHECKING:
    from holdfast.context.allowance import Cap
    from holdfast.retrieval.library import IndexCache
    from holdfast.retrieval.recall import Recaller
    from holdfast.sessions.context_source import Builder

_log = logging.getLogger(__name__)


class Wiring:
    """The parts of one tenant's store. ``root`` is the one that opened the engine; others share what it has."""

    def __init__(
        self,
        core: Core,
        runs: RunBook | None = None,
        *,
        ids: Ids | None = None,
        embedder: Embedder | None = None,
        reranker: Reranker | None = None,
        cap: Cap | None = None,
        root: Wiring | None = None,
    ) -> None:
        self.core, self.ids, self.cap = core, ids or Ids(), cap
        self.embedder, self.reranker = embedder, reranker
        self.runs = runs or RunBook(core, self.ids)
        self._root = root or self
        self._lock = atfork.lock()
        self._lent: WeakSet[RunBook] = WeakSet()  # those of stores for other tenants and actors
        self._cache: IndexCache | None = None
        self._recaller: Recaller | None = None
        self._builder: Builder | None = None
        self._family: WeakSet[Wiring] = WeakSet()  # of a root: itself, and those that it lent
        with self._root._lock:
            self._root._family.add(self)

    def lend(self, core: Core) -> Wiring:
        """The parts of a store for another tenant or actor: the same engine and caches, runs of its own."""
        root = self._root
        runs = RunBook(core, self.ids, root.runs.lease_s)
        with root._lock:
            root._lent.add(runs)
        return Wiring(core, runs, ids=self.ids, embedder=self.embedder, reranker=self.reranker, cap=self.cap, root=root)

    def close(self) -> None:
        """Let go of runs; the root also of the engine."""
        with self._lock:
            lent = list(self._lent)
        for runs in (*lent, self.runs):
            runs.close()
        if self._root is self:
            self.core.engine.close()
            if self.core.replica is not None:
                self.core.replica.close()

    # Handles

    def thread(self, id: str, scope: Scope, tags: tuple[str, ...] = ()) -> Thread:
        return Thread(self.core, self.runs, id, scope, tags)

    def memory(self, scope: Scope) -> Memories:
        visible = VisibleMemories(self.core, self.ids, scope)
        return Memories(self.core, visible, self.recaller, self.forget_contexts)

    def folder(self, name: str, scope: Scope) -> Folder:
        return Folder(self.core, name, scope, self.recaller)

    def resumer(self, handlers: Handlers) -> Resumer:
        def thread(id: str) -> Thread:
            return self.thread(id, Scope(thread=id))

        return Resumer(self.runs, handlers, thread, self.finish_erasures)

    # Parts that many stores never need: they bring numpy, tokenizers and models

    def recaller(self) -> Recaller:
        """What answers recalls, made when it is first asked for."""
        with self._lock:
            if self._recaller is None:
                from holdfast.retrieval import library, recall  # noqa: PLC0415

                indexes = library.Indexes(self.core, self.ids, self.embedder, self._root._index_cache())
                self._recaller = recall.Recaller(self.core.reading, indexes, reranker=self.reranker)
            return self._recaller

    def _index_cache(self) -> IndexCache:
        with self._lock:
            if self._cache is None:
                from holdfast.retrieval.library import IndexCache  # noqa: PLC0415

                self._cache = IndexCache()
            return self._cache

    def contexts(self) -> Builder:
        """What builds contexts, made when it is first asked for."""
        with self._lock:
            if self._builder is None:
                from holdfast.providers.tokens.choose import counter_for  # noqa: PLC0415
                from holdfast.sessions.context_source import Builder  # noqa: PLC0415

                self._builder = Builder(self.core, self._memory_of, counter_for, self.cap)
            return self._builder

    def _memory_of(self, *, user: str | None = None, agent: str | None = None) -> Memories:
        return self.memory(Scope(user, agent))

    # Erasing

    def eraser(self) -> Eraser:
        return Eraser(self.core, self.ids, self._clean)

    def finish_erasures(self) -> None:
        """Finish what was broken off. What cannot be done now must not keep runs from being carried on."""
        try:
            self.eraser().finish()
        except HoldfastError as error:
            _log.warning("an erasure is not finished yet: %s", error)

    def purge(self, owners: Collection[Scope]) -> None:
        """Something of these owners was erased without an erasure's own run: do the rest of that here."""
        secrets.count_erasure(self.core)
        self._clean(owners)

    def _clean(self, owners: Collection[Scope]) -> None:
        """Make indexes and contexts forget every word of what was erased."""
        if owners and self.core.engine.scan(self.core.tenant, Query("index", tag="manifest", limit=1)):
            self.recaller().indexes.purge(owners)
        self.forget_contexts()

    def forget_contexts(self) -> None:
        """Something was erased: no store of this tenant keeps anything of it for the next context or search."""
        with self._root._lock:
            family = [one for one in self._root._family if one.core.tenant == self.core.tenant]
        for one in family:
            if one._builder is not None:
                one._builder.forget()
            if one._recaller is not None:
                one._recaller.forget()
