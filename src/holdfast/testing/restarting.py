"""Restarts of an agent: killed at every commit, run again, and what the outside world saw compared.

``crash_everywhere`` is quick: everything is in memory, and a crash is raised. ``kill_everywhere`` runs the agent in
processes of their own, on a file or a server, and ends them with SIGKILL. Both first run the agent undisturbed; what
the world saw then, it must have seen after every crash as well. Deliberately absent: a death in the middle of your own
function (on disk it looks like the point before the next commit), and power cuts.
"""

from __future__ import annotations

import os
import re
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from difflib import unified_diff
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from holdfast.clock import Clock, SystemClock
from holdfast.engine.contract import Engine
from holdfast.engine.registry import open_engine, scheme_of
from holdfast.errors import Invalid, Unsupported
from holdfast.ids import Ids
from holdfast.ledger.core import Core
from holdfast.ledger.schema import DEFAULT
from holdfast.steps.runs import RunBook
from holdfast.store import Store
from holdfast.testing.crashing import Crash, Fuse, MortalEngine
from holdfast.testing.fakes import ManualClock
from holdfast.wiring import Wiring

_LEASE_S = 30.0
_KEY = re.compile(r"hf-[0-9a-f]{32}")  # of a step; each run has its own
_ADDRESS = re.compile(r"at 0x[0-9a-f]+")


class _Attempt(NamedTuple):
    """An agent that died at a point and was run again, or came through (None): its store, and what it left outside."""

    point: str | None
    store: Store
    world: Any


def crash_everywhere(
    agent: Callable[..., Any], check: Callable[[Store], Any] | None = None, *, world: Callable[[], Any] | None = None
) -> list[str]:
    """Crash an agent before and after each of its commits, run it again, and compare; return the points.

    ``agent`` is called with a store in memory, and once more after the crash, with the same store reopened. ``world``
    makes a fake outside world for each attempt, such as ``list`` or a class of yours; the agent gets it as its second
    argument, and afterwards its content must be that of a run without a crash. ``check`` raises if something is wrong
    with the store.
    """
    return _everywhere(lambda at: _crashed(agent, world, at), check)


def kill_everywhere(
    agent: Callable[[Store, Path], Any], check: Callable[[Store], Any] | None = None, *, url: str | None = None
) -> list[str]:
    """The same with real processes, ended by SIGKILL, on a SQLite file or the database at ``url``.

    The agent's world is an empty folder: what it does outside the store it writes there. At a ``url`` each attempt has
    a tenant of its own and leaves it behind, so name a database that is there for tests.
    """
    if not hasattr(os, "fork"):
        raise Unsupported("kill_everywhere needs os.fork, which this system lacks; use crash_everywhere")
    if url is not None and scheme_of(url) == "ram":
        raise Invalid("processes do not share a store in memory; name a file or a server, or use crash_everywhere")
    return _everywhere(lambda at: _killed(agent, url, at), check)


def _everywhere(
    attempt: Callable[[int | None], AbstractContextManager[_Attempt]], check: Callable[[Store], Any] | None
) -> list[str]:
    points: list[str] = []
    undisturbed: list[str] | None = None
    for at in chain([None], count()):
        with attempt(at) as done, _noted(done.point):
            if at is not None and done.point is None:
                break
            if check is not None:
                check(done.store)
            seen = list(_told(done.world))
            undisturbed = seen if undisturbed is None else undisturbed
            if seen != undisturbed:
                told = unified_diff(undisturbed, seen, "without a crash", "with the crash", lineterm="")
                raise AssertionError("\n".join(("the world saw something else:", *told)))
            points += [done.point] if done.point else []
    return points


@contextmanager
def _noted(point: str | None) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        error.add_note("without a crash" if point is None else f"after a crash at {point!r}")
        raise


def _told(world: Any, name: str = "world", outer: tuple[int, ...] = ()) -> Iterator[str]:
    """What is in a world, a line for each value, without what differs from run to run: keys of steps, addresses."""
    if id(world) in outer:
        yield f"{name}: see above"
        return
    if isinstance(world, Path):
        yield from _told_of_folder(world)
        return
    inner = _inside(world, name)
    if inner is None or not inner:
        yield f"{name}: {_steady(repr(sorted(world, key=repr) if isinstance(world, set) else world))}"
        return
    for each, value in inner:
        yield from _told(value, each, (*outer, id(world)))


def _inside(world: Any, name: str) -> list[tuple[str, Any]] | None:
    """The named parts of a value: items, and attributes; None if it is one whole."""
    parts: list[tuple[str, Any]] = []
    if isinstance(world, dict):
        parts += [(f"{name}[{_steady(repr(key))}]", value) for key, value in world.items()]
    elif isinstance(world, list | tuple):
        parts += [(name, value) for value in world]
    elif isinstance(world, type) or callable(world):
        return None
    slots = (slot for kind in type(world).__mro__ for slot in getattr(kind, "__slots__", ()) if hasattr(world, slot))
    attributes = {**getattr(world, "__dict__", {}), **{slot: getattr(world, slot) for slot in slots}}
    return [*parts, *((f"{name}.{key}", value) for key, value in attributes.items())]


def _told_of_folder(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*"), key=lambda path: _steady(str(path))):
        name = _steady(str(path.relative_to(folder)))
        lines = path.read_text(errors="replace").splitlines() if path.is_file() else ["a folder"]
        yield from (f"{name}: {_steady(line)}" for line in lines or [""])


def _steady(text: str) -> str:
    return _ADDRESS.sub("at …", _KEY.sub("hf-…", text))


def _fresh(world: Callable[[], Any]) -> Any:
    """A new world. What its class holds would be shared by all attempts."""
    made = world()
    for name, value in vars(type(made)).items():
        if isinstance(value, list | dict | set) and not name.startswith("__"):
            raise Invalid(
                f"{type(made).__name__}.{name} belongs to the class, so all attempts share it; set it in __init__"
            )
    return made


@contextmanager
def _process(engine: Engine, fuse: Fuse, clock: Clock, tenant: str = "default") -> Iterator[Store]:
    """The store as one process has it open. Its threads end with it; the engine stays."""
    core = Core(MortalEngine(engine, fuse), tenant, clock, DEFAULT)
    runs = RunBook(core, Ids(), _LEASE_S)
    runs.now = clock.now  # not the server's: here leases end when a test says so
    try:
        yield Store(Wiring(core, runs))
    finally:
        runs.renewer.close()


# In memory


@contextmanager
def _crashed(agent: Callable[..., Any], world: Callable[[], Any] | None, at: int | None) -> Iterator[_Attempt]:
    clock, fuse = ManualClock(), Fuse(at)
    given = () if world is None else (_fresh(world),)
    with closing(open_engine("ram:", clock, Ids())) as engine:
        with _process(engine, fuse, clock) as store, suppress(Crash):
            agent(store, *given)
        point = fuse.names[-1] if fuse.dead else None
        with _process(engine, Fuse(), clock) as survivor:
            if point is not None:
                clock.advance(_LEASE_S + 1)
                with _noted(point):
                    agent(survivor, *given)
            yield _Attempt(point, survivor, *given or (None,))


# In processes


class _Later(SystemClock):
    """The wall clock, so much later that the leases of those who died have ended."""

    def __init__(self, lives: int) -> None:
        self._shift = round(lives * (_LEASE_S + 1) * 1_000_000)

    def now(self) -> int:
        return super().now() + self._shift


class _KillPlace(NamedTuple):
    """Where the processes of one attempt meet."""

    folder: Path
    url: str
    tenant: str

    @property
    def world(self) -> Path:
        return self.folder / "world"

    @contextmanager
    def store(self, lives: int, fuse: Fuse) -> Iterator[Store]:
        clock = _Later(lives)
        with (
            closing(open_engine(self.url, clock, Ids())) as engine,
            _process(engine, fuse, clock, self.tenant) as store,
        ):
            yield store


@contextmanager
def _killed(agent: Callable[[Store, Path], Any], url: str | None, at: int | None) -> Iterator[_Attempt]:
    with TemporaryDirectory(prefix="holdfast-") as made:
        folder = Path(made)
        tenant = "default" if url is None else f"killed-{Ids().token()}"
        place = _KillPlace(folder, url or str(folder / "agent.db"), tenant)
        place.world.mkdir()
        point = _lived(agent, place, 0, at)
        if point is not None:
            with _noted(point):
                _lived(agent, place, 1, None)
        with place.store(2, Fuse()) as store:
            yield _Attempt(point, store, place.world)


def _lived(agent: Callable[[Store, Path], Any], place: _KillPlace, lives: int, at: int | None) -> str | None:
    """The life of an agent in a process of its own: where it was killed, or None."""
    died, failed = place.folder / "died", place.folder / "failed"
    with warnings.catch_warnings():  # about threads of the caller's: none of them has a part in this
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            fuse = Fuse(at, lambda: _die(died, fuse))
            with place.store(lives, fuse) as store:
                agent(store, place.world)
            os._exit(0)
        except BaseException:
            failed.write_text(traceback.format_exc(), encoding="utf-8")
        finally:
            os._exit(1)  # never back into the caller's program
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == -signal.SIGKILL and died.exists():
        return died.read_text(encoding="utf-8")
    if code:
        why = failed.read_text(encoding="utf-8") if failed.exists() else f"it ended with {code}"
        raise AssertionError(f"the agent failed in its process: {why}")
    return None


def _die(died: Path, fuse: Fuse) -> None:
    died.write_text(fuse.names[-1], encoding="utf-8")
    os.kill(os.getpid(), signal.SIGKILL)
