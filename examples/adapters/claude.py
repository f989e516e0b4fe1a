"""A Claude agent whose sessions are kept in a store.

    python examples/adapters/claude.py

Run it twice: the second run is another process, with nothing of the first on its disk but the store, and goes on with
the conversation. It works offline, because a server in this process plays the Messages API, with a model that repeats
what it was told; with a key, leave ``env`` out. Needs holdfast[claude].
The store is ``holdfast-claude.db`` in the temporary folder.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, TextBlock, project_key_for_directory, query

from holdfast.adapters.claude import HoldfastSessionStore

DATABASE = Path(tempfile.gettempdir(), "holdfast-claude.db")
PROMPT = "I sit on the aisle. What did I say before this?"


async def main(url: str, config: str) -> None:
    async with HoldfastSessionStore(DATABASE, user="ana") as sessions:
        known = await sessions.list_sessions(project_key_for_directory(os.getcwd()))
        options = ClaudeAgentOptions(
            session_store=sessions,
            continue_conversation=bool(known),
            tools=[],
            setting_sources=[],
            env={"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "CLAUDE_CONFIG_DIR": config, **QUIET},
        )
        print(f"Ana: {PROMPT}")
        async for message in query(prompt=PROMPT, options=options):
            if isinstance(message, AssistantMessage):
                for block in message.content:
                    if isinstance(block, TextBlock):
                        print(f"Claude: {block.text}")
        [session, *_] = await sessions.list_sessions(project_key_for_directory(os.getcwd()))
        print(f"Kept as session {session['session_id']}; see it with: holdfast --db {DATABASE} threads")


QUIET = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}


class PlayedApi(BaseHTTPRequestHandler):
    """A model that says what the user said before."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        *before, _ = [text for message in request["messages"] if message["role"] == "user" for text in texts(message)]
        reply = f"You said: {' '.join(before)}" if before else "As far as I know, nothing was said before."
        body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events(reply)).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        pass


def texts(message: dict[str, Any]) -> list[str]:
    """What a person said in a message, without what the agent's program adds to it."""
    content = message["content"]
    blocks = [{"text": content}] if isinstance(content, str) else content
    return [text for block in blocks if (text := block.get("text", "")) and not text.startswith("<system-reminder>")]


def events(reply: str) -> list[dict[str, Any]]:
    """An answer as the API streams it."""
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": reply}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), PlayedApi)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as config:
        asyncio.run(main(f"http://127.0.0.1:{server.server_port}", config))
    server.shutdown()
    server.server_close()
