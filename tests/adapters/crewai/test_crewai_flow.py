"""CrewAI's flows on Holdfast: real flows, ended and begun again in other processes."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from crewai.flow.async_feedback.types import HumanFeedbackPending, PendingFeedbackContext
from crewai.flow.flow import Flow, listen, start
from crewai.flow.human_feedback import human_feedback
from crewai.flow.persistence import persist
from crewai.flow.persistence.base import FlowPersistence
from pydantic import BaseModel

import holdfast
from holdfast import extension
from holdfast.adapters.crewai import HoldfastFlowPersistence, install
from holdfast.errors import Invalid, Misconfigured


class Trip(BaseModel):
    id: str = "trip-1"
    city: str = ""
    nights: int = 0


def asked(flow: str = "trip-1", **more: Any) -> PendingFeedbackContext:
    return PendingFeedbackContext(flow, "app.Review", "draft", {"title": "x"}, "Is this good?", **more)


@pytest.fixture
def kept(store: holdfast.Store) -> HoldfastFlowPersistence:
    install(store, user="flows")  # every flow makes itself a memory, and LanceDB is not here
    return HoldfastFlowPersistence(store, user="ana")


# Real flows


def test_a_flow_leaves_its_state_method_by_method(store: holdfast.Store, kept: HoldfastFlowPersistence) -> None:
    @persist(kept)
    class Booking(Flow[Trip]):
        @start()
        def choose(self) -> None:
            self.state.city = "Lisbon"

        @listen(choose)
        def book(self) -> str:
            self.state.nights = 3
            return "booked"

    assert Booking(suppress_flow_events=True).kickoff(inputs={"id": "trip-1"}) == "booked"
    thread = store.thread("trip-1", user="ana")
    assert thread.state(dict).value == {"id": "trip-1", "city": "Lisbon", "nights": 3}
    assert [revision.by for revision in thread.revisions()] == ["choose", "book"]
    assert thread.state(dict, revision=1).value["nights"] == 0
    assert [(entry.kind, entry.content["method"]) for entry in thread.log()] == [("event", "choose"), ("event", "book")]


_COUNTING = textwrap.dedent("""
    import sys
    from crewai.flow.flow import Flow, listen, start
    from crewai.flow.persistence import persist
    from holdfast.adapters.crewai import install

    with install(sys.argv[1], user="ana"):
        @persist()
        class Counting(Flow):
            @start()
            def count(self):
                self.state["runs"] = self.state.get("runs", 0) + 1

            @listen(count)
            def tell(self):
                if len(sys.argv) > 2:
                    import os
                    os._exit(9)  # the process dies after the first method was kept
                self.state["told"] = self.state["runs"]

        flow = Counting(suppress_flow_events=True)
        flow.kickoff(inputs={"id": "counter"})
        print(flow.state["runs"], flow.state["told"])
""")


@pytest.mark.every_engine
def test_a_flow_goes_on_in_another_process(address: str, tmp_path: Path) -> None:
    def run(*more: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-c", _COUNTING, address, *more],
            capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""

    assert run() == "1 1"
    run("die", code=9)
    assert run() == "3 3"  # what the one that died had kept was there
    told = subprocess.run(
        [sys.executable, "-m", "holdfast", "--db", address, "state", "counter"],
        capture_output=True, text=True, timeout=60, check=True, env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    assert "runs" in told.stdout
    assert "3" in told.stdout


class Slack:
    """Asks a person and does not wait."""

    def request_feedback(self, context: PendingFeedbackContext, flow: Any) -> str:
        raise HumanFeedbackPending(context=context, callback_info={"ticket": 7})


def reviewing(persistence: FlowPersistence) -> type[Flow[Any]]:
    @persist(persistence)
    class Review(Flow[Any]):
        @start()
        @human_feedback(message="Is this good?", provider=Slack())
        def draft(self) -> str:
            self.state["draft"] = "Dear Ana"
            return "Dear Ana"

        @listen(draft)
        def send(self, result: Any) -> str:
            self.state["sent"] = result.feedback
            return f"sent: {result.feedback}"

    return Review


def test_a_flow_waits_for_a_person_and_goes_on(store: holdfast.Store, kept: HoldfastFlowPersistence) -> None:
    pending = reviewing(kept)(suppress_flow_events=True).kickoff(inputs={"id": "letter"})
    assert isinstance(pending, HumanFeedbackPending)

    second = HoldfastFlowPersistence(store, user="ana")  # as another process has it
    found = second.load_pending_feedback("letter")
    assert found is not None
    assert found[0]["draft"] == "Dear Ana"
    assert found[1].to_dict() == pending.context.to_dict()
    flow = reviewing(second).from_pending("letter", second, suppress_flow_events=True)
    assert flow.resume("very good") == "sent: very good"

    assert kept.load_pending_feedback("letter") is None
    with pytest.raises(ValueError, match="No pending feedback"):
        reviewing(second).from_pending("letter", second)
    state = second.load_state("letter")
    assert state is not None
    assert state["sent"] == "very good"
    names = [entry.content["name"] for entry in store.thread("letter").log()]
    assert names.index("holdfast.crewai.feedback-asked") < names.index("holdfast.crewai.feedback-given")
    assert [hit.text for hit in store.memory().recall("flow feedback letter", 50)] == [], "nobody said that"


def test_installed_it_is_what_a_flow_uses(store: holdfast.Store) -> None:
    install(store, user="ana")

    @persist()
    class Once(Flow[Any]):
        @start()
        def go(self) -> None:
            self.state["done"] = True

    Once(suppress_flow_events=True).kickoff(inputs={"id": "once"})
    assert store.thread("once", user="ana").state(dict).value == {"id": "once", "done": True}


# The persistence by itself


@pytest.mark.every_engine
@pytest.mark.parametrize(
    "state",
    [
        {"id": "trip-1"},
        {"id": "trip-1", "deep": {"list": [1, 2.5, None, True, {"x": []}]}, "ünï": "日本 🧭"},
        {"id": "trip-1", "\x00": "\x00"},
        {},
    ],
)
def test_a_state_comes_back_as_it_was(kept: HoldfastFlowPersistence, state: dict[str, Any]) -> None:
    before = copy.deepcopy(state)
    kept.save_state("trip-1", "begin", state)
    assert kept.load_state("trip-1") == state == before


def test_the_newest_state_counts(kept: HoldfastFlowPersistence) -> None:
    assert kept.load_state("trip-1") is None
    for nights in range(3):
        kept.save_state("trip-1", "begin", Trip(nights=nights))
    assert kept.load_state("trip-1") == {"id": "trip-1", "city": "", "nights": 2}
    assert kept.load_state("trip-2") is None


def test_what_json_has_another_word_for_is_translated(kept: HoldfastFlowPersistence) -> None:
    """As CrewAI's own persistence does it."""
    kept.save_state("f", "m", {"when": datetime(2026, 5, 1), "trip": Trip(city="Oslo"), "pair": (1, 2)})
    assert kept.load_state("f") == {
        "when": "2026-05-01T00:00:00",
        "trip": {"id": "trip-1", "city": "Oslo", "nights": 0},
        "pair": [1, 2],
    }


@pytest.mark.parametrize("state", [{"x": object()}, {"x": float("nan")}, {"x": 2**70}, {"x": "\ud800"}, ["x"], None])
def test_what_cannot_be_stored_is_refused(kept: HoldfastFlowPersistence, state: Any) -> None:
    with pytest.raises(Invalid):
        kept.save_state("f", "m", state)
    assert kept.load_state("f") is None


def test_methods_that_end_together_are_all_kept(store: holdfast.Store, kept: HoldfastFlowPersistence) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: kept.save_state("f", f"m{number}", {"n": number}), range(24)))
    thread = store.thread("f")
    assert {revision.by for revision in thread.revisions()} == {f"m{number}" for number in range(24)}
    assert len(thread.log()) == 24
    assert thread.state(dict).value == {"n": int(thread.log(last=1)[0].content["method"][1:])}


def test_the_state_of_a_question_is_that_of_its_moment(kept: HoldfastFlowPersistence) -> None:
    kept.save_pending_feedback("trip-1", asked(), {"id": "trip-1", "at": "pause"})
    kept.save_state("trip-1", "later", {"id": "trip-1", "at": "later"})
    found = kept.load_pending_feedback("trip-1")
    assert found is not None
    assert found[0]["at"] == "pause"
    assert kept.load_state("trip-1") == {"id": "trip-1", "at": "later"}


def test_a_question_that_is_asked_again_is_open_again(kept: HoldfastFlowPersistence) -> None:
    assert kept.load_pending_feedback("trip-1") is None
    kept.clear_pending_feedback("trip-1")
    for turn in range(2):
        kept.save_pending_feedback("trip-1", asked(metadata={"turn": turn}), Trip())
        found = kept.load_pending_feedback("trip-1")
        assert found is not None
        assert found[1].metadata == {"turn": turn}
        kept.clear_pending_feedback("trip-1")
        kept.clear_pending_feedback("trip-1")
        assert kept.load_pending_feedback("trip-1") is None


@pytest.mark.every_engine
def test_a_question_comes_back_as_it_was(kept: HoldfastFlowPersistence) -> None:
    context = asked(
        emit=["yes", "no"], default_outcome="no", metadata={"a": [1]}, llm={"model": "m"}, execution_uuid="u",
        trace_context=(2**127 + 1, 2**63 + 1),
    )  # fmt: skip
    kept.save_pending_feedback("trip-1", context, Trip())
    found = kept.load_pending_feedback("trip-1")
    assert found is not None
    assert found[1] == context


def test_a_question_that_cannot_be_stored_is_refused(kept: HoldfastFlowPersistence) -> None:
    for wrong in (float("nan"), "\ud800"):
        with pytest.raises(Invalid):
            kept.save_pending_feedback("trip-1", asked(metadata={"x": wrong}), Trip())
    assert kept.load_pending_feedback("trip-1") is None
    assert kept.load_state("trip-1") is None


def test_a_flow_belongs_to_its_user(store: holdfast.Store, kept: HoldfastFlowPersistence) -> None:
    kept.save_state("f", "m", {"x": 1})
    with pytest.raises(Invalid, match="belongs to user"):
        HoldfastFlowPersistence(store, user="ben").load_state("f")
    store.erase(user="ana")
    assert kept.load_state("f") is None


def test_it_is_made_again_from_its_fields(tmp_path: Path, store: holdfast.Store) -> None:
    first = HoldfastFlowPersistence(tmp_path / "flows.db", user="ana")
    first.save_state("f", "m", {"x": 1})
    first.close()
    again = HoldfastFlowPersistence.model_validate(first.model_dump(mode="json"))
    assert again.load_state("f") == {"x": 1}
    again.close()
    with pytest.raises(Misconfigured, match="address"):
        HoldfastFlowPersistence.model_validate(HoldfastFlowPersistence(store).model_dump())
    assert copy.deepcopy(first) is first


def test_its_fields_hold_no_password(store: holdfast.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(extension, "open_store", lambda address: opened.append(address) or store)
    monkeypatch.delenv("HOLDFAST_DB", raising=False)
    whole = "postgresql://ana:hush@db:5432/agents"
    for first in (HoldfastFlowPersistence(whole), HoldfastFlowPersistence(address=whole)):
        assert "hush" not in f"{first.model_dump_json()} {first!r}"
    HoldfastFlowPersistence.model_validate(first.model_dump(mode="json"))
    monkeypatch.setenv("HOLDFAST_DB", whole)
    HoldfastFlowPersistence.model_validate(first.model_dump(mode="json"))
    assert opened == [whole, whole, "postgresql://ana@db:5432/agents", whole]


def test_a_store_that_was_given_stays_open_whatever_its_address(tmp_path: Path, store: holdfast.Store) -> None:
    kept = HoldfastFlowPersistence(store, address=str(tmp_path / "flows.db"))
    kept.save_state("f", "m", {"x": 1})
    kept.close()
    assert store.thread("f").state(dict).value == {"x": 1}
    assert not (tmp_path / "flows.db").exists()


# The example and the page


def test_the_example_remembers(example: Callable[..., str]) -> None:
    first = example("crewai.py")
    second = example("crewai.py")
    assert "nothing yet" in first
    assert "Ana sits on the aisle" in second
    assert "visit 1" in first
    assert "visit 2" in second


def test_the_page_runs(page: Callable[[str], None]) -> None:
    page("crewai")
