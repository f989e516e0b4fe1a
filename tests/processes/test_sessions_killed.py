"""Sessions in real processes: killed with SIGKILL in the middle of a turn, and several of them at once in one thread.

A child stops where the test wants it and says so; then it is killed, and the parent comes back to what it left. What
was done outside is lines in a file, so that it is counted whatever became of the store.
"""

from __future__ import annotations

import json
import random
import select
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.providers.models.model import ToolCall
from holdfast.sessions.log_events import summary_of
from holdfast.testing.models import Scripted

pytestmark = pytest.mark.slow
PATIENCE_S = 60.0

CHILD = '''
import json, os, sys
import holdfast
from holdfast.providers.models.model import Reply, ToolCall, Usage
from holdfast.steps.step_context import current_step

db, world, how, stop, name = sys.argv[1:6]

def say(word):
    os.write(1, (word + "\\n").encode())

def at(point):
    """Stop here for ever, if this is the point; the parent kills."""
    if point == stop:
        say("at " + point)
        sys.stdin.readline()

def effect(what):
    file = os.open(world, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, (json.dumps([current_step().key, what]) + "\\n").encode())
    os.close(file)

def find(what):
    with open(world) as file:
        return next((done for key, done in map(json.loads, file) if key == current_step().key), None)

@holdfast.step(effect="once", probe=find)
def charge(what: str) -> str:
    at("before the effect")
    effect(what)
    at("after the effect")
    return what

class Agent:
    name = "agent"
    def stream(self, messages, **_):
        asked = str(messages[-1]["content"])
        done = messages[-1]["role"] == "tool"
        at("in the model" if not done else "in the second call")
        if not done:
            what = asked.rsplit(" ", 1)[-1]
            yield Reply("", (ToolCall("1", "charge", {"what": what}),))
            return
        yield "You were "
        at("in the middle of the answer")
        yield f"charged for {messages[-1]['content']} by {name}."
        yield Reply(f"You were charged for {messages[-1]['content']} by {name}.")
    def reply(self, messages, **_):
        return Reply("- they talked of charges")
    def extract(self, messages, shape, **_):
        at("in the lesson")
        return shape(), Usage()

with holdfast.open(db, embedder=None) as store:
    session = store.session(store.thread("t", user="ana"), model=Agent(), tools=[charge], budget=2000,
                            learn="model" if stop == "in the lesson" else "off")
    if how == "one":
        say("told " + session.turn("Charge me for flight").text)
    elif how == "key":
        say("ready")
        sys.stdin.readline()
        answer = None
        while answer is None:
            try:
                answer = session.turn("Charge me for flight", key="msg-1")
            except holdfast.errors.RunHeld:  # another is at it: hear what comes of that
                seen = [commit.position for commit in store.watch(timeout_s=0)]
                next(store.watch(after=seen[-1], timeout_s=0.2), None)
        say("told " + json.dumps([answer.text, answer.repeated, answer.question.number]))
    elif how == "talk":
        say("ready")
        sys.stdin.readline()
        for number in range(12):
            say("told " + session.turn(f"{name} " + "um " * 40 + f"asks for {name}{number}").text)
    elif how == "on and on":
        number = int(name)
        while True:
            key = f"msg-{number}"
            say(f"told {key} " + session.turn(f"Charge me for thing{number}", key=key).text)
            number += 1
'''


class World:
    """The files of one test, and the children that use them."""

    def __init__(self, folder: Path) -> None:
        self.db, self.path = folder / "agent.db", folder / "world.jsonl"
        self.children: list[subprocess.Popen[bytes]] = []

    def child(self, how: str, stop: str = "", name: str = "a") -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", CHILD, str(self.db), str(self.path), how, stop, name]
        child = subprocess.Popen(  # without a buffer, in which a line could lie that select does not see
            command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.children.append(child)
        return child

    def effects(self) -> list[str]:
        return [json.loads(line)[1] for line in self.path.read_text().splitlines()] if self.path.exists() else []

    @contextmanager
    def store(self) -> Iterator[holdfast.Store]:
        with holdfast.open(self.db, embedder=None) as store:
            yield store

    def close(self) -> None:
        for child in self.children:
            child.kill()
            child.communicate()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    found = World(tmp_path)
    yield found
    found.close()


def line(child: subprocess.Popen[bytes]) -> str:
    """The next line of a child; what it wrote to its error output if there is none."""
    assert child.stdout is not None
    assert child.stderr is not None
    ready, _, _ = select.select([child.stdout], [], [], PATIENCE_S)
    assert ready, "the child says nothing"
    said = child.stdout.readline().decode().strip()
    assert said, child.stderr.read()[-2_000:].decode()
    return said


def killed_at(world: World, point: str) -> None:
    child = world.child("one", point)
    assert line(child) == f"at {point}"
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL


def go(*children: subprocess.Popen[bytes]) -> None:
    for child in children:
        assert line(child) == "ready"
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"go\n")


def tool(world: World) -> Any:
    """The same tool in the parent; it must not be needed for what was done already."""
    done: list[str] = []

    def find(what: str) -> str | None:
        return next((one for one in world.effects() if one == what), None)

    @holdfast.step(effect="once", probe=find)
    def charge(what: str) -> str:
        done.append(what)
        with world.path.open("a") as file:
            file.write(json.dumps(["parent", what]) + "\n")
        return what

    return charge


def said(thread: holdfast.Thread) -> list[str]:
    return [f"{e.content['role']}: {e.content['content']}" for e in thread.log() if e.kind == "message"]


def assert_conversation(thread: holdfast.Thread) -> None:
    """Every call has its result right behind it."""
    for entry, after in pairwise(thread.log()):
        if entry.kind == "tool_call":
            assert (after.kind, after.content["of"]) == ("observation", entry.content["id"])


# Killed in the middle

POINTS = {
    "in the model": (0, ()),
    "before the effect": (0, ("is unknown",)),
    "after the effect": (1, ("is unknown",)),
    "in the second call": (1, ("flight",)),
    "in the middle of the answer": (1, ("flight",)),
}


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_turn_is_known_and_resumed(world: World, point: str) -> None:
    done, told = POINTS[point]
    killed_at(world, point)
    assert len(world.effects()) == done
    with world.store() as store:
        thread = store.thread("t", user="ana")
        call = [ToolCall("1", "charge", {"what": "flight"})] if point == "in the model" else []
        session = store.session(thread, model=Scripted(*call, "Charged."), tools=[tool(world)], learn="off")
        opening = session.start()
        assert opening.unanswered is not None
        assert [any(part in result for part in told) for _, result in opening.done] == [True] * len(told)
        assert session.resume().text == "Charged."
        assert world.effects() == ["flight"]
        assert said(thread) == ["user: Charge me for flight", "assistant: Charged."]
        assert_conversation(thread)
        assert [run.status for run in store.runs()] == ["done"]
        assert session.resume() is None
        assert store.verify().problems == ()


@pytest.mark.parametrize("point", POINTS)
def test_something_else_can_be_asked_after_a_kill(world: World, point: str) -> None:
    killed_at(world, point)
    effects = world.effects()
    with world.store() as store:
        thread = store.thread("t", user="ana")
        model = Scripted("It is late.")
        session = store.session(thread, model=model, tools=[tool(world)], learn="off")
        assert session.turn("What time is it?").text == "It is late."
        assert world.effects() == effects
        assert said(thread) == ["user: Charge me for flight", "user: What time is it?", "assistant: It is late."]
        assert_conversation(thread)
        shown = " ".join(str(message["content"]) for message in model.asked[0] if message["role"] == "tool")
        assert ("flight" in shown) == bool(effects)  # the probe was asked, and what it found is on record
        assert "is unknown" not in shown
        assert session.start().unanswered is None


def test_an_answer_stands_when_the_process_dies_in_the_lesson(world: World) -> None:
    killed_at(world, "in the lesson")
    with world.store() as store:
        session = store.session(store.thread("t", user="ana"), model=Scripted("next"), tools=[tool(world)], learn="off")
        assert session.start().unanswered is None
        assert session.resume() is None
        assert said(store.thread("t"))[-1] == "assistant: You were charged for flight by a."
        assert session.turn("And now?").text == "next"
        assert world.effects() == ["flight"]


def test_kills_at_moments_nobody_chose_lose_and_double_nothing(world: World) -> None:
    chance = random.Random(20_262)
    told: dict[str, str] = {}
    for _ in range(15):
        child = world.child("on and on", name=str(len(told)))
        assert child.stdout is not None
        first = line(child)  # it has begun; from here any moment will do
        with suppress(subprocess.TimeoutExpired):
            child.wait(chance.random() * 0.3)
        child.send_signal(signal.SIGKILL)
        rest = child.communicate()[0].decode().splitlines()
        for one in (first, *rest):
            word, key, text, *_ = [*one.split(" ", 2), "", ""]
            if word == "told" and text.endswith("."):
                assert told.setdefault(key, text).rpartition(" by ")[0] == text.rpartition(" by ")[0]
    assert len(told) >= 15
    with world.store() as store:
        thread = store.thread("t", user="ana")
        lines = said(thread)
        counted = Counter(lines)
        assert {one: count for one, count in counted.items() if count > 1} == {}
        for key, text in told.items():
            assert f"user: Charge me for thing{key.removeprefix('msg-')}" in counted
            assert f"assistant: {text}" in counted
        effects = Counter(world.effects())
        assert {what: count for what, count in effects.items() if count > 1} == {}
        assert_conversation(thread)
        assert store.verify().problems == ()


# Several at once


def test_one_key_in_many_processes_is_one_question_and_one_answer(world: World) -> None:
    children = [world.child("key", name=name) for name in "abcd"]
    go(*children)
    answers = [json.loads(line(child).removeprefix("told ")) for child in children]
    assert len({text for text, _, _ in answers}) == 1
    assert {number for _, _, number in answers} == {1}
    assert sum(not repeated for _, repeated, _ in answers) <= 1
    with world.store() as store:
        thread = store.thread("t", user="ana")
        assert said(thread) == ["user: Charge me for flight", f"assistant: {answers[0][0]}"]
        assert_conversation(thread)
        events = [entry.content["name"] for entry in thread.log() if entry.kind == "event"]
        assert "holdfast.unanswered" not in events
    assert world.effects() == ["flight"]


def test_two_processes_in_one_thread_keep_a_conversation(world: World) -> None:
    children = [world.child("talk", name=name) for name in "ab"]
    go(*children)
    for child in children:
        for _ in range(12):
            assert line(child).startswith("told ")
        assert child.wait(PATIENCE_S) == 0
    with world.store() as store:
        thread = store.thread("t", user="ana")
        assert_conversation(thread)
        lines = said(thread)
        assert Counter(one.split(":")[0] for one in lines) == {"user": 24, "assistant": 24}
        assert len(set(lines)) == 48
        assert sorted(world.effects()) == sorted(f"{name}{number}" for name in "ab" for number in range(12))
        assert store.session(thread).start().unanswered is None
        found = [one for entry in thread.log() if (one := summary_of(entry)) is not None]
        assert found, "no summary was written, so nothing is proved of them"
        assert found[0].first == 1
        assert all(after.first == before.last + 1 for before, after in pairwise(found))
        assert store.verify().problems == ()
