"""Decisions with their reasons: read from what people say, found by "why", superseded by the next on the subject."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import holdfast
from holdfast.errors import Invalid
from holdfast.memory.rules import extract
from holdfast.testing import ManualClock
from holdfast.testing.models import Scripted

SAID = [
    ("We chose Terraform because of the review step.", "decision:terraform", "the review step"),
    ("We decided to use Postgres for the queue because Redis lost messages.", "decision:queue", "Redis lost messages"),
    ("Let's go with pgvector over Pinecone since it is one database less.", "decision:pgvector", "one database less"),
    ("Because of the audit, we chose Vault for secrets.", "decision:secrets", "the audit"),
    ("Decision: use small branches, so that reviews stay small.", "decision:small branches", "reviews stay small"),
    ("We agreed on weekly releases instead of monthly ones due to demand.", "decision:weekly releases", "demand"),
    ("For the cache we picked Valkey because of its licence", "decision:cache", "its licence"),
    ("After a long talk we settled on Kafka as our event bus because of replay.", "decision:event bus", "replay"),
    ("We dropped Terraform in favour of Pulumi because of types.", "decision:pulumi", "types"),
    ("We replaced Jenkins with Buildkite because of speed", "decision:buildkite", "speed"),
    ("We chose not to use Heroku because of the price", None, "the price"),
    ("We switched from Heroku to Fly", "decision:fly", None),
    ("we're going with Fastly for the CDN", "decision:cdn", None),
    ("We've agreed on a budget of 5,000 euros", "decision:budget", None),
    ("I chose the blue one", None, None),
    ("I've decided against the move", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "key", "reason"), SAID, ids=[text for text, _, _ in SAID])
def test_a_decision_is_read_with_its_reason_and_its_subject(text: str, key: str | None, reason: str | None) -> None:
    (found,) = [
        one for one in extract(text, time=datetime(2026, 5, 1, tzinfo=UTC), subject="ana") if one.rule == "decision"
    ]
    assert (found.key, found.type) == (key, "decision")
    assert (reason is None) == ("reason" not in found.metadata)
    assert reason is None or (reason in found.metadata["reason"] and reason in found.text)


@pytest.mark.parametrize(
    "text",
    [
        "Should we choose Terraform because of the review step?",
        "They chose Terraform because of the review step.",
        "If we chose Terraform it would be because of the review step.",
        "Maybe we'll use Kafka because of replay.",
        "I use Python because it is easy.",
        "I dropped my phone for the third time.",
        "We dropped the kids at school for the day.",
        "I abandoned the car for a while.",
        "I'm going with my mother to the doctor.",
        "We picked a fight because we were bored.",
        "I chose poorly because I was tired.",
        "We switched seats because of the sun.",
        "I selected all the text because I wanted to copy it.",
    ],
)
def test_what_nobody_decided_is_no_decision(text: str) -> None:
    found = extract(text, time=datetime(2026, 5, 1, tzinfo=UTC), subject="ana")
    assert not [one for one in found if one.rule == "decision"]


def told(thread: holdfast.Thread, *texts: str) -> None:
    for text in texts:
        thread.append({"role": "user", "content": text})


@pytest.mark.every_engine
def test_a_later_decision_on_the_subject_supersedes(store: holdfast.Store, clock: ManualClock) -> None:
    thread, memory = store.thread("t", user="ana"), store.memory("ana")
    told(thread, "We chose Terraform because of the review step.")
    told(thread, "We decided to use Postgres for the queue because Redis lost messages.")
    memory.learn("t")
    clock.advance(3600)
    told(thread, "We switched from Terraform to Pulumi because the team knows TypeScript.")
    told(thread, "For the queue we decided to use Kafka because of replay.")
    told(thread, "We decided to use NATS for the queue because Kafka is heavy.")
    memory.learn("t", after=2)
    assert [version.memory.metadata["choice"] for version in memory.history("decision:terraform")] == [
        "Terraform",
        "Pulumi",
    ]
    assert [version.memory.metadata["choice"] for version in memory.history("decision:queue")][-1] == "NATS"
    assert len([one for one in memory.facts() if one.type == "decision"]) == 2


def test_one_choice_for_two_purposes_is_two_decisions(store: holdfast.Store) -> None:
    thread, memory = store.thread("t", user="ana"), store.memory("ana")
    told(thread, "We chose Postgres for the billing service because of transactions.")
    told(thread, "We chose Postgres for analytics because it was there.")
    told(thread, "We dropped Postgres in favour of Oracle because of support.")  # which of the two is not said
    memory.learn("t")
    assert {one.key for one in memory.facts()} == {"decision:billing service", "decision:analytics", "decision:oracle"}
    told(thread, "We chose Jenkins.", "We replaced Jenkins with Buildkite because of speed.")
    memory.learn("t", after=3)
    assert memory.fact("decision:jenkins").metadata["choice"] == "Buildkite"  # type: ignore[union-attr]


@pytest.mark.parametrize("embedder", ["none", "wordllama"])
def test_why_did_we_finds_the_decision(embedder: str) -> None:
    with holdfast.open("ram:", embedder=embedder) as store:
        thread, memory = store.thread("t", user="ana"), store.memory("ana")
        told(thread, *(text for text, _, _ in SAID[:7]), "Terraform takes ten minutes to plan.", "The queue is long.")
        told(thread, *(f"I had soup on day {number}." for number in range(40)))
        memory.learn("t")
        for question, reason in (
            ("Why did we choose Terraform?", "review step"),
            ("why did we take Postgres for the queue?", "Redis lost messages"),
            ("Why pgvector and not Pinecone?", "one database less"),
            ("What was the reason for Vault?", "audit"),
        ):
            found = memory.recall(question, k=3, type="decision")
            assert found.relevant, question
            assert reason in found[0].text, question
            assert any(reason in hit.text for hit in memory.recall(question, k=2)), question


def test_a_decision_is_shown_when_its_subject_comes_up_and_not_otherwise() -> None:
    with holdfast.open("ram:", embedder="wordllama") as store:
        memory = store.memory("ana")
        memory.decide("Use Terraform for infrastructure", because="every change gets a review", about="infrastructure")
        memory.remember("ana lives in Oslo", key="home")
        thread = store.thread("new", user="ana")
        asked = store.context(thread, "Why do we use Terraform for the infrastructure?", 4_000)
        assert "every change gets a review" in asked.section("recalled")
        assert "Terraform" not in asked.system


@pytest.mark.every_engine
def test_deciding_by_hand(store: holdfast.Store) -> None:
    memory = store.memory("ana")
    made = memory.decide("Use Terraform", because="changes get a review", metadata={"ticket": 7}, tags=["infra"])
    assert (made.text, made.key, made.type) == ("Use Terraform, because changes get a review", None, "decision")
    assert made.metadata == {"ticket": 7, "reason": "changes get a review"}
    memory.decide("Ship on Fridays", about="Release day")
    memory.decide("Ship on Mondays", because="nobody works on Saturday", about="release day")
    kept = memory.fact("decision:release day")
    assert kept is not None
    assert kept.metadata == {"about": "release day", "reason": "nobody works on Saturday"}
    assert memory.recent(type="decision")[0].text.startswith("Ship on Mondays")
    assert memory.decide("A long story.\n" * 80).key is None


def test_a_model_learns_decisions_with_the_reasons_that_were_given(store: holdfast.Store) -> None:
    """A reason that nobody gave is left out, and a reason alone does not make a decision."""
    found = [
        {"text": "Ana's team chose Pulumi.", "entry": 1, "quote": "we chose Pulumi for the infrastructure",
         "key": "decision_infrastructure", "reason": "the team knows TypeScript"},
        {"text": "Ana likes the aisle.", "entry": 1, "quote": "I sit on the aisle", "key": "seat",
         "reason": "my knee hurts"},
        {"text": "Ana ships on Mondays.", "entry": 1, "quote": "we ship on Mondays", "key": "decision_release_day",
         "reason": "the boss is superstitious"},
    ]  # fmt: skip
    memory = store.memory("ana")
    memory.decide("Use Terraform", about="infrastructure")
    said = (
        "For good we chose Pulumi for the infrastructure, the team knows TypeScript. I sit on the aisle since my knee "
        "hurts. And we ship on Mondays."
    )
    with store.session("t", user="ana", model=Scripted("Noted.", {"facts": found}), learn="model") as session:
        session.turn(said)
    infra, seat, day = (memory.fact(key) for key in ("decision:infrastructure", "seat", "decision:release day"))
    assert infra is not None and seat is not None and day is not None  # noqa: PT018
    assert (infra.type, infra.metadata) == ("decision", {"reason": "the team knows TypeScript"})
    assert "the team knows TypeScript" in infra.text
    assert (seat.type, day.type, day.metadata) == (None, "decision", {})
    assert len(memory.history("decision:infrastructure")) == 2


@pytest.mark.parametrize(
    "wrong", [{"because": 1}, {"about": ["a"]}, {"about": " "}, {"metadata": 3}, {"unknown": 1}, {"type": "x"}], ids=str
)
def test_what_is_no_decision_is_refused(store: holdfast.Store, wrong: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        store.memory("ana").decide("Use it", **wrong)
