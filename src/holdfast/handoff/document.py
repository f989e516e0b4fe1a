"""What a handoff says: a goal, features, steps, blockers, decisions, context, and whatever else a person wrote into it.

Values only, with the rules that need no store: how facts of runs join what is stored, how an update changes it, and how
it becomes plain data and comes back. Deliberately absent: markdown (``markdown``), revisions (``handoff``), and where
the facts of runs come from (they are passed in).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import msgspec

from holdfast.engine.codec import decode, encode
from holdfast.errors import Invalid, quoted

Kind = Literal["goal", "start", "features", "steps", "blockers", "next_action", "decisions", "context"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Place = Literal["", "goal", "start", "features", "steps", "blockers", "next_action", "decisions", "context"]
Data = dict[str, Any] | list[Any]
_NAMED = ("text", "name", "description", "title", "feature", "step", "task", "action")
_TICKED = ("done", "passes", "passed", "completed", "complete", "status")
_OVER = ("done", "completed", "complete", "finished", "passed", "passes", "passing")
_ORDER = {place: number for number, place in enumerate(("", *KINDS))}


class HandoffItem(msgspec.Struct, frozen=True):
    """One step, or one feature, which is ``done`` when it passes.

    ``ref`` is ``RUN/STEP`` when it is a step of a run; then the run knows whether it is done.
    """

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
    """A whole handoff. ``start`` is what the next session runs first, ``data`` what the context holds besides text.

    ``opening`` is free text above the first heading, ``remarks`` and ``feature_remarks`` free text above the lists.
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
    decisions: tuple[str, ...] = ()
    features: tuple[HandoffItem, ...] = ()
    feature_remarks: str = ""
    start: str = ""
    data: Data | None = None
    revision: int = 0

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.extra, key=lambda section: _ORDER[section.after]))
        msgspec.structs.force_setattr(self, "extra", ordered)
        msgspec.structs.force_setattr(self, "data", self.data or None)

    @property
    def done(self) -> tuple[HandoffItem, ...]:
        """The steps that are done."""
        return tuple(item for item in self.steps if item.done)

    @property
    def todo(self) -> tuple[HandoffItem, ...]:
        """The steps that are open."""
        return tuple(item for item in self.steps if not item.done)


EMPTY = HandoffDocument()


def same(one: HandoffDocument, other: HandoffDocument) -> bool:
    """Whether two documents say the same, also where 1 and True are equal."""
    return one == other and repr(one.data) == repr(other.data)


class HandoffParts:
    """A document while a file is read: texts of a kind are joined, and so are its lists."""

    def __init__(self) -> None:
        self.texts: dict[str, list[str]] = {}
        self.items: dict[str, list[HandoffItem]] = {"steps": [], "features": []}
        self.lists: dict[str, list[str]] = {"blockers": [], "decisions": []}
        self.data: Data | None = None
        self.extra: list[HandoffSection] = []

    def say(self, name: str, text: str | None) -> None:
        if text:
            self.texts.setdefault(name, []).append(text)

    def document(self, hidden: tuple[str, ...]) -> HandoffDocument:
        found: dict[str, Any] = {name: "\n\n".join(texts) for name, texts in self.texts.items()}
        found |= {name: tuple(items) for name, items in self.items.items()}
        found |= {name: tuple(texts) for name, texts in self.lists.items()}
        return HandoffDocument(**found, extra=tuple(self.extra), hidden=hidden, data=self.data)


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


_REPLACED = ("done", "todo", "decisions", "features")


class HandoffChanges(msgspec.Struct, frozen=True):
    """What an update asks for, checked. None leaves a part alone."""

    goal: str | None = None
    done: tuple[str, ...] | None = None
    todo: tuple[str, ...] | None = None
    blockers: tuple[str, ...] | None = None
    next_action: str | None = None
    context: str | None = None
    data: Data | None = None
    start: str | None = None
    decisions: tuple[str, ...] | None = None
    features: tuple[tuple[str, bool | None], ...] | None = None
    replace: bool = False

    @classmethod
    def of(cls, *, replace: object = False, **given: object) -> HandoffChanges:
        """Check what a caller gave. A sentence says what is wrong with it."""
        if type(replace) is not bool:
            raise Invalid(f"replace is True or False, not {quoted(replace)}")
        if replace and all(given.get(name) is None for name in _REPLACED):
            raise Invalid("replace=True replaces what you give: done, todo, decisions or features, [] for none")
        context = given.pop("context", None)
        if isinstance(context, dict | list):
            given["data"] = decode(encode(context, "context"))
        else:
            given["context"] = to_text("context", context, "text, a dict or a list")
        for name in ("goal", "start", "next_action"):
            given[name] = to_text(name, given.get(name))
        for name in ("done", "todo", "blockers", "decisions"):
            given[name] = _texts(name, given.get(name))
        given["features"] = _features(given.get("features"))
        return cls(**given, replace=replace)  # type: ignore[arg-type]


def to_text(name: str, value: object, wanted: str = "text") -> str | None:
    """A text as it can be written to a file; None stays None."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise Invalid(f"{name} is {wanted}, not {type(value).__name__}")
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
        text = to_text(f"{name}[{number}]", item)
        if text is None:
            raise Invalid(f"{name}[{number}] is text, not None")
        found.append(text)
    return tuple(found)


def _features(value: object) -> tuple[tuple[str, bool | None], ...] | None:
    """Names of features, each with whether it passes, or None where that is not said."""
    if value is None:
        return None
    if isinstance(value, dict):
        value = [{"name": name, "passes": passes} for name, passes in value.items()]
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list | tuple):
        raise Invalid(f"features is a list of texts, or a dict of name and True or False, not {type(value).__name__}")
    found = []
    for number, one in enumerate(value):
        item = to_item(f"features[{number}]", one)
        said = isinstance(one, dict) and any(name in one for name in _TICKED)
        found.append((item.text, item.done if said else None))
    return tuple(found)


def to_item(where: str, value: object, done: bool | None = False) -> HandoffItem:
    """One step or feature as people write it as data: a text, or an object with a text and whether it is done.

    Whatever else the object says becomes further lines of the text. ``done`` is for one that does not say; None is for
    texts that are never done, as blockers.
    """
    if isinstance(value, str):
        return HandoffItem(to_text(where, value) or "", bool(done))
    if not isinstance(value, dict):
        raise Invalid(f"{where} is text, or an object with a text in it, not {type(value).__name__}")
    rest = dict(decode(encode(value, where)))
    name = next((name for name in _NAMED if isinstance(rest.get(name), str)), None)
    if name is None:
        raise Invalid(f"{where} has no text: give it as {_NAMED[0]!r}, {_NAMED[1]!r} or {_NAMED[2]!r}")
    text = to_text(f"{where}.{name}", rest.pop(name))
    ref = None
    if done is not None:
        done = _ticked(where, rest, done)
        ref = rest.pop("ref") if isinstance(rest.get("ref"), str) and "/" in rest["ref"] else None
    lines = [f"{key}: {said if isinstance(said, str) else json_of(said)}" for key, said in rest.items()]
    return HandoffItem(to_text(where, "\n".join([text or "", *lines])) or "", bool(done), to_text(f"{where}.ref", ref))


def _ticked(where: str, rest: dict[str, Any], done: bool) -> bool:
    """Whether an object says that it is done; the key that says so is taken out."""
    ticked = next((name for name in _TICKED if name in rest), None)
    if ticked is None:
        return done
    said = rest.pop(ticked)
    if ticked == "status" and said not in _OVER:
        rest[ticked] = said  # more than yes or no
        return False
    if said is not None and not isinstance(said, bool) and ticked != "status":
        raise Invalid(f"{where}.{ticked} is true or false, not {quoted(said)}")
    return bool(said)


def json_of(value: object, indent: int = -1) -> str:
    """Plain data as JSON text; with ``indent``, in lines."""
    return msgspec.json.format(msgspec.json.encode(value), indent=indent).decode()


def revised(document: HandoffDocument, changes: HandoffChanges) -> HandoffDocument:
    """Apply an update. What it does not name stays as it is."""
    named = {
        name: value
        for name in ("goal", "start", "next_action", "context", "data", "blockers")
        if (value := getattr(changes, name)) is not None
    }
    if changes.decisions is not None:
        before = () if changes.replace else document.decisions
        named["decisions"] = tuple(dict.fromkeys((*before, *changes.decisions)))
    if changes.features is not None:
        before_them = () if changes.replace else document.features
        named["features"] = tuple(_revised_features(before_them, changes.features))
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


def _revised_features(
    features: tuple[HandoffItem, ...], changes: Sequence[tuple[str, bool | None]]
) -> list[HandoffItem]:
    """Features by name, which is the first line or all of the text: new ones are added, others pass or fail from now
    on where that is said."""
    result = list(features)
    for text, passes in changes:
        same = [item for item in result if item.text == text]
        same = same or [item for item in result if item.text.split("\n", 1)[0] == text]
        if not same:
            result.append(HandoffItem(text, bool(passes)))
        elif passes is not None:
            result = [msgspec.structs.replace(item, done=passes) if item in same else item for item in result]
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
