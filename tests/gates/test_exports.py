"""What ``holdfast`` offers is what it says it offers, and people can read about all of it."""

from __future__ import annotations

import types
from pathlib import Path

import holdfast


def test_every_exported_name_exists_once() -> None:
    names = holdfast.__all__
    assert len(names) == len(set(names))
    assert [name for name in names if not hasattr(holdfast, name)] == []


def test_nothing_public_is_unlisted() -> None:
    found = {
        name
        for name, value in vars(holdfast).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType) and name != "annotations"
    }
    assert found <= set(holdfast.__all__), (
        f"give these a leading underscore or list them: {found - set(holdfast.__all__)}"
    )


def test_every_exported_thing_says_what_it_is() -> None:
    silent = []
    for name in holdfast.__all__:
        value = getattr(holdfast, name)
        if isinstance(value, type) or callable(value):
            doc = (value.__doc__ or "").strip()
            # A dataclass or Struct without a docstring shows its signature instead.
            if not doc or doc.startswith(f"{name}("):
                silent.append(name)
    assert not silent, f"exported without a docstring: {silent}"


def test_every_exported_name_is_in_the_docs(root: Path) -> None:
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    missing = [name for name in holdfast.__all__ if not name.startswith("_") and name not in text]
    assert not missing, f"no page of the docs mentions {missing}"


def test_the_surface_stays_small() -> None:
    """Values and reports belong in ``holdfast.types``; a thread that can do more than this is two things."""
    assert len(holdfast.__all__) <= 45
    verbs = [
        name for name in dir(holdfast.Thread) if not name.startswith("_") and callable(getattr(holdfast.Thread, name))
    ]
    assert len(verbs) <= 25, verbs


def test_every_value_is_in_types() -> None:
    assert [name for name in holdfast.types.__all__ if not hasattr(holdfast.types, name)] == []
    assert not set(holdfast.types.__all__) & set(holdfast.__all__), "one name, one place"
