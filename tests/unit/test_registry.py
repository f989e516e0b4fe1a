"""A URL or a path names an engine, which is loaded only then; what names none is refused with a sentence."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from holdfast.clock import Clock, SystemClock
from holdfast.engine import registry
from holdfast.engine.ram import RamEngine
from holdfast.errors import Misconfigured, Unsupported
from holdfast.ids import Ids


def opened(url: str) -> Any:
    return registry.open_engine(url, SystemClock(), Ids())


# Which engine


@pytest.mark.parametrize(
    ("url", "scheme"),
    [
        ("agent.db", "sqlite"),
        ("folder/agent.db", "sqlite"),
        ("/var/lib/agent.db", "sqlite"),
        ("./odd:name.db", "sqlite"),
        ("folder/odd:name.db", "sqlite"),
        (r"C:\data\agent.db", "sqlite"),
        ("C:agent.db", "sqlite"),
        ("~/agent.db", "sqlite"),
        ("sqlite:agent.db", "sqlite"),
        ("SQLite:///var/agent.db", "sqlite"),
        ("ram:", "ram"),
        ("RAM:", "ram"),
        ("postgresql://host/db", "postgresql"),
        ("postgres://host/db", "postgres"),
        ("redis://host", "redis"),
    ],
)
def test_the_scheme_of_a_url_or_path(url: str, scheme: str) -> None:
    assert registry.scheme_of(url) == scheme


@pytest.mark.parametrize("url", ["", ":memory:"])
def test_what_names_nothing_is_refused_with_examples(url: str) -> None:
    with pytest.raises(Misconfigured, match=r'"agent.db".*"ram:"'):
        opened(url)


@pytest.mark.parametrize("url", ["mysql://host/db", "file:agent.db", "http://host", "notes:v2.db"])
def test_an_unknown_scheme_is_refused_with_those_that_are_known(url: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        Misconfigured, match="known are postgres:, postgresql:, ram:, sqlite: or a plain file path"
    ) as caught:
        opened(url)
    assert caught.value.scheme == url.partition(":")[0]
    assert list(tmp_path.iterdir()) == []


def test_memory_is_memory() -> None:
    engine = opened("ram:")
    assert isinstance(engine, RamEngine)
    engine.close()


# Which file


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("agent.db", "agent.db"),
        ("sqlite:agent.db", "agent.db"),
        ("sqlite:folder/agent.db", "folder/agent.db"),
        ("sqlite:///var/agent.db", "/var/agent.db"),
        ("SQLITE:///var/agent.db", "/var/agent.db"),
        ("sqlite:///var/my%20agent.db", "/var/my agent.db"),
        ("my%20agent.db", "my%20agent.db"),
        ("odd?name#1.db", "odd?name#1.db"),
        ("sqlite:odd%3Fname%231.db", "odd?name#1.db"),
    ],
)
def test_the_file_of_a_url_or_path(url: str, path: str) -> None:
    """Always absolute: a process may change its directory while connections still open."""
    assert registry.sqlite_path(url) == Path.cwd() / path


def test_a_tilde_is_the_home_of_whoever_runs_this(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert registry.sqlite_path("~/agent.db") == tmp_path / "agent.db"
    assert registry.sqlite_path("sqlite:~/agent.db") == tmp_path / "agent.db"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("sqlite:", "empty"),
        ("sqlite://", "empty"),
        ("agent\x00.db", "NUL"),
        ("sqlite:agent%00.db", "NUL"),
        ("sqlite://host/agent.db", "names a host"),
        ("sqlite://agent.db", "names a host"),
        ("sqlite:agent.db?mode=ro", "has options"),
        ("sqlite:///var/agent#1.db", "has options"),
        ("sqlite::memory:", "ram:"),
        ("sqlite:///:memory:", "ram:"),
        ("sqlite://[agent.db", "is not a URL"),
        ("~no-such-user-here/agent.db", "no-such-user-here"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(url: str, why: str, tmp_path: Path, monkeypatch: Any) -> None:
    """Each of these would otherwise open another file than the one that was meant, or none with a stranger's error."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Misconfigured, match=why):
        opened(url)
    assert list(tmp_path.iterdir()) == []


# What is not installed


def in_a_python_without(module: str, code: str) -> subprocess.CompletedProcess[str]:
    program = f"import sys\nsys.modules[{module!r}] = None\n{code}"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("module", ["psycopg", "psycopg_pool"])
def test_an_engine_whose_driver_is_missing_says_which_extra_brings_it(module: str) -> None:
    done = in_a_python_without(
        module,
        "import holdfast\n"
        "try:\n"
        "    holdfast.open('postgresql://nobody@localhost/nothing')\n"
        "except holdfast.errors.Unsupported as error:\n"
        "    print(error, '|', error.extra)\n",
    )
    wanted = f'postgresql: needs {module}, which is not installed: pip install "holdfast[postgres]" | postgres'
    assert (done.stdout.strip(), done.stderr) == (wanted, "")


def test_without_the_driver_the_other_engines_work() -> None:
    done = in_a_python_without(
        "psycopg", "import holdfast\nwith holdfast.open('ram:') as store: print(store.threads())\n"
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_a_driver_without_the_library_under_it_is_told_in_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(url: str, clock: Clock, ids: Ids) -> Any:
        raise ImportError("no pq wrapper available")

    monkeypatch.setitem(registry._FACTORIES, "postgres", broken)
    with pytest.raises(Unsupported, match=r'no pq wrapper available: pip install "holdfast\[postgres\]"') as caught:
        opened("postgres://host/db")
    assert isinstance(caught.value.__cause__, ImportError)


# Engines of others


def entry(value: str) -> Any:
    found = EntryPoint("theirs", value, "holdfast.engines")
    return lambda group, name: [found] if (group, name) == ("holdfast.engines", "theirs") else []


def their_engine(url: str, clock: Clock, ids: Ids) -> RamEngine:
    return RamEngine(clock, ids)


def test_others_add_engines_by_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    class Found:
        def load(self) -> Any:
            return their_engine

    monkeypatch.setattr("importlib.metadata.entry_points", lambda group, name: [Found()] if name == "theirs" else [])
    engine = opened("theirs:anything")
    assert isinstance(engine, RamEngine)
    engine.close()
    with pytest.raises(Misconfigured, match="no engine for other:"):
        opened("other:anything")


def test_what_another_engine_lacks_is_its_own_affair(monkeypatch: pytest.MonkeyPatch) -> None:
    """We do not know which package would help, so the error stays as it is."""

    def lacking(url: str, clock: Clock, ids: Ids) -> Any:
        raise ModuleNotFoundError("No module named 'their_driver'")

    monkeypatch.setitem(registry._FACTORIES, "lacking", lacking)
    with pytest.raises(ModuleNotFoundError, match="their_driver"):
        opened("lacking:anything")
    monkeypatch.setattr("importlib.metadata.entry_points", entry("no_such_package_here:engine"))
    with pytest.raises(ModuleNotFoundError, match="no_such_package_here"):
        opened("theirs:anything")
