"""Two agents and a progress file: one sets a project up, others go on with it, and three of those are killed.

    python examples/two_agents.py

The initialiser writes down the goal, the features and what to run first. Each worker is a new process with no memory:
it reads the handoff, builds the first feature that does not pass (yours asks a model), ticks it, and commits the file.
Three kill themselves (SIGKILL): before building, when it is built but not on record, and before it is ticked.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import holdfast

FOLDER = Path(tempfile.gettempdir(), "holdfast-two-agents")
FEATURES = ["reads a line", "adds two numbers", "says what is wrong", "prints the result"]
KILLED = ["before building", "never", "after building", "never", "before ticking"]


def initialise(thread: holdfast.Thread, project: Path) -> None:
    for setting in ("init --quiet", "config user.name two", "config user.email two@example.org"):
        subprocess.run(["git", *setting.split()], cwd=project, check=True)
    (project / "init.sh").write_text("echo the environment is ready\n", encoding="utf-8")
    thread.handoff.update(goal="A calculator for the terminal", start="sh init.sh", features=FEATURES)
    thread.handoff.update(decisions="One feature in each session", context={"files": ["built"]})
    thread.handoff.write(project / "PROGRESS.md", git=True, message="Set the project up")


def work(thread: holdfast.Thread, project: Path, killed: str) -> None:
    """One session: everything it knows comes from the handoff."""
    found, built = thread.handoff.read(), project / "built"
    feature = next(one.text for one in found.features if not one.done)
    ready = subprocess.run(found.start.split(), cwd=project, capture_output=True, text=True, check=True).stdout.strip()
    print(f"{ready}; next: {feature}", flush=True)

    def die(moment: str) -> None:
        if moment == killed:
            os.kill(os.getpid(), signal.SIGKILL)

    def build() -> str:
        die("before building")
        with built.open("a", encoding="utf-8") as file:
            file.write(f"{feature}\n")
        die("after building")
        return feature

    def find() -> str | None:
        return feature if built.exists() and feature in built.read_text(encoding="utf-8").splitlines() else None

    with thread.run(f"build {feature}") as run:
        run.step("build", build, effect="once", probe=find)
    die("before ticking")
    thread.handoff.update(features={feature: True})
    thread.handoff.write(project / "PROGRESS.md", git=True, message=f"Passes: {feature}")


def main() -> None:
    parser = argparse.ArgumentParser(description="An initialiser, and workers that are killed.")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where all is kept; default: %(default)s")
    parser.add_argument("--work", metavar="KILLED", help="be a worker that is killed at this moment")
    given = parser.parse_args()
    project = given.folder / "project"
    project.mkdir(parents=True, exist_ok=True)
    with holdfast.open(given.folder / "agent.db") as store:
        thread = store.thread("calculator", agent="builder")
        if given.work is not None:
            return work(thread, project, given.work)
        if not thread.handoff.read().features:
            initialise(thread, project)
        while not all(feature.done for feature in thread.handoff.read().features):
            killed = KILLED.pop(0) if KILLED else "never"
            worker = [sys.executable, __file__, "--folder", str(given.folder), "--work", killed]
            if (code := subprocess.run(worker, check=False).returncode) > 0:
                sys.exit("a worker failed")
            print("  ticked" if code == 0 else f"  killed {killed}", flush=True)
        built = (project / "built").read_text(encoding="utf-8").splitlines()
        print(f"{len(set(built))} features pass; {len(built)} were built. The log of the project:", flush=True)
        subprocess.run(["git", "--no-pager", "log", "--format=%s"], cwd=project, check=True)


if __name__ == "__main__":
    main()
