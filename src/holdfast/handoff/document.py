"""What a handoff says: a goal, steps, blockers, the next action, context, and whatever else a person wrote into it.

Values only, with the rules that need no store: how facts of runs join what is stored, how an update changes it, and how
it becomes plain data and comes back. Deliberately absent: markdown (``markdown``), revisions (``handoff``), and where
the facts of runs come from (they are passed in).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from holdfast.errors import Invalid, quoted

Kind = Literal["goal", "steps", "blockers", "next_action", "context"]
KINDS: tuple[Kind, ...] = ("goal", "steps", "blockers", "next_action", "context")
Place = Literal["", "goal", "steps", "blockers", "next_action", "context"]
_ORDER = {place: number for number, place in enumerate(("", *KINDS))}


class HandoffItem(msgspec.Struct, frozen=True):
    """One step. ``ref`` is ``RUN/STEP`` when it is a step of a run; then the run knows whether it is done."""

    text: str
    done: bool = False
    ref: str | None = None

    def __post_init__(self) -> None:
        if self.ref is not None and "/" not in self.ref:
            raise Invalid(f"the ref of a step is RUN/STEP, not {quoted(self.ref)}")


class HandoffSection(msgspec.Struct, frozen=True):
    """A part of the document that only a person understands: kept, and shown again ``after`` the part it followed."""

    heading: str
    text: str = ""
    after: Place = ""
    level: Literal[1, 2] = 2


class HandoffDocument(msgspec.Struct, frozen=True):
    """A whole handoff. ``opening`` is free text above the first heading, ``remarks`` free text above the steps.

    ``hidden`` names steps of runs that a person took out. Sections are kept in the order in which they are shown.
    ``revision`` is the stored one that it was read from, 0 for none.
    """

    goal: str = ""
    steps: tuple[HandoffItem, ...] = ()
    blockers: tuple[str, ...] = ()
    next_action: str = ""
    context: str = ""
    opening: str = ""
    remarks: str = ""
    extra: tuple[HandoffSection, ...] = ()
    hidden: tuple[str, ...] = ()
    revision: int = 0

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.extra, key=lambda section: _ORDER[section.after]))
        msgspec.structs.force_setattr(self, "extra", ordered)

    @property
    def done(self) -> tuple[HandoffItem, ...]:
        """The steps that are done."""
        return tuple(item for item in self.steps if item.done)

    @property
    def todo(self) -> tuple[HandoffItem, ...]:
        """The steps that are open."""
        return tuple(item for item in self.steps if not item.done)


EMPTY = HandoffDocument()


# Facts of runs


def merge(document: HandoffDocument, items: Sequence[HandoffItem], blockers: Sequence[str]) -> HandoffDocument:
    """Show a stored document together with what runs have done.

    A stored step keeps its text and place, but whether it is done is the run's fact. Steps of runs that are not stored
    yet come after the stored ones, hidden ones not at all.
    """
    facts = {item.ref: item for item in items if item.ref is not None}
    steps = [
        msgspec.structs.replace(step, done=facts[step.ref].done) if step.ref in facts else step
        for step in document.steps
        if step.ref not in document.hidden
    ]
    known = {step.ref for step in document.steps}.union(document.hidden)
    steps += [item for ref, item in facts.items() if ref not in known]
    more = tuple(text for text in dict.fromkeys(blockers) if text not in document.blockers)
    return msgspec.structs.replace(document, steps=tuple(steps), blockers=document.blockers + more)


# Changes by hand


class HandoffChanges(msgspec.Struct, frozen=True):
    """What an update asks for, checked. None leaves a part alone."""

    goal: str | None = None
    done: tuple[str, ...] | None = None
    todo: tuple[str, ...] | None = None
    blockers: tuple[str, ...] | None = None
    next_action: str | None = None
    context: str | None = None
    replace: bool = False

    @classmethod
    def of(cls, *, replace: object = False, **given: object) -> HandoffChanges:
        """Check what a caller gave. A sentence says what is wrong with it."""
        if type(replace) is not bool:
            raise Invalid(f"replace is True or False, not {quoted(replace)}")
        if replace and given.get("done") is None and given.get("todo") is None:
            raise Invalid("replace=True replaces the steps added by hand: give done or todo, [] for none")
        texts = {name: _text(name, given.get(name)) for name in ("goal", "next_action", "context")}
        lists = {name: _texts(name, given.get(name)) for name in ("done", "todo", "blockers")}
        return cls(**texts, **lists, replace=replace)  # type: ignore[arg-type]


def _text(name: str, value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise Invalid(f"{name} is text, not {type(value).__name__}")
    if "\x00" in value:
        raise Invalid(f"{name} contains a NUL character, which no text file can carry")
    return value if type(value) is str else str.__str__(value)


def _texts(name: str, value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str):
        value = (value,)
    if not isinstance(value, list | tuple):
        raise Invalid(f"{name} is a text or a list of texts, not {type(value).__name__}")
    found = []
    for number, item in enumerate(value):
        text = _text(f"{name}[{number}]", item)
        if text is None:
            raise Invalid(f"{name}[{number}] is text, not None")
        found.append(text)
    return tuple(found)


def revised(document: HandoffDocument, changes: HandoffChanges) -> HandoffDocument:
    """Apply an update. What it does not name stays as it is."""
    named = {
        name: value
        for name in ("goal", "next_action", "context", "blockers")
        if (value := getattr(changes, name)) is not None
    }
    if changes.done is not None or changes.todo is not None:
        named["steps"] = tuple(_revised_steps(document.steps, changes))
    return msgspec.structs.replace(document, **named)


def _revised_steps(steps: tuple[HandoffItem, ...], changes: HandoffChanges) -> list[HandoffItem]:
    done, todo = changes.done or (), changes.todo or ()
    if changes.replace:
        return _replaced(steps, [*(HandoffItem(text, True) for text in done), *(HandoffItem(text) for text in todo)])
    result = list(steps)
    for text in done:
        same = [number for number, item in enumerate(result) if item.text == text]
        unticked = next((number for number in same if not result[number].done), None)
        if unticked is not None:
            result[unticked] = msgspec.structs.replace(result[unticked], done=True)
        elif not same:  # one that is done already is said twice, not done twice
            result.append(HandoffItem(text, True))
    for text in todo:
        if not any(item.text == text and not item.done for item in result):
            result.append(HandoffItem(text))
    return result


def _replaced(steps: tuple[HandoffItem, ...], new: list[HandoffItem]) -> list[HandoffItem]:
    """Put new steps where the first one made by hand was; those of runs stay."""
    first = next((number for number, item in enumerate(steps) if item.ref is None), len(steps))
    return [*steps[:first], *new, *(item for item in steps[first:] if item.ref is not None)]


# Plain data


def to_plain(document: HandoffDocument) -> dict[str, Any]:
    """Turn what a document says into plain data, all of it, so that a revision can be read without this code."""
    plain: dict[str, Any] = msgspec.to_builtins(document)
    del plain["revision"]  # given by where it is stored
    return plain


def from_plain(plain: Any) -> HandoffDocument:
    """Turn plain data back into a document. What does not fit is ``Invalid`` with the path to it."""
    try:
        return msgspec.convert(plain, HandoffDocument)
    except msgspec.ValidationError as error:
        raise Invalid(f"this is not a handoff document: {error}") from error
