"""Exact counts with the vocabularies that models have, carried in the wheel of ``splintr-rs``. No download.

A text is always ordinary text: ``<|endoftext|>`` written by a user is seven tokens and not one that ends something.
What cannot be encoded, half of a surrogate pair, counts as the replacement character, which is what reaches a model. A
vocabulary is loaded by the first count (some 40 ms and 15 MB) and shared by all counters of its name.

Deliberately absent: vocabularies that we had nothing to compare with, though the wheel has more of them.
"""

from __future__ import annotations

import functools
import importlib.util
import logging
import time
from typing import TYPE_CHECKING

from holdfast.errors import Unsupported

if TYPE_CHECKING:
    from splintr import AnyTokenizer

EXTRA = "tokens"
INSTALL = "pip install 'holdfast[tokens]'"
# Our name, and the wheel's. Each was compared with the tokeniser of its vendor.
ENCODINGS = {
    "o200k_base": "o200k_base",
    "cl100k_base": "cl100k_base",
    "llama3": "llama3",
    "qwen": "qwen3",
    "tekken": "mistral_v3",
}
_FORGET = 8_000_000  # characters; the wheel keeps every word it split, and counts them but not their size

_log = logging.getLogger(__name__)


def installed() -> bool:
    return importlib.util.find_spec("splintr") is not None


class Exact:
    """The counter of one encoding. Making one is cheap; the first text loads the vocabulary."""

    exact = True

    def __init__(self, encoding: str) -> None:
        if encoding not in ENCODINGS:
            raise Unsupported(f"There is no encoding {encoding!r} here. There are {', '.join(ENCODINGS)}.")
        if not installed():
            raise Unsupported(f"Counting {encoding} exactly needs an extra. Run: {INSTALL}", extra=EXTRA)
        self.name = encoding

    def __repr__(self) -> str:
        return f"Exact({self.name!r})"

    def count(self, text: str) -> int:
        return _vocabulary(self.name).count(text)


class _Vocabulary:
    """A tokeniser of the wheel, safe for many threads, and kept from remembering without end."""

    def __init__(self, tokenizer: AnyTokenizer) -> None:
        self._tokenizer = tokenizer
        self._since = 0

    def count(self, text: str) -> int:
        self._since += len(text)  # two threads may lose an addition; then it forgets a little later
        if self._since > _FORGET:
            self._since = 0
            self._tokenizer.clear_cache()
        try:
            return len(self._tokenizer.encode_ordinary(text))
        except UnicodeEncodeError:
            whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            return len(self._tokenizer.encode_ordinary(whole))


@functools.cache
def _vocabulary(encoding: str) -> _Vocabulary:
    began = time.perf_counter()
    try:
        from splintr import Tokenizer  # noqa: PLC0415

        tokenizer = Tokenizer.from_pretrained(ENCODINGS[encoding])
    except (ImportError, ValueError) as error:
        raise Unsupported(
            f"The vocabulary {encoding} cannot be loaded ({error}). Install it again: {INSTALL} --force-reinstall",
            extra=EXTRA,
        ) from error
    _log.debug("%s loaded in %.0f ms", encoding, (time.perf_counter() - began) * 1000)
    return _Vocabulary(tokenizer)
