"""A language model over real HTTP, on its good days and on all the others."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import http.server
import json
import socket
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

pytest.importorskip("pydantic_ai", reason="extra llm is not installed")

from holdfast.errors import HoldfastError, Invalid, Misconfigured, ModelFailed, TooLarge
from holdfast.providers.models.model import Reply, ToolCall, Usage
from holdfast.providers.models.vendor import VendorModel
from holdfast.testing import ManualClock

KEY = "sk-very-secret-1234"
HELLO: list[dict[str, Any]] = [{"role": "user", "content": "Hello"}]
TOOL = {
    "type": "function",
    "function": {
        "name": "recall",
        "description": "Look into memory.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    },
}
USAGE = {
    "prompt_tokens": 30,
    "completion_tokens": 5,
    "total_tokens": 35,
    "prompt_tokens_details": {"cached_tokens": 20},
}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

Answer = Callable[[http.server.BaseHTTPRequestHandler, dict[str, Any]], None]


class City(msgspec.Struct):
    name: str
    people: int


# What a server may say


def send(
    handler: http.server.BaseHTTPRequestHandler,
    status: int,
    body: Any,
    kind: str = "application/json",
    **headers: str,
) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(data)))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(data)


def completion(text: str | None = None, calls: list[Any] | None = None, stop: str = "stop", **more: Any) -> Any:
    message = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {}), **more}
    choice = {"index": 0, "message": message, "finish_reason": stop}
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": USAGE}


def call(arguments: str, name: str = "recall", id: str = "c1") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def says(text: str | None = None, calls: list[Any] | None = None, stop: str = "stop", **more: Any) -> Answer:
    return lambda handler, asked: send(handler, 200, completion(text, calls, stop, **more))


def status(number: int, message: str = "no", **more: Any) -> Answer:
    headers = {name: more.pop(name) for name in list(more) if name == "Retry_After"}
    return lambda handler, asked: send(handler, number, {"error": {"message": message, **more}}, **headers)


def raw(body: Any, kind: str = "application/json") -> Answer:
    return lambda handler, asked: send(handler, 200, body, kind)


def chunk(delta: dict[str, Any], stop: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": stop}
    return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def streams(*chunks: dict[str, Any], done: bool = True, then: Callable[[], object] | None = None) -> Answer:
    """Server-sent events, ended as they should be or by hanging up."""

    def answer(handler: http.server.BaseHTTPRequestHandler, asked: dict[str, Any]) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        for one in chunks:
            handler.wfile.write(b"data: " + json.dumps(one).encode() + b"\n\n")
            handler.wfile.flush()
        if then is not None:
            then()
        if done:
            end = {
                "id": "1",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": "m",
                "choices": [],
                "usage": USAGE,
            }
            handler.wfile.write(b"data: " + json.dumps(end).encode() + b"\n\ndata: [DONE]\n\n")
        handler.close_connection = True

    return answer


class Server:
    """A server on loopback that answers what the test has put in line, and politely after that."""

    def __init__(self) -> None:
        self.line: list[Answer] = []
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.closing = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append(body)
                outer.headers.append({name.lower(): value for name, value in self.headers.items()})
                outer.paths.append(self.path)
                answer = outer.line.pop(0) if outer.line else says("Hello to you.")
                with contextlib.suppress(OSError):  # the caller has hung up, as some of these tests want
                    answer(self, body)

            def log_message(self, *args: object) -> None:
                """Say nothing: the output of a test run is for people."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = False
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def silent(self, handler: http.server.BaseHTTPRequestHandler, asked: dict[str, Any]) -> None:
        self.closing.wait()

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def model(server: Server, clock: ManualClock) -> VendorModel:
    return VendorModel("openai:m", api_key=KEY, base_url=f"{server.url}/v1", clock=clock)


def last(pieces: Iterator[str | Reply]) -> Reply:
    *_, whole = pieces
    assert isinstance(whole, Reply)
    return whole


# Good days


def test_a_good_day(server: Server, model: VendorModel) -> None:
    reply = model.reply(HELLO, tools=[TOOL])
    assert reply == Reply("Hello to you.", usage=Usage(30, 5, 20), model="m", stop="end")
    assert server.paths == ["/v1/chat/completions"]
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert server.asked[0]["model"] == "m"
    assert server.asked[0]["messages"] == HELLO
    sent = server.asked[0]["tools"][0]["function"]
    assert (sent["name"], sent["description"]) == ("recall", "Look into memory.")
    assert sent["parameters"]["properties"] == {"query": {"type": "string"}}


def test_a_conversation_arrives_as_it_was_said(server: Server, model: VendorModel) -> None:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "Where does she sit? 🙂 她"},
        {"role": "assistant", "content": "Let me look.", "tool_calls": [call('{"query":"seat"}')]},
        {"role": "tool", "tool_call_id": "c1", "content": "aisle"},
        {"role": "assistant", "content": "By the aisle."},
        {"role": "user", "content": "Thanks."},
    ]
    model.reply(messages, tools=[TOOL])
    assert server.asked[0]["messages"] == messages


def test_a_reply_is_the_next_message(server: Server, model: VendorModel) -> None:
    server.line = [says("One moment.", [call('{"query": "seat"}')], "tool_calls")]
    reply = model.reply(HELLO, tools=[TOOL])
    assert (reply.text, reply.stop) == ("One moment.", "tools")
    assert reply.calls == (ToolCall("c1", "recall", {"query": "seat"}),)
    model.reply([*HELLO, reply.message(), {"role": "tool", "tool_call_id": "c1", "content": "aisle"}], tools=[TOOL])
    assert server.asked[1]["messages"][1:] == [
        {"role": "assistant", "content": "One moment.", "tool_calls": [call('{"query":"seat"}')]},
        {"role": "tool", "tool_call_id": "c1", "content": "aisle"},
    ]


def test_pictures_are_sent_and_what_nobody_knows_is_named(server: Server, model: VendorModel) -> None:
    url, data = "https://example.org/seat.png", f"data:image/png;base64,{PIXEL}"
    parts = [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "image_url", "image_url": {"url": data}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
        {"type": "hologram", "data": "…"},
        {"type": "image_url"},
    ]
    model.reply([{"role": "user", "content": parts}])
    sent = server.asked[0]["messages"][0]["content"]
    assert [part.get("text") or part["image_url"]["url"] for part in sent] == [
        "Look:", url, data, data, "[hologram: not shown]", "[image_url: cannot be read]",
    ]  # fmt: skip


def test_settings_go_with_every_request(server: Server) -> None:
    settings = {"temperature": 0.0, "max_tokens": 7}
    VendorModel("openai:m", base_url=server.url, settings=settings).reply(HELLO)
    assert server.asked[0]["temperature"] == 0.0
    assert 7 in {server.asked[0].get("max_tokens"), server.asked[0].get("max_completion_tokens")}


def test_a_key_for_openai_goes_to_no_other_server(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    VendorModel("openai:m", base_url=server.url).reply(HELLO)
    assert KEY not in str(server.headers)


def test_no_proxy_leads_to_this_machine(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert VendorModel("openai:m", base_url=server.url, retries=0).reply(HELLO).text == "Hello to you."


def test_it_can_be_used_where_an_event_loop_runs(server: Server, model: VendorModel) -> None:
    async def in_a_notebook() -> tuple[Reply, Reply]:
        server.line = [says("One."), streams(chunk({"content": "Two."}), chunk({}, "stop"))]
        return model.reply(HELLO), last(model.stream(HELLO))

    one, two = asyncio.run(in_a_notebook())
    assert (one.text, two.text) == ("One.", "Two.")


def test_many_threads_share_one_model(server: Server, model: VendorModel) -> None:
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: model.reply(HELLO), range(16)))
    assert {reply.text for reply in replies} == {"Hello to you."}
    assert len(server.asked) == 16


@pytest.mark.parametrize(("said", "stop"), [("length", "length"), ("content_filter", "refused"), ("stop", "end")])
def test_why_it_stopped(server: Server, model: VendorModel, said: str, stop: str) -> None:
    server.line = [says("Well", stop=said)]
    assert model.reply(HELLO).stop == stop


def test_a_refusal_is_told(server: Server, model: VendorModel) -> None:
    server.line = [says(refusal="I would rather not.")]
    reply = model.reply(HELLO)
    assert (reply.text, reply.stop) == ("I would rather not.", "refused")


def test_another_vendor_over_its_own_protocol(server: Server) -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 0, "output_tokens": 4}
    content = [
        {"type": "text", "text": "One moment."},
        {"type": "tool_use", "id": "t1", "name": "recall", "input": {"query": "seat"}},
    ]
    answer = {
        "id": "1", "type": "message", "role": "assistant", "model": "claude-x", "content": content,
        "stop_reason": "tool_use", "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    server.line = [raw(answer)]
    model = VendorModel("anthropic:claude-x", api_key=KEY, base_url=server.url)
    reply = model.reply([{"role": "system", "content": "Be short."}, *HELLO], tools=[TOOL])
    assert server.paths == ["/v1/messages"]
    assert "Be short." in json.dumps(server.asked[0]["system"])
    assert KEY in str(server.headers[0])
    assert reply == Reply(
        "One moment.", (ToolCall("t1", "recall", {"query": "seat"}),), Usage(100, 4, 90), "claude-x", "tools"
    )


# Streams


def test_a_stream_comes_in_pieces_and_ends_with_the_whole(server: Server, model: VendorModel) -> None:
    server.line = [
        streams(chunk({"role": "assistant", "content": "Hel"}), chunk({"content": "lo."}), chunk({}, "stop"))
    ]
    assert list(model.stream(HELLO)) == ["Hel", "lo.", Reply("Hello.", usage=Usage(30, 5, 20), model="m", stop="end")]
    assert server.asked[0]["stream"] is True


def test_a_streamed_tool_call(server: Server, model: VendorModel) -> None:
    begun = {"index": 0, **call('{"que')}
    rest = {"index": 0, "function": {"arguments": 'ry": "seat"}'}}
    server.line = [streams(chunk({"tool_calls": [begun]}), chunk({"tool_calls": [rest]}), chunk({}, "tool_calls"))]
    reply = last(model.stream(HELLO, tools=[TOOL]))
    assert (reply.text, reply.stop, reply.calls) == ("", "tools", (ToolCall("c1", "recall", {"query": "seat"}),))


@pytest.mark.parametrize("pieces", [0, 1, 2])
def test_who_stops_listening_ends_the_request(server: Server, model: VendorModel, pieces: int) -> None:
    waiting = streams(chunk({"content": "one "}), chunk({"content": "two "}), then=server.closing.wait)
    server.line = [waiting]
    stream = model.stream(HELLO)
    assert [next(stream) for _ in range(pieces)] == ["one ", "two "][:pieces]
    stream.close()  # type: ignore[attr-defined]
    assert not [thread for thread in threading.enumerate() if thread.name == "holdfast-model"]


@pytest.mark.parametrize("chunks", [["It is nine "], ["It ", "is ", "nine "]])
def test_a_stream_that_breaks_off_keeps_what_was_said(server: Server, model: VendorModel, chunks: list[str]) -> None:
    server.line = [streams(*(chunk({"content": text}) for text in chunks), done=False)]
    heard = []
    with pytest.raises(ModelFailed) as caught:
        heard.extend(model.stream(HELLO))
    assert (caught.value.reason, caught.value.partial, caught.value.model) == ("broken", "It is nine ", "openai:m")
    assert len(server.asked) == 1  # what was heard is not said again


def test_an_error_inside_a_stream_keeps_what_was_said(server: Server, model: VendorModel) -> None:
    server.line = [streams(chunk({"content": "It is"}), {"error": {"message": "overloaded", "code": 500}}, done=False)]
    with pytest.raises(ModelFailed) as caught:
        list(model.stream(HELLO))
    assert (caught.value.reason, caught.value.partial) == ("broken", "It is")


def test_a_stream_that_falls_silent_keeps_what_was_said(server: Server, model: VendorModel) -> None:
    server.line = [streams(chunk({"content": "It is"}), then=server.closing.wait)]
    with pytest.raises(ModelFailed) as caught:
        list(model.stream(HELLO, timeout_s=0.5))
    assert (caught.value.reason, caught.value.partial) == ("timeout", "It is")


def test_a_stream_that_never_began_is_tried_again(server: Server, model: VendorModel) -> None:
    server.line = [status(503), streams(done=False), streams(chunk({"content": "Here."}), chunk({}, "stop"))]
    assert last(model.stream(HELLO)).text == "Here."
    assert len(server.asked) == 3


# Bad days


def test_what_passes_is_tried_again(server: Server, model: VendorModel, clock: ManualClock) -> None:
    server.line = [status(500), status(503)]
    before = clock.now()
    assert model.reply(HELLO).text == "Hello to you."
    assert len(server.asked) == 3
    assert (clock.now() - before) // 1_000 == 1_500  # half a second, then one


def test_it_waits_as_long_as_the_server_asks(server: Server, model: VendorModel, clock: ManualClock) -> None:
    server.line = [status(429, Retry_After="7")]
    before = clock.now()
    assert model.reply(HELLO).text == "Hello to you."
    assert (clock.now() - before) // 1_000 == 7_000


@pytest.mark.parametrize(
    ("answer", "reason", "times"),
    [
        (status(500, "The kitchen is on fire"), "server", 3),
        (status(502), "server", 3),
        (status(429, "slow down"), "busy", 3),
        (status(429, "slow down", Retry_After="3600"), "busy", 1),
        (status(429, "no money left", code="insufficient_quota"), "quota", 1),
        (raw({**completion("x"), "choices": []}), "unreadable", 3),
        (raw({"surprise": True}), "unreadable", 3),
        (raw([]), "unreadable", 3),
        (raw(b'{"choices": [{"mess'), "unreadable", 3),
        (raw(b"<html>Welcome</html>", "text/html"), "unreadable", 3),
        (raw(b"", "text/plain"), "unreadable", 3),
        (raw(b"\xff\xfe\x00"), "unreadable", 3),
    ],
)
def test_what_does_not_pass(server: Server, model: VendorModel, answer: Answer, reason: str, times: int) -> None:
    server.line = [answer] * times
    with pytest.raises(ModelFailed) as caught:
        model.reply(HELLO)
    assert (caught.value.reason, caught.value.model, caught.value.partial) == (reason, "openai:m", "")
    assert len(server.asked) == times


def test_a_server_that_never_answers(server: Server, model: VendorModel) -> None:
    server.line = [server.silent]
    with pytest.raises(ModelFailed, match="time") as caught:
        model.reply(HELLO, timeout_s=0.5)
    assert caught.value.reason == "timeout"


def test_no_wait_reaches_over_the_limit(server: Server, model: VendorModel, clock: ManualClock) -> None:
    server.line = [status(429, Retry_After="20")]
    before = clock.now()
    with pytest.raises(ModelFailed):
        model.reply(HELLO, timeout_s=10)
    assert (clock.now() - before) // 1_000 == 0


def test_nobody_at_home(clock: ManualClock) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ModelFailed) as caught:
        VendorModel("openai:m", base_url=f"http://127.0.0.1:{port}", clock=clock).reply(HELLO)
    assert caught.value.reason == "connection"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (status(401, f"Incorrect API key provided: {KEY}"), Misconfigured),
        (status(403), Misconfigured),
        (status(404, "no such model"), Misconfigured),
        (status(400, "bad tool"), Invalid),
        (status(400, "This model's maximum context length is 10 tokens", code="context_length_exceeded"), TooLarge),
    ],
)
def test_what_trying_again_does_not_help(
    server: Server, model: VendorModel, answer: Answer, kind: type[HoldfastError]
) -> None:
    server.line = [answer]
    with pytest.raises(kind) as caught:
        model.reply(HELLO)
    assert len(server.asked) == 1
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_arguments_that_cannot_be_read_come_as_they_are(server: Server, model: VendorModel) -> None:
    calls = [call('{"query": "se', id="c1"), call("[1]", id="c2"), call("", id="c3"), call("{}", "launch", id="c4")]
    server.line = [says(None, calls, "tool_calls")]
    broken, listed, empty, unknown = model.reply(HELLO, tools=[TOOL]).calls
    assert (broken.arguments, "not JSON" in broken.invalid) == ({"raw": '{"query": "se'}, True)
    assert (listed.arguments, "object" in listed.invalid) == ({"raw": "[1]"}, True)
    assert (empty.arguments, empty.invalid) == ({}, "")
    assert (unknown.name, unknown.invalid) == ("launch", "")  # who has the tools knows which there are


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "oracle", "content": "x"}],
        ["Hello"],
        [{"role": "tool", "tool_call_id": "c9", "content": "x"}],
        [{"role": "assistant", "tool_calls": [{"id": "c1"}]}],
    ],
)
def test_messages_that_make_no_sense_are_not_sent(server: Server, model: VendorModel, messages: Any) -> None:
    with pytest.raises(Invalid):
        model.reply(messages)
    assert server.asked == []


def test_a_tool_without_a_name_is_not_sent(server: Server, model: VendorModel) -> None:
    with pytest.raises(Invalid, match="Tool 0"):
        model.reply(HELLO, tools=[{"type": "function", "function": {}}])
    assert server.asked == []


# Answers of a shape


def test_an_answer_of_a_shape(server: Server, model: VendorModel) -> None:
    server.line = [says('{"name": "Oslo", "people": 700000}')]
    assert model.extract(HELLO, City) == (City("Oslo", 700000), Usage(30, 5, 20))
    wanted = server.asked[0]["response_format"]["json_schema"]
    assert wanted["name"] == "City"
    assert set(wanted["schema"]["properties"]) == {"name", "people"}


def test_an_answer_of_a_shape_through_a_tool(server: Server) -> None:
    server.line = [says(None, [call('{"name": "Oslo", "people": 700000}', "City")], "tool_calls")]
    model = VendorModel("openai:m", base_url=server.url, mode="tool")
    assert model.extract(HELLO, City)[0] == City("Oslo", 700000)
    assert server.asked[0]["tools"][0]["function"]["name"] == "City"


def test_an_answer_of_a_shape_by_asking_for_it(server: Server) -> None:
    server.line = [says('```json\n{"name": "Oslo", "people": 700000}\n```')]
    model = VendorModel("openai:m", base_url=server.url, mode="prompted")
    assert model.extract(HELLO, City)[0] == City("Oslo", 700000)
    assert '"people"' in json.dumps(server.asked[0]["messages"]).replace("\\", "")


def test_an_answer_that_does_not_fit_is_asked_for_once_more(server: Server, model: VendorModel) -> None:
    server.line = [says('{"name": "Oslo", "people": "many"}'), says('{"name": "Oslo", "people": 700000}')]
    assert model.extract(HELLO, City) == (City("Oslo", 700000), Usage(60, 10, 40, 2))
    first, answer, correction = server.asked[1]["messages"]
    assert [first] == HELLO
    assert answer == {"role": "assistant", "content": '{"name": "Oslo", "people": "many"}'}
    assert "$.people" in correction["content"]


@pytest.mark.parametrize("wrong", ["Oslo is lovely.", '{"name": "Oslo"}', "", "[]", '{"name": "Os'])
def test_an_answer_that_never_fits(server: Server, model: VendorModel, wrong: str) -> None:
    server.line = [says(wrong)] * 2
    with pytest.raises(ModelFailed, match="City") as caught:
        model.extract(HELLO, City)
    assert (caught.value.reason, caught.value.usage) == ("invalid", Usage(60, 10, 40, 2))
    assert len(server.asked) == 2


# Names and keys


@pytest.mark.parametrize("name", ["claude", "openai:", ":x", " : "])
def test_a_name_has_two_halves(name: str) -> None:
    with pytest.raises(Misconfigured, match="vendor:model"):
        VendorModel(name)


@pytest.mark.parametrize("options", [{"mode": "magic"}, {"timeout_s": 0}, {"retries": -1}])
def test_options_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(Misconfigured):
        VendorModel("openai:m", **options)


def test_what_is_missing_is_named_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(Misconfigured, match="nobody"):
        VendorModel("nobody:m").check()
    with pytest.raises(Misconfigured, match="ANTHROPIC_API_KEY"):
        VendorModel("anthropic:m").check()
    VendorModel("anthropic:m", api_key=KEY).check()


def test_the_key_is_nowhere_to_be_seen(model: VendorModel) -> None:
    assert KEY not in repr(model)
