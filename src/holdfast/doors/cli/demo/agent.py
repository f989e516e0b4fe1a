"""The agent of the demonstration: a process of its own that talks with Ana through the public interface alone.

It tells its parent on standard output, one JSON document a line, what it knows when it starts, and each turn only
after the commit of that turn returned. Nothing is handed over between two of these processes but the database.
Deliberately absent: any thought of being killed. There is no handler, no cleanup and no file beside the store.
"""

from __future__ import annotations

import argparse
import os
import time
from datetime import timedelta

import msgspec

import holdfast
from holdfast.clock import SystemClock, to_datetime
from holdfast.doors.cli.demo.child import tell, wait_for_the_end
from holdfast.doors.cli.demo.memory import ask
from holdfast.doors.cli.demo.script import CONVERSATION, TODAY, Noted, ScriptedTurn, welcome

_THINKING_S = 0.12  # what a model would take, only much less
_WINDOW = 50


class EarlierClock:
    """This machine's clock, set back."""

    def __init__(self, by: timedelta) -> None:
        self._clock = SystemClock()
        self._by = by // timedelta(microseconds=1)

    def now(self) -> int:
        return self._clock.now() - self._by


class TravelAgent:
    """One run of the agent on one thread."""

    def __init__(self, thread: holdfast.Thread, memory: holdfast.Memories, clock: EarlierClock, slow: int) -> None:
        self._thread, self._memory, self._clock, self._slow = thread, memory, clock, slow
        self._state = holdfast.AgentState()

    def begin(self, opened_ms: float) -> list[str]:
        """Load what is known, tell it, and return the keys of the turns that are in the log."""
        began = time.perf_counter()
        loaded = self._thread.state(holdfast.AgentState, default=self._state)
        entries = self._thread.log(last=_WINDOW)
        loaded_ms = _since(began)
        self._state = loaded.value
        turns = list(dict.fromkeys((entry.key or "").split("\x1f")[0] for entry in entries))
        tell(
            "knows", pid=os.getpid(), open_ms=opened_ms, load_ms=loaded_ms, turns=turns,
            entries=entries[-1].number if entries else 0, digest=entries[-1].digest.hex() if entries else "",
            revision=loaded.revision, state=msgspec.to_builtins(loaded.value), stale=msgspec.to_builtins(loaded.stale),
            must_verify=loaded.must_verify,
        )  # fmt: skip
        if loaded:
            self._welcome(loaded)
        return turns

    def _welcome(self, loaded: holdfast.types.Loaded[holdfast.AgentState]) -> None:
        """Ask the world again about every fact that must be verified, and greet whoever is there."""
        checked = {}
        with self._thread.turn(key="welcome") as turn:
            for path in loaded.must_verify:
                name = path.rsplit(".", 1)[-1]
                by, now = TODAY[name]
                turn.append(holdfast.tool_call("check", {"fact": name, "with": by}), holdfast.observation(now))
                before = self._state.fact(name)
                checked[name] = (before and before.value, now)
                self._state = self._state.with_fact(name, now, at=to_datetime(self._clock.now()), by=by)
            said = welcome(self._state, checked)
            turn.append(holdfast.message("assistant", said))
            turn.save(self._state)
            began = time.perf_counter()
        self._acknowledge("welcome", turn, began, None, said)

    def converse(self, number: int, exchange: ScriptedTurn) -> None:
        """Take one exchange: everything of it in one commit, told once that commit returned."""
        key = f"turn-{number}"
        with self._thread.turn(key=key) as turn:
            turn.append(holdfast.message("user", exchange.asks))
            if exchange.call is not None:
                turn.append(holdfast.tool_call(*exchange.call))
                self._wait(number, exchange)
                turn.append(holdfast.observation(exchange.result))
            time.sleep(_THINKING_S)
            turn.append(holdfast.message("assistant", exchange.answers))
            self._state = exchange.change(self._state, to_datetime(self._clock.now()))
            turn.save(self._state)
            began = time.perf_counter()
        self._acknowledge(key, turn, began, exchange.asks, exchange.answers)
        if exchange.remembers is not None:
            self._remember(key, exchange.remembers, turn.entries[0].number)
        if exchange.checkpoint is not None:
            made = self._thread.checkpoint(exchange.checkpoint)
            tell("checkpoint", name=made.name, entries=made.entries, revision=made.revision)

    def _remember(self, turn: str, noted: Noted, heard: int) -> None:
        """Remember something for good, and where it was heard."""
        began = time.perf_counter()
        kept = self._memory.remember(
            noted.text, key=noted.key, origin={"by": "ana", "entries": [(self._thread.id, heard)]}
        )
        tell("remembered", turn=turn, id=kept.id, text=kept.text, key=kept.key, ms=_since(began))

    def _wait(self, number: int, exchange: ScriptedTurn) -> None:
        if number == self._slow and exchange.call is not None:
            tell("busy", turn=number, asks=exchange.asks, call=exchange.call[0])
            wait_for_the_end()

    def _acknowledge(self, key: str, turn: holdfast.Turn, began: float, asks: str | None, answers: str) -> None:
        last = turn.entries[-1]
        tell(
            "turn", turn=key, asks=asks, answers=answers, entries=last.number, added=len(turn.entries),
            digest=last.digest.hex(), revision=turn.revision, commit_ms=_since(began),
        )  # fmt: skip


def _since(began: float) -> float:
    return (time.perf_counter() - began) * 1_000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("tenant")
    parser.add_argument("thread")
    parser.add_argument("user")
    parser.add_argument("--days-back", type=int, default=0)
    parser.add_argument("--slow", type=int, default=0)
    parser.add_argument("--ask", action="store_true")
    given = parser.parse_args()
    clock = EarlierClock(timedelta(days=given.days_back))
    began = time.perf_counter()
    with holdfast.open(given.url, tenant=given.tenant, clock=clock) as store:
        opened_ms = _since(began)
        thread = store.thread(given.thread, user=given.user, agent="travel", tags=["demo"])
        memory = store.memory(user=given.user)
        agent = TravelAgent(thread, memory, clock, given.slow)
        known = agent.begin(opened_ms)
        for number, exchange in enumerate(CONVERSATION, 1):
            if f"turn-{number}" not in known:
                agent.converse(number, exchange)
        if given.ask:
            ask(memory)
    tell("done")


if __name__ == "__main__":
    main()
