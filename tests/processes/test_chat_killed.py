"""A chat in a real process, ended in the middle of an answer: by SIGKILL, and by Ctrl-C at a real terminal."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import config

pytest.importorskip("typer", reason="the command's extra is not installed")
pytestmark = pytest.mark.slow

PATIENCE_S = 60.0
SAID = "You like tea, with milk."


class Vendor:
    """A server with OpenAI's chat completions on the loopback address, and what it was asked.

    It has a memory remembered first. Then it begins an answer, and ends it only once it is told to.
    """

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.speaking = threading.Event()
        self.may_end = threading.Event()
        vendor = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: Any) -> None: ...

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                vendor.asked.append(body)
                if body.get("stream"):
                    vendor.stream(self, body)
                else:
                    vendor.whole(self)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def environment(self) -> dict[str, str]:
        return {"OPENAI_BASE_URL": f"http://127.0.0.1:{self._server.server_port}/v1", "OPENAI_API_KEY": "none"}

    def close(self) -> None:
        self.may_end.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def whole(self, handler: BaseHTTPRequestHandler) -> None:
        message = {"role": "assistant", "content": "{}"}
        body = json.dumps({**ENVELOPE, "object": "chat.completion", "choices": [_choice("message", message, "stop")]})
        handler.send_response(200)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body.encode())

    def stream(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.end_headers()
        if not any(message["role"] == "tool" for message in body["messages"]):
            function = {"name": "remember", "arguments": json.dumps({"text": "Takes tea with milk"})}
            calls = [{"index": 0, "id": "call-1", "type": "function", "function": function}]
            _send(handler, {"role": "assistant", "tool_calls": calls})
            _send(handler, {}, "tool_calls")
            return
        first, _, rest = SAID.partition(", ")
        _send(handler, {"role": "assistant", "content": f"{first}, "})
        self.speaking.set()
        self.may_end.wait()
        _send(handler, {"content": rest})
        _send(handler, {}, "stop")


USAGE = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
ENVELOPE = {"id": "1", "created": 1, "model": "tea", "usage": USAGE}


def _choice(name: str, said: dict[str, Any], end: str | None) -> dict[str, Any]:
    return {"index": 0, name: said, "finish_reason": end}


def _send(handler: BaseHTTPRequestHandler, delta: dict[str, Any], end: str | None = None) -> None:
    data = {**ENVELOPE, "object": "chat.completion.chunk", "choices": [_choice("delta", delta, end)]}
    try:
        handler.wfile.write(f"data: {json.dumps(data)}\n\n".encode())
        handler.wfile.flush()
    except OSError:  # whoever asked was killed
        pass


@pytest.fixture
def vendor() -> Iterator[Vendor]:
    pytest.importorskip("pydantic_ai", reason="the extra llm is not installed")
    found = Vendor()
    yield found
    found.close()


def environment(db: Path, **more: str) -> dict[str, str]:
    keys = {*config.VENDOR_MODELS, "OPENAI_BASE_URL", "HOLDFAST_MODEL"}
    kept = {name: value for name, value in os.environ.items() if name not in keys}
    own = {"HOLDFAST_DB": str(db), "HOLDFAST_EMBEDDER": "none", "PYTHONIOENCODING": "utf-8"}
    return {**kept, **own, **more}


def command(*args: str) -> list[str]:
    return [sys.executable, "-m", "holdfast", "chat", "--user", "ana", *args]


def talk(db: Path, *args: str, says: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*args), input=says, env=environment(db, **more), capture_output=True, encoding="utf-8",
        timeout=PATIENCE_S, check=False,
    )  # fmt: skip


def test_one_that_is_killed_in_its_answer_is_told_and_gone_on_with(tmp_path: Path, vendor: Vendor) -> None:
    db = tmp_path / "agent.db"
    env = environment(db, **vendor.environment)
    first = subprocess.Popen(
        command("--model", "openai:tea"), env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    )
    assert first.stdin is not None
    assert first.stdout is not None
    first.stdin.write("What do I drink?\n")
    first.stdin.flush()
    assert vendor.speaking.wait(PATIENCE_S), "it was never asked to go on after the tool"
    first.kill()
    assert first.wait(PATIENCE_S) == -signal.SIGKILL
    told = first.stdout.read()
    first.stdin.close()
    first.stdout.close()
    assert SAID not in told

    vendor.may_end.set()
    before = len(vendor.asked)
    again = talk(db, "--model", "openai:tea", **vendor.environment)
    assert (again.returncode, again.stderr) == (0, "")
    assert "Your last question was never answered (#1):\n  “What do I drink?”\n" in again.stdout
    assert re.search(r"not done again:\n  ✓  remember  Remembered as \[m\w+\]", again.stdout)
    assert f"Answering it now:\n{SAID}\n" in again.stdout
    resumed = vendor.asked[before]
    assert [message["role"] for message in resumed["messages"]][-2:] == ["assistant", "tool"], (
        "the tool is used already"
    )
    with holdfast.open(db, embedder=None) as store:
        kinds = [entry.kind for entry in store.thread("chat").log()]
        assert kinds.count("message") == 2
        assert [memory.text for memory in store.memory(user="ana").memories()] == ["Takes tea with milk"]
        assert store.verify().ok


def test_one_that_is_killed_at_any_moment_loses_nothing_that_it_answered(tmp_path: Path) -> None:
    """Each answer was on the screen before the kill, so each is on record; and the next process goes on."""
    db = tmp_path / "agent.db"
    answered = 0
    for number in range(3):
        chat = subprocess.Popen(
            command("--model", "none", "--json"), env=environment(db), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            encoding="utf-8",
        )  # fmt: skip
        assert chat.stdin is not None
        assert chat.stdout is not None
        opened = json.loads(chat.stdout.readline())
        assert opened["entries"] >= 2 * answered
        if opened["unanswered"]:
            assert json.loads(chat.stdout.readline())["event"] == "answered"
            answered += 1
        chat.stdin.write(f"I own {number + 2} houses.\nI own {number + 20} boats.\n")
        chat.stdin.flush()
        assert json.loads(chat.stdout.readline())["event"] == "answered"
        answered += 1
        chat.kill()
        chat.wait(PATIENCE_S)
        answered += sum(json.loads(line)["event"] == "answered" for line in chat.stdout if line.endswith("\n"))
        chat.stdin.close()
        chat.stdout.close()
    done = talk(db, "--model", "none", says="How many houses do I own?\n")
    assert done.returncode == 0
    assert "Welcome back: " in done.stdout
    assert "I own 4 houses." in done.stdout
    with holdfast.open(db, embedder=None) as store:
        said = [entry for entry in store.thread("chat").log() if entry.kind == "message"]
        answers = [entry for entry in said if entry.content["role"] == "assistant"]
        assert len(answers) >= answered + 1
        assert len(answers) * 2 == len(said), "no question is without its answer in the end"
        assert store.verify().ok


AT_A_TERMINAL = """
import fcntl, signal, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C reaches this process,
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests run in the background, which ignores it
from holdfast.doors.cli import main
main()
"""


class Terminal:
    """A chat at a terminal of its own."""

    def __init__(self, env: dict[str, str], *args: str) -> None:
        self._mine, theirs = os.openpty()
        self._shown, self._place = "", 0
        self.process = subprocess.Popen(
            [sys.executable, "-c", AT_A_TERMINAL, *command(*args)[3:]], stdin=theirs, stdout=theirs, stderr=theirs,
            env={**env, "TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"}, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)

    def wait_for(self, text: str) -> None:
        """Read until a text is shown, behind what was waited for before."""
        while text not in self._shown[self._place :]:
            ready, _, _ = select.select([self._mine], [], [], PATIENCE_S)
            try:
                more = os.read(self._mine, 65_536) if ready else b""
            except OSError:  # the other side is gone
                more = b""
            assert more, f"{text!r} was not shown: {self._shown[self._place :]!r}"
            self._shown += more.decode("utf-8", "replace")
        self._place = self._shown.index(text, self._place) + len(text)

    def type(self, keys: str) -> None:
        os.write(self._mine, keys.encode())

    def interrupt(self) -> None:
        """Press Ctrl-C, and again while nothing happens: one that comes just before Python waits for a key is noticed
        only with the next key."""
        for _ in range(5):
            self.type("\x03")
            if select.select([self._mine], [], [], 5.0)[0]:
                return

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._mine)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_ctrl_c_in_an_answer_keeps_the_question_and_at_the_prompt_ends_it(tmp_path: Path, vendor: Vendor) -> None:
    db = tmp_path / "agent.db"
    seat = Terminal(environment(db, **vendor.environment), "--model", "openai:tea")
    try:
        seat.wait_for("\n> ")
        seat.type("What do I drink?\n")
        seat.wait_for("You like tea,")
        seat.type("\x03")
        seat.wait_for("Your question is stored: /resume answers it")
        seat.wait_for("> ")
        vendor.may_end.set()
        seat.type("/resume\n")
        seat.wait_for(SAID)
        seat.wait_for("> ")
        seat.interrupt()
        seat.wait_for("Handoff written (revision 1).")
        assert seat.process.wait(PATIENCE_S) == 0
    finally:
        seat.close()
    with holdfast.open(db, embedder=None) as store:
        assert [memory.text for memory in store.memory(user="ana").memories()] == ["Takes tea with milk"]
        assert store.thread("chat").handoff.history()
