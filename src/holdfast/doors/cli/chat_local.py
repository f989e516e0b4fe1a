"""An answerer that puts a quote into the words of the small local model, and shows the quote beneath.

What is found, and whether it answers, is decided as without a model (``chat_quotes``). The model sees one note and one
question, after worked examples, which so small a model follows far better than instructions. It is stopped at the end
of a sentence, after so many seconds, by Ctrl-C, and as soon as it says a number, a name or a word of an example that
is not in the note; the quote follows in any case. Deliberately absent: asking it anything that nothing was found for.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import Any, cast

from holdfast.doors.cli.chat_choosing import Quote
from holdfast.doors.cli.chat_quotes import SOURCE, Quoting, answered, question_in, told, whole
from holdfast.errors import Invalid, ModelFailed
from holdfast.providers.models.model import Model, Reply, Usage
from holdfast.text import terms, words

TOKENS = 48
STOP = ("\n",)
LIMIT_S = 30.0
_TASK = "Answer the question from the note, in one short sentence."
_EXAMPLES = (
    ("My bike is in the shed behind the house.", "Where is my bike?", "Your bike is in the shed behind the house."),
    ("The plumber wants 80 pounds and comes on Monday at 10:15.", "How much does the plumber want?",
     "The plumber wants 80 pounds."),
    ("I can't stand olives, so no olives please.", "What food do I dislike?", "You dislike olives."),
)  # fmt: skip
_LENT = frozenset(term for example in _EXAMPLES for text in example for term in terms(text))
_WORD = re.compile(r"\S+\s+|\S+\Z")
_NAME = re.compile(r"[^\W\d_a-z][^\W\d_]+")
_MARKS = " \n.,;:!?\"'()*-\u201c\u201d\u2019"
_CUT = "…"


class Wording(Quoting):
    """Answers as ``Quoting`` does, in a model's words where there is an answer."""

    def __init__(self, model: Model, limit_s: float = LIMIT_S) -> None:
        super().__init__()
        self._model, self._limit_s = model, limit_s
        self.name = model.name

    def stream(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: Sequence[dict[str, Any]] = (),
        timeout_s: float | None = None,
    ) -> Iterator[str | Reply]:
        asked = question_in(messages)
        if courtesy := self.courtesy(asked):
            yield from (courtesy, whole(courtesy, model=self.name))
            return
        found = self.find(asked)
        first = found.quotes[0] if found.known and found.quotes else None
        if first is None or not first.fits:
            text = told(asked, found)
            yield from (text, whole(text, model=self.name))
            return
        said, usage = [], Usage(requests=0)
        for piece in self._said(asked, first):
            if isinstance(piece, Reply):
                usage = piece.usage
            else:
                said.append(piece)
                yield piece
        source = f"{SOURCE if said else ''}{answered(asked, found.quotes)}"
        yield source
        yield whole(f"{''.join(said)}{source}", usage, self.name)

    def _said(self, asked: str, quote: Quote) -> Iterator[str | Reply]:
        """The model's words, as far as they keep to the quote."""
        note = f"{quote.to} {quote.text}".strip()
        known = {*words(f"{note} {asked}"), *terms(f"{note} {asked}")}
        begun = False
        try:
            with closing(_in_words(self._model.stream(_prompt(note, asked), timeout_s=self._limit_s))) as pieces:
                for piece in pieces:
                    if isinstance(piece, str) and _strays(piece, known, begun=begun):
                        break
                    begun = begun or isinstance(piece, str)
                    yield piece
                else:
                    return
        except (ModelFailed, Invalid, KeyboardInterrupt):
            pass  # more than it can read, too slow, out of order or interrupted: the quote says it
        if begun:
            yield _CUT


def _prompt(note: str, asked: str) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": _TASK}]
    for known, question, answer in (*_EXAMPLES, (note, asked, "")):
        messages.append({"role": "user", "content": f"Note: {known}\nQuestion: {question}"})
        messages.append({"role": "assistant", "content": answer})
    return messages[:-1]


def _in_words(pieces: Iterator[str | Reply]) -> Generator[str | Reply]:
    """The same text, cut between words: a number that comes in two pieces is told from another by its end."""
    held = ""
    with closing(cast("Generator[str | Reply]", pieces)):
        for piece in pieces:
            if isinstance(piece, Reply):
                yield from (held, piece) if held else (piece,)
                return
            *whole_ones, held = *_WORD.findall(held + piece), ""
            if whole_ones and not whole_ones[-1][-1].isspace():
                held = whole_ones.pop()
            yield from whole_ones


def _strays(word: str, known: set[str], *, begun: bool) -> bool:
    """Whether a word is not of the note or the question: a number, within a sentence a name, or one of an example."""
    bare = word.strip(_MARKS)
    telling = any(letter.isdigit() for letter in bare) or (begun and _NAME.fullmatch(bare) is not None)
    lent = _LENT.intersection(terms(bare)) - known
    return bool(lent) or (telling and not known.issuperset(words(bare)))
