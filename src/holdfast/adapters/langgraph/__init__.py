"""LangGraph on Holdfast: ``HoldfastSaver`` for checkpoints, ``HoldfastStore`` for long-term memory, ``task`` for
results that are durable before their caller has them.

    graph = builder.compile(checkpointer=HoldfastSaver(store), store=HoldfastStore(store))

Deliberately absent: anything that other frameworks share (``holdfast.extension`` has it).
"""

from __future__ import annotations

try:
    import langgraph.checkpoint.base  # noqa: F401 - only whether it is there
except ImportError as error:
    raise ImportError("LangGraph is not installed: pip install 'holdfast[langgraph]'") from error

from holdfast.adapters.langgraph.pruning import Pruned
from holdfast.adapters.langgraph.saver import HoldfastSaver
from holdfast.adapters.langgraph.store import Explained, Explanation, HoldfastStore, ItemVersion
from holdfast.adapters.langgraph.tasks import task

__all__ = ["Explained", "Explanation", "HoldfastSaver", "HoldfastStore", "ItemVersion", "Pruned", "task"]
