"""Reads what an older version of a graph saved: migrations, renamed and dropped channels and nodes.

Nothing is lost: a channel that the graph no longer has stays in the store, and a guarded graph (``guard``) refuses a
thread that holds one until someone says what became of it. Deliberately absent: storage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from langgraph.types import Send

from holdfast.adapters.langgraph.frames import JOIN, ONTO
from holdfast.errors import Invalid, MigrationFailed, Unsupported
from holdfast.extension import check_count

_OWN = ("__", ONTO, JOIN)

Migrate = Callable[[dict[str, Any]], dict[str, Any]]
Writes = list[tuple[str, str, Any]]


class Evolution(NamedTuple):
    """How a saver reads what was saved before."""

    version: int
    migrations: Mapping[int, Migrate]
    renamed: Mapping[str, str]
    dropped: frozenset[str]
    channels: frozenset[str] | None = None
    nodes: frozenset[str] | None = None

    @staticmethod
    def of(version: int, migrations: Any, renamed: Any, dropped: Any) -> Evolution:
        """What a caller says, looked at: a slip here would lose a channel later."""
        check_count("version", version)
        for name, value in (("migrations", migrations), ("renamed", renamed)):
            if value is not None and not isinstance(value, Mapping):
                raise Invalid(f"{name} is a dict, not {type(value).__name__}")
        if isinstance(dropped, str):
            raise Invalid(f"dropped are several names: [{dropped!r}]")
        if beyond := [number for number in migrations or {} if not 0 <= number < version]:
            raise Invalid(
                f"a migration begins at a version before {version}, not at {beyond[0]!r}: is version= missing?"
            )
        return Evolution(version, migrations or {}, renamed or {}, frozenset(dropped))

    def knowing(self, graph: Any) -> Evolution:
        """The same, for a compiled graph whose channels and nodes are known."""
        if not hasattr(graph, "channels") or not hasattr(graph, "nodes") or not hasattr(graph, "copy"):
            raise Invalid(f"guard takes a compiled graph, not {type(graph).__name__}")
        return self._replace(channels=frozenset(graph.channels), nodes=frozenset(graph.nodes))

    def applied(self, thread: str, version: int, checkpoint: dict[str, Any], writes: Writes) -> Writes:
        """Bring a checkpoint, in place, and its writes to what the graph is today."""
        if version > self.version:
            raise Unsupported(
                f"thread {thread!r} was saved by version {version} of its graph, this one is {self.version}: run the "
                "newer program",
                thread=thread,
            )
        if self.renamed:
            self._rename(checkpoint)
            writes = [(task, self._channel(channel), self._sent(value)) for task, channel, value in writes]
        while version < self.version:
            if version not in self.migrations:
                raise Unsupported(
                    f"thread {thread!r} was saved by version {version} of its graph: give "
                    f"migrations={{{version}: …}} a function of the channels' values",
                    thread=thread,
                )
            checkpoint["channel_values"] = self._migrated(thread, version, checkpoint)
            version += 1
        if self.channels is not None:
            self._refuse_unknown(thread, checkpoint, writes)
        return writes

    def _migrated(self, thread: str, version: int, checkpoint: dict[str, Any]) -> dict[str, Any]:
        """What a migration makes of the values; those of LangGraph's own channels are not its business."""
        own = {name: value for name, value in checkpoint["channel_values"].items() if name.startswith(_OWN)}
        rest = {name: value for name, value in checkpoint["channel_values"].items() if name not in own}
        try:
            made = self.migrations[version](dict(rest))
        except Exception as error:  # the caller's function may fail in any way
            raise MigrationFailed(
                f"the migration from version {version} failed for thread {thread!r}: {error!r}", thread=thread
            ) from error
        if not isinstance(made, dict):
            raise Unsupported(f"the migration from version {version} gave no dict for thread {thread!r}", thread=thread)
        for name in made:
            checkpoint["channel_versions"].setdefault(name, 1)
        for name in rest.keys() - made.keys():
            checkpoint["channel_versions"].pop(name, None)
        return {**own, **made}

    def _rename(self, checkpoint: dict[str, Any]) -> None:
        for field in ("channel_values", "channel_versions"):
            checkpoint[field] = {self._channel(name): value for name, value in checkpoint[field].items()}
        values = checkpoint["channel_values"]
        checkpoint["channel_values"] = {name: self._value(name, value) for name, value in values.items()}
        checkpoint["versions_seen"] = {
            self.renamed.get(node, node): {self._channel(name): version for name, version in seen.items()}
            for node, seen in checkpoint["versions_seen"].items()
        }
        if checkpoint["updated_channels"] is not None:
            checkpoint["updated_channels"] = [self._channel(name) for name in checkpoint["updated_channels"]]

    def _channel(self, name: str) -> str:
        if name.startswith(ONTO):
            node = name.removeprefix(ONTO)
            return f"{ONTO}{self.renamed.get(node, node)}"
        if name.startswith(JOIN):
            starts, _, end = name.removeprefix(JOIN).rpartition(":")
            first = "+".join(self.renamed.get(node, node) for node in starts.split("+"))
            return f"{JOIN}{first}:{self.renamed.get(end, end)}"
        return self.renamed.get(name, name)

    def _value(self, channel: str, value: Any) -> Any:
        """A value that names nodes: who is waited for, or what is sent to whom."""
        if channel.startswith(JOIN) and isinstance(value, set):
            return {self.renamed.get(node, node) for node in value}
        return self._sent(value)

    def _sent(self, value: Any) -> Any:
        if isinstance(value, Send) and value.node in self.renamed:
            return Send(self.renamed[value.node], value.arg, timeout=value.timeout)
        if type(value) is list and any(isinstance(item, Send) for item in value):
            return [self._sent(item) for item in value]
        return value

    def _refuse_unknown(self, thread: str, checkpoint: dict[str, Any], writes: Writes) -> None:
        assert self.channels is not None
        assert self.nodes is not None
        for name in list(checkpoint["channel_values"]):
            if name in self.channels or name in self.dropped:
                continue
            if name.startswith(ONTO):
                self._refuse(thread, "waits for the node", name.removeprefix(ONTO))
            elif name.startswith(JOIN) and checkpoint["channel_values"][name]:
                self._refuse(thread, "waits for nodes to join in", name)
            elif not name.startswith(_OWN):
                self._refuse(thread, "holds the channel", name)
        for value in checkpoint["channel_values"].get("__pregel_tasks", ()):
            if isinstance(value, Send) and value.node not in self.nodes and value.node not in self.dropped:
                self._refuse(thread, "waits for the node", value.node)

    def _refuse(self, thread: str, what: str, name: str) -> None:
        raise Unsupported(
            f"thread {thread!r} {what} {name!r}, which the graph no longer has: say what it is called now "
            f"(HoldfastSaver(…, renamed={{{name!r}: …}})), or that it may go (dropped=[{name!r}])",
            thread=thread, name=name,
        )  # fmt: skip
