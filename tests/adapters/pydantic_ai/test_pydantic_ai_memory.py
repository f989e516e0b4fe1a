"""Notes of the harness: what any store of them must do, asked of the bundled one and of ours, and what ours adds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_harness import Memory
from pydantic_ai_harness.memory import (
    InMemoryStore,
    MemoryConflictError,
    MemoryMutation,
    MemoryOperation,
    MemoryOperationConflictError,
    MemoryStore,
    MetadataMemoryStore,
    SearchableMemoryStore,
)

import holdfast
from holdfast import errors
from holdfast.adapters.pydantic_ai import HoldfastMemoryStore
from holdfast.testing import ManualClock

pytestmark = pytest.mark.anyio

Notes = InMemoryStore | HoldfastMemoryStore


async def content(notes: Notes, path: str) -> str | None:
    file = await notes.read(path, max_chars=10_000)
    return None if file is None else file.content


async def written(notes: Notes, **files: str) -> None:
    for name, text in files.items():
        await notes.write(f"main/{name}.md", text, expected_version=None)


async def found(notes: Notes, query: str, **bounds: int) -> tuple[list[str], int, bool]:
    wide = {"limit": 10, "max_files": 100, "max_chars": 10_000, "max_file_chars": 10_000}
    result = await notes.search("main/", query, **{**wide, **bounds})
    return [match.path.removeprefix("main/") for match in result.matches], result.scanned, result.truncated


# Any store


async def test_it_is_every_kind_of_store(notes: Notes) -> None:
    assert isinstance(notes, MemoryStore)
    assert isinstance(notes, SearchableMemoryStore)
    assert isinstance(notes, MetadataMemoryStore)


async def test_writing_reading_and_deleting(notes: Notes) -> None:
    assert await notes.read("main/a.md", max_chars=10) is None
    first = await notes.write("main/a.md", "one", expected_version=None)
    assert (first.replayed, first.existed) == (False, False)
    file = await notes.read("main/a.md", max_chars=10)
    assert file is not None
    assert (file.content, file.version, file.truncated) == ("one", first.version, False)
    assert (file.operation_id, file.metadata) == (None, None)
    second = await notes.write("main/a.md", "two", expected_version=first.version)
    assert second.existed
    assert second.version != first.version
    gone = await notes.delete("main/a.md", expected_version=second.version)
    assert gone == MemoryMutation(version=None, replayed=False, existed=True)
    assert await notes.read("main/a.md", max_chars=10) is None
    assert await notes.delete("main/a.md", expected_version=None) == MemoryMutation(None, False, False)


async def test_a_long_note_is_cut_and_says_so(notes: Notes) -> None:
    await notes.write("main/a.md", "0123456789", expected_version=None)
    whole, part = await notes.read("main/a.md", max_chars=10), await notes.read("main/a.md", max_chars=4)
    assert whole is not None
    assert part is not None
    assert (whole.content, whole.truncated) == ("0123456789", False)
    assert (part.content, part.truncated, part.version) == ("0123", True, whole.version)


async def test_a_writer_with_an_old_version_is_refused(notes: Notes) -> None:
    first = await notes.write("main/a.md", "one", expected_version=None)
    second = await notes.write("main/a.md", "two", expected_version=first.version)
    for stale in (None, first.version, "7", "no number", "", "-1", "²"):
        with pytest.raises(MemoryConflictError):
            await notes.write("main/a.md", "three", expected_version=stale)
        with pytest.raises(MemoryConflictError):
            await notes.delete("main/a.md", expected_version=stale)
    with pytest.raises(MemoryConflictError):
        await notes.delete("main/b.md", expected_version="1")
    await notes.delete("main/a.md", expected_version=second.version)
    again = await notes.write("main/a.md", "afresh", expected_version=None)
    assert again.version not in (first.version, second.version)
    for stale in (first.version, second.version):
        with pytest.raises(MemoryConflictError):
            await notes.write("main/a.md", "late", expected_version=stale)
    assert await content(notes, "main/a.md") == "afresh"


async def test_an_operation_is_carried_out_once(notes: Notes) -> None:
    operation = MemoryOperation(id="op-1", fingerprint="f")
    assert await notes.get_operation(operation) is None
    first = await notes.write("main/a.md", "one", expected_version=None, operation=operation)
    replayed = MemoryMutation(version=first.version, replayed=True, existed=False)
    assert await notes.get_operation(operation) == replayed
    assert await notes.write("main/a.md", "one", expected_version=None, operation=operation) == replayed
    later = await notes.write("main/a.md", "two", expected_version=first.version)
    assert await notes.write("main/a.md", "one", expected_version="whatever", operation=operation) == replayed
    assert await content(notes, "main/a.md") == "two"
    file = await notes.read("main/a.md", max_chars=10)
    assert file is not None
    assert file.operation_id is None

    deletion = MemoryOperation(id="op-2", fingerprint="d")
    assert not (await notes.delete("main/a.md", expected_version=later.version, operation=deletion)).replayed
    gone = MemoryMutation(version=None, replayed=True, existed=True)
    assert await notes.delete("main/a.md", expected_version=later.version, operation=deletion) == gone
    assert await notes.get_operation(deletion) == gone
    nothing = MemoryOperation(id="op-3", fingerprint="n")
    assert await notes.delete("main/a.md", expected_version=None, operation=nothing) == MemoryMutation(
        None, False, False
    )
    assert await notes.get_operation(nothing) == MemoryMutation(None, True, False)


async def test_an_operation_that_is_something_else_is_refused(notes: Notes) -> None:
    await notes.write("main/a.md", "one", expected_version=None, operation=MemoryOperation(id="op", fingerprint="f"))
    other = MemoryOperation(id="op", fingerprint="g")
    for attempt in (
        notes.get_operation(other),
        notes.write("main/a.md", "two", expected_version=None, operation=other),
        notes.delete("main/a.md", expected_version=None, operation=other),
    ):
        with pytest.raises(MemoryOperationConflictError):
            await attempt
    assert await content(notes, "main/a.md") == "one"


async def test_an_operation_that_was_refused_leaves_no_receipt(notes: Notes) -> None:
    await notes.write("main/a.md", "one", expected_version=None)
    operation = MemoryOperation(id="op", fingerprint="f")
    with pytest.raises(MemoryConflictError):
        await notes.write("main/a.md", "two", expected_version=None, operation=operation)
    assert await notes.get_operation(operation) is None
    file = await notes.read("main/a.md", max_chars=10)
    assert file is not None
    assert not (await notes.write("main/a.md", "two", expected_version=file.version, operation=operation)).replayed
    file = await notes.read("main/a.md", max_chars=10)
    assert file is not None
    assert file.operation_id == "op"


@pytest.mark.parametrize("id", ["", "x" * 5_000, "a/../b", "\x00", "\ud800", "你好"])
async def test_any_text_may_name_an_operation(notes: Notes, id: str) -> None:
    operation = MemoryOperation(id=id, fingerprint="f")
    if id == "\ud800":  # not text, but it may be asked for
        assert await notes.get_operation(operation) is None
        return
    await notes.write("main/a.md", "one", expected_version=None, operation=operation)
    assert (await notes.write("main/a.md", "one", expected_version=None, operation=operation)).replayed
    assert await notes.list_paths(limit=10) == ["main/a.md"]


async def test_metadata_is_of_the_write_that_made_the_version(notes: Notes) -> None:
    async def metadata() -> Mapping[str, str] | None:
        file = await notes.read("main/a.md", max_chars=10)
        assert file is not None
        return file.metadata

    by_ana = {"by": "ana", "über": "\N{SNOWMAN}"}
    first = await notes.write_with_metadata("main/a.md", "one", expected_version=None, metadata=by_ana)
    assert await metadata() == by_ana
    operation = MemoryOperation(id="op", fingerprint="f")
    second = await notes.write_with_metadata(
        "main/a.md", "two", expected_version=first.version, metadata={"by": "ben"}, operation=operation
    )
    await notes.write_with_metadata(
        "main/a.md", "two", expected_version=first.version, metadata={"by": "cleo"}, operation=operation
    )
    assert await metadata() == {"by": "ben"}
    third = await notes.write("main/a.md", "three", expected_version=second.version)
    assert await metadata() is None
    await notes.write_with_metadata("main/a.md", "four", expected_version=third.version, metadata={})
    assert await metadata() is None


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ({"a": 1}, TypeError),
        ({1: "a"}, TypeError),
        ({"a": "\x00"}, ValueError),
        ({"\x00": "a"}, ValueError),
        ({"a": "x" * 4_096}, ValueError),
    ],
)
async def test_metadata_that_cannot_be(notes: Notes, metadata: dict[str, str], error: type[Exception]) -> None:
    with pytest.raises(error):
        await notes.write_with_metadata("main/a.md", "one", expected_version=None, metadata=metadata)
    assert await content(notes, "main/a.md") is None


@pytest.mark.every_engine
async def test_paths_are_listed_in_order(notes: Notes) -> None:
    for path in ("main/b.md", "main/a.md", "main/deep/a.md", "mainly/a.md", "other/a.md"):
        await notes.write(path, "x", expected_version=None, operation=MemoryOperation(path, "f"))
    assert await notes.list_paths(limit=10) == ["main/a.md", "main/b.md", "main/deep/a.md", "mainly/a.md", "other/a.md"]
    assert await notes.list_paths("main/", limit=10) == ["main/a.md", "main/b.md", "main/deep/a.md"]
    assert await notes.list_paths("main", limit=10) == ["main/a.md", "main/b.md", "main/deep/a.md", "mainly/a.md"]
    assert await notes.list_paths("main/", limit=2) == ["main/a.md", "main/b.md"]
    assert await notes.list_paths("nowhere/", limit=2) == []
    await notes.delete("main/a.md", expected_version=(await notes.read("main/a.md", max_chars=1)).version)  # type: ignore[union-attr]
    assert await notes.list_paths("main/", limit=10) == ["main/b.md", "main/deep/a.md"]


@pytest.mark.parametrize(
    "path", ["", "/", "a//b", "../a", "a/./b", "a..b", "a b", "a\\b", "a/", "/a", "ä", "x" * 201, "a\n"]
)
async def test_paths_that_cannot_be(notes: Notes, path: str) -> None:
    for attempt in (
        notes.read(path, max_chars=10),
        notes.write(path, "x", expected_version=None),
        notes.delete(path, expected_version=None),
    ):
        with pytest.raises(ValueError):
            await attempt
    if path and path != "a/":  # a prefix may end with a slash, and may be empty
        with pytest.raises(ValueError):
            await notes.list_paths(path, limit=1)
        with pytest.raises(ValueError):
            await notes.search(path, "x", limit=1, max_files=1, max_chars=1, max_file_chars=1)


async def test_bounds_that_cannot_be(notes: Notes) -> None:
    with pytest.raises(ValueError):
        await notes.read("main/a.md", max_chars=0)
    with pytest.raises(ValueError):
        await notes.list_paths(limit=0)


async def test_searching(notes: Notes) -> None:
    await written(notes, ferries="the ferry to Naxos", seats="aisle, and no Ferry", cats="two cats")
    await notes.write("main/deep/x.md", "ferry of others", expected_version=None)
    await notes.write("mainly/x.md", "ferry of others", expected_version=None)
    assert await found(notes, "ferry") == (["ferries.md", "seats.md"], 3, False)
    assert await found(notes, "FERRY naxos") == (["ferries.md", "seats.md"], 3, False)
    assert await found(notes, "cats") == (["cats.md"], 3, False)
    assert await found(notes, "dogs") == ([], 3, False)
    result = await notes.search("main/", "naxos", limit=1, max_files=9, max_chars=100, max_file_chars=100)
    assert [(match.path, match.snippet) for match in result.matches] == [("main/ferries.md", "the ferry to Naxos")]


async def test_a_search_keeps_to_its_bounds(notes: Notes) -> None:
    await written(notes, a="ferry " * 50, b="ferry", c="x" * 100 + " ferry")
    assert await found(notes, "ferry", limit=1) == (["a.md"], 3, True)
    assert await found(notes, "ferry", max_files=2) == (["a.md", "b.md"], 2, True)
    assert await found(notes, "ferry", max_file_chars=50) == (["a.md", "b.md"], 3, True)
    for nothing in ({"limit": 0}, {"max_files": 0}, {"max_chars": 0}, {"max_file_chars": 0}):
        assert await found(notes, "ferry", **nothing) == ([], 0, False)
    assert await found(notes, "  ") == ([], 0, False)
    for room in range(1, 60):
        result = await notes.search("main/", "ferry", limit=9, max_files=9, max_chars=room, max_file_chars=1_000)
        used = sum(len(match.path.removeprefix("main/")) + len(match.snippet) for match in result.matches)
        assert used <= room
        assert result.truncated
    cut = (await notes.search("main/", "ferry", limit=9, max_files=9, max_chars=44, max_file_chars=1_000)).matches[0]
    assert len(cut.snippet) == 40
    assert "ferry" in cut.snippet
    assert cut.snippet.endswith("...")


async def test_an_excerpt_is_around_what_was_found(notes: Notes) -> None:
    await written(notes, a="x" * 100 + " ferry " + "y" * 100)
    result = await notes.search("main/", "ferry", limit=1, max_files=1, max_chars=34, max_file_chars=1_000)
    snippet = result.matches[0].snippet
    assert "ferry" in snippet
    assert (snippet[:3], snippet[-3:], len(snippet)) == ("...", "...", 30)


@pytest.mark.every_engine
async def test_of_many_who_write_at_once_one_wins(notes: Notes) -> None:
    for path, version in (("main/a.md", None), ("main/a.md", "now")):
        if version == "now":
            version = (await notes.read(path, max_chars=1)).version  # type: ignore[union-attr]
        tries = [notes.write(path, str(number), expected_version=version) for number in range(8)]
        ended = await asyncio.gather(*tries, return_exceptions=True)
        assert sum(isinstance(end, MemoryMutation) for end in ended) == 1
        assert sum(isinstance(end, MemoryConflictError) for end in ended) == 7


async def test_an_operation_that_many_repeat_at_once_is_carried_out_once(notes: Notes) -> None:
    operation = MemoryOperation(id="op", fingerprint="f")
    tries = [notes.write("main/a.md", "one", expected_version=None, operation=operation) for _ in range(8)]
    ended = await asyncio.gather(*tries)
    assert sorted(mutation.replayed for mutation in ended) == [False] + [True] * 7
    assert len({mutation.version for mutation in ended}) == 1


# An agent


def noting(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """A model that writes down what it is told, and tells what it read."""
    returned = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    if returned:
        return ModelResponse(parts=[TextPart(str(returned[-1].content))])
    told = "\n".join(str(getattr(part, "content", "")) for message in messages for part in message.parts)
    if "remember" in told.splitlines()[-1]:
        return ModelResponse(parts=[ToolCallPart("write_memory", {"content": "likes aisle seats"}, "c1")])
    return ModelResponse(parts=[TextPart("known" if "likes aisle seats" in told else "unknown")])


async def test_an_agent_writes_and_is_shown_its_notes(notes: Notes) -> None:
    agent = Agent(FunctionModel(noting), capabilities=[Memory(notes, namespace="ana", write_metadata={"by": "ana"})])
    assert (await agent.run("what do I like?")).output == "unknown"
    assert "MEMORY.md" in (await agent.run("please remember")).output
    assert (await agent.run("what do I like?")).output == "known"
    [path] = await notes.list_paths(limit=9)
    file = await notes.read(path, max_chars=100)
    assert file is not None
    assert (file.content, file.metadata) == ("likes aisle seats\n", {"by": "ana"})
    assert file.operation_id


# Ours


async def test_notes_are_files_of_a_folder(store: holdfast.Store) -> None:
    notes = HoldfastMemoryStore(store, user="ana", agent="travel")
    first = await notes.write("main/a.md", "one", expected_version=None)
    await notes.write("main/a.md", "two", expected_version=first.version, operation=MemoryOperation("op", "f"))
    folder = store.folder("pydantic-ai", user="ana", agent="travel")
    assert [file.content for file in folder.history("main/a.md")] == ["one", {"text": "two", "operation": "op"}]
    assert [file.path for file in folder.files(tag="note")] == ["main/a.md"]
    assert await HoldfastMemoryStore(store, user="ben", agent="travel").list_paths(limit=9) == []
    assert await HoldfastMemoryStore(store, folder="other", user="ana").list_paths(limit=9) == []
    store.erase(user="ana")
    assert await notes.read("main/a.md", max_chars=10) is None
    assert await notes.get_operation(MemoryOperation("op", "f")) is None


async def test_a_file_that_others_wrote_can_be_read(store: holdfast.Store) -> None:
    notes = HoldfastMemoryStore(store)
    notes.folder.write("main/a.md", "by hand", tags=["note"])
    notes.folder.write("main/b.md", {"seat": "aisle"}, tags=["note"])
    assert await content(notes, "main/a.md") == "by hand"
    assert await content(notes, "main/b.md") == "aisle"
    assert await found(notes, "aisle") == (["b.md"], 2, False)


@pytest.mark.every_engine
async def test_a_write_and_its_receipt_are_one_commit(store: holdfast.Store) -> None:
    notes = HoldfastMemoryStore(store)
    first = await notes.write("main/a.md", "one", expected_version=None, operation=MemoryOperation("a", "f"))
    assert len(list(store.watch(timeout_s=0))) == 1
    await notes.delete("main/a.md", expected_version=first.version, operation=MemoryOperation("b", "f"))
    assert len(list(store.watch(timeout_s=0))) == 2


class Hasty(HoldfastMemoryStore):
    """One that looks for a receipt just before somebody else writes it."""

    looked = False

    def _repeated(self, operation: MemoryOperation) -> MemoryMutation | None:
        if not self.looked:
            self.looked = True
            return None
        return super()._repeated(operation)


async def test_an_operation_that_somebody_was_faster_with_is_carried_out_once(store: holdfast.Store) -> None:
    notes, operation = HoldfastMemoryStore(store), MemoryOperation("op", "f")
    first = await notes.write("main/a.md", "one", expected_version=None, operation=operation)
    late = await Hasty(store).write("main/a.md", "one", expected_version=None, operation=operation)
    assert late == MemoryMutation(first.version, replayed=True, existed=False)
    nothing = MemoryOperation("op-2", "f")
    await notes.delete("main/b.md", expected_version=None, operation=nothing)
    late = await Hasty(store).delete("main/b.md", expected_version=None, operation=nothing)
    assert late == MemoryMutation(None, replayed=True, existed=False)


async def test_it_is_there_after_a_restart(tmp_path: Path) -> None:
    place, operation = tmp_path / "agent.db", MemoryOperation("op", "f")
    notes = HoldfastMemoryStore(place)
    first = await notes.write("main/a.md", "one", expected_version=None, operation=operation)
    notes.close()
    again = HoldfastMemoryStore(str(place))
    assert (await again.write("main/a.md", "one", expected_version=None, operation=operation)).replayed
    assert (await again.write("main/a.md", "two", expected_version=first.version)).existed
    again.close()
    with pytest.raises(errors.Misconfigured):
        await again.read("main/a.md", max_chars=1)


async def test_a_receipt_is_kept_for_thirty_days() -> None:
    clock, operation = ManualClock(), MemoryOperation("op", "f")
    with holdfast.open("ram:", embedder="none", clock=clock) as store:
        notes = HoldfastMemoryStore(store)
        first = await notes.write("main/a.md", "one", expected_version=None, operation=operation)
        clock.advance(29 * 24 * 3600)
        assert await notes.get_operation(operation) is not None
        clock.advance(2 * 24 * 3600)
        assert await notes.get_operation(operation) is None
        later = await notes.write("main/a.md", "two", expected_version=first.version, operation=operation)
        assert not later.replayed
        assert (await notes.get_operation(operation)) == MemoryMutation(later.version, True, True)


async def test_a_note_that_cannot_be_kept_leaves_nothing_behind(store: holdfast.Store) -> None:
    notes, operation = HoldfastMemoryStore(store), MemoryOperation("op", "f")
    for bad in ("\ud800", "x" * (17 * 1024 * 1024)):
        with pytest.raises(errors.Invalid):
            await notes.write("main/a.md", bad, expected_version=None, operation=operation)
    with pytest.raises(errors.Invalid):
        await notes.write("/".join(["x" * 200] * 3), "too far down", expected_version=None)
    assert await notes.get_operation(operation) is None
    assert await notes.list_paths(limit=9) == []
