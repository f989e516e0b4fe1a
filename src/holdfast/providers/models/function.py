"""The caller's own function as a model. Deliberately absent: a time limit; a plain function cannot be stopped."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from holdfast.errors import HoldfastError, Misconfigured, ModelFailed
from holdfast.providers.models.model import Reply, Usage
from holdfast.providers.models.shape import extracted, instructions, schema_of

T = TypeVar("T")


class FunctionModel:
    """``function(messages)``, or ``function(messages, tools)``, gives a text or a Reply, and streams it in one piece.

    The first form is not told of tools (``takes_tools`` is False). ``name`` is what context sizes are looked up by;
    without one it is the function's own.
    """

    def __init__(self, function: Callable[..., str | Reply], *, name: str | None = None) -> None:
        if not callable(function):
            raise Misconfigured(f"A function of messages is needed; got {type(function).__name__}.")
        self._function = function
        self.takes_tools = _takes_two(function)
        own = getattr(function, "__qualname__", None) or type(function).__qualname__
        self.name = name or f"function:{own}"

    def __repr__(self) -> str:
        return f"FunctionModel({self.name!r})"

    def reply(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: Sequence[dict[str, Any]] = (),
        timeout_s: float | None = None,
    ) -> Reply:
        try:
            answer = self._function(messages, list(tools)) if self.takes_tools else self._function(messages)
        except HoldfastError:
            raise
        except Exception as error:
            raise ModelFailed(
                f"The model {self.name} raised {type(error).__name__}: {error}",
                model=self.name,
                reason="raised",
                partial="",
            ) from error
        if isinstance(answer, str):
            return Reply(answer, model=self.name, stop="end")
        if isinstance(answer, Reply):
            return answer
        raise Misconfigured(
            f"The model {self.name} must return a text or a Reply; it returned {type(answer).__name__}.",
            model=self.name,
        )

    def stream(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: Sequence[dict[str, Any]] = (),
        timeout_s: float | None = None,
    ) -> Iterator[str | Reply]:
        whole = self.reply(messages, tools=tools)
        if whole.text:
            yield whole.text
        yield whole

    def extract(
        self, messages: list[dict[str, Any]], shape: type[T], *, timeout_s: float | None = None
    ) -> tuple[T, Usage]:
        told = {"role": "system", "content": instructions(schema_of(shape))}

        def ask(asked: list[dict[str, Any]]) -> tuple[str, Usage]:
            answer = self.reply([told, *asked])
            return answer.text, answer.usage

        return extracted(ask, messages, shape, model=self.name)


def _takes_two(function: Callable[..., Any]) -> bool:
    """Whether a function can be given messages and tools."""
    try:
        inspect.signature(function).bind([], [])
    except (TypeError, ValueError):
        return False
    return True
