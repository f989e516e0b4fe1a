"""What a language model is, and what it returns.

Messages and tools go in as the dicts of OpenAI's chat format, which everybody already writes; the result is one
``Reply``, from whichever vendor. Deliberately absent: anything that calls a model, and anything a vendor would
recognise as its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import msgspec

T = TypeVar("T")


class ToolCall(msgspec.Struct, frozen=True):
    """A tool that the model wants used.

    ``invalid`` says why the arguments could not be read, and is empty when they could. Then ``arguments`` is
    ``{"raw": text}`` with what the model wrote, so that the call can still be recorded and answered with an error.
    """

    id: str
    name: str
    arguments: dict[str, Any]
    invalid: str = ""


class Usage(msgspec.Struct, frozen=True):
    """Tokens as the vendor counted them. ``cached`` is the part of ``input`` that a prompt cache served."""

    input: int = 0
    output: int = 0
    cached: int = 0
    requests: int = 1

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.requests + other.requests,
        )

    def __sub__(self, other: Usage) -> Usage:
        return Usage(
            self.input - other.input,
            self.output - other.output,
            self.cached - other.cached,
            self.requests - other.requests,
        )


class Reply(msgspec.Struct, frozen=True):
    """What a model answered: text, tools it wants used, or both.

    ``stop`` is why it stopped: "end", "tools", "length" (cut off at a limit), "refused", "error", or empty where the
    vendor did not say. ``model`` is the name that answered, which may be more exact than the one that was asked.
    ``derived`` says that it only repeats what is in the log, so that recall does not find it a second time.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    model: str = ""
    stop: str = ""
    derived: bool = False

    def message(self) -> dict[str, Any]:
        """This reply as the assistant message of the next request."""
        said: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.calls:
            said["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": msgspec.json.encode(call.arguments).decode()},
                }
                for call in self.calls
            ]
        return said


@runtime_checkable
class Model(Protocol):
    """Anything that answers messages. ``name`` is what context sizes and token counts are looked up by.

    Every method raises ModelFailed where asking again later can help, and Misconfigured where a key, a name or an
    address has to be put right first. ``timeout_s`` is for the whole call, all its attempts included.
    """

    @property
    def name(self) -> str: ...

    def reply(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: Sequence[dict[str, Any]] = (),
        timeout_s: float | None = None,
    ) -> Reply:
        """The whole answer."""
        ...

    def stream(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: Sequence[dict[str, Any]] = (),
        timeout_s: float | None = None,
    ) -> Iterator[str | Reply]:
        """Pieces of text as they come, and the whole Reply last. One that breaks off raises with ``partial``."""
        ...

    def extract(
        self, messages: list[dict[str, Any]], shape: type[T], *, timeout_s: float | None = None
    ) -> tuple[T, Usage]:
        """An answer of this shape, a msgspec.Struct type, and what it cost."""
        ...
