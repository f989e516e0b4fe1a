"""A model for tests that answers from a script.

It needs no library and no server, and leaves nothing to chance: the first question gets the first item, and so on. It
records the requests for your test to check. Deliberately absent: anything like understanding.
"""

from __future__ import annotations

import copy
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import msgspec

from holdfast.errors import Invalid, ModelFailed
from holdfast.providers.models.model import Reply, ToolCall, Usage
from holdfast.providers.models.shape import extracted

T = TypeVar("T")

Item: TypeAlias = Any
"""A text, a Reply, a ToolCall or a list of them, an Exception, a Broken, a callable(messages, tools) that gives one of
these, or, for ``extract``, a Struct or a dict."""

_WORD = re.compile(r"\s*\S+\s*?|\s+")


class Broken:
    """An answer that breaks off: ``text`` is streamed, and then there is nothing more."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"Broken({self.text!r})"


class ModelRequest(msgspec.Struct, frozen=True):
    """One request: the kind of call, with its messages and tools at that moment."""

    how: str
    messages: list[dict[str, Any]]
    tools: tuple[dict[str, Any], ...] = ()
    timeout_s: float | None = None
    shape: Any = None


class Scripted:
    """``Scripted("Hello.", ToolCall("1", "recall", {"query": "seat"}), "An aisle seat.")``: one item per request.

    ``asked`` lists the messages of each request, ``calls`` whole requests. Text is streamed word by word. An item that
    does not have the shape that ``extract`` wants leads to a second request, as with any model. A request after the
    last item raises ``Invalid``; ``left`` is how many items remain. If no item of a shape is next, ``extract`` raises
    ``ModelFailed`` and uses up nothing.
    """

    def __init__(self, *items: Item, name: str = "scripted", usage: Usage | None = None) -> None:
        self.name = name
        self.calls: list[ModelRequest] = []
        self._items = list(items)
        self._usage = usage
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Scripted({len(self.calls)} of {len(self._items)} said, name={self.name!r})"

    @property
    def asked(self) -> list[list[dict[str, Any]]]:
        return [call.messages for call in self.calls]

    @property
    def left(self) -> int:
        return len(self._items) - len(self.calls)

    def reply(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: Sequence[dict[str, Any]] = (),
        timeout_s: float | None = None,
    ) -> Reply:
        item = self._next(ModelRequest("reply", messages, tuple(tools), timeout_s))
        if isinstance(item, Broken):
            raise self._broken(item)
        return self._as_reply(item, messages)

    def stream(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: Sequence[dict[str, Any]] = (),
        timeout_s: float | None = None,
    ) -> Iterator[str | Reply]:
        item = self._next(ModelRequest("stream", messages, tuple(tools), timeout_s))
        if isinstance(item, Broken):
            yield from _WORD.findall(item.text)
            raise self._broken(item)
        whole = self._as_reply(item, messages)
        yield from _WORD.findall(whole.text)
        yield whole

    def extract(
        self, messages: list[dict[str, Any]], shape: type[T], *, timeout_s: float | None = None
    ) -> tuple[T, Usage]:
        if not self._has_shapes():
            raise ModelFailed(f"{self.name} has no answer of a shape in its script.", model=self.name, reason="invalid")

        def ask(asked: list[dict[str, Any]]) -> tuple[str, Usage]:
            item = self._next(ModelRequest("extract", asked, (), timeout_s, shape))
            if isinstance(item, Broken):
                raise self._broken(item)
            if _is_shape(item) and not isinstance(item, str) and not callable(item):
                text = msgspec.json.encode(item).decode()
                return text, self._spent(asked, text)
            answer = self._as_reply(item, asked)
            return answer.text, answer.usage

        return extracted(ask, messages, shape, model=self.name)

    def _has_shapes(self) -> bool:
        """Whether the script continues with an answer of a shape. A script without one is a model that cannot extract:
        its session learns by rules, and the script only holds what is said."""
        return any(_is_shape(item) for item in self._items[len(self.calls) :])

    def _next(self, call: ModelRequest) -> Item:
        call = msgspec.structs.replace(call, messages=copy.deepcopy(call.messages), tools=copy.deepcopy(call.tools))
        with self._lock:
            at = len(self.calls)
            self.calls.append(call)
        if at >= len(self._items):
            raise Invalid(
                f"The scripted model {self.name!r} has {len(self._items)} items and was asked {at + 1} times; "
                f"the last message was {call.messages[-1] if call.messages else None!r}."
            )
        item = self._items[at]
        if callable(item) and not isinstance(item, type):
            item = item(call.messages, call.tools)
        if isinstance(item, BaseException) or (isinstance(item, type) and issubclass(item, BaseException)):
            raise item
        return item

    def _as_reply(self, item: Item, messages: list[dict[str, Any]]) -> Reply:
        if isinstance(item, Reply):
            return item if item.model else msgspec.structs.replace(item, model=self.name)
        if isinstance(item, str):
            return Reply(item, usage=self._spent(messages, item), model=self.name, stop="end")
        calls = (item,) if isinstance(item, ToolCall) else tuple(item) if isinstance(item, list | tuple) else ()
        if calls and all(isinstance(call, ToolCall) for call in calls):
            return Reply(calls=calls, usage=self._spent(messages, ""), model=self.name, stop="tools")
        raise Invalid(f"The scripted model {self.name!r} cannot say {item!r}. {(__doc__ or '').splitlines()[0]}")

    def _spent(self, messages: list[dict[str, Any]], text: str) -> Usage:
        """The usage a test gave, or words as tokens: the same on every machine, and never zero for any text."""
        if self._usage is not None:
            return self._usage
        return Usage(len(msgspec.json.encode(messages).split()), len(text.split()))

    def _broken(self, item: Broken) -> ModelFailed:
        return ModelFailed(
            f"{self.name} broke off after {len(item.text)} characters (broken).",
            model=self.name,
            reason="broken",
            partial=item.text,
        )


def _is_shape(item: Item) -> bool:
    """Whether an item can answer ``extract``; a function might."""
    if isinstance(item, str):
        return item.lstrip().startswith("{")
    return callable(item) or (isinstance(item, msgspec.Struct | Mapping) and not isinstance(item, Reply | ToolCall))


Script: TypeAlias = Callable[[list[dict[str, Any]], tuple[dict[str, Any], ...]], Item]
