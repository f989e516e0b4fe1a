"""What is trusted less takes nothing away from what is trusted more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import pytest

from holdfast.errors import Invalid
from holdfast.memory.drafts import Remembering
from holdfast.memory.facts import corrections, facts, outdated, timeline
from holdfast.memory.names import memory_id
from holdfast.memory.visible import VisibleMemories
from holdfast.records import TRUST, Memory

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def a(number: int, trust: str, **more: Any) -> Memory:
    given: dict[str, Any] = {"subject": "ana", "key": "iban", **more}
    moment = START + number * DAY
    return Memory(
        memory_id(number), f"value {number}", "semantic", recorded_at=moment, valid_from=moment, trust=trust, **given
    )


def values(memories: list[Memory], trust: str | None = None) -> list[str]:
    found = {tuple(one.text for one in facts(list(some), START + 99 * DAY, None, trust)) for some in _orders(memories)}
    (same,) = found
    return list(same)


def _orders(memories: list[Memory]) -> list[tuple[Memory, ...]]:
    return list(permutations(memories))


def test_a_value_that_is_trusted_less_hides_none_from_who_asks_for_trust() -> None:
    both = [a(1, "trusted"), a(2, "untrusted")]
    assert values(both) == ["value 2"]
    assert values(both, "untrusted") == ["value 2"]
    assert values(both, "stated") == values(both, "trusted") == ["value 1"]
    assert [version.until for version in timeline(both, trust="stated")] == [None]
    assert outdated(both, START + 99 * DAY, trust="stated") == {}


def test_an_end_that_is_trusted_less_ends_nothing_for_who_asks_for_trust() -> None:
    both = [a(1, "trusted"), a(2, "untrusted", ended=True)]
    assert values(both) == []
    assert values(both, "stated") == ["value 1"]


@pytest.mark.parametrize("trust", TRUST)
@pytest.mark.parametrize("of", TRUST)
def test_a_correction_counts_against_what_is_trusted_as_much_or_less(trust: str, of: str) -> None:
    wrong, correction = a(1, of), a(2, trust, key=None, corrects=memory_id(1))
    counts = TRUST.index(trust) >= TRUST.index(of)
    assert values([wrong, correction]) == ([] if counts else ["value 1"])
    assert bool(corrections([wrong, correction])[0]) == counts
    end = a(2, trust, key=None, corrects=memory_id(1), ended=True)
    assert values([wrong, end]) == ([] if counts else ["value 1"])


def test_in_a_chain_each_correction_is_measured_by_what_it_corrects() -> None:
    wrong = a(1, "stated")
    denial = a(2, "trusted", key=None, corrects=memory_id(1))
    assert values([wrong, denial, a(3, "untrusted", key=None, corrects=memory_id(2))]) == []
    assert values([wrong, denial, a(3, "trusted", key=None, corrects=memory_id(2))]) == ["value 1"]
    assert values([wrong, a(2, "untrusted", key=None, corrects=memory_id(1)), a(3, "stated", key=None)]) == ["value 1"]


# In a store


def one(visible: VisibleMemories, text: str, **more: Any) -> Memory:
    return visible.remember([Remembering(text, **more)])[0]


def texts(memories: list[Memory]) -> list[str]:
    return [memory.text for memory in memories]


@pytest.mark.every_engine
def test_facts_history_and_procedures_by_trust(visible: VisibleMemories) -> None:
    one(visible, "DE1", key="iban", trust="trusted")
    one(visible, "EVIL", key="iban", trust="untrusted")
    one(visible, "do good", kind="procedural", key="rule")
    one(visible, "do evil", kind="procedural", key="rule", trust="untrusted")
    one(visible, "do evil anyway", kind="procedural", trust="untrusted")
    assert texts(visible.facts()) == ["EVIL", "do evil"]
    assert texts(visible.facts(trust="stated")) == ["DE1", "do good"]
    assert [(version.memory.text, version.until) for version in visible.history("iban", trust="stated")] == [
        ("DE1", None)
    ]
    assert texts(visible.procedures(trust="stated")) == ["do good"]
    assert texts(visible.procedures()) == ["do evil anyway", "do evil"]
    for call in (visible.facts, visible.procedures, lambda trust: visible.history("iban", trust=trust)):
        with pytest.raises(Invalid, match="trust must be"):
            call(trust="blind")


def test_a_subject_is_found_by_what_is_trusted_that_much(visible: VisibleMemories) -> None:
    one(visible, "Ben has DE1", key="iban", subject="Ben", trust="trusted")
    one(visible, "EVIL", key="iban", trust="untrusted")
    assert [version.memory.text for version in visible.history("iban")] == ["EVIL"]
    assert [version.memory.text for version in visible.history("iban", trust="stated")] == ["Ben has DE1"]


@pytest.mark.parametrize("key", [None, "iban"])
def test_who_is_trusted_less_can_neither_correct_nor_end(visible: VisibleMemories, key: str | None) -> None:
    made = one(visible, "DE1", key=key, trust="trusted")
    for trust in ("untrusted", "stated"):
        with pytest.raises(Invalid, match=f"something {trust} cannot correct it.* trust='trusted'"):
            visible.correct(made.id, Remembering("EVIL", trust=trust))
        with pytest.raises(Invalid, match="cannot end it"):
            visible.end(made.id, None, Remembering("no more", trust=trust))
    with pytest.raises(Invalid, match="trust must be"):
        visible.correct(made.id, Remembering("EVIL", trust="blind"))
    assert visible.memories() == [made]
    assert visible.end(made.id).trust == "trusted", "who only says that it is over says it of this very memory"
    assert visible.correct(made.id).trust == "trusted"
    assert visible.correct(made.id, Remembering("DE2", trust="trusted")).text == "DE2"


def test_a_correction_written_around_that_rule_still_counts_for_nothing(visible: VisibleMemories) -> None:
    made = one(visible, "DE1", key="iban", trust="trusted")
    one(visible, "that was never true", corrects=made.id, trust="untrusted")
    assert texts(visible.facts()) == ["DE1"]
    assert [version.corrected_by for version in visible.history("iban")] == [None]
