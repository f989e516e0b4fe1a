"""The agent that books: the same three things with Holdfast and without it, in a process of its own.

A doomed one stops where it hurts most, when the airline has booked and nobody else knows of it yet, and waits to be
killed. Nothing is handed over to the next process but the database. Deliberately absent: any thought of having been
started before, other than what ``thread.run`` brings with it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import holdfast
from holdfast.doors.cli.demo.child import tell, wait_for_the_end
from holdfast.doors.cli.demo.script import ASKS_FOR_HOME, DAY_HOME, PASSENGER, RUN, booked_home
from holdfast.errors import RunHeld

_TIMEOUT_S = 10.0
_LEASE_S = 5.0  # waited for only where the system does not tell that a process has ended
_NAP_S = 0.1


class BookingAgent:
    """What this agent can do in the world. ``key`` is asked for a key that stays the same however often it tries."""

    def __init__(self, port: int, doomed: bool, key: Callable[[], str]) -> None:
        self._port, self._doomed, self._key = port, doomed, key

    def search(self, day: str) -> Any:
        return self._airline("GET", f"/flights/{quote(day)}")

    def book(self, flight: str, passenger: str) -> Any:
        booking = self._airline("POST", "/bookings", {"flight": flight, "passenger": passenger})
        if self._doomed:
            tell("booked", booking=booking["booking"])
            wait_for_the_end()
        return booking

    def look_up(self, flight: str, passenger: str) -> Any:
        """Ask the airline what it has under this step's key; None when there is nothing."""
        return self._airline("GET", f"/bookings/{quote(self._key(), safe='')}")

    def say(self, booking: dict[str, Any]) -> str:
        said = booked_home(booking)
        tell("said", text=said)
        return said

    def _airline(self, method: str, path: str, document: Any = None) -> Any:
        line = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_TIMEOUT_S)
        try:
            body = None if document is None else json.dumps(document).encode()
            line.request(method, path, body, {"Idempotency-Key": self._key()} if body else {})
            answer = line.getresponse()
            found = json.loads(answer.read())
            if answer.status not in (http.client.OK, http.client.CREATED, http.client.NOT_FOUND):
                raise ConnectionError(f"the airline answered {answer.status}")
            return found
        finally:
            line.close()


def without_holdfast(agent: BookingAgent) -> None:
    flight = agent.search(DAY_HOME)
    booking = agent.book(flight["flight"], PASSENGER)
    tell("has", booking=booking["booking"])
    agent.say(booking)


def with_holdfast(agent: BookingAgent, thread: holdfast.Thread) -> None:
    with _take_up(thread) as run:
        flight = run.step("search", agent.search, DAY_HOME, effect="pure")
        booking = run.step("book", agent.book, flight["flight"], PASSENGER, effect="once", probe=agent.look_up)
        tell("has", booking=booking["booking"])
        run.step("tell", agent.say, booking, effect="idempotent", log=_as_said)


def _as_said(text: str) -> Any:
    return holdfast.message("assistant", text)


def _take_up(thread: holdfast.Thread) -> holdfast.Run:
    """Take the run, waiting for its lease to end only where nobody can see that its holder is dead."""
    give_up = time.monotonic() + 2 * _LEASE_S
    while True:
        try:
            return thread.run(RUN)
        except RunHeld:
            if time.monotonic() > give_up:
                raise
            time.sleep(_NAP_S)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--store", nargs=3, metavar=("URL", "TENANT", "THREAD"))
    parser.add_argument("--doomed", action="store_true")
    given = parser.parse_args()
    if given.store is None:
        without_holdfast(BookingAgent(given.port, given.doomed, key=str))
        return
    url, tenant, name = given.store
    with holdfast.open(url, tenant=tenant, lease_s=_LEASE_S) as store:
        thread = store.thread(name, agent="travel", tags=["demo"])
        thread.append(holdfast.message("user", ASKS_FOR_HOME), key=RUN)
        with_holdfast(BookingAgent(given.port, given.doomed, key=lambda: holdfast.current_step().key), thread)


if __name__ == "__main__":
    main()
