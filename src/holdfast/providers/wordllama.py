"""WordLlama: 256 numbers for each of 32,000 tokens, in a wheel. No network, no model to run, microseconds per text.

The vector of a text is the mean of the vectors of its tokens, made unit length. That is little enough to be done here,
from the two data files of the installed package: importing ``wordllama`` itself would configure the logging of the
whole process, bring an HTTP client, and reach for the network when a file is missing. A test compares the vectors with
those of the package. Deliberately absent: downloads and other sizes of the model.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import logging
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast import atfork
from holdfast.errors import Misconfigured

if TYPE_CHECKING:
    import numpy
    from tokenizers import Tokenizer

    from holdfast.providers.embedding import Vectors

NAME = "wordllama-256"
DIMENSION = 256
INSTALL = "pip install 'holdfast[embed]'"
_WEIGHTS = Path("weights") / "l2_supercat_256.safetensors"
_TOKENS = Path("tokenizers") / "l2_supercat_tokenizer_config.json"
_DIGESTS = {
    _WEIGHTS: "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
    _TOKENS: "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
}
_PIECE = 2_000  # characters that are tokenised at once: the time of the tokeniser grows faster than the text
_WORD = 24  # longer words are rare, and keeping them would only fill the memory
_WORDS = 100_000
_SINGLE_SPACE = re.compile("(?<=[^ ]) (?=[^ ])")
_SPECIAL = ("<s>", "</s>", "<unk>")

_log = logging.getLogger(__name__)
_loading = atfork.lock()


def folder() -> Path | None:
    """Where the package is installed, without importing it, or None."""
    if importlib.util.find_spec("tokenizers") is None:
        return None
    spec = importlib.util.find_spec("wordllama")
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else None


class WordLlama:
    """The offline embedder. Making one is free; the model is loaded once for the process, by the first text."""

    name = NAME
    dimension = DIMENSION
    local = True

    def __init__(self) -> None:
        found = folder()
        if found is None:
            raise Misconfigured(f"WordLlama is not installed. Run: {INSTALL}", extra="embed")
        self._folder = found

    def __repr__(self) -> str:
        return "WordLlama()"

    def embed(self, texts: Sequence[str]) -> Vectors:
        with _loading:  # two threads that come first must not load twice
            model = _load(self._folder)
        return model.embed(texts)


class _StaticModel:
    """The matrix of token vectors and the tokeniser. Reading both is safe for many threads."""

    def __init__(self, matrix: Vectors, tokenizer: Tokenizer) -> None:
        self._matrix = matrix
        self._tokenizer = tokenizer
        self._words: dict[str, list[int]] = {}

    def embed(self, texts: Sequence[str]) -> Vectors:
        import numpy  # noqa: PLC0415

        rows = numpy.zeros((len(texts), DIMENSION), dtype=numpy.float32)
        for row, text in zip(rows, texts, strict=True):
            if text.strip():
                self._add(text, row)
                row /= numpy.sqrt(row @ row) or 1.0
        return rows

    def _add(self, text: str, row: Vectors) -> None:
        """Add up the token vectors of a text, piece by piece, so that a huge text needs neither memory nor patience."""
        for piece in _pieces(text):
            tokens = self._tokens(piece)
            if tokens:
                row += self._matrix.take(tokens, axis=0, mode="clip").sum(axis=0)  # as the package does with strangers

    def _tokens(self, text: str) -> list[int]:
        """The tokens of a text.

        No token of this model reaches over a single space, so the tokens of a text are those of its words, and words
        repeat. Only a special token such as "<s>" changes how the rest is read, and is left to the tokeniser whole.
        """
        if "<" in text and any(special in text for special in _SPECIAL):
            return self._encode(text)
        tokens: list[int] = []
        for word in _SINGLE_SPACE.split(text):
            known = self._words.get(word)
            tokens += self._learn(word) if known is None else known
        return tokens

    def _learn(self, word: str) -> list[int]:
        tokens = self._encode(word)
        if len(word) <= _WORD:
            if len(self._words) >= _WORDS:
                self._words = {}  # simpler than remembering which are used, and learned again in a moment
            self._words[word] = tokens
        return tokens

    def _encode(self, text: str) -> list[int]:
        # One by one and not as a batch: a batch starts threads inside the tokeniser, and a process that forks later
        # would find a warning of it on its standard error.
        try:
            return self._tokenizer.encode(text, add_special_tokens=False).ids
        except (TypeError, UnicodeEncodeError):  # half of a surrogate pair; the text is a str, callers have looked
            return self._tokenizer.encode(text.encode("utf-8", "replace").decode(), add_special_tokens=False).ids


def _pieces(text: str) -> Sequence[str]:
    """A long text in pieces that end before a space where there is one, which leaves its tokens as they are."""
    if len(text) <= _PIECE:
        return (text,)
    pieces = []
    start = 0
    while start < len(text):
        end = min(len(text), start + _PIECE)
        space = text.rfind(" ", start + 1, end) if end < len(text) else -1
        if space > 0:
            pieces.append(text[start:space])
            start = space + 1  # the tokeniser puts a space before each piece by itself
        else:
            pieces.append(text[start:end])
            start = end
    return pieces


# Loading


@functools.cache
def _load(place: Path) -> _StaticModel:
    import tokenizers  # noqa: PLC0415

    began = time.perf_counter()
    try:
        weights, tokens = (_read(place / name, known) for name, known in _DIGESTS.items())
        model = _StaticModel(_matrix(weights), tokenizers.Tokenizer.from_str(tokens.decode()))
    except Exception as error:  # the tokeniser raises bare Exception
        raise Misconfigured(
            f"The data files of WordLlama cannot be read ({error}). Install it again: {INSTALL} --force-reinstall",
            extra="embed",
        ) from error
    _log.debug("WordLlama loaded in %.0f ms", (time.perf_counter() - began) * 1000)
    return model


def _read(path: Path, known: str) -> bytes:
    """A data file, refused unless it is the one that saved vectors were made with."""
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != known:
        raise ValueError(f"{path.name} is damaged, or of a version that this Holdfast does not know")
    return data


def _matrix(data: bytes) -> Vectors:
    """Read the one tensor of a safetensors file: the size of a JSON header, the header, then the numbers."""
    import numpy  # noqa: PLC0415

    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])["embedding.weight"]
    first, end = header["data_offsets"]
    numbers: numpy.typing.NDArray[numpy.float16] = numpy.frombuffer(data[start + first : start + end], dtype="<f2")
    return numbers.reshape(header["shape"]).astype(numpy.float32)
