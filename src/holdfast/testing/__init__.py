"""Tests for your engines and agents: fakes, the contract suite, a state machine, and crashes at every commit.

``contract`` holds the promises of ``holdfast.engine.contract`` as pytest classes, ``machine`` compares an engine with
the one in memory under random use, ``restarting`` runs an agent through every point at which it can die, and ``models``
has a scripted model. Import them by name, so that only their users need pytest and Hypothesis. Deliberately absent:
tests of one engine's own files, settings or servers; those live beside the engine.
"""

from __future__ import annotations

import sys

from holdfast.testing.fakes import ManualClock, SeededIds

__all__ = ["ManualClock", "SeededIds"]

# In a pytest run a broken promise should show the compared values. pytest rewrites only modules registered
# before their import, and this is the last place that runs before them.
if "pytest" in sys.modules:
    suites = ("contract", "machine")
    sys.modules["pytest"].register_assert_rewrite(*(f"holdfast.testing.{name}" for name in suites))
