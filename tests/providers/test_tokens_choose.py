"""What a caller names becomes the best counter there is, and says how good it is."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from holdfast.errors import Invalid, Misconfigured, Unsupported
from holdfast.providers.tokens import choose, exact
from holdfast.providers.tokens.choose import counter_for
from holdfast.providers.tokens.counting import Counted, TokenCounter
from holdfast.providers.tokens.exact import Exact

TEXT = "The ferry leaves at half past six, said the woman at the counter."


@pytest.fixture
def without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "installed", lambda: False)
    monkeypatch.setattr(exact, "installed", lambda: False)


@pytest.mark.parametrize(
    ("model", "name", "is_exact"),
    [
        (None, "estimate:any", False),
        ("estimate", "estimate:any", False),
        ("estimate:small", "estimate:small", False),
        ("o200k_base", "o200k_base", True),
        (" CL100K_base ", "cl100k_base", True),
        ("openai:gpt-4o-mini", "o200k_base", True),
        ("gpt-4-turbo", "cl100k_base", True),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama3", True),
        ("qwen2.5:7b", "qwen", True),
        ("anthropic:claude-sonnet-4-5", "estimate:claude", False),
        ("claude-opus-5", "estimate:claude-5", False),
        ("gemini-2.5-pro", "estimate:large", False),
        ("smollm2:135m", "estimate:small", False),
        ("a-model-of-my-own", "estimate:any", False),
    ],
)
def test_a_name_becomes_a_counter(model: str | None, name: str, is_exact: bool) -> None:
    counter = counter_for(model)
    assert (counter.name, counter.exact) == (name, is_exact)
    assert isinstance(counter, TokenCounter)
    assert 10 <= counter.count(TEXT) <= 40


@pytest.mark.usefixtures("without_the_extra")
def test_a_model_is_estimated_where_the_extra_is_missing() -> None:
    counter = counter_for("gpt-4o")
    assert (counter.name, counter.exact) == ("estimate:large", False)
    assert counter.count(TEXT) >= 0.95 * 15


@pytest.mark.usefixtures("without_the_extra")
def test_an_encoding_is_an_error_where_the_extra_is_missing() -> None:
    with pytest.raises(Unsupported, match=r"holdfast\[tokens\]"):
        counter_for("o200k_base")


def test_a_function_is_a_counter() -> None:
    def words(text: str) -> int:
        return len(text.split())

    counter = counter_for(words)
    assert counter.count(TEXT) == 13
    assert counter.name.endswith("words")
    assert not counter.exact


@pytest.mark.parametrize("wrong", [lambda text: -1, lambda text: 1.5, lambda text: None, lambda text: 1 / 0])
def test_a_function_that_does_not_count(wrong: Any) -> None:
    with pytest.raises(Misconfigured, match="function:"):
        counter_for(wrong).count(TEXT)


def test_an_object_that_counts_is_a_counter() -> None:
    given = Exact("cl100k_base")
    counter = counter_for(given)
    assert (counter.name, counter.exact, counter.count(TEXT)) == ("cl100k_base", True, given.count(TEXT))
    assert counter_for(counter) is counter
    assert isinstance(counter, Counted)


@pytest.mark.parametrize("given", ["", "  ", 7, Exact, ["gpt-4o"], object()])
def test_what_is_no_counter_is_refused(given: Any) -> None:
    with pytest.raises(Misconfigured):
        counter_for(given)


def test_a_family_that_is_not_there() -> None:
    with pytest.raises(Invalid, match="family"):
        counter_for("estimate:tiny")


def test_choosing_loads_no_vocabulary_and_no_numpy() -> None:
    program = (
        "import sys\n"
        "from holdfast.providers.tokens.choose import counter_for\n"
        "counter_for('gpt-4o'); counter_for('claude-opus-5').count('Good morning')\n"
        "assert not {'splintr', 'numpy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
