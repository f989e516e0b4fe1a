"""Choosing a model by name.

Making one loads no library and asks no server, so a store can be opened with any model at no cost. Deliberately absent:
the environment. Keys and addresses are passed in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.errors import Misconfigured, quoted
from holdfast.providers.models.model import Model, Reply

LOCAL = "local"
NONE = "none"
_FORMS = '"vendor:model" (such as "anthropic:claude-haiku-4-5"), "local", "local:FILE.gguf", "none"'

Spec = str | Model | Callable[[list[dict[str, Any]]], str | Reply] | None


def choose(spec: Spec, *, api_key: str | None = None, base_url: str | None = None) -> Model | None:
    """The model that is named, or None where there is to be none.

    A function of messages, and an object that is a model already, are taken as they are. ``api_key`` and ``base_url``
    belong to "vendor:model" alone; "openai:NAME" with an address is any server that speaks OpenAI's chat completions.
    """
    if spec is None:
        return None
    if isinstance(spec, str):
        return _named(spec.strip(), api_key, base_url)
    if isinstance(spec, type):
        raise Misconfigured(f"{spec.__name__} is a class. Give an object of it: {spec.__name__}(...)")
    if callable(getattr(spec, "reply", None)):
        return _whole(spec)
    if callable(spec):
        from holdfast.providers.models.function import FunctionModel  # noqa: PLC0415

        return FunctionModel(spec)
    raise Misconfigured(f"A model is one of {_FORMS}, a function or an object with reply; got {quoted(spec)}.")


def _named(spec: str, api_key: str | None, base_url: str | None) -> Model | None:
    kind, _, rest = spec.partition(":")
    if kind.casefold() in {LOCAL, NONE, ""}:
        if api_key is not None or base_url is not None:
            raise Misconfigured(f'A key or an address belongs to "vendor:model"; the model {spec!r} uses neither.')
        if kind.casefold() == LOCAL:
            from holdfast.providers.models.local import Local  # noqa: PLC0415

            return Local(rest or None)
        if not rest:
            return None
    if not rest:
        raise Misconfigured(f"There is no model {spec!r}. Name one of {_FORMS}.")
    from holdfast.providers.models.vendor import VendorModel  # noqa: PLC0415

    return VendorModel(spec, api_key=api_key, base_url=base_url)


def _whole(given: Any) -> Model:
    missing = [name for name in ("name", "stream", "extract") if name not in dir(given)]
    if missing:
        raise Misconfigured(f"The model {type(given).__name__} lacks {', '.join(missing)}.")
    model: Model = given
    return model
