"""What holds for every test: a clean environment, no leaks, no silent skip; and the engines that tests run on.

**Which engine proves what.** The contract suite and its state machines prove the engines equal. So the tests of rooms
run on RAM and SQLite, and on Postgres only what could differ there: the order of texts, NUL and large values, the
server's clock, other processes' transactions, its plans, what ``verify`` and ``erase`` reach, and the main road of each
room. Such a test is marked ``every_engine``. With ``--long`` (`make long`) the others run there as well, searches are
long, and where tests take some of very many cases they take all.

**How Postgres is shared.** Each worker of pytest-xdist starts one server when a test first asks for it. It does not
sync: these tests are about meaning. What breaks servers, or looks at what survives, brings its own. Tests share a
database and have a tenant each.

A test that cannot run because an engine is missing says so by skipping with a reason that begins with ``backend NAME``.
``HOLDFAST_REQUIRE_BACKENDS``, which ``make test`` sets, makes that a failure.
"""

from __future__ import annotations

import gc
import inspect
import os
import random
import re
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import holdfast
from holdfast.clock import Clock
from holdfast.ledger.core import Core
from holdfast.testing import ManualClock
from holdfast.wiring import Wiring

pytest.register_assert_rewrite("session_suite", "langgraph_store_suite")
SUPPORT = str(Path(__file__).parent / "support")
# Programs that tests start find what tests share, too.
os.environ["PYTHONPATH"] = os.pathsep.join([SUPPORT, *filter(None, [os.environ.get("PYTHONPATH")])])
os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # some tests import onnxruntime themselves

collect_ignore = ["adapters"]  # each in an environment of its own: make test-adapters

ENGINES = ("ram", "sqlite", "postgres")
Some = Callable[[Iterable[Any], int], Iterator[Any]]

_KEEP = "HOLDFAST_TEST_"  # addresses of servers that a person gave to the tests
_REQUIRED = tuple(name.strip() for name in os.environ.get("HOLDFAST_REQUIRE_BACKENDS", "").split(",") if name.strip())
_GRACE_S = 2.0
_OPEN_FILES = Path("/proc/self/fd")
_MEMORY = Path("/dev/shm")
_TENANTS = count(1)

# A test that needs more or fewer examples says so as a multiple of these, so that `make long` means it too.
for _profile, _examples in (("fast", 25), ("ci", 50), ("long", 1_000)):
    settings.register_profile(
        _profile, max_examples=_examples, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile("fast")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="every test on every engine, long searches, every case")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("long"):
        settings.load_profile("long")
    if _shares_out(config):
        return  # no test runs in this process, and its workers still have to read what is required
    for name in [name for name in os.environ if name.startswith("HOLDFAST_") and not name.startswith(_KEEP)]:
        del os.environ[name]
    # Most tests are not about meaning; those that are name their models. The slow ones would be loaded by hundreds.
    os.environ |= {"HOLDFAST_EMBEDDER": "wordllama", "HOLDFAST_RERANKER": "none"}


# Engines


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Choose the engines of a test by what it asks for. Its id names the engine, and ``engine_name`` is a fixture."""
    if "engine_name" in metafunc.fixturenames:
        # The fast tests need no server.
        names = [pytest.param(name, marks=pytest.mark.slow) if name == "postgres" else name for name in _on(metafunc)]
        metafunc.parametrize("engine_name", names)


def _on(metafunc: pytest.Metafunc) -> tuple[str, ...]:
    asked, marked = metafunc.fixturenames, metafunc.definition.get_closest_marker("every_engine")
    known = ENGINES if marked or metafunc.config.getoption("long") else ENGINES[:2]
    if "any_engine" in asked:
        return ENGINES[:1]
    return known[1:] if "reopen" in asked or "durable_engine" in asked else known


@pytest.fixture
def any_engine() -> None:
    """For tests of what happens before an engine is reached: one engine, the quickest, is enough."""


@pytest.fixture
def durable_engine() -> None:
    """For tests in which two stores meet that do not know of each other: not in memory."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the server before a test's own fixtures: what it needs to run is nothing that the test left behind."""
    for item in items:
        known = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        if known.get("engine_name") == "postgres":
            item.fixturenames = ["database", *item.fixturenames]  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """The one Postgres of all tests of a worker. Starting one takes longer than most of them."""
    try:
        from holdfast.testing.postgres import Server, ServerUnavailable  # noqa: PLC0415 - it needs an extra
    except ImportError as error:
        pytest.skip(f"backend postgres: {error}")
    try:
        server = Server(fsync=False)
    except ServerUnavailable as error:
        pytest.skip(f"backend postgres: {error}")
    with server:
        yield server


@pytest.fixture(scope="session")
def shared_database(postgres: Any) -> Iterator[tuple[str, Any]]:
    """The address of a database, and an engine on it. A clone for each test would take too long."""
    url = postgres.clone()
    with holdfast.open(url, embedder="none") as store:
        yield url, store.core.engine


@pytest.fixture
def database(request: pytest.FixtureRequest, postgres: Any, shared_database: tuple[str, Any]) -> tuple[str, Any]:
    """The same. A test that proves its store sound has it empty: ``verify`` covers all tenants, harmed ones too."""
    if ".verify(" in inspect.getsource(request.module):
        postgres.empty(shared_database[0])
    return shared_database


@pytest.fixture
def some(request: pytest.FixtureRequest) -> Some:
    """Of very many cases every ``nth``, from one on that the seed of the run draws: ``some(cases, nth)``."""
    if request.config.getoption("long"):
        return lambda cases, nth: iter(cases)
    return lambda cases, nth: islice(cases, random.randrange(nth), None, nth)


@pytest.fixture
def clock() -> Clock:
    return ManualClock()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for files that need not survive anything, in memory where the system has such a place."""
    with tempfile.TemporaryDirectory(prefix="holdfast-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None) as made:
        yield Path(made)


@pytest.fixture
def store(engine_name: str, request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[holdfast.Store]:
    """A new, empty store on each engine in turn."""
    if engine_name == "postgres":
        _, engine = request.getfixturevalue("database")
        engine._clock = clock  # what has expired is hidden by the engine's clock
        yield holdfast.Store(Wiring(Core(engine, f"store-{next(_TENANTS)}", clock, holdfast.Registry())))
        return
    url = "ram:" if engine_name == "ram" else str(tmp_path / "store.db")
    with holdfast.open(url, clock=clock, embedder="none") as opened:
        yield opened


@pytest.fixture
def ram(clock: Clock) -> Iterator[holdfast.Store]:
    """A store for tests of what does not depend on the engine."""
    with holdfast.open("ram:", clock=clock, embedder="none") as opened:
        yield opened


# Leaks


@pytest.fixture(autouse=True)
def _nothing_left_behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fail a test that leaves a thread running or a file of its own open: a store was not closed."""
    folder = str(tmp_path_factory.getbasetemp())
    threads, files = set(threading.enumerate()), _open_under(folder)
    yield
    left = [*_threads_left(threads), *_files_left(files, folder)]
    assert not left, f"left behind by the test: {', '.join(left)}"


def _threads_left(before: set[threading.Thread]) -> list[str]:
    def new() -> list[threading.Thread]:
        return [
            thread
            for thread in threading.enumerate()
            if thread not in before and (not thread.daemon or thread.name.startswith("holdfast"))
        ]

    deadline = time.monotonic() + _GRACE_S
    for thread in new():
        thread.join(max(0.0, deadline - time.monotonic()))
    return [f"thread {thread.name}" for thread in new()]


def _files_left(before: set[tuple[str, str]], folder: str) -> list[str]:
    if _open_under(folder) - before:
        gc.collect()  # a handle that only awaits collection is not a leak
    return sorted(f"open file {name}" for _, name in _open_under(folder) - before)


def _open_under(folder: str) -> set[tuple[str, str]]:
    if not _OPEN_FILES.is_dir():
        return set()
    found = set()
    for handle in os.listdir(_OPEN_FILES):
        try:
            name = os.readlink(_OPEN_FILES / handle)
        except OSError:  # the handle that listed the folder is gone already
            continue
        if name.startswith(folder):
            found.add((handle, name))
    return found


# Skips, and the engines that must have been tested: what workers report, counted where their reports arrive

_skipped: Counter[str] = Counter()
_passed: Counter[str] = Counter()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = _reason(report)
        missing = next((name for name in _REQUIRED if reason.lower().startswith(f"backend {name}")), None)
        if missing:
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid}: {reason}, but {missing} is required here"
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        _skipped[_reason(report)] += 1
    elif report.passed and report.when == "call":
        _passed[next((name for name in reversed(ENGINES) if _names(report.nodeid, name)), "none")] += 1


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.skipped:  # a whole file, by importorskip
        _skipped[f"{_reason(report)} ({report.nodeid})"] += 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.exitstatus == pytest.ExitCode.OK and not _is_worker(session.config) and _untested():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for reason, times in sorted(_skipped.items()):
        terminalreporter.write_line(f"skipped {times}: {reason}")
    for name in _untested():
        terminalreporter.write_line(f"FAILED: {name} is required here, and no test of it ran", red=True)
    told = ", ".join(f"{name} {_passed[name]:,}" for name in (*ENGINES, "none"))
    terminalreporter.write_line(f"passed by the engine that a test names: {told}")


def _shares_out(config: pytest.Config) -> bool:
    """Whether this is the process that hands tests to workers."""
    return bool(config.getoption("numprocesses", None)) and not _is_worker(config)


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    return str(text).removeprefix("Skipped: ")


def _names(nodeid: str, backend: str) -> bool:
    """Whether a test's path, class or parameters name an engine: test_ram.py and TestRam do, parameters does not."""
    return bool(re.search(rf"(?<![a-z]){backend}(?![a-z])|{backend.capitalize()}(?![a-z])", nodeid))


def _untested() -> list[str]:
    """Required engines that no passed test names in its path, class or parameters."""
    return [name for name in _REQUIRED if not _passed[name]]
