"""The tests that a framework's own packages carry, run with our classes in place of theirs.

They come from the source package of the installed version, which is fetched once, kept beside the environment, and
never built. Each run is a process of its own with a plugin that writes down what became of each test: this module, or
another one that does.
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

TOLD = "HOLDFAST_SUITE_OUTCOMES"
"""The environment variable that names the file for the outcomes; ``HOLDFAST_SUITE`` says whose classes are judged."""
_outcomes: dict[str, str] = {}


def own_tests(package: str, folder: Path, conftest: Path | None = None) -> Path:
    """Unpack a package's own tests into an empty folder, without the package: the installed one is tested."""
    with tarfile.open(_source(package)) as archive:
        archive.extractall(folder, filter="data")
    (whole,) = folder.iterdir()
    shutil.move(whole / "tests", folder / "tests")
    shutil.rmtree(whole)
    if conftest is not None:
        shutil.copy(conftest, folder / "tests" / "conftest.py")
    return folder


def _source(package: str) -> Path:
    kept = Path(sys.prefix) / "source"
    file = kept / f"{package.replace('-', '_')}-{version(package)}.tar.gz"
    if not file.exists():
        only = ["--quiet", "--no-deps", "--no-binary", package, "--dest", str(kept)]
        subprocess.run([sys.executable, "-m", "pip", "download", *only, f"{package}=={version(package)}"], check=True)
    return file


def outcomes(suite: Path, which: str, tests: list[str], plugin: Path = Path(__file__)) -> dict[str, str]:
    """What became of each of some tests, by name."""
    told = suite / f"{which}.json"
    env = {**os.environ, "HOLDFAST_SUITE": which, TOLD: str(told)}
    env["PYTHONPATH"] = os.pathsep.join(map(str, [suite, Path(holdfast.__file__).parents[1], plugin.parent]))
    options = ["-q", "-p", "no:cacheprovider", "-p", plugin.stem, "-o", "anyio_mode=auto", "--tb=short"]
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
    if told := os.environ.get(TOLD):
        Path(told).write_text(json.dumps(_outcomes), encoding="utf-8")
