"""Folders of notes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import holdfast
from holdfast import importers
from holdfast.errors import Conflict, Invalid
from holdfast.importers.files import Original


def take(store: holdfast.Store, place: Path, **ways: object) -> importers.ImportOutcome:
    with importers.read(place, **ways) as source:  # type: ignore[arg-type]
        return importers.import_into(store, source)


def test_notes_are_memories_under_their_headings(store: holdfast.Store, notes: Path) -> None:
    done = take(store, notes, user="ana")
    assert done.counts == {"files": 4, "notes": 8}
    found = {memory.text: memory for memory in store.memory(user="ana").memories()}
    assert set(found) == {
        "Ana owns the bakery.\nShe lives in Porto.", "black, no sugar", "two cups\n  - never after 4 pm",
        "beans from Colombia", "```sh\nmake run\n\nmake test\n```", "Be kind ♥", "Her name is Ana.",
        "Went to the dentist.",
    }  # fmt: skip
    coffee = found["black, no sugar"]
    assert (coffee.kind, coffee.tags, coffee.origin.channel) == (
        "semantic",
        ("About Ana", "Coffee", "import:memory-files"),
        "MEMORY.md",
    )
    assert found["Be kind ♥"].kind == "procedural"
    day = found["Went to the dentist."]
    assert (day.kind, day.valid_from, day.tags) == (
        "episodic",
        datetime(2026, 5, 1, tzinfo=UTC),
        ("Friday", "import:memory-files"),
    )
    assert store.memory(user="ana").recall("how does she take her coffee sugar").hits[0].text == "black, no sugar"
    assert store.folder("imported", user="ana").paths() == []


def test_the_files_are_kept_where_that_is_wanted(store: holdfast.Store, notes: Path) -> None:
    (notes / "USER.md").write_bytes(b"\xef\xbb\xbfHer name is Ana.\r\n")
    done = take(store, notes, originals=True)
    assert done.new == {"files": 4, "memories": 8}
    folder = store.folder("imported")
    assert folder.paths() == ["MEMORY.md", "SOUL.md", "USER.md", "memory/2026-05-01.md"]
    assert folder.read("USER.md").content.encode() == (notes / "USER.md").read_bytes()
    (notes / "USER.md").write_text("Her name is Anabel.\n", encoding="utf-8")
    again = take(store, notes, originals=True)
    assert again.new == {"files": 1, "memories": 1}
    assert [file.version for file in folder.history("USER.md")] == [1, 2]


def test_one_file_alone(store: holdfast.Store, notes: Path, tmp_path: Path) -> None:
    assert importers.recognise(notes / "MEMORY.md") == "memory-files"
    take(store, notes / "MEMORY.md")
    assert take(store, notes).here == {"memories": 5}, "it is the same file, alone or in its folder"
    other = tmp_path / "anything.txt"
    other.write_text("- a note\n- a note\n", encoding="utf-8")
    with importers.read(other, "memory-files") as source:
        assert (source.counts, source.expected) == ({"files": 1, "notes": 2}, 1)
        assert "occur twice" in source.notes[0]


def test_names_are_known_letter_by_letter(tmp_path: Path) -> None:
    for name in ("memory.md", "User.md", "2026-05-01-a-post.md", "README.md"):
        (tmp_path / name).write_text("- a page of a manual\n", encoding="utf-8")
        with pytest.raises(Invalid, match="has no known format"):
            importers.recognise(tmp_path / name)
    (tmp_path / "Memory").mkdir()
    (tmp_path / "Memory" / "2026-05-01.md").write_text("x", encoding="utf-8")
    with pytest.raises(Invalid, match=r"nothing to import in"):
        importers.recognise(tmp_path)
    with pytest.raises(Invalid, match=r"has no MEMORY\.md"):
        importers.read(tmp_path, "memory-files")
    (tmp_path / "SOUL.md").write_text("- Be kind\n", encoding="utf-8")
    with importers.read(tmp_path) as source:
        assert source.counts == {"files": 1, "notes": 1}, "the others are none of its pages"


def test_a_page_of_a_day_in_its_folder_may_say_more(store: holdfast.Store, tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "2026-05-01-dentist.md").write_text("Went to the dentist.", encoding="utf-8")
    take(store, tmp_path)
    assert store.memory().memories()[0].valid_from == datetime(2026, 5, 1, tzinfo=UTC)


def test_files_carry_the_tag_too(store: holdfast.Store, notes: Path) -> None:
    take(store, notes, originals=True)
    assert len(store.folder("imported").files(tag="import:memory-files")) == 4


def test_what_is_no_text_is_refused(notes: Path) -> None:
    (notes / "SOUL.md").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Invalid, match="not UTF-8"):
        importers.read(notes)


@pytest.mark.parametrize("text", ["", "\n\n", "# only\n## headings\n", "<!-- nothing -->", "---\na: b\n---\n", "***\n"])
def test_pages_that_say_nothing(store: holdfast.Store, tmp_path: Path, text: str) -> None:
    (tmp_path / "MEMORY.md").write_text(text, encoding="utf-8")
    assert take(store, tmp_path / "MEMORY.md").new == {}


def test_odd_pages(store: holdfast.Store, tmp_path: Path) -> None:
    long = "# " + "ż" * 400 + "\n- under a long heading\n"
    (tmp_path / "MEMORY.md").write_text(long + "```\nnever closed\n\n- inside\n", encoding="utf-8")
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "2026-06-31.md").write_text("No such day.", encoding="utf-8")
    (tmp_path / "memory" / "deep.md").write_text("NUL \x00 inside", encoding="utf-8")
    take(store, tmp_path)
    found = {memory.text: memory for memory in store.memory().memories()}
    assert set(found) == {"under a long heading", "```\nnever closed\n\n- inside", "No such day.", "NUL \x00 inside"}
    assert len(found["under a long heading"].tags[0].encode()) <= 512
    assert found["No such day."].kind == "semantic"


def test_a_file_that_is_written_meanwhile(store: holdfast.Store, notes: Path) -> None:
    with importers.read(notes) as source:
        (notes / "SOUL.md").write_text("- Be brief\n- Be kind\n", encoding="utf-8")
        with pytest.raises(Conflict, match="was written to while it was read"):
            importers.import_into(store, source)
    assert store.memory().memories() == []


def test_a_file_that_goes_away(tmp_path: Path) -> None:
    path = tmp_path / "MEMORY.md"
    path.write_text("x", encoding="utf-8")
    original = Original(path)
    path.unlink()
    with pytest.raises(holdfast.errors.NotFound):
        original.settle()
