"""A handoff as JSON, for programs, and back without loss in either direction.

The keys are the headings of the markdown, worded as people word them: ``completed_steps``, ``nextAction``, ``todo``. A
key that means nothing here is a section of its own, as an unknown heading is, and is written back as a key. What the
two forms share is that ``parse(render(document))`` is the document, so one can be turned into the other and back.

Deliberately absent: markdown, files and revisions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.errors import Invalid
from holdfast.handoff.document import (
    HandoffDocument,
    HandoffItem,
    HandoffParts,
    HandoffSection,
    Kind,
    json_of,
    to_item,
    to_text,
)
from holdfast.handoff.markdown import Parsed, known, says_done
from holdfast.handoff.strict_json import data_block, read_json

_TEXTS = ("opening", "remarks", "feature_remarks")
_FORM = ("goal", "steps", "blockers", "next_action", "context")  # there even when empty, to be filled in
_OURS = (*_TEXTS, "sections", "holdfast")


class _Origin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which revision of which thread a file was written from, and the steps of runs that are hidden."""

    thread: str | None = None
    revision: int | None = None
    hidden: tuple[str, ...] = ()


# Writing


def render(document: HandoffDocument, thread: str, revision: int) -> str:
    """Write a document. The last key says which revision of which thread it is."""
    keys = _as_keys(document.extra)
    sections = document.extra[: len(document.extra) - len(keys)]
    held = document.data is not None
    origin = {"thread": thread, "revision": revision, "hidden": document.hidden}
    form = {
        "goal": document.goal,
        "start": document.start,
        "features": [_item(one, "name", "passes") for one in document.features],
        "steps": [_item(one, "text", "done") for one in document.steps],
        "blockers": document.blockers,
        "next_action": document.next_action,
        "decisions": document.decisions,
        "context": document.data if held else document.context,
        "notes": document.context if held else "",
        **{name: getattr(document, name) for name in _TEXTS},
        "sections": sections,
    }
    filled = {name: value for name, value in form.items() if value or name in _FORM}
    plain = {**filled, **keys, "holdfast": {name: value for name, value in origin.items() if value != ()}}
    return json_of(plain, 2) + "\n"


def _item(item: HandoffItem, text: str, done: str) -> dict[str, Any]:
    return {text: item.text, done: item.done, **({} if item.ref is None else {"ref": item.ref})}


def _as_keys(sections: tuple[HandoffSection, ...]) -> dict[str, Any]:
    """The last sections that are read back as they are when each is only a key."""
    found: dict[str, Any] = {}
    for section in reversed(sections):
        name = section.heading
        plain = section.after == "context" and section.level == 2
        if not plain or name in found or name in _OURS or _kind(name) is not None:
            break
        found[name] = _value(section.text)
    return dict(reversed(found.items()))


def _value(text: str) -> Any:
    """What a section holds: data, when its text is a block of data as we write it, and nothing else."""
    if text.startswith("```json data\n") and text.endswith("\n```"):
        try:
            value = read_json(text[13:-4])
        except Invalid:
            return text
        return value if data_block(value) == text and not isinstance(value, str) else text
    return text


# Reading


def parse(text: str, what: str = "the text") -> Parsed:
    """Read a text that ``render`` or a person wrote. What cannot be understood is ``Invalid`` and named."""
    plain = read_json(text.removeprefix("\ufeff"), what)
    if isinstance(plain, list):
        raise Invalid(f"{what} is a list, not a handoff; if these are features, give them to update(features=…)")
    if not isinstance(plain, dict):
        raise Invalid(f"{what} is {type(plain).__name__}, not an object with keys such as goal, steps and next_action")
    origin = _converted(plain.pop("holdfast", {}), _Origin, f"{what}, holdfast")
    pages = _JsonParts()
    for key, value in plain.items():
        pages.add(key, value)
    return Parsed(pages.document(origin.hidden), origin.thread, origin.revision)


def _converted(value: Any, kind: Any, where: str) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise Invalid(f"{where}: {error}") from error


def _kind(key: str) -> Kind | None:
    return known(_words(key))


def _words(key: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_-]+", " ", key)


class _JsonParts(HandoffParts):
    """What was read so far, key by key."""

    def add(self, key: str, value: Any) -> None:
        kind = _kind(key)
        structured = isinstance(value, dict | list)
        if key in _TEXTS and isinstance(value, str):
            self.say(key, to_text(key, value))
        elif key == "sections" and isinstance(value, list):
            self.extra[:0] = _converted(value, list[HandoffSection], key)
        elif kind is None or (kind == "context" and structured and self.data and value):
            text = value if isinstance(value, str) else data_block(value)
            self.extra.append(HandoffSection(to_text("a key", key) or "", to_text(key, text) or "", "context"))
        elif kind == "context" and structured:
            self.data = value or self.data
        elif value is not None:
            self._take(kind, key, value)

    def _take(self, kind: Kind, key: str, value: Any) -> None:
        if kind in self.items:
            self.items[kind] += [to_item(where, one, says_done(_words(key))) for where, one in _several(key, value)]
        elif kind in self.lists:
            self.lists[kind] += _texts(key, value)
        elif isinstance(value, list):
            texts = _texts(key, value)
            self.say(kind, texts[0] if len(texts) == 1 else "\n".join(f"- {text}" for text in texts))
        else:
            self.say(kind, to_text(key, value, "text or a list of texts"))


def _texts(key: str, value: Any) -> list[str]:
    return [to_item(where, one, None).text for where, one in _several(key, value)]


def _several(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The items of a list, each with its place; a text is one item, and ``{"name": true}`` is one that is done."""
    if isinstance(value, str):
        value = [value] if value else []
    elif isinstance(value, dict):
        value = [{"text": name, "done": done} for name, done in value.items()]
    if not isinstance(value, list):
        raise Invalid(f"{key} is a list, not {type(value).__name__}")
    return ((f"{key}[{number}]", one) for number, one in enumerate(value))
