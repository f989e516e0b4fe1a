"""A model's window is found by its name, with or without a vendor, and never guessed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import Invalid
from holdfast.providers.tokens.estimate import FAMILIES
from holdfast.providers.tokens.exact import ENCODINGS
from holdfast.providers.tokens.windows import _FAMILY_OF, _WINDOWS, ModelWindow, family_of, window_of


@pytest.mark.parametrize(
    ("model", "entry", "tokens"),
    [
        ("gpt-4o", "gpt-4o", 128_000),
        ("openai:gpt-4o", "gpt-4o", 128_000),
        ("openai/gpt-4o-mini-2024-07-18", "gpt-4o", 128_000),
        ("openrouter/openai/gpt-5-mini", "gpt-5", 400_000),
        ("ft:gpt-4o-mini-2024-07-18:org::id", "gpt-4o", 128_000),
        ("gpt-4", "gpt-4", 8_192),
        ("gpt-4-0613", "gpt-4", 8_192),
        ("gpt-4-turbo-2024-04-09", "gpt-4-turbo", 128_000),
        ("gpt-4.1-nano", "gpt-4.1", 1_047_576),
        ("anthropic:claude-sonnet-4-5-20250929", "claude-sonnet-4-5", 200_000),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5", 200_000),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5", 200_000),
        ("claude-opus-4@20250514", "claude-opus-4", 200_000),
        ("claude-opus-5", "claude-opus-5", 1_000_000),
        ("google-gla:gemini-2.5-flash-lite", "gemini-2.5-flash", 1_048_576),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.3", 131_072),
        ("ollama:llama3.1:8b", "llama3.1", 131_072),
        ("Qwen/Qwen3-8B", "qwen3", 32_768),
        ("deepseek/deepseek-v4-pro", "deepseek-v4-pro", 1_000_000),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", "smollm2", 8_192),
        ("  GPT-4o  ", "gpt-4o", 128_000),
    ],
)
def test_a_name_finds_its_entry(model: str, entry: str, tokens: int) -> None:
    window = window_of(model)
    assert window is not None
    assert (window.model, window.tokens) == (entry, tokens)


@pytest.mark.parametrize(
    "model",
    [
        "",
        "my-own-model",
        "gpt-5.9",
        "gpt-41",
        "claude-opus-4-9",
        "qwen3.5-plus",
        "o1x",
        "anthropic:",
        "x/y:z",
        "claude",
    ],
)
def test_an_unknown_model_gives_none(model: str) -> None:
    assert window_of(model) is None


@given(st.text(max_size=40))
def test_any_name_is_answered(model: str) -> None:
    assert window_of(model) is None or window_of(model) in _WINDOWS.values()
    assert family_of(model) in FAMILIES


def test_every_entry_makes_sense() -> None:
    for name, window in _WINDOWS.items():
        assert window_of(name) == window
        assert window_of(f"vendor:{name}") == window_of(f"vendor/{name}") == window
        assert 0 < window.output <= window.tokens
        assert window.encoding is None or window.encoding in ENCODINGS
        assert _FAMILY_OF[name] in FAMILIES
        assert name == name.casefold()


def test_overrides_go_first() -> None:
    assert window_of("gpt-4o-mini", {"gpt-4o": 64_000}) == ModelWindow("gpt-4o", 64_000, 16_384, "o200k_base")
    assert window_of("openai:gpt-4o", {"GPT-4o": 8_000}) == ModelWindow("gpt-4o", 8_000, 8_000, "o200k_base")
    assert window_of("my-own-model-v2", {"my-own-model": 4_096}) == ModelWindow("my-own-model", 4_096, 4_096, None)
    assert window_of("gpt-4o", {"gpt-4o-mini": 1}) == window_of("gpt-4o")


@pytest.mark.parametrize("tokens", [0, -5, 1.5, True, "8k"])
def test_an_override_that_is_no_size(tokens: Any) -> None:
    with pytest.raises(Invalid, match="'my-model'"):
        window_of("gpt-4o", {"my-model": tokens})


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("gpt-4o", "large"),
        ("gpt-9", "large"),
        ("claude-haiku-4-5", "claude"),
        ("claude-opus-4-7", "claude-5"),
        ("bedrock/eu.anthropic.claude-opus-9-v1:0", "claude-5"),
        ("mistral-7b-instruct", "small"),
        ("mistral-something", "any"),
        ("my-own-model", "any"),
    ],
)
def test_a_model_is_estimated_like_its_relatives(model: str, family: str) -> None:
    assert family_of(model) == family
