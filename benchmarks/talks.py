"""Made-up conversations, the same on every machine: people who stay with a topic for a while, and tools in between.

The words are those of ``texts``, by Zipf's law and in topics, so that they come again as they do in real talk. A
message has 5 to 40 words, or as many as are asked for. In every fifth turn a tool is called and gives some lines back.
Deliberately absent: grammar, and tool output as long as that of a coding session, which the masking table has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.texts import SMALL, TOPIC_WORDS, Texts, _zipf
from holdfast.records import Draft, message, observation, tool_call

SEED = 20261122
SHARES = (0.42, 0.36, 0.17, 0.05)  # small words, words of the topic, words of any kind, names
SHORT, LONG = (5, 40), (80, 400)
STAYS = (4, 20)
"""For how many turns people stay with a topic."""
TOPICS = 300
"""How many topics these people have at all; some come up far more often than others."""
TOOLS = ("search", "read_file", "fetch_page", "query")
SENTENCE = 11
_BUFFER = 20_000


class Turn(NamedTuple):
    """What a user asks, what a tool gave back (where one was called), and the answer."""

    asked: str
    found: str
    answered: str
    topic: int

    def drafts(self, number: int) -> list[Draft]:
        """The turn as entries of a log."""
        told = [message("user", self.asked)]
        if self.found:
            id, name = f"call-{number}", TOOLS[number % len(TOOLS)]
            told += [tool_call(name, {"query": self.asked[:60]}, id=id), observation(self.found, of=id)]
        return [*told, message("assistant", self.answered)]


class Talk:
    """One conversation without an end. Two with equal seeds say the same."""

    def __init__(self, seed: int = 0, answers: tuple[int, int] = SHORT) -> None:
        self._source = np.random.default_rng([SEED, seed])
        self._answers = answers
        self._texts = Texts(1)
        self._tables = (SMALL, self._texts._words, self._texts._words, self._texts._names)
        self._left = np.empty((0, 5), dtype=np.int64)

    def turns(self) -> Iterator[Turn]:
        number = 0
        while True:
            topic = self._topic()
            for _ in range(int(self._source.integers(*STAYS))):
                found = "\n".join(self.said(topic, (6, 24)) for _ in range(8)) if number % 5 == 4 else ""
                yield Turn(self.said(topic, SHORT), found, self.said(topic, self._answers), topic)
                number += 1

    def entries(self, count: int) -> Iterator[list[Draft]]:
        """So many entries, turn by turn. The last turn may lack its end."""
        made = 0
        for number, turn in enumerate(self.turns()):
            drafts = turn.drafts(number)[: count - made]
            made += len(drafts)
            yield drafts
            if made == count:
                return

    def asked(self, count: int) -> list[str]:
        """Inputs about topics of any time, no two alike."""
        found: dict[str, None] = {}
        while len(found) < count:
            found.setdefault(self.said(self._topic(), (5, 24)))
        return list(found)

    def said(self, topic: int, words: tuple[int, int]) -> str:
        """Some words about a topic, in sentences."""
        length = int(self._source.integers(words[0], words[1] + 1))
        kinds, places = self._drawn(length)
        own = self._texts._topics[topic]
        told = [
            self._tables[kind][own[row[1]] if kind == 1 else row[kind]] for kind, row in zip(kinds, places, strict=True)
        ]
        parts = (told[at : at + SENTENCE] for at in range(0, length, SENTENCE))
        return " ".join(f"{' '.join(part).capitalize()}." for part in parts)

    def _topic(self) -> int:
        return int(self._source.choice(TOPICS, p=_zipf(TOPICS)))

    def _drawn(self, length: int) -> tuple[list[int], list[Any]]:
        """The kind of each word, and which it would be of each kind; drawn many at a time."""
        if len(self._left) < length:
            source, known = self._source, len(self._texts._words)
            columns = [
                source.choice(4, size=_BUFFER, p=SHARES),
                source.integers(0, len(SMALL), size=_BUFFER),
                source.choice(TOPIC_WORDS, size=_BUFFER, p=_zipf(TOPIC_WORDS)),
                source.choice(known, size=_BUFFER, p=_zipf(known)),
                source.integers(0, len(self._texts._names), size=_BUFFER),
            ]
            self._left = np.stack(columns, axis=1)
        taken, self._left = self._left[:length], self._left[length:]
        return taken[:, 0].tolist(), taken[:, 1:].tolist()
