"""The reranker: a cross-encoder that reads a question and a passage together, on onnxruntime, from a wheel. No network.

It has three layers and two answers: how well the passage fits the question, and whether it answers it. What it was
trained on, and how, is in ``models/README.md``. Reading is cheap in tokens: of a passage its beginning, of the turn
before it a few words. Deliberately absent: what its answers are worth (``retrieval.reranking``), and other languages
than English, of which it learned nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from holdfast import atfork
from holdfast.errors import HoldfastError, Misconfigured, Unavailable
from holdfast.providers import onnx

if TYPE_CHECKING:
    import numpy
    import numpy.typing

    Judged = numpy.typing.NDArray[numpy.float32]

NAME = "holdfast-reranker-1"
_CLS, _SEP = 101, 102
_QUESTION, _PASSAGE, _BEFORE = 40, 92, 24
"""How many tokens are read of each."""
_LARGEST = 1e9  # further apart, scores would leave the range of their numbers
_CHARACTERS = 40  # far more than a token has; a book is not read to its end only to be cut


class Passage(NamedTuple):
    """What was found: who said it, the text, and the text of the turn before it."""

    speaker: str
    text: str
    before: str = ""


@runtime_checkable
class Reranker(Protocol):
    """Reads a question together with passages. Any object with these two names is one."""

    @property
    def name(self) -> str: ...

    def judge(self, question: str, passages: Sequence[Passage]) -> Judged:
        """A row for each passage, in order: how well it fits, and whether it answers. Any scale; higher is more."""
        ...


class CrossEncoder:
    """Our own reranker. Making one is cheap; the first question loads the model."""

    name = NAME

    def __init__(self, folder: Path | None = None) -> None:
        self._files = onnx.in_wheel("reranker") if folder is None else onnx.in_folder(folder)
        self._model: Any = None
        self._lock = atfork.lock()
        atfork.join(in_child=self._begin_anew)

    def __repr__(self) -> str:
        return "CrossEncoder()"

    def judge(self, question: str, passages: Sequence[Passage]) -> Judged:
        import numpy  # noqa: PLC0415

        if not passages:  # onnxruntime would end the process
            return numpy.zeros((0, 2), dtype=numpy.float32)
        session, tokens = self._loaded()
        asked = [_CLS, *_read(tokens, question, _QUESTION), _SEP]
        said = [_said(tokens, passage) for passage in passages]
        longest = len(asked) + max(map(len, said))
        ids = numpy.zeros((len(said), longest), dtype=numpy.int64)
        mask, second = numpy.zeros_like(ids), numpy.zeros_like(ids)
        for at, one in enumerate(said):
            end = len(asked) + len(one)
            ids[at, :end] = asked + one
            mask[at, :end] = 1
            second[at, len(asked) : end] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": second}
        found: Judged = session.run(None, given)[0]
        return found

    def _begin_anew(self) -> None:
        """This is a forked child, where the threads of the parent's session are missing. It would wait for them."""
        atfork.keep_for_ever(self._model)
        self._model = None

    def _loaded(self) -> Any:
        with self._lock:
            if self._model is None:
                self._model = onnx.load(self._files)
            return self._model


def _said(tokens: Any, passage: Passage) -> list[int]:
    text = f"{passage.speaker}: {passage.text}" if passage.speaker else passage.text
    said = [*_read(tokens, text, _PASSAGE), _SEP]
    if before := _read(tokens, passage.before, _BEFORE):
        said += [*before, _SEP]
    return said


def _read(tokens: Any, text: str, most: int) -> list[int]:
    text = text[: most * _CHARACTERS].encode("utf-8", "replace").decode()
    ids: list[int] = tokens.encode(text, add_special_tokens=False).ids
    return ids[:most]


class CheckedReranker:
    """A reranker whose answers have been looked at: two numbers for each passage, or an error of ours."""

    def __init__(self, inner: Reranker) -> None:
        self.inner, self.name = inner, inner.name

    def __repr__(self) -> str:
        return f"checked({self.inner!r})"

    def judge(self, question: str, passages: Sequence[Passage]) -> Judged:
        import numpy  # noqa: PLC0415

        try:
            with numpy.errstate(over="ignore"):  # what does not fit becomes inf, which the next look refuses
                found = numpy.asarray(self.inner.judge(question, passages), dtype=numpy.float32)
        except HoldfastError:
            raise
        except Exception as error:
            raise Unavailable(f"the reranker {self.name} failed: {type(error).__name__}: {error}") from error
        if found.shape != (len(passages), 2) or not (numpy.abs(found) <= _LARGEST).all():
            raise Misconfigured(
                f"the reranker {self.name} must answer with two numbers of at most {_LARGEST:.0e} for each of "
                f"{len(passages)} passages"
            )
        return found
