"""The scripted model keeps to its script, and tells what it was asked."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.errors import Invalid, ModelFailed
from holdfast.providers.models.model import Reply, ToolCall, Usage
from holdfast.testing.models import Broken, Scripted

HELLO: list[dict[str, Any]] = [{"role": "user", "content": "Hello there"}]
TOOL = {"type": "function", "function": {"name": "recall"}}
CALL = ToolCall("1", "recall", {"query": "seat"})


class City(msgspec.Struct):
    name: str
    people: int


def test_one_item_per_request() -> None:
    whole = Reply("Done.", usage=Usage(9, 1), stop="length")
    model = Scripted("Hi.", CALL, [CALL, CALL], whole, lambda messages, tools: f"{len(messages)} and {len(tools)}")
    assert model.reply(HELLO).text == "Hi."
    assert model.reply(HELLO) == Reply(calls=(CALL,), usage=Usage(2, 0), model="scripted", stop="tools")
    assert model.reply(HELLO).calls == (CALL, CALL)
    assert model.reply(HELLO) == Reply("Done.", usage=Usage(9, 1), model="scripted", stop="length")
    assert model.left == 1
    assert model.reply(HELLO, tools=[TOOL]).text == "1 and 1"


def test_what_was_asked_is_kept_as_it_was() -> None:
    model = Scripted("One.", "Two.")
    messages = [{"role": "user", "content": "Hello"}]
    model.reply(messages, tools=[TOOL], timeout_s=3.0)
    messages[0]["content"] = "changed"
    list(model.stream(messages))
    assert model.asked == [[{"role": "user", "content": "Hello"}], [{"role": "user", "content": "changed"}]]
    assert [(call.how, call.tools, call.timeout_s) for call in model.calls] == [
        ("reply", (TOOL,), 3.0),
        ("stream", (), None),
    ]


@pytest.mark.parametrize("text", ["Hello to  you.\nBye ", " lead", "", "一二三"])
def test_a_stream_comes_word_by_word(text: str) -> None:
    *pieces, whole = Scripted(text).stream(HELLO)
    assert isinstance(whole, Reply)
    assert "".join(str(piece) for piece in pieces) == whole.text == text
    assert len(pieces) == max(len(text.split()), bool(text)) + text.endswith(" ")


def test_an_answer_that_breaks_off() -> None:
    model = Scripted(Broken("half the te"), Broken("half"))
    stream = model.stream(HELLO)
    assert [next(stream) for _ in range(3)] == ["half", " the", " te"]
    with pytest.raises(ModelFailed) as caught:
        next(stream)
    assert (caught.value.partial, caught.value.reason, caught.value.model) == ("half the te", "broken", "scripted")
    with pytest.raises(ModelFailed):
        model.reply(HELLO)


def test_an_error_is_raised() -> None:
    model = Scripted(ModelFailed("away", reason="timeout"), KeyError, "Back.")
    with pytest.raises(ModelFailed, match="away"):
        model.reply(HELLO)
    with pytest.raises(KeyError):
        model.reply(HELLO)
    assert model.reply(HELLO).text == "Back."


def test_running_out_is_told() -> None:
    model = Scripted("Only one.")
    model.reply(HELLO)
    with pytest.raises(Invalid, match=r"has 1 items and was asked 2 times.*Hello there"):
        model.reply(HELLO)


@pytest.mark.parametrize("item", [City("Oslo", 7), {"name": "Oslo", "people": 7}, '{"name":"Oslo","people":7}'])
def test_a_shape(item: Any) -> None:
    value, usage = Scripted(item).extract(HELLO, City)
    assert value == City("Oslo", 7)
    assert usage.requests == 1


def test_a_shape_that_does_not_fit_takes_the_next_item() -> None:
    model = Scripted({"name": "Oslo"}, City("Oslo", 7), usage=Usage(10, 1))
    assert model.extract(HELLO, City) == (City("Oslo", 7), Usage(20, 2, 0, 2))
    assert "people" in model.asked[1][-1]["content"]
    with pytest.raises(ModelFailed) as caught:
        Scripted("no", "no").extract(HELLO, City)
    assert caught.value.reason == "invalid"


def test_what_cannot_be_said() -> None:
    with pytest.raises(Invalid, match="cannot say 7"):
        Scripted(7).reply(HELLO)
