"""ARCHITECTURE.md stays short, and every path it names is there."""

from __future__ import annotations

import re
from pathlib import Path

MAX_LINES = 150
_SUFFIXES = (".py", ".md", ".sql", ".toml", ".txt", ".typed")


def test_it_fits_on_a_few_screens(root: Path) -> None:
    lines = (root / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= MAX_LINES


def test_every_path_it_names_exists(root: Path) -> None:
    text = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = [name for name in re.findall(r"`([^`\s]+)`", text) if name.endswith(("/", *_SUFFIXES))]
    assert named, "no path was recognised, so nothing was checked"
    places = (root, root / "src" / "holdfast")
    missing = sorted({name for name in named if not any((place / name).exists() for place in places)})
    assert not missing, f"ARCHITECTURE.md names what is not there: {missing}"


def test_every_room_is_on_the_map(root: Path) -> None:
    text = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    package = root / "src" / "holdfast"
    rooms = [path.name for path in package.iterdir() if path.is_dir() and any(path.rglob("*.py"))]
    missing = sorted(name for name in rooms if f"`{name}/`" not in text)
    assert not missing, f"ARCHITECTURE.md says nothing of these folders: {missing}"


def test_every_decision_is_listed(root: Path) -> None:
    folder = root / "docs" / "decisions"
    listed = (folder / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in sorted(folder.glob("0*.md")) if f"({page.name})" not in listed] == []
