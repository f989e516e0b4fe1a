"""Run the tests of every adapter, each in an environment of its own, because the frameworks cannot live together.

    python tools/adapters.py [NAME …] [-- ARGUMENTS OF PYTEST]

An environment is made from ``tests/adapters/NAME/pins.txt`` and kept under a name that has the digest of the pins and
of the Python in it, so it is made once; what it holds is what is pinned, and Holdfast itself is taken from ``src``.
``HOLDFAST_ENVS`` says where they are kept, otherwise the user's cache folder does.
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
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests" / "adapters"


def names() -> list[str]:
    """The adapters that have pins, and so an environment."""
    return sorted(file.parent.name for file in TESTS.glob("*/pins.txt"))


def environment(name: str) -> Path:
    """The environment of an adapter, made if it is not there yet."""
    pins = TESTS / name / "pins.txt"
    told = f"{sys.version_info[:3]}{pins.read_text(encoding='utf-8')}"
    place = folder() / f"{name}-{hashlib.sha256(told.encode()).hexdigest()[:16]}"
    if not (place / ".ready").exists():
        began = time.monotonic()
        print(f"   making the environment of {name} …", flush=True)
        shutil.rmtree(place, ignore_errors=True)
        venv.create(place, with_pip=True)
        pip = [str(place / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        subprocess.run([*pip, "--no-deps", "--requirement", str(pins)], check=True)
        (place / ".ready").touch()
        print(f"   made in {time.monotonic() - began:.0f} s", flush=True)
    return place


def folder() -> Path:
    """Where environments are kept: apart from the checkout, so that a fresh one finds them."""
    given = os.environ.get("HOLDFAST_ENVS")
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given) if given else Path(cache) / "holdfast" / "envs"


def tested(name: str, args: list[str]) -> int:
    python = environment(name) / "bin" / "python"
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    env = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [str(python), "-m", "pytest", "-q", "--confcutdir", str(TESTS), str(TESTS / name), *args],
        cwd=ROOT,
        env=env,
        check=False,
    ).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(names())}; without one, all")
    given = sys.argv[1:]
    mine, rest = (given[: given.index("--")], given[given.index("--") + 1 :]) if "--" in given else (given, [])
    chosen = parser.parse_args(mine).names or names()
    if unknown := sorted(set(chosen) - set(names())):
        parser.error(f"there is no adapter {unknown[0]!r}; there are {', '.join(names())}")
    failed = []
    for name in chosen:
        print(f"== {name}", flush=True)
        if tested(name, rest):
            failed.append(name)
    print(
        f"== adapters: {len(chosen) - len(failed)} of {len(chosen)} pass"
        + "".join(f"; {name} fails" for name in failed)
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
