"""Hand work to a fleet of workers, kill one of them, and see that all of it is done once.

    python examples/worker.py

submits eight letters, starts two worker processes, kills the first one (SIGKILL) in the middle of a letter, and waits
until the other one has sent everything. To play all the parts yourself, in as many terminals as you like:

    python examples/worker.py submit --folder /tmp/post     # write the work down
    python examples/worker.py work --folder /tmp/post       # a worker; start several, kill any with kill -9
    holdfast --db /tmp/post/agent.db runs                   # what became of it

The store is a SQLite file here. With ``HOLDFAST_DB=postgresql://…`` the same workers run on many machines.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import holdfast

FOLDER = Path(tempfile.gettempdir(), "holdfast-post")

LETTERS = 8


class Post:
    """Someone else's service: a folder with one file per letter that was sent, named by the reference."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def send(self, text: str, reference: str) -> str:
        with (self.folder / reference).open("a", encoding="utf-8") as file:
            file.write(text + "\n")  # sent twice would be two lines
        time.sleep(0.3)  # sent, but nobody was told yet
        return reference

    def find(self, reference: str) -> str | None:
        return reference if (self.folder / reference).exists() else None

    def sent(self) -> int:
        return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in self.folder.iterdir())


def handlers(post: Post) -> dict[str, object]:
    """What a worker can do, by the name that ``submit`` uses."""

    def send(text: str) -> str:
        return post.send(text, holdfast.current_step().key)

    def find(text: str) -> str | None:
        return post.find(holdfast.current_step().key)

    def letter(run: holdfast.Run) -> str:
        sent: str = run.step("send", send, f"Dear {run.input['to']}, …", effect="once", probe=find)
        return sent

    return {"letter": letter}


def open_store(folder: Path) -> holdfast.Store:
    folder.mkdir(exist_ok=True)
    return holdfast.open(os.environ.get("HOLDFAST_DB") or folder / "agent.db")


def submit(folder: Path) -> None:
    with open_store(folder) as store:
        for number in range(1, LETTERS + 1):
            store.thread(f"customer-{number}").submit("welcome", handler="letter", input={"to": f"customer {number}"})
    print(f"{LETTERS} letters submitted", flush=True)


def work(folder: Path) -> None:
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())  # finish the run at hand, then go
    signal.signal(signal.SIGINT, lambda *_: stop.set())

    def tell(run: holdfast.types.Resumed) -> None:
        print(f"worker {os.getpid()}: {run.thread} {run.outcome}", flush=True)

    with open_store(folder) as store:
        print(f"worker {os.getpid()} is ready", flush=True)
        store.work(handlers(Post(folder / "sent")), stop=stop, poll_s=0.2, on_run=tell)


def all_parts(folder: Path) -> None:
    submit(folder)
    me = [sys.executable, __file__, "work", "--folder", str(folder)]
    unlucky, other = subprocess.Popen(me), subprocess.Popen(me)
    try:
        with open_store(folder) as store:
            post = Post(folder / "sent")
            until(lambda: post.sent() >= 3)
            unlucky.kill()
            unlucky.wait()
            print(f"worker {unlucky.pid} was killed", flush=True)
            until(lambda: len(store.runs(status="done")) == LETTERS)
            print(f"{len(store.runs(status='done'))} runs are done, {post.sent()} letters were sent", flush=True)
    finally:
        unlucky.kill()
        other.terminate()
        other.wait()


def until(condition: object, timeout_s: float = 60) -> None:
    assert callable(condition)
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit("that takes too long")
        time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description="Submit work, and carry it out with a fleet.")
    parser.add_argument("part", nargs="?", choices=["all", "submit", "work"], default="all")
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help="where the store and the letters are; default: %(default)s"
    )
    given = parser.parse_args()
    {"all": all_parts, "submit": submit, "work": work}[given.part](given.folder)


if __name__ == "__main__":
    main()
