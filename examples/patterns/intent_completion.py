"""Intent and completion: a process is killed after it acted and before it recorded that; nothing is done twice."""

import multiprocessing
import os
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import holdfast


def refit(address: str, crane: Path, die: bool) -> None:
    def book(day: str) -> str:
        with crane.open("a") as bookings:  # someone else's system
            bookings.write(f"{holdfast.current_step().key} {day}\n")
        if die:
            os.kill(os.getpid(), signal.SIGKILL)  # booked, and not recorded
        return day

    def find(day: str) -> str | None:  # the probe: did it happen?
        return day if holdfast.current_step().key in crane.read_text() else None

    with holdfast.open(address) as store, store.thread("refit-9").run("crane") as run:
        day = run.step("book", book, "3 May", effect="once", probe=find)
        print(f"{day}, {run.steps[0].how}, bookings: {len(crane.read_text().splitlines())}")


with TemporaryDirectory() as folder:
    address, crane = sys.argv[1] if sys.argv[1:] else f"{folder}/agent.db", Path(folder, "crane.txt")
    child = multiprocessing.get_context("fork").Process(target=refit, args=(address, crane, True))
    child.start()
    child.join()
    print("killed:", child.exitcode == -signal.SIGKILL)
    refit(address, crane, die=False)  # finds an intent without a completion: asks the probe

# prints:
# killed: True
# 3 May, probed, bookings: 1
