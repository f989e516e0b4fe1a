"""What the tests of all adapters share: a place for a store, on every engine, and a page or an example that is run.

A real Postgres is there for the adapters whose pins bring one; one that runs on it says so by a ``store`` of its own.
As in ``tests/conftest.py``, only tests marked ``every_engine`` run there unless ``--long`` is given. All tests
of an adapter share one server and one database, which is emptied before each.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import holdfast

ROOT = Path(__file__).resolve().parents[2]
_TENANTS = count(1)

Opened = Callable[..., holdfast.Store]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run all tests on Postgres too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("long"):
        left = [item for item in items if _on_postgres(item) and not item.get_closest_marker("every_engine")]
        items[:] = [item for item in items if item not in left]
        config.hook.pytest_deselected(items=left)


def _on_postgres(item: pytest.Item) -> bool:
    known = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return any(str(value).split()[-1:] == ["postgres"] for value in known.values())


@pytest.fixture(scope="session")
def server() -> Iterator[Any]:
    """The one Postgres of all tests. It does not sync: what survives a crash is for the engines' own tests to say."""
    from holdfast.testing.postgres import Server  # noqa: PLC0415 - only some environments have what it needs

    with Server(fsync=False) as server:
        yield server


@pytest.fixture(scope="session")
def shared_database(server: Any) -> str:
    """The address of the one database of all tests. A clone for each would take too long."""
    return str(server.clone())


@pytest.fixture
def database(server: Any, shared_database: str) -> str:
    """The same, empty: frameworks open the tenant that is there without a name."""
    server.empty(shared_database)
    return shared_database


@pytest.fixture
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """Open the store of the test on an engine: ``opened("sqlite")``. Again gives another handle of what is kept."""
    stores: list[holdfast.Store] = []
    tenant = f"test-{next(_TENANTS)}"

    def open_(engine: str, **settings: Any) -> holdfast.Store:
        where: Any = {"ram": "ram:", "sqlite": tmp_path / "agent.db"}.get(engine)
        if engine == "postgres":
            where, settings = request.getfixturevalue("database"), {"tenant": tenant, **settings}
        stores.append(holdfast.open(where, **{"embedder": "none", **settings}))
        return stores[-1]

    yield open_
    for store in stores:
        store.close()


@pytest.fixture(params=["ram", "sqlite"])
def store(request: pytest.FixtureRequest, opened: Opened) -> holdfast.Store:
    """A store on each engine that needs no server."""
    return opened(request.param)


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a store is kept that several processes open."""
    return str(tmp_path / "agent.db") if request.param == "sqlite" else str(request.getfixturevalue("database"))


@pytest.fixture
def example(tmp_path: Path) -> Callable[..., str]:
    """Run an example of ``examples/adapters`` in a process of its own, in an empty folder, and give what it printed."""

    def run(name: str, *args: str, code: int = 0) -> str:
        env = {key: value for key, value in os.environ.items() if not key.startswith("HOLDFAST_")}
        env["TMPDIR"] = str(tmp_path)  # where examples keep their stores
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
