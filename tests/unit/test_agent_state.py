"""The ready-made state: pleasant to make, exact to store, sensible about freshness."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from holdfast.clock import to_micros
from holdfast.errors import Invalid, StateInvalid
from holdfast.ledger import freshness
from holdfast.ledger import schema as schemas
from holdfast.ledger.agent_state import AgentState, Fact, Task
from holdfast.ledger.schema import DEFAULT, Registry, Where

HERE = Where("trip-42", 1)
MORNING = datetime(2026, 3, 1, 9, tzinfo=UTC)


def full() -> AgentState:
    return AgentState(
        user_preferences={"seat": "aisle", "nested": {"deep": [1, None, True]}},
        confirmed_facts={"home.airport": Fact("LIS", MORNING, "ana")},
        active_task=Task("book a flight", last_action="asked for dates"),
        unresolved_issues=["visa"],
    )


def report(state: AgentState, saved: datetime, now: datetime) -> freshness.FreshnessReport:
    schema = schemas.find(DEFAULT, state)
    plain = schemas.prepare(schema, state, HERE)
    marks = freshness.carry(schema, None, {}, plain, now=to_micros(saved), by="agent")
    return freshness.report(schema, plain, marks, to_micros(now))


def test_an_empty_state_is_a_good_start() -> None:
    state = AgentState()
    assert (state.user_preferences, state.confirmed_facts, state.active_task, state.unresolved_issues) == (
        {},
        {},
        None,
        [],
    )
    assert AgentState().user_preferences is not state.user_preferences


@pytest.mark.parametrize("state", [AgentState(), full()])
def test_it_comes_back_as_it_was(state: AgentState) -> None:
    schema = schemas.find(DEFAULT, AgentState)
    assert (schema.name, schema.version) == ("agent", 1)
    plain = msgspec.json.decode(msgspec.json.encode(schemas.prepare(schema, state, HERE)))
    assert schemas.revive(schema, plain, HERE) == state


def test_a_fact_needs_a_moment_with_a_time_zone() -> None:
    naive = AgentState().with_fact("home", "LIS", at=datetime(2026, 3, 1))
    with pytest.raises(StateInvalid) as caught:
        schemas.prepare(schemas.find(DEFAULT, AgentState), naive, HERE)
    assert caught.value.field == "confirmed_facts.home.confirmed_at"


def test_what_would_come_back_different_is_refused() -> None:
    state = AgentState(user_preferences={"since": MORNING})
    with pytest.raises(StateInvalid, match="datetime would be read back as str") as caught:
        schemas.prepare(schemas.find(DEFAULT, state), state, HERE)
    assert caught.value.field == "user_preferences.since"


def test_with_fact_leaves_the_state_as_it_was() -> None:
    before = full()
    after = before.with_fact("seat", "aisle", at=MORNING, by="ana")
    assert before == full()
    assert after.fact("seat") == Fact("aisle", MORNING, "ana")
    assert after.active_task is before.active_task


def test_facts_go_stale_by_their_own_date_and_must_then_be_verified() -> None:
    saved = MORNING + timedelta(days=20)  # saving does not confirm a fact that says when it was confirmed
    assert report(full(), saved, MORNING + timedelta(days=20)) == freshness.FreshnessReport()
    late = report(full(), saved, MORNING + timedelta(days=20, hours=1) + timedelta(days=10))
    assert late.must_verify == ('confirmed_facts["home.airport"]',)
    fact = next(item for item in late.stale if item.critical)
    assert (fact.confirmed_at, fact.by, fact.fresh_for_s) == (MORNING, "ana", 30 * 86_400)


def test_a_task_that_nobody_touched_for_a_day_is_reported_but_stops_nothing() -> None:
    found = report(AgentState(active_task=Task("book")), MORNING, MORNING + timedelta(hours=25))
    assert [(item.path, item.critical) for item in found.stale] == [("active_task.status", False)]
    assert found.must_verify == ()
    assert report(AgentState(), MORNING, MORNING + timedelta(days=400)) == freshness.FreshnessReport()


def test_a_subclass_adds_fields_and_chooses_its_own_limits() -> None:
    registry = Registry()

    @registry.schema("travel", version=1, fresh={"confirmed_facts.*": "1h"})
    class Travel(AgentState):
        budget: int = 0

    state = Travel(budget=100).with_fact("seat", "aisle", at=MORNING)
    assert isinstance(state, Travel)
    schema = schemas.find(registry, state)
    plain: dict[str, Any] = schemas.prepare(schema, state, HERE)
    assert schemas.revive(schema, plain, HERE) == state


def test_a_document_with_a_list_of_facts_loads_as_people_write_it() -> None:
    document = {
        "user_preferences": {"communication_style": "concise"},
        "confirmed_facts": [
            {"fact": "works on a RAG pipeline", "confirmed_at": "2026-02-28T14:22:00Z", "source": "chat"},
            {"fact": "prefers pgvector", "confirmed_at": "2026-01-20T09:15:00+05:30"},
            {"fact": "no date"},
        ],
        "active_task": {"description": "benchmark search", "status": "in_progress", "last_action": "ran it"},
    }
    schema = schemas.find(DEFAULT, AgentState)
    state = schemas.revive(schema, document, HERE)
    plain = schemas.prepare(schema, state, HERE)
    assert plain["confirmed_facts"] == document["confirmed_facts"]
    with pytest.raises(Invalid, match="list"):
        state.fact("prefers pgvector")
    marks = freshness.carry(schema, None, {}, plain, now=to_micros(MORNING), by="agent")
    assert freshness.report(schema, plain, marks, to_micros(MORNING)).must_verify == ("confirmed_facts[1]",)
    with pytest.raises(Invalid, match="append"):
        state.with_fact("seat", "aisle", at=MORNING)
