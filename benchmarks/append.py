"""Durable appends: one client beside bare apsw, and fifty async clients beside one."""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path
from typing import Any

import apsw

import holdfast
from benchmarks.measure import rounds, spread, table
from holdfast import aio
from holdfast.engine.codec import encode

MESSAGE = {"role": "user", "content": "x" * 500}
TIMES, REPEATS = 200, 25
CLIENTS, EACH, ASYNC_REPEATS = 50, 100, 7


def run(folder: Path) -> dict[str, Any]:
    single = _single(folder)
    many = asyncio.run(_many(folder))
    async_one = statistics.median(many["one"])
    async_fifty = statistics.median(many["fifty"])
    ratio = async_fifty / single["rate"]
    table(
        "Durable appends (WAL, synchronous=FULL, 500 characters, one message a commit)",
        [
            {"case": "bare apsw, one insert a transaction", "per second": single["bare"], "ratio": 1.0},
            {"case": "holdfast, one client", "per second": single["rate"], "ratio": single["ratio"]},
            {"case": "holdfast, one async client", "per second": async_one, "ratio": async_one / single["bare"]},
            {"case": f"holdfast, {CLIENTS} async clients", "per second": async_fifty, "ratio": async_fifty / single["bare"]},
        ],
    )
    print(f"  one client / bare: {single['ratio']:.2f} (middle half {single['spread']})")
    print(f"  {CLIENTS} async clients / one blocking client: {ratio:.1f}; / one async client: {async_fifty / async_one:.1f}")
    return {
        "bare_per_s": single["bare"],
        "one_per_s": single["rate"],
        "one_to_bare": single["ratio"],
        "one_to_bare_middle_half": single["spread"],
        "async_one_per_s": async_one,
        "async_fifty_per_s": async_fifty,
        "fifty_to_one": ratio,
        "fifty_to_async_one": async_fifty / async_one,
    }


def _single(folder: Path) -> dict[str, Any]:
    with holdfast.open(folder / "single.db") as store:
        thread = store.thread("bench", user="ana")
        bare = _bare(folder / "bare.db")
        insert = "INSERT INTO messages (body) VALUES (?)"

        def ours() -> None:
            thread.append(MESSAGE)

        def theirs() -> None:
            bare.execute("BEGIN IMMEDIATE")
            bare.execute(insert, (encode(MESSAGE),))
            bare.execute("COMMIT")

        spent = rounds({"ours": ours, "bare": theirs}, times=TIMES, repeats=REPEATS)
        bare.close()
    ratios = [one / other for one, other in zip(spent["bare"], spent["ours"], strict=True)]
    return {
        "rate": 1 / statistics.median(spent["ours"]),
        "bare": 1 / statistics.median(spent["bare"]),
        "ratio": statistics.median(ratios),
        "spread": spread(ratios),
    }


def _bare(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    for setting in ("page_size = 4096", "journal_mode = WAL", "synchronous = FULL"):
        connection.execute(f"PRAGMA {setting}").fetchall()
    connection.execute("CREATE TABLE messages (num INTEGER PRIMARY KEY, body BLOB NOT NULL)")
    return connection


async def _many(folder: Path) -> dict[str, list[float]]:
    """Each client has a thread of its own and waits for every append before the next."""
    rates: dict[str, list[float]] = {"one": [], "fifty": []}
    async with aio.open(folder / "many.db") as store:
        threads = [store.thread(f"bench-{number}", user="ana") for number in range(CLIENTS)]

        async def client(thread: aio.AsyncThread, count: int) -> None:
            for _ in range(count):
                await thread.append(MESSAGE)

        for _ in range(ASYNC_REPEATS):
            begin = time.perf_counter()
            await client(threads[0], 10 * EACH)
            rates["one"].append(10 * EACH / (time.perf_counter() - begin))
            begin = time.perf_counter()
            await asyncio.gather(*(client(thread, EACH) for thread in threads))
            rates["fifty"].append(CLIENTS * EACH / (time.perf_counter() - begin))
    return rates
