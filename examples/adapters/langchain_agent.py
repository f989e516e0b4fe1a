"""A LangChain agent that is killed while it pays invoices, and pays none of them twice.

    python examples/adapters/langchain_agent.py

Run it three times. The first process is killed in the middle of a tool call. The second goes on where the first stood,
summarises the conversation, which grew too long, and asks before it pays 4,000 euros. The third has the answer. The
state is short by then, and the log of the thread still has every message. Nothing needs a key or a network.
"""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, SummarizationMiddleware
from langchain_core.tools import tool
from langgraph.types import Command
from scripted_model import ScriptedModel

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver, task

DATABASE = Path(tempfile.gettempdir(), "holdfast-langchain-agent.db")
FIRST_RUN = not DATABASE.exists()
CONFIG: Any = {"configurable": {"thread_id": "invoices", "user_id": "ana"}}
EUROS = {"water": 80, "power": 120, "rent": 900, "phone": 40, "roof": 4000}
MODEL = ScriptedModel(
    script={
        "": "Water, power and rent are paid.",  # when it is asked for a summary
        "Pay my invoices.": [("pay", {"invoice": "water"}), ("pay", {"invoice": "power"})],
        "Paid power": [("pay", {"invoice": "rent"})],
        "Paid rent": [("pay", {"invoice": "phone"}), ("pay", {"invoice": "roof"})],
        "Paid roof": "All five are paid.",
    }
)


@task  # once it returns, its result is on disk, even while another call of the same message still runs
def transfer(invoice: str) -> str:
    if invoice == "rent" and FIRST_RUN:
        print("       (here the process is killed; run it again)", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    print(f"       (the bank transfers {EUROS[invoice]} euros for {invoice})", flush=True)
    return f"Paid {invoice}."


@tool
def pay(invoice: str) -> str:
    """Pay an invoice."""
    return str(transfer(invoice).result())


def is_large(request: Any) -> bool:
    return EUROS[request.tool_call["args"]["invoice"]] > 1000


def main() -> None:
    shorten = SummarizationMiddleware(MODEL, trigger=("messages", 6), keep=("messages", 2))
    ask = HumanInTheLoopMiddleware({"pay": {"allowed_decisions": ["approve", "reject"], "when": is_large}})
    with holdfast.open(DATABASE) as store:
        agent: Any = create_agent(MODEL, [pay], middleware=[shorten, ask], checkpointer=HoldfastSaver(store))
        state = agent.get_state(CONFIG)
        given: Any = None if state.values else {"messages": [("user", "Pay my invoices.")]}  # None: go on
        if state.interrupts:
            print("Ana:   yes")
            given = Command(resume={"decisions": [{"type": "approve"}]})
        messages = agent.invoke(given, CONFIG, durability="sync")["messages"]
        print(f"Agent: {messages[-1].text or 'May I pay the roof?'} ({len(messages)} messages in the state)")
        for said in (entry.content for entry in store.thread("invoices").log()):
            print("log   ", said["role"], said["content"] or [call["args"] for call in said["tool_calls"]])


if __name__ == "__main__":
    main()
