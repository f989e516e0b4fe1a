"""The engine in memory keeps the contract. It is the model other engines are compared with."""

from __future__ import annotations

import pytest

from holdfast.engine.contract import Engine
from holdfast.engine.ram import RamEngine
from holdfast.ids import Ids
from holdfast.testing import ManualClock
from holdfast.testing.contract import EngineContract


class TestRamEngine(EngineContract):
    @pytest.fixture
    def engine(self, clock: ManualClock, ids: Ids) -> Engine:
        return RamEngine(clock, ids)
