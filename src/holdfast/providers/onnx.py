"""Models in ONNX form with their tokens: found in the wheel ``holdfast-models`` or in a folder, checked, and loaded.

The wheel is found without being imported, and its files are used only if they are those that this version knows.
Deliberately absent: downloads, reports to anybody, graphics cards, and what a model is for.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.errors import Misconfigured, quoted

INSTALL = "pip install 'holdfast[minilm]'"
_WHEEL, _TOKENS = "holdfast_models", "minilm/tokenizer.json"
DIGESTS = {
    "minilm/model.onnx": "e755aa72fb7f4e9e1e66f1f8e4d0582a8c21424b738c2be45b71b14100e9aae3",
    "minilm/tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "reranker/model.onnx": "03995c98d670166123cbdf692d28c31fbb21bb8806352070b4d91b9c55f81c7a",
}
"""What the files in the wheel are. Vectors are compared with saved ones, so they must be these and no others."""

_log = logging.getLogger(__name__)


class OnnxFiles(NamedTuple):
    """A model and its tokens, with the digests that they must have; none are known of a caller's own."""

    model: Path
    tokens: Path
    digests: tuple[str, str] | None = None


def in_wheel(name: str) -> OnnxFiles:
    """The files of a model in the wheel. All of them read the same tokens."""
    wheel, model = _package(_WHEEL), f"{name}/model.onnx"
    if wheel is None or not _runs():
        raise Misconfigured(f"The model {name} is not installed. Run: {INSTALL}", extra="minilm")
    return OnnxFiles(wheel / model, wheel / _TOKENS, (DIGESTS[model], DIGESTS[_TOKENS]))


def in_folder(folder: Path) -> OnnxFiles:
    """The files of a model in a folder, as model hubs publish them."""
    if not _runs():
        raise Misconfigured(f"The model in {folder} needs onnxruntime. Run: {INSTALL}", extra="minilm")
    try:
        for model in (folder / "model.onnx", folder / "onnx" / "model.onnx"):
            if model.is_file() and (folder / "tokenizer.json").is_file():
                return OnnxFiles(model, folder / "tokenizer.json")
    except OSError as error:  # no name of a folder, or not for this user
        raise Misconfigured(f"The folder {quoted(str(folder))} cannot be read: {error.strerror}.") from error
    raise Misconfigured(f"The folder {folder} must hold model.onnx (or onnx/model.onnx) and tokenizer.json.")


def digest(files: OnnxFiles) -> str:
    """A short name for the bytes of a caller's own model."""
    made = hashlib.blake2b(digest_size=8)
    for path in (files.model, files.tokens):
        try:
            with path.open("rb") as file:
                made.update(hashlib.file_digest(file, "blake2b").digest())
        except OSError as error:
            raise Misconfigured(f"The file {path} cannot be read: {error.strerror}.") from error
    return made.hexdigest()


def load(files: OnnxFiles, tokens: int | None = None, named: str | None = None) -> tuple[Any, Any]:
    """The session and the tokeniser, both safe for many threads once they are set up; texts are cut at ``tokens``.

    ``named`` is the ``digest`` that files of a caller's own had when the model got its name; they must still have it.
    """
    import tokenizers  # noqa: PLC0415

    onnxruntime = _runtime()

    began = time.perf_counter()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors; the library writes to standard error by itself
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads must not burn a core
    try:
        known = files.digests
        given = str(files.model) if known is None else _read(files.model, known[0])
        session = onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])
        words = files.tokens.read_bytes() if known is None else _read(files.tokens, known[1])
        tokenizer = tokenizers.Tokenizer.from_str(words.decode())
        tokenizer.no_padding()
        tokenizer.no_truncation()
        if tokens is not None:
            tokenizer.enable_truncation(max_length=tokens)
    except Exception as error:  # both libraries raise errors of many kinds
        what_to_do = (
            f"It must be in ONNX form, with its tokenizer.json. To use the one from a wheel: {INSTALL}"
            if files.digests is None
            else f"Install it again: {INSTALL} --force-reinstall"
        )
        raise Misconfigured(
            f"The model in {files.model.parent} cannot be loaded ({error}). {what_to_do}", extra="minilm"
        ) from error
    if named is not None and digest(files) != named:  # after loading: what was loaded is what was named
        raise Misconfigured(
            f"The model in {files.model.parent} is another one than when this embedder was made. Make it again: "
            "vectors of two models must not be taken for one another's."
        )
    _log.debug("%s loaded in %.0f ms", files.model, (time.perf_counter() - began) * 1000)
    return session, tokenizer


def _runtime() -> Any:
    """onnxruntime, silenced. Version 1.31 writes an id of the machine into the home directory when it is imported, and
    reports the program that uses it to its maker over the network, unless a variable forbade it before."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime  # noqa: PLC0415

    onnxruntime.disable_telemetry_events()  # where somebody else imported it before
    return onnxruntime


def _read(path: Path, known: str) -> bytes:
    """A file of the wheel, refused unless it is the one that this version of Holdfast knows."""
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != known:
        raise ValueError(f"{path.name} is damaged, or of another version of holdfast-models than this Holdfast knows")
    return data


def _runs() -> bool:
    return _package("onnxruntime") is not None and _package("tokenizers") is not None


def _package(name: str) -> Path | None:
    """Where a package is installed, without importing it."""
    spec = importlib.util.find_spec(name)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else None
