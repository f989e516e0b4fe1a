"""Every answer and every refusal is to the letter that of the tool that comes with the SDK, run beside ours."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic.tools import BetaAsyncLocalFilesystemMemoryTool, BetaLocalFilesystemMemoryTool, ToolError
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.adapters.anthropic import AsyncHoldfastMemoryTool, HoldfastMemoryTool
from holdfast.errors import Invalid

Command = dict[str, Any]
Outcome = tuple[str, str]
ANSWERED, REFUSED, BROKE = "answered", "refused", "broke"


class Beside:
    """Both tools, given the same commands. The one of the SDK works in a folder on disk."""

    def __init__(self, store: holdfast.Store, place: str) -> None:
        self.ours = HoldfastMemoryTool(store)
        self.theirs = BetaLocalFilesystemMemoryTool(place)
        self.root = Path(place) / "memories"
        self.folder = store.folder("memories")

    def do(self, command: Command) -> Outcome:
        """Carry out a command on both and compare what they say; where theirs breaks, ours must refuse in words."""
        before = self.on_disk()
        theirs, ours = told(self.theirs, command), told(self.ours, command)
        if theirs[0] != ANSWERED:
            self.clean_up(before)
        if theirs[0] == BROKE:
            assert ours[0] == REFUSED, (command, theirs, ours)
            assert ours[1].strip()
        else:
            assert ours == theirs, command
        assert self.kept() == self.on_disk(), command
        return ours

    def on_disk(self) -> dict[str, str | None]:
        found: dict[str, str | None] = {}
        for at, _, files in os.walk(self.root):
            if at != str(self.root):
                found[os.path.relpath(at, self.root)] = None
            for name in files:
                file = Path(at) / name
                found[str(file.relative_to(self.root))] = file.read_bytes().decode()
        return found

    def kept(self) -> dict[str, str | None]:
        """What our folder holds, in the form that a disk has: directories are there by themselves."""
        found: dict[str, str | None] = {}
        for file in self.folder.files():
            parts = file.path.split("/")
            for depth in range(1, len(parts)):
                found["/".join(parts[:depth])] = None
            if parts[-1]:
                found[file.path] = file.content
        return found

    def clean_up(self, before: dict[str, str | None]) -> None:
        """Theirs leaves the directories that it made for a rename or a creation that then failed. Ours leaves none."""
        for path in sorted(self.on_disk().keys() - before.keys(), reverse=True):
            item = self.root / path
            shutil.rmtree(item) if item.is_dir() else item.unlink()
        assert self.on_disk() == before


def told(tool: Any, command: Command) -> Outcome:
    try:
        return ANSWERED, sized(tool.call(command))
    except ToolError as error:
        return REFUSED, str(Invalid(str(error.content)))  # what cannot be printed, or is long, as ours puts it
    except Exception as error:  # whatever the file system has to say
        return BROKE, repr(error)


def sized(answer: str) -> str:
    """File systems do not agree on the size of a directory; ours is always 4K."""
    if not answer.startswith("Here're the files"):
        return answer
    head, own, *items = answer.split("\n")
    lines = [head, re.sub(r"^[\d.]+[BKMG]\t", "4K\t", own)]
    return "\n".join([*lines, *(re.sub(r"^[\d.]+[BKMG]\t(.*/)$", r"4K\t\1", line) for line in items)])


@pytest.fixture
def beside(store: holdfast.Store, tmp_path: Path) -> Beside:
    return Beside(store, str(tmp_path / "disk"))


# The main proof: any commands in any order

names = st.sampled_from(["a", "b", "c.txt", ".hidden", "ünïcode", "memories", "%2e%2e", "..."])
steps = st.one_of(names, names, names, st.sampled_from(["", ".", ".."]))
roots = st.sampled_from(
    ["/memories/"] * 12 + ["/memories", "/memories//", "/memories/../memories/", "memories/", "/etc/"]
)
paths = st.builds(
    lambda root, parts, end: root + "/".join(parts) + end,
    roots,
    st.lists(st.one_of(names, names, steps), max_size=4),
    st.sampled_from(["", "", "", "", "/", "/.", "/..", "\x00"]),
)
texts = st.one_of(
    st.text(alphabet="ab\n\r\té", max_size=12),
    st.permutations(["one", "two", "three", "", "ü\r", "four", "five"]).map("\n".join),
    st.sampled_from(["six\n", "seven\neight\n\n"]),
)
parts = st.one_of(st.text(alphabet="ab\n", max_size=2), st.sampled_from(["one", "two", "three", "o", "ü", "e\nt"]))
numbers = st.integers(-3, 9)
plain = st.lists(names, min_size=1, max_size=3).map(lambda found: "/memories/" + "/".join(found))


def command(name: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Command]:
    return st.fixed_dictionaries({"command": st.just(name), **fields})


commands = st.one_of(
    command("view", path=paths),
    command("view", path=paths, view_range=st.lists(numbers, min_size=2, max_size=2)),
    command("create", path=paths, file_text=texts),
    *[command("str_replace", path=paths, old_str=parts, new_str=texts)] * 2,
    *[command("insert", path=paths, insert_line=numbers, insert_text=texts)] * 2,
    command("delete", path=paths),
    command("rename", old_path=paths, new_path=paths),
)


@st.composite
def likely(draw: st.DrawFn) -> list[Command]:
    """Commands of which later ones are mostly about paths that earlier ones named, so that something is there."""
    given_paths = draw(st.lists(plain, min_size=1, max_size=4))
    some = st.one_of(*[st.sampled_from(given_paths)] * 4, plain, paths)
    made = []
    for one in draw(st.lists(commands, min_size=6, max_size=20)):
        places = {name: draw(some) for name in ("path", "old_path", "new_path") if name in one}
        made.append({**one, **places})
    return [*({"command": "create", "path": path, "file_text": draw(texts)} for path in given_paths), *made]


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(likely())
@example(
    [{"command": "create", "path": "/memories/a/b", "file_text": "x"}, {"command": "delete", "path": "/memories/a/b"}]
)
@example([{"command": "rename", "old_path": "/memories/none", "new_path": "/memories/a/b"}])
def test_any_commands_in_any_order(sequence: list[Command]) -> None:
    with holdfast.open("ram:", embedder="none") as store, tempfile.TemporaryDirectory() as place:
        beside = Beside(store, place)
        for one in [*sequence, {"command": "view", "path": "/memories"}]:
            beside.do(one)


# Each thing by itself, so that a failure says which


def create(path: str, text: str) -> Command:
    return {"command": "create", "path": path, "file_text": text}


def view(path: str, *between: int) -> Command:
    return {"command": "view", "path": path, **({"view_range": list(between)} if between else {})}


def replace(path: str, old: str, new: str) -> Command:
    return {"command": "str_replace", "path": path, "old_str": old, "new_str": new}


def insert(path: str, line: int, text: str) -> Command:
    return {"command": "insert", "path": path, "insert_line": line, "insert_text": text}


def delete(path: str) -> Command:
    return {"command": "delete", "path": path}


def rename(path: str, to: str) -> Command:
    return {"command": "rename", "old_path": path, "new_path": to}


def test_a_listing_is_two_levels_deep_with_sizes_and_without_what_is_hidden(beside: Beside) -> None:
    sizes = (0, 1, 1023, 1024, 1025, 1536, 10_240, 1_048_576, 1_572_864)
    for path in (
        "/memories/z.md",
        "/memories/.secret",
        "/memories/a/.secret",
        "/memories/a/b/c/d.md",
        "/memories/a.md",
    ):
        beside.do(create(path, "ü" * 700))
    for size in sizes:
        beside.do(create(f"/memories/sizes/{size}", "x" * size))
    for path in ("/memories", "/memories/", "/memories/a", "/memories/a/b/", "/memories/.secret", "/memories/sizes"):
        beside.do(view(path))
    assert beside.do(view("/memories"))[1].splitlines()[1:5] == [
        "4K\t/memories",
        "4K\t/memories/a/",
        "4K\t/memories/a/b/",
        "1.4K\t/memories/a.md",
    ]
    assert "1.5M\t/memories/sizes/1572864" in beside.do(view("/memories"))[1]


def test_lines_are_numbered_and_ranges_are_as_in_the_sdk(beside: Beside) -> None:
    beside.do(create("/memories/n.md", "\n".join(f"line {n}" for n in range(1, 13)) + "\r\n"))
    beside.do(create("/memories/empty", ""))
    beside.do(view("/memories/n.md"))
    beside.do(view("/memories/empty"))
    for first in (-5, 0, 1, 3, 12, 13, 14, 40):
        for last in (-5, -2, -1, 0, 1, 3, 13, 40):
            beside.do(view("/memories/n.md", first, last))
    for odd in ([], [2], [1, 2, 3]):
        beside.do({"command": "view", "path": "/memories/n.md", "view_range": odd})
    assert beside.do(view("/memories/n.md", 2, 3))[1].endswith("\n     2\tline 2\n     3\tline 3")


def test_a_file_of_too_many_lines_is_not_shown(beside: Beside) -> None:
    beside.do(create("/memories/long", "\n" * 999_999))
    assert beside.do(view("/memories/long"))[0] == REFUSED
    beside.do(create("/memories/just", "\n" * 999_998))
    assert beside.do(view("/memories/just", 999_990, -1))[0] == ANSWERED


def test_create_refuses_what_exists(beside: Beside) -> None:
    beside.do(create("/memories/a/b", "one"))
    for path in ("/memories/a/b", "/memories/a", "/memories", "/memories/", "/memories/a/b/", "/memories/x/../a/b"):
        assert beside.do(create(path, "two"))[0] == REFUSED
    for path in ("/memories/a/b/c", "/memories/a/b/c/d"):  # under a file
        beside.do(create(path, "two"))


def test_str_replace_wants_one_occurrence(beside: Beside) -> None:
    beside.do(create("/memories/f", "a b\nc\n\naa\nb\nlast aaa b"))
    for old in ("nothing", "a", "aa", "b", "\n", "", "c\n\naa", "last aaa b"):
        beside.do(replace("/memories/f", old, "X"))
        beside.do(view("/memories/f"))
    beside.do(create("/memories/empty", ""))
    assert beside.do(replace("/memories/empty", "", "begun\n"))[0] == ANSWERED
    for path in ("/memories/none", "/memories", "/memories/f/g"):
        beside.do(replace(path, "a", "b"))


def test_a_snippet_shows_two_lines_around(beside: Beside) -> None:
    beside.do(create("/memories/f", "\n".join(f"line-{n}." for n in range(30))))
    for n in (0, 1, 2, 15, 28, 29):
        beside.do(replace("/memories/f", f"line-{n}.", f"one {n}\ntwo\nthree\nfour"))
    beside.do(replace("/memories/f", "four", ""))


def test_insert_has_bounds(beside: Beside) -> None:
    beside.do(create("/memories/f", "one\ntwo"))
    beside.do(create("/memories/g", "one\r\ntwo\r\n"))
    beside.do(create("/memories/empty", ""))
    for path in ("/memories/f", "/memories/g", "/memories/empty", "/memories/none", "/memories"):
        for line in (-1, 0, 1, 2, 3, 99):
            beside.do(insert(path, line, f"at {line}\n\n"))
            beside.do(insert(path, line, ""))


def test_deleting_leaves_an_empty_directory_as_a_disk_does(beside: Beside) -> None:
    for path in ("/memories/a/b/c", "/memories/a/d"):
        beside.do(create(path, "x"))
    for path in ("/memories", "/memories/", "/memories/none", "/memories/a/d", "/memories/a/b/c"):
        beside.do(delete(path))
        beside.do(view("/memories"))
    beside.do(view("/memories/a/b"))
    beside.do(delete("/memories/a/b"))
    beside.do(view("/memories/a"))
    beside.do(create("/memories/a/b", "a file now"))
    beside.do(delete("/memories/a"))
    assert beside.do(view("/memories"))[1].count("\n") == 1


def test_renaming_moves_directories_whole_and_never_onto_something(beside: Beside) -> None:
    for path in ("/memories/a/b/c", "/memories/a/d", "/memories/e", "/memories/a/.hidden"):
        beside.do(create(path, path))
    for path, to in (
        ("/memories/e", "/memories/a/d"),
        ("/memories/e", "/memories/a"),
        ("/memories/e", "/memories/e"),
        ("/memories/e", "/memories"),
        ("/memories", "/memories/x"),
        ("/memories/none", "/memories/e"),
        ("/memories/none", "/memories/new/dir/x"),
        ("/memories/a", "/memories/a/b/under/itself"),
        ("/memories/e", "/memories/e/x"),
        ("/memories/e", "/memories/a/d/x"),
        ("/memories/a", "/memories/new/place"),
        ("/memories/new/place/b/c", "/memories/c"),
        ("/memories/new/place/b", "/memories/empty"),
        ("/memories/new/place", "/memories/a"),
        ("/memories/e", "/memories/../memories/a/../f"),
    ):
        beside.do(rename(path, to))
        beside.do(view("/memories"))


@pytest.mark.parametrize(
    "path",
    [
        "/memories/../x", "/memories/..", "/memories/../..", "/memories/../../memories/x", "/memories/a/../../x",
        "/memories/../memories2/x", "/memories/../memories/x", "/memories/%2e%2e/x", "/memories/%2e%2e%2fx",
        "/memories/..%2fx", "/etc/passwd", "etc/passwd", "", "/", "memories/x", "/memory", "/MEMORIES/x",
        "/memories//etc/passwd", "/memoriesx/y", "/memories/\x00", "/memories/x\x00.md", "/memories/./x/.",
        "/memories/~/x", "/memories/C:\\x", "/memories/..\\x", "/memories/ ", "/memories/…/x", "/memories/.../x",
    ],
)  # fmt: skip
def test_no_path_leads_out(beside: Beside, path: str) -> None:
    beside.do(create("/memories/inside", "x"))
    for one in (view(path), create(path, "y"), replace(path, "y", "z"), insert(path, 0, "w"), view(path)):
        beside.do(one)
    beside.do(rename("/memories/inside", path))
    beside.do(rename(path, "/memories/taken/from/there"))
    beside.do(delete(path))
    beside.do(view("/memories"))


@pytest.mark.parametrize(
    "bad",
    [
        {"command": "create", "path": "/memories/x", "file_text": "lone \ud800"},
        {"command": "create", "path": "/memories/lone \ud800", "file_text": ""},
        {"command": "create", "path": "/memories/" + "x" * 600, "file_text": ""},
        {"command": "create", "path": "/memories/x"},
        {"command": "create", "path": None, "file_text": ""},
        {"command": "create", "path": "/memories/x", "file_text": 7},
        {"command": "view", "path": ["/memories"]},
        {"command": "view"},
        {"command": "view", "path": "/memories/f", "view_range": ["1", "x"]},
        {"command": "insert", "path": "/memories/f", "insert_line": "2", "insert_text": "x"},
        {"command": "str_replace", "path": "/memories/f", "old_str": "text"},
        {"command": "rename", "old_path": "/memories/f"},
    ],
)
def test_where_the_bundled_tool_breaks_ours_says_what_is_wrong(beside: Beside, bad: Command) -> None:
    beside.do(create("/memories/f", "text"))
    assert beside.do(bad)[0] == REFUSED


def test_a_text_of_over_16_mb_is_refused_in_words(store: holdfast.Store) -> None:
    kind, words = told(HoldfastMemoryTool(store), create("/memories/big", "x" * 17_000_000))
    assert kind == REFUSED
    assert "at most 16,777,216" in words
    assert told(HoldfastMemoryTool(store), view("/memories/big"))[0] == REFUSED


@pytest.mark.every_engine
def test_any_text_comes_back(beside: Beside) -> None:
    for number, text in enumerate(("a\x00b\n\x00", "\ufffe\u202e", "\x1b[2J", "\u0000" * 5, "'; --\\x00 %s {}")):
        beside.do(create(f"/memories/{number}", text))
        beside.do(view(f"/memories/{number}"))
        beside.do(replace(f"/memories/{number}", text, text + text[::-1]))
    for name in ("a\nb", "a\tb", "'; --", "%s %(x)s", "\\x00", "\u202e", "\x7f\x01"):
        beside.do(create(f"/memories/odd/{name}/{name}", name))
    beside.do(rename("/memories/odd", "/memories/even"))
    beside.do(view("/memories"))


def test_clearing(beside: Beside) -> None:
    beside.do(create("/memories/a/b", "x"))
    assert beside.ours.clear_all_memory() == beside.theirs.clear_all_memory() == "All memory cleared"
    beside.do(view("/memories"))


def test_the_async_tool_says_the_same(store: holdfast.Store, tmp_path: Path) -> None:
    theirs, ours = BetaAsyncLocalFilesystemMemoryTool(str(tmp_path / "disk")), AsyncHoldfastMemoryTool(store)

    async def outcome(tool: Any, one: Command) -> Outcome:
        try:
            return ANSWERED, sized(await tool.call(one))
        except ToolError as error:
            return REFUSED, str(error.content)

    async def run() -> None:
        for one in script():
            assert await outcome(ours, one) == await outcome(theirs, one), one
        assert await ours.clear_all_memory() == await theirs.clear_all_memory()
        assert await outcome(ours, view("/memories")) == await outcome(theirs, view("/memories"))

    asyncio.run(run())


def script() -> Iterator[Command]:
    yield view("/memories")
    yield create("/memories/a/notes.md", "one\ntwo\nthree\n")
    yield create("/memories/a/notes.md", "again")
    yield view("/memories/a/notes.md", 2, -1)
    yield replace("/memories/a/notes.md", "two", "2")
    yield replace("/memories/a/notes.md", "e", "E")
    yield replace("/memories/a/notes.md", "nowhere", "E")
    yield insert("/memories/a/notes.md", 3, "four")
    yield insert("/memories/a/notes.md", 30, "never")
    yield rename("/memories/a", "/memories/b")
    yield rename("/memories/a", "/memories/c")
    yield view("/memories")
    yield view("/memories/../x")
    yield delete("/memories/b/notes.md")
    yield delete("/memories/b/notes.md")
    yield view("/memories/b")
    yield delete("/memories")
