"""A deep agent that is killed while its subagent works; subagent, files and to-do list go on in another process.

    python examples/adapters/deep_agent.py

Run it twice. The first process is killed in the middle of the subagent's second search. The second one goes on inside
the subagent: the first search is not made again, and the files and the to-do list are there. What is under /memories/
is for all conversations of Ana. Nothing needs a key or a network.
"""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path
from typing import Any

from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, StateBackend, StoreBackend
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.tools import tool
from scripted_model import ScriptedModel

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver
from holdfast.adapters.langgraph.store import HoldfastStore

DATABASE = Path(tempfile.gettempdir(), "holdfast-deep-agent.db")
FIRST_RUN = not DATABASE.exists()
CONFIG: Any = {"configurable": {"thread_id": "lisbon", "user_id": "ana"}}
SCRIPT: Any = {
    "Plan a day in Lisbon.": [("write_todos", {"todos": [{"content": "Ask about trams", "status": "in_progress"}]})],
    "Updated todo list": [("task", {"subagent_type": "researcher", "description": "Trams in Lisbon"})],
    "Line 28": [("write_file", {"file_path": "/memories/ana.md", "content": "Ana likes trams."})],
    "Updated file /memories": "Take line 28 at nine.",
}
RESEARCH: Any = {
    "Trams in Lisbon": [("search", {"query": "lines"})],
    "Found lines": [("write_file", {"file_path": "/lines.md", "content": "28 is the line to take."})],
    "Updated file /lines.md": [("search", {"query": "hours"})],
    "Found hours": "Line 28, best at nine.",
}


@tool
def search(query: str) -> str:
    """Search the web."""
    if query == "hours" and FIRST_RUN:
        print("       (here the process is killed; run it again)", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    print(f"       (searching: {query})", flush=True)
    return f"Found {query}."


def main() -> None:
    researcher: Any = {"name": "researcher", "description": "Finds things out.", "system_prompt": "Search."}
    researcher |= {"model": ScriptedModel(script=RESEARCH), "tools": [search]}
    memories = StoreBackend(namespace=lambda runtime: ("ana", "files"))
    with holdfast.open(DATABASE) as store:
        agent: Any = create_deep_agent(
            ScriptedModel(script=SCRIPT),
            subagents=[researcher],
            middleware=[TodoListMiddleware()],
            backend=CompositeBackend(StateBackend(), {"/memories/": memories}),
            checkpointer=HoldfastSaver(store),
            store=HoldfastStore(store),
        )
        asked: Any = {"messages": [{"role": "user", "content": "Plan a day in Lisbon."}]}
        done = agent.invoke(None if agent.get_state(CONFIG).values else asked, CONFIG, durability="sync")  # None: go on
        print(f"Agent: {done['messages'][-1].text}")
        print("to do ", [todo["content"] for todo in done["todos"]])
        print("files ", [*done["files"], *(f"/memories{item.key}" for item in HoldfastStore(store).search(("ana",)))])
        for said in (entry.content for entry in store.thread("lisbon").log()):
            print("log   ", said["role"], said["content"] or [call["args"] for call in said["tool_calls"]])


if __name__ == "__main__":
    main()
