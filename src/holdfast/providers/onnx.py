"""Models in ONNX form with their tokens: found in the wheel ``holdfast-models`` or in a folder, and loaded.

Deliberately absent: downloads, graphics cards, and what a model is for.
"""

from __future__ import annotations

import importlib.util
import logging
import time
from pathlib import Path
from typing import Any

from holdfast.errors import Misconfigured

INSTALL = "pip install 'holdfast[minilm]'"
_WHEEL, _TOKENS = "holdfast_models", Path("minilm") / "tokenizer.json"

_log = logging.getLogger(__name__)


def in_wheel(name: str) -> tuple[Path, Path]:
    """The files of a model in the wheel. All of them read the same tokens."""
    wheel = _package(_WHEEL)
    if wheel is None or not (wheel / name / "model.onnx").is_file() or not _runs():
        raise Misconfigured(f"The model {name} is not installed. Run: {INSTALL}", extra="minilm")
    return wheel / name / "model.onnx", wheel / _TOKENS


def in_folder(folder: Path) -> tuple[Path, Path]:
    """The files of a model in a folder, as model hubs publish them."""
    if not _runs():
        raise Misconfigured(f"The model in {folder} needs onnxruntime. Run: {INSTALL}", extra="minilm")
    for model in (folder / "model.onnx", folder / "onnx" / "model.onnx"):
        if model.is_file() and (folder / "tokenizer.json").is_file():
            return model, folder / "tokenizer.json"
    raise Misconfigured(f"The folder {folder} must hold model.onnx (or onnx/model.onnx) and tokenizer.json.")


def load(model_file: Path, tokens_file: Path) -> tuple[Any, Any]:
    """The session and the tokeniser, both safe for many threads once they are set up."""
    import onnxruntime  # noqa: PLC0415
    import tokenizers  # noqa: PLC0415

    began = time.perf_counter()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors; the library writes to standard error by itself
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads must not burn a core
    try:
        session = onnxruntime.InferenceSession(str(model_file), options, providers=["CPUExecutionProvider"])
        tokenizer = tokenizers.Tokenizer.from_file(str(tokens_file))
        tokenizer.no_padding()
        tokenizer.no_truncation()
    except Exception as error:  # both libraries raise errors of many kinds
        raise Misconfigured(f"The model {model_file} cannot be loaded ({error}).", extra="minilm") from error
    _log.debug("%s loaded in %.0f ms", model_file, (time.perf_counter() - began) * 1000)
    return session, tokenizer


def _runs() -> bool:
    return _package("onnxruntime") is not None and _package("tokenizers") is not None


def _package(name: str) -> Path | None:
    """Where a package is installed, without importing it."""
    spec = importlib.util.find_spec(name)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else None
