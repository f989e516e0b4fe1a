"""The airline of the demonstration: a booking service in a process of its own, over HTTP on this machine alone.

It is careless, as services are: two requests make two bookings. It takes an ``Idempotency-Key`` and keeps it beside
the booking, so that one can be looked up by it, but does not heed it. Whatever it does is a line in its book, a file
that is synced before anyone gets an answer. Deliberately absent: anything of Holdfast but the clock, and any care that
would spare its clients theirs.
"""

from __future__ import annotations

import json
import os
import socketserver
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote

from holdfast.clock import SystemClock
from holdfast.doors.cli.demo.child import tell, wait_for_the_end

_FLIGHT = {"flight": "TP 534", "departs": "18:20", "fare": "142 EUR"}


class BookingFile:
    """What the airline did, one JSON document a line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._clock = SystemClock()
        self._lines: list[dict[str, Any]] = []

    def write(self, did: str, **facts: Any) -> None:
        line = {"did": did, "at": self._clock.now(), **facts}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._lines.append(line)

    def bookings(self) -> list[dict[str, Any]]:
        return [line for line in self._lines if line["did"] == "book"]


class AirlineHandler(BaseHTTPRequestHandler):
    """Answers one request."""

    book: ClassVar[BookingFile]
    timeout = 10

    def do_GET(self) -> None:
        if self.path.startswith("/flights/"):
            self.book.write("search", day=unquote(self.path.removeprefix("/flights/")))
            self._answer(HTTPStatus.OK, _FLIGHT)
        elif self.path.startswith("/bookings/"):
            key = unquote(self.path.removeprefix("/bookings/"))
            found = next((line for line in self.book.bookings() if line["key"] == key), None)
            self.book.write("look up", key=key, booking=found and found["booking"])
            self._answer(HTTPStatus.OK if found else HTTPStatus.NOT_FOUND, found and _slip(found))
        else:
            self._answer(HTTPStatus.NOT_FOUND, None)

    def do_POST(self) -> None:
        wanted = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))))
        key = self.headers.get("Idempotency-Key", "")
        code = f"4TZ{len(self.book.bookings()) + 1}K"
        self.book.write("book", key=key, booking=code, flight=wanted["flight"], passenger=wanted["passenger"])
        self._answer(HTTPStatus.CREATED, _slip(self.book.bookings()[-1]))

    def _answer(self, status: HTTPStatus, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the book has it all."""


def _slip(line: dict[str, Any]) -> dict[str, Any]:
    """What a passenger gets of a booking."""
    return {name: line[name] for name in ("booking", "flight", "passenger")}


def main() -> None:
    AirlineHandler.book = BookingFile(Path(sys.argv[1]))
    # Not HTTPServer, which asks the network for this machine's name before it serves.
    with socketserver.TCPServer(("127.0.0.1", 0), AirlineHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        tell("listening", port=server.server_address[1])
        wait_for_the_end()


if __name__ == "__main__":
    main()
