"""Rooms meet at names that are meant for others: nobody reaches for a private name of another room.

What a room needs of a handle is an attribute without an underscore (``store.wiring``, ``thread.logbook``,
``thread.runbook``, ``folder.filebook``, ``memory.visible``, ``run.work``, ``turn.draft``). Inside a room private names
are its own business.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

# Where another one's private name is used, each with the reason.
REASONS = {
    ("atfork.py", "_at_fork_reinit"): "a lock's own way to begin anew in a forked child",
    ("testing/restarting.py", "_exit"): "the one way out of a forked child that never returns to its parent's program",
}
OF_A_TUPLE = {"_replace", "_asdict", "_fields"}


def room_of(name: str) -> str:
    return name.split("/", maxsplit=1)[0]


def defined(tree: ast.Module) -> Iterator[str]:
    """Every private name that a file gives to a function, an attribute or a variable."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def reached(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Private names of something else than ``self`` or the class itself, and private names that are imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not own and node.attr not in OF_A_TUPLE:
                yield node.lineno, node.attr
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("holdfast"):
            yield from ((node.lineno, each.name) for each in node.names if each.name.startswith("_"))


def foreign(trees: dict[str, ast.Module]) -> dict[tuple[str, str], int]:
    """Where a file reaches for a private name that no file of its room defines."""
    own: dict[str, set[str]] = {}
    for name, tree in trees.items():
        own.setdefault(room_of(name), set()).update(defined(tree))
    return {
        (name, attr): line
        for name, tree in trees.items()
        for line, attr in reached(tree)
        if attr not in own[room_of(name)]
    }


def test_nobody_reaches_for_a_private_name(trees: dict[str, ast.Module]) -> None:
    found = foreign(trees)
    strays = [f"{name}:{line} {attr}" for (name, attr), line in found.items() if (name, attr) not in REASONS]
    assert not strays, f"give it a name for others, or a function in the room that it is of: {strays}"
    assert not REASONS.keys() - found.keys(), "take out of REASONS what nobody needs any more"


def test_a_class_name_has_one_meaning(trees: dict[str, ast.Module]) -> None:
    names = Counter(
        node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    )  # fmt: skip
    assert not [name for name, count in names.items() if count > 1], "one class name, one meaning"


def test_the_gate_would_notice() -> None:
    source = "self._a; cls._b; x._replace(y=1); thread._record(); self._thread._core; a.__doc__; f()._c; g._own\n"
    trees = {"one/a.py": ast.parse(source), "one/b.py": ast.parse("def _own(): ...\n")}
    assert {attr for _, attr in foreign(trees)} == {"_record", "_core", "_c"}
    assert ("two/c.py", "_hidden") in foreign({"two/c.py": ast.parse("from holdfast.one import _hidden\n")})
