"""An agent of the OpenAI Agents SDK whose session outlives the process.

    python examples/adapters/openai_agents.py

Run it twice: the second time it knows what was said the first time. It needs no key and no network, because a scripted
model answers; leave ``model`` out of ``Agent`` to talk to a real one. Then look at the same conversation with the
command:

    holdfast --db /tmp/holdfast-openai-agents.db log desk-1
    holdfast --db /tmp/holdfast-openai-agents.db recall "where does she like to sit?" --user ana
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path

import agents
from agents import Agent, Runner, function_tool
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call

import holdfast
from holdfast.adapters.openai_agents import HoldfastSession

DATABASE = Path(tempfile.gettempdir(), "holdfast-openai-agents.db")


@function_tool
def book(seat: str) -> str:
    """Book a seat."""
    return f"booked {seat}"


def answer(call: ModelCall) -> list[object]:
    """What a model would make of all that it is shown: it books once, and later remembers that it did."""
    shown = json.dumps(call.input)
    if "booked 14C" not in shown:
        return [function_call("book", {"seat": "14C"}, call_id="call-1")]
    again = sum(item.get("content") == "Hello again!" for item in call.input)
    return [assistant_message(f"You like the aisle, so you have 14C. (hello number {again})")]


async def main() -> None:
    agents.set_tracing_disabled(True)
    agent = Agent("desk", model=ScriptedModel([ModelStep.respond(answer)] * 2), tools=[book])
    with holdfast.open(DATABASE) as store:
        session = HoldfastSession("desk-1", store, user="ana", agent="desk")
        kept = await session.get_items()
        print(f"kept from before: {len(kept) or 'nothing yet'}")
        for item in kept:
            if item.get("role") == "user":
                print(f"  you said: {item['content']}")
        question = "Hello again!" if kept else "I like the aisle. Book me a seat, please."
        result = await Runner.run(agent, question, session=session)
        print(f"you: {question}\nagent: {result.final_output}")


if __name__ == "__main__":
    asyncio.run(main())
