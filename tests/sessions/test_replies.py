"""What a model said, from whatever a client returned."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest

from holdfast.errors import Invalid
from holdfast.providers.models.model import Reply, ToolCall, Usage
from holdfast.sessions.turn import reply_of

OPENAI = {
    "id": "1", "object": "chat.completion", "model": "gpt-4o-2024", "created": 1,
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hello."}}],
    "usage": {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 64}},
}  # fmt: skip
ANTHROPIC = {
    "id": "1", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "end_turn",
    "content": [
        {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Hel"}, {"type": "text", "text": "lo."},
    ],
    "usage": {"input_tokens": 36, "output_tokens": 5, "cache_read_input_tokens": 64},
}  # fmt: skip


class Dumps:
    """An object as clients return them: its fields come by ``model_dump``."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return self._fields


class Choice(pydantic.BaseModel):
    message: dict[str, Any]


class Completion(pydantic.BaseModel):
    model: str
    choices: list[Choice]
    usage: dict[str, Any]


def test_a_text_and_a_reply_are_taken_as_they_are() -> None:
    assert reply_of("Hello.").text == "Hello."
    given = Reply("Hello.", usage=Usage(1, 2), model="m")
    assert reply_of(given) == given


@pytest.mark.parametrize("given", [OPENAI, Dumps(OPENAI)])
def test_a_completion_of_openai(given: Any) -> None:
    assert reply_of(given) == Reply("Hello.", usage=Usage(100, 5, 64), model="gpt-4o-2024")


@pytest.mark.parametrize("given", [ANTHROPIC, Dumps(ANTHROPIC)])
def test_a_message_of_anthropic(given: Any) -> None:
    reply = reply_of(given)
    assert reply.text.replace("\n", "") == "Hello."
    assert (reply.usage.output, reply.usage.cached, reply.model) == (5, 64, "claude")


def test_a_pydantic_object_is_read_by_its_fields() -> None:
    given = Completion(model="m", choices=[Choice(message={"role": "assistant", "content": "Hi."})], usage={})
    assert (reply_of(given).text, reply_of(given).model) == ("Hi.", "m")


@pytest.mark.parametrize(
    "given",
    [
        {"role": "assistant", "content": "Hello."}, {"content": "Hello."}, [{"type": "text", "text": "Hello."}],
        {"role": "assistant", "content": None, "refusal": "Hello."},
        {"choices": [{"message": {"role": "assistant", "content": None, "refusal": "Hello."}}]},
    ],
)  # fmt: skip
def test_other_shapes(given: Any) -> None:
    assert reply_of(given).text == "Hello."


@pytest.mark.parametrize(
    "wrong",
    [
        None, 7, {}, {"choices": []}, {"choices": [{}]}, {"choices": None}, {"role": "assistant"}, object(), b"bytes",
        "", "  ", Reply(), {"content": ""}, {"content": []}, {"choices": [{"message": {"content": ""}}]},
        Reply("", (ToolCall("1", "add", {}),)), {"role": "user", "content": "I said so"},
    ],
)  # fmt: skip
def test_what_is_no_answer_is_refused(wrong: Any) -> None:
    with pytest.raises(Invalid):
        reply_of(wrong)


@pytest.mark.parametrize(
    "calls",
    [
        {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "add", "arguments": "{}"}}]}}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "add", "input": {}}]},
    ],
)  # fmt: skip
def test_calls_of_tools_are_no_answer(calls: Any) -> None:
    with pytest.raises(Invalid, match=r"turn\.step"):
        reply_of(calls)


def test_usage_that_is_none_counts_nothing() -> None:
    for usage in (None, 7, {}, {"prompt_tokens": None}, {"input_tokens": "many"}):
        assert reply_of({"content": "Hi.", "usage": usage}).usage.input == 0
