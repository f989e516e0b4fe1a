"""A LangGraph agent with a long-term memory: what it learned in one conversation it knows in the next.

    python examples/adapters/langgraph_memory.py

Run it twice. The first run hears what Ana tells it; the second is another process and another conversation, and it
remembers. The memory is one file, ``holdfast-langgraph-memory.db`` in the temporary folder. Nothing needs a key or a
network: the agent is three lines of Python instead of a model.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from holdfast.adapters.langgraph.store import HoldfastStore

DATABASE = Path(tempfile.gettempdir(), "holdfast-langgraph-memory.db")
TOLD = {"diet": "I eat no meat and no fish.", "seat": "On trains I like the window seat."}


class State(TypedDict, total=False):
    user: str
    question: str
    answer: str


def answer(state: State, runtime: Runtime) -> State:
    """Look into what is known of this user, and nobody else."""
    assert runtime.store is not None
    found = runtime.store.search(("users", state["user"]), query=state["question"], limit=1)
    return {"answer": found[0].value["text"] if found else "I do not know yet. Tell me about yourself?"}


def main() -> None:
    with HoldfastStore(DATABASE) as store:
        graph = StateGraph(State).add_node("answer", answer).add_edge(START, "answer").add_edge("answer", END)
        agent = graph.compile(store=store)

        for question in ("What may I cook: meat or vegetables?", "Which seat on the train?"):
            reply = agent.invoke({"user": "ana", "question": question})
            print(f"Ana:   {question}\nAgent: {reply['answer']}")

        for key, text in TOLD.items():
            before = store.current(("users", "ana"), key)
            if before is None or before.value != {"text": text}:
                store.compare_and_put(("users", "ana"), key, {"text": text}, expect=before.version if before else 0)
                print(f"Ana:   {text}")


if __name__ == "__main__":
    main()
