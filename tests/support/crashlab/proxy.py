"""Stands between a client and a Postgres, and can fail exactly when a commit passes by (or a call that is one).

``at_commit`` is asked at each one what shall become of it: "pass" it on, "lose the commit", so that it never reaches
the server, or "lose the answer", so that the server carries it out and the client is not told. What is asked may do
something first, such as end the backend; ``at_lost_answer`` may do so once the commit has taken effect. Deliberately
absent: networks. Both sides are sockets in a folder.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

Passage = Literal["pass", "lose the commit", "lose the answer"]

_SOCKET = ".s.PGSQL.5432"
_COMMITS = re.compile(b"COMMIT\x00|holdfast_commit")
_DONE = b"Z\x00\x00\x00\x05I"  # the server is ready for the next, and in no transaction


class Proxy:
    """Listens in ``folder`` and passes everything on to the server whose socket is in ``target``."""

    def __init__(self, folder: Path, target: Path) -> None:
        self.at_commit: Callable[[], Passage] = lambda: "pass"
        self.at_lost_answer: Callable[[], object] = lambda: None
        self.folder = folder
        self._target = str(target / _SOCKET)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / _SOCKET))
        self._listener.listen()
        self._sockets = [self._listener]
        self._lost: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Cut every connection, and end."""
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for each in self._sockets:
            each.close()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                server = socket.socket(socket.AF_UNIX)
                self._sockets.append(server)
                try:
                    server.connect(self._target)
                except OSError:  # the server is away
                    client.shutdown(socket.SHUT_RDWR)
                    continue
                self._start(self._forward, client, server)
                self._start(self._back, server, client)

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65_536):
                passage = self.at_commit() if _COMMITS.search(data) else "pass"
                if passage == "lose the commit":
                    client.shutdown(socket.SHUT_RDWR)
                    break
                if passage == "lose the answer":
                    self._lost.add(server)
                server.sendall(data)
        with suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _back(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65_536):
                if server in self._lost and _DONE in data:
                    self.at_lost_answer()
                    break
                client.sendall(data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)
