"""Tasks whose result is durable before their caller has it.

LangGraph hands what a ``@task`` gave to its caller and saves it in the background: killed in between, the task runs
again. A task declared with ``task`` from here has saved its result when it returns. Deliberately absent: anything that
makes a task that was killed in the middle safe; that is what ``thread.run`` and its probes are for.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from langgraph.config import get_config
from langgraph.func import task as langgraph_task

from holdfast.adapters.langgraph.saver import HoldfastSaver

_RETURN = "__return__"
_DURABILITY = "__pregel_durability"
_SAVER, _TASK, _MAP = "__pregel_checkpointer", "__pregel_task_id", "checkpoint_map"


def task(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Like ``langgraph.func.task``, with the same options; what it returns is durable first."""
    if function is None:
        return functools.partial(task, **options)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            result = await function(*args, **kwargs)
            if (found := _place()) is not None:
                saver, config, id = found
                await saver.aput_writes(config, [(_RETURN, result)], id)
            return result

        return langgraph_task(awaited, **options)

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if (found := _place()) is not None:
            saver, config, id = found
            saver.put_writes(config, [(_RETURN, result)], id)
        return result

    return langgraph_task(called, **options)


def _place() -> tuple[HoldfastSaver, Any, str] | None:
    """The saver of the run that this code is in, and where the result of this task belongs; None outside of one.

    With durability "exit" nothing is saved before the end of a run, results of tasks included.
    """
    named = get_config().get("configurable") or {}
    saver, id = named.get(_SAVER), named.get(_TASK)
    space = named.get("checkpoint_ns", "")
    outer = space.rsplit("|", 1)[0] if "|" in space else ""
    known = named.get(_MAP) or {}
    checkpoint = known.get(outer)
    # A task that is called from a node has its caller in the map, at the checkpoint of the graph that both are in.
    outer = min((each for each, id in known.items() if id == checkpoint), key=len, default=outer)
    at_exit = named.get(_DURABILITY) == "exit"
    if not isinstance(saver, HoldfastSaver) or id is None or checkpoint is None or at_exit:
        return None
    place = {"thread_id": named["thread_id"], "checkpoint_ns": outer, "checkpoint_id": checkpoint}
    return saver, {"configurable": place}, id
