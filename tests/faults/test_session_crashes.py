"""Every point at which a session's turn can be struck: a crash, a pause past the lease, a commit of unknown outcome.

The points come from a dry run: around every commit, around every effect in the outside world, and around every call of
the model. After the blow another process does what a program does that comes back: it starts a session and looks what
was left. Then the log must be a conversation with one answer to the question, and nothing done twice.
"""

from __future__ import annotations

import contextvars
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import Any

import msgspec
import pytest
from crashlab.laboratory import FATES, InFile, InMemory, Place
from crashlab.world import Booking, World

import holdfast
from holdfast.errors import Conflict, HoldfastError, Unavailable
from holdfast.ledger.core import Core
from holdfast.providers.models.model import Reply, ToolCall, Usage
from holdfast.sessions.session import Session
from holdfast.steps.runs import RunBook
from holdfast.steps.step_context import current_step
from holdfast.testing import ManualClock
from holdfast.testing.crashing import Crash, Doubt, Fuse, MortalEngine
from holdfast.testing.fakes import SeededIds
from holdfast.wiring import Wiring

ASKED, OTHER = "Book the flight to Lisbon. I live in Porto.", "And a hotel?"
LEASE_S = 30.0


class Agent:
    """A model that decides by what it is shown: it charges, notifies, and answers; calls of it are points."""

    name = "agent"

    def __init__(self, point: Callable[[str], None]) -> None:
        self._point = point

    def stream(self, messages: Sequence[dict[str, Any]], **_: Any) -> Iterator[str | Reply]:
        done = [message for message in messages if message["role"] == "tool"]
        self._point(f"before model {len(done)}")
        if OTHER in str(messages[-1]["content"]):
            reply = Reply("A hotel too.")
        elif len(done) < 2:
            tool = ("charge", "notify")[len(done)]
            reply = Reply(f"I {tool}.", (ToolCall("call", tool, {"what": "flight"}),))
        else:
            reply = Reply(f"Booked: {done[0]['content']}")
        yield reply.text
        self._point(f"after model {len(done)}")
        yield reply

    def reply(self, messages: Sequence[dict[str, Any]], **_: Any) -> Reply:
        return Reply("- they talked")

    def extract(self, messages: Sequence[dict[str, Any]], shape: Any, **_: Any) -> tuple[Any, Usage]:
        self._point("before extract")
        at = re.search(r"\[(\d+)\] user[^:]*:\d\d: .*I live in Porto", messages[-1]["content"])
        if at is None:
            return shape(), Usage()
        fact = {"text": "Ana lives in Porto.", "entry": int(at[1]), "quote": "I live in Porto", "key": "home"}
        return msgspec.convert({"facts": [fact]}, shape), Usage()


class Life:
    """One process: its store, the world as it sees it, and the texts of answers it was given, which outlive it."""

    def __init__(self, store: holdfast.Store, world: World, fuse: Fuse, told: list[str]) -> None:
        self.store, self.world, self.fuse, self.told = store, world, fuse, told
        self.learns = False

    def session(self, **ways: Any) -> Session:
        thread = self.store.thread("trip", user="ana")
        return self.store.session(
            thread, model=Agent(self.fuse.point), tools=self.tools(), **{"learn": "model", **ways}
        )

    def halves(self) -> Session:
        return self.store.session(self.store.thread("trip", user="ana"), learn="off")

    def tools(self) -> list[Any]:
        def find(what: str) -> Any:
            return self.world.find(current_step().key)

        @holdfast.step(effect="once", probe=find)
        def charge(what: str) -> Any:
            return self.world.book(current_step().key, "charge")

        @holdfast.step(effect="idempotent")
        def notify(what: str) -> Any:
            return self.world.book(current_step().key, "notify")

        return [charge, notify]

    @property
    def log(self) -> list[holdfast.types.Entry]:
        return self.store.thread("trip").log()

    def asked(self, text: str = ASKED) -> bool:
        return any(entry.kind == "message" and entry.content.get("content") == text for entry in self.log)


Program = Callable[[Life], None]


# What a program does that is started again and again


def resuming(life: Life) -> None:
    """Ask if it was never asked; resume what was not answered."""
    session = life.session()
    opening = session.start()
    if opening.unanswered is not None:
        assert opening.unanswered.content["content"] == ASKED
        life.told.append(session.resume().text)
    elif not life.asked():
        life.told.append(session.turn(ASKED, key="msg-1").text)


def repeating(life: Life) -> None:
    """Ask under a key, whatever is there."""
    life.told.append(life.session(learn="off").turn(ASKED, key="msg-1").text)


def streaming(life: Life) -> None:
    session = life.session(learn="off")
    said = session.resume_stream() if session.start().unanswered is not None else session.stream(ASKED, key="msg-1")
    list(said)
    assert session.answer is not None
    life.told.append(session.answer.text)


def in_halves(life: Life) -> None:
    """The same by a program that calls its model itself."""
    session, charge = life.halves(), life.tools()[0]
    exchange = session.resume() if session.start().unanswered is not None else None
    if exchange is None:
        if life.asked():
            return
        exchange = session.turn(ASKED, key="msg-1")
        if exchange.answer is not None:
            return
    with exchange as turn:
        made = turn.step("charge", charge, "flight")
        life.told.append(turn.reply(f"Booked: {made['ref']}").text)


def going_on(life: Life) -> None:
    """What was broken off is left, and something else is asked."""
    session = life.session(learn="off")
    if not life.asked():
        session.turn(ASKED, key="msg-1")
    elif not life.asked(OTHER) or session.start().unanswered is not None:
        life.told.append(session.turn(OTHER, key="other").text)


def asking_more(life: Life) -> None:
    """The next turn of all of them, after which nothing may be left open."""
    life.told.append(life.session().turn(OTHER, key="other").text)


# What must hold


def conversation(log: Sequence[holdfast.types.Entry]) -> list[str]:
    """Who spoke, and each call with its result. A call without its result right behind it is not a conversation."""
    found, open_call = [], ""
    for entry in log:
        if entry.kind == "event":
            continue
        assert not open_call or entry.kind == "observation", f"#{entry.number} comes between a call and its result"
        if entry.kind == "tool_call":
            open_call = entry.content["id"]
            found.append(f"{entry.content['name']}")
        elif entry.kind == "observation":
            assert entry.content["of"] == open_call
            open_call = ""
        elif entry.kind == "message":
            found.append(entry.content["role"])
    assert not open_call
    return found


def is_final(entry: holdfast.types.Entry) -> bool:
    """Whether this is an answer, and not what the agent says as it uses a tool."""
    spoken = entry.kind == "message" and entry.content["role"] == "assistant"
    return spoken and entry.content["content"].startswith(("Booked", "A hotel"))


def problems(life: Life, ended: bool, answers: int) -> Iterator[str]:
    """What is wrong after a blow, and at the end."""
    log = life.log if life.store.thread("trip").exists() else []
    yield from (f"verify: {problem.what}" for problem in life.store.verify().problems)
    said = conversation(log)
    questions = Counter(e.content["content"] for e in log if e.kind == "message" and e.content["role"] == "user")
    final = [entry.content["content"] for entry in log if is_final(entry)]
    yield from (f"asked {count} times: {text}" for text, count in questions.items() if count > 1)
    yield from (f"told {text!r}, which is not in the log" for text in life.told if text not in final)
    yield from (f"answered twice: {final}" for _ in [0] if len(final) != len(set(final)) or len(final) > answers)
    keys = Counter((booking.what, booking.key) for booking in life.world.bookings())
    yield from (f"charged {count} times" for (what, _), count in keys.items() if what == "charge" and count > 1)
    if life.world.totals()["charge"] > 1:
        yield "charged under two keys"
    if said.count("charge") > 1:
        yield "the charge is on record twice"
    homes = [version.memory.text for version in life.store.memory(user="ana").history("home")]
    if len(homes) > 1:
        yield f"learned more than once: {homes}"
    if ended and life.learns and not homes:
        yield "nothing was learned"
    if ended:
        if len(final) != answers:
            yield f"{len(final)} answers instead of {answers}: {said}"
        # Where the store was away, a lesson may have failed: its run says so, and the answer stands.
        allowed = {"holdfast.learn": ("done", "failed")}
        runs = [run for run in life.store.runs() if run.status not in allowed.get(run.handler, ("done",))]
        yield from (f"run {run.name} is {run.status}" for run in runs)


class Trials:
    """Goes through the points of a program in one place."""

    def __init__(self, place: Place, folder: Path, program: Program, answers: int = 2, *, honest: bool = True) -> None:
        self._place, self._world, self._program, self._answers = place, folder / "world.jsonl", program, answers
        self._honest, self._keyed = honest, False
        self.found: list[str] = []
        self.trials = 0

    def begin(self) -> None:
        self._world.unlink(missing_ok=True)
        self.clock, self._told, self._lives = ManualClock(), list[str](), 0
        self.trials += 1

    def live(self, fuse: Fuse, doubt: Doubt | None = None, program: Program | None = None) -> None:
        life = self._life(fuse, doubt)
        try:
            contextvars.Context().run(program or self._program, life)
        except Crash:
            pass
        except (Unavailable, Conflict):
            if doubt is None and fuse._instead is None:
                raise
        finally:
            life.store.wiring.runs.renewer.close()
        self.clock.advance(LEASE_S + 1)

    def _life(self, fuse: Fuse, doubt: Doubt | None = None) -> Life:
        self._lives += 1
        ids = SeededIds(self._lives)
        engine = MortalEngine(self._place.open(self.clock, ids), fuse, doubt)
        core = Core(engine, "default", self.clock, holdfast.Registry())
        world = World(self._world, keyed=self._keyed, synced=False, honest=self._honest, point=fuse.point)
        return Life(holdfast.Store(Wiring(core, RunBook(core, ids, LEASE_S))), world, fuse, self._told)

    def points(self, *before: int) -> list[str]:
        self.begin()
        try:
            for at in before:
                self.live(Fuse(at))
            self.live(last := Fuse())
            return last.names
        finally:
            self._place.end()

    def strike(self, where: str, *blows: Callable[[], None]) -> None:
        """One trial: blows, after each a look; then two more lives, the second of which must find nothing to do."""
        self.begin()
        try:
            for blow in blows:
                blow()
                self._look(where, ended=False)
            self.live(Fuse())
            self.live(Fuse())
            self.live(Fuse(), program=asking_more)
            self._look(where, ended=True)
        except (HoldfastError, AssertionError) as error:
            self.found.append(f"{where}: {type(error).__name__}: {error}")
        finally:
            self._place.end()

    def _look(self, where: str, *, ended: bool) -> None:
        life = self._life(Fuse())
        life.learns = self._program is resuming
        self.found += [f"{where}: {problem}" for problem in problems(life, ended, self._answers)]
        life.store.wiring.runs.renewer.close()

    # Blows

    def crash_everywhere(self) -> None:
        for at, name in enumerate(self.points()):
            self.strike(f"crash {name}", partial(self.live, Fuse(at)))

    def crash_twice_everywhere(self, some: Any) -> None:
        for first, name in enumerate(self.points()):
            for second, then in some(enumerate(self.points(first)), 5):
                blows = [partial(self.live, Fuse(at)) for at in (first, second)]
                self.strike(f"crash {name}; then {then}", *blows)

    def doubt_everywhere(self) -> None:
        commits = sum(name.startswith("before commit") for name in self.points())
        for at, fate in product(range(commits), FATES):
            doubt = Doubt(at, fate)
            self.strike(f"{fate} commit {at}", partial(self.live, Fuse(), doubt))

    def pause_everywhere(self) -> None:
        """Sleep past the lease while another process takes over and ends the turn, and then wake up.

        No store can hold back a function that already runs, so the service knows a key when it sees it again.
        """
        self._keyed = True
        for at, name in enumerate(self.points()):
            self.strike(f"paused {name}", partial(self.live, Fuse(at, self._other_takes_over)))

    def _other_takes_over(self) -> None:
        self.clock.advance(LEASE_S + 1)
        self.live(Fuse())


def told(log: Sequence[holdfast.types.Entry], booking: Booking) -> bool:
    """Whether something that was done is on record: with what came of it, or as something that nobody could tell."""
    results = [entry.content["content"] for entry in log if entry.kind == "observation"]
    return any(booking.ref in result or "is unknown" in result for result in results)


class GoingOn(Trials):
    """Something else is asked after the blow: the first question may stay without an answer, what was done may not."""

    def _look(self, where: str, *, ended: bool) -> None:
        life = self._life(Fuse())
        found = list(problems(life, False, self._answers))
        log = life.log
        if ended:
            last = [entry for entry in log if entry.kind == "message"][-1]
            found += [f"the last word is {last.content}"] if last.content["content"] != "A hotel too." else []
            over = ("done", "failed", "stopped", "interrupted")  # failed: it was given up, and can be taken up again
            found += [f"run {run.name} is {run.status}" for run in life.store.runs() if run.status not in over]
            found += [f"{booking.ref} is not on record" for booking in life.world.bookings() if not told(log, booking)]
        self.found += [f"{where}: {problem}" for problem in found]
        life.store.wiring.runs.renewer.close()


PROGRAMS: dict[str, tuple[Program, int]] = {
    "resuming": (resuming, 2),
    "repeating": (repeating, 2),
    "streaming": (streaming, 2),
    "in halves": (in_halves, 2),
}
by_name = pytest.mark.parametrize("name", PROGRAMS)
TECHNIQUES = ("crash_everywhere", "doubt_everywhere", "pause_everywhere")


def assert_kept(trials: Trials, least: int = 20) -> None:
    assert not trials.found, "\n".join(
        [f"{len(trials.found)} violations in {trials.trials} trials", *trials.found[:30]]
    )
    assert trials.trials > least


def test_the_points_of_a_turn(tmp_path: Path) -> None:
    """What is struck: the question, its run, each reply and each tool, the answer, the lesson."""
    names = Trials(InMemory(), tmp_path, resuming).points()
    wanted = (
        "commit 0: log", "before model 0", "intent charge-0.0", "after effect charge", "completed charge-0.0",
        "before model 1", "completed notify-1.0", "after model 2", "before extract", "completed extract",
    )  # fmt: skip
    found = "; ".join(names)
    assert [name for name in wanted if name not in found] == []


@pytest.mark.parametrize("technique", TECHNIQUES)
@by_name
def test_a_turn_that_is_struck_anywhere_is_answered_once(name: str, technique: str, tmp_path: Path) -> None:
    trials = Trials(InMemory(), tmp_path, *PROGRAMS[name])
    getattr(trials, technique)()
    assert_kept(trials, least=10)


def test_a_probe_that_lies_is_found_out(tmp_path: Path) -> None:
    """The negative control: without a truthful probe the charge is made twice, and the sweep must say so."""
    trials = Trials(InMemory(), tmp_path, repeating, honest=False)
    trials.crash_everywhere()
    assert any("charged 2 times" in problem for problem in trials.found), trials.found


def test_an_answer_without_a_key_of_its_question_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another negative control: two who answer one question, with nothing that recognises the second."""
    numbers = count()
    for module in ("turn", "session"):
        where = f"holdfast.sessions.{module}.answer_key"
        monkeypatch.setattr(where, lambda question: f"answer:{next(numbers)}", raising=False)
    trials = Trials(InMemory(), tmp_path, repeating)
    trials.pause_everywhere()
    assert any("answered twice" in problem for problem in trials.found), trials.found


@pytest.mark.parametrize("technique", ["crash_everywhere", "doubt_everywhere"])
def test_another_question_after_a_blow_knows_what_was_done(technique: str, tmp_path: Path) -> None:
    trials = GoingOn(InMemory(), tmp_path, going_on)
    getattr(trials, technique)()
    assert_kept(trials, least=10)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resuming", "in halves"])
def test_a_second_crash_during_the_recovery_changes_nothing(name: str, tmp_path: Path, some: Any) -> None:
    trials = Trials(InMemory(), tmp_path, *PROGRAMS[name])
    trials.crash_twice_everywhere(some)
    assert_kept(trials, least=30)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["repeating", "in halves"])
def test_a_turn_that_crashes_anywhere_on_sqlite(name: str, tmp_path: Path) -> None:
    trials = Trials(InFile(tmp_path), tmp_path, *PROGRAMS[name])
    trials.crash_everywhere()
    assert_kept(trials, least=10)
