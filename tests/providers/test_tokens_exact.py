"""Exact means: the tokens a model is given, whatever the text, and no network to know it."""

from __future__ import annotations

import socket
import sys
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import Unsupported
from holdfast.providers.tokens import exact
from holdfast.providers.tokens.exact import ENCODINGS, Exact

# Counted once with the vendors' own: tiktoken on the published vocabularies, and tekken of mistral-common.
TEXTS = [
    "Hello, world!",
    "don't we'll I'VE",
    "def get_user_by_id(user_id: int) -> User | None:\n    return self._users.get(user_id)",
    "1234567890 3.14159 -42",
    "    \n\n\t\tindented\r\n   ",
    "<|endoftext|>",
    "Übergrößenträger",
    "Привет, как дела?",
    "我喜欢喝咖啡。",
    "안녕하세요",
    "नमस्ते दुनिया",
    "สวัสดีครับ",
    "مرحبا بالعالم",
    "👩\u200d👩\u200d👧\u200d👦🇩🇪❤️",
    "https://example.org/a?b=c&d=%20",
    "SGVsbG8gV29ybGQ=",
    "a\x00b\ufeff",
]
KNOWN = {
    "o200k_base": [4, 4, 24, 11, 7, 7, 5, 6, 7, 2, 5, 5, 4, 16, 12, 12, 4],
    "cl100k_base": [4, 7, 24, 11, 7, 7, 8, 8, 13, 5, 13, 9, 10, 27, 12, 12, 4],
    "llama3": [4, 7, 24, 11, 7, 7, 8, 7, 8, 2, 9, 5, 6, 23, 12, 12, 4],
    "qwen": [4, 7, 24, 21, 7, 7, 8, 7, 4, 3, 13, 6, 5, 14, 13, 13, 4],
    "tekken": [4, 7, 24, 21, 9, 7, 4, 6, 10, 4, 5, 6, 5, 33, 13, 13, 6],
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_vendors_count_the_same(encoding: str) -> None:
    assert [Exact(encoding).count(text) for text in TEXTS] == KNOWN[encoding]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_special_tokens_in_a_text_are_ordinary_text(encoding: str) -> None:
    counter = Exact(encoding)
    for text in ("<|endoftext|>", "<|im_start|>", "<|begin_of_text|>", "<s>[INST]"):
        assert counter.count(text) > 1


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_no_text_is_too_odd(encoding: str) -> None:
    counter = Exact(encoding)
    assert counter.count("") == 0
    assert counter.count("\x00") == 1
    assert counter.count("a\ud800b") == counter.count("a\ufffdb")
    assert counter.count("\ud83d\ude00") == counter.count("😀")  # both halves: together they are a character
    assert counter.count("\udc00" * 3) == counter.count("\ufffd" * 3)


@given(st.text(alphabet=st.characters(), max_size=300))
def test_any_text_has_between_none_and_four_tokens_a_character(text: str) -> None:
    for encoding in ENCODINGS:
        tokens = Exact(encoding).count(text)
        assert (1 if text else 0) <= tokens <= 4 * len(text)


@pytest.mark.parametrize("unit", ["a", " ", "\n", "!", "0", "ab", "的", "A1"])
@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
def test_a_megabyte_of_one_thing_comes_to_an_end(encoding: str, unit: str) -> None:
    """Quadratic merging takes minutes here, and recursion overflows."""
    counter = Exact(encoding)
    tokens = counter.count(unit * (1_000_000 // len(unit)))
    half = counter.count(unit * (500_000 // len(unit)))
    assert abs(tokens - 2 * half) <= 2


def test_it_forgets_what_it_split(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wheel keeps every word it met, of any length; left alone, long ones would fill the memory."""
    monkeypatch.setattr(exact, "_FORGET", 50_000)
    counter = Exact("cl100k_base")
    tokenizer = exact._vocabulary("cl100k_base")._tokenizer
    for number in range(40):
        counter.count("".join(chr(97 + (number * letter) % 26) for letter in range(10_000)))
    assert tokenizer.cache_len < 20


def test_many_threads_count_alike() -> None:
    counter = Exact("o200k_base")
    texts = [f"Message {number}: the ferry leaves at {number % 24}:30, naïve café 你好" for number in range(300)]
    expected = [counter.count(text) for text in texts]
    found: list[list[int]] = []
    threads = [threading.Thread(target=lambda: found.append([counter.count(t) for t in texts])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


def test_nothing_is_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("counting tokens reached for the network")

    monkeypatch.setattr(socket, "socket", refuse)
    exact._vocabulary.cache_clear()
    assert all(Exact(encoding).count("Good morning") == 2 for encoding in ENCODINGS)


def test_an_encoding_that_is_not_there() -> None:
    with pytest.raises(Unsupported, match="o200k_base"):
        Exact("p50k_base")


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "installed", lambda: False)
    with pytest.raises(Unsupported, match=r"holdfast\[tokens\]") as caught:
        Exact("o200k_base")
    assert caught.value.extra == "tokens"


def test_a_broken_wheel_is_said_to_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    counter = Exact("o200k_base")
    exact._vocabulary.cache_clear()
    monkeypatch.setitem(sys.modules, "splintr", None)
    with pytest.raises(Unsupported, match="force-reinstall"):
        counter.count("text")
