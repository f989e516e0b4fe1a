"""Commit one file with the git command, and nothing else that is staged or changed.

Git is asked through argument lists, never a shell, without a terminal and with a time limit. It speaks through files,
not pipes: a hook may leave a process behind that keeps a pipe open for as long as it likes. Trouble is an answer, not
an error: the file is already written, so it only remains to say why there is no commit. Reasons are found by looking
at the repository, not by reading git's messages, which are translated. Deliberately absent: pushing, adding more than
the one file, making repositories, and any setting of who the author is.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import subprocess

LIMIT_S = 60.0
_GRACE_S = 5.0
_BURIAL_S = 2.0  # for a process that was killed; one that the system cannot end is not waited for
_MOST_BYTES = 1_000_000  # of what git says
_UNDER_WAY = {
    "MERGE_HEAD": "a merge",
    "rebase-merge": "a rebase",
    "rebase-apply/applying": "applying patches (git am)",
    "rebase-apply": "a rebase",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "sequencer": "a cherry-pick or revert of several commits",
    "BISECT_LOG": "a bisect",
}
_HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg")


class GitOutcome(NamedTuple):
    """Either the commit that now holds the file, or a sentence that says why there is none."""

    commit: str | None
    why_not: str | None = None


class _Refused(Exception):
    """There will be no commit; the message says why."""


class _Answer(NamedTuple):
    code: int
    out: str
    err: str
    late: bool = False

    @property
    def said(self) -> str:
        """The last thing git, or a hook, said."""
        lines = [line.strip() for line in f"{self.out}\n{self.err}".splitlines() if line.strip()]
        return lines[-1].removeprefix("fatal: ").removeprefix("error: ") if lines else f"exit code {self.code}"


def commit_file(path: Path, message: str, limit_s: float = LIMIT_S) -> GitOutcome:
    """Commit the file as it is on disk when it differs from what was committed last."""
    git = _Git(path, limit_s)
    try:
        folder = git.usable()
        new = git.changed() == "new"
        return GitOutcome(git.commit(folder, message, new))
    except _Refused as refusal:
        return GitOutcome(None, str(refusal))


class _Git:
    """The git command, at the folder of one file."""

    def __init__(self, path: Path, limit_s: float) -> None:
        self._path, self._folder, self._limit_s = path, path.parent, limit_s

    def usable(self) -> Path:
        """The directory in which git keeps this repository, when a commit can be made there now."""
        answer = self._run("rev-parse", "--is-inside-work-tree", "--absolute-git-dir")
        if answer.code:
            if not any((folder / ".git").exists() for folder in (self._folder, *self._folder.parents)):
                raise _Refused(f"{self._folder} is not in a git repository; make one with git init")
            raise _Refused(f"git does not work in {self._folder}: {answer.said}")
        inside, _, found = answer.out.rstrip("\n").partition("\n")
        if inside != "true":
            raise _Refused(f"{self._folder} is not in the work tree of a git repository, so nothing there is committed")
        top = self._run("rev-parse", "--show-toplevel").out.rstrip("\n")
        if not (Path(top) / ".git").exists():
            raise _Refused("GIT_DIR or GIT_WORK_TREE point git to a repository other than the one of this file")
        folder = Path(found)
        self._refuse_when_busy(folder)
        return folder

    def _refuse_when_busy(self, folder: Path) -> None:
        for name, what in _UNDER_WAY.items():
            if (folder / name).exists():
                raise _Refused(f"{what} is under way in the repository; finish or abort it, then write again")
        self._refuse_when_locked(folder)

    def _refuse_when_locked(self, folder: Path) -> None:
        lock = folder / "index.lock"
        if lock.exists():
            raise _Refused(f"the git index is locked by {lock}; when no other git runs, remove it, then write again")

    def changed(self) -> str:
        """Whether the file is new to git or changed."""
        answer = self._run(
            "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignored=matching",
            "--", self._path.name,
        )  # fmt: skip
        if answer.code:
            raise _Refused(f"git cannot say whether {self._path.name} changed: {answer.said}")
        codes = {entry[:2] for entry in answer.out.split("\0") if entry}
        if "!!" in codes:
            raise _Refused(f"git ignores {self._path.name}; remove it from .gitignore to commit it")
        if any("U" in code or code in ("AA", "DD") for code in codes):
            raise _Refused(f"{self._path.name} has a merge conflict in git; resolve it with git add, then write again")
        if not codes:
            raise _Refused(f"{self._path.name} is the same as in the last commit, so there is nothing to commit")
        return "new" if "??" in codes else "changed"

    def commit(self, folder: Path, message: str, new: bool) -> str:
        if new:  # git commits only paths that it knows; this makes it known without staging its content
            answer = self._run("add", "--intent-to-add", "--", self._path.name)
            if answer.code:
                self._refuse_when_locked(folder)
                raise _Refused(f"git add failed: {answer.said}")
        before = self._last_commit()
        answer = self._run(
            "commit", "--only", "--quiet", "--cleanup=whitespace", "--file=-", "--", self._path.name, given=message
        )
        after = self._last_commit()
        if after is not None and (after != before or not answer.code):
            return after  # also when a hook behind the commit failed or never ended
        if new:
            self._run("update-index", "--force-remove", "--", self._path.name)
        raise _Refused(self._why(folder, answer))

    def _last_commit(self) -> str | None:
        """The last commit that changed the file; others may have committed other things since."""
        return self._run("rev-list", "--max-count=1", "HEAD", "--", self._path.name).out.strip() or None

    def _why(self, folder: Path, answer: _Answer) -> str:
        if answer.late:
            return f"git commit did not end within {self._limit_s:g} seconds and was stopped; a hook may be waiting"
        self._refuse_when_locked(folder)
        if any(self._run("var", name).code for name in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT")):
            return "git does not know who commits: set user.name and user.email with git config, then write again"
        hooks = [name for name in _HOOKS if self._has_hook(name)]
        if hooks and answer.code == 1:
            return f"a git hook ({' or '.join(hooks)}) refused the commit: {answer.said}"
        return f"git commit failed: {answer.said}"

    def _has_hook(self, name: str) -> bool:
        found = self._run("rev-parse", "--git-path", f"hooks/{name}").out.rstrip("\n")
        return os.access(self._folder / found, os.X_OK)

    def _run(self, *arguments: str, given: str = "") -> _Answer:
        from tempfile import TemporaryFile  # noqa: PLC0415 - most programs never commit

        command = ["git", "--literal-pathspecs", "--no-pager", *arguments]
        if arguments[0] == "status":
            command.insert(1, "--no-optional-locks")
        try:
            with TemporaryFile() as asked, TemporaryFile() as out, TemporaryFile() as err:
                asked.write(given.encode())
                asked.seek(0)
                process = self._started(command, asked, out, err)
                late = self._is_late(process)
                return _Answer(process.returncode or int(late), _text(out), _text(err), late)
        except OSError as error:
            raise _Refused(f"no temporary file for what git says: {error.strerror}") from None

    def _started(self, command: list[str], *files: IO[bytes]) -> subprocess.Popen[bytes]:
        import subprocess  # noqa: PLC0415 - most programs never commit

        asked, out, err = files
        try:
            return subprocess.Popen(
                command, cwd=self._folder, stdin=asked, stdout=out, stderr=err, start_new_session=True
            )
        except FileNotFoundError:
            raise _Refused("the git command was not found; install git") from None
        except OSError as error:
            raise _Refused(f"the git command cannot be started: {error.strerror}") from None

    def _is_late(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait for git itself, and for nothing that a hook left running; end it when its time is over."""
        import subprocess  # noqa: PLC0415 - most programs never commit

        try:
            process.wait(self._limit_s)
        except subprocess.TimeoutExpired:
            _end(process)
            return True
        except BaseException:
            _end(process)
            raise
        return False


def _text(file: IO[bytes]) -> str:
    """The last of what is in a file now; someone may still be writing to it."""
    size = file.seek(0, os.SEEK_END)
    start = file.seek(max(0, size - _MOST_BYTES))
    return file.read(size - start).decode(errors="replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End git with all that it started. It is asked first: then it removes its locks, which a kill would leave."""
    import subprocess  # noqa: PLC0415 - most programs never commit

    _signal(process, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_S)
    _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
    with suppress(subprocess.TimeoutExpired):
        process.wait(_BURIAL_S)


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):  # it runs in a session of its own, whose processes are a group
            os.killpg(process.pid, number)
        else:
            process.terminate()
