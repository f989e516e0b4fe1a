"""Many at once in one process: threads that remember and recall, feeds that ran far ahead, and erasures cut short."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import holdfast
from holdfast.retrieval import documents, index, library, pipeline
from holdfast.retrieval.index_store import IndexStore
from holdfast.testing.embedders import HashEmbedder


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(works: list[Callable[[], None]]) -> None:
    failed: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


@pytest.mark.every_engine
@pytest.mark.usefixtures("hasty", "soon")
def test_threads_find_what_they_remembered(place: Any) -> None:
    store = place.open(HashEmbedder(16))

    def work(name: int) -> Callable[[], None]:
        def run() -> None:
            memory = store.memory(user="ana")
            for number in range(15):
                memory.remember(f"animal{name}x{number}")
                assert memory.recall(f"animal{name}x{number}", 1)[0].text == f"animal{name}x{number}"

        return run

    together([work(name) for name in range(4)])
    assert len(store.memory(user="ana").recall("animal", 1_000)) == 60
    assert store.verify().problems == ()


@pytest.mark.usefixtures("hasty")
def test_recalls_at_once_do_not_disturb_each_other(here: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept for later recalls may be thrown away by one while others use it."""
    monkeypatch.setattr(pipeline, "_GATHERED", 2)
    store = here.open()
    store.memory(user="ana").remember_all([f"zebra {number}" for number in range(30)])
    store.thread("t", user="ana").append(*({"role": "user", "content": f"zebra {number}"} for number in range(30)))
    store.memory().remember("a common zebra")
    start = datetime(2000, 1, 1, tzinfo=UTC)

    def work(name: int) -> Callable[[], None]:
        def run() -> None:
            for number in range(60):
                since = start + timedelta(days=name * 100 + number)
                assert len(store.memory(user="ana").recall("zebra", 100, since=since)) == 61

        return run

    together([work(name) for name in range(4)])


@pytest.mark.every_engine
@pytest.mark.usefixtures("soon")
def test_a_feed_that_ran_far_ahead_is_caught_up_with(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_MANY", 5)
    one, other = place.open(own=True), place.open(own=True)
    one.memory(user="ana").recall("nothing yet")
    for number in range(20):
        other.memory(user="ana").remember(f"animal{number}")
        other.thread(f"t{number}", user="ana" if number % 2 else "bo").append(
            {"role": "user", "content": f"plant{number}"}
        )
    found = {hit.text for hit in one.memory(user="ana").recall("animal plant", 100)}
    assert found == {f"animal{n}" for n in range(20)} | {f"plant{n}" for n in range(1, 20, 2)}
    other.erase(thread="t3")
    other.memory(user="ana").remember("animal20")
    found = {hit.text for hit in one.memory(user="ana").recall("animal plant", 100)}
    assert "animal20" in found
    assert "plant3" not in found


@pytest.mark.usefixtures("soon")
def test_many_users_do_not_crowd_each_other_out(here: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexes that were let go are read again, or made again."""
    monkeypatch.setattr(library, "_KEPT", 3)
    store = here.open(HashEmbedder(16))
    for number in range(12):
        store.memory(user=f"u{number}").remember_all([f"thing {part} of u{number}" for part in range(1 + number * 3)])
    for _ in range(2):
        for number in range(12):
            found = {hit.text for hit in store.memory(user=f"u{number}").recall("thing", 100)}
            assert found == {f"thing {part} of u{number}" for part in range(1 + number * 3)}
    assert store.verify().problems == ()


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("what", ["memory", "thread"])
def test_an_erasure_that_was_cut_short_is_finished(
    here: Any, monkeypatch: pytest.MonkeyPatch, fill: Callable[..., None], residue: Callable[..., list[str]], what: str
) -> None:
    """The process died after the ground was erased and before the index was: verify says so, and rebuild mends it."""
    store = here.open()
    made = store.memory(user="ana").remember("the zanzibar secret")
    store.thread("t", user="ana").append({"role": "user", "content": "the zanzibar story"})
    fill(store)
    store.memory(user="ana").recall("filler")
    assert residue(store, "zanzibar")

    def dies(self: IndexStore, ops: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(IndexStore, "_write", dies)
        with pytest.raises(KeyboardInterrupt):
            store.erase(thread="t") if what == "thread" else store.memory(user="ana").forget(made.id, erase=True)
    store, gone, kept = here.open(), *(("secret", "story") if what == "memory" else ("story", "secret"))
    assert [problem.kind for problem in store.verify().problems] == ["index"]
    found = [hit.text for hit in store.memory(user="ana").recall("zanzibar", 100) if "zanzibar" in hit.text]
    assert found == [f"the zanzibar {kept}"]
    store.rebuild()
    assert store.verify().problems == ()
    assert not residue(store, gone)
    assert residue(store, kept)


@pytest.mark.usefixtures("soon")
def test_verify_while_others_write_gives_no_false_alarm(
    here: Any, monkeypatch: pytest.MonkeyPatch, fill: Callable[..., None]
) -> None:
    """The first collection of a user comes to be, and is saved, while the user's index is looked at."""
    store, other = here.open(), here.open()
    store.thread("t", user="ana").append(*({"role": "user", "content": f"line {number}"} for number in range(24)))
    store.memory(user="ana").recall("line")
    real, raced = IndexStore.read, list[IndexStore]()

    def read(self: IndexStore) -> Any:
        if not raced:
            raced.append(self)
            fill(other)
            other.memory(user="ana").recall("filler")
        return real(self)

    monkeypatch.setattr(IndexStore, "read", read)
    assert store.verify().problems == ()


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("how", ["rebuild", "erase", "erase the user"])
def test_an_index_that_was_made_anew_is_not_taken_for_the_old_one(
    place: Any, fill: Callable[..., None], orphans: Callable[..., set[str]], how: str
) -> None:
    one, other = place.open(own=True), place.open(own=True)
    made = one.memory(user="ana").remember("the zanzibar secret")
    fill(one)
    one.memory(user="ana").recall("filler")
    other.memory(user="ana").recall("filler")
    if how == "rebuild":
        one.rebuild()
    elif how == "erase":
        one.memory(user="ana").forget(made.id, erase=True)
    else:
        one.erase(user="ana", forever=False)
        fill(one)
    one.memory(user="ana").recall("filler")
    fill(other)
    other.memory(user="ana").recall("filler")
    assert orphans(one) == set()
    assert one.verify().problems == ()


@pytest.mark.usefixtures("soon")
def test_who_saves_right_after_another_is_not_overwritten(
    here: Any, monkeypatch: pytest.MonkeyPatch, fill: Callable[..., None], orphans: Callable[..., set[str]]
) -> None:
    one, other = here.open(), here.open()
    fill(one)
    one.memory(user="ana").recall("filler")
    other.memory(user="ana").recall("filler")
    fill(one)
    real, raced = IndexStore._write, list[IndexStore]()

    def write(self: IndexStore, ops: Any) -> None:
        real(self, ops)
        if not raced:
            raced.append(self)
            fill(other)
            other.memory(user="ana").recall("filler")

    monkeypatch.setattr(IndexStore, "_write", write)
    one.memory(user="ana").recall("filler")
    fill(one)
    one.memory(user="ana").recall("filler")
    assert orphans(one) == set()
    assert one.verify().problems == ()
    assert len(one.memory(user="ana").recall("filler", 1_000)) == len(other.memory(user="ana").recall("filler", 1_000))


@pytest.mark.usefixtures("soon")
def test_who_saves_while_another_throws_away_leaves_nothing_behind(
    here: Any, monkeypatch: pytest.MonkeyPatch, fill: Callable[..., None], orphans: Callable[..., set[str]]
) -> None:
    one, other = here.open(), here.open()
    fill(one)
    one.memory(user="ana").recall("filler")
    other.memory(user="ana").recall("filler")
    real, raced = IndexStore._write, list[IndexStore]()

    def write(self: IndexStore, ops: Any) -> None:
        if not raced:
            raced.append(self)
            fill(other)
            other.memory(user="ana").recall("filler")
        real(self, ops)

    monkeypatch.setattr(IndexStore, "_write", write)
    one.rebuild()
    assert orphans(one) == set()
    assert one.verify().problems == ()


@pytest.mark.usefixtures("soon")
def test_a_first_save_that_another_throws_away_at_once_is_borne(
    here: Any, monkeypatch: pytest.MonkeyPatch, fill: Callable[..., None], orphans: Callable[..., set[str]]
) -> None:
    one, other = here.open(), here.open()
    fill(one)
    real, raced = IndexStore._write, list[IndexStore]()

    def write(self: IndexStore, ops: Any) -> None:
        real(self, ops)
        if not raced:
            raced.append(self)
            other.wiring.recaller().indexes.index(documents.IndexScope(user="ana")).discard()

    monkeypatch.setattr(IndexStore, "_write", write)
    assert len(one.memory(user="ana").recall("filler", 1_000)) == 24
    assert orphans(one) == set()
    assert one.verify().problems == ()


@pytest.mark.parametrize("seed", range(25))
def test_whatever_happens_in_three_stores_all_find_what_is_there(
    near: Any, monkeypatch: pytest.MonkeyPatch, orphans: Callable[..., set[str]], seed: int
) -> None:
    _live(near, monkeypatch, orphans, seed)


@pytest.mark.every_engine
@pytest.mark.parametrize("seed", range(25, 28))
def test_whatever_happens_on_any_engine_all_find_what_is_there(
    place: Any, monkeypatch: pytest.MonkeyPatch, orphans: Callable[..., set[str]], seed: int
) -> None:
    _live(place, monkeypatch, orphans, seed)


def _live(place: Any, monkeypatch: pytest.MonkeyPatch, orphans: Callable[..., set[str]], seed: int) -> None:
    monkeypatch.setattr(index, "SAVE_AT", 6)
    drawn = random.Random(seed)
    monkeypatch.setattr(pipeline, "ALL", drawn.choice([0, 1_200]))
    tale = Tale(drawn, [place.open(HashEmbedder(16) if number else None, own=True) for number in range(3)])
    for _ in range(50):
        tale.go_on()
    for store in tale.stores:
        tale.look(store)
    assert tale.stores[0].verify().problems == ()
    assert orphans(tale.stores[0]) == set()


class Tale:
    """What happens to the memories and threads of one user, and what is there to be found."""

    def __init__(self, drawn: random.Random, stores: list[holdfast.Store]) -> None:
        self.drawn, self.stores = drawn, stores
        self.memories: dict[str, str] = {}
        self.threads: dict[str, list[str]] = {"t0": [], "t1": []}
        self._number = 0

    def go_on(self) -> None:
        store = self.drawn.choice(self.stores)
        ways = [self.remember, self.remember, self.append, self.append, self.forget, self.rewind, self.fork, self.erase]
        self.drawn.choice([*ways, self.rebuild, self.look, self.look, self.look])(store)

    def words(self) -> list[str]:
        count = self.drawn.randrange(1, 5)
        self._number += count
        return [f"thing x{self._number - at}" for at in range(count)]

    def remember(self, store: holdfast.Store) -> None:
        made = store.memory(user="ana", agent=self.drawn.choice([None, "a"])).remember_all(self.words())
        self.memories.update((memory.id, memory.text) for memory in made)

    def append(self, store: holdfast.Store) -> None:
        thread, words = self.drawn.choice(sorted(self.threads) or ["again"]), self.words()
        store.thread(thread, user="ana").append(*({"role": "user", "content": word} for word in words))
        self.threads.setdefault(thread, []).extend(words)

    def forget(self, store: holdfast.Store) -> None:
        if self.memories:
            id = self.drawn.choice(sorted(self.memories))
            store.memory(user="ana").forget(id, erase=self.drawn.random() < 0.5)
            del self.memories[id]

    def rewind(self, store: holdfast.Store) -> None:
        if thread := self.some_thread():
            upto = self.drawn.randrange(1, len(self.threads[thread]) + 1)
            store.thread(thread, user="ana").rewind(upto)
            del self.threads[thread][upto:]

    def fork(self, store: holdfast.Store) -> None:
        if thread := self.some_thread():
            upto, name = self.drawn.randrange(1, len(self.threads[thread]) + 1), f"{thread}-{self._number}"
            if name not in self.threads:
                store.thread(thread, user="ana").fork(name, at=upto)
                self.threads[name] = self.threads[thread][:upto]

    def erase(self, store: holdfast.Store) -> None:
        if (thread := self.some_thread()) and len(self.threads) > 1:
            store.erase(thread=thread, forever=False)
            del self.threads[thread]

    def rebuild(self, store: holdfast.Store) -> None:
        store.rebuild()

    def look(self, store: holdfast.Store) -> None:
        there = {*self.memories.values(), *(word for words in self.threads.values() for word in words)}
        found = [hit.text for hit in store.memory(user="ana").recall("thing", 1_000)]
        assert set(found) == there
        assert len(found) == len(there)

    def some_thread(self) -> str | None:
        full = [thread for thread, words in sorted(self.threads.items()) if words]
        return self.drawn.choice(full) if full else None
