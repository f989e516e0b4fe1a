"""What the demonstration prints about the booking: what each agent did, by the airline's book.

Deliberately absent: deciding anything. Whether a sentence is good news is worked out from what was measured.
"""

from __future__ import annotations

from typing import Any

from holdfast.doors.cli.demo.claims import Booked, Tried
from holdfast.doors.cli.demo.script import ASKS_FOR_HOME, RUN
from holdfast.doors.cli.demo.story import Story
from holdfast.doors.cli.render import Part
from holdfast.doors.cli.wording import counted

_AIRLINES = {"search": "searched for flights", "book": "booked {booking}", "look up": "looked up the key: {booking}"}


class BookingStory:
    """Prints the booking as part of the story."""

    def __init__(self, tale: Story) -> None:
        self._tale, self._screen = tale, tale.screen

    def without(self, airline: int) -> None:
        self._tale.heading("Ana wants a flight home", "from an agent without Holdfast")
        self._tale.says("Ana", "person", ASKS_FOR_HOME)
        self._screen.line(f"The airline is process {airline}. Two requests make two bookings.", indent=3)

    def held(self, airline: int) -> None:
        self._tale.heading("The same agent with Holdfast", f"run {RUN}, airline process {airline}")

    def killed(self, tried: Tried) -> None:
        end = f"; {tried.killed} before it was recorded" if tried.killed_at else "; no booking came of it"
        self._agent("first", tried.agents[0], tried.before, (end, "bad"))

    def left(self, standing: str) -> None:
        words = {"intended": "the intent to book, with a key, but no result", "nothing": "nothing"}
        self._tale.under((f"in the store: {words.get(standing, standing)}", "quiet"))

    def again(self, tried: Tried, *, durable: bool) -> None:
        took = f"; recorded {tried.has} {tried.has_after_ms:.0f} ms after it was started"
        self._agent("again", tried.agents[1], tried.after, (took if durable and tried.has else "", "quiet"))

    def orphaned(self, tried: Tried) -> None:
        codes = [line["booking"] for line in tried.did("book")]
        self._verdict(codes, " Ana knows of one." if len(codes) > 1 and tried.has else "")

    def kept(self, booked: Booked) -> None:
        """What Ana hears, and the verdict."""
        if booked.held.said:
            self._tale.says("agent", "name", booked.held.said)
        self._verdict([line["booking"] for line in booked.held.did("book")], "")

    def _agent(self, which: str, pid: int, did: list[dict[str, Any]], more: Part) -> None:
        said = ", ".join(_did(line) for line in did) or "asked the airline for nothing"
        self._tale.says(which, "name", f"process {pid} {said}", more)

    def _verdict(self, codes: list[str], more: str) -> None:
        mark, style = ("✓ ", "good") if len(codes) == 1 else ("✗ ", "bad")
        words = f"{counted(len(codes), 'booking')} in the airline's book: {', '.join(codes) or 'none'}.{more}"
        self._tale.under((mark, style), words)


def _did(line: dict[str, Any]) -> str:
    return _AIRLINES[line["did"]].format(booking=line.get("booking") or "nothing")
