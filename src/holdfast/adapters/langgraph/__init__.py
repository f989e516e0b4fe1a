"""LangGraph on Holdfast: ``HoldfastSaver`` for checkpoints, ``HoldfastStore`` for long-term memory, ``task`` for
results that are durable before their caller has them.

    graph = builder.compile(checkpointer=HoldfastSaver(store), store=HoldfastStore(store))

They are imported on first use, because the command reads graphs (``reading``) where LangGraph is not installed.

Where to look: a save goes from ``saver`` (LangGraph's interface) to ``keeper`` (which runs may save, and retries),
``saving`` (one commit), ``line`` and ``known`` (what this process remembers) and ``frames`` (the stored form).
``values``, ``kinds`` and ``messages`` turn objects into plain data and back, ``serde`` encrypts it, ``evolution``
reads older states. ``pruning`` and ``threads`` tend what is stored. The long-term store is ``store``, ``items`` and
``matching``; ``sweeper`` serves both. Deliberately absent: anything that other frameworks share
(``holdfast.extension`` has it).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.adapters.langgraph.pruning import Pruned
    from holdfast.adapters.langgraph.saver import HoldfastSaver
    from holdfast.adapters.langgraph.store import Explained, Explanation, HoldfastStore, ItemVersion
    from holdfast.adapters.langgraph.tasks import task

__all__ = ["Explained", "Explanation", "HoldfastSaver", "HoldfastStore", "ItemVersion", "Pruned", "task"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import langgraph.checkpoint.base  # noqa: F401, PLC0415 - only whether it is there
    except ImportError as error:
        raise ImportError("LangGraph is not installed: pip install 'holdfast[langgraph]'") from error
    from holdfast.adapters.langgraph import pruning, saver, store, tasks  # noqa: PLC0415

    return next(getattr(module, name) for module in (saver, store, tasks, pruning) if hasattr(module, name))
