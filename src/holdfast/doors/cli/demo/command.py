"""The demonstration: agents are killed in the middle of things, new ones go on, and every claim is measured.

This process starts the agents, listens to what they acknowledge, kills the first one for real, and compares afterwards
what was acknowledged with what is there. Deliberately absent: any number or outcome that was not measured in this run.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from itertools import count

import holdfast
from holdfast.doors import plain
from holdfast.doors.cli import exits
from holdfast.doors.cli.demo.booking import book_twice
from holdfast.doors.cli.demo.claims import Forked, Kill, Played, claims
from holdfast.doors.cli.demo.memory_story import MemoryStory
from holdfast.doors.cli.demo.process import AgentProcess, ms_since
from holdfast.doors.cli.demo.script import INTERRUPTED
from holdfast.doors.cli.demo.story import Story
from holdfast.doors.cli.desk import Desk
from holdfast.doors.cli.render import Screen
from holdfast.doors.cli.wording import database

DATABASE = "holdfast-demo.db"
THREAD = "trip-lisbon"
USER = "ana"
DAYS_AWAY = 35
_INTO_THE_TURN_S = 0.15  # so that the kill comes while the agent waits, not while it says that it will


def demo(desk: Desk) -> int:
    """Watch agents being killed at work, and going on.

    A child process holds a conversation and is killed with SIGKILL; a new process continues it. Another one is killed
    after it booked a flight and before it recorded that: without Holdfast you get two bookings, with it one. Every
    number printed is measured in that run. The store stays for you to look at: holdfast-demo.db here, or where --db
    says. Run it as often as you like; each run is a new thread.

    \b
    Examples:
      holdfast demo
      holdfast demo --db postgresql://localhost/agents
    """
    # Not HOLDFAST_DB: a demonstration has no business in someone's own store.
    url = DATABASE if desk.options.db is None else desk.options.db
    desk.live()
    tale = Story(Screen(io.StringIO()) if desk.options.json else desk.screen)
    played = _play(desk, url, tale)
    found = claims(played)
    held = all(each.holds for each in found)
    tale.measured(found)
    if played.forked is not None:
        tale.next_steps(url, played.thread, played.user)
    if desk.options.json:
        data = {**plain.plain(played), "database": database(url), "claims": plain.plain(found), "ok": held}
        desk.document(data)
    return exits.OK if held else exits.NO


def _play(desk: Desk, url: str, tale: Story) -> Played:
    with holdfast.open(url, tenant=desk.options.tenant) as store:
        tenant = store.tenant
        thread, user = next(pair for pair in _names() if _unknown(store, *pair))
    played = Played(url, thread, user)
    tale.begins(url, thread, DAYS_AWAY)
    _first_act(played, tenant, tale)
    _second_act(played, tenant, tale)
    played.booked = book_twice(url, tenant, thread, tale)
    with holdfast.open(url, tenant=tenant) as store:
        _look_closely(played, store)
    return played


def _names() -> Iterator[tuple[str, str]]:
    yield THREAD, USER
    yield from ((f"{THREAD}-{number}", f"{USER}-{number}") for number in count(2))


def _unknown(store: holdfast.Store, thread: str, user: str) -> bool:
    """Whether nothing is known of either: what is recalled in the end must come from this run alone."""
    known = store.thread(thread).exists() or store.threads(user=user, limit=1)
    return not (known or store.memory(user=user).memories(limit=1))


def _first_act(played: Played, tenant: str, tale: Story) -> None:
    """Let an agent talk, and kill it in the middle of a turn."""
    options = ("--days-back", str(DAYS_AWAY), "--slow", str(INTERRUPTED))
    telling = MemoryStory(tale)
    with AgentProcess("agent", played.database, tenant, played.thread, played.user, *options) as agent:
        tale.first_agent(agent.pid)
        for event in agent.events():
            if event["event"] == "turn":
                played.acknowledged.append(event)
                tale.turn(event)
            elif event["event"] == "checkpoint":
                played.checkpoint = event
            elif event["event"] == "remembered":
                played.remembered.append(event)
                telling.remembered(event)
            elif event["event"] == "busy":
                tale.busy(event)
                time.sleep(_INTO_THE_TURN_S)
                played.killed = Kill(agent.pid, event["turn"], *agent.kill())
                tale.killed(agent.pid, played.killed.signal, played.killed.gone_ms, len(played.acknowledged))
                return


def _second_act(played: Played, tenant: str, tale: Story) -> None:
    """Start a new agent on the same store, let it finish, and ask it what the first one knew."""
    telling = MemoryStory(tale)
    with AgentProcess("agent", played.database, tenant, played.thread, played.user, "--ask") as agent:
        tale.second_agent(agent.pid)
        for event in agent.events():
            if event["event"] == "knows":
                played.knew, played.knew_after_ms = event, ms_since(agent.started)
                tale.knows(event, played.knew_after_ms)
            elif event["event"] == "turn":
                played.afterwards.append(event)
                tale.turn(event)
            elif event["event"] == "recalled":
                played.recalled.append(event)
                telling.recalled(event)


def _look_closely(played: Played, store: holdfast.Store) -> None:
    """Look at the store from this process, which neither agent ever was."""
    thread = store.thread(played.thread)
    played.final = thread.state(dict).value or {}
    played.numbers = [entry.number for entry in thread.log()]
    if played.checkpoint and thread.exists():
        played.forked = _fork(thread, played.checkpoint["name"])
    began = time.perf_counter()
    played.verified = store.verify()
    played.verify_ms = ms_since(began)


def _fork(thread: holdfast.Thread, checkpoint: str) -> Forked:
    name = f"{thread.id}-by-train"
    began = time.perf_counter()
    fork = thread.fork(name, at=checkpoint)
    took = ms_since(began)
    mine = fork.log()
    theirs = thread.log(after=0, limit=len(mine))
    shared = [entry.digest for entry in mine] == [entry.digest for entry in theirs]
    return Forked(name, checkpoint, len(mine), shared, took)
