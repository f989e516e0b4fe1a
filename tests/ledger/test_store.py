"""The store as a whole: following it, erasing from it, proving it sound, keeping tenants apart, and closing it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import errors
from holdfast.testing import ManualClock
from holdfast.wiring import Wiring

pytestmark = pytest.mark.every_engine  # watching, erasing, proving and closing are where engines differ

PATIENCE_S = 30.0  # against hanging for ever; no test waits that long


def said(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def texts(thread: holdfast.Thread) -> list[str]:
    return [entry.content["content"] for entry in thread.log()]


def aside(work: Callable[[], Any]) -> Future[Any]:
    """Do something that waits in a thread of its own."""
    outcome: Future[Any] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return outcome


# Watching


def test_commits_are_seen_in_order_with_what_they_changed(store: holdfast.Store) -> None:
    thread = store.thread("t")
    thread.append(said("a"))
    thread.append(said("b"), said("c"))
    thread.save({"n": 1})
    commits = list(store.watch(timeout_s=0))
    assert [commit.position for commit in commits] == [1, 2, 3]
    moved = [(c.action, c.kind, c.id, c.version) for commit in commits for c in commit.changes if c.action == "append"]
    assert moved[:2] == [("append", "thread", "t", 1), ("append", "thread", "t", 3)]
    assert ("append", "state", "t", 1) in moved


def test_watching_goes_on_from_a_position(store: holdfast.Store) -> None:
    for text in "abc":
        store.thread("t").append(said(text))
    commits = list(store.watch(timeout_s=0))
    assert list(store.watch(after=1, timeout_s=0)) == commits[1:]
    assert list(store.watch(after=3, timeout_s=0)) == []
    assert list(store.watch(after=99, timeout_s=0)) == []


def test_watching_crosses_pages(store: holdfast.Store) -> None:
    for number in range(205):
        store.thread("t").append(said(str(number)))
    assert [commit.position for commit in store.watch(timeout_s=0)] == list(range(1, 206))


def test_a_watcher_waits_for_what_comes(store: holdfast.Store) -> None:
    waiting = iter(store.watch(timeout_s=PATIENCE_S))
    first = aside(lambda: next(waiting))
    store.thread("t").append(said("a"))
    assert first.result(PATIENCE_S).position == 1
    second = aside(lambda: next(waiting))
    store.thread("t").append(said("b"))
    assert second.result(PATIENCE_S).position == 2


def test_a_watcher_is_told_when_the_store_is_closed(place: Any) -> None:
    store = place.open(own=True)
    outcome = aside(lambda: list(store.watch()))
    store.close()
    with pytest.raises(errors.Misconfigured, match="closed"):
        outcome.result(PATIENCE_S)


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("after", [-1, 1.0, "1", None, 2**63])
def test_a_position_that_is_no_count_is_invalid(store: holdfast.Store, after: Any) -> None:
    with pytest.raises(errors.Invalid, match="after must be a whole number"):
        next(iter(store.watch(after=after, timeout_s=0)))


# Erasing


@pytest.fixture
def people(store: holdfast.Store) -> holdfast.Store:
    """Two threads of Ana's, with states and checkpoints, and one of Ben's."""
    for id, user, agent in (("a1", "ana", "travel"), ("a2", "ana", "food"), ("b1", "ben", "travel")):
        thread = store.thread(id, user=user, agent=agent, tags=["open"])
        thread.append(said(id), key="k")
        thread.save({"id": id})
        thread.checkpoint("here")
    return store


@pytest.mark.parametrize(
    ("scope", "left"),
    [
        ({"user": "ana"}, ["b1"]),
        ({"agent": "travel"}, ["a2"]),
        ({"thread": "a1"}, ["a2", "b1"]),
        ({"user": "ana", "agent": "travel"}, ["a2", "b1"]),
        ({"user": "nobody"}, ["a1", "a2", "b1"]),
    ],
    ids=str,
)
def test_erasing_takes_everything_in_scope_and_nothing_else(
    people: holdfast.Store, scope: dict[str, str], left: list[str]
) -> None:
    assert people.erase(**scope) == 3 * (3 - len(left))
    assert sorted(info.id for info in people.threads()) == left
    for id in ("a1", "a2", "b1"):
        thread = people.thread(id)
        there = id in left
        assert (thread.exists(), texts(thread), bool(thread.state())) == (there, [id] if there else [], there)
        assert len(thread.checkpoints()) == there
    assert people.verify().ok


def test_erasing_needs_to_be_told_what(people: holdfast.Store) -> None:
    with pytest.raises(errors.Invalid, match="say what to erase"):
        people.erase()
    assert len(people.threads()) == 3


def _turn(thread: holdfast.Thread) -> None:
    with thread.turn() as turn:
        turn.append(said("late"))
        turn.save({"late": True})


LATE: dict[str, Callable[[holdfast.Thread], Any]] = {
    "append": lambda thread: thread.append(said("late")),
    "keyed append": lambda thread: thread.append(said("a1"), key="k"),
    "save": lambda thread: thread.save({"late": True}),
    "save anyway": lambda thread: thread.save({"late": True}, expect="any"),
    "turn": _turn,
    "patch": lambda thread: thread.patch("id", "late"),
    "tag": lambda thread: thread.tag("late"),
    "checkpoint": lambda thread: thread.checkpoint("late"),
    "rewind": lambda thread: thread.rewind(0),
    "fork": lambda thread: thread.fork("copy"),
    "fork into it": lambda thread: holdfast.Store(Wiring(thread.logbook.core)).thread("b1").fork("a1"),
}


def test_a_late_writer_does_not_bring_back_what_was_erased(people: holdfast.Store) -> None:
    """Whatever it tries. What would make the thread again is told that it was erased; the rest finds no thread."""
    late = people.thread("a1", user="ana")
    late.state()
    people.erase(user="ana")
    refused: dict[str, type[BaseException]] = {}
    for write, call in LATE.items():
        with pytest.raises(errors.NotFound) as caught:
            call(late)
        refused[write] = type(caught.value)
    made_again = {"append", "keyed append", "save", "save anyway", "turn", "fork into it"}
    assert refused == {write: errors.Erased if write in made_again else errors.NotFound for write in LATE}
    assert [info.id for info in people.threads()] == ["b1"]


def test_erased_stays_erased_over_a_restart(people: holdfast.Store, reopen: Callable[[], holdfast.Store]) -> None:
    people.erase(thread="a1")
    store = reopen()
    with pytest.raises(errors.Erased):
        store.thread("a1").append(said("late"))
    assert not store.thread("a1").exists()


def test_an_id_can_be_freed_instead(people: holdfast.Store) -> None:
    people.erase(user="ana", forever=False)
    thread = people.thread("a1", user="cem")
    assert thread.append(said("new"), key="k").number == 1
    assert thread.save({"new": True}) == 1
    thread.checkpoint("here")
    assert [info.id for info in people.threads(user="cem")] == ["a1"]
    assert people.verify().ok


def test_erasing_a_user_leaves_no_state_that_someone_else_saved_for_them(store: holdfast.Store) -> None:
    """The state of a thread belongs to the owner of the thread, also when a handle that names nobody saved it first."""
    for id, write in {"a": lambda thread: thread.save({"s": 1}), "b": _turn}.items():
        store.thread(id, user="ana", agent="travel").append(said("hi"))
        write(store.thread(id))
        store.thread(id).checkpoint("here")
        store.thread(id).state()
        store.thread(id).patch("more", True)
    store.erase(user="ana")
    assert [bool(store.thread(id).state()) for id in ("a", "b")] == [False, False]
    assert [store.core.engine.get(store.tenant, "state", id) for id in ("a", "b")] == [None, None]


class Slow:
    """An engine on which something happens between reading where the state is and reading the state."""

    def __init__(self, engine: Any, happening: Callable[[], Any]) -> None:
        self._engine, self._happening = engine, happening

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def read(self, *args: Any, **options: Any) -> Any:
        self._happening()
        return self._engine.read(*args, **options)


@pytest.mark.parametrize("forever", [True, False])
def test_a_state_erased_while_it_is_read_is_gone_and_not_damaged(people: holdfast.Store, forever: bool) -> None:
    def erase() -> None:
        people.erase(thread="a1", forever=forever)
        if not forever:
            people.thread("a1").save({"new": True}, expect="any")

    engine: Any = Slow(people.core.engine, erase)
    with pytest.raises(errors.NotFound, match="was erased while"):
        holdfast.Store(Wiring(people.core._replace(engine=engine))).thread("a1").state()


def test_a_first_save_minds_a_thread_that_someone_else_makes_meanwhile(store: holdfast.Store) -> None:
    """Otherwise the state would belong to nobody, and erasing its owner would leave it behind."""

    class Late(Slow):
        def commit(self, *args: Any) -> Any:
            if not store.thread("t").exists():
                self._happening()
            return self._engine.commit(*args)

    engine: Any = Late(store.core.engine, lambda: store.thread("t", user="ana").append(said("mine")))
    thread = holdfast.Store(Wiring(store.core._replace(engine=engine))).thread("t")
    with pytest.raises(errors.Conflict):
        thread.save({"n": 1})
    assert thread.save({"n": 1}) == 1
    store.erase(user="ana")
    assert store.core.engine.get(store.tenant, "state", "t") is None


def test_the_feed_tells_of_an_erasure_without_telling_whose(people: holdfast.Store) -> None:
    before = list(people.watch(timeout_s=0))[-1].position
    people.erase(user="ana")
    (commit,) = people.watch(after=before, timeout_s=0)
    assert [(change.action, change.kind, change.id, change.version) for change in commit.changes] == [
        ("erase", "checkpoint", "", 2),
        ("erase", "state", "", 2),
        ("erase", "thread", "", 2),
    ]


# Proving


def test_a_sound_store_is_said_to_be_sound(store: holdfast.Store) -> None:
    """All tenants count, so what others have here is taken off."""
    before = store.verify()
    store.thread("t").append(said("a"), said("b"))
    store.thread("t").fork("copy").append(said("c"))
    report = store.verify()
    assert (report.ok, report.problems) == (True, ())
    assert (report.threads - before.threads, report.entries - before.entries) == (2, 5)


def test_an_entry_that_was_changed_is_named(people: holdfast.Store, damage: Callable[[str, int], None]) -> None:
    people.thread("a1").append(said("second"), said("third"))
    damage("a1", 2)
    report = people.verify()
    assert not report.ok
    assert [(each.kind, each.id, each.position) for each in report.problems] == [("thread", "a1", 2)]
    assert "entry 2 was changed after it was written" in report.problems[0].what


def test_an_entry_changed_under_a_fork_is_named_once(
    people: holdfast.Store, damage: Callable[[str, int], None]
) -> None:
    people.thread("a1").append(said("second"))
    people.thread("a1").fork("copy").append(said("third"))
    damage("a1", 1)
    assert [each.position for each in people.verify().problems] == [1]


# Tenants


def test_tenants_see_nothing_of_each_other(place: Any) -> None:
    acme, globex = place.open("acme"), place.open("globex")
    for store, text in ((acme, "ours"), (globex, "theirs")):
        thread = store.thread("t", user="ana", tags=["x"])
        assert thread.append(said(text), key="k").number == 1
        assert thread.save({"whose": text}) == 1
        thread.checkpoint("here")
    assert (texts(acme.thread("t")), texts(globex.thread("t"))) == (["ours"], ["theirs"])
    assert acme.thread("t").state().value == {"whose": "ours"}
    assert len(acme.threads(user="ana", tag="x")) == 1
    assert len(list(acme.watch(timeout_s=0))) == 3
    assert acme.erase(user="ana") == 3
    assert (texts(globex.thread("t")), globex.thread("t").state().value) == (["theirs"], {"whose": "theirs"})
    assert globex.thread("t").append(said("more")).number == 2
    assert len(globex.thread("t").checkpoints()) == 1
    with pytest.raises(errors.Erased):
        acme.thread("t").append(said("late"))


def test_a_store_says_whose_it_is(place: Any) -> None:
    assert place.open("acme").tenant.startswith("acme")


@pytest.mark.usefixtures("any_engine")
@pytest.mark.parametrize("tenant", ["", "a\x00", "x" * 513, 5, "\ud800"])
def test_a_tenant_that_is_no_name_is_refused(tenant: Any) -> None:
    with pytest.raises(errors.Invalid, match="tenant"):
        holdfast.open("ram:", tenant=tenant)


# Closing


def test_a_closed_store_says_so(place: Any) -> None:
    store = place.open(own=True)
    thread = store.thread("t")
    thread.append(said("a"))
    thread.save({"a": 1})
    store.close()
    store.close()
    for use in (
        lambda: thread.append(said("b")),
        thread.log,
        thread.info,
        thread.state,
        lambda: thread.save({"a": 2}),
        lambda: thread.patch("a", 2),
        lambda: thread.checkpoint("here"),
        lambda: thread.fork("copy"),
        lambda: _turn(thread),
        store.threads,
        store.verify,
        lambda: store.erase(thread="t"),
        lambda: list(store.watch(timeout_s=0)),
    ):
        with pytest.raises(errors.Misconfigured, match="closed"):
            use()


def test_a_with_block_closes_the_store_also_when_it_fails(place: Any) -> None:
    first = place.open(own=True)
    with pytest.raises(RuntimeError), first:
        raise RuntimeError
    with pytest.raises(errors.Misconfigured):
        first.threads()


def test_what_was_written_is_there_after_reopening(
    people: holdfast.Store, reopen: Callable[[], holdfast.Store], clock: ManualClock
) -> None:
    before = people.threads(), [people.thread(id).log() for id in ("a1", "a2", "b1")]
    clock.advance(timedelta(days=180).total_seconds())
    store = reopen()
    assert (store.threads(), [store.thread(id).log() for id in ("a1", "a2", "b1")]) == before
    assert (store.thread("a1").state().value, len(store.thread("a1").checkpoints())) == ({"id": "a1"}, 1)
    assert store.verify().ok


def test_two_stores_on_one_place_see_each_others_work(place: Any) -> None:
    one = place.open()
    other = place.open(own=place.engine != "ram")
    one.thread("t").append(said("a"))
    assert other.thread("t").append(said("b")).number == 2
    other.thread("t").save({"n": 1})
    assert texts(one.thread("t")) == ["a", "b"]
    assert one.thread("t").state().value == {"n": 1}
    with pytest.raises(errors.Conflict):
        one.thread("t").save({"n": 2})


# Opening


def test_a_path_object_is_a_file_whatever_it_is_called(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with holdfast.open(Path("ram:")) as store:
        store.thread("t").append(said("kept"))
    assert (folder / "ram:").is_file()
    with holdfast.open("./ram:") as store:
        assert texts(store.thread("t")) == ["kept"]


@pytest.mark.parametrize("url", [5, b"agent.db", ["agent.db"]])
def test_what_is_neither_text_nor_a_path_names_no_database(folder: Path, monkeypatch: Any, url: Any) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(errors.Misconfigured, match="is a string or a path"):
        holdfast.open(url)
    assert list(folder.iterdir()) == []
