"""A real streaming replica: never older than stated, never behind one's own writes, and never in the way.

Its replay is paused to make it lag, and the store's clock is moved by hand to make an answer too old. What is listed
from a paused replica within the bound is old: that shows who answered.
"""

from __future__ import annotations

import io
import logging
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.engine.contract import Query, Scope
from holdfast.engine.postgres_replica import RETRY_S, PostgresReplica
from holdfast.errors import Misconfigured
from holdfast.retrieval.documents import IndexScope
from holdfast.testing import ManualClock
from holdfast.testing.postgres import Server, Standby

pytestmark = pytest.mark.slow

LAG_S = 5.0


@pytest.fixture(scope="module")
def primary() -> Iterator[Server]:
    with Server(fsync=False) as server:
        yield server


@pytest.fixture(scope="module")
def shared_standby(primary: Server) -> Iterator[Standby]:
    with Standby(primary) as standby:
        yield standby


@pytest.fixture
def standby(shared_standby: Standby) -> Iterator[Standby]:
    yield shared_standby
    shared_standby.go_on()


@pytest.fixture
def own_standby(primary: Server) -> Iterator[Standby]:
    """One for tests that end it."""
    with Standby(primary) as standby:
        yield standby


@pytest.fixture
def url(primary: Server) -> Iterator[str]:
    made = primary.clone()
    yield made
    primary.drop(made)


@pytest.fixture
def writer(url: str, clock: ManualClock) -> Iterator[holdfast.Store]:
    """Another process, as far as the reader can tell."""
    with holdfast.open(url, clock=clock, embedder="none") as store:
        yield store


@pytest.fixture
def reader(url: str, clock: ManualClock, standby: Standby, writer: holdfast.Store) -> Iterator[holdfast.Store]:
    furnish(writer)
    standby.catch_up()
    with opened(url, standby, clock) as store:
        yield store


def opened(url: str, standby: Standby, clock: ManualClock) -> holdfast.Store:
    return holdfast.open(url, replica=standby.replica_of(url), replica_lag_s=LAG_S, clock=clock, embedder="none")


def furnish(store: holdfast.Store, number: int = 1) -> None:
    """Something more for every listing."""
    said = {"role": "user", "content": f"zebra number {number}"}
    store.thread(f"t{number}", user="ana").append(said)
    store.thread(f"u{number}", user=f"user-{number}").append(said)
    store.memory("ana").remember(f"saw zebra {number}", tags=["seen"])
    store.memory("ana").remember(f"The zebra has {number + 3} legs", subject="zebra")
    folder = store.folder(f"f{number}", user="ana")
    folder.write("a.txt", f"zebra {number}")
    folder.write("b.txt", "gone", expires=1)


LISTINGS: dict[str, Callable[[holdfast.Store], int]] = {
    "threads": lambda store: len(store.threads(user="ana")),
    "users": lambda store: len(store.users()),
    "folders": lambda store: len(store.folders(user="ana")),
    "memories": lambda store: len(store.memory("ana").memories(tag="seen")),
    "contradictions": lambda store: len(store.memory("ana").contradictions()),
    "recall": lambda store: len(store.memory("ana").recall("zebra", k=100, kind="message")),
    "recall memories": lambda store: len(store.memory("ana").recall("saw zebra", k=100, tag="seen")),
    "recall files": lambda store: len(store.memory("ana").recall("zebra", k=100, kind="file")),
}


# How old an answer may be


@pytest.mark.parametrize("listing", LISTINGS)
def test_an_answer_is_from_the_replica_and_never_older_than_stated(
    listing: str, reader: holdfast.Store, writer: holdfast.Store, standby: Standby, clock: ManualClock
) -> None:
    ask = LISTINGS[listing]
    before = ask(reader)
    clock.advance(1)
    standby.pause()
    furnish(writer, 2)
    assert ask(reader) == before  # it is allowed to, and so we know who answered
    clock.advance(LAG_S)
    now = ask(reader)
    assert now > before
    assert now == ask(writer)
    assert ask(reader) == now  # and there is no way back
    standby.go_on()
    standby.catch_up()
    clock.advance(RETRY_S + 1)
    assert ask(reader) == now
    standby.pause()
    furnish(writer, 3)
    assert ask(reader) == now  # the replica again


def test_an_export_is_of_one_moment_and_as_fresh_as_a_listing(
    reader: holdfast.Store, writer: holdfast.Store, standby: Standby, clock: ManualClock, tmp_path: Path
) -> None:
    def threads(store: holdfast.Store, name: str) -> int:
        store.export(tmp_path / name)
        with holdfast.open("ram:", embedder="none") as copy:
            copy.import_(tmp_path / name)
            return len(copy.threads(limit=None))

    assert threads(reader, "a.json") == 2
    standby.pause()
    furnish(writer, 2)
    assert threads(reader, "b.json") == 2
    stream = io.BytesIO()
    reader.export(stream, format="json")
    assert b"u2" in stream.getvalue()  # a stream cannot be begun again, so it is the primary's
    clock.advance(LAG_S + 1)
    assert threads(reader, "c.json") == 4


@pytest.mark.parametrize("listing", LISTINGS)
def test_a_store_reads_its_own_writes_at_once(listing: str, reader: holdfast.Store, standby: Standby) -> None:
    ask = LISTINGS[listing]
    before = ask(reader)
    standby.pause()
    for number in (2, 3):
        furnish(reader.acting_as("ana"), number)
        assert ask(reader) > before
        before = ask(reader)


def test_what_was_seen_once_is_not_unseen(
    reader: holdfast.Store, writer: holdfast.Store, standby: Standby, clock: ManualClock
) -> None:
    """Not even within the bound: an agent must not see its world go back."""
    assert len(reader.threads(user="ana")) == 1
    standby.pause()
    furnish(writer, 2)
    assert isinstance(reader.core.replica, PostgresReplica)
    reader.core.replica._rest("a hiccup", 1.0)
    assert len(reader.threads(user="ana")) == 2
    clock.advance(2)
    assert len(reader.threads(user="ana")) == 2


def test_tenants_are_fresh_each_by_itself(
    reader: holdfast.Store, writer: holdfast.Store, standby: Standby, clock: ManualClock
) -> None:
    assert reader.for_tenant("acme").threads() == []
    standby.pause()
    writer.for_tenant("acme").thread("t").append({"role": "user", "content": "hi"})
    assert reader.for_tenant("acme").threads() == []
    reader.for_tenant("globex").thread("t").append({"role": "user", "content": "hi"})
    assert reader.for_tenant("acme").threads() == []
    assert len(reader.for_tenant("globex").threads()) == 1
    clock.advance(LAG_S + 1)
    assert len(reader.for_tenant("acme").threads()) == 1


def test_what_is_decided_is_decided_from_the_primary(
    reader: holdfast.Store, writer: holdfast.Store, standby: Standby
) -> None:
    mine, theirs = reader.memory("ana"), writer.memory("ana")
    theirs.remember("Lisbon", key="city")
    reader.thread("t1").save({"step": 1})
    standby.catch_up()
    mine.memories()
    standby.pause()
    theirs.remember("Porto", key="city")
    new = theirs.remember("saw a lion", tags=["seen"])
    writer.thread("t1").save({"step": 2}, expect=1)
    assert [fact.text for fact in mine.facts() if fact.key == "city"] == ["Porto"]
    assert reader.thread("t1").state().value == {"step": 2}
    assert len(reader.thread("t1").log()) == len(writer.thread("t1").log())
    assert new.id in [one.id for one in mine.forget(tag="seen")]
    assert mine.end(new.id).id


# What was erased


def test_what_another_process_erased_is_gone_within_the_bound(
    reader: holdfast.Store, writer: holdfast.Store, standby: Standby, clock: ManualClock
) -> None:
    assert LISTINGS["recall"](reader) == 1
    standby.pause()
    writer.erase(user="ana")
    clock.advance(LAG_S + 1)
    assert [ask(reader) for name, ask in LISTINGS.items() if name != "users"] == [0] * 7


def test_what_this_process_erased_is_gone_at_once(reader: holdfast.Store, standby: Standby) -> None:
    assert LISTINGS["recall"](reader) == 1
    standby.pause()
    reader.core.engine.erase("default", Scope(user="user-1"), time=1)  # and nothing is committed after it yet
    assert [info.user for info in reader.threads()] == ["ana"]
    reader.erase(user="ana")
    assert [ask(reader) for name, ask in LISTINGS.items() if name != "users"] == [0] * 7


def test_an_index_read_from_a_replica_saves_nothing_that_was_erased(
    url: str, writer: holdfast.Store, standby: Standby, clock: ManualClock
) -> None:
    for number in range(3):
        said = [{"role": "user", "content": f"zebra {number} {n}"} for n in range(200)]
        writer.thread(f"long-{number}", user="ana").append(*said)
    standby.catch_up()
    with opened(url, standby, clock) as reader:
        reader.threads()
        standby.pause()
        writer.erase(user="ana")
        assert len(reader.threads(user="ana")) == 3  # the replica still has it
        reader.memory("ana").recall("zebra")
    assert writer.core.engine.scan("default", Query("index")) == []


def test_an_erasure_that_another_process_began_is_finished_from_what_is_left(
    reader: holdfast.Store, writer: holdfast.Store, standby: Standby
) -> None:
    """Cleaning an index has to see that the data is gone, whoever removed it."""
    for number in range(3):
        said = [{"role": "user", "content": f"zebra {number} {n}"} for n in range(200)]
        writer.thread(f"long-{number}", user="ana").append(*said)
    standby.catch_up()
    assert reader.memory("ana").recall("zebra 1")
    index = reader.wiring.recaller().indexes.index(IndexScope(user="ana"))
    before = index.corpus().rows
    standby.pause()
    writer.core.engine.erase("default", Scope(thread="long-1"), time=1)
    reader.wiring.purge([Scope(user="ana")])
    assert index.passages == before - 200
    assert reader.verify().ok


# A replica that fails


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "holdfast.engine.postgres_replica"]


def test_a_replica_that_is_down_at_first_is_used_when_it_is_there(
    url: str, writer: holdfast.Store, own_standby: Standby, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    furnish(writer)
    own_standby.catch_up()
    own_standby.stop()
    with opened(url, own_standby, clock) as reader:
        for _ in range(5):
            assert len(reader.threads(user="ana")) == 1
            clock.advance(1)
        own_standby.start()
        clock.advance(RETRY_S + 1)
        assert len(reader.threads(user="ana")) == 1
        own_standby.pause()
        furnish(writer, 2)
        assert len(reader.threads(user="ana")) == 1
    assert [text.partition(":")[0] for text in warnings(caplog)] == [
        "reading from the primary instead of the replica",
        f"reading from the replica {own_standby.directory}",
    ]


def test_a_replica_that_does_not_have_the_tables_yet_is_waited_for(
    primary: Server, standby: Standby, clock: ManualClock
) -> None:
    url = primary.create()
    standby.catch_up()
    standby.pause()
    with opened(url, standby, clock) as reader:
        furnish(reader)
        assert len(reader.threads(user="ana")) == 1
        standby.go_on()
        standby.catch_up()
        clock.advance(RETRY_S + 1)
        assert len(reader.threads(user="ana")) == 1
        standby.pause()
        with holdfast.open(url, clock=clock, embedder="none") as writer:
            furnish(writer, 2)
        assert len(reader.threads(user="ana")) == 1
    standby.go_on()
    primary.drop(url)


@pytest.mark.parametrize("end", ["fast", "immediate", "kill"])
def test_a_replica_that_dies_in_the_middle_of_an_answer_is_replaced(
    end: Any, url: str, writer: holdfast.Store, own_standby: Standby, clock: ManualClock, tmp_path: Path
) -> None:
    for number in range(1, 30):
        furnish(writer, number)
    own_standby.catch_up()
    with opened(url, own_standby, clock) as reader:
        assert reader.threads()
        own_standby.pause()
        furnish(writer, 30)

        def stop(what: str, done: int, total: int) -> None:
            own_standby.stop(end)

        began = time.monotonic()
        reader.export(tmp_path / "a.json", progress=stop)
        for ask in LISTINGS.values():
            assert ask(reader)
        assert time.monotonic() - began < 30
    with holdfast.open("ram:", embedder="none") as copy:
        copy.import_(tmp_path / "a.json")
        assert len(copy.threads(limit=None)) == 60


def test_a_promoted_replica_is_noticed(
    url: str, writer: holdfast.Store, own_standby: Standby, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    furnish(writer)
    own_standby.catch_up()
    with opened(url, own_standby, clock) as reader:
        assert len(reader.threads(user="ana")) == 1
        own_standby.promote()
        with holdfast.open(own_standby.replica_of(url), clock=clock, embedder="none") as other:
            for number in range(2, 5):
                furnish(other, number)
        assert len(reader.threads(user="ana")) == 1
        assert "accepts writes" in warnings(caplog)[-1]
        clock.advance(RETRY_S + 1)
        assert LISTINGS["recall"](reader) == 1
    with pytest.raises(Misconfigured, match="is not a replica: it accepts writes"):
        opened(url, own_standby, clock)


# A replica of something else


def test_what_is_no_replica_of_this_store_is_refused(url: str, primary: Server, standby: Standby) -> None:
    other = primary.clone()
    standby.catch_up()
    for replica, said in (
        (url, "is not a replica"),
        (standby.replica_of(other), "but not of"),
        (f"{standby.replica_of(url)}&schema=agents", "but not of"),
        ("agent.db", "a replica is a postgresql:// address"),
    ):
        with pytest.raises(Misconfigured, match=said):
            holdfast.open(url, replica=replica)
    with Server(fsync=False) as stranger, Standby(stranger) as theirs:
        made = stranger.clone()
        theirs.catch_up()
        with pytest.raises(Misconfigured, match="but not of"):
            holdfast.open(url, replica=theirs.replica_of(made))
    primary.drop(other)


def test_a_replica_of_a_copy_that_went_its_own_way_is_refused(
    url: str, writer: holdfast.Store, own_standby: Standby, clock: ManualClock
) -> None:
    """The same database by every number that a server has: only what was committed since tells them apart."""
    furnish(writer)
    own_standby.catch_up()
    own_standby.promote()
    with holdfast.open(own_standby.replica_of(url), clock=clock, embedder="none") as copy:
        furnish(copy, 2)
    clock.advance(1)
    furnish(writer, 2)
    with Standby(own_standby) as theirs:
        with pytest.raises(Misconfigured, match="another history"):
            opened(url, theirs, clock)
        with holdfast.open(own_standby.replica_of(url), clock=clock, embedder="none") as copy:
            copy.for_tenant("acme").thread("t").append({"role": "user", "content": "hi"})
        theirs.catch_up()
        with pytest.raises(Misconfigured, match="another history"):  # further than the primary ever was
            holdfast.open(url, tenant="acme", replica=theirs.replica_of(url))


# Under load

WRITER = """
    import sys, time
    import holdfast
    url, name, until = sys.argv[1], sys.argv[2], float(sys.argv[3])
    with holdfast.open(url, embedder="none") as store:
        thread = store.thread(name)
        while time.monotonic() < until:
            thread.append({"role": "user", "content": "x"})
            print(time.monotonic(), flush=True)
"""


def test_no_answer_is_older_than_stated_while_processes_write_and_the_replica_stutters(
    url: str, standby: Standby, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    lag_s, until = 0.4, time.monotonic() + 12.0
    command = [sys.executable, "-c", textwrap.dedent(WRITER), url]
    writers = {
        name: subprocess.Popen([*command, name, str(until)], stdout=subprocess.PIPE, text=True) for name in "abc"
    }
    standby.catch_up()
    answers: list[tuple[float, dict[str, int]]] = []
    with holdfast.open(url, replica=standby.replica_of(url), replica_lag_s=lag_s, embedder="none") as reader:
        paused, turn = False, time.monotonic()
        while (began := time.monotonic()) < until:
            answers.append((began, {info.id: info.entries for info in reader.threads(limit=None)}))
            if began > turn:
                (standby.go_on if paused else standby.pause)()
                paused, turn = not paused, began + 1.0
            if len(answers) % 20 == 0:
                own = reader.thread("own").append({"role": "user", "content": "mine"})
                assert {info.id: info.entries for info in reader.threads()}["own"] == own.number
    acknowledged = {name: [float(line) for line in each.communicate()[0].split()] for name, each in writers.items()}
    old = 0
    for began, found in answers:
        for name, times in acknowledged.items():
            entries = found.get(name, 0)
            assert entries >= sum(moment < began - lag_s for moment in times)
            old += entries < sum(moment < began for moment in times)
    assert all(before[1].get("a", 0) <= after[1].get("a", 0) for before, after in pairwise(answers))
    assert old, "the replica was never asked"
    assert any("behind" in text for text in warnings(caplog)), "the replica was never too far behind"
    assert any("again" in text for text in warnings(caplog)), "the replica was never used again"
