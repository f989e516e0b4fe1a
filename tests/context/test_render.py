"""What is rendered is what each vendor takes, and says the same to all of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.context.page import BEFORE, Page
from holdfast.context.render import FORMATS, render
from holdfast.context.talk import Message, conversation
from holdfast.errors import Invalid
from holdfast.records import Draft, Entry

PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
PNG_URL = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
FAR = {"type": "image", "source": {"type": "url", "url": "https://x.test/i.png"}}
IMAGES = (
    {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
    {"fileData": {"mimeType": "image/png", "fileUri": "https://x.test/i.png"}},
)
FAR_URL = {"type": "image_url", "image_url": {"url": "https://x.test/i.png"}}


def page(*said: Any, system: str = "", input: Message | None = None, state: str = "") -> Page:
    drafts = [item if isinstance(item, Draft) else Draft("message", item) for item in said]
    entries = [Entry("t", number, one.kind, one.content, None, 0, b"") for number, one in enumerate(drafts, 1)]
    turns = tuple(message for stretch in conversation(entries) for message in stretch.messages)
    return Page(system, turns, "", "", state, input or Message("user", "and now?"), {})


FUNCTION = {"name": "f", "arguments": '{"n":1}'}
SAID = (
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "I look", "tool_calls": [{"id": "a", "type": "function", "function": FUNCTION}]},
    {"role": "tool", "tool_call_id": "a", "content": "41"},
)


def test_openai() -> None:
    assert render(page(*SAID, system="be brief"), "openai") == [
        {"role": "system", "content": "be brief"},
        *SAID,
        {"role": "user", "content": "and now?"},
    ]


def test_anthropic() -> None:
    use = {"type": "tool_use", "id": "a", "name": "f", "input": {"n": 1}}
    assert render(page(*SAID, system="be brief"), "anthropic") == [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "I look"}, use]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "41"},
                {"type": "text", "text": "and now?"},
            ],
        },
    ]


def test_gemini() -> None:
    """Results stand alone: newer models refuse a content that holds both a functionResponse and a text."""
    assert render(page(*SAID, system="be brief"), "gemini") == [
        {"role": "user", "parts": [{"text": "hi"}]},
        {
            "role": "model",
            "parts": [{"text": "I look"}, {"functionCall": {"id": "a", "name": "f", "args": {"n": 1}}}],
        },
        {"role": "user", "parts": [{"functionResponse": {"id": "a", "name": "f", "response": {"output": "41"}}}]},
        {"role": "user", "parts": [{"text": "and now?"}]},
    ]


def test_google_genai_takes_what_is_rendered_for_it() -> None:
    """Where the package is installed: its own types accept every content, also an image and a PDF."""
    types = pytest.importorskip("google.genai.types")
    pdf = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="}}
    found = page(*SAID, input=Message("user", "see", parts=({"type": "text", "text": "see"}, PNG, PNG_URL, FAR, pdf)))
    contents = [types.Content.model_validate(content) for content in render(found, "gemini")]
    assert contents[1].parts[1].function_call.args == {"n": 1}
    assert contents[2].parts[0].function_response.response == {"output": "41"}
    assert [part.inline_data.data for part in contents[-1].parts if part.inline_data] == [b"\x00"] * 3


def test_plain() -> None:
    text = render(page(*SAID, system="be brief"), "plain")
    assert text.startswith("be brief\n\nuser: hi\n\nassistant: I look\n\n")
    assert text.endswith("result (a): 41\n\nuser: and now?")
    assert 'f (a): {"n":1}' in text


def test_a_conversation_that_an_assistant_begins_gets_a_beginning_where_one_is_needed(rules: Any) -> None:
    found = page({"role": "assistant", "content": "welcome"})
    assert render(found, "openai")[0] == {"role": "assistant", "content": "welcome"}
    assert render(found, "gemini")[0] == {"role": "user", "parts": [{"text": BEFORE}]}
    first, *_ = render(found, "anthropic")
    assert first == {"role": "user", "content": [{"type": "text", "text": BEFORE}]}
    rules.anthropic(render(found, "anthropic"))


def test_who_speaks_twice_speaks_once_where_roles_alternate(rules: Any) -> None:
    found = page(*[{"role": role, "content": role} for role in ("user", "user", "assistant", "assistant", "user")])
    rules.anthropic(render(found, "anthropic"))
    texts = [[block["text"] for block in message["content"]] for message in render(found, "anthropic")]
    assert texts == [["user", "user"], ["assistant", "assistant"], ["user", "and now?"]]
    contents = render(found, "gemini")
    rules.gemini(contents)
    assert [[part["text"] for part in content["parts"]] for content in contents] == texts


@pytest.mark.parametrize(("theirs", "ours"), [(PNG, PNG_URL), (FAR, FAR_URL)], ids=["inside", "far"])
@pytest.mark.parametrize("given_", ["openai", "anthropic"])
def test_an_image_of_the_input_is_what_each_takes(theirs: Any, ours: Any, given_: str) -> None:
    part = ours if given_ == "openai" else theirs
    found = page(input=Message("user", "what is it?", parts=({"type": "text", "text": "what is it?"}, part)))
    text = {"type": "text", "text": "what is it?"}
    assert render(found, "openai")[-1]["content"] == [text, ours]
    assert render(found, "anthropic")[-1]["content"] == [text, theirs]
    assert render(found, "gemini")[-1]["parts"] == [{"text": "what is it?"}, IMAGES[ours is FAR_URL]]
    assert "not shown in plain text" in render(found, "plain")
    assert "what is it?" in render(found, "plain")


def test_parts_stay_in_their_order_after_what_belongs_to_the_turn() -> None:
    parts = ({"type": "text", "text": "one"}, PNG, {"type": "text", "text": "two"}, PNG)
    found = page(input=Message("user", "one\ntwo", parts=parts), state="<state>\nnow\n</state>")
    assert render(found, "anthropic")[-1]["content"] == [{"type": "text", "text": "<state>\nnow\n</state>"}, *parts]


def test_a_format_that_is_not_there_is_named() -> None:
    for wrong in ("bard", "", None, 5):
        with pytest.raises(Invalid, match="openai, anthropic, gemini or plain"):
            render(page(), wrong)  # type: ignore[arg-type]


@given(data=st.data())
def test_every_log_is_taken_by_every_vendor(data: Any, shapes: Any, rules: Any) -> None:
    found = page(*data.draw(shapes.drafts), system=data.draw(st.sampled_from(("", "be brief"))))
    rules.openai(render(found, "openai"))
    rules.anthropic(render(found, "anthropic"))
    rules.gemini(render(found, "gemini"))
    assert render(found, "plain").endswith("user: and now?")
    assert set(FORMATS) == {"openai", "anthropic", "gemini", "plain"}


@given(data=st.data())
def test_every_vendor_is_told_the_same(data: Any, shapes: Any) -> None:
    """Each text that one rendering holds is in the others too."""
    found = page(*data.draw(shapes.drafts))
    openai, plain = render(found, "openai"), render(found, "plain")
    blocks = [block for message in render(found, "anthropic") for block in message["content"]]
    theirs = [block["text"] for block in blocks if block["type"] == "text" and block["text"] != BEFORE]
    assert theirs == [message["content"] for message in openai if message["role"] != "tool" and message["content"]]
    results = [block["content"] for block in blocks if block["type"] == "tool_result"]
    assert results == [message["content"] for message in openai if message["role"] == "tool"]
    bare = plain.replace("> ", "")  # in plain text, a line of a result that looks like a turn is quoted
    assert all(text.replace("> ", "") in bare for text in (*theirs, *results))
    parts = [part for content in render(found, "gemini") for part in content["parts"]]
    assert [part["text"] for part in parts if "text" in part and part["text"] != BEFORE] == theirs
    assert [part["functionResponse"]["response"]["output"] for part in parts if "functionResponse" in part] == results
