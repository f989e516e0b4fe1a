"""The types of LangGraph and LangChain that a graph's state may hold without being registered.

Messages are not here: they go into the log of their thread. Deliberately absent: how types are stored (``values``).
"""

from __future__ import annotations

from typing import Any

from langchain_core.agents import AgentAction, AgentActionMessageLog, AgentFinish, AgentStep
from langchain_core.documents import Document
from langchain_core.outputs import (
    ChatGeneration,
    ChatGenerationChunk,
    ChatResult,
    Generation,
    GenerationChunk,
    LLMResult,
    RunInfo,
)
from langchain_core.prompt_values import (
    ChatPromptValue,
    ChatPromptValueConcrete,
    ImagePromptValue,
    StringPromptValue,
)
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Command, Interrupt, Overwrite, Send, TimeoutPolicy

from holdfast.adapters.langgraph.values import ValueKind, of_class


def _interrupt(held: dict[str, Any]) -> Interrupt:
    more = {"response_schema": held["schema"]} if "schema" in held else {}
    return Interrupt(value=held["value"], id=held["id"], **more)


def _told(interrupt: Interrupt) -> dict[str, Any]:
    told = {"value": interrupt.value, "id": interrupt.id}
    schema = getattr(interrupt, "response_schema", None)
    return {**told, "schema": schema} if isinstance(schema, dict) else told  # a class is asked for again by the node


_WITH_FIELDS = (
    AgentAction, AgentActionMessageLog, AgentFinish, AgentStep, ChatGeneration, ChatGenerationChunk, ChatPromptValue,
    ChatPromptValueConcrete, ChatResult, Generation, GenerationChunk, ImagePromptValue, LLMResult, RunInfo,
    StringPromptValue, TimeoutPolicy,
)  # fmt: skip

LANGGRAPH = (
    *(of_class(kind.__name__, kind) for kind in _WITH_FIELDS),
    ValueKind(
        "send", Send, lambda value: [value.node, value.arg, value.timeout],
        lambda held: Send(held[0], held[1], timeout=held[2]),
    ),
    ValueKind("interrupt", Interrupt, _told, _interrupt),
    ValueKind(
        "command", Command, lambda value: [value.graph, value.update, value.resume, value.goto],
        lambda held: Command(graph=held[0], update=held[1], resume=held[2], goto=held[3]),
    ),
    ValueKind("overwrite", Overwrite, lambda value: value.value, Overwrite),
    ValueKind("delta snapshot", _DeltaSnapshot, lambda value: value.value, _DeltaSnapshot),
    ValueKind(
        "document", Document,
        lambda value: {"id": value.id, "metadata": value.metadata, "page_content": value.page_content},
        lambda held: Document(**held),
    ),
)  # fmt: skip
