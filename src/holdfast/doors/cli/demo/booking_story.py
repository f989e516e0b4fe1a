"""What the demonstration prints about the booking: what each agent did, by the airline's book, and the step it took.

Deliberately absent: deciding anything. Whether a sentence is good news is worked out from what was measured.
"""

from __future__ import annotations

from typing import Any

from holdfast.clock import to_micros
from holdfast.doors.cli.demo.claims import Booked, Tried
from holdfast.doors.cli.demo.script import ASKS_FOR_HOME, RUN
from holdfast.doors.cli.demo.story import Story
from holdfast.doors.cli.render import Column, Part, Row
from holdfast.doors.cli.wording import counted
from holdfast.steps.timeline import Moment

_AIRLINES = {"search": "searched for flights", "book": "booked {booking}", "look up": "looked up the key: {booking}"}

_TOLD = ("intent", "probed", "completed")  # how a step comes to its end, without what was decided in between


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
        """What Ana hears, the verdict, and the step that books from its intent to its result."""
        if booked.held.said:
            self._tale.says("agent", "name", booked.held.said)
        self._verdict([line["booking"] for line in booked.held.did("book")], "")
        if booked.timeline is None:
            return
        self._screen.blank()
        columns = [Column("ms", "quiet", right=True), Column("who"), Column("what", fits=True)]
        self._screen.table(columns, _rows(booked), indent=3)

    def _agent(self, which: str, pid: int, did: list[dict[str, Any]], more: Part) -> None:
        said = ", ".join(_did(line) for line in did) or "asked the airline for nothing"
        self._tale.says(which, "name", f"process {pid} {said}", more)

    def _verdict(self, codes: list[str], more: str) -> None:
        mark, style = ("✓ ", "good") if len(codes) == 1 else ("✗ ", "bad")
        words = f"{counted(len(codes), 'booking')} in the airline's book: {', '.join(codes) or 'none'}.{more}"
        self._tale.under((mark, style), words)


def _did(line: dict[str, Any]) -> str:
    return _AIRLINES[line["did"]].format(booking=line.get("booking") or "nothing")


def _rows(booked: Booked) -> list[Row]:
    """What the run recorded of the booking, what the airline did, and the kill, each at its time."""
    assert booked.timeline is not None
    moments = booked.timeline.moments
    begun = to_micros(moments[0].time)
    told: list[tuple[int, Part, Part]] = [
        (to_micros(moment.time), (moment.step or "run", "name"), _moment(moment, booked.held))
        for moment in moments
        if moment.kind == "opened" or (moment.step == "book" and moment.kind in _TOLD)
    ]
    airline = (*booked.held.before, *booked.held.after)
    told += [(line["at"], ("airline", "person"), _did(line)) for line in airline if line["did"] != "search"]
    if booked.held.killed_at:
        kill = f"{booked.held.killed} ended process {booked.held.agents[0]}"
        told.append((booked.held.killed_at, ("demo", "bad"), (kill, "bad")))
    told.sort(key=lambda row: row[0])
    return [(f"{(at - begun) / 1_000:.0f}", who, what) for at, who, what in told]


def _moment(moment: Moment, tried: Tried) -> Part:
    """What the store says of a moment; a holder's name is long, and this demonstration knows it by its process."""
    if moment.kind == "opened":
        begun = moment.facts["why"] == "new"
        return f"{'begun' if begun else 'taken up'} by process {tried.agents[0 if begun else 1]}"
    return moment.text, "good" if moment.kind == "probed" else ""
