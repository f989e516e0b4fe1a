"""Intent and completion: a process is killed after it acted and before it recorded that; nothing is done twice.

The child books a crane and kills itself with SIGKILL. The parent finds the recorded intent and asks the probe.
"""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import holdfast

bookings = Path(os.environ.setdefault("BOOKINGS", f"{tempfile.mkdtemp()}/crane.txt"))  # someone else's system
address = sys.argv[1] if sys.argv[1:] else f"{bookings.parent}/agent.db"


def book(day: str) -> str:
    with bookings.open("a") as file:
        file.write(f"{holdfast.current_step().key} {day}\n")
    if "die" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)  # booked, but not recorded
    return day


def find(day: str) -> str | None:  # the probe: did it happen?
    print("asking the crane")
    return day if holdfast.current_step().key in bookings.read_text() else None


if "die" not in sys.argv:
    died = subprocess.run([sys.executable, __file__, address, "die"]).returncode
    print("the child was killed:", died == -signal.SIGKILL)
with holdfast.open(address) as store, store.thread("refit-9").run("crane") as run:
    run.step("book", book, "3 May", effect="once", probe=find)
    print("step:", run.steps[0].how, "bookings:", len(bookings.read_text().splitlines()))

# prints:
# the child was killed: True
# asking the crane
# step: probed bookings: 1
