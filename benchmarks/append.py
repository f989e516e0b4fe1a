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
    bare, one = single["bare"], single["rate"]
    async_one, async_fifty = statistics.median(many["one"]), statistics.median(many["fifty"])
    cases = {
        "bare apsw, one insert a transaction": bare,
        "holdfast, one client": one,
        "holdfast, one async client": async_one,
        f"holdfast, {CLIENTS} async clients": async_fifty,
    }
    table(
        "Durable appends (WAL, synchronous=FULL, 500 characters, one message a commit)",
        [{"case": case, "per second": rate, "to bare": rate / bare} for case, rate in cases.items()],
    )
    print(f"  one client / bare, round by round: {single['ratio']:.2f} (middle half {single['spread']})")
    print(f"  {CLIENTS} async clients / one: {async_fifty / one:.1f}; / one async: {async_fifty / async_one:.1f}")
    return {
        "bare_per_s": bare,
        "one_per_s": one,
        "one_to_bare": single["ratio"],
        "one_to_bare_middle_half": single["spread"],
        "async_one_per_s": async_one,
        "async_fifty_per_s": async_fifty,
        "fifty_to_one": async_fifty / one,
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
