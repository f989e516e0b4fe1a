"""Committing one file in real repositories: it alone, and never at the price of anything else that goes on there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.errors import Invalid
from holdfast.handoff import Handoff, HandoffFile
from holdfast.handoff.git import commit_file


@pytest.fixture
def book(ram: holdfast.Store, make: Any) -> Handoff:
    made: Handoff = make(ram, "trip-42")
    made.update(goal="Lisbon", done=["a", "b", "c"], todo=["d", "e"], next_action="Ask for\nanother card.")
    return made


@pytest.fixture
def other_work(repository: Any) -> Iterator[None]:
    """Things that someone else has staged, changed and left lying about; they must be the same afterwards."""
    repository.commit("staged.txt", "1")
    repository.commit("both.txt", "1")
    repository.commit("dirty.txt", "1")
    repository.commit("gone.txt", "1")
    folder: Path = repository.folder
    (folder / "staged.txt").write_text("2", encoding="utf-8")
    (folder / "both.txt").write_text("2", encoding="utf-8")
    repository.git("add", "staged.txt", "both.txt")
    (folder / "both.txt").write_text("3", encoding="utf-8")
    (folder / "dirty.txt").write_text("2", encoding="utf-8")
    (folder / "new.txt").write_text("1", encoding="utf-8")
    repository.git("add", "new.txt")
    repository.git("rm", "--quiet", "gone.txt")
    (folder / "loose.txt").write_text("1", encoding="utf-8")
    before = _others(repository)
    yield
    assert _others(repository) == before


def _others(repository: Any) -> tuple[list[str], ...]:
    index, status = repository.git("ls-files", "--stage"), repository.git("status", "--porcelain")
    return tuple([line for line in text.splitlines() if "P.md" not in line] for text in (index, status))


def _refused(written: HandoffFile, sentence: str) -> None:
    """The file is there, the commit is not, and the reason is said."""
    assert written.path.read_text(encoding="utf-8").startswith("# Handoff: trip-42\n")
    assert (written.committed, written.commit) == (False, None)
    assert written.why_not is not None
    assert sentence in written.why_not, written.why_not


# Commits


@pytest.mark.usefixtures("other_work")
def test_only_the_file_is_committed(book: Handoff, repository: Any) -> None:
    written = book.write(repository.folder / "P.md", git=True)
    assert written == HandoffFile(repository.folder / "P.md", True, True, repository.git("rev-parse", "HEAD").strip())
    assert repository.git("show", "--name-status", "--format=%s%n%an").split("\n\n") == [
        "Handoff of trip-42: 3 of 5 done, next: Ask for another card.\nAna",
        "A\tP.md\n",
    ]
    assert repository.git("show", "HEAD:P.md") == written.path.read_text(encoding="utf-8")
    book.update(done="d")
    again = book.write(repository.folder / "P.md", git=True)
    assert again.committed
    assert repository.git("show", "--name-status", "--format=%s") == (
        "Handoff of trip-42: 4 of 5 done, next: Ask for another card.\n\nM\tP.md\n"
    )
    assert repository.git("status", "--porcelain", "--", "P.md") == ""


def test_an_unchanged_file_is_not_committed_again(book: Handoff, repository: Any) -> None:
    assert book.write(repository.folder / "P.md", git=True).committed
    _refused(book.write(repository.folder / "P.md", git=True), "nothing to commit")
    assert len(repository.commits()) == 1


def test_what_was_written_without_git_is_committed_later(book: Handoff, repository: Any) -> None:
    book.write(repository.folder / "P.md")
    written = book.write(repository.folder / "P.md", git=True)
    assert (written.changed, written.committed) == (False, True)


def test_a_message_of_ones_own(book: Handoff, repository: Any) -> None:
    book.write(repository.folder / "P.md", git=True, message="# not a comment\n\n--amend $(x) é")
    assert repository.git("log", "-1", "--format=%B").strip() == "# not a comment\n\n--amend $(x) é"
    with pytest.raises(Invalid, match="commit message"):
        book.write(repository.folder / "P.md", git=True, message="")


@pytest.mark.parametrize("message", ["\ud800", "bad\udcff"])
def test_a_message_that_no_file_can_hold_is_refused_first(book: Handoff, repository: Any, message: str) -> None:
    before = book.history()
    with pytest.raises(Invalid, match="must be text that UTF-8 can encode"):
        book.write(repository.folder / "P.md", git=True, message=message)
    assert not (repository.folder / "P.md").exists()
    assert book.history() == before


@pytest.mark.parametrize("name", ["-P.md", ":(top)P.md", "P[ä].md", "sub dir/P*.md", "'P\".md"])
def test_odd_names(book: Handoff, repository: Any, name: str) -> None:
    path = repository.folder / name
    path.parent.mkdir(exist_ok=True)
    assert book.write(path, git=True).why_not is None
    assert repository.git("ls-files", "-z", "--cached") == f"{name}\0"


def test_a_detached_head_is_fine(book: Handoff, repository: Any) -> None:
    repository.commit("a.txt", "1")
    repository.git("checkout", "--quiet", "--detach")
    assert book.write(repository.folder / "P.md", git=True).committed


def test_a_linked_work_tree_is_fine(book: Handoff, repository: Any, tmp_path: Path) -> None:
    repository.commit("a.txt", "1")
    repository.git("worktree", "add", "--quiet", str(tmp_path / "linked"))
    written = book.write(tmp_path / "linked" / "P.md", git=True)
    assert written.commit == repository.git("rev-parse", "linked").strip()


def test_staged_content_of_the_file_itself_gives_way(book: Handoff, repository: Any) -> None:
    path = repository.folder / "P.md"
    repository.commit("P.md", "")
    path.write_text("staged", encoding="utf-8")
    repository.git("add", "P.md")
    assert book.write(path, git=True, force=True).committed
    assert repository.git("show", "HEAD:P.md") == path.read_text(encoding="utf-8")


def test_a_file_taken_out_of_git_comes_back_into_it(book: Handoff, repository: Any) -> None:
    book.write(repository.folder / "P.md", git=True)
    repository.git("rm", "--quiet", "--cached", "P.md")
    book.update(goal="x")
    assert book.write(repository.folder / "P.md", git=True).committed


def test_a_link_is_committed_where_its_file_is(book: Handoff, repository: Any, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.md").touch()
    (repository.folder / "P.md").symlink_to(tmp_path / "elsewhere.md")
    _refused(book.write(repository.folder / "P.md", git=True), f"{tmp_path} is not in a git repository")


# Trouble


@pytest.mark.usefixtures("lonely_git")
def test_no_repository(book: Handoff, tmp_path: Path) -> None:
    _refused(book.write(tmp_path / "P.md", git=True), "is not in a git repository; make one with git init")


def test_no_git(book: Handoff, repository: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    _refused(book.write(repository.folder / "P.md", git=True), "git command was not found")


def test_inside_the_git_directory(book: Handoff, repository: Any) -> None:
    _refused(book.write(repository.folder / ".git" / "P.md", git=True), "not in the work tree")


def test_a_damaged_repository(book: Handoff, repository: Any) -> None:
    (repository.folder / ".git" / "HEAD").write_text("nonsense", encoding="utf-8")
    _refused(book.write(repository.folder / "P.md", git=True), "git does not work in")


def test_git_is_pointed_elsewhere(
    book: Handoff, repository: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit("a.txt", "1")
    (tmp_path / "b").mkdir()
    monkeypatch.setenv("GIT_DIR", str(repository.folder / ".git"))
    _refused(book.write(tmp_path / "b" / "P.md", git=True), "GIT_DIR or GIT_WORK_TREE")


def test_no_identity(book: Handoff, repository: Any) -> None:
    repository.git("config", "--unset", "user.email")
    _refused(book.write(repository.folder / "P.md", git=True), "set user.name and user.email")
    assert repository.git("status", "--porcelain") == "?? P.md\n"
    repository.git("config", "user.email", "ana@example.org")
    assert book.write(repository.folder / "P.md", git=True).committed


def _branches(repository: Any) -> None:
    repository.commit("a.txt", "1\n")
    repository.git("checkout", "--quiet", "-b", "side")
    repository.commit("a.txt", "2\n")
    repository.git("checkout", "--quiet", "main")
    repository.commit("a.txt", "3\n")


@pytest.mark.parametrize(
    ("begin", "sentence"),
    [
        (("merge", "side"), "a merge is under way"),
        (("rebase", "side"), "a rebase is under way"),
        (("rebase", "--apply", "side"), "a rebase is under way"),
        (("cherry-pick", "side"), "a cherry-pick is under way"),
        (("revert", "--no-edit", "main~1"), "a revert is under way"),
        (("bisect", "start"), "a bisect is under way"),
    ],
)
def test_in_the_middle_of_something(book: Handoff, repository: Any, begin: tuple[str, ...], sentence: str) -> None:
    _branches(repository)
    repository.git(*begin, check=False)
    before = repository.git("rev-parse", "HEAD"), repository.git("ls-files", "--stage")
    _refused(book.write(repository.folder / "P.md", git=True), sentence)
    assert (repository.git("rev-parse", "HEAD"), repository.git("ls-files", "--stage")) == before


def test_a_conflict_in_the_file_itself(book: Handoff, repository: Any) -> None:
    repository.commit("P.md", "1\n")
    (repository.folder / "P.md").write_text("2\n", encoding="utf-8")
    repository.git("stash", "--quiet")
    repository.commit("P.md", "3\n")
    repository.git("stash", "pop", check=False)
    _refused(book.write(repository.folder / "P.md", git=True, force=True), "has a merge conflict in git")


@pytest.mark.parametrize("tracked", [True, False])
def test_the_index_is_locked(book: Handoff, repository: Any, tracked: bool) -> None:
    if tracked:
        book.write(repository.folder / "P.md", git=True)
        book.update(goal="x")
    lock = repository.folder / ".git" / "index.lock"
    lock.touch()
    _refused(book.write(repository.folder / "P.md", git=True), "index.lock; when no other git runs, remove it")
    assert lock.exists()


def test_the_index_is_locked_between_two_commands(book: Handoff, repository: Any) -> None:
    book.write(repository.folder / "P.md", git=True)
    book.update(goal="x")
    # git status runs this program, so the lock appears after it was looked for, and the commit meets it
    script = repository.folder / "lock.sh"
    script.write_text("#!/bin/sh\ntouch .git/index.lock\n", encoding="utf-8")
    script.chmod(0o755)
    repository.git("config", "core.fsmonitor", str(script))
    _refused(book.write(repository.folder / "P.md", git=True), "index.lock")


@pytest.mark.usefixtures("other_work")
@pytest.mark.parametrize("hook", ["pre-commit", "commit-msg"])
def test_a_hook_refuses(book: Handoff, repository: Any, hook: str) -> None:
    repository.hook(hook, "echo 'no commits on Fridays' >&2; exit 1")
    number = len(repository.commits())
    _refused(book.write(repository.folder / "P.md", git=True), f"({hook}) refused the commit: no commits on Fridays")
    assert repository.git("status", "--porcelain", "--", "P.md") == "?? P.md\n"
    assert len(repository.commits()) == number


def test_a_hook_of_another_place_refuses(book: Handoff, repository: Any) -> None:
    repository.hook("pre-commit", "exit 1")
    (repository.folder / ".git" / "hooks").rename(repository.folder / "own-hooks")
    repository.git("config", "core.hooksPath", "own-hooks")
    (repository.folder / "sub").mkdir()
    _refused(book.write(repository.folder / "sub" / "P.md", git=True), "a git hook (pre-commit) refused the commit")


def test_a_hook_behind_the_commit_does_not_undo_it(book: Handoff, repository: Any) -> None:
    repository.hook("post-commit", "exit 1")
    assert book.write(repository.folder / "P.md", git=True).committed


@pytest.mark.slow
@pytest.mark.parametrize(("hook", "committed"), [("pre-commit", False), ("post-commit", True)])
def test_a_hook_that_never_ends_is_stopped(repository: Any, hook: str, committed: bool) -> None:
    repository.hook(hook, f"echo $$ > {repository.folder}/pid; sleep 600")
    path = repository.folder / "P.md"
    path.write_text("x", encoding="utf-8")
    commit, why_not = commit_file(path, "message", limit_s=1.0)
    assert (commit is not None) == committed
    assert committed or "did not end within 1 seconds" in (why_not or "")
    assert not (repository.folder / ".git" / "index.lock").exists()
    assert _is_gone(int((repository.folder / "pid").read_text(encoding="utf-8")))


def _left_running(repository: Any, hook: str, command: str, then: str = "") -> Path:
    """A hook that leaves a process behind, which holds on to what it was given to speak through."""
    if shutil.which(command.split(maxsplit=1)[0]) is None:
        pytest.skip(f"no {command.split(maxsplit=1)[0]} here")
    repository.hook(hook, f"{command} &\necho $! > {repository.folder}/pid\n{then}")
    path: Path = repository.folder / "P.md"
    path.write_text("x", encoding="utf-8")
    return path


def _end_left(repository: Any) -> bool:
    """End what the hook left; say whether it was still there."""
    pid = int((repository.folder / "pid").read_text(encoding="utf-8"))
    if _is_gone(pid):
        return False
    os.kill(pid, signal.SIGKILL)
    return True


def _is_gone(pid: int) -> bool:
    """Whether a process has ended; one that is dead and not yet buried by the system has."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return state.strip()[:1] in ("", "Z")


@pytest.mark.parametrize("command", ["sleep 20", "setsid sleep 20"])
@pytest.mark.parametrize("hook", ["pre-commit", "post-commit"])
def test_what_a_hook_leaves_running_is_not_waited_for(repository: Any, hook: str, command: str) -> None:
    path = _left_running(repository, hook, command)
    commit, why_not = commit_file(path, "message", limit_s=10.0)
    assert (commit, why_not) == (repository.git("rev-parse", "HEAD").strip(), None)
    assert _end_left(repository)


def test_what_a_stopped_hook_left_running_is_not_waited_for(repository: Any) -> None:
    path = _left_running(repository, "pre-commit", "setsid sleep 20", "sleep 600")
    commit, why_not = commit_file(path, "message", limit_s=0.3)
    assert (commit, why_not) == (
        None,
        "git commit did not end within 0.3 seconds and was stopped; a hook may be waiting",
    )
    assert _end_left(repository)


def test_a_hook_that_says_much_is_heard_to_its_end(repository: Any, book: Handoff) -> None:
    repository.hook("pre-commit", "i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); done; echo last word; exit 1")
    _refused(book.write(repository.folder / "P.md", git=True), "refused the commit: last word")


def test_no_room_for_what_git_says(book: Handoff, repository: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(repository.folder / "none"))
    _refused(book.write(repository.folder / "P.md", git=True), "no temporary file for what git says")


def test_git_ignores_the_file(book: Handoff, repository: Any) -> None:
    (repository.folder / ".gitignore").write_text("P.md\nbuild/\n", encoding="utf-8")
    (repository.folder / "build").mkdir()
    for name in ("P.md", "build/Q.md"):
        _refused(book.write(repository.folder / name, git=True), "git ignores")


def test_an_ignored_file_that_is_tracked_is_committed(book: Handoff, repository: Any) -> None:
    book.write(repository.folder / "P.md", git=True)
    (repository.folder / ".gitignore").write_text("P.md\n", encoding="utf-8")
    book.update(goal="x")
    assert book.write(repository.folder / "P.md", git=True).committed


def test_a_commit_that_git_refuses_for_its_own_reasons(book: Handoff, repository: Any) -> None:
    repository.git("config", "commit.gpgSign", "true")
    repository.git("config", "gpg.program", "false")
    _refused(book.write(repository.folder / "P.md", git=True), "git commit failed: ")
    assert repository.git("status", "--porcelain") == "?? P.md\n"


def test_json_is_committed_and_the_subject_counts_features(book: Handoff, repository: Any) -> None:
    book.update(features={"it books": True, "it pays": False})
    assert book.write(repository.folder / "progress.json", git=True).committed
    subject = "Handoff of trip-42: 3 of 5 done, 1 of 2 features pass, next: Ask for another card."
    assert repository.commits() == [subject]
    assert repository.git("ls-files").split() == ["progress.json"]
