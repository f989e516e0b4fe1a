"""LangGraph's checkpoints in Holdfast: each message once, in the thread's own log, and each step a small difference.

What a graph saves belongs to the thread of the same id: messages are entries of its log, so the command, contexts and
recall see them. A run that began at the newest checkpoint must find it still the newest at every save: the second of
two runs on one thread gets ``Conflict``. Deliberately absent: pickle, import by name, and threads of our own.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import islice
from types import ModuleType
from typing import Any, Self, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from holdfast import Store
from holdfast.adapters.langgraph import pruning
from holdfast.adapters.langgraph.by_address import OpensByAddress, awaited
from holdfast.adapters.langgraph.evolution import Evolution
from holdfast.adapters.langgraph.keeper import CheckpointKeeper, Spot
from holdfast.adapters.langgraph.kinds import LANGGRAPH
from holdfast.adapters.langgraph.pruning import Pruned
from holdfast.adapters.langgraph.saving import plain_metadata
from holdfast.adapters.langgraph.serde import Serde
from holdfast.adapters.langgraph.sweeper import Number, Sweeps
from holdfast.adapters.langgraph.threads import ThreadFound, ThreadTTL, check_thread_ttl, idle, is_idle, search
from holdfast.adapters.langgraph.values import Kinds
from holdfast.errors import Invalid
from holdfast.extension import OpenedStore, StoreOrAddress, ThreadHold, check_count, check_id, in_thread, quoted

T = TypeVar("T")


class HoldfastSaver(OpensByAddress, Sweeps, BaseCheckpointSaver[int]):
    """A checkpointer: ``graph = builder.compile(checkpointer=HoldfastSaver("agent.db"))``.

    ``types`` are the classes of your own that the state may hold: a list of classes and of modules that have them, or
    a mapping of stored names. ``version`` is the version of your graph's state, ``migrations`` lead older ones to it,
    by the version they begin at;
    ``renamed`` and ``dropped`` say what became of channels and nodes. ``user`` names the key of the config that says
    whose a thread is. ``branches`` lets several runs go on from one checkpoint instead of refusing the second.
    ``serde`` encrypts what is stored, as ``EncryptedSerializer.from_pycryptodome_aes()`` does; then messages are not in
    the thread's log. ``ttl`` says how long threads live, and ``sweep_ttl`` or ``start_ttl_sweeper`` removes the others.
    """

    def __init__(  # noqa: PLR0913 - each says one thing that a graph may need
        self,
        store: StoreOrAddress,
        *,
        types: Mapping[str, type] | Iterable[type | ModuleType] = (),
        version: int = 0,
        migrations: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] | None = None,
        renamed: Mapping[str, str] | None = None,
        dropped: Collection[str] = (),
        user: str = "user_id",
        branches: bool = False,
        serde: SerializerProtocol | None = None,
        ttl: ThreadTTL | None = None,
    ) -> None:
        self.ttl_config = check_thread_ttl(ttl)
        evolution = Evolution.of(version, migrations, renamed, dropped)
        self._held = OpenedStore(store)
        self.store: Store = self._held.store
        self.kinds = Kinds(self.store.core.schemas, LANGGRAPH)
        with self._held.begun():
            self.kinds.register(types)
        super().__init__(serde=serde or Serde(self.kinds))
        self._keeper = CheckpointKeeper(self.store, self.kinds, evolution, user, serde, branches=branches)

    def close(self) -> None:
        """Stop sweeping, and close the store if it was opened by this saver."""
        self.stop_ttl_sweeper()
        self._held.close()

    def get_next_version(self, current: Any, channel: None) -> Any:
        """The version after another. Ours are numbers; checkpoints copied from LangGraph's savers have texts, a number
        with digits behind a point, and go on as such."""
        if not isinstance(current, str):
            return super().get_next_version(current, channel)
        number = current.partition(".")[0]
        if not number.isdecimal():
            raise Invalid(f"{quoted(current)} is no version of a channel: it begins with a number", version=current)
        return f"{int(number) + 1:032}.{0:016}"

    def guard(self, graph: T) -> T:
        """The same compiled graph, refusing threads that hold channels or wait for nodes that it does not have."""
        knowing = self._keeper.evolution.knowing(graph)
        if getattr(graph, "checkpointer", None) is not self:
            raise Invalid("guard takes a graph that was compiled with this saver: builder.compile(checkpointer=saver)")
        guarded = copy.copy(self)
        guarded._keeper = copy.copy(self._keeper)
        guarded._keeper.evolution = knowing
        return graph.copy({"checkpointer": guarded})  # type: ignore[attr-defined]

    # Reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """A checkpoint with all its values: the one that the config names, or the newest."""
        spot = Spot.of(config)
        found = self._keeper.tuple_at(spot)
        self._keeper.hand_out(config, found)
        return found

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, the newest first: of a thread, of a namespace in it, or of all threads.

        ``filter`` names values of metadata, ``before`` a checkpoint that they are older than.
        """
        return islice(self._keeper.each(config, filter, before), _checked_limit(limit))

    # Writing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint that follows the one the config names, durably; return its config."""
        spot = Spot.of(config)
        told = plain_metadata(self.kinds, get_serializable_checkpoint_metadata(config, metadata), spot.thread)
        self._keeper.put(spot, config, checkpoint, told, new_versions)
        return spot.config(checkpoint["id"])

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keep what a task gave, durably, with the checkpoint that the config names.

        A task's writes are kept once; errors, interrupts and resumes replace those of before. The checkpoint may be
        saved later.
        """
        spot = Spot.of(config)
        if spot.checkpoint is None:
            raise Invalid("writes belong to a checkpoint: the config must name one")
        self._keeper.put_writes(spot, config, writes, task_id, task_path)

    # Runs

    def hold(self, config: RunnableConfig, *, wait_s: float = 0.0) -> ThreadHold:
        """Have a thread to itself: ``with saver.hold(config): graph.invoke(…, config)``, or ``async with``.

        A second run that asks for it waits up to ``wait_s`` seconds, and then gets ``ThreadHeld``, before anything of
        it is done.
        """
        return ThreadHold(self.store.thread(Spot.of(config).thread).hold(wait_s=wait_s), in_thread)

    # Tending

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread: checkpoints, log, state and all that was learned from it alone. Runs under way stay out."""
        thread = check_id(str(thread_id), "thread_id")
        pruning.note_deletion(self.store.core, thread)
        self.store.erase(thread=thread, forever=False)
        self._keeper.forget(thread)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that runs made, in every thread."""
        pruning.delete_runs(self.store.core, run_ids)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread's log and every checkpoint, with its writes, to a new thread, by one commit."""
        source, target = check_id(str(source_thread_id), "thread_id"), check_id(str(target_thread_id), "thread_id")
        pruning.copy_thread(self.store.core, source, target)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep the newest checkpoint of each namespace alone, or with "delete" none. The log stays as it is."""
        if strategy not in ("keep_latest", "delete"):
            raise Invalid(f'a strategy is "keep_latest" or "delete", not {quoted(strategy)}')
        self.retain(thread_ids, keep=1 if strategy == "keep_latest" else 0)

    def retain(
        self,
        thread_ids: Sequence[str] | None = None,
        *,
        keep: int | None = None,
        older_than: timedelta | None = None,
        max_bytes: int | None = None,
        dry_run: bool = False,
    ) -> Pruned:
        """Drop old checkpoints of some threads, or of all; say how many went, and how many bytes they took.

        ``keep`` the newest so many of each namespace; drop what is ``older_than`` a timedelta; drop the oldest until a
        namespace takes at most ``max_bytes``. The newest one always stays, unless ``keep`` is 0. Nothing that a
        remaining checkpoint needs is dropped. Messages stay in the log of their thread.
        """
        if isinstance(thread_ids, str):
            raise Invalid(f"thread_ids are several: [{thread_ids!r}]")
        rule = pruning.RetentionRule(keep, older_than, max_bytes)
        ids = None if thread_ids is None else [check_id(str(id), "thread_id") for id in thread_ids]
        return pruning.retain(self.store.core, ids, rule, dry_run=dry_run)

    def sweep_ttl(self) -> Number:
        """Remove what has outlived ``ttl``: threads, or old checkpoints. Return how many of them that were.

        Async programs may await it, but it blocks.
        """
        minutes = self.ttl_config.get("default_ttl")
        if minutes is None:
            return Number(0)
        if self.ttl_config.get("strategy") == "keep_latest":
            return Number(self.retain(older_than=timedelta(minutes=minutes)).checkpoints)
        swept = 0
        for thread in idle(self.store.core, minutes):
            if is_idle(self.store.core, thread, minutes):  # still: others are swept in between
                self.delete_thread(thread)
                swept += 1
        return Number(swept)

    def search_threads(
        self, filter: dict[str, Any] | None = None, *, user: str | None = None, limit: int | None = None
    ) -> Iterator[ThreadFound]:
        """Threads by the metadata of their newest checkpoint, or by owner, latest activity first; no state is read."""
        return islice(search(self.store.core, self.kinds, filter or {}, user), _checked_limit(limit))

    # Delta channels

    def get_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Mapping[str, Any]:
        """What was written to channels since their last snapshot, along the line of parents, oldest first."""
        return self._keeper.history(Spot.of(config), channels)

    # The same, awaited

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        spot = Spot.of(config)
        found = await in_thread(self._keeper.tuple_at, spot)
        self._keeper.hand_out(config, found)  # here, and not in the thread: it is this context that the saves inherit
        return found

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (each := await in_thread(next, found, None)) is not None:
            yield each

    aput, aput_writes = awaited(put), awaited(put_writes)
    adelete_thread, adelete_for_runs = awaited(delete_thread), awaited(delete_for_runs)
    acopy_thread, aprune = awaited(copy_thread), awaited(prune)
    aget_delta_channel_history = awaited(get_delta_channel_history)

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> Self:
        """Nothing is imported by name here, so there is nothing to allow: ``types=`` registers classes."""
        return self


def _checked_limit(limit: Any) -> int | None:
    if limit is not None:
        check_count("limit", limit)
    return limit
