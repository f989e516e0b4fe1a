"""What holds for every kind of source: recognised, checked, taken in once, read back, and left as it was."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path

import pytest

import holdfast
from holdfast import importers
from holdfast.errors import Conflict, Corrupt, Invalid

Kind = tuple[str, Path]


def state_of(place: Path) -> dict[str, str]:
    """Every file of a place with its content and times, those beside it as well."""
    files = sorted(path for path in place.parent.rglob("*") if path.is_file())
    return {str(path): f"{hashlib.sha256(path.read_bytes()).hexdigest()} {path.stat().st_mtime_ns}" for path in files}


def feed_of(store: holdfast.Store) -> int:
    return sum(1 for _ in store.watch(timeout_s=0))


def take(store: holdfast.Store, place: Path, **ways: object) -> importers.ImportOutcome:
    with importers.read(place) as source:
        return importers.import_into(store, source, **ways)  # type: ignore[arg-type]


def test_content_says_what_it_is(source: Kind) -> None:
    kind, place = source
    assert importers.recognise(place) == kind
    assert importers.recognise(str(place)) == kind
    with importers.read(place, kind) as opened:
        assert (opened.kind, opened.place) == (kind, str(place))


def test_a_dry_run_says_all_and_writes_nothing(store: holdfast.Store, source: Kind) -> None:
    before = feed_of(store)
    told = take(store, source[1], dry_run=True)
    assert feed_of(store) == before
    done = take(store, source[1])
    assert told.dry_run
    assert (told.new, told.counts, told.here) == (done.new, done.counts, {})
    assert done.compared == sum(done.new.values()) > 0


@pytest.mark.every_engine
def test_a_second_import_changes_nothing(store: holdfast.Store, source: Kind) -> None:
    first = take(store, source[1])
    before = feed_of(store)
    second = take(store, source[1])
    assert feed_of(store) == before
    assert (second.new, second.here) == ({}, first.new)
    assert store.verify().ok


def test_the_source_is_left_as_it_was(store: holdfast.Store, source: Kind) -> None:
    before = state_of(source[1])
    take(store, source[1], dry_run=True)
    take(store, source[1])
    assert state_of(source[1]) == before


def test_another_kind_than_it_is_is_refused(source: Kind) -> None:
    kind, place = source
    for other in set(importers.KINDS) - {kind, "memory-files", "langgraph"}:
        with pytest.raises((Invalid, Corrupt)):
            importers.read(place, other)
    with pytest.raises(Invalid, match="choose one of"):
        importers.read(place, "letters")


def test_all_that_came_in_is_found_by_its_tag(store: holdfast.Store, source: Kind) -> None:
    done = take(store, source[1])
    tag = f"import:{source[0]}"
    assert done.tag == tag
    threads = store.threads(tag=tag, limit=None)
    memories = [one for owner in done.owners for one in _own(store, owner) if tag in one.tags]
    assert sum(thread.entries for thread in threads) + len(memories) == sum(done.new.values())
    assert sum(owner.new for owner in done.owners) == sum(done.new.values())
    for owner in done.owners:
        store.memory(user=owner.user, agent=owner.agent).forget(tag=tag)
        assert _own(store, owner) == []


def _own(store: holdfast.Store, owner: importers.Owner) -> list[holdfast.types.Memory]:
    return store.memory(user=owner.user, agent=owner.agent).visible.own.memories(limit=None)


def test_progress_goes_through_both_stages(store: holdfast.Store, source: Kind) -> None:
    told: list[tuple[str, int, int]] = []
    done = take(store, source[1], progress=lambda *now: told.append(now))
    total = sum(done.new.values())
    assert ("check", total, total) in told
    assert told[-1] == ("import", total, total)
    assert [now for stage, now, _ in told if stage == "import"] == sorted(
        now for stage, now, _ in told if stage == "import"
    )


@pytest.mark.every_engine
def test_what_was_erased_stays_erased(store: holdfast.Store, graph: Path, sessions: Path) -> None:
    with importers.read(graph, user="ana") as source:
        importers.import_into(store, source)
        memory = store.memory(user="ana")
        memory.forget(memory.memories()[0].id, erase=True)
        again = importers.import_into(store, source)
        assert (again.new, again.here, again.erased) == ({}, {"memories": 4}, {"memories": 1})
    with importers.read(graph, user="bo") as source:
        importers.import_into(store, source)
        store.erase(user="bo")
        assert importers.import_into(store, source).erased == {"memories": 5}
        assert store.memory(user="bo").memories() == []
    take(store, sessions)
    store.erase(thread="trip-42")
    again = take(store, sessions)
    assert (again.here, again.erased, again.new) == ({"entries": 1}, {"entries": 7}, {})


def test_what_was_forgotten_is_not_brought_back(store: holdfast.Store, graph: Path) -> None:
    take(store, graph)
    gone = store.memory().forget(subject="Acme")
    assert take(store, graph).new == {}
    assert gone[0].id not in {memory.id for memory in store.memory().memories()}


def test_what_cannot_be_stored_is_refused_with_its_place(store: holdfast.Store, tmp_path: Path) -> None:
    lines = [
        {"type": "entity", "name": "Ana", "entityType": "person", "observations": ["fine", "broken \ud800", "   ", 7]},
        {"type": "entity", "name": "x" * 600, "entityType": "long", "observations": []},
    ]
    path = tmp_path / "memory.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    with pytest.raises(Invalid, match=r"4 items cannot be stored, so nothing was imported: Ana .*surrogate"):
        take(store, path)
    assert store.memory().memories() == []
    told = take(store, path, dry_run=True, skip=True)
    done = take(store, path, skip=True)
    assert told.new == done.new == {"memories": 2}
    assert done.refused[0].why.endswith("lone surrogate cannot be stored")
    assert len(done.refused) == 4
    assert {memory.text for memory in store.memory().memories()} == {"Ana is a person", "fine"}


@pytest.mark.every_engine
def test_what_is_read_back_is_compared(store: holdfast.Store, source: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that does not keep what it was given is found out."""
    commit = store.core.engine.commit
    told: list[int] = []

    def forgetful(tenant: str, ops: object, time: int, actor: str | None = None) -> object:
        told.append(1)
        if len(told) > 1:
            return commit(tenant, ops, time)  # type: ignore[arg-type]
        with holdfast.open("ram:", embedder="none") as other:
            return other.core.engine.commit(tenant, ops, time)  # type: ignore[arg-type]

    monkeypatch.setattr(store.core.engine, "commit", forgetful)
    with pytest.raises((Corrupt, Conflict)) as caught:
        take(store, source[1])
    assert "reading back" in str(caught.value) or isinstance(caught.value, Conflict)
    monkeypatch.undo()
    take(store, source[1])
    assert store.verify().ok


@pytest.mark.every_engine
def test_an_import_that_was_interrupted_is_gone_on_with(store: holdfast.Store, source: Kind) -> None:
    """Between any two commits: what is there stays, and the rest comes with the next import."""
    whole = take(store, source[1], dry_run=True).new
    commit, left = store.core.engine.commit, [1]

    def cut_off(*given: object) -> object:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return commit(*given)  # type: ignore[arg-type]

    store.core.engine.commit = cut_off  # type: ignore[method-assign]
    try:
        take(store, source[1])
    except KeyboardInterrupt:
        pass
    finally:
        store.core.engine.commit = commit  # type: ignore[method-assign]
    rest = take(store, source[1])
    assert {what: rest.new.get(what, 0) + rest.here.get(what, 0) for what in whole} == whole
    assert take(store, source[1]).new == {}


@pytest.mark.slow
def test_ten_thousand_memories(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    many = [f"observation {number}" for number in range(10_000)]
    path.write_text(
        json.dumps({"type": "entity", "name": "Ana", "entityType": "", "observations": many}), encoding="utf-8"
    )
    told: list[int] = []
    with holdfast.open(tmp_path / "agent.db", embedder="none") as store:
        done = take(store, path, progress=lambda stage, now, _: told.append(now) if stage == "import" else None)
        assert done.new == {"memories": 10_000}
        assert told == list(range(500, 10_001, 500))
        assert take(store, path).here == {"memories": 10_000}
        assert {memory.text for memory in store.memory().memories(limit=None)} == set(many)


@pytest.mark.slow
def test_ten_thousand_entries(tmp_path: Path, sessions: Path) -> None:
    connection = sqlite3.connect(sessions)
    rows = [("long", json.dumps({"role": "user", "content": f"item {number}"})) for number in range(10_000)]
    connection.executemany("INSERT INTO agent_messages (session_id, message_data) VALUES (?, ?)", rows)
    connection.commit()
    connection.close()
    told: list[int] = []
    with holdfast.open(tmp_path / "agent.db", embedder="none") as store:
        done = take(store, sessions, progress=lambda stage, now, _: told.append(now) if stage == "import" else None)
        assert done.new == {"entries": 10_008}
        assert told[0] == 500
        assert told[-1] == 10_008
        assert take(store, sessions).here == {"entries": 10_008}
        assert [entry.content["content"] for entry in store.thread("long").log(2)] == ["item 9998", "item 9999"]


def test_nothing_and_nowhere(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    with pytest.raises(Invalid, match="is empty"):
        importers.recognise(tmp_path / "empty")
    for kind in ("mem0", "openai-agents", "langgraph"):
        with pytest.raises(Invalid):
            importers.read(tmp_path / "empty", kind)
    for kind in ("mcp-memory", "memory-files"):
        with importers.read(tmp_path / "empty", kind) as source:
            assert source.expected == 0
    with pytest.raises(Invalid, match=r"nothing to import in"):
        importers.recognise(tmp_path / "folder")
    with pytest.raises(holdfast.errors.NotFound):
        importers.recognise(tmp_path / "nowhere")
    with pytest.raises(Invalid):
        importers.recognise("a\x00b")
