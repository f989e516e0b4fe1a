"""A chat model for LangChain that answers from a script, so that the examples beside it need no key and no network."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.messages.tool import tool_call
from langchain_core.outputs import ChatGeneration, ChatResult


class ScriptedModel(BaseChatModel):
    """Looks up how the last message begins, and gives what the script has for it: a text, or tools to call.

    The last lines of the script win, and ``""`` is the beginning of every message.
    """

    script: dict[str, str | list[tuple[str, dict[str, Any]]]]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: Any, *args: Any, **options: Any) -> ChatResult:
        last = messages[-1]
        said = next(said for start, said in reversed(self.script.items()) if last.text.startswith(start))
        calls = [] if isinstance(said, str) else said
        made = [tool_call(name=name, args=args, id=f"{last.id}-{number}") for number, (name, args) in enumerate(calls)]
        reply = AIMessage(said if isinstance(said, str) else "", tool_calls=made)
        return ChatResult(generations=[ChatGeneration(message=reply)])
