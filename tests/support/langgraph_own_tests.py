"""The tests that LangGraph's packages carry, run with our classes in place of theirs.

They come from the source package of the installed version, which is fetched once and never built. Each run is a process
of its own that has this module as a plugin, to write down what became of each test.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

import pytest

import holdfast

_TOLD = "HOLDFAST_SUITE_OUTCOMES"
_outcomes: dict[str, str] = {}


def unpacked(package: str, folder: Path, conftest: Path) -> Path:
    """The tests of a package in a folder of their own, with our conftest for theirs."""
    with tarfile.open(_source(package)) as archive:
        archive.extractall(folder, filter="data")
    (whole,) = folder.iterdir()
    shutil.move(whole / "tests", folder / "tests")
    shutil.rmtree(whole)  # the package itself would be imported instead of the installed one
    shutil.copy(conftest, folder / "tests" / "conftest.py")
    return folder


def _source(package: str) -> Path:
    """The source package, kept beside the environment that has the same version."""
    kept, number = Path(sys.prefix) / "source", version(package)
    file = kept / f"{package.replace('-', '_')}-{number}.tar.gz"
    if not file.exists():
        only = ["--quiet", "--no-deps", "--no-binary", ":all:", "--dest", str(kept)]
        subprocess.run([sys.executable, "-m", "pip", "download", *only, f"{package}=={number}"], check=True)
    return file


def outcomes(suite: Path, which: str, tests: list[str]) -> dict[str, str]:
    """What became of each of some tests, by name; ``which`` tells the conftest whose classes to use."""
    told = suite / f"{which}.json"
    env = {**os.environ, "HOLDFAST_SUITE": which, _TOLD: str(told)}
    env["PYTHONPATH"] = os.pathsep.join(map(str, [suite, Path(holdfast.__file__).parents[1], Path(__file__).parent]))
    options = ["-q", "-p", "no:cacheprovider", "-p", __name__, "--anyio-mode=auto", "--tb=short"]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    done = subprocess.run(command, cwd=suite, env=env, capture_output=True, text=True, check=False)
    assert told.exists(), done.stdout + done.stderr
    found: dict[str, str] = json.loads(told.read_text(encoding="utf-8"))
    print(done.stdout[-20_000:])
    return found


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if _outcomes.get(report.nodeid, "passed") == "passed":  # of its setup, its call and its end, the first that failed
        _outcomes[report.nodeid] = report.outcome


def pytest_sessionfinish() -> None:
    if told := os.environ.get(_TOLD):
        Path(told).write_text(json.dumps(_outcomes), encoding="utf-8")
