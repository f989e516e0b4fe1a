"""The demonstration ends by offering a chat, and what it offers goes on where the killed agent was."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import config

pytest.importorskip("typer", reason="the command's extra is not installed")
pytestmark = pytest.mark.slow


def run(command: list[str], folder: Path, says: str = "") -> str:
    kept = {name: value for name, value in os.environ.items() if name not in config.VENDOR_MODELS}
    done = subprocess.run(
        command, cwd=folder, input=says, env={**kept, "PYTHONIOENCODING": "utf-8"}, capture_output=True,
        encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_command_it_offers_goes_on_with_the_same_conversation(tmp_path: Path) -> None:
    told = run([sys.executable, "-m", "holdfast", "demo"], tmp_path).splitlines()
    title = next(number for number, line in enumerate(told) if line.startswith("Try it yourself"))
    chat = shlex.split(told[title + 1], comments=True)
    talked = run(chat, tmp_path, "Where do I like to sit?\nWhich food is dangerous for me?\n")
    assert "thread trip-lisbon · user ana · answers by quoting" in talked
    assert "Welcome back: 39 entries" in talked
    assert "window" in talked
    assert "You said: “Ana Maria Sousa. No food with nuts: I am allergic.”" in talked
    again = run(chat, tmp_path)
    assert "Welcome back: " in again
    assert "never answered" not in again
