"""A page in the form that a vendor's client takes: OpenAI's or Anthropic's messages, Gemini's contents, or plain text.

Whatever goes in, what comes out is accepted: tool results follow their calls, no message is empty, and for Anthropic
and Gemini the first one is the user's. Deliberately absent: any client.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from holdfast.checks import check_choice
from holdfast.context.page import BEFORE, Page
from holdfast.context.talk import CallPart, Message, as_text


def openai(page: Page) -> list[dict[str, Any]]:
    """Messages of the chat API of OpenAI, and of all that speak it."""
    found: list[dict[str, Any]] = [{"role": "system", "content": page.system}] if page.system else []
    for message in page.messages():
        found += _openai(message)
    return found


def _openai(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [{"role": "tool", "tool_call_id": one.of, "content": one.text} for one in message.results]
    if message.parts:
        text = [{"type": "text", "text": message.text}] if message.text else []
        return [{"role": message.role, "content": [*text, *map(_openai_part, message.parts)]}]
    found: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.calls:
        found["content"] = message.text or None
        found["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    return [found]


def anthropic(page: Page) -> list[dict[str, Any]]:
    """Messages of the API of Anthropic. The system text goes beside them, as ``Context.system``."""
    found: list[dict[str, Any]] = []
    for message in page.messages():
        role = "assistant" if message.role == "assistant" else "user"
        blocks = list(_anthropic(message))
        if not blocks:
            continue
        if found and found[-1]["role"] == role:
            found[-1]["content"] += blocks
        else:
            found.append({"role": role, "content": blocks})
    if found and found[0]["role"] == "assistant":
        found.insert(0, {"role": "user", "content": [{"type": "text", "text": BEFORE}]})
    return found


def _anthropic(message: Message) -> Iterator[dict[str, Any]]:
    for result in message.results:
        yield {"type": "tool_result", "tool_use_id": result.of, "content": result.text}
    if message.text.strip():
        yield {"type": "text", "text": message.text}
    for part in message.parts:
        yield _anthropic_part(part)
    for call in message.calls:
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call)}


def _input(call: CallPart) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(call.arguments)
    except (msgspec.DecodeError, RecursionError):
        value = call.arguments
    return value if isinstance(value, dict) else {"value": value}


def gemini(page: Page) -> list[dict[str, Any]]:
    """What google-genai takes as ``contents``. The system text goes into its config, as ``Context.system``.

    Results of calls stand alone, even before a user's words: newer models refuse the two in one message, and older ones
    answer it with nothing.
    """
    found: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    alone = True
    for message in page.messages():
        role = "model" if message.role == "assistant" else "user"
        names |= {call.id: call.name for call in message.calls}
        parts = list(_gemini(message, names))
        if not parts:
            continue
        if not found and role == "model":
            found.append({"role": "user", "parts": [{"text": BEFORE}]})
        if found and found[-1]["role"] == role and not (alone or message.results):
            found[-1]["parts"] += parts
        else:
            found.append({"role": role, "parts": parts})
        alone = bool(message.results)
    return found


def _gemini(message: Message, names: dict[str, str]) -> Iterator[dict[str, Any]]:
    for result in message.results:
        answer = {"id": result.of, "name": names.get(result.of, result.of), "response": {"output": result.text}}
        yield {"functionResponse": answer}
    if message.text.strip():
        yield {"text": message.text}
    for part in message.parts:
        yield _gemini_part(part)
    for call in message.calls:
        yield {"functionCall": {"id": call.id, "name": call.name, "args": _input(call)}}


def plain(page: Page) -> str:
    """One text, for models and people that take nothing else."""
    lines = [page.system] if page.system else []
    for message in page.messages():
        lines.append(as_text(message))
        lines += [_shown(part) for part in message.parts]
    return "\n\n".join(line for line in lines if line)


# Parts that are not text


def _shown(part: Any) -> str:
    """A part of the input in plain text: what it says, or that it is there."""
    text = part.get("text")
    return f"user: {text}" if isinstance(text, str) else f"[{part.get('type', 'part')}: not shown in plain text]"


def _openai_part(part: Any) -> Any:
    """An image as Anthropic has it, as OpenAI takes it; anything else as it is."""
    source = part.get("source") if isinstance(part, dict) and part.get("type") == "image" else None
    if not isinstance(source, dict):
        return part
    url = source.get("url") or f"data:{source.get('media_type', 'image/png')};base64,{source.get('data', '')}"
    return {"type": "image_url", "image_url": {"url": url}}


def _anthropic_part(part: Any) -> Any:
    """An image as OpenAI has it, as Anthropic takes it; anything else as it is."""
    if not isinstance(part, dict) or part.get("type") != "image_url":
        return part
    link = part.get("image_url")
    url = str(link.get("url", "") if isinstance(link, dict) else link)
    head, _, data = url.partition(";base64,")
    if data and head.startswith("data:"):
        return {"type": "image", "source": {"type": "base64", "media_type": head[5:], "data": data}}
    return {"type": "image", "source": {"type": "url", "url": url}}


def _gemini_part(part: Any) -> Any:
    """A text, or an image or document as OpenAI or Anthropic has it, as Gemini takes it; anything else as it is."""
    part = _anthropic_part(part)
    if not isinstance(part, dict):
        return part
    if isinstance(part.get("text"), str):
        return {"text": part["text"]}
    source = part.get("source") if part.get("type") in ("image", "document") else None
    if not isinstance(source, dict):
        return part
    if "data" in source:
        return {"inlineData": {"mimeType": source.get("media_type", "image/png"), "data": source["data"]}}
    url = str(source.get("url", ""))
    kind = mimetypes.guess_type(url)[0] or ("image/jpeg" if part["type"] == "image" else "application/pdf")
    return {"fileData": {"mimeType": kind, "fileUri": url}}


FORMATS: dict[str, Callable[[Page], Any]] = {
    "openai": openai, "anthropic": anthropic, "gemini": gemini, "plain": plain,
}  # fmt: skip


def render(page: Page, format: str) -> Any:
    return FORMATS[check_choice("the format of a context", format, FORMATS)](page)
