"""What is saved of one index: a manifest, and the parts that it names.

Parts are written first, a commit each, and then the manifest that names them, under compare-and-set; so of two
processes that save at once only one succeeds, and a large index blocks nobody for long. Every part has a digest. A
segment is one value. The vectors that a model made of it are blocks, which are added as more are made and become one
when the last is there; large values are cut, because an engine moves values whole. All of it is derived, so it is not
in the feed. Parts that no manifest names are swept.

Deliberately absent: what is in a segment (``segment``), and when to save (``index``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b

import msgspec
import numpy as np

from holdfast import text
from holdfast.engine.codec import decode, encode
from holdfast.engine.contract import Delete, Guard, Op, Put, Query, Record, Scope, View
from holdfast.errors import Conflict, Corrupt, Unsupported
from holdfast.ids import Ids
from holdfast.ledger import secrets
from holdfast.ledger.core import Core, scan_all
from holdfast.retrieval import segment as arrays
from holdfast.retrieval.segment import Array, Segment, Vectors

KIND = "index"
MANIFEST = "manifest"
FORM = 5
_PART_BYTES = 8 * 1024 * 1024


class Overtaken(Exception):
    """Another process saved this index in the meantime: its version counts."""


class Block(msgspec.Struct, frozen=True, array_like=True):
    """Saved vectors of some passages, by the token in the names of its parts."""

    token: str
    parts: int
    digest: str
    passages: int


class Saved(msgspec.Struct, frozen=True):
    """What a manifest says of one segment, by the token in the names of its parts, and of its vectors by each model."""

    token: str
    parts: int
    digest: str
    rows: int
    passages: int
    vectors: dict[str, tuple[Block, ...]] = {}

    def only(self, models: Iterable[str | None]) -> Saved:
        """The same with the vectors of these models alone."""
        vectors = {name: blocks for name, blocks in self.vectors.items() if name in models}
        return msgspec.structs.replace(self, vectors=vectors)

    def whole(self, model: str) -> bool:
        """Whether every passage has its vector of a model."""
        return sum(block.passages for block in self.vectors.get(model, ())) == self.passages


class IndexManifest(msgspec.Struct, frozen=True):
    """All that is saved. ``model`` is the one that recall uses, and ``previous`` the one it can go back to; where
    ``chosen``, somebody asked for the model, and nothing moves on by itself. ``key`` hides the words of this index, and
    is gone when it is."""

    form: int = FORM
    words: int = text.VERSION
    model: str | None = None
    chosen: bool = False
    previous: str | None = None
    key: bytes = b""
    segments: tuple[Saved, ...] = ()

    def whole(self, model: str) -> bool:
        """Whether every passage that is saved has its vector of a model."""
        return all(saved.whole(model) for saved in self.segments)


class Stored:
    """What is saved, at one moment."""

    def __init__(self, view: View, tenant: str, name: str, key: bytes) -> None:
        self._view, self._tenant, self._name, self._key = view, tenant, name, key

    def segment(self, saved: Saved) -> Segment:
        """A segment without vectors."""
        stored = arrays.from_bytes(self._value(f"{saved.token}/t", saved.parts, saved.digest))
        return arrays.of_arrays(stored, _key(self._key, saved.token))

    def vectors(self, saved: Saved, model: str) -> Vectors:
        """The vectors of a model, as far as a segment has them."""
        found: Vectors | None = None
        for block in saved.vectors[model]:
            value = self._value(f"{saved.token}/v/{model}/{block.token}", block.parts, block.digest)
            at, rows = _placed(arrays.from_bytes(value), saved, block)
            if len(at) == saved.passages:  # one block of all, as it is
                return Vectors(model, rows, kept=np.ones(len(rows), dtype=bool))
            found = found or arrays.no_vectors(model, saved.passages, rows.shape[1])
            if rows.shape[1] != found.rows.shape[1]:
                raise Corrupt("the vectors of a part do not fit one another")
            found.rows[at], found.done[at] = rows, True
        if found is None:
            raise Corrupt("the vectors of a part are missing")
        return Vectors(model, found.rows, found.done, found.done)

    def width(self, saved: Saved, model: str) -> int:
        """How many numbers a model's vectors have."""
        return int(self.vectors(saved, model).rows.shape[1])

    def _value(self, name: str, parts: int, digest: str) -> bytes:
        pieces = []
        for number in range(parts):
            record = self._view.get(self._tenant, KIND, f"{self._name}/{name}/{number}")
            if record is None:
                raise Corrupt("a part of it is missing")
            pieces.append(record.body)
        data = b"".join(pieces)
        if _digest(data) != digest:
            raise Corrupt("a part of it does not match its digest")
        return data


class IndexStore:
    """The saved side of one index. ``manifest`` is what was read or written last."""

    def __init__(self, core: Core, ids: Ids, scope: Scope, naming: Callable[[bytes], str]) -> None:
        self._core, self._ids, self._scope, self._naming = core, ids, scope, naming
        self._name: str | None = None
        self._id: str | None = None
        self._version = self._erasures = 0
        self.manifest = IndexManifest()

    def __str__(self) -> str:
        return self._name or "that was never saved"

    @property
    def name(self) -> str:
        """What the records of this index are called, which needs a key; it is made when something is first saved."""
        if self._name is None:
            self._name = self._naming(secrets.key_of(self._core, self._ids))
        return self._name

    def _known_name(self, view: View) -> str | None:
        """The name, None where no index of this tenant was ever saved."""
        if self._name is None and (key := secrets.known_key(view, self._core.tenant)) is not None:
            self._name = self._naming(key)
        return self._name

    # Stored

    @contextmanager
    def read(self) -> Iterator[Stored]:
        """Read the manifest, and what it names while the block lasts: all of one moment, whatever others save.

        One that cannot be used is ``Corrupt`` or ``Unsupported``, and counts as empty.
        """
        with self._core.engine.snapshot() as view:
            self.forget()
            for record in self._manifests(view)[:1]:
                self._id, self._version = record.id, record.version
                self.manifest = _manifest(record)
            yield Stored(view, self._core.tenant, self._name or "", self.manifest.key)

    def forget(self) -> None:
        self._id, self._version, self.manifest = None, 0, IndexManifest()

    def look(self) -> None:
        """What is read of ground from here on is current: only an erasure that comes later makes it unfit to save."""
        self._erasures = secrets.erasures(self._core.engine, self._core.tenant)
        self._core.settle()  # not before: what the count knows of is gone from whatever is read next

    def _manifests(self, view: View) -> list[Record]:
        """The manifests of this index, the one that counts first: two processes may both have made a first one.

        Each has its own name, so that one that was deleted and recreated is not taken for the old one.
        """
        if (name := self._known_name(view)) is None:
            return []
        query = Query(KIND, user=self._scope.user, agent=self._scope.agent, tag=f"{MANIFEST}@{name}")
        found = (record for record in scan_all(view, self._core.tenant, query) if record.scope == self._scope)
        return sorted(found, key=lambda record: (record.created, record.id))

    # Writing

    def saving(self, segment: Segment, saved: Saved | None, ops: list[Op]) -> Saved:
        """What a manifest will say of a segment; what is not saved of it yet becomes operations."""
        if saved is None:
            if not self.manifest.key:
                self.manifest = msgspec.structs.replace(self.manifest, key=self._ids.key())
            token = self._ids.token()
            data = arrays.to_bytes(arrays.masked(segment.arrays(), _key(self.manifest.key, token)))
            parts = self._put(f"{token}/t", data, ops)
            saved = Saved(token, parts, _digest(data), segment.rows, segment.passages)
        for vectors in segment.vectors.values():
            saved = self.saving_vectors(saved, vectors, ops)
        return saved

    def saving_vectors(self, saved: Saved, vectors: Vectors, ops: list[Op]) -> Saved:
        """What a manifest will say of a segment with these vectors: those that are not saved become a block more.

        When the last of them are there, one block of all takes the place of many.
        """
        new = np.nonzero(vectors.done & ~vectors.kept)[0]
        if not len(new):
            return saved
        before = saved.vectors.get(vectors.model, ())
        if vectors.whole:
            new, before = np.arange(saved.passages), ()
        data, token = arrays.to_bytes({"at": new.astype("<i4"), "rows": vectors.rows[new]}), self._ids.token()
        parts = self._put(f"{saved.token}/v/{vectors.model}/{token}", data, ops)
        blocks = (*before, Block(token, parts, _digest(data), len(new)))
        return msgspec.structs.replace(saved, vectors={**saved.vectors, vectors.model: blocks})

    def _put(self, name: str, data: bytes, ops: list[Op]) -> int:
        pieces = [data[at : at + _PART_BYTES] for at in range(0, len(data), _PART_BYTES)] or [b""]
        ops += [
            Put(KIND, f"{self.name}/{name}/{number}", piece, expect=0, scope=self._scope, derived=True)
            for number, piece in enumerate(pieces)
        ]
        return len(pieces)

    def commit(self, manifest: IndexManifest, ops: Sequence[Op]) -> None:
        """Write a manifest in place of the one that was read, with new parts, and delete the parts it drops.

        ``Overtaken`` when another one was written meanwhile, or something was erased since the last ``look``: what is
        saved then might hold words of it.
        """
        id = self._id or f"{self.name}/{self._ids.token()}{self._ids.token()}"
        gone = set(self._names(self.manifest)) - set(self._names(manifest))
        plain = msgspec.to_builtins(manifest)
        body = encode({"manifest": plain, "digest": _digest(encode(plain))})
        tags = (MANIFEST, f"{MANIFEST}@{self.name}")
        put = Put(KIND, id, body, expect=self._version, scope=self._scope, tags=tags, derived=True)
        there = self._write_parts(ops)
        try:
            # A part that is gone by now was swept: nobody had named it yet.
            self._write([secrets.unless_erased(self._erasures), put, *there, *_deletes(gone)])
        except Conflict as error:
            self._write(_deletes(part.id for part in there))
            raise Overtaken from error
        first = next(iter(self._manifests(self._core.engine)), None)
        if first is None or first.id != id:  # thrown away at once, or two made a first one at the same time
            self._write(_deletes([*self._names(manifest), id]))
            raise Overtaken
        self._id, self._version, self.manifest = id, self._version + 1, manifest

    def _write_parts(self, parts: Iterable[Op]) -> list[Guard]:
        """Write parts, each in a commit of its own; return what says that they are still there."""
        there = []
        for part in parts:
            assert isinstance(part, Put)
            self._write([part])
            there.append(Guard(KIND, part.id, 1))
        return there

    def sweep(self) -> None:
        """Delete parts that no manifest names: their writer lost to another process, or was killed."""
        view, tenant = self._core.engine, self._core.tenant
        if self._known_name(view) is None:
            return
        query = Query(KIND, user=self._scope.user, agent=self._scope.agent)
        found = [part.id for part in scan_all(view, tenant, query) if part.id.startswith(f"{self.name}/")]
        named = {name for record in self._manifests(view) for name in (record.id, *self._named_by(record))}
        self._write(_deletes(set(found) - named))

    def discard(self) -> None:
        """Delete everything saved, including what others save meanwhile."""
        while found := self._manifests(self._core.engine):
            for record in found:
                names = set(self._named_by(record)) - {record.id}
                with suppress(Conflict):  # saved again in the meantime: check again
                    gone = Delete(KIND, record.id, expect=record.version, derived=True)
                    self._write([gone, *_deletes(names)])
        self.sweep()
        self.forget()

    def _named_by(self, record: Record) -> Iterator[str]:
        """The parts that a manifest names; where it does not say, whatever is called like them."""
        try:
            yield from self._names(_parsed(record))
        except (Corrupt, Unsupported):
            query = Query(KIND, user=self._scope.user, agent=self._scope.agent)
            found = scan_all(self._core.engine, self._core.tenant, query)
            yield from (part.id for part in found if part.id.startswith(f"{self.name}/"))

    def _write(self, ops: Sequence[Op]) -> None:
        if ops:
            self._core.write(ops, self._core.clock.now())

    def _names(self, manifest: IndexManifest) -> Iterator[str]:
        for saved in manifest.segments:
            yield from (f"{self.name}/{saved.token}/t/{number}" for number in range(saved.parts))
            for model, blocks in saved.vectors.items():
                for block in blocks:
                    name = f"{self.name}/{saved.token}/v/{model}/{block.token}"
                    yield from (f"{name}/{number}" for number in range(block.parts))


def _key(key: bytes, token: str) -> bytes:
    """What hides the words of one segment."""
    return key + token.encode()


def _placed(stored: dict[str, Array], saved: Saved, block: Block) -> tuple[Array, Array]:
    """Which passages a block has the vectors of, in order, and those; refused where they do not fit the segment."""
    if stored.keys() != {"at", "rows"}:
        raise Corrupt("the vectors of a part are something else")
    at, rows = stored["at"], stored["rows"]
    if rows.ndim != 2 or not len(at) == len(rows) == block.passages or (np.diff(at, prepend=-1) < 1).any():
        raise Corrupt("the vectors of a part do not fit it")
    if len(at) and at[-1] >= saved.passages:
        raise Corrupt("the vectors of a part do not fit it")
    return at, rows


def _deletes(names: Iterable[str]) -> list[Op]:
    return [Delete(KIND, name, derived=True) for name in sorted(set(names))]


def _parsed(record: Record) -> IndexManifest:
    try:
        plain = decode(record.body)
        if _digest(encode(plain["manifest"])) != plain["digest"]:
            raise Corrupt("its manifest does not match its digest")
        return msgspec.convert(plain["manifest"], IndexManifest)
    except (msgspec.ValidationError, LookupError, TypeError) as error:
        raise Corrupt(f"its manifest is invalid: {error!r}") from error


def _manifest(record: Record) -> IndexManifest:
    manifest = _parsed(record)
    if manifest.form != FORM or manifest.words != text.VERSION:
        raise Unsupported("it was made by another version of holdfast")
    return manifest


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()
