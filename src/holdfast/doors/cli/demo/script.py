"""What is said in the demonstration: Ana, a travel agent, and a small outside world that changes while they are away.

Only what a model and an airline would say is written here; what is remembered of it is read back from the store.
Deliberately absent: anything that touches a store.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from holdfast import AgentState, Task

Change = Callable[[AgentState, datetime], AgentState]


class Noted(NamedTuple):
    """Something that the agent remembers about Ana; with a key it is the value of a fact, which may change."""

    text: str
    key: str | None = None


class ScriptedTurn(NamedTuple):
    """One thing Ana says, what the agent does about it, what it answers, and what it then holds to be so."""

    asks: str
    answers: str
    change: Change
    call: tuple[str, dict[str, Any]] | None = None
    result: Any = None
    checkpoint: str | None = None
    remembers: Noted | None = None


class ScriptedQuestion(NamedTuple):
    """What the new process is asked, and the turn in which the killed one heard of it: None where nobody ever did."""

    asks: str
    turn: str | None = None
    key: str | None = None


def _met(state: AgentState, now: datetime) -> AgentState:
    state.user_preferences["name"] = "Ana"
    state.active_task = Task("book a flight to Lisbon for 12 June", "collecting wishes", "asked how she likes to fly")
    return state


def _found(state: AgentState, now: datetime) -> AgentState:
    state.user_preferences.update(seat="aisle", time_of_day="morning")
    _did(state, "found TP 533 at 06:40")
    return state.with_fact("fare", "184 EUR", at=now, by="airline")


def _named(state: AgentState, now: datetime) -> AgentState:
    _did(state, "took down the name in her passport")
    return state.with_fact("passport_name", "Ana Maria Sousa", at=now, by="ana")


def _asked(state: AgentState, now: datetime) -> AgentState:
    state.unresolved_issues.append("can the cello come into the cabin?")
    return _did(state, "asked the airline about the cello")


def _held(state: AgentState, now: datetime) -> AgentState:
    state.user_preferences["seat"] = "window"
    return _did(state, "held seat 14A on TP 533", "seat held, not paid")


def _priced(state: AgentState, now: datetime) -> AgentState:
    return _did(state, "priced a second suitcase")


def _answered(state: AgentState, now: datetime) -> AgentState:
    state.unresolved_issues.clear()
    return _did(state, "reserved 14B for the cello")


def _booked(state: AgentState, now: datetime) -> AgentState:
    return _did(state, "booked TP 533, seats 14A and 14B", "done")


def _did(state: AgentState, action: str, status: str | None = None) -> AgentState:
    assert state.active_task is not None
    state.active_task.last_action = action
    state.active_task.status = status or state.active_task.status
    return state


CONVERSATION = (
    ScriptedTurn(
        "Hello, I'm Ana. I need a flight to Lisbon for my sister's wedding on 12 June.",
        "Hello Ana! A wedding in Lisbon, how lovely. Where do you fly from, and when?",
        _met,
        remembers=Noted("flies to her sister, who marries in Lisbon on 12 June"),
    ),
    ScriptedTurn(
        "From Berlin. In the morning, and on the aisle, please.",
        "TP 533 leaves at 06:40 and costs 184 EUR. What name is in your passport?",
        _found,
        ("search_flights", {"from": "BER", "to": "LIS", "day": "12 June", "time_of_day": "morning"}),
        [{"flight": "TP 533", "departs": "06:40", "fare": "184 EUR"}],
        remembers=Noted("prefers to sit on the aisle", "seat"),
    ),
    ScriptedTurn(
        "Ana Maria Sousa. No food with nuts: I am allergic.",
        "Both noted. Are you bringing anything unusual?",
        _named,
    ),
    ScriptedTurn(
        "A cello. Can it come into the cabin?",
        "The airline will answer by mail. I'll keep that question open.",
        _asked,
        ("ask_airline", {"about": "a cello in the cabin"}),
        "We will answer by mail.",
    ),
    ScriptedTurn(
        "Then hold a seat. By the window, after all. But don't pay yet.",
        "Seat 14A on TP 533 is held for you. Nothing is paid yet.",
        _held,
        ("hold_seat", {"flight": "TP 533", "seat": "14A"}),
        {"held": "14A"},
        checkpoint="before-payment",
        remembers=Noted("prefers to sit by the window", "seat"),
    ),
    ScriptedTurn(
        "What would a second suitcase cost?",
        "45 EUR, on top of the fare of 197 EUR.",
        _priced,
        ("price_luggage", {"flight": "TP 533", "suitcases": 2}),
        {"second_suitcase": "45 EUR"},
    ),
    ScriptedTurn(
        "And the cello?",
        "The airline says yes, on a seat of its own. I took 14B for it: 90 EUR.",
        _answered,
        ("read_mail", {"from": "airline"}),
        "A cello is welcome on a seat of its own: 90 EUR.",
    ),
    ScriptedTurn(
        "Perfect. Book it.",
        "Booked: 7KQ2F. Have a wonderful wedding, Ana.",
        _booked,
        ("book", {"flight": "TP 533", "seats": ["14A", "14B"]}),
        {"booking": "7KQ2F"},
    ),
)

INTERRUPTED = 6  # the number of the exchange in which the first agent is killed

# Each question shares one word that counts with its answer: enough where no embedder is installed and words must do.
# The last one is near: it is about the trip, and nobody ever said it.
QUESTIONS = (
    ScriptedQuestion("Where does she like to sit?", "turn-5", "seat"),
    ScriptedQuestion("Who is getting married?", "turn-1"),
    ScriptedQuestion("Which food is dangerous for her?", "turn-3"),
    ScriptedQuestion("What is her phone number?"),
)

# The flight home, which is booked for real by ``booking``: the name of the run, and what it is about.
RUN = "book-flight"
ASKS_FOR_HOME = "One more thing: a flight home on 15 June, please."
DAY_HOME = "15 June"
PASSENGER = "Ana Maria Sousa"

# What the outside world says about the facts when the second agent asks again: the fare has moved.
TODAY = {"fare": ("airline", "197 EUR"), "passport_name": ("ana", "Ana Maria Sousa")}


def welcome(state: AgentState, checked: dict[str, tuple[Any, Any]]) -> str:
    """Greet someone out of nothing but a loaded state and the facts that were just checked (name: before, now)."""
    task = state.active_task
    said = [f"Welcome back, {state.user_preferences.get('name', 'stranger')}."]
    if task is not None:
        said.append(f"We wanted to {task.description}; I {task.last_action} ({task.status}).")
    said += [f"Still open: {issue}" for issue in state.unresolved_issues]
    for name, (before, now) in checked.items():
        plain = name.replace("_", " ")
        said.append(f"The {plain} is still {now}." if now == before else f"The {plain} was {before} and is now {now}.")
    return " ".join(said)


def booked_home(booking: dict[str, Any]) -> str:
    """Tell Ana about her flight home."""
    return f"Your flight home is {booking['flight']} on {DAY_HOME}. The booking is {booking['booking']}."
