"""The caller's own function as an embedder. Deliberately absent: any guess about what the function costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from holdfast import atfork
from holdfast.errors import Misconfigured

if TYPE_CHECKING:
    from holdfast.providers.embedding import Vectors

_PROBE = "how many numbers is this?"


class FunctionEmbedder:
    """``function(list of texts)`` gives one list of numbers, or one row of an array, per text.

    ``name`` is recorded beside the vectors, so give a new one when the model behind the function changes; without one
    it is the function's own. ``dimension`` is found by one call where it is not given.
    """

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        *,
        name: str | None = None,
        dimension: int | None = None,
        local: bool = False,
    ) -> None:
        if not callable(function):
            raise Misconfigured(f"An embedding function is needed; got {type(function).__name__}.")
        self._function = function
        self._lock = atfork.lock()
        self._dimension = dimension
        self.name = name or _own_name(function)
        self.local = local

    def __repr__(self) -> str:
        return f"FunctionEmbedder({self.name!r})"

    @property
    def dimension(self) -> int:
        with self._lock:
            if self._dimension is None:
                self._dimension = _width(self._function([_PROBE]))
            return self._dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        answer = self._function(list(texts))
        with self._lock:
            if self._dimension is None and len(texts):
                self._dimension = _width(answer)
        vectors: Vectors = answer  # not yet: the caller checks every row
        return vectors


def _width(answer: Any) -> int:
    try:
        return len(answer[0])
    except (TypeError, IndexError, KeyError) as error:
        raise Misconfigured(
            "The embedding function must return one list of numbers per text; "
            f"for one text it returned {type(answer).__name__}."
        ) from error


def _own_name(function: Callable[..., Any]) -> str:
    own = getattr(function, "__qualname__", None) or type(function).__qualname__
    module = getattr(function, "__module__", None) or "function"
    if "<lambda>" in own:
        raise Misconfigured(
            "A lambda has no name to record beside its vectors. Use a named function, or FunctionEmbedder(f, name=…)."
        )
    return f"{module}.{own}"
