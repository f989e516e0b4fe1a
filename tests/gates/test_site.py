"""The site is whole: every page has its place in it, and every link leads to a page of it."""

from __future__ import annotations

import importlib.util
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

UNLISTED = ("decisions/0", "examples/", "license.md")  # reached from a page that lists them


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "tools" / "site.py"
    spec = importlib.util.spec_from_file_location("site_tool", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _listed(nav: list[Any]) -> Iterator[str]:
    for item in nav:
        for value in item.values():
            if isinstance(value, str):
                yield value
            else:
                yield from _listed(value)


def test_every_link_leads_to_a_page_of_the_site(tool: ModuleType, root: Path) -> None:
    sites, broken = tool.pages(), []
    for source in sites:
        if source.endswith(".md") and source != "README.md":
            tool.rewrite((root / source).read_text(encoding="utf-8"), source, sites, broken)
    assert broken == []


def test_links_are_rewritten_and_code_is_left_alone(tool: ModuleType) -> None:
    page = "See [figures](../../benchmarks/README.md#x).\n\n```python\nrows[0](other.md)\n```\n"
    sites = {"docs/adapters/a.md": "adapters/a.md", "benchmarks/README.md": "benchmarks.md"}
    broken: list[str] = []
    done = tool.rewrite(page, "docs/adapters/a.md", sites, broken)
    assert done == page.replace("../../benchmarks/README.md", "../benchmarks.md")
    assert broken == []
    tool.rewrite("[x](gone.md)", "docs/adapters/a.md", sites, broken)
    assert broken == ["docs/adapters/a.md: gone.md"]


def test_every_page_is_in_the_navigation(tool: ModuleType, root: Path) -> None:
    nav = tomllib.loads((root / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    listed = list(_listed(nav))
    pages = {there for there in tool.pages().values() if there.endswith(".md")}
    assert sorted(set(listed)) == sorted(listed)
    assert set(listed) <= pages
    assert sorted(page for page in pages - set(listed) if not page.startswith(UNLISTED)) == []
