"""Files in recall: who sees whose, what is saved of them, and that nothing outlives its erasure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast import errors
from holdfast.engine.contract import Record
from holdfast.ledger.files import FileWrite
from holdfast.retrieval import documents, pipeline
from holdfast.testing.embedders import HashEmbedder

Saved = Callable[[holdfast.Store], list[Record]]
SCOPES: dict[str, dict[str, str]] = {
    "ana": {"user": "ana"}, "ana+a": {"user": "ana", "agent": "a"}, "ana+b": {"user": "ana", "agent": "b"},
    "bo": {"user": "bo"}, "a": {"agent": "a"}, "b": {"agent": "b"}, "none": {},
}  # fmt: skip
SEEN = {
    "ana": {"ana", "ana+a", "ana+b", "none"}, "ana+a": {"ana+a", "ana", "a", "none"},
    "ana+b": {"ana+b", "ana", "b", "none"}, "bo": {"bo", "none"}, "a": {"a", "none"}, "b": {"b", "none"},
    "none": {"none"},
}  # fmt: skip
"""Whose files each handle sees: those of the collections it sees."""


def files(hits: Any) -> list[str]:
    return [hit.id for hit in hits if hit.file is not None]


@pytest.mark.parametrize("name", SCOPES)
def test_a_handle_finds_the_files_of_the_books_it_sees(store: holdfast.Store, name: str) -> None:
    for owner, scope in SCOPES.items():
        store.folder("notes", **scope).write("a", f"the secret file of {owner}")
    memory = store.memory(**SCOPES[name])
    assert {hit.text for hit in memory.recall("secret")} == {f"the secret file of {owner}" for owner in SEEN[name]}
    assert len(memory.recall("secret", files=False)) == 0
    own = store.folder("notes", **SCOPES[name]).search("secret")
    assert [hit.text for hit in own] == [f"the secret file of {name}"]


def test_files_stand_beside_memories_and_messages(store: holdfast.Store) -> None:
    memory = store.memory(user="ana")
    memory.remember("the heron is grey", tags=["bird"])
    store.thread("t", user="ana").append({"role": "user", "content": "we saw the heron"})
    store.folder("notes", user="ana").write("birds/heron.md", "herons wade in shallow water", tags=["bird"])
    assert {hit.kind for hit in memory.recall("heron")} == {"semantic", "message", "file"}
    assert {hit.kind for hit in memory.recall("heron", log=False)} == {"semantic", "file"}
    assert {hit.kind for hit in memory.recall("heron", tag="bird")} == {"semantic", "file"}
    assert {hit.kind for hit in memory.recall("heron", files=False)} == {"semantic", "message"}
    assert [hit.id for hit in memory.recall("heron", kind="file")] == ["notes/birds/heron.md@1"]
    assert [hit.id for hit in memory.recall("heron", thread="t")] == ["t#1"]
    assert len(memory.recall("heron", kind=["file"], files=False)) == 0
    with pytest.raises(errors.Invalid):
        memory.recall("heron", kind="files")


def test_the_words_of_a_path_count(ram: holdfast.Store) -> None:
    notes = ram.folder("notes")
    notes.write("trips/lisbon_2026/packing-list.md", "socks")
    notes.write("a3fe9c01-77aa.md", "socks")
    assert notes.search("packing list for lisbon")[0].id == "notes/trips/lisbon_2026/packing-list.md@1"
    assert documents._NAME.findall("trips/lisbon_2026/a-packing.md 3fe9c01b x1y") == ["trips", "lisbon", "packing"]


def test_a_store_without_files_looks_for_none(store: holdfast.Store) -> None:
    memory = store.memory(user="ana")
    memory.remember("the heron is grey")
    memory.recall("heron")
    assert [place for _, place in store.wiring._index_cache()._indexes if place.files] == []
    store.folder("notes").write("a", "the heron stands")
    assert files(memory.recall("heron")) == ["notes/a@1"]


@pytest.mark.every_engine
def test_a_file_of_another_store_is_found_though_none_was_there_before(place: Any) -> None:
    store, other = place.open(own=True), place.open(own=True)
    memory = store.memory(user="ana")
    memory.remember("the heron is grey")
    memory.recall("heron")
    other.folder("notes", user="ana").write("a", "the heron stands")
    assert files(memory.recall("heron")) == ["notes/a@1"]


def test_among_many_files_the_right_ones_are_found(ram: holdfast.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "ALL", 50)
    notes = ram.folder("notes", user="ana")
    notes.commit(
        [FileWrite(f"{n % 7}/{n}", f"animal{n} lives in country{n % 7}", None, (f"t{n % 3}",)) for n in range(700)]
    )
    for number in range(0, 700, 2):
        notes.write(f"{number % 7}/{number}", f"animal{number} moved away")
    assert notes.search("animal433 country6", prefix="6/")[0].id == "notes/6/433@1"
    assert notes.search("where is animal44")[0].id == "notes/2/44@2"
    hits = notes.search("country3", 500, prefix="3/")
    paths = [hit.file.path for hit in hits if hit.file and "country3" in hit.text]
    assert sorted(paths) == sorted(f"3/{n}" for n in range(700) if n % 7 == 3 and n % 2)
    tagged = notes.search("country3", 700, tag="t1")
    assert {hit.file.tags for hit in tagged if hit.file} == {("t1",)}


# What is saved


@pytest.mark.usefixtures("soon")
def test_a_file_written_again_and_again_does_not_let_the_index_grow(place: Any) -> None:
    store = place.open(own=True)
    notes = store.folder("notes", user="ana")
    notes.commit([FileWrite(f"{number}", f"other{number}") for number in range(5)])
    for number in range(200):
        notes.write("counter", f"the counter stands at {number}")
        assert notes.search("counter", 1)[0].id == f"notes/counter@{number + 1}"
    assert notes.search("counter").report.searched < 60
    again = place.open(own=True)
    assert again.folder("notes", user="ana").search("counter stands", 1)[0].text.endswith("199")
    assert again.verify().problems == ()


@pytest.mark.every_engine
@pytest.mark.usefixtures("soon")
def test_a_saved_index_is_used_again(place: Any, saved: Saved) -> None:
    store = place.open(HashEmbedder(16), own=True)
    for scope in SCOPES.values():
        folder = store.folder("notes", **scope)
        folder.commit([FileWrite(f"{number}", f"animal{number}", None, ("odd",)) for number in range(30)])
        folder.search("animal3")
    assert len([record for record in saved(store) if "manifest" in record.tags]) == 5
    store.folder("notes", user="ana").write("3", "animal3 again", tags=["even"])
    again = place.open(HashEmbedder(16), own=True)
    notes = again.folder("notes", user="ana")
    assert notes.search("animal3", tag="even")[0].id == "notes/3@2"
    assert len(notes.search("animal3", tag="odd", prefix="3")) == 0
    assert again.verify().problems == ()
    assert again.rebuild() == 210
    assert again.memory(user="ana").rebuild() == 120
    assert again.verify().problems == ()


@pytest.mark.every_engine
@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("erase", ["file", "user", "agent"])
def test_the_words_of_erased_files_are_in_no_saved_index(
    place: Any, residue: Callable[..., list[str]], erase: str
) -> None:
    store = place.open(own=True)
    notes = store.folder("notes", user="ana", agent="a")
    notes.commit([FileWrite(f"{number}", f"animal{number}") for number in range(40)])
    notes.write("secret", "quokka")
    notes.search("animal")
    assert residue(store, "quokka")
    if erase == "file":
        notes.delete("secret")
        assert notes.delete("secret", erase=True)
    else:
        store.erase(**{erase: "ana" if erase == "user" else "a"})
    assert residue(store, "quokka") == []
    assert files(notes.search("quokka", prefix="secret")) == []
    assert store.verify().problems == ()


@pytest.mark.usefixtures("soon")
def test_files_move_to_another_model_and_back(place: Any) -> None:
    store = place.open(HashEmbedder(16, name="one"), own=True)
    notes = store.folder("notes", user="ana")
    notes.commit([FileWrite(f"{number}", f"animal{number}") for number in range(40)])
    notes.search("animal7")
    moved = place.open(HashEmbedder(32, name="two"), own=True)
    assert moved.memory(user="ana").reembed() == 40
    assert moved.folder("notes", user="ana").search("animal7").report.model == "two"
    assert moved.memory(user="ana").rollback() == "one"


# In a context


def test_a_context_shows_files_and_they_can_be_looked_up(store: holdfast.Store) -> None:
    notes = store.folder("notes", user="ana")
    notes.write(
        "birds/heron.md", "\n".join(["The heron nests in the old oak by the mill.", *(f"line {n}" for n in range(900))])
    )
    thread = store.thread("t", user="ana")
    context = store.context(thread, "Where does the heron nest?", 2_000)
    shown = str(context.messages)
    assert "The heron nests in the old oak" in shown
    assert "notes/birds/heron.md@1" in shown
    session = store.session("t", user="ana")
    assert session._elsewhere("notes/birds/heron.md@1") == notes.read("birds/heron.md").content
    notes.delete("birds/heron.md")
    assert session._elsewhere("notes/birds/heron.md@1") is None


def test_a_model_that_recalls_is_told_of_files(store: holdfast.Store) -> None:
    store.folder("notes", user="ana").write("heron.md", "The heron nests in the old oak.")
    told = store.memory(user="ana").use("recall", {"query": "heron"})
    assert told.startswith("[notes/heron.md@1] The heron nests in the old oak.")
