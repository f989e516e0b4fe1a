"""Book a flight so that a crash at any moment makes no second booking.

    python examples/book_a_flight.py

takes a few seconds and prints what it does. Now try to break it: run it again in a fresh folder and kill it in the
middle, as hard as you like, then run the same command once more.

    python examples/book_a_flight.py --folder /tmp/trip2 --slow 5 & sleep 8; kill -9 $!
    python examples/book_a_flight.py --folder /tmp/trip2

The airline here is a file, ``airline.jsonl``, that has nothing to do with the store. It is a careless airline: it books
again whenever it is asked again. It answers late, so a kill often falls between the booking and its record. The second
run asks the airline (the probe) instead of booking anew. However often you kill it, the file holds one line.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import holdfast

FOLDER = Path(tempfile.gettempdir(), "holdfast-trip")


class Airline:
    """Someone else's service. It keeps the reference that a caller gives, and can be asked for it."""

    def __init__(self, file: Path, slow_s: float) -> None:
        self.file, self.slow_s = file, slow_s

    def search(self, to: str) -> str:
        time.sleep(self.slow_s)
        return {"LIS": "TP 533", "ROM": "AZ 421"}[to]

    def book(self, flight: str, passenger: str, reference: str) -> dict[str, str]:
        number = f"B{len(self.bookings()) + 1}"
        booking = {"number": number, "flight": flight, "passenger": passenger, "reference": reference}
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(booking) + "\n")
            file.flush()
            os.fsync(file.fileno())
        time.sleep(self.slow_s)  # booked, but nobody was told yet
        return booking

    def bookings(self) -> list[dict[str, str]]:
        if not self.file.exists():
            return []
        return [json.loads(line) for line in self.file.read_text(encoding="utf-8").splitlines()]


def trip(run: holdfast.Run, airline: Airline) -> dict[str, str]:
    """What the agent does. It reads as if there were no crashes."""

    def search(to: str) -> str:
        say(f"searching a flight to {to}")
        return airline.search(to)

    def book(flight: str, passenger: str) -> dict[str, str]:
        step = holdfast.current_step()
        say(f"booking {flight} (attempt {step.attempt})")
        booking = airline.book(flight, passenger, reference=step.key)
        step.append({"role": "assistant", "content": f"{flight} is booked: {booking['number']}."})
        step.patch("booking", booking["number"])  # log entry, state and result are one commit
        return booking

    def find_booking(flight: str, passenger: str) -> dict[str, str] | None:
        say("asking the airline whether it has that booking already")
        reference = holdfast.current_step().key
        return next((found for found in airline.bookings() if found["reference"] == reference), None)

    flight = run.step("search", search, "LIS", effect="pure")
    booking: dict[str, str] = run.step("book", book, flight, "Ana Sousa", effect="once", probe=find_booking)
    return booking


def say(text: str) -> None:
    print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Book a flight once, whatever happens.")
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help="where the store and the airline's file are; default: %(default)s"
    )
    parser.add_argument("--slow", type=float, default=1.0, help="how many seconds the airline takes to answer")
    given = parser.parse_args()
    given.folder.mkdir(exist_ok=True)
    airline = Airline(given.folder / "airline.jsonl", given.slow)
    with holdfast.open(given.folder / "agent.db") as store:
        thread = store.thread("trip-42", user="ana", agent="travel")
        with thread.run("book-flight") as run:
            booking = trip(run, airline)
            run.finish(booking)
        say(f"booking {booking['number']} on {booking['flight']} for {booking['passenger']}")
        for moment in thread.timeline("book-flight").moments:
            say(f"  {moment.time:%H:%M:%S}  {moment.step or 'run'}: {moment.text}")
    say(f"the airline has {len(airline.bookings())} booking(s)")


if __name__ == "__main__":
    main()
