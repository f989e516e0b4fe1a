"""The second half of the demonstration: an agent is killed between a booking and its record, twice.

First without Holdfast, then with it; each time against an airline of its own, whose book is read from here and decides
what is claimed. Deliberately absent: trusting what an agent says about its bookings.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import holdfast
from holdfast.clock import SystemClock
from holdfast.doors.cli.demo.booking_story import BookingStory
from holdfast.doors.cli.demo.claims import Booked, Tried
from holdfast.doors.cli.demo.process import AgentProcess, ms_since
from holdfast.doors.cli.demo.script import RUN
from holdfast.doors.cli.demo.story import Story
from holdfast.errors import NotFound, Unavailable

_AGENT = "booking_agent"


class Airline:
    """The booking service, as the demonstration sees it: a door for agents, and a book to be read."""

    def __init__(self, pid: int, port: int, book: Path) -> None:
        self.pid, self.port = pid, port
        self._book = book

    def book(self) -> list[dict[str, Any]]:
        """Everything it did so far."""
        return [json.loads(line) for line in self._book.read_text("utf-8").splitlines()] if self._book.exists() else []


@contextmanager
def _airline(folder: Path, name: str) -> Iterator[Airline]:
    book = folder / f"{name}.jsonl"
    with AgentProcess("airline", str(book)) as service:
        told = next(service.events(), None)
        if told is None:
            raise Unavailable("the airline of the demonstration did not start; what it said is above")
        yield Airline(service.pid, told["port"], book)


def book_twice(url: str, tenant: str, thread: str, tale: Story) -> Booked:
    """Book a flight home with and without Holdfast, each time killed in the worst moment and started again."""
    booked, telling = Booked(), BookingStory(tale)
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        with _airline(Path(folder), "without") as airline:
            telling.without(airline.pid)
            _killed(booked.without, airline, telling)
            _again(booked.without, airline, telling)
        telling.orphaned(booked.without)
        with _airline(Path(folder), "held") as airline:
            telling.held(airline.pid)
            store = ("--store", url, tenant, thread)
            _killed(booked.held, airline, telling, *store)
            booked.left = _left(_timeline(url, tenant, thread))
            telling.left(booked.left)
            _again(booked.held, airline, telling, *store)
    booked.timeline = _timeline(url, tenant, thread)
    telling.kept(booked)
    return booked


def _killed(tried: Tried, airline: Airline, telling: BookingStory, *store: str) -> None:
    """Let an agent book, and kill it before it can record that it did."""
    with AgentProcess(_AGENT, str(airline.port), "--doomed", *store) as agent:
        tried.agents.append(agent.pid)
        if any(event["event"] == "booked" for event in agent.events()):
            tried.killed, tried.killed_ms = agent.kill()
            tried.killed_at = SystemClock().now()
    tried.before = airline.book()
    telling.killed(tried)


def _again(tried: Tried, airline: Airline, telling: BookingStory, *store: str) -> None:
    """Start the same agent again and let it come to its end."""
    with AgentProcess(_AGENT, str(airline.port), *store) as agent:
        tried.agents.append(agent.pid)
        for event in agent.events():
            if event["event"] == "has":
                tried.has, tried.has_after_ms = event["booking"], ms_since(agent.started)
            elif event["event"] == "said":
                tried.said = event["text"]
    tried.after = airline.book()[len(tried.before) :]
    telling.again(tried, durable=bool(store))


def _timeline(url: str, tenant: str, thread: str) -> holdfast.types.Timeline | None:
    """The run as a third process finds it in the store; None where it finds nothing."""
    with holdfast.open(url, tenant=tenant) as store:
        try:
            return store.thread(thread).timeline(RUN)
        except NotFound:
            return None


def _left(timeline: holdfast.types.Timeline | None) -> str:
    """Where the step that books stands."""
    steps = timeline.steps if timeline is not None else ()
    return next((step.standing for step in steps if step.name == "book"), "nothing")
