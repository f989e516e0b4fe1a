"""A handoff on each engine in turn, facts of runs that a test decides, and git that knows nothing of this machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast
from holdfast.engine.contract import Append, Put, Scope
from holdfast.handoff import Handoff, HandoffItem


class Facts:
    """What the runs of a thread have done, as the test says."""

    def __init__(self) -> None:
        self.items: list[HandoffItem] = []
        self.blockers: list[str] = []


def handoff_of(store: holdfast.Store, thread: str, facts: Facts | None = None, **owner: str) -> Handoff:
    """The handle that a thread of the store gives, made by hand."""
    facts = facts or Facts()
    scope = Scope(owner.get("user"), owner.get("agent"), thread)
    new = Put("thread", thread, b"j1{}", scope=scope)
    return Handoff(
        store.core, thread, scope, lambda: Append("thread", thread, new=new),
        lambda: list(facts.items), lambda: list(facts.blockers),
    )  # fmt: skip


@pytest.fixture
def facts() -> Facts:
    return Facts()


@pytest.fixture
def make() -> Callable[..., Handoff]:
    """How to make a handle of any thread: ``make(store, thread, facts, user=…, agent=…)``."""
    return handoff_of


@pytest.fixture
def book(store: holdfast.Store, facts: Facts) -> Handoff:
    return handoff_of(store, "trip-42", facts)


class Repository:
    """A real git repository of one test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def git(self, *arguments: str, check: bool = True) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.folder, capture_output=True, text=True, check=False)
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def commit(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")
        self.git("add", "--", name)
        self.git("commit", "--quiet", "-m", f"add {name}")

    def hook(self, name: str, script: str) -> None:
        path = self.folder / ".git" / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def commits(self) -> list[str]:
        return self.git("log", "--format=%s", check=False).splitlines()


@pytest.fixture
def lonely_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Git without the settings of this machine; returns the file of its global ones."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    settings = home / ".gitconfig"
    settings.write_text("[user]\n\tuseConfigOnly = true\n[init]\n\tdefaultBranch = main\n", encoding="utf-8")
    for name, value in {
        "HOME": str(home), "XDG_CONFIG_HOME": str(home / "xdg"), "GIT_CONFIG_GLOBAL": str(settings),
        "GIT_CONFIG_NOSYSTEM": "1", "GIT_CEILING_DIRECTORIES": str(tmp_path.parent),
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    return settings


@pytest.fixture
def repository(lonely_git: Path, tmp_path: Path) -> Repository:
    folder = tmp_path / "project"
    folder.mkdir()
    made = Repository(folder)
    made.git("init", "--quiet")
    made.git("config", "user.name", "Ana")
    made.git("config", "user.email", "ana@example.org")
    return made
