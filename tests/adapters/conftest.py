"""What the tests of all adapters share: a place for a store, on every engine that needs no server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import holdfast

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(params=["ram", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[holdfast.Store]:
    """A store on each engine."""
    with holdfast.open("ram:" if request.param == "ram" else tmp_path / "agent.db", embedder="none") as store:
        yield store


@pytest.fixture
def example(tmp_path: Path) -> Callable[..., str]:
    """Run an example of ``examples/adapters`` in a process of its own, in an empty folder, and give what it printed."""

    def run(name: str, *args: str, code: int = 0) -> str:
        env = {key: value for key, value in os.environ.items() if not key.startswith("HOLDFAST_")}
        done = subprocess.run(
            [sys.executable, str(ROOT / "examples" / "adapters" / name), *args],
            cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture
def page(tmp_path: Path) -> Callable[[str], None]:
    """Run the Python blocks of a page of ``docs/adapters`` as one script, in an empty folder."""

    def run(name: str) -> None:
        script = tmp_path / f"page_{name}.py"  # one of the framework's own name would be imported instead of it
        script.write_text(_blocks(ROOT / "docs" / "adapters" / f"{name}.md"), encoding="utf-8")
        work = tmp_path / "work"
        work.mkdir(exist_ok=True)
        for time in ("first", "second"):  # what a page shows is kept, so it is there when the page is tried again
            done = subprocess.run(
                [sys.executable, str(script)], cwd=work, capture_output=True, text=True, timeout=120, check=False
            )
            told = f"docs/adapters/{name}.md, the {time} time (line numbers are the page's):\n{done.stderr}"
            assert done.returncode == 0, told

    return run


def _blocks(page: Path) -> str:
    lines, inside = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.strip().startswith("```"):
            inside = line.strip() == "```python" and not inside
            lines.append("")
        else:
            lines.append(line if inside else "")
    text = "\n".join(lines) + "\n"
    assert text.strip(), f"{page.name} shows no Python"
    return text
