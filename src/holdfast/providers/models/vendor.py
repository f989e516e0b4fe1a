"""Any vendor's model by name, through pydantic-ai: retried where that can help, and never for longer than allowed.

Making one imports nothing and asks nothing; the first request loads pydantic-ai and the vendor's SDK. Deliberately
absent: falling back to another model (the caller knows whether another one will do), jitter (there is no randomness in
rooms), and retrying a stream that has begun: what was said cannot be unsaid.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast import atfork
from holdfast.clock import Clock, SystemClock, sleep
from holdfast.errors import Misconfigured, ModelFailed
from holdfast.providers.models.model import Reply, Usage
from holdfast.providers.models.shape import extracted, schema_of

if TYPE_CHECKING:
    from holdfast.providers.models.request import VendorConnection

T = TypeVar("T")

INSTALL = "pip install 'holdfast[llm]'"
LIMIT_S = 300.0
RETRIES = 2
MODES = ("auto", "native", "tool", "prompted")
_PASSING = frozenset({"busy", "server", "connection", "unreadable"})
_LONGEST_WAIT_S = 30.0  # if a server asks for more, the caller retries later

_log = logging.getLogger(__name__)


class VendorModel:
    """``VendorModel("anthropic:MODEL")``, or any server with OpenAI's chat completions: ``"openai:NAME"``, base_url=….

    ``settings`` are those of pydantic-ai (``max_tokens``, ``temperature`` …), sent with every request. ``mode`` is how
    an answer of a shape is asked for: "auto" is what the model does best. ``timeout_s`` holds where a call names none.
    """

    def __init__(
        self,
        name: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        settings: Mapping[str, Any] | None = None,
        mode: str = "auto",
        timeout_s: float = LIMIT_S,
        retries: int = RETRIES,
        clock: Clock | None = None,
    ) -> None:
        vendor, _, model = name.partition(":")
        if not vendor.strip() or not model.strip():
            raise Misconfigured(f'A model is named "vendor:model", such as "anthropic:claude-haiku-4-5"; got {name!r}.')
        if mode not in MODES or timeout_s <= 0 or retries < 0:
            raise Misconfigured(f"mode is one of {', '.join(MODES)}, timeout_s above zero and retries not below it.")
        if importlib.util.find_spec("pydantic_ai") is None:
            raise Misconfigured(f"Models of vendors need pydantic-ai. Run: {INSTALL}", extra="llm")
        self.name = f"{vendor.strip()}:{model.strip()}"
        self._id = self.name
        self._reach: dict[str, Any] = {
            "api_key": api_key or None,
            "base_url": base_url or None,
            "settings": dict(settings or {}),
        }
        self._mode = mode
        self._timeout_s = timeout_s
        self._retries = retries
        self._clock = clock or SystemClock()
        self._lock = atfork.lock()
        self._opened: VendorConnection | None = None

    def __repr__(self) -> str:
        return f"VendorModel({self.name!r})"

    def check(self) -> None:
        """Raise Misconfigured where the vendor, its package or its key is missing. Asks the vendor nothing."""
        self._line().check()

    def reply(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: Sequence[dict[str, Any]] = (),
        timeout_s: float | None = None,
    ) -> Reply:
        line, limit = self._line(), self._limit(timeout_s)
        return self._trying(limit, lambda: line.reply(messages, tools, limit.left_s()))

    def stream(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: Sequence[dict[str, Any]] = (),
        timeout_s: float | None = None,
    ) -> Iterator[str | Reply]:
        line, limit = self._line(), self._limit(timeout_s)

        def begin() -> tuple[str | Reply, Generator[str | Reply, None, None]]:
            pieces = line.stream(messages, tools, limit.left_s())
            return next(pieces), pieces  # until the first piece is here, nobody has heard anything

        first, pieces = self._trying(limit, begin)
        with contextlib.closing(pieces):
            yield first
            yield from pieces

    def extract(
        self, messages: list[dict[str, Any]], shape: type[T], *, timeout_s: float | None = None
    ) -> tuple[T, Usage]:
        line, limit, schema = self._line(), self._limit(timeout_s), schema_of(shape)

        def ask(asked: list[dict[str, Any]]) -> tuple[str, Usage]:
            return self._trying(limit, lambda: line.answer(asked, schema, self._mode, limit.left_s()))

        return extracted(ask, messages, shape, model=self.name)

    def _line(self) -> VendorConnection:
        from holdfast.providers.models.request import VendorConnection  # noqa: PLC0415

        with self._lock:
            if self._opened is None:
                self._opened = VendorConnection(self._id, name=self.name, **self._reach)
            return self._opened

    def _limit(self, timeout_s: float | None) -> _Limit:
        """Taken once the libraries are loaded, which the first call pays for and no vendor is to blame for."""
        return _Limit(self._timeout_s if timeout_s is None else timeout_s)

    def _trying(self, limit: _Limit, attempt: Callable[[], T]) -> T:
        for number in range(self._retries + 1):
            try:
                return attempt()
            except ModelFailed as error:
                asked = error.facts.get("retry_after")
                wait_s = min(0.5 * 2**number, 8.0) if asked is None else asked
                hopeless = error.reason not in _PASSING or error.partial or wait_s > _LONGEST_WAIT_S
                if hopeless or number == self._retries or wait_s >= limit.left_s():
                    raise
                _log.debug("%s; trying again in %.1f s", error, wait_s)
                sleep(self._clock, wait_s)
        raise AssertionError("unreachable: the last attempt returns or raises")


class _Limit:
    """The time for a whole call, all its attempts included."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left_s(self) -> float:
        return max(0.0, self._end - time.monotonic())
