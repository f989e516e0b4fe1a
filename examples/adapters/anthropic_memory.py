"""An assistant of Anthropic's SDK whose memory tool keeps its files in a store.

    python examples/adapters/anthropic_memory.py

Run it twice: the second run is another process, and knows what the first was told. It works offline, because a server
in this process plays the Messages API, with a model that follows a few fixed rules; with a key, leave that out.
Needs holdfast[anthropic].
The store is ``holdfast-anthropic-memory.db`` in the temporary folder.
"""

from __future__ import annotations

import json
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from anthropic import Anthropic

import holdfast
from holdfast.adapters.anthropic import HoldfastMemoryTool

DATABASE = Path(tempfile.gettempdir(), "holdfast-anthropic-memory.db")
NOTES = "/memories/seats.md"


def main() -> None:
    api = ThreadingHTTPServer(("127.0.0.1", 0), PlayedApi)
    threading.Thread(target=api.serve_forever, daemon=True).start()
    client = Anthropic(api_key="none", base_url=f"http://127.0.0.1:{api.server_port}")
    with holdfast.open(DATABASE) as store, client:
        tool = HoldfastMemoryTool(store, user="ana")
        question = "Where do I like to sit? If you do not know: on the aisle."
        print(f"Ana: {question}")
        runner = client.beta.messages.tool_runner(
            model="claude-sonnet-5-5",
            max_tokens=500,
            messages=[{"role": "user", "content": question}],
            tools=[tool],
        )
        for message in runner:
            for block in message.content:
                if block.type == "tool_use":
                    print(f"      ({block.input['command']} {block.input['path']})")
                elif block.type == "text":
                    print(f"Claude: {block.text}")
        print(f"{len(tool.history(NOTES))} version(s) of {NOTES} are kept.")
    api.shutdown()
    api.server_close()


class PlayedApi(BaseHTTPRequestHandler):
    """A model of three rules: look first; answer from what is there; otherwise write it down."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        content = self.reply([block for m in request["messages"] for block in m["content"] if isinstance(block, dict)])
        used = any(block["type"] == "tool_use" for block in content)
        body = json.dumps({
            "id": "msg_1", "type": "message", "role": "assistant", "model": request["model"], "content": content,
            "stop_reason": "tool_use" if used else "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }).encode()  # fmt: skip
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def reply(self, blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
        results = [str(block["content"]) for block in blocks if block["type"] == "tool_result"]
        if not results:
            return [
                {"type": "tool_use", "id": "toolu_1", "name": "memory", "input": {"command": "view", "path": NOTES}}
            ]
        if "aisle" in results[-1]:
            return [{"type": "text", "text": "You like aisle seats."}]
        if "does not exist" in results[-1]:
            write = {"command": "create", "path": NOTES, "file_text": "Ana likes aisle seats.\n"}
            return [{"type": "tool_use", "id": "toolu_2", "name": "memory", "input": write}]
        return [{"type": "text", "text": "I know nothing about you yet, so I wrote that down."}]

    def log_message(self, *args: Any) -> None:
        pass


if __name__ == "__main__":
    main()
