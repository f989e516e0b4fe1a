"""An agent of Pydantic AI whose conversation and notes outlive its process. Run it twice; it needs no key.

    python examples/adapters/pydantic-ai.py

The model is a function, so that the example works offline; put the name of a real one in its place.
The store is ``holdfast-pydantic-ai.db`` in the temporary folder.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_harness import Memory

import holdfast
from holdfast.adapters.pydantic_ai import HoldfastConversations, HoldfastMemoryStore

DATABASE = Path(tempfile.gettempdir(), "holdfast-pydantic-ai.db")
ASKED = "I like aisle seats. When is the ferry to Naxos?"


def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """Note what the user likes, then answer with all that was asked so far and all that is noted."""
    asked = [
        part.content
        for message in messages
        for part in message.parts
        if isinstance(part, UserPromptPart) and isinstance(part.content, str)
    ]
    noted = any(isinstance(part, ToolReturnPart) for part in messages[-1].parts)
    if len(asked) == 1 and not noted:
        return ModelResponse(parts=[ToolCallPart("write_memory", {"content": "likes aisle seats"}, "note-1")])
    return ModelResponse(parts=[TextPart(f"You asked {len(asked)} time(s), first: {asked[0]!r}")])


async def main() -> None:
    with holdfast.open(DATABASE, embedder="none") as store:
        conversations = HoldfastConversations(store)
        notes = HoldfastMemoryStore(store, user="ana")
        agent = Agent(FunctionModel(model), capabilities=[Memory(notes, namespace="ana")])

        conversation = await conversations.load("trip", scope="ana")
        if conversation is None:
            print("A new conversation.")
            conversation, question = Conversation(conversation_id="trip"), ASKED
        else:
            print(f"A conversation of {len(conversation.messages)} messages, from before this process began.")
            question = "And back?"
        result = await agent.run(question, conversation=conversation)
        await conversations.save(result, scope="ana")

        print(f"> {question}\n{result.output}")
        for path in await notes.list_paths(limit=10):
            file = await notes.read(path, max_chars=1_000)
            print(f"Noted in {path}: {file.content.strip() if file else ''}")
        print(f"Entries in the thread: {store.thread('trip').logbook.head()}")


if __name__ == "__main__":
    asyncio.run(main())
