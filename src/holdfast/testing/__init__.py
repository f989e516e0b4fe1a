"""What others need to prove an engine of their own: fakes, the contract suite and a state machine.

``holdfast.testing.contract`` holds the promises of ``holdfast.engine.contract`` as pytest classes,
``holdfast.testing.machine`` compares an engine with the one in memory under random use. ``holdfast.testing.sessions``
and ``holdfast.testing.langgraph_store`` are suites for stores that frameworks use, whoever wrote them. All are imported
by name, so that pytest, Hypothesis and the frameworks are needed only by those who use them. Deliberately absent: tests
of one engine's own files, settings or servers; those live beside the engine.
"""

from __future__ import annotations

import sys

from holdfast.testing.fakes import ManualClock, SeededIds

__all__ = ["ManualClock", "SeededIds"]

# Inside a pytest run a broken promise should show the compared values. pytest rewrites only modules it was told about
# before they are imported, and this is the last place that runs before them.
if "pytest" in sys.modules:
    suites = ("contract", "machine", "sessions", "langgraph_store")
    sys.modules["pytest"].register_assert_rewrite(*(f"holdfast.testing.{name}" for name in suites))
