"""Run the tests of every adapter, each in an environment of its own, because the frameworks cannot live together.

    python tools/adapters.py [NAME …] [--jobs N] [--python] [-- ARGUMENTS OF PYTEST]

An environment is made from ``tests/adapters/NAME/pins.txt`` and kept under a name that has the digest of the pins and
of the Python in it, so it is made once; what it holds is what is pinned, and Holdfast itself is taken from ``src``.
``HOLDFAST_ENVS`` says where they are kept, otherwise the user's cache folder does. ``--python`` only makes the
environment and prints the path of its Python, to run something else in it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from install import install

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests" / "adapters"


class Outcome(NamedTuple):
    """How the tests of one adapter went."""

    name: str
    code: int
    output: str
    made_s: float
    took_s: float


def names() -> list[str]:
    """The adapters that have pins, and so an environment; those with the most to test first."""
    folders = (file.parent for file in TESTS.glob("*/pins.txt"))
    return [folder.name for folder in sorted(folders, key=_size, reverse=True)]


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("test_*.py"))


def environment(name: str) -> Path:
    """The environment of an adapter, made if it is not there yet."""
    pins = TESTS / name / "pins.txt"
    told = f"{sys.version_info[:3]}{pins.read_text(encoding='utf-8')}"
    place = folder() / f"{name}-{hashlib.sha256(told.encode()).hexdigest()[:16]}"
    if not (place / ".ready").exists():
        shutil.rmtree(place, ignore_errors=True)
        venv.create(place)
        # What is never imported is never compiled, which is most of it.
        install(str(place / "bin" / "python"), ["--no-compile", "--no-deps", "--requirement", str(pins)])
        (place / ".ready").touch()
    return place


def folder() -> Path:
    """Where environments are kept: apart from the checkout, so that a fresh one finds them."""
    given = os.environ.get("HOLDFAST_ENVS")
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given) if given else Path(cache) / "holdfast" / "envs"


def tested(name: str, args: list[str]) -> Outcome:
    began = time.monotonic()
    python = environment(name) / "bin" / "python"
    made = time.monotonic()
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT), str(ROOT / "tests" / "support")])}
    command = [str(python), "-m", "pytest", "-q", "--confcutdir", str(TESTS), str(TESTS / name), *args]
    done = subprocess.run(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return Outcome(name, done.returncode, done.stdout, made - began, time.monotonic() - made)


def told(outcome: Outcome) -> None:
    """What a person wants to know: everything of what failed, and the last line of what did not."""
    lines = outcome.output.rstrip().splitlines()
    shown = lines if outcome.code else [line for line in lines if line.startswith("   ")] + lines[-1:]
    made = f"environment made in {outcome.made_s:.0f} s, " if outcome.made_s > 1 else ""
    print(f"== {outcome.name}: {made}tests {outcome.took_s:.0f} s")
    print("\n".join(shown), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(names())}; without one, all")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="how many at once (2)")
    parser.add_argument("--python", action="store_true", help="only make the environments, and print their Pythons")
    given = sys.argv[1:]
    mine, rest = (given[: given.index("--")], given[given.index("--") + 1 :]) if "--" in given else (given, [])
    options = parser.parse_args(mine)
    chosen = options.names or names()
    if unknown := sorted(set(chosen) - set(names())):
        parser.error(f"there is no adapter {unknown[0]!r}; there are {', '.join(names())}")
    if options.python:
        print("\n".join(str(environment(name) / "bin" / "python") for name in chosen))
        return 0
    failed = []
    with ThreadPoolExecutor(max(1, options.jobs)) as pool:
        for outcome in pool.map(lambda name: tested(name, rest), chosen):
            told(outcome)
            failed += [outcome.name] if outcome.code else []
    print(f"== adapters: {len(chosen) - len(failed)} of {len(chosen)} pass", *(f"; {name} fails" for name in failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
