"""What is told around a fork, and what becomes of locks. Each test forks in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import holdfast
from holdfast import atfork

PRELUDE = """
import gc, logging, os, signal, sys, threading
from holdfast import atfork
signal.alarm(30)

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

def in_child(work):
    pid = os.fork()
    if not pid:
        try:
            work()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
"""


def run(program: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", PRELUDE + program],
        capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(holdfast.__file__).parents[1])},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.splitlines()


def test_whoever_joined_is_told_on_both_sides_and_is_not_kept_alive() -> None:
    lines = run(
        """
class Told:
    def __init__(self, name):
        self.name = name
        atfork.join(before=self.before, in_parent=self.parent, in_child=self.child)
    def before(self):
        say(self.name, "before")
    def parent(self):
        say(self.name, "parent")
    def child(self):
        say(self.name, "child")

kept, dropped = Told("kept"), Told("dropped")
del dropped
gc.collect()
in_child(lambda: None)
say(len(atfork._joined))
"""
    )
    assert sorted(lines[:-1]) == ["kept before", "kept child", "kept parent"]
    assert lines[-1] == "1"


def test_one_that_fails_keeps_nobody_else_from_hearing_of_it() -> None:
    lines = run(
        """
logging.disable()
def fail():
    raise RuntimeError
atfork.join(before=fail, in_parent=fail, in_child=fail)
atfork.join(before=lambda: say("before"), in_parent=lambda: say("parent"), in_child=lambda: say("child"))
in_child(lambda: None)
"""
    )
    assert sorted(lines) == ["before", "child", "parent"]


def test_a_lock_of_another_thread_is_free_in_the_child_and_what_it_guards_is_forgotten() -> None:
    lines = run(
        """
class Guarded:
    def __init__(self):
        self.lock, self.known = atfork.lock(self.forget), [1, 2]
    def forget(self):
        self.known = []

held, free, mine = Guarded(), Guarded(), Guarded()
has, over = threading.Event(), threading.Event()

def hold():
    with held.lock:
        has.set()
        over.wait()

thread = threading.Thread(target=hold)
thread.start()
has.wait()

def child():
    for guarded in (held, free, mine):
        with guarded.lock:
            say(guarded.known)

def other():
    say(mine.lock.acquire(blocking=False))

with mine.lock:
    def still_mine():
        child()
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    in_child(still_mine)
say(held.known, held.lock.acquire(blocking=False))
over.set()
thread.join()
"""
    )
    assert lines == ["[]", "[1, 2]", "[1, 2]", "False", "[1, 2] False"]


def test_threads_that_fork_at_once_do_so_one_after_the_other() -> None:
    lines = run(
        """
inside, worst = [0], [0]
def before():
    inside[0] += 1
    worst[0] = max(worst)
    worst.append(inside[0])
def parent():
    inside[0] -= 1
atfork.join(before=before, in_parent=parent, in_child=lambda: None)
threads = [threading.Thread(target=lambda: [in_child(lambda: None) for _ in range(10)]) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
say(max(worst), inside[0])
"""
    )
    assert lines == ["1 0"]


def test_a_property_that_is_being_worked_out_holds_up_no_other_object() -> None:
    """A lock for all objects, as Python 3.11 has it, stays locked for ever in a child that is forked meanwhile."""
    begun, may_end = threading.Event(), threading.Event()

    class Counted:
        def __init__(self, *, waits: bool) -> None:
            self.waits, self.times = waits, 0

        @atfork.cached_property
        def value(self) -> int:
            self.times += 1
            if self.waits:
                begun.set()
                assert may_end.wait(60)
            return self.times

    slow = Counted(waits=True)
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    try:
        assert begun.wait(60)
        other = Counted(waits=False)
        assert [other.value, other.value] == [1, 1]
    finally:
        may_end.set()
        thread.join()
    assert (slow.value, slow.times) == (1, 1)
