"""The promises of ``holdfast.engine.contract`` as tests, for every engine, ours and others'.

An engine is proved by a class of about fifteen lines::

    class TestMyEngine(EngineContract):
        @pytest.fixture
        def engine(self, clock, ids, tmp_path):
            engine = MyEngine(tmp_path / "store", clock, ids)
            yield engine
            engine.close()

        @pytest.fixture
        def reopen(self, engine, clock, ids, tmp_path):   # durable engines only
            opened = []
            def again(path=None):
                engine.close()
                opened.append(MyEngine(path or tmp_path / "store", clock, ids))
                return opened[-1]
            yield again
            for engine in opened:
                engine.close()

The engine must use the given clock, because expiry is tested by moving it. A promise that an engine makes no claim to
(``durable`` is False, no ``submit``, no ``backup``) is skipped by the name of that capability; nothing
is skipped by the name of an engine. Deliberately absent: other processes and broken disks, which need to know how an
engine is reached; speed; and any engine's own settings.
"""

from __future__ import annotations

import pytest

from holdfast.clock import Clock
from holdfast.engine.contract import Engine
from holdfast.ids import Ids
from holdfast.testing.contract.adoption import AdoptPromises
from holdfast.testing.contract.batches import BatchPromises, GuardPromises, LimitPromises
from holdfast.testing.contract.erasing import CheckPromises, ErasePromises
from holdfast.testing.contract.following import FeedPromises, SnapshotPromises
from holdfast.testing.contract.forks import ForkKeyPromises, ForkPromises, RewindPromises
from holdfast.testing.contract.lifetimes import (
    BackupPromises,
    ClosePromises,
    DurablePromises,
    Reopen,
    SubmitPromises,
    ThreadPromises,
)
from holdfast.testing.contract.records import DeletePromises, PutPromises, ScanPromises
from holdfast.testing.contract.scene import Scene
from holdfast.testing.contract.streams import AppendPromises, KeyPromises, ReadPromises
from holdfast.testing.fakes import ManualClock, SeededIds

__all__ = ["EngineContract", "Reopen"]


class EngineContract(
    PutPromises,
    DeletePromises,
    ScanPromises,
    AppendPromises,
    KeyPromises,
    ReadPromises,
    ForkPromises,
    ForkKeyPromises,
    RewindPromises,
    AdoptPromises,
    BatchPromises,
    GuardPromises,
    LimitPromises,
    FeedPromises,
    SnapshotPromises,
    ErasePromises,
    CheckPromises,
    ThreadPromises,
    SubmitPromises,
    ClosePromises,
    DurablePromises,
    BackupPromises,
):
    """Every promise of the engine contract. Subclass it, and supply ``engine`` and, when it is durable, ``reopen``."""

    @pytest.fixture
    def clock(self) -> ManualClock:
        return ManualClock()

    @pytest.fixture
    def ids(self) -> Ids:
        return SeededIds()

    @pytest.fixture
    def engine(self, clock: ManualClock, ids: Ids) -> Engine:
        pytest.fail("supply the fixture `engine`: a new, empty engine on the given clock and ids")

    @pytest.fixture
    def reopen(self, engine: Engine) -> Reopen:
        if engine.durable:
            pytest.fail("a durable engine must supply the fixture `reopen`")
        pytest.skip("capability durable: this engine keeps nothing when it is closed")

    @pytest.fixture
    def scene(self, engine: Engine, clock: Clock) -> Scene:
        return Scene(engine, clock)
