"""What an embedder is, and the wrapper that checks each one.

Vectors come from outside: from a model, a server, someone's function. They are checked before they are
trusted, because a vector of the wrong length or a NaN in an index is found months later. The wrapper also keeps the
vectors of recent short calls, so that a question asked twice is embedded once.

Deliberately absent: retries over time and anything durable. An embedder that fails raises; the caller keeps the
text and asks again later. numpy is imported when the first vector is made, not before.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from holdfast import atfork
from holdfast.errors import HoldfastError, Invalid, Misconfigured, Unavailable

if TYPE_CHECKING:
    import numpy
    import numpy.typing

    Vectors: TypeAlias = numpy.typing.NDArray[numpy.float32]

BATCH_TEXTS = 256
BATCH_CHARACTERS = 200_000  # hosted endpoints count tokens over the whole request; this stays below their limits
RECENT = 2_048
_SHORT_CALL = 16  # a bulk load must not push the questions of people out of the recent ones
_SHORT_TEXT = 4_096
_MAX_NAME = 200
_MAX_DIMENSION = 65_536


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors. Any object with these four names is one.

    ``name`` is the identity that is recorded beside each vector: two embedders with one name must give equal vectors.
    ``local`` says that embedding is cheap and needs no network, so that nobody has to keep vectors to save calls.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    @property
    def local(self) -> bool: ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row per text, in order: float32, unit length, or all zero where there is nothing to embed.

        Raises Unavailable where trying again later can help, any other HoldfastError where it cannot.
        """
        ...


def checked(embedder: Embedder, *, batch: int = BATCH_TEXTS, recent: int = RECENT) -> Checked:
    """The embedder with checks around it. One that is already checked is returned as it is."""
    return embedder if isinstance(embedder, Checked) else Checked(embedder, batch=batch, recent=recent)


class Checked:
    """An embedder whose answers have been looked at: right number, right length, finite, unit length.

    Safe for many threads if the embedder inside is. An answer that breaks the promise is a Misconfigured; an exception
    that is not ours becomes an Unavailable, because the text can be embedded later and must not be lost now.
    """

    def __init__(self, inner: Embedder, *, batch: int = BATCH_TEXTS, recent: int = RECENT) -> None:
        if batch < 1 or recent < 0:
            raise Invalid(f"A batch holds at least one text and recent is not negative; got {batch} and {recent}.")
        self.inner = inner
        self.name = _name_of(inner)
        self._batch = batch
        self._recent = _Recent(recent)
        self._dimension: int | None = None

    def __repr__(self) -> str:
        return f"checked({self.inner!r})"

    @property
    def local(self) -> bool:
        return bool(self.inner.local)

    @property
    def dimension(self) -> int:
        """The length of every vector. Asking may cost one call where an embedder has to find out."""
        if self._dimension is None:
            self._dimension = _dimension_of(self.name, self._ask(lambda: self.inner.dimension))
        return self._dimension

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit row per text, zero rows for blank ones. All of them, or an error: never a part."""
        import numpy  # noqa: PLC0415

        _check_texts(texts)
        rows: list[Vectors | None] = [None] * len(texts)
        wanted: dict[str, list[int]] = {}
        short = len(texts) <= _SHORT_CALL
        for at, text in enumerate(texts):
            if not text.strip():
                continue  # several endpoints refuse an empty text, and none can say anything about it
            rows[at] = self._recent.get(text) if short else None
            if rows[at] is None:
                wanted.setdefault(text, []).append(at)
        for part in _batches(list(wanted), self._batch):
            for text, row in zip(part, self._embedded(part, wanted), strict=True):
                for at in wanted[text]:
                    rows[at] = row
                if short:
                    self._recent.put(text, row)
        out = numpy.zeros((len(texts), self.dimension), dtype=numpy.float32)
        for at, row in enumerate(rows):
            if row is not None:
                out[at] = row
        return out

    def _embedded(self, texts: list[str], places: dict[str, list[int]]) -> Vectors:
        rows = _as_rows(self.name, self._ask(lambda: self.inner.embed(texts)), len(texts))
        if rows.shape[1] != self.dimension:
            raise Misconfigured(
                f"The embedder {self.name} has dimension {self.dimension}, and answered with {rows.shape[1]}. "
                "Vectors of another model need another name, so that they are never compared with these.",
                embedder=self.name,
                expected=self.dimension,
                found=int(rows.shape[1]),
            )
        return _unit(self.name, rows, [places[text][0] for text in texts])

    def _ask(self, question: Any) -> Any:
        try:
            return question()
        except HoldfastError:
            raise
        except ImportError as error:
            raise Misconfigured(f"The embedder {self.name} needs a package: {error}.", embedder=self.name) from error
        except Exception as error:
            raise Unavailable(
                f"The embedder {self.name} failed: {type(error).__name__}: {error}", embedder=self.name
            ) from error


class _Recent:
    """The vectors of texts that were embedded lately, the least recently used of them leaving first."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = atfork.lock()
        self._rows: OrderedDict[str, Vectors] = OrderedDict()

    def get(self, text: str) -> Vectors | None:
        with self._lock:
            row = self._rows.get(text)
            if row is not None:
                self._rows.move_to_end(text)
            return row

    def put(self, text: str, row: Vectors) -> None:
        if not self._size or len(text) > _SHORT_TEXT:
            return
        kept = row.copy()  # a view would keep the whole batch alive
        with self._lock:
            self._rows[text] = kept
            self._rows.move_to_end(text)
            while len(self._rows) > self._size:
                self._rows.popitem(last=False)


def _batches(texts: list[str], most: int) -> Iterator[list[str]]:
    part: list[str] = []
    size = 0
    for text in texts:
        if part and (len(part) == most or size + len(text) > BATCH_CHARACTERS):
            yield part
            part, size = [], 0
        part.append(text)
        size += len(text)
    if part:
        yield part


# Looking at what came from outside


def _check_texts(texts: Sequence[str]) -> None:
    if isinstance(texts, str | bytes):
        raise Invalid("embed takes a list of texts, not one text. Write embed([text]).")
    for at, text in enumerate(texts):
        if not isinstance(text, str):
            raise Invalid(f"embed takes texts; number {at} is {type(text).__name__}.")


def _name_of(embedder: Embedder) -> str:
    name = getattr(embedder, "name", None)
    if not isinstance(name, str) or not name.strip() or len(name.encode("utf-8", "replace")) > _MAX_NAME:
        raise Misconfigured(
            f"An embedder needs a name of 1 to {_MAX_NAME} bytes, which is recorded beside its vectors; got {name!r}."
        )
    return name


def _dimension_of(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= _MAX_DIMENSION:
        raise Misconfigured(
            f"The embedder {name} must have a dimension from 1 to {_MAX_DIMENSION}; it says {value!r}.", embedder=name
        )
    return value


def _as_rows(name: str, answer: object, count: int) -> Vectors:
    """The answer as a float32 matrix with one row per text."""
    import numpy  # noqa: PLC0415

    try:
        rows = numpy.asarray(answer)
    except ValueError as error:  # lists of unequal length
        raise Misconfigured(f"The embedder {name} answered with rows of unequal length.", embedder=name) from error
    if rows.dtype.kind not in "fiu":
        raise Misconfigured(f"The embedder {name} answered with {rows.dtype} instead of numbers.", embedder=name)
    if rows.ndim != 2 or rows.shape[0] != count:
        raise Misconfigured(
            f"The embedder {name} was given {count} texts and must answer with {count} rows of numbers; "
            f"it answered with shape {rows.shape}.",
            embedder=name,
        )
    with numpy.errstate(over="ignore"):  # what does not fit float32 becomes inf, which the next look refuses
        return rows.astype(numpy.float32, copy=False)


def _unit(name: str, rows: Vectors, places: list[int]) -> Vectors:
    """Rows of length one; zero rows stay zero. ``places`` are the positions of the texts in the caller's list."""
    import numpy  # noqa: PLC0415

    finite = numpy.isfinite(rows).all(axis=1)
    if not finite.all():
        bad = [place for place, fine in zip(places, finite.flat, strict=True) if not fine]
        raise Misconfigured(
            f"The embedder {name} answered with NaN or infinity for {len(bad)} of {len(places)} texts, "
            f"first for number {bad[0]}.",
            embedder=name,
            texts=bad,
        )
    lengths = numpy.sqrt(numpy.einsum("ij,ij->i", rows, rows, dtype=numpy.float64))
    lengths[lengths == 0.0] = 1.0
    unit: Vectors = (rows / lengths[:, None]).astype(numpy.float32)
    return unit
