"""How much a subtask may use: steps, entries of its log, seconds, and whatever its caller counts (tokens, cents).

What was spent is in the journal, so a crash does not refill a budget. Deliberately absent: knowing what a token costs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.errors import BudgetExceeded, Invalid, quoted
from holdfast.ids import check_id
from holdfast.steps.lease import SECOND

if TYPE_CHECKING:
    from holdfast.steps.work import Work

STEPS, SECONDS = "steps", "seconds"


def check(budget: dict[str, float] | None) -> dict[str, float]:
    """Refuse a budget that names no amounts."""
    if budget is None:
        return {}
    return {what: _amount(what, amount) for what, amount in _pairs(budget)}


def amounts(given: dict[str, Any]) -> dict[str, float]:
    """Refuse spending that names no amounts, or one that is already counted here."""
    if not given:
        raise Invalid("say what was spent: spend(tokens=1200)")
    for what in given:
        if what in (STEPS, SECONDS):
            raise Invalid(f"the run itself counts {what}; spend only what it cannot count, such as tokens")
    return {what: _amount(what, amount) for what, amount in _pairs(given)}


def _pairs(given: Any) -> list[tuple[str, Any]]:
    if not isinstance(given, dict):
        raise Invalid(f'a budget is amounts by name, such as {{"steps": 20, "tokens": 5000}}, not {quoted(given)}')
    return [(check_id(what, "what is counted"), amount) for what, amount in given.items()]


def _amount(what: str, amount: Any) -> float:
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < 2**53:
        raise Invalid(f"an amount of {what} is a number, 0 or more, not {quoted(amount)}")
    return amount


def used(work: Work) -> dict[str, float]:
    """What was used so far."""
    begun = min((step.begun for step in work.journal.all()), default=work.time())
    return {
        **work.journal.spent,
        STEPS: len(work.counted()),
        SECONDS: max(0, work.time() - begun) / SECOND,
    }


def left(work: Work) -> dict[str, float]:
    """What is left of each limited amount."""
    if not work.budget:
        return {}
    spent = used(work)
    return {what: limit - spent.get(what, 0) for what, limit in work.budget.items()}


def refuse_over(work: Work, step: str | None = None) -> None:
    """Refuse a step when there is no room for one more, unless already counted, or when any amount is overdrawn."""
    if step is not None and STEPS in work.budget:
        work.count(step, work.budget[STEPS])
    for what, rest in left(work).items():
        if rest < 0:
            raise exceeded(work, what)


def exceeded(work: Work, what: str) -> BudgetExceeded:
    return BudgetExceeded(
        f"subtask {work.header.name!r} has used up its {what}: the budget was {work.budget[what]:g}",
        subtask=work.header.name, what=what, limit=work.budget[what],
    )  # fmt: skip
