"""Ours and what it is measured beside, each behind the same three verbs: fill, open, ask.

All get the same texts and the same vectors, by WordLlama, and embed the question while the clock runs. Ours is the
whole pipeline (words, vectors, facts, time), and reads its hits from the store. The others are asked as their
documentation shows it. Deliberately absent: tuning of any of them.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

import holdfast
from benchmarks.texts import CHUNK, Texts
from holdfast.providers.choose import choose

USER = "ana"
K = 10


class Side:
    """One way to keep texts and to find them. ``fill`` gives figures of its own, ``ask`` the texts that it finds."""

    package = ""
    home = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.embedder = choose("wordllama")

    def load(self) -> None:
        """Import what opening imports."""

    def fill(self, texts: Texts) -> dict[str, Any]:
        raise NotImplementedError

    def open(self) -> None:
        raise NotImplementedError

    def ask(self, question: str) -> list[str]:
        raise NotImplementedError

    def stages(self) -> dict[str, float]:
        """Milliseconds by stage of the question asked last, of whoever tells."""
        return {}

    def close(self) -> None:
        pass

    def vector(self, text: str) -> Any:
        assert self.embedder is not None
        return self.embedder.embed([text])[0]

    def chunks(self, texts: Texts) -> Iterator[tuple[int, list[str], Any]]:
        """The texts with their vectors, and the number of the first."""
        assert self.embedder is not None
        for number, some in enumerate(texts.chunks()):
            yield number * CHUNK, some, self.embedder.embed(some)


class Ours(Side):
    """``remember_all`` and ``recall`` of one scope on SQLite."""

    package = "holdfast"
    spec = "wordllama"
    reranker = "auto"

    def fill(self, texts: Texts) -> dict[str, Any]:
        self.open()
        begin = time.perf_counter()
        for some in texts.chunks():
            self.memory.remember_all(some)
        spent = time.perf_counter() - begin
        self.close()
        return {"fill s": spent, **self.rebuild(texts)}

    def rebuild(self, texts: Texts) -> dict[str, Any]:
        """Make the index, which the first recall would do otherwise."""
        self.open()
        begin, before = time.perf_counter(), time.process_time()
        rows = self.memory.rebuild()
        spent, processor = time.perf_counter() - begin, time.process_time() - before
        assert rows == texts.count, f"{rows} of {texts.count} are in the index"
        self.close()
        return {"index s": spent, "index processor s": processor, **self._sizes(texts)}

    def open(self) -> None:
        self.store = holdfast.open(self.folder / "ours.db", embedder=self.spec, reranker=self.reranker)
        self.memory = self.store.memory(user=USER)

    def ask(self, question: str) -> list[str]:
        self.last = self.memory.recall(question, k=K)
        return [hit.text for hit in self.last]

    def stages(self) -> dict[str, float]:
        report = self.last.report
        found = {stage.name: stage.ms for stage in report.stages if not stage.skipped}
        return {**found, "(before and after)": report.ms - sum(found.values())}

    def close(self) -> None:
        self.store.close()

    def _sizes(self, texts: Texts) -> dict[str, Any]:
        path = self.folder / "ours.db"
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        rows = "SELECT coalesce(sum(length(body)), 0), count(*) FROM records WHERE kind = 'index' AND id "
        [(vectors, _)] = connection.execute(f"{rows} LIKE '%/v/%'")
        [(words, parts)] = connection.execute(f"{rows} NOT LIKE '%/v/%'")
        [(free,)] = connection.execute("SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size")
        connection.close()
        raw = sum(len(text.encode()) for text in texts)
        return {
            "text MB": raw / 1e6,
            "index MB": (vectors + words) / 1e6,
            "of that vectors MB": vectors / 1e6,
            "index parts": parts,
            "file MB": path.stat().st_size / 1e6,
            "free in it MB": free / 1e6,
        }


class OursWithoutReranker(Ours):
    """The same without a second look at the first hits."""

    reranker = "none"


class OursWithoutVectors(Ours):
    """The same without an embedder."""

    spec = "none"


class Mem0(Side):
    """``Memory`` with its default store, a local Qdrant, and our embedder; ``add`` without its language model.

    Above 10,000 texts ``add``, one text at a time, would take too long: they go into its vector store in batches, with
    the payload that ``add`` makes.
    """

    package = "mem0ai"
    one_by_one = 10_000

    def load(self) -> None:
        os.environ.update({"MEM0_TELEMETRY": "False", "MEM0_DIR": str(self.folder), "OPENAI_API_KEY": "unused"})
        importlib.import_module("mem0")

    def open(self) -> None:
        self.load()
        from mem0 import Memory  # noqa: PLC0415 - only the process that measures it loads it

        place = {"path": str(self.folder / "qdrant"), "embedding_model_dims": 256, "on_disk": True}
        self.memory = Memory.from_config({
            "vector_store": {"provider": "qdrant", "config": place},
            "history_db_path": str(self.folder / "history.db"),
        })  # fmt: skip
        self.memory.embedding_model = self

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        found: list[float] = self.vector(text).tolist()
        return found

    def fill(self, texts: Texts) -> dict[str, Any]:
        self.open()
        begin = time.perf_counter()
        if texts.count <= self.one_by_one:
            for text in texts:
                self.memory.add(text, user_id=USER, infer=False)
        else:
            self._fill_store(texts)
        spent = time.perf_counter() - begin
        self.close()
        return {"fill s": spent}

    def _fill_store(self, texts: Texts) -> None:
        import uuid  # noqa: PLC0415

        for _, some, vectors in self.chunks(texts):
            payloads = [{"user_id": USER, "data": text, "role": "user", "text_lemmatized": text} for text in some]
            self.memory.vector_store.insert(vectors.tolist(), payloads, [str(uuid.uuid4()) for _ in some])

    def ask(self, question: str) -> list[str]:
        found = self.memory.search(question, top_k=K, filters={"user_id": USER}, threshold=0.0)["results"]
        return [one["memory"] for one in found]

    def close(self) -> None:
        self.memory.vector_store.client.close()


class Chroma(Side):
    """A persistent collection with cosine distance, and its own approximate index."""

    package = "chromadb"

    def load(self) -> None:
        importlib.import_module("chromadb")

    def open(self) -> None:
        import chromadb  # noqa: PLC0415

        settings = chromadb.Settings(anonymized_telemetry=False)
        self.client = chromadb.PersistentClient(path=str(self.folder / "chroma"), settings=settings)
        self.collection = self.client.get_or_create_collection(
            "texts", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )

    def fill(self, texts: Texts) -> dict[str, Any]:
        self.open()
        begin = time.perf_counter()
        for first, some, vectors in self.chunks(texts):
            ids = [str(first + at) for at in range(len(some))]
            self.collection.add(ids=ids, embeddings=vectors, documents=some, metadatas=[{"user": USER}] * len(some))
        return {"fill s": time.perf_counter() - begin}

    def ask(self, question: str) -> list[str]:
        found = self.collection.query(query_embeddings=[self.vector(question)], n_results=K, where={"user": USER})
        return list(found["documents"][0])


class ChromaUnfiltered(Chroma):
    """The same, as if the collection were the user's own, so that nothing has to be filtered."""

    home = "Chroma"

    def ask(self, question: str) -> list[str]:
        found = self.collection.query(query_embeddings=[self.vector(question)], n_results=K)
        return list(found["documents"][0])


class Lance(Side):
    """A table without an index, which compares every vector."""

    package = "lancedb"
    index = False

    def load(self) -> None:
        importlib.import_module("lancedb")

    def open(self) -> None:
        import lancedb  # noqa: PLC0415

        self.base = lancedb.connect(str(self.folder / "lance"))
        self.table = self.base.open_table("texts") if (self.folder / "lance" / "texts.lance").exists() else None

    def fill(self, texts: Texts) -> dict[str, Any]:
        import pyarrow  # noqa: PLC0415

        self.open()
        begin = time.perf_counter()
        for _, some, vectors in self.chunks(texts):
            flat = pyarrow.array(vectors.ravel(), type=pyarrow.float32())
            columns = {"text": some, "user": [USER] * len(some)}
            rows = pyarrow.table({**columns, "vector": pyarrow.FixedSizeListArray.from_arrays(flat, 256)})
            if self.table is None:
                self.table = self.base.create_table("texts", rows)
            else:
                self.table.add(rows)
        stored = time.perf_counter()
        self.table.optimize()
        if self.index:
            self.table.create_index(metric="cosine", vector_column_name="vector")
        return {"fill s": stored - begin, "index s": time.perf_counter() - stored}

    def ask(self, question: str) -> list[str]:
        assert self.table is not None
        asked = self.table.search(self.vector(question)).distance_type("cosine").limit(K)
        return [one["text"] for one in asked.select(["text", "_distance"]).to_list()]


class LanceIndexed(Lance):
    """The same with its default index, IVF_PQ."""

    index = True


SIDES: dict[str, type[Side]] = {
    "holdfast": Ours,
    "holdfast, no reranker": OursWithoutReranker,
    "holdfast, no embedder": OursWithoutVectors,
    "Mem0, local Qdrant": Mem0,
    "Chroma": Chroma,
    "Chroma, no filter": ChromaUnfiltered,
    "LanceDB, no index": Lance,
    "LanceDB, IVF_PQ": LanceIndexed,
}


def version(name: str) -> str | None:
    """The version of a side's package, None where it is not installed."""
    try:
        return importlib.metadata.version(SIDES[name].package)
    except importlib.metadata.PackageNotFoundError:
        return None
