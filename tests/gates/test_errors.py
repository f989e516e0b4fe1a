"""Each error has a code of its own, a sentence, and a row in docs/errors.md that agrees with the class."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import errors


def _tree(kind: type[errors.HoldfastError]) -> Iterator[type[errors.HoldfastError]]:
    yield kind
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from _tree(child)


CLASSES = list(_tree(errors.HoldfastError))


def _rows(root: Path) -> dict[str, tuple[str, str]]:
    """Read the table of docs/errors.md as name -> (code, retry)."""
    text = (root / "docs" / "errors.md").read_text(encoding="utf-8")
    return {
        name: (code, retry) for name, code, retry in re.findall(r"^\| `(\w+)` \| `(\w+)` \| (yes|no) \|", text, re.M)
    }


def test_codes_are_unique() -> None:
    codes = [kind.code for kind in CLASSES]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize("kind", CLASSES)
def test_each_class_carries_its_own_code_and_sentence(kind: type[errors.HoldfastError]) -> None:
    assert "code" in vars(kind), "a code that is inherited tells a caller nothing"
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", kind.code)
    assert (kind.__doc__ or "").strip().endswith(".")
    assert str(kind()) == (kind.__doc__ or "").strip().splitlines()[0]


@pytest.mark.parametrize("kind", CLASSES)
def test_facts_are_attributes_and_cross_processes(kind: type[errors.HoldfastError]) -> None:
    error = kind("what happened", thread="t-1", expected=3)
    assert (error.thread, error.expected) == ("t-1", 3)
    # Executors and test runners carry errors between processes this way; nothing stored is ever unpickled.
    twin = pickle.loads(pickle.dumps(error))
    assert (type(twin), str(twin), twin.facts) == (kind, "what happened", error.facts)


def test_the_drawn_tree_names_every_class() -> None:
    drawn = re.findall(r"^[ │├└─]+(\w+)", (errors.__doc__ or ""), re.M)
    assert {kind.__name__ for kind in CLASSES} <= set(drawn)


def test_the_page_and_the_classes_agree(root: Path) -> None:
    expected = {kind.__name__: (kind.code, "yes" if kind.retryable else "no") for kind in CLASSES}
    assert _rows(root) == expected
