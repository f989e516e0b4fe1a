"""An embedding server over real HTTP, on its good days and on all the others."""

from __future__ import annotations

import contextlib
import http.server
import json
import logging
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

from holdfast.errors import HoldfastError, Invalid, Misconfigured, Unavailable
from holdfast.providers.choose import choose
from holdfast.providers.embedding import checked
from holdfast.providers.openai import OpenAIEmbedder
from holdfast.testing import ManualClock

KEY = "sk-very-secret-1234"
Answer = Callable[[http.server.BaseHTTPRequestHandler, dict[str, Any]], None]


def vector(text: str) -> list[float]:
    return [float(len(text)), 1.0, 2.0]


def send(handler: http.server.BaseHTTPRequestHandler, status: int, body: Any, **headers: str) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("Content-Length", headers.pop("length", str(len(data))))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(data)


def fine(handler: http.server.BaseHTTPRequestHandler, asked: dict[str, Any]) -> None:
    items = [{"object": "embedding", "index": at, "embedding": vector(text)} for at, text in enumerate(asked["input"])]
    send(handler, 200, {"object": "list", "data": items, "model": asked["model"]})


def data(*rows: Any) -> Answer:
    return lambda handler, asked: send(handler, 200, {"data": list(rows)})


def status(code: int, message: str = "no", **headers: str) -> Answer:
    return lambda handler, asked: send(handler, code, {"error": {"message": message}}, **headers)


class Server:
    """A server on loopback that answers what the test has put in line, and rightly after that."""

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
                answer = outer.line.pop(0) if outer.line else fine
                with contextlib.suppress(OSError):  # the caller has hung up, as some of these tests want
                    answer(self, body)

            def log_message(self, *args: object) -> None:
                """Say nothing: the output of a test run is for people."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = False
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

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
def embedder(server: Server, clock: ManualClock) -> OpenAIEmbedder:
    return OpenAIEmbedder("small", api_key=KEY, base_url=f"{server.url}/v1", clock=clock)


def test_a_good_day(server: Server, embedder: OpenAIEmbedder) -> None:
    rows = checked(embedder).embed(["a", "bbb"])
    expected = numpy.array([vector("a"), vector("bbb")])
    assert numpy.allclose(rows, expected / numpy.linalg.norm(expected, axis=1, keepdims=True))
    assert server.paths == ["/v1/embeddings"]
    assert server.asked == [{"model": "small", "input": ["a", "bbb"], "encoding_format": "float"}]
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_without_a_key_none_is_sent(server: Server) -> None:
    OpenAIEmbedder("small", base_url=server.url).embed(["a"])
    assert "authorization" not in server.headers[0]
    assert server.paths == ["/v1/embeddings"]  # an address without a path gets the usual one


def test_texts_of_any_script_arrive_as_they_are(server: Server, embedder: OpenAIEmbedder) -> None:
    texts = ["她喜欢", "تفضل", "🙂", 'quotes " and \\', "line\nbreak", "\ud83d"]
    embedder.embed(texts)
    assert server.asked[0]["input"] == texts


def test_requests_are_no_larger_than_asked(server: Server) -> None:
    texts = [str(number) * (number + 1) for number in range(7)]
    rows = OpenAIEmbedder("small", base_url=server.url, batch=3).embed(texts)
    assert [len(asked["input"]) for asked in server.asked] == [3, 3, 1]
    assert rows[:, 0].tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_a_dimension_can_be_asked_for(server: Server) -> None:
    embedder = OpenAIEmbedder("small", base_url=server.url, dimensions=3)
    assert (embedder.name, embedder.dimension) == ("openai:small/3", 3)
    assert server.asked == []
    embedder.embed(["a"])
    assert server.asked[0]["dimensions"] == 3


def test_the_dimension_is_found_once(server: Server, embedder: OpenAIEmbedder) -> None:
    assert [embedder.dimension, embedder.dimension] == [3, 3]
    assert len(server.asked) == 1


def test_the_first_texts_tell_the_dimension(server: Server, embedder: OpenAIEmbedder) -> None:
    checking = checked(embedder)
    checking.embed(["a"])
    assert checking.dimension == 3
    assert len(server.asked) == 1


@pytest.mark.parametrize("order", [[2, 0, 1], [1, 2, 0]])
def test_vectors_are_put_in_the_order_of_the_texts(server: Server, embedder: OpenAIEmbedder, order: list[int]) -> None:
    texts = ["a", "bb", "ccc"]
    server.line = [data(*({"index": at, "embedding": vector(texts[at])} for at in order))]
    assert embedder.embed(texts)[:, 0].tolist() == [1, 2, 3]


def test_vectors_without_numbers_are_taken_as_they_come(server: Server, embedder: OpenAIEmbedder) -> None:
    server.line = [data({"embedding": vector("a")}, {"embedding": vector("bb")})]
    assert embedder.embed(["a", "bb"])[:, 0].tolist() == [1, 2]


# What passes


@pytest.mark.parametrize("code", [408, 429, 500, 502, 503, 504])
def test_what_passes_is_tried_again(server: Server, embedder: OpenAIEmbedder, code: int) -> None:
    server.line = [status(code), status(code)]
    assert embedder.embed(["a"])[0].tolist() == vector("a")
    assert len(server.asked) == 3


def test_the_server_says_how_long_to_wait(server: Server, embedder: OpenAIEmbedder, clock: ManualClock) -> None:
    server.line = [status(429, Retry_After="7")]
    before = clock.now()
    embedder.embed(["a"])
    assert 7.0 <= (clock.now() - before) / 1e6 < 7.1


def test_or_until_when(server: Server, embedder: OpenAIEmbedder, clock: ManualClock) -> None:
    server.line = [status(503, Retry_After="Thu, 01 Jan 2026 00:00:12 GMT")]  # the clock starts at midnight
    before = clock.now()
    embedder.embed(["a"])
    assert 11.0 <= (clock.now() - before) / 1e6 < 12.1


@pytest.mark.parametrize("value", ["soon", "", "-5", "nan", "Thu, 99 Foo 2026", "1e9"])
def test_a_wait_that_cannot_be_read_is_a_short_one(
    server: Server, embedder: OpenAIEmbedder, clock: ManualClock, value: str
) -> None:
    server.line = [status(429, Retry_After=value)]
    before = clock.now()
    embedder.embed(["a"])
    assert (clock.now() - before) / 1e6 < 1.0


def test_a_long_wait_is_left_to_the_caller(server: Server, embedder: OpenAIEmbedder, clock: ManualClock) -> None:
    server.line = [status(429, "quota", Retry_After="3600")]
    before = clock.now()
    with pytest.raises(Unavailable, match="429: quota") as caught:
        embedder.embed(["a"])
    assert caught.value.retry_after == 3600.0
    assert (clock.now() - before) / 1e6 < 0.1
    assert len(server.asked) == 1


@pytest.mark.parametrize("answer", [status(429), status(500)])
def test_what_does_not_pass_is_given_up(server: Server, embedder: OpenAIEmbedder, answer: Answer) -> None:
    server.line = [answer] * 9
    with pytest.raises(Unavailable) as caught:
        embedder.embed(["a"])
    assert caught.value.retryable
    assert len(server.asked) == 3


def _cut(handler: http.server.BaseHTTPRequestHandler, asked: dict[str, Any]) -> None:
    whole = json.dumps({"data": [{"index": 0, "embedding": vector("a")}]}).encode()
    send(handler, 200, whole[:-9], length=str(len(whole)))
    handler.close_connection = True


BROKEN: dict[str, Answer] = {
    "broken off": _cut,
    "a part of JSON": lambda handler, asked: send(handler, 200, b'{"data": [{"embedd'),
    "not JSON": lambda handler, asked: send(handler, 200, b"<html>gateway</html>"),
    "not UTF-8": lambda handler, asked: send(handler, 200, b'{"data": "\xff\xfe"}'),
    "deep": lambda handler, asked: send(handler, 200, b"[" * 200_000),
    "nothing": lambda handler, asked: send(handler, 200, b""),
    "hung up": lambda handler, asked: handler.connection.shutdown(2),
    "no data": lambda handler, asked: send(handler, 200, {"error": "?"}),
    "a list": lambda handler, asked: send(handler, 200, [1, 2]),
    "too few": data({"index": 0, "embedding": vector("a")}),
    "too many": data(*({"index": at, "embedding": vector("a")} for at in range(3))),
    "one number twice": data(*({"index": 0, "embedding": vector("a")} for _ in range(2))),
    "numbers out of range": data(*({"index": at + 5, "embedding": vector("a")} for at in range(2))),
    "numbers that are none": data(*({"index": str(at), "embedding": vector("a")} for at in range(2))),
    "rows of unequal length": data({"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}),
    "rows of words": data(*({"index": at, "embedding": ["x"]} for at in range(2))),
    "no rows": data(*({"index": at, "embedding": 3.0} for at in range(2))),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_answer_is_a_failure_that_may_pass(server: Server, embedder: OpenAIEmbedder, kind: str) -> None:
    server.line = [BROKEN[kind]] * 9
    with pytest.raises(Unavailable) as caught:
        embedder.embed(["a", "b"])
    assert KEY not in "".join(traceback.format_exception(caught.value))
    server.line = []
    assert embedder.embed(["a"]).tolist() == [vector("a")]


@pytest.mark.parametrize(
    ("row", "says"),
    [([float("nan"), 1.0, 2.0], "NaN"), ([1.0, 2.0], "dimension 3"), ([float("inf"), 1.0, 2.0], "infinity")],
)
def test_numbers_that_cannot_be_used_are_refused(
    server: Server, embedder: OpenAIEmbedder, row: list[float], says: str
) -> None:
    checking = checked(embedder)
    checking.embed(["first"])
    server.line = [data({"index": 0, "embedding": row})]
    with pytest.raises(Misconfigured, match=says):
        checking.embed(["second"])


def test_a_server_that_does_not_answer(server: Server) -> None:
    server.line = [lambda handler, asked: server.closing.wait() and None] * 2  # type: ignore[func-returns-value]
    slow = OpenAIEmbedder("small", base_url=server.url, timeout=0.1, retries=1, clock=ManualClock())
    with pytest.raises(Unavailable, match=r"did not answer within 0\.1 s"):
        slow.embed(["a"])
    assert len(server.asked) == 2


def test_a_server_that_sends_a_byte_now_and_then(server: Server) -> None:
    def drip(handler: http.server.BaseHTTPRequestHandler, asked: dict[str, Any]) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not server.closing.wait(0.01):
            handler.wfile.write(b" ")
            handler.wfile.flush()

    server.line = [drip]
    slow = OpenAIEmbedder("small", base_url=server.url, timeout=0.2, retries=0)
    with pytest.raises(Unavailable, match="did not answer within"):
        slow.embed(["a"])


def test_nobody_there(server: Server) -> None:
    server.close()
    away = OpenAIEmbedder("small", api_key=KEY, base_url=server.url, clock=ManualClock())
    with pytest.raises(Unavailable, match="cannot be reached"):
        away.embed(["a"])


# What does not pass


@pytest.mark.parametrize(
    ("code", "error"),
    [(400, Invalid), (413, Invalid), (422, Invalid), (401, Misconfigured), (403, Misconfigured), (404, Misconfigured)],
)
def test_what_a_retry_cannot_help_is_not_tried_again(
    server: Server, embedder: OpenAIEmbedder, code: int, error: type[HoldfastError]
) -> None:
    server.line = [status(code, f"because of {KEY}\nand so on " + "x" * 1000)]
    with pytest.raises(error) as caught:
        embedder.embed(["a"])
    assert caught.value.status == code
    assert len(server.asked) == 1
    assert "because of [key] and so on" in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(server: Server, embedder: OpenAIEmbedder, code: int) -> None:
    other = Server()
    try:
        server.line = [status(code, Location=f"{other.url}/v1/embeddings")]
        with pytest.raises(Misconfigured, match="sends elsewhere"):
            embedder.embed(["a"])
        assert other.asked == []
    finally:
        other.close()


def test_the_key_is_nowhere(server: Server, embedder: OpenAIEmbedder, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for answer in (status(500, KEY), status(401, KEY), status(429, KEY), *BROKEN.values()):
        server.line = [answer] * 3
        with pytest.raises(HoldfastError) as caught:
            embedder.embed(["a", "b"])
        assert KEY not in "".join(traceback.format_exception(caught.value))
        assert KEY not in repr(caught.value.facts)
    assert caplog.text
    assert KEY not in caplog.text
    assert KEY not in repr(embedder) + repr(checked(embedder))


# How it is set up


@pytest.mark.parametrize(
    "address",
    ["", "localhost:11434", "ftp://host/v1", "http://", "https://u:p@host/v1", "http://host/v1?x=1", "http://h:99999/"],
)
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(Misconfigured, match="address of an embedding server"):
        OpenAIEmbedder("small", base_url=address or " ")


@pytest.mark.parametrize("key", ["line\nbreak", "two words", "ключ", "tab\t"])
def test_a_key_that_is_none_is_not_shown(key: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        OpenAIEmbedder("small", api_key=key)
    assert key not in str(caught.value)


@pytest.mark.parametrize("wrong", [{"timeout": 0}, {"batch": 0}, {"retries": -1}])
def test_impossible_settings(wrong: dict[str, Any]) -> None:
    with pytest.raises(Misconfigured):
        OpenAIEmbedder("small", **wrong)


@pytest.mark.parametrize("address", ["{}/v1/", "{}/v1/embeddings", "{}"])
def test_ways_to_write_the_address(server: Server, address: str) -> None:
    found = choose("openai:small", base_url=address.format(server.url))
    assert found is not None
    found.embed(["a"])
    assert server.paths == ["/v1/embeddings"]
