"""A real language model over real HTTP. What it says is poor; that it says it, is what is tested."""

from __future__ import annotations

import socket
import threading
import urllib.parse
from collections.abc import Iterator
from typing import Any, Literal

import msgspec
import pytest

pytest.importorskip("pydantic_ai", reason="extra llm is not installed")
pytest.importorskip("xllamacpp", reason="extra local is not installed")

from holdfast.errors import Misconfigured, ModelFailed
from holdfast.providers.models import local
from holdfast.providers.models.choose import choose
from holdfast.providers.models.local import Local, LocalServer
from holdfast.providers.models.model import Reply

pytestmark = pytest.mark.slow

HELLO: list[dict[str, Any]] = [{"role": "user", "content": "Say hello."}]
TOOL = {
    "type": "function",
    "function": {
        "name": "recall",
        "description": "Look into memory.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    },
}


class Verdict(msgspec.Struct):
    mood: Literal["glad", "sad"]
    sure: bool


@pytest.fixture(scope="module")
def model() -> Iterator[Local]:
    try:
        running = Local(max_tokens=24)
    except Misconfigured as missing:
        pytest.skip(f"no local model: {missing}")
    with running:
        yield running


def test_it_answers(model: Local) -> None:
    reply = model.reply([{"role": "system", "content": "You are brief."}, *HELLO])
    assert reply.text.strip()
    assert reply.usage.input > 0
    assert 0 < reply.usage.output <= 24
    assert reply.stop in {"end", "length"}


def test_the_same_question_gets_the_same_answer(model: Local) -> None:
    assert model.reply(HELLO).text == model.reply(HELLO).text


def test_it_streams(model: Local) -> None:
    *pieces, whole = model.stream(HELLO)
    assert isinstance(whole, Reply)
    assert len(pieces) > 1
    assert "".join(str(piece) for piece in pieces) == whole.text
    assert whole.usage.output > 0


def test_a_stream_may_be_left(model: Local) -> None:
    stream = model.stream(HELLO)
    assert isinstance(next(stream), str)
    stream.close()  # type: ignore[attr-defined]
    assert model.reply(HELLO).text  # the server is free again


def test_tools_and_their_results_are_accepted(model: Local) -> None:
    messages = [
        *HELLO,
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "recall", "arguments": '{"query":"a"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "1", "content": "nothing"},
        {"role": "user", "content": "Go on."},
    ]
    reply = model.reply(messages, tools=[TOOL])
    assert reply.text.strip() or reply.calls


def test_it_can_be_held_to_a_shape(model: Local) -> None:
    verdict, usage = model.extract([{"role": "user", "content": "I love this! Is the writer glad or sad?"}], Verdict)
    assert verdict.mood in {"glad", "sad"}
    assert usage.input > 0


def test_time_runs_out(model: Local) -> None:
    with pytest.raises(ModelFailed) as caught:
        model.reply([{"role": "user", "content": "Tell me a very long story."}], timeout_s=0.001)
    assert (caught.value.reason, caught.value.model) == ("timeout", local.NAME)


def test_nothing_is_left_after_it_is_closed(model: Local) -> None:
    threads = threading.active_count()
    with LocalServer(window=512) as server:
        host = urllib.parse.urlsplit(server.url)
        socket.create_connection((host.hostname, host.port)).close()
    server.close()  # twice is fine
    assert threading.active_count() == threads
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host.hostname, host.port))


def test_it_starts_with_the_first_question_and_again_after_a_close(model: Local) -> None:
    other = choose("local")
    assert isinstance(other, Local)
    other.close()
    assert other.reply(HELLO, timeout_s=60).text
    other.close()
