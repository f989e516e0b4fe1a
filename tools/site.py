"""Gather the pages of the documentation site into one folder, for Zensical to build.

``python tools/site.py`` writes ``build/docs``: everything in ``docs``, the pages that stand elsewhere in the repository
(architecture, benchmarks, changelog, contributing), and a page for each example. Links between them are rewritten, so
that the same page works in the repository and on the site. A link to something that is not on the site is an error.
Deliberately absent: text. Whatever the site says is in the pages themselves or in docstrings.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "docs"
_ELSEWHERE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "LICENSE": "license.md",
    "benchmarks/README.md": "benchmarks.md",
    "examples": "examples/index.md",
    "examples/patterns/README.md": "examples/patterns/index.md",
    "docs/decisions": "decisions/index.md",
    "docs/adapters": "adapters/index.md",
}
_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)]*)?\))")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def pages() -> dict[str, str]:
    """Map each path in the repository that the site shows to its path on the site."""
    found = dict(_ELSEWHERE)
    for path in sorted((ROOT / "docs").rglob("*")):
        if path.is_file():
            here = path.relative_to(ROOT / "docs")
            there = here.with_name("index.md") if here.name == "README.md" else here
            found[f"docs/{here.as_posix()}"] = there.as_posix()
    for path in sorted((ROOT / "examples").rglob("*.py")):
        here = path.relative_to(ROOT)
        found[here.as_posix()] = here.with_suffix(".md").as_posix()
    return found


def rewrite(text: str, source: str, sites: dict[str, str], broken: list[str]) -> str:
    """Return a page with its links turned into those of the site; code between fences stays as it is."""
    there = PurePosixPath(sites[source]).parent

    def link(match: re.Match[str]) -> str:
        target = match[2]
        if "://" in target or target.startswith("mailto:"):
            return match[0]
        name = os.path.normpath(PurePosixPath(source).parent / target)
        if name not in sites:
            broken.append(f"{source}: {target}")
            return match[0]
        return f"{match[1]}{os.path.relpath(sites[name], there)}{match[3]}"

    kept: list[str] = []
    bare = _FENCE.sub(lambda match: kept.append(match[0]) or f"\0{len(kept) - 1}\0", text)
    return re.sub(r"\0(\d+)\0", lambda match: kept[int(match[1])], _LINK.sub(link, bare))


def example(path: Path) -> str:
    """Return the page of one example: its source, under its name."""
    return f"# {path.name}\n\n```python\n{path.read_text(encoding='utf-8')}```\n"


def examples() -> str:
    """Return the page that lists the examples, each with the first line of its docstring."""
    lines = ["# Examples", "", "Whole programs that run offline. Kill them at any time, and run them again.", ""]
    for path in sorted((ROOT / "examples").rglob("*.py")):
        here = path.relative_to(ROOT / "examples")
        first = path.read_text(encoding="utf-8").lstrip("\"' \n").split("\n", 1)[0].rstrip("\"'")
        lines.append(f"- [{here.as_posix()}]({here.with_suffix('.md').as_posix()}): {first}")
    return "\n".join(lines) + "\n"


def main() -> int:
    shutil.rmtree(OUT, ignore_errors=True)
    sites, broken = pages(), []
    for source, there in sites.items():
        path, target = ROOT / source, OUT / there
        target.parent.mkdir(parents=True, exist_ok=True)
        if source == "README.md" or (path.is_dir() and source != "examples"):
            continue  # the site begins with docs/index.md; folders are named only to be linked to
        if source == "examples":
            target.write_text(examples(), encoding="utf-8")
        elif path.suffix == ".py":
            target.write_text(example(path), encoding="utf-8")
        elif path.suffix == ".md":
            text = rewrite(path.read_text(encoding="utf-8"), source, sites, broken)
            target.write_text(text, encoding="utf-8")
        elif source == "LICENSE":
            target.write_text(f"# License\n\n```\n{path.read_text(encoding='utf-8')}```\n", encoding="utf-8")
        else:
            shutil.copyfile(path, target)
    for line in broken:
        print(f"not on the site: {line}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
