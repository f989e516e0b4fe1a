"""Choosing an embedder by name, and checking it.

Making one loads no model and asks no server, so a store can be opened with any embedder at no cost. Deliberately
absent: the environment. Keys and addresses are passed in.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from holdfast.errors import Misconfigured
from holdfast.providers.automatic import Automatic
from holdfast.providers.embedding import Checked, Embedder, checked
from holdfast.providers.reranker import CheckedReranker, CrossEncoder, Reranker

AUTO = "auto"
OFFLINE = ("wordllama", "minilm", "multilingual")
"""The embedders that come in wheels."""
NONE = "none"
_FORMS = '"auto", "none", "wordllama", "minilm", "multilingual", "minilm:FOLDER", "openai:MODEL"'

Spec = str | Embedder | Callable[[list[str]], Any] | None
RerankerSpec = str | Reranker | None


def choose(spec: Spec, *, api_key: str | None = None, base_url: str | None = None) -> Checked | None:
    """The embedder that is named, or None where there is to be none.

    "auto" is the best that is installed, see ``Automatic``, and none where none is. A function of a list of texts, and
    an object that is an embedder already, are taken as they are. ``api_key`` and ``base_url`` belong to "openai:MODEL"
    alone.
    """
    if spec is None:
        return None
    if isinstance(spec, str):
        if spec.strip().casefold() == AUTO and api_key is None and base_url is None:
            return _automatic()
        found = _named(spec.strip(), api_key, base_url)
        return None if found is None else checked(found)
    if isinstance(spec, type):
        raise Misconfigured(f"{spec.__name__} is a class. Give an object of it: {spec.__name__}(...)")
    if callable(getattr(spec, "embed", None)):
        return checked(_whole(spec))
    if callable(spec):
        from holdfast.providers.function import FunctionEmbedder  # noqa: PLC0415

        return checked(FunctionEmbedder(spec))
    raise Misconfigured(f"An embedder is one of {_FORMS}, a function or an object with embed; got {spec!r}.")


def _named(spec: str, api_key: str | None, base_url: str | None) -> Embedder | None:
    kind, _, rest = spec.partition(":")
    kind = kind.casefold()
    if kind == "openai":
        from holdfast.providers.openai import OpenAIEmbedder  # noqa: PLC0415

        return OpenAIEmbedder(rest, api_key=api_key, base_url=base_url)
    if api_key is not None or base_url is not None:
        raise Misconfigured(f'A key or an address belongs to "openai:MODEL"; the embedder {spec!r} uses neither.')
    if kind == "minilm":
        from holdfast.providers.minilm import MiniLM  # noqa: PLC0415

        return MiniLM(rest or None)
    if rest or kind not in {NONE, "", "wordllama", "multilingual"}:
        raise Misconfigured(f"There is no embedder {spec!r}. Name one of {_FORMS}.")
    if kind == "multilingual":
        from holdfast.providers.multilingual import Multilingual  # noqa: PLC0415

        return Multilingual()
    from holdfast.providers.wordllama import WordLlama  # noqa: PLC0415

    return WordLlama() if kind == "wordllama" else None


def _automatic() -> Checked | None:
    """Those of the offline embedders that are installed, the best first."""
    found: dict[str, Checked] = {}
    for name in OFFLINE:
        with suppress(Misconfigured):
            if (embedder := choose(name)) is not None:
                found[name] = embedder
    latin = [found[name] for name in ("minilm", "wordllama") if name in found]
    others = [found[name] for name in ("multilingual", "wordllama") if name in found]
    return Automatic(latin or others, others) if found else None


def _whole(given: Any) -> Embedder:
    missing = [name for name in ("name", "dimension", "local") if name not in dir(given)]
    if missing:
        raise Misconfigured(f"The embedder {type(given).__name__} lacks {', '.join(missing)}.")
    embedder: Embedder = given
    return embedder


def choose_reranker(spec: RerankerSpec) -> Reranker | None:
    """The reranker that is named, or None. "auto" is our own where it is installed, and none where it is not."""
    if isinstance(spec, str):
        spec = spec.strip().casefold()
    if spec in (None, "", NONE):
        return None
    if spec == AUTO:
        try:
            return CheckedReranker(CrossEncoder())
        except Misconfigured:
            return None
    if isinstance(spec, str | type) or not isinstance(spec, Reranker):
        raise Misconfigured(f'A reranker is "auto", "none" or an object with name and judge; got {spec!r}.')
    return spec if isinstance(spec, CheckedReranker) else CheckedReranker(spec)
