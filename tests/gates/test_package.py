"""What people install: few dependencies, one version, and every file that the code needs."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

import holdfast

MAX_DEPENDENCIES = 4


@pytest.fixture(scope="module")
def project(root: Path) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project


def test_few_hard_dependencies(project: dict[str, Any]) -> None:
    assert len(project["dependencies"]) <= MAX_DEPENDENCIES


def test_standard_and_all_name_real_extras(project: dict[str, Any]) -> None:
    extras = project["optional-dependencies"]
    for bundle in ("standard", "all"):
        for requirement in extras[bundle]:
            inside = re.fullmatch(r"holdfast\[([\w,]+)\]", requirement)
            assert inside, requirement
            assert set(inside[1].split(",")) <= set(extras)


def test_the_changelog_and_the_code_name_one_version(root: Path) -> None:
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## \[([^\]]+)\]", text, re.M)
    assert headings[0] == "Unreleased"
    assert headings[1] == holdfast.__version__


def _pinned(root: Path) -> list[Path]:
    """What pins versions: one file for the project, and one for each framework that has an environment of its own."""
    return [root / "constraints.txt", *sorted((root / "tests" / "adapters").glob("*/pins.txt"))]


@pytest.mark.parametrize("number", range(9))
def test_pins_are_exact_and_name_no_host(root: Path, number: int) -> None:
    files = _pinned(root)
    assert len(files) == 9, "one for the project and one for each adapter: say so here when there is another"
    lines = files[number].read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    odd = [line for line in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[\w.!+]+( ; .+)?", line)]
    assert pins
    assert not odd


def test_every_dependency_is_pinned(root: Path, project: dict[str, Any]) -> None:
    pinned = {
        re.sub(r"[-_.]+", "-", line.split("==")[0]).lower()
        for file in _pinned(root)
        for line in file.read_text(encoding="utf-8").splitlines()
        if "==" in line
    }
    wanted = [
        *project["dependencies"],
        *(item for extra in project["optional-dependencies"].values() for item in extra),
    ]
    names = {re.sub(r"[-_.]+", "-", re.split(r"[\[<>=! ]", item)[0]).lower() for item in wanted} - {"holdfast"}
    assert names <= pinned, f"in no file of pins: {sorted(names - pinned)}"


@pytest.mark.slow
def test_the_wheel_holds_everything(root: Path, tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=root, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("holdfast-*.whl")
    package = root / "src" / "holdfast"
    needed = {
        f"holdfast/{path.relative_to(package).as_posix()}"
        for path in package.rglob("*")
        if path.suffix in {".py", ".sql", ".typed"}
    }
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert needed <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert any(name.endswith(".sql") for name in needed)
