"""The processes of the demonstration, as the one that starts them sees them: what they tell, and how they end.

Deliberately absent: a process that outlives its ``with`` block, the demonstration itself, or a minute.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

_PATIENCE_S = 60.0  # a process that takes longer than this is stuck


class AgentProcess:
    """A child process that runs one module of this folder. Whatever happens here, it ends with this ``with`` block."""

    def __init__(self, module: str, *arguments: str) -> None:
        command = [sys.executable, "-m", f"holdfast.doors.cli.demo.{module}", *arguments]
        self.started = time.perf_counter()
        # A session of its own: an interrupt from the keyboard is for this process, which then ends the child. Its
        # standard input is never written to, but it ends when this process does, however that comes about.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self._alarm = threading.Timer(_PATIENCE_S, self._process.kill)
        self._alarm.daemon = True

    @property
    def pid(self) -> int:
        return self._process.pid

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield what the child tells, as it tells it."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            yield json.loads(line)

    def kill(self) -> tuple[str, float]:
        """Kill it at once and return the signal that ended it, as the system reports it, and how long that took."""
        began = time.perf_counter()
        self._process.kill()
        status = self._process.wait()
        return signal.Signals(-status).name if status < 0 else f"exit code {status}", ms_since(began)

    def __enter__(self) -> Self:
        self._alarm.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        self._alarm.cancel()
        self._alarm.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def ms_since(began: float) -> float:
    return (time.perf_counter() - began) * 1_000
