"""An agent of Google's ADK that is killed and goes on: sessions, memory and artifacts in one file.

    python examples/adapters/adk.py

Run it twice: the second time it knows what the first one was told. The model is a few lines of Python, so nothing here
needs a key or a network; give `LlmAgent` a real one, and the rest stays as it is.
The store is ``holdfast-adk.db`` in the temporary folder.
"""

from __future__ import annotations

import asyncio
import tempfile
import warnings
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.tools.tool_context import ToolContext
from google.genai import types

import holdfast
from holdfast.adapters.adk import HoldfastArtifactService, HoldfastMemoryService, HoldfastSessionService

DATABASE = Path(tempfile.gettempdir(), "holdfast-adk.db")

warnings.filterwarnings("ignore", message=r"\[EXPERIMENTAL\]")
TRIP = {"app_name": "travel", "user_id": "ana", "session_id": "lisbon"}


class Scripted(BaseLlm):
    """A model that books once it is told to, and otherwise says how many messages it was shown."""

    async def generate_content_async(self, request: LlmRequest, stream: bool = False) -> AsyncGenerator[Any, None]:
        last = request.contents[-1].parts[-1]
        if last.text and "book" in last.text.lower():
            call = types.FunctionCall(id="call-1", name="book", args={"seat": "12C"})
            part = types.Part(function_call=call)
        elif last.function_response:
            part = types.Part(text=f"Done: {last.function_response.response['result']}.")
        else:
            part = types.Part(text=f"I was shown {len(request.contents)} messages of this conversation.")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


async def book(seat: str, tool_context: ToolContext) -> str:
    """Book a seat."""
    tool_context.state["seat"] = seat
    tool_context.state["user:likes"] = "aisle seats"
    ticket = types.Part.from_bytes(data=f"ticket for {seat}".encode(), mime_type="application/pdf")
    version = await tool_context.save_artifact("ticket.pdf", ticket)
    return f"seat {seat} is booked, ticket {version} is saved"


async def main() -> None:
    with holdfast.open(DATABASE) as store:
        sessions, memory = HoldfastSessionService(store), HoldfastMemoryService(store)
        artifacts = HoldfastArtifactService(store)
        agent = LlmAgent(name="clerk", model=Scripted(model="scripted"), tools=[book])
        runner = Runner(
            app_name="travel", agent=agent, session_service=sessions, memory_service=memory, artifact_service=artifacts
        )
        session = await sessions.get_session(**TRIP)
        if session is None:
            print("a new conversation")
            session = await sessions.create_session(**TRIP)
        else:
            print(f"going on after {len(session.events)} events; the state is {session.state}")
            ticket = await artifacts.load_artifact(**TRIP, filename="ticket.pdf")
            print(f"the ticket is still here: {ticket.inline_data.data.decode() if ticket else None}")

        for text in ("Please book me an aisle seat to Lisbon", "What do you know?"):
            print(f"ana:   {text}")
            message = types.Content(role="user", parts=[types.Part(text=text)])
            async for event in runner.run_async(user_id="ana", session_id="lisbon", new_message=message):
                if event.is_final_response():
                    print(f"clerk: {event.content.parts[0].text}")

        await memory.add_session_to_memory(await sessions.get_session(**TRIP))
        found = await memory.search_memory(app_name="travel", user_id="ana", query="aisle seat to Lisbon")
        print(f"memory: {found.memories[0].content.parts[0].text}")


if __name__ == "__main__":
    asyncio.run(main())
