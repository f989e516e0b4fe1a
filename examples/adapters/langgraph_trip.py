"""A LangGraph agent that is killed between two turns and goes on: its checkpoints are in one file.

    python examples/adapters/langgraph_trip.py

Run it twice. The first run books a trip as far as the question whether to pay, and ends there, as a process does that
is killed. The second is another process: it answers the question, the graph goes on where it stood, and what was said
is also in the thread's log, where `holdfast log trip-42 --db /tmp/holdfast-langgraph-trip.db` shows it. Nothing needs a
key or a network: the agent is a few lines of Python instead of a model.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver, task

DATABASE = Path(tempfile.gettempdir(), "holdfast-langgraph-trip.db")

CONFIG: Any = {"configurable": {"thread_id": "trip-42", "user_id": "ana"}}


@task
def find_flight(place: str) -> str:
    """Once it returns, its result is on disk: a graph that is interrupted or killed does not search again."""
    print(f"       (searching flights to {place})")
    return f"Saturday 9:40 to {place}, 120 euros"


class Trip(MessagesState):
    flight: str


def search(state: Trip) -> dict[str, Any]:
    flight = find_flight(str(state["messages"][-1].content).split()[-1].strip("."))
    return {"flight": flight.result(), "messages": [("ai", "I found a flight.")]}


def pay(state: Trip) -> dict[str, Any]:
    answer = interrupt(f"{state['flight']}: shall I pay?")
    return {"messages": [("ai", "Paid, have a good trip." if answer == "yes" else "Then not.")]}


def build(saver: HoldfastSaver) -> Any:
    graph = StateGraph(Trip).add_node("search", search).add_node("pay", pay)
    graph.add_edge(START, "search").add_edge("search", "pay").add_edge("pay", END)
    return saver.guard(graph.compile(checkpointer=saver))


def main() -> None:
    with holdfast.open(DATABASE) as store:
        agent = build(HoldfastSaver(store))
        waiting = agent.get_state(CONFIG)
        if not waiting.values:
            print("Ana:   Book me a flight to Lisbon.")
            agent.invoke({"messages": [("user", "Book me a flight to Lisbon.")]}, CONFIG, durability="sync")
            print(f"Agent: {agent.get_state(CONFIG).interrupts[0].value}")
            print("       (and here the process ends; run it again)")
        elif waiting.interrupts:
            print(f"Agent: {waiting.interrupts[0].value}")
            print("Ana:   yes")
            said = agent.invoke(Command(resume="yes"), CONFIG, durability="sync")["messages"]
            print(f"Agent: {said[-1].content}")
        else:
            print(f"       (nothing is open; remove {DATABASE} to begin again)")
        for entry in store.thread("trip-42").log():
            print(f"log    {entry.number}. {entry.content['role']}: {entry.content['content']}")


if __name__ == "__main__":
    main()
