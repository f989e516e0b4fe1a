"""The docs are true: their Python runs, their command reference is today's, their links lead somewhere."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OPT_OUT = "<!-- not run"


def _script(page: Path) -> str:
    """Return the page's Python blocks as one script whose line numbers are those of the page.

    A block below a line that starts with ``<!-- not run`` is left out; the comment goes on to say why.
    """
    out: list[str] = []
    inside = running = False
    last = ""
    for line in page.read_text(encoding="utf-8").splitlines():
        fence = line.strip().startswith("```")
        if fence and not inside:
            inside, running = True, line.strip() == "```python" and not last.startswith(OPT_OUT)
            out.append("")
        elif fence:
            inside = running = False
            out.append("")
        else:
            out.append(line if running else "")
        if line.strip():
            last = line.strip()
    return "\n".join(out) + "\n"


def _named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.slow  # a process for each page
@pytest.mark.parametrize("page", [page for page in PAGES if _script(page).strip()], ids=_named)
def test_python_in_the_docs_runs(page: Path, tmp_path: Path) -> None:
    script = tmp_path / f"{page.stem}.py"
    script.write_text(_script(page), encoding="utf-8")
    work = tmp_path / "work"
    work.mkdir()
    env = {**os.environ, "PYTHONWARNINGS": "error", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, str(script)], cwd=work, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, f"{_named(page)} (line numbers are the page's):\n{done.stderr}"


def test_the_readme_shows_python() -> None:
    assert _script(ROOT / "README.md").strip()


@pytest.mark.parametrize("page", [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *PAGES], ids=_named)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    dead = [name for name in targets if "://" not in name and not (page.parent / name).exists()]
    assert not dead


# The command


def _cli_docs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("cli_docs", ROOT / "tools" / "cli_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_command_reference_is_todays() -> None:
    page = ROOT / "docs" / "cli.md"
    assert page.exists(), "run: make docs"
    assert page.read_text(encoding="utf-8") == _cli_docs().render(), "run: make docs"


def test_every_command_has_help() -> None:
    tool = _cli_docs()
    silent = [path for path, node in tool.walk(tool.command()) if not (node.help or "").strip()]
    assert not silent
