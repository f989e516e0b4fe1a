"""One request to one model of a vendor, through pydantic-ai. This is the only module that knows how it reaches them.

Every request has a client of its own, closed with it: clients belong to an event loop, and ours lives for one call.
That costs some 40 ms of work and a handshake, beside seconds of waiting for a model. Errors come out as ours, without
the vendor's as their cause, because those hold the request and with it the key. Deliberately absent: second tries (of
the vendor's SDK as well; ``vendor`` decides about those), agents, and the environment: where no key is passed in,
pydantic-ai looks for the vendor's own variables itself.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from typing import Any

import httpx2
from pydantic_ai import exceptions
from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta
from pydantic_ai.models import Model, ModelRequestParameters, create_async_httpx2_client, infer_model
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from holdfast.errors import HoldfastError, Invalid, Misconfigured, ModelFailed, TooLarge
from holdfast.providers.address import is_loopback
from holdfast.providers.models.blocking import listen, wait_for
from holdfast.providers.models.model import Reply, Usage
from holdfast.providers.models.translation import answer_of, definitions, from_vendor, to_vendor, usage_of

_ADVERT = " To try Pydantic AI"  # its advice about a missing key goes on to things that are not ours to advise
_WORDS = 300  # characters of a vendor's explanation that fit into ours


class VendorConnection:
    """The way to one model. Safe for many threads: nothing is shared between two requests."""

    def __init__(
        self, id: str, *, name: str, api_key: str | None, base_url: str | None, settings: Mapping[str, Any]
    ) -> None:
        self.name = name  # for people; the id is for pydantic-ai
        self._id = id
        self._key = api_key
        self._base_url = base_url
        self._settings = settings

    def check(self) -> None:
        """Find out whether there is such a vendor, its package and a key, without asking it anything."""

        async def open_and_close() -> None:
            async with self._open():
                pass

        with self._failures([]):
            wait_for(open_and_close)

    def reply(self, messages: list[dict[str, Any]], tools: Sequence[dict[str, Any]], within_s: float) -> Reply:
        params = ModelRequestParameters(function_tools=definitions(tools))
        sent = to_vendor(messages)

        async def ask() -> Reply:
            async with asyncio.timeout(within_s), self._open() as model:
                response = await model.request(model.prepare_messages(sent, params), self._given(model), params)
                return from_vendor(response, self.name)

        with self._failures([]):
            return wait_for(ask)

    def stream(
        self, messages: list[dict[str, Any]], tools: Sequence[dict[str, Any]], within_s: float
    ) -> Generator[str | Reply, None, None]:
        params = ModelRequestParameters(function_tools=definitions(tools))
        sent = to_vendor(messages)

        async def ask(hand_over: Callable[[str], None]) -> Reply:
            async with asyncio.timeout(within_s), self._open() as model:
                prepared = model.prepare_messages(sent, params)
                async with model.request_stream(prepared, self._given(model), params) as response:
                    async for event in response:
                        if text := _text_of(event):
                            hand_over(text)
                    return from_vendor(response.get(), self.name)

        said: list[str] = []
        with self._failures(said), contextlib.closing(listen(ask)) as pieces:
            for piece in pieces:
                if isinstance(piece, str):
                    said.append(piece)
                yield piece

    def answer(
        self, messages: list[dict[str, Any]], schema: dict[str, Any], mode: str, within_s: float
    ) -> tuple[str, Usage]:
        """The text of an answer that was asked to follow a schema, in the way this model does that best."""
        params = _asking_for(schema, mode)
        sent = to_vendor(messages)

        async def ask() -> tuple[str, Usage]:
            async with asyncio.timeout(within_s), self._open() as model:
                response = await model.request(model.prepare_messages(sent, params), self._given(model), params)
                return answer_of(response), usage_of(response)

        with self._failures([]):
            return wait_for(ask)

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncIterator[Model[Any]]:
        async with contextlib.AsyncExitStack() as stack:
            vendor, _, name = self._id.partition(":")
            if self._base_url is not None and vendor == "openai":
                model = await self._compatible(name, self._base_url, stack)
            else:
                model = infer_model(self._id, self._provider)
            yield await stack.enter_async_context(model)

    async def _compatible(self, name: str, base_url: str, stack: contextlib.AsyncExitStack) -> Model[Any]:
        """A server that speaks OpenAI's chat completions, which is what all of them speak."""
        from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
        from pydantic_ai.profiles.openai import OpenAIModelProfile  # noqa: PLC0415
        from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider  # noqa: PLC0415

        client = None
        if is_loopback(base_url):  # no proxy leads to this machine
            client = create_async_httpx2_client(transport=httpx2.AsyncHTTPTransport())
            await stack.enter_async_context(client)
        profile = OpenAIModelProfile(
            default_structured_output_mode="native",  # local servers hold a model to a schema while it writes
            openai_chat_streaming_requires_finish_reason=True,  # without one, a stream that broke off looks complete
        )
        provider = OpenAICompatibleProvider(
            "openai-compatible", base_url=base_url, api_key=self._key, http_client=client, profile=profile
        )
        return OpenAIChatModel(name, provider=provider)

    def _provider(self, vendor: str) -> Provider[Any]:
        try:
            kind = infer_provider_class(vendor)
        except ValueError:
            raise Misconfigured(f"There is no vendor {vendor!r}; {self.name} cannot be used.") from None
        given = {"api_key": self._key, "base_url": self._base_url}
        given = {name: value for name, value in given.items() if value is not None}
        if not given:
            return infer_provider(vendor)
        try:
            return kind(**given)
        except TypeError:
            raise Misconfigured(
                f"The vendor {vendor!r} cannot be reached with {' and '.join(given)}. Leave that out, and set the "
                "variables that its documentation names."
            ) from None

    def _given(self, model: Model[Any]) -> ModelSettings:
        settings: ModelSettings = {**self._settings}  # type: ignore[typeddict-item]
        if "max_retries" not in model.unsupported_settings:  # setting it there would be a warning
            settings["max_retries"] = 0
        return settings

    # What went wrong, in our words

    @contextlib.contextmanager
    def _failures(self, said: list[str]) -> Iterator[None]:
        try:
            yield
        except HoldfastError:
            raise
        except Exception as error:  # an SDK that meets an answer it did not expect raises anything at all
            raise self._ours(error, "".join(said)) from None

    def _ours(self, error: Exception, partial: str) -> HoldfastError:
        words = self._words(error)
        match error:
            case exceptions.ModelAuthenticationError():
                return Misconfigured(f"{self.name} does not accept the key: {words}", model=self.name)
            case exceptions.ModelNotFoundError():
                return Misconfigured(f"There is no model {self.name} at that address: {words}", model=self.name)
            case exceptions.UserError():
                return Misconfigured(f"{self.name} cannot be used: {words}", model=self.name)
            case ImportError():
                return Misconfigured(f"{self.name} needs a package: {words}", model=self.name)
            case exceptions.ModelContextWindowExceededError():
                return TooLarge(f"{self.name} refuses the messages as too long: {words}", model=self.name)
            case exceptions.ModelRequestRejectedError():
                return Invalid(f"{self.name} refuses the request: {words}", model=self.name)
        reason = _reason(error, partial)
        told = f"{self.name} broke off after {len(partial)} characters" if partial else f"{self.name} did not answer"
        after = getattr(error, "retry_after", None)
        return ModelFailed(
            f"{told} ({reason}): {words}", model=self.name, reason=reason, partial=partial, retry_after=after
        )

    def _words(self, error: Exception) -> str:
        """The vendor's own words, short, on one line and without the key."""
        body = getattr(error, "body", None)
        if isinstance(body, dict):
            inner = body.get("error", body)
            body = inner.get("message") if isinstance(inner, dict) else inner
        status = getattr(error, "status_code", None)
        words = body if isinstance(body, str) and body.strip() else str(error)
        if isinstance(error, TimeoutError):
            words = "the time for it is over"
        words = words.partition(_ADVERT)[0]
        words = " ".join(f"{status or ''} {words}".split()) or type(error).__name__
        words = words.replace(self._key, "[key]") if self._key else words
        return words[:_WORDS].rstrip(".") + "."


def _reason(error: Exception, partial: str) -> str:
    match error:
        case TimeoutError():
            return "timeout"
        case exceptions.ModelQuotaExceededError():
            return "quota"
    if partial:
        return "broken"
    match error:
        case exceptions.ModelRateLimitError():
            return "busy"
        case exceptions.ModelConnectionError():
            return "connection"
        case exceptions.ModelHTTPError():
            return "server"
    return "unreadable"


def _asking_for(schema: dict[str, Any], mode: str) -> ModelRequestParameters:
    """All three ways of asking at once; pydantic-ai leaves out those that the model's own way does not need."""
    title = str(schema.get("title") or "answer")
    name = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in title)
    about = schema.get("description")
    tool = ToolDefinition(name=name, description=about, parameters_json_schema=schema, kind="output")
    return ModelRequestParameters(
        output_mode=mode,  # type: ignore[arg-type]
        output_object=OutputObjectDefinition(schema, name=name, description=about),
        output_tools=[tool],
        allow_text_output=mode in {"native", "prompted"},
    )


def _text_of(event: Any) -> str:
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""
