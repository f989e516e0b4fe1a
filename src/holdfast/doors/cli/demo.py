"""The demonstration: an agent is killed in the middle of a turn, a new one goes on, and every claim is measured.

This process starts the agents, listens to what they acknowledge, kills the first one for real, and compares afterwards
what was acknowledged with what is there. Deliberately absent: any number or outcome that was not measured in this run.
"""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from types import TracebackType
from typing import Any, Self

import holdfast
from holdfast.doors.cli import exits, plain
from holdfast.doors.cli.demo_claims import Forked, Killed, Played, claims
from holdfast.doors.cli.demo_script import INTERRUPTED
from holdfast.doors.cli.demo_tale import Tale
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.render import Screen
from holdfast.doors.cli.wording import database

DATABASE = "holdfast-demo.db"
THREAD = "trip-lisbon"
DAYS_AWAY = 35
_INTO_THE_TURN_S = 0.15  # so that the kill comes while the agent waits, not while it says that it will


class AgentProcess:
    """A child process that runs the agent. Whatever happens here, it does not outlive this ``with`` block."""

    def __init__(self, url: str, tenant: str, thread: str, *options: str) -> None:
        command = [sys.executable, "-m", "holdfast.doors.cli.demo_agent", url, tenant, thread, *options]
        self.started = time.perf_counter()
        # A session of its own: an interrupt from the keyboard is for this process, which then ends the agent.
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield what the agent tells, as it tells it."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            yield json.loads(line)

    def kill(self) -> tuple[str, float]:
        """Kill it at once and return the signal that ended it, as the system reports it, and how long that took."""
        began = time.perf_counter()
        self._process.kill()
        status = self._process.wait()
        return signal.Signals(-status).name if status < 0 else f"exit code {status}", _ms(began)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def _ms(began: float) -> float:
    return (time.perf_counter() - began) * 1_000


def demo(desk: Desk) -> int:
    """See an agent killed in mid-turn, and a new one go on.

    A child process holds a conversation and is killed with SIGKILL; a new process continues it. What is printed was
    measured in that run. The store is kept (holdfast-demo.db here, or where --db says) for you to look at. Run it as
    often as you like: each run is a new thread.

    \b
    Examples:
      holdfast demo
      holdfast demo --db postgresql://localhost/agents
    """
    # Not HOLDFAST_DB: nobody wants a play performed in their own store by accident.
    url = DATABASE if desk.options.db is None else desk.options.db
    desk.live()
    tale = Tale(Screen(io.StringIO()) if desk.options.json else desk.screen)
    played = _play(desk, url, tale)
    found = claims(played)
    held = all(each.holds for each in found)
    tale.measured([(each.claim, each.measured, each.holds) for each in found])
    if played.forked is not None:
        tale.next_steps(url, played.thread, played.forked.thread, played.knew.get("revision", 0))
    if desk.options.json:
        data = {**plain.plain(played), "database": database(url), "claims": plain.plain(found), "ok": held}
        desk.document(data)
    return exits.OK if held else exits.NO


def _play(desk: Desk, url: str, tale: Tale) -> Played:
    with holdfast.open(url, tenant=desk.options.tenant) as store:
        tenant = store.tenant
        thread = next(name for name in _names() if not store.thread(name).exists())
    played = Played(url, thread)
    tale.begins(url, thread, DAYS_AWAY)
    _first_act(played, tenant, tale)
    _second_act(played, tenant, tale)
    with holdfast.open(url, tenant=tenant) as store:
        _look_closely(played, store)
    return played


def _names() -> Iterator[str]:
    yield THREAD
    yield from (f"{THREAD}-{number}" for number in count(2))


def _first_act(played: Played, tenant: str, tale: Tale) -> None:
    """Let an agent talk, and kill it in the middle of a turn."""
    options = ("--days-back", str(DAYS_AWAY), "--slow", str(INTERRUPTED))
    with AgentProcess(played.database, tenant, played.thread, *options) as agent:
        tale.first_agent(agent.pid)
        for event in agent.events():
            if event["event"] == "turn":
                played.acknowledged.append(event)
                tale.turn(event)
            elif event["event"] == "checkpoint":
                played.checkpoint = event
                tale.checkpoint(event)
            elif event["event"] == "busy":
                tale.busy(event)
                time.sleep(_INTO_THE_TURN_S)
                played.killed = Killed(agent.pid, event["turn"], *agent.kill())
                tale.killed(agent.pid, played.killed.signal, played.killed.gone_ms, len(played.acknowledged))
                return


def _second_act(played: Played, tenant: str, tale: Tale) -> None:
    """Start a new agent on the same store and let it finish."""
    with AgentProcess(played.database, tenant, played.thread) as agent:
        tale.second_agent(agent.pid)
        for event in agent.events():
            if event["event"] == "knows":
                played.knew, played.knew_after_ms = event, _ms(agent.started)
                tale.knows(event, played.knew_after_ms)
            elif event["event"] == "turn":
                played.afterwards.append(event)
                tale.turn(event)


def _look_closely(played: Played, store: holdfast.Store) -> None:
    """Look at the store from this process, which neither agent ever was."""
    thread = store.thread(played.thread)
    played.final = thread.state(dict).value or {}
    played.numbers = [entry.number for entry in thread.log()]
    if played.checkpoint and thread.exists():
        played.forked = _fork(thread, played.checkpoint["name"])
    began = time.perf_counter()
    played.verified = store.verify()
    played.verify_ms = _ms(began)


def _fork(thread: holdfast.Thread, checkpoint: str) -> Forked:
    name = f"{thread.id}-by-train"
    began = time.perf_counter()
    fork = thread.fork(name, at=checkpoint)
    took = _ms(began)
    mine = fork.log()
    theirs = thread.log(after=0, limit=len(mine))
    shared = [entry.digest for entry in mine] == [entry.digest for entry in theirs]
    return Forked(name, checkpoint, len(mine), shared, took)
