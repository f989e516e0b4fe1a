"""An AutoGen team that goes on after a restart, with a memory: run it twice, and the second run knows the first one.

    python examples/adapters/autogen.py

keeps all in ``holdfast-autogen.db`` in the temporary folder, works without any key or network (the model is AutoGen's
own double, which repeats its lines), and prints the conversation so far. Then look at the same store with the command:

    holdfast --db /tmp/holdfast-autogen.db log team-1
    holdfast --db /tmp/holdfast-autogen.db recall "where does Ana sit?" --user ana
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.memory import MemoryContent, MemoryMimeType
from autogen_ext.models.replay import ReplayChatCompletionClient

import holdfast
from holdfast.adapters.autogen import HoldfastMemory, HoldfastStateKeeper

DATABASE = Path(tempfile.gettempdir(), "holdfast-autogen.db")


def make_team(memory: HoldfastMemory) -> RoundRobinGroupChat:
    desk = AssistantAgent("desk", ReplayChatCompletionClient(["I look for flights."]), memory=[memory])
    clerk = AssistantAgent("clerk", ReplayChatCompletionClient(["I book the seat."]))
    return RoundRobinGroupChat([desk, clerk], termination_condition=MaxMessageTermination(3))


async def main() -> None:
    with holdfast.open(DATABASE, embedder="none") as store:
        memory = HoldfastMemory(store, user="ana", k=1)
        team, keeper = make_team(memory), HoldfastStateKeeper(store, "team-1", user="ana")
        revision = await keeper.restore(team)
        print(f"restored revision {revision}" if revision else "nothing was kept yet")
        if not revision:
            await memory.add(MemoryContent(content="Ana sits on the aisle", mime_type=MemoryMimeType.TEXT))
        task = "Book a seat for Ana to Porto" if revision else "Book a seat for Ana to Lisbon"
        async for message in team.run_stream(task=task):
            if getattr(message, "type", "") == "MemoryQueryEvent":
                print("  remembered:", ", ".join(str(one.content) for one in message.content))
        print(f"kept revision {await keeper.keep(team)}")
        for entry in keeper.thread.log():
            if entry.kind == "message":
                print(f"  {entry.content['$framework']['autogen']['source']}: {entry.content['content']}")


if __name__ == "__main__":
    asyncio.run(main())
