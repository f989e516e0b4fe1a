"""Whatever is done to a folder, in whatever order, comes out as a plain dict of lists says."""

from __future__ import annotations

from itertools import count
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

import holdfast
from holdfast import errors
from holdfast.ledger.files import FileDelete, FileWrite
from holdfast.ledger.folder import Folder
from holdfast.testing import ManualClock
from holdfast.wiring import Wiring

PATHS = st.sampled_from(["a", "a/b", "a/c", "b", "ä\U0001f980"])
CONTENT = st.one_of(
    st.none(), st.integers(0, 3), st.text(max_size=3), st.binary(max_size=3), st.lists(st.text(max_size=2))
)
TAGS = st.lists(st.sampled_from(["x", "y"]), max_size=2, unique=True)
_TENANTS = count()


class Version:
    """One version, as a model has it: content, tags, and when it ends. A deletion has no content."""

    def __init__(
        self, content: Any, tags: tuple[str, ...] = (), expires: int | None = None, gone: bool = False
    ) -> None:
        self.content, self.tags, self.expires, self.gone = content, tags, expires, gone


class Folders(RuleBasedStateMachine):
    """A folder beside a dict."""

    core: Any

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        core = self.core._replace(clock=self.clock, tenant=f"model-{next(_TENANTS)}")
        self.store = holdfast.Store(Wiring(core))
        self.folder: Folder = self.store.folder("notes", user="ana")
        self.model: dict[str, list[Version]] = {}

    def there(self, path: str) -> Version | None:
        newest = self.model.get(path, [Version(None, gone=True)])[-1]
        ended = newest.expires is not None and newest.expires <= self.clock.now()
        return None if newest.gone or ended else newest

    def version(self, path: str) -> int:
        return 0 if self.there(path) is None else len(self.model[path])

    @rule(
        path=PATHS,
        content=CONTENT,
        tags=TAGS,
        lasting=st.sampled_from([None, 5, 50]),
        guess=st.none() | st.integers(0, 3),
    )
    def write(self, path: str, content: Any, tags: list[str], lasting: int | None, guess: int | None) -> None:
        expires = None if lasting is None else self.clock.now() + lasting * 1_000_000
        fits = guess is None or guess == self.version(path)
        try:
            file = self.folder.write(path, content, expect=guess, tags=tags, expires=expires)
        except errors.Conflict:
            assert not fits
            return
        assert fits
        self.model.setdefault(path, []).append(Version(content, tuple(tags), expires))
        assert (file.version, file.content, file.tags) == (len(self.model[path]), content, tuple(tags))

    @rule(path=PATHS, guess=st.none() | st.integers(0, 3))
    def delete(self, path: str, guess: int | None) -> None:
        here, fits = self.there(path), guess is None or guess == self.version(path)
        try:
            was_there = self.folder.delete(path, expect=guess)
        except errors.Conflict:
            assert not fits
            return
        assert fits
        assert was_there == (here is not None)
        if here is not None:
            self.model[path].append(Version(None, gone=True))

    @rule(path=PATHS)
    def erase(self, path: str) -> None:
        assert self.folder.delete(path, erase=True) == (self.model.pop(path, None) is not None)

    @rule(path=PATHS, to=PATHS)
    def move(self, path: str, to: str) -> None:
        file, target = self.there(path), self.there(to)
        try:
            self.folder.move(path, to)
        except errors.Invalid:
            assert path == to
        except errors.NotFound:
            assert file is None
        except errors.Conflict:
            assert target is not None
        else:
            assert file is not None
            assert target is None
            self.model[path].append(Version(None, gone=True))
            self.model.setdefault(to, []).append(Version(file.content, file.tags, file.expires))

    @rule(paths=st.lists(PATHS, unique=True, min_size=1, max_size=3), content=CONTENT)
    def commit(self, paths: list[str], content: Any) -> None:
        first, *others = paths
        was_there = self.there(first) is not None
        self.folder.commit([FileDelete(first), *(FileWrite(path, content) for path in others)])
        if was_there:
            self.model[first].append(Version(None, gone=True))
        for path in others:
            self.model.setdefault(path, []).append(Version(content))

    @rule(seconds=st.sampled_from([1, 10, 100]))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @invariant()
    def they_agree(self) -> None:
        here = {path: version for path in sorted(self.model) if (version := self.there(path)) is not None}
        assert {file.path: (file.content, file.tags) for file in self.folder.files()} == {
            path: (version.content, version.tags) for path, version in here.items()
        }
        assert self.folder.paths("a") == [path for path in here if path.startswith("a")]
        assert [file.path for file in self.folder.files(tag="x")] == [p for p, v in here.items() if "x" in v.tags]
        for path, versions in self.model.items():
            assert [(file.content, file.deleted) for file in self.folder.history(path)] == [
                (version.content, version.gone) for version in versions
            ]
            assert self.folder.version(path) == self.version(path)


def test_a_folder_does_what_a_dict_says(store: holdfast.Store) -> None:
    class Here(Folders):
        core = store.core

    run_state_machine_as_test(
        Here, settings=settings(max_examples=settings().max_examples // 2, stateful_step_count=25)
    )
