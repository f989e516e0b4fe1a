"""Made-up memories and questions about them, the same on every machine: words by Zipf's law, in topics.

The words are those that WordLlama knows, in the order of its list, and names put together of two of them, so that texts
have vectors that differ as those of real ones do. A text has 8 to 30 words: some of its topic, some of any kind, a
few names, and the small words in between. A question is made of some words of one text, which is its right answer, and
of words that ask. Deliberately absent: grammar, and paraphrase, which the evaluation sets have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from holdfast.providers import wordllama

SEED = 20261115
CHUNK = 1_000
TOPICS, TOPIC_WORDS, NAMES = 2_000, 40, 40_000
SMALL = [
    "the", "a", "of", "to", "and", "in", "is", "was", "for", "on", "with", "at", "by", "from", "it", "that", "this",
    "he", "she", "they", "we", "our", "their", "my", "not", "but", "so",
]  # fmt: skip
ASKING = [
    "what", "who", "when", "where", "which", "did", "does", "was", "about", "tell", "know", "how", "many", "is",
    "there", "any",
]  # fmt: skip
SHARES = (0.30, 0.35, 0.25, 0.10)  # small words, words of the topic, words of any kind, names


class Question(NamedTuple):
    """A question and the number of the text that it was made of."""

    text: str
    answer: int


class Texts:
    """As many texts as are wanted, made anew for each who asks, a chunk at a time."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[str]:
        for number in range(0, self.count, CHUNK):
            yield from self.chunk(number // CHUNK)

    def chunks(self) -> Iterator[list[str]]:
        return (self.chunk(number) for number in range(-(-self.count // CHUNK)))

    def chunk(self, number: int) -> list[str]:
        return [" ".join(words) for words, _ in self._made(number)]

    def questions(self, count: int) -> list[Question]:
        """Questions about texts that are spread over all of them, of 4 to 12 words."""
        source = np.random.default_rng(SEED + self.count)
        answers = source.choice(self.count, size=count, replace=False)
        found = []
        for answer in answers.tolist():
            words, content = self._made(answer // CHUNK)[answer % CHUNK]
            told = sorted(set(content.tolist()))
            some = source.choice(told, size=min(len(told), int(source.integers(3, 9))), replace=False)
            asking = source.choice(ASKING, size=int(source.integers(1, 5)), replace=False).tolist()
            found.append(Question(" ".join([*asking, *(words[at] for at in sorted(some))]), answer))
        return found

    def _made(self, number: int) -> list[tuple[list[str], Any]]:
        """The words of each text of a chunk, and which of them say something."""
        source = np.random.default_rng([SEED, number])
        size = min(CHUNK, self.count - number * CHUNK)
        lengths = source.integers(8, 31, size=size)
        ends = np.cumsum(lengths)
        total = int(ends[-1])
        kinds = source.choice(4, size=total, p=SHARES)
        topics = np.repeat(source.integers(0, TOPICS, size=size), lengths)
        any_kind = source.choice(len(self._words), size=total, p=_zipf(len(self._words)))
        of_topic = self._topics[topics, source.choice(TOPIC_WORDS, size=total, p=_zipf(TOPIC_WORDS))]
        named = source.integers(0, NAMES, size=total)
        small = source.integers(0, len(SMALL), size=total)
        tables = (SMALL, self._words, self._words, self._names)
        picks = np.choose(kinds, [small, of_topic, any_kind, named]).tolist()
        words = [tables[kind][pick] for kind, pick in zip(kinds.tolist(), picks, strict=True)]
        return [
            (words[end - length : end], np.nonzero(kinds[end - length : end])[0])
            for end, length in zip(ends.tolist(), lengths.tolist(), strict=True)
        ]

    @cached_property
    def _words(self) -> list[str]:
        place = wordllama.folder()
        if place is None:
            raise SystemExit(f"this benchmark takes its words from WordLlama. Run: {wordllama.INSTALL}")
        known = json.loads((place / "tokenizers" / "l2_supercat_tokenizer_config.json").read_text())["model"]["vocab"]
        words = [token[1:] for token in sorted(known, key=known.__getitem__) if token.startswith("▁")]
        return [word for word in words if len(word) > 3 and word.isascii() and word.isalpha() and word.islower()]

    @cached_property
    def _names(self) -> list[str]:
        source = np.random.default_rng([SEED, 1, 1])
        pairs = source.integers(1_000, len(self._words), size=(NAMES, 2)).tolist()
        return [(self._words[a][:5] + self._words[b][:4]).capitalize() for a, b in pairs]

    @cached_property
    def _topics(self) -> Any:
        source = np.random.default_rng([SEED, 2, 2])
        return source.integers(100, len(self._words), size=(TOPICS, TOPIC_WORDS))


def _zipf(count: int) -> Any:
    shares = 1 / (np.arange(count) + 2.7)
    return shares / shares.sum()
