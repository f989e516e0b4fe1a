"""What is built on the ledger uses what the ledger offers: no adapter and no import reaches for a private name.

What an adapter needs of a store is in ``adapters/opening.py``, which alone knows how a store is wired; what it needs of
threads and files are their books (``thread.logbook``, ``thread.statebook``, ``folder.filebook``).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

ABOVE = ("adapters/", "moving/")
# Where another one's private name is used, each with the reason.
REASONS = {
    ("adapters/opening.py", "_store"): "an async store stands on a blocking one",
    ("adapters/opening.py", "_finding"): "what finds files is made by the store, when it is first asked for",
    ("adapters/opening.py", "_purge"): "whoever erases by himself must tell the store",
    ("adapters/adk/sessions.py", "_storage_update_marker"): "ADK's own: what a service notes in a session",
    ("adapters/langgraph/saver.py", "_keeper"): "the saver's own, in a twin that it makes of itself",
    ("moving/parts.py", "_shelf"): "the books behind a handle of memories",
}
OF_A_TUPLE = {"_replace", "_asdict", "_fields"}


def reached(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Private names of something else than ``self`` or the class itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not own and node.attr not in OF_A_TUPLE:
                yield node.lineno, node.attr


def test_nobody_reaches_for_a_private_name(trees: dict[str, ast.Module]) -> None:
    found = {
        (name, attr): line
        for name, tree in trees.items()
        if name.startswith(ABOVE)
        for line, attr in reached(tree)
    }  # fmt: skip
    strays = [f"{name}:{line} {attr}" for (name, attr), line in found.items() if (name, attr) not in REASONS]
    assert not strays, f"use a book of the thread or folder, or Held of adapters/opening.py: {strays}"
    assert not REASONS.keys() - found.keys(), "take out of REASONS what nobody needs any more"


def test_the_gate_would_notice() -> None:
    source = "self._a; cls._b; x._replace(y=1); thread._record(); self._thread._core; a.__doc__; f()._c\n"
    assert {attr for _, attr in reached(ast.parse(source))} == {"_record", "_core", "_c"}
