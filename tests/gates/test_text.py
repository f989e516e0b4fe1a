"""Nothing in the project's files depends on the machine it was written on."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

# Put together here, so that this file does not match itself.
_MACHINE = re.compile(
    r"(?<![\w.:/~-])/(?:"
    + "|".join(["wo" + "rk", "ro" + "ot", "ho" + r"me/\w+", "Us" + r"ers/\w+"])
    + r")(?=[/\s\"'`)]|$)"
)
_REGISTRY = re.compile(
    "|".join([r"files\.python" + "hosted", r"py" + r"pi\.org", r"--(?:extra-)?index-" + "url", "--find-" + "links"])
)
_MAX_BYTES = 500_000


def _files(root: Path) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    )
    names = listed.stdout.decode().split("\0")
    return [root / name for name in names if name and (root / name).is_file()]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def test_no_paths_of_one_machine_and_no_registry(root: Path) -> None:
    found = [
        f"{path.relative_to(root)}:{number}: {line.strip()[:80]}"
        for path in _files(root)
        for number, line in enumerate(_text(path).splitlines(), 1)
        if _MACHINE.search(line) or _REGISTRY.search(line)
    ]
    assert not found, "\n".join(found)


def test_no_large_files(root: Path) -> None:
    large = [path.relative_to(root) for path in _files(root) if path.stat().st_size > _MAX_BYTES]
    assert [path for path in large if path.parts[:2] != ("models", "holdfast_models")] == []


def test_the_patterns_would_notice() -> None:
    assert _MACHINE.search("see /" + "wo" + "rk/x")
    assert _MACHINE.search("in '/" + "ho" + "me/ana/x'")
    assert not _MACHINE.search("a/" + "wo" + "rk/x")
    assert not _MACHINE.search("/" + "wo" + "rkers")
    assert _REGISTRY.search("https://" + "py" + "pi.org/simple")
