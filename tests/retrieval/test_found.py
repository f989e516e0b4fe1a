"""Whatever was acknowledged is found by the next recall, and what was taken back is not, on every engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast.errors import Unavailable
from holdfast.retrieval import index, segment
from holdfast.retrieval.documents import StoredDocuments
from holdfast.retrieval.index_store import IndexStore, Overtaken
from holdfast.testing import ManualClock
from holdfast.testing.embedders import Flaky, HashEmbedder


def said(words: str) -> dict[str, Any]:
    return {"role": "user", "content": words}


def texts(store: holdfast.Store, query: str, k: int = 50, **only: Any) -> list[str]:
    return [hit.text for hit in store.memory(user="ana").recall(query, k, **only)]


# Acknowledged, so found


@pytest.mark.every_engine
def test_a_message_is_found_at_once(store: holdfast.Store) -> None:
    thread = store.thread("t", user="ana")
    for animal in ("zebra", "okapi", "tapir"):
        thread.append(said(f"I saw a {animal}"))
        assert texts(store, animal)[0] == f"I saw a {animal}"


def test_a_turn_is_found_whole(store: holdfast.Store) -> None:
    texts(store, "before there is anything")
    with store.thread("t", user="ana").turn() as turn:
        turn.append(said("a zebra"))
        turn.append({"role": "assistant", "content": "an okapi"})
    assert set(texts(store, "zebra okapi")) == {"a zebra", "an okapi"}


@pytest.mark.every_engine
def test_a_memory_is_found_at_once(store: holdfast.Store) -> None:
    memory = store.memory(user="ana")
    for animal in ("zebra", "okapi", "tapir"):
        made = memory.remember(f"likes the {animal}")
        found = memory.recall(animal)
        assert found[0].memory == made
        assert found[0].id == made.id


def test_many_remembered_together_are_all_found(store: holdfast.Store) -> None:
    store.memory(user="ana").remember_all([f"animal{number} is nice" for number in range(600)])
    for number in (0, 255, 256, 599):
        assert texts(store, f"animal{number}")[0] == f"animal{number} is nice"


def test_every_kind_of_entry_is_found(store: holdfast.Store) -> None:
    thread = store.thread("t", user="ana")
    thread.append({"name": "search", "arguments": {"q": "okapi"}}, kind="tool_call")
    thread.append({"role": "tool", "content": "a tapir was seen"}, kind="observation")
    thread.append({"text": "the zebra left"}, kind="event")
    thread.append({"text": "look at the gnu"}, kind="note")
    for word, kind in (("okapi", "tool_call"), ("tapir", "observation"), ("zebra", "event"), ("gnu", "note")):
        hit = store.memory(user="ana").recall(word)[0]
        assert (hit.kind, word in hit.text) == (kind, True)


@pytest.mark.parametrize(
    "content",
    [
        "a zebra",
        ["a zebra", "and more"],
        [{"type": "text", "text": "a zebra"}],
        [{"type": "image", "source": {"data": "AAAA"}}, {"type": "input_text", "text": "a zebra"}],
        {"parts": [{"text": "a zebra"}]},
        [{"type": "tool_result", "content": [{"type": "text", "text": "a zebra"}]}],
    ],
)
def test_a_message_of_any_client_library_is_found(ram: holdfast.Store, content: Any) -> None:
    ram.thread("t", user="ana").append({"role": "user", "content": content})
    assert ram.memory(user="ana").recall("zebra").relevant


@pytest.mark.parametrize(
    "block",
    [
        {"inlineData": {"mimeType": "image/png", "data": "okapi"}},
        {"inline_data": {"mime_type": "image/png", "data": "okapi"}},
        {"fileData": {"fileUri": "okapi"}},
        {"image": {"format": "png", "source": {"bytes": "okapi"}}},
        {"text": "", "thoughtSignature": "okapi"},
        {"reasoningContent": {"reasoningText": {"text": "", "signature": "okapi"}}},
        {"functionResponse": {"name": "look", "parts": [{"inlineData": {"data": "okapi"}}]}},
    ],
)
def test_a_file_inside_a_message_is_no_text(ram: holdfast.Store, block: dict[str, Any]) -> None:
    ram.thread("t", user="ana").append({"role": "user", "content": [{"text": "a zebra"}, block]})
    hits = ram.memory(user="ana").recall("zebra okapi")
    assert hits[0].text.startswith("a zebra")
    assert not any("okapi" in hit.text for hit in hits)


def test_an_entry_that_is_no_text_says_nothing_and_breaks_nothing(ram: holdfast.Store) -> None:
    thread = ram.thread("t", user="ana")
    contents: tuple[Any, ...] = (
        {"x": None},
        {"role": "user", "content": None},
        {"role": None},
        {"content": [[[True]]]},
        {"content": {}},
    )
    for content in contents:
        thread.append(content)
    thread.append(said("a zebra"))
    assert texts(ram, "zebra")[0] == "a zebra"


# Forks and rewinds


def test_what_forks_share_is_found_once(store: holdfast.Store) -> None:
    first = store.thread("a", user="ana")
    first.append(said("a zebra"), said("an okapi"))
    texts(store, "zebra")
    fork = first.fork("b")
    fork.append(said("a tapir in the fork"))
    first.append(said("a tapir in the first"))
    assert texts(store, "zebra okapi tapir").count("a zebra") == 1
    assert set(texts(store, "tapir")) >= {"a tapir in the fork", "a tapir in the first"}


def test_a_fork_for_someone_else_shares_what_was_before_it(store: holdfast.Store) -> None:
    first = store.thread("a", user="ana")
    first.append(said("a zebra"))
    first.fork("b", user="bo").append(said("a tapir"))
    first.append(said("an okapi"))
    found = {hit.text for hit in store.memory(user="bo").recall("zebra tapir okapi")}
    assert found == {"a zebra", "a tapir"}
    assert set(texts(store, "zebra tapir okapi")) == {"a zebra", "an okapi"}


def test_what_was_taken_back_is_not_found(store: holdfast.Store) -> None:
    thread = store.thread("a", user="ana")
    thread.append(said("a zebra"), said("an okapi"), said("a tapir"))
    assert len(texts(store, "zebra okapi tapir")) == 3
    thread.rewind(1)
    assert texts(store, "zebra okapi tapir") == ["a zebra"]
    thread.append(said("a gnu"))
    assert set(texts(store, "zebra okapi tapir gnu")) == {"a zebra", "a gnu"}


def test_a_fork_keeps_what_the_first_took_back(store: holdfast.Store) -> None:
    thread = store.thread("a", user="ana")
    thread.append(said("a zebra"), said("an okapi"))
    thread.fork("b")
    thread.rewind(1)
    assert set(texts(store, "zebra okapi")) == {"a zebra", "an okapi"}
    hit = store.memory(user="ana").recall("okapi")[0]
    assert hit.entry is not None
    assert (hit.entry.thread, hit.entry.number) == ("b", 2)


# Forgetting and coming back


def test_forgotten_is_not_found_and_restored_is(store: holdfast.Store) -> None:
    memory = store.memory(user="ana")
    made = memory.remember("a zebra")
    memory.remember("an okapi")
    assert "a zebra" in texts(store, "zebra")
    for _ in range(2):
        memory.forget(made.id)
        assert texts(store, "zebra") == ["an okapi"]
        memory.unforget(made.id)
        assert texts(store, "zebra")[0] == "a zebra"


def test_without_its_newest_value_a_fact_has_the_one_before(store: holdfast.Store) -> None:
    memory = store.memory(user="ana")
    memory.remember("lives in Rome", key="city")
    oslo = memory.remember("lives in Oslo", key="city")
    assert texts(store, "lives") == ["lives in Oslo"]
    memory.forget(oslo.id)
    assert texts(store, "lives") == ["lives in Rome"]
    memory.unforget(oslo.id)
    assert texts(store, "lives") == ["lives in Oslo"]
    memory.forget(oslo.id, erase=True)
    assert texts(store, "lives") == ["lives in Rome"]


def test_what_was_acknowledged_is_true_now_whatever_the_clock_says(here: Any, clock: ManualClock) -> None:
    memory = here.open().memory(user="ana")
    memory.remember("lives in Rome", key="city")
    clock.advance(-86_400)
    memory.remember("lives in Oslo", key="city")
    assert [fact.text for fact in memory.facts()] == ["lives in Oslo"]
    assert [hit.text for hit in memory.recall("lives")] == ["lives in Oslo"]


# Something went wrong on the way


class _Interrupted(HashEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.interrupts = False

    def embed(self, texts: Any) -> Any:
        if self.interrupts:
            self.interrupts = False
            raise KeyboardInterrupt
        return super().embed(texts)


def test_an_interrupted_recall_loses_nothing(here: Any) -> None:
    embedder = _Interrupted()
    memory = here.open(embedder).memory(user="ana")
    memory.remember("an okapi")
    memory.recall("okapi")
    memory.remember("a zebra")
    embedder.interrupts = True
    with pytest.raises(KeyboardInterrupt):
        memory.recall("zebra")
    assert memory.recall("zebra")[0].text == "a zebra"


class _Away:
    """A view whose reads fail for a while, as a connection that was lost."""

    def __init__(self, view: Any, verb: str) -> None:
        self._view, self._verb, self.left = view, verb, 1

    def __getattr__(self, name: str) -> Any:
        if name == self._verb and self.left:
            self.left -= 1
            raise Unavailable("the connection was lost, as the test asked")
        return getattr(self._view, name)


@pytest.mark.parametrize("verb", ["get", "feed", "read", "strand"])
@pytest.mark.parametrize("what", ["memory", "thread"])
def test_a_recall_that_failed_loses_nothing(here: Any, monkeypatch: pytest.MonkeyPatch, verb: str, what: str) -> None:
    made: list[StoredDocuments] = []
    real = StoredDocuments.__init__

    def noted(self: StoredDocuments, *given: Any) -> None:
        real(self, *given)
        made.append(self)

    monkeypatch.setattr(StoredDocuments, "__init__", noted)
    store = here.open()
    texts(store, "nothing yet")
    if what == "memory":
        store.memory(user="ana").remember("a zebra")
    else:
        store.thread("t", user="ana").append(said("a zebra"))
    for ground in made:
        ground._view = _Away(ground._view, verb)
    for _ in range(3 * len(made)):
        try:
            texts(store, "zebra")
        except Unavailable:
            continue
    assert texts(store, "zebra") == ["a zebra"]


def test_a_recall_needs_no_room_to_save_its_index(
    here: Any, monkeypatch: pytest.MonkeyPatch, fill: Callable[..., None]
) -> None:
    def full(self: IndexStore, ops: Any) -> None:
        raise Unavailable("the disk is full, as the test asked")

    store = here.open()
    fill(store)
    store.memory(user="ana").remember("a zebra")
    monkeypatch.setattr(IndexStore, "_write", full)
    assert texts(store, "zebra")[0] == "a zebra"


# Two stores that do not know of each other


@pytest.mark.every_engine
def test_two_stores_find_what_either_wrote(place: Any) -> None:
    stores = [place.open(own=True) for _ in range(2)]
    for number in range(12):
        stores[number % 2].memory(user="ana").remember(f"animal{number}")
        stores[number % 3 % 2].thread(f"t{number % 2}", user="ana").append(said(f"plant{number}"))
        for store in stores:
            assert texts(store, f"animal{number}")[0] == f"animal{number}"
            assert texts(store, f"plant{number}")[0] == f"plant{number}"


@pytest.mark.every_engine
def test_two_stores_that_save_at_once_both_find_everything(
    place: Any, monkeypatch: pytest.MonkeyPatch, saved: Callable[..., Any], orphans: Callable[..., set[str]]
) -> None:
    monkeypatch.setattr(index, "SAVE_AT", 4)
    overtaken = list[IndexStore]()
    real = IndexStore.commit

    def counted(self: IndexStore, *given: Any) -> None:
        try:
            real(self, *given)
        except Overtaken:
            overtaken.append(self)
            raise

    monkeypatch.setattr(IndexStore, "commit", counted)
    stores = [place.open(HashEmbedder(16), own=True) for _ in range(2)]
    for number in range(30):
        stores[number % 2].memory(user="ana").remember_all([f"animal{number}", f"plant{number}", f"stone{number}"])
        for store in stores:
            assert texts(store, f"plant{number}")[0] == f"plant{number}"
    assert overtaken
    for store in stores:
        found = texts(store, "stone", k=200)
        assert {f"stone{number}" for number in range(30)} <= set(found)
        assert len(found) == len(set(found)) == 90
    assert stores[0].verify().problems == ()
    assert len([record for record in saved(stores[0]) if "manifest" in record.tags]) == 1
    assert orphans(stores[0]) == set()


@pytest.mark.every_engine
def test_a_first_save_that_two_make_at_once_is_one_save(
    place: Any, monkeypatch: pytest.MonkeyPatch, fill: Callable[..., None], saved: Callable[..., Any]
) -> None:
    one, other = (place.open(own=True) for _ in range(2))
    fill(one)
    real, first = IndexStore._write, list[IndexStore]()

    def raced(self: IndexStore, ops: Any) -> None:
        if not first:
            first.append(self)
            texts(other, "filler")  # the other one saves in the very moment before this one does
        real(self, ops)

    monkeypatch.setattr(IndexStore, "_write", raced)
    assert len(texts(one, "filler 7")) == 50
    assert len([record for record in saved(one) if "manifest" in record.tags]) == 1
    assert one.verify().problems == ()
    parts = {record.id for record in saved(one)}
    one.memory(user="ana").remember("a zebra")
    assert texts(one, "zebra")[0] == texts(other, "zebra")[0] == "a zebra"
    assert parts == {record.id for record in saved(one)}


@pytest.mark.every_engine
def test_a_store_that_loads_while_another_joins_parts_takes_nothing_for_damage(
    place: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(index, "SAVE_AT", 4)
    writer, counting = place.open(HashEmbedder(16), own=True), Flaky(HashEmbedder(16))
    for number in range(7):
        writer.memory(user="ana").remember_all([f"animal{number} {one}" for one in range(4)])
        texts(writer, "animal")
    reader = place.open(counting, own=True)
    real, raced = segment.from_bytes, list[int]()

    def after_the_first_part(data: bytes) -> Any:
        if not raced:
            raced.append(len(data))
            writer.memory(user="ana").remember_all([f"plant {one}" for one in range(4)])
            texts(writer, "plant")
        return real(data)

    monkeypatch.setattr(segment, "from_bytes", after_the_first_part)
    assert len(texts(reader, "animal plant")) == 32
    assert "made again" not in caplog.text
    assert counting.texts <= 5  # the question, and at most what the writer had not saved when the reader began
