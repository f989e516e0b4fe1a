"""A ready-made state for a conversational agent: what it knows, what it is doing, and what is still open.

Deliberately absent: everything particular to one agent. Subclass ``AgentState`` and declare the subclass under a name
of its own to add fields or to choose other limits; or write a type from scratch, nothing here is special.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

import msgspec

from holdfast.errors import Invalid
from holdfast.ids import check_id
from holdfast.ledger.schema import schema


class Fact(msgspec.Struct):
    """Something that was confirmed: what, when, and by whom."""

    value: Any
    confirmed_at: Annotated[datetime, msgspec.Meta(tz=True)]
    confirmed_by: str = ""


class Task(msgspec.Struct):
    """What the agent is doing now."""

    description: str
    status: str = "active"
    last_action: str = ""


# A fact is what an agent acts on, so an old one must be verified first. A task moves faster than facts do: a status
# that nobody touched for a day deserves a question, not a stop. Preferences hold until the user says otherwise.
@schema(
    "agent", version=1, fresh={"confirmed_facts.*": "30d", "active_task.status": "1d"}, critical=["confirmed_facts.*"]
)
class AgentState(msgspec.Struct):
    """The small document that an agent decides from.

    ``confirmed_facts`` are facts by name, or a list of facts as people write them in JSON:
    ``{"fact": "prefers mornings", "confirmed_at": "2026-04-28T14:22:00Z"}``, with whatever else you keep about each.
    """

    user_preferences: dict[str, Any] = {}
    confirmed_facts: dict[str, Fact] | list[dict[str, Any]] = {}
    active_task: Task | None = None
    unresolved_issues: list[str] = []

    def fact(self, name: str) -> Fact | None:
        """The fact of this name, or None."""
        return self._by_name().get(check_id(name, "the name of a fact"))

    def with_fact(self, name: str, value: Any, *, at: datetime, by: str = "") -> Self:
        """Return this state with one fact confirmed at a moment, which must have a time zone."""
        facts = {**self._by_name(), check_id(name, "the name of a fact"): Fact(value, at, by)}
        return msgspec.structs.replace(self, confirmed_facts=facts)

    def _by_name(self) -> dict[str, Fact]:
        if isinstance(self.confirmed_facts, list):
            raise Invalid('these facts are a list without names; read it, or append {"fact": …, "confirmed_at": …}')
        return self.confirmed_facts
