"""A message goes into an entry and comes out as it was, and what was said is there once, where everybody reads it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic_ai.messages import (
    BinaryImage,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    RetryInfo,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

from holdfast.adapters.pydantic_ai.messages import NATIVE, to_content, to_message

NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
PICTURE = BinaryImage(b"\x00\xff\xfe", media_type="image/png")

MESSAGES: dict[str, ModelMessage] = {
    "question": ModelRequest(parts=[UserPromptPart("when?", timestamp=NOON)]),
    "nothing said": ModelRequest(parts=[UserPromptPart("", timestamp=NOON)]),
    "no parts": ModelRequest(parts=[]),
    "with a system prompt": ModelRequest(
        parts=[SystemPromptPart("be brief", timestamp=NOON), UserPromptPart("when?", timestamp=NOON)],
        instructions="answer in verse",
    ),
    "two prompts": ModelRequest(parts=[UserPromptPart("one", timestamp=NOON), UserPromptPart("two", timestamp=NOON)]),
    "words between pictures": ModelRequest(
        parts=[
            UserPromptPart(
                [
                    "look",
                    PICTURE,
                    ImageUrl("https://example.com/a.png"),
                    "and",
                    TextContent("quoted", metadata={"a": 1}),
                ],
                timestamp=NOON,
            ),
            UserPromptPart("what is it?", timestamp=NOON),
        ]
    ),
    "only a picture": ModelRequest(parts=[UserPromptPart([PICTURE], timestamp=NOON)]),
    "answer": ModelResponse(
        parts=[TextPart("at noon")],
        timestamp=NOON,
        model_name="m",
        usage=RequestUsage(input_tokens=7, details={"a": 1}),
    ),
    "two texts": ModelResponse(parts=[TextPart("at"), TextPart("noon")], timestamp=NOON),
    "thought and calls": ModelResponse(
        parts=[
            ThinkingPart("hm", signature="s"),
            TextPart("let me see"),
            ToolCallPart("clock", {"zone": None, "n": [1, 2.5, True]}, "c1"),
            ToolCallPart("clock", '{"zone": "UTC"}', "c2"),
            ToolCallPart("clock", None, "c3"),
        ],
        timestamp=NOON,
    ),
    "one result": ModelRequest(parts=[ToolReturnPart("clock", "12:00", "c1", timestamp=NOON)]),
    "a result of nothing": ModelRequest(parts=[ToolReturnPart("clock", None, "c1", timestamp=NOON)]),
    "results": ModelRequest(
        parts=[
            ToolReturnPart("clock", {"time": "12:00", "zones": ["UTC", None]}, "c1", timestamp=NOON),
            ToolReturnPart("clock", [1, PICTURE], "c2", timestamp=NOON),
            ToolReturnPart("clock", "12:00", "c3", timestamp=NOON, outcome="failed"),
            UserPromptPart("go on", timestamp=NOON),
        ]
    ),
    "a picture as the only result": ModelRequest(parts=[ToolReturnPart("camera", PICTURE, "c1", timestamp=NOON)]),
    "feedback": ModelRequest(
        parts=[RetryFeedbackPart("again, as JSON", retry=RetryInfo("model_retry"), timestamp=NOON)]
    ),
    "every script": ModelRequest(parts=[UserPromptPart("Grüße 你好 🌍\n\tสวัสดี \x00", timestamp=NOON)]),
}


def plain(message: ModelMessage) -> dict[str, Any]:
    return ModelMessagesTypeAdapter.dump_python([message], mode="json")[0]


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_comes_back_as_it_was(name: str) -> None:
    before = plain(MESSAGES[name])
    after = to_message(json.loads(json.dumps(to_content(before))))
    assert after == before
    assert ModelMessagesTypeAdapter.validate_json(json.dumps([after])) == [MESSAGES[name]]


@pytest.mark.parametrize("name", MESSAGES)
def test_making_an_entry_leaves_the_message_alone(name: str) -> None:
    message = plain(MESSAGES[name])
    before = json.dumps(message)
    to_content(message)
    assert json.dumps(message) == before


def test_what_was_said_is_kept_once() -> None:
    words = "the quick brown fox jumps over the lazy dog"
    for message in (
        ModelRequest(parts=[UserPromptPart(words)]),
        ModelRequest(parts=[UserPromptPart([words, PICTURE])]),
        ModelRequest(parts=[ToolReturnPart("look", words, "c1")]),
        ModelResponse(parts=[TextPart(words)]),
        ModelResponse(parts=[ThinkingPart(words), ToolCallPart("run", {"a": 1}, "c1")]),
    ):
        assert json.dumps(to_content(plain(message))).count(words) == 1


def said(name: str) -> tuple[Any, Any]:
    content = to_content(plain(MESSAGES[name]))
    return content["role"], content["content"]


def test_everybody_can_read_who_said_what() -> None:
    assert said("question") == ("user", "when?")
    assert said("with a system prompt") == ("user", "when?")
    assert said("answer") == ("assistant", "at noon")
    assert said("feedback") == ("system", "")
    assert said("one result") == ("tool", "12:00")
    assert to_content(plain(MESSAGES["one result"]))["tool_call_id"] == "c1"
    role, blocks = said("thought and calls")
    assert role == "assistant"
    assert [block["type"] for block in blocks] == ["thinking", "text", "tool_use", "tool_use", "tool_use"]
    assert blocks[2] == {"type": "tool_use", "id": "c1", "name": "clock", "input": {"zone": None, "n": [1, 2.5, True]}}


def test_words_along_with_what_a_tool_returned_are_trusted_as_little() -> None:
    assert said("results")[0] == "tool"


def test_a_picture_is_nothing_to_read() -> None:
    for name in ("only a picture", "a picture as the only result", "words between pictures", "results"):
        content = to_content(plain(MESSAGES[name]))
        assert "AP_-" not in json.dumps(content["content"])
        assert "AP_-" in json.dumps(content["$framework"][NATIVE])
