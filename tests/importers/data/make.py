"""Write the data of these tests anew, with the programs that it belongs to.

    python -m venv /tmp/v && /tmp/v/bin/pip install mem0ai openai-agents chromadb faiss-cpu
    /tmp/v/bin/python tests/moving/data/make.py

Each database is written by its own program and kept as the SQL that makes it again, so that a change can be read.
Written with mem0ai 2.2.1, qdrant-client 1.20.0, chromadb 1.5.9 and openai-agents 0.24.0.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ITEMS = [
    {"role": "user", "content": "Book me a flight to Porto ✈️"},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "needs a date"}]},
    {
        "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "find_flights",
        "arguments": '{"to": "OPO"}', "status": "completed",
    },
    {"type": "function_call_output", "call_id": "call_1", "output": "TP 1234, 09:40"},
    {
        "type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
        "content": [{"type": "output_text", "text": "There is one at 09:40.", "annotations": []}],
    },
    {"type": "item_reference", "id": "msg_0"},
    {"role": "user", "content": "Take it."},
]  # fmt: skip


def dump(database: Path, name: str, tables: tuple[str, ...] = ()) -> None:
    """Keep a database as SQL; of a large one the tables that are read."""
    with sqlite3.connect(database) as connection:
        lines = list(connection.iterdump())
    kept = [line for line in lines if not tables or any(f'"{table}"' in line[:60] for table in tables)]
    kept += [line for line in lines if tables and any(line.startswith(f"CREATE TABLE {one} ") for one in tables)]
    unique = list(dict.fromkeys(kept))
    order = sorted(unique, key=lambda line: not line.startswith("CREATE")) if tables else unique
    (HERE / f"{name}.sql").write_text("\n".join(order) + "\n", encoding="utf-8")


async def sessions(folder: Path) -> None:
    from agents import SQLiteSession  # noqa: PLC0415

    path = folder / "sessions.db"
    one, two = SQLiteSession("trip-42", path), SQLiteSession("żółw", path)
    await one.add_items(ITEMS[:-1])
    await two.add_items([{"role": "user", "content": "hello \x00 there"}])
    await one.add_items(ITEMS[-1:])
    one.close()
    two.close()
    dump(path, "sessions")


def mem0(folder: Path, provider: str) -> None:
    from mem0 import Memory  # noqa: PLC0415
    from mem0.embeddings.mock import MockEmbeddings  # noqa: PLC0415

    place: dict[str, object] = {"path": str(folder / provider), "collection_name": "mem0"}
    if provider != "chroma":
        place["embedding_model_dims"] = 10
    openai = {"provider": "openai", "config": {"api_key": "none"}}
    memory = Memory.from_config({
        "vector_store": {"provider": provider, "config": place}, "embedder": openai, "llm": openai,
        "history_db_path": str(folder / f"{provider}-history.db"),
    })  # fmt: skip
    memory.embedding_model = MockEmbeddings()
    more = {} if provider == "chroma" else {"nested": {"a": [1, 2]}}
    memory.add("Ana prefers aisle seats", user_id="ana", infer=False, metadata={"category": "travel", **more})
    lives = memory.add("Ana lives in Porto", user_id="ana", agent_id="travel", run_id="trip-42", infer=False)
    memory.add("Bo likes tea ☕ żółć", user_id="bo", infer=False)
    gone = memory.add("to be deleted", user_id="bo", infer=False)
    memory.update(lives["results"][0]["id"], "Ana lives in Lisbon")
    memory.delete(gone["results"][0]["id"])
    dump(folder / f"{provider}-history.db", f"mem0-{provider}-history")


def main() -> None:
    folder = Path(tempfile.mkdtemp())
    os.environ.update(MEM0_DIR=str(folder / "home"), MEM0_TELEMETRY="False", OPENAI_API_KEY="none")
    asyncio.run(sessions(folder))
    for provider in ("qdrant", "chroma", "faiss"):
        mem0(folder, provider)
    dump(folder / "qdrant" / "collection" / "mem0" / "storage.sqlite", "mem0-qdrant")
    tables = ("collections", "segments", "embeddings", "embedding_metadata")
    dump(folder / "chroma" / "chroma.sqlite3", "mem0-chroma", tables)
    shutil.copy(folder / "faiss" / "mem0.json", HERE / "mem0-faiss.json")
    shutil.rmtree(folder)
    sys.stdout.write("".join(f"{path.name} {path.stat().st_size}\n" for path in sorted(HERE.iterdir())))


if __name__ == "__main__":
    main()
