"""Entries of a log as a conversation that any model accepts: who said what, which tool was called, what came back.

A call and its result stay together, whatever was written between them: a call without a result gets a stand-in, a
result without its call becomes a remark, and no id occurs twice. What a model cannot be shown (an image of long ago, a
block of a kind nobody knows) becomes a remark that says where it is. Deliberately absent: how much of it fits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec

from holdfast.ledger.blocks import ResultBlock, call_in, is_outside, is_outside_role, result_in
from holdfast.ledger.speech import RESERVED, is_ours, marked, spoken
from holdfast.records import TRUST, Entry

MISSING = "(no result is recorded for this call)"
EMPTY = "(empty)"
_UNANSWERED = f"{RESERVED}unanswered"
_REMARK = 400
_ID = 40
_NEVER = 2**63
_PLAIN = {"role", "content"}
_HELD = ("content", "text", "parts")
_KNOWN = {*_HELD, "tool_calls", "function_call"}
_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_SPEAKS = re.compile(
    r"(?:^|(?<=[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]))"
    r"(?=[^\w\n]*(?:user|human|assistant|system|developer|tool|result)\b[^:\n]{0,60}:)",
    re.IGNORECASE | re.MULTILINE,
)
_QUOTES = str.maketrans('"<>', "'()")
_TEXTS = ("text", "input_text", "output_text", "refusal")
_THOUGHTS = ("thinking", "redacted_thinking", "reasoning")


_GAP = r"[^\w<>]*"  # whatever is no letter, and much of it cannot be seen
_OURS = re.compile(
    rf"<(?={_GAP}(?:{'|'.join(_GAP.join(name) for name in ('recalled', 'state', 'news', 'outside'))})\b)", re.IGNORECASE
)


def harmless(text: str) -> str:
    """A text that can neither end the block that it is shown in nor begin another."""
    return _OURS.sub("&lt;", text) if "<" in text else text


def outside(text: str, source: str = "") -> str:
    """A text that a user's message brings along and that is not the user's word, as a block of its own."""
    where = " ".join((source or "elsewhere").split()).translate(_QUOTES)
    return f'<outside from="{where}">\n{harmless(quoted_lines(text))}\n</outside>'


def quoted_lines(text: str) -> str:
    """A text in which no line can pass for a turn of the conversation that it is shown in."""
    return _SPEAKS.sub("> ", text)


class CallPart(NamedTuple):
    """A tool that a model decided to use. ``arguments`` is JSON text."""

    id: str
    name: str
    arguments: str


class ResultPart(NamedTuple):
    """What came back of a call. ``number`` is the entry that holds the whole of it, 0 where there is none."""

    of: str
    text: str
    number: int = 0


class Message(NamedTuple):
    """One message: of a user, of an assistant with the tools it calls, or the results of a ``tool``."""

    role: str
    text: str = ""
    calls: tuple[CallPart, ...] = ()
    results: tuple[ResultPart, ...] = ()
    parts: tuple[Any, ...] = ()


class Stretch(NamedTuple):
    """Messages that belong together, in a window or not at all: entries ``first`` to ``last``."""

    first: int
    last: int
    messages: tuple[Message, ...]
    remark: bool = False

    @property
    def opens(self) -> bool:
        """Whether a turn begins here: a user speaks, and it is not a remark about something that happened."""
        return self.messages[0].role == "user" and not self.remark


class _Atom(NamedTuple):
    """One thing that an entry holds, in the order of the log."""

    number: int
    kind: str  # user, assistant, call, result, remark
    text: str
    id: str = ""
    name: str = ""


class ConversationSoFar(NamedTuple):
    """The conversation of some entries. Nothing that comes later changes the stretches ``settled``, of the entries
    ``behind``."""

    stretches: list[Stretch]
    settled: list[Stretch]
    behind: Sequence[Entry]


def conversation(entries: Sequence[Entry]) -> list[Stretch]:
    """The conversation that entries hold, as stretches that must not be torn apart."""
    return tell(entries).stretches


def tell(entries: Sequence[Entry], before: ConversationSoFar | None = None) -> ConversationSoFar:
    """See ``conversation``. What was told before is not worked out again, as far as the entries are the same."""
    _, settled, behind = before or ConversationSoFar([], [], [])
    if behind != entries[: len(behind)]:
        settled, behind = [], []
    seen = {call.id for stretch in settled for message in stretch.messages for call in message.calls}
    atoms = _paired([atom for entry in entries[len(behind) :] for atom in _atoms(entry)], seen)
    stretches = [*settled, *_stretches(atoms)]
    if end := _settled(atoms):
        settled = [stretch for stretch in stretches if stretch.last < end]
        behind = [entry for entry in entries if entry.number < end]
    return ConversationSoFar(stretches, settled, behind)


def _settled(atoms: Sequence[_Paired]) -> int:
    """The number of the last entry where a user starts afresh, with all calls before it answered; or 0."""
    found = last = 0
    for one in atoms:
        number, answer = one.atom.number, one.answer
        if one.atom.kind == "user" and number > last:
            found = number
        if one.atom.kind == "call":
            number = _NEVER if answer is None else answer.number
        last = max(last, number)
    return found


# What an entry holds


def _atoms(entry: Entry) -> Iterator[_Atom]:
    content, number = entry.content, entry.number
    fields = content if isinstance(content, dict) else {}
    if entry.kind == "tool_call":
        yield _call(number, fields.get("id"), fields.get("name"), fields.get("arguments") if fields else content)
    elif entry.kind == "observation":
        yield _Atom(number, "result", _shown(fields.get("content", content)), _text(fields.get("of")))
    elif entry.kind == "message":
        known = not fields or fields.keys() & _KNOWN or is_outside(fields) or call_in(fields) is not None
        yield from _said(entry, fields) if known else _unreadable(entry)
    elif entry.kind != "summary" and (entry.kind != "event" or not is_ours(fields) or fields["name"] == _UNANSWERED):
        yield _Atom(number, "remark", remark(entry))


def _unreadable(entry: Entry) -> list[_Atom]:
    """A message of which nothing else could be made, unless there is nothing in it."""
    told = remark(entry)
    return [] if told == f"[{entry.kind}: ]" else [_Atom(entry.number, "remark", told)]


def _said(entry: Entry, fields: dict[str, Any]) -> Iterator[_Atom]:
    role, number = _text(fields.get("role")), entry.number
    content = next((fields[name] for name in _HELD if name in fields), None if fields else entry.content)
    if isinstance(content, str) and fields.keys() == _PLAIN and role in ("user", "assistant"):  # as most of them are
        if content.strip():
            yield _Atom(number, role, content)
        return
    if (is_outside_role(role) or result_in(fields)) and not _answers(content):
        result = result_in(fields) or ResultBlock(_text(fields.get("tool_call_id")), content)
        yield _Atom(number, "result", _shown(result.content), result.of)
        return
    speaker = role if role in ("user", "assistant") else ("assistant" if role in ("model", "ai") else "user")
    if not is_outside_role(role) and (source := _from_outside(fields)) is not None:
        yield _brought(entry, speaker, spoken(entry.kind, fields), source, _text(fields.get("type")))
        return
    blocks = content if isinstance(content, list) else [content]
    if not role and isinstance(fields.get("type"), str):  # an item of OpenAI's Responses is a block by itself
        blocks = [fields]
    yield from _merged(_block(entry, block, speaker) for block in blocks)
    for call in [*_listed(fields.get("tool_calls")), *_listed([fields.get("function_call")])]:
        inner = call.get("function")
        function = inner if isinstance(inner, dict) else call
        yield _call(number, call.get("id"), function.get("name"), function.get("arguments", function.get("args")))


def _answers(content: Any) -> bool:
    """Whether a content is a list of results that each name their call."""
    return isinstance(content, list) and any(result_in(block) for block in content)


def _merged(atoms: Iterable[_Atom | None]) -> Iterator[_Atom]:
    """Blocks of text that follow each other are one text."""
    held: _Atom | None = None
    for atom in atoms:
        if atom is None:
            continue
        if held is not None and held.kind == atom.kind and atom.kind in ("user", "assistant"):
            held = held._replace(text=f"{held.text}\n{atom.text}")
            continue
        if held is not None:
            yield held
        held = atom
    if held is not None:
        yield held


def _block(entry: Entry, block: Any, speaker: str) -> _Atom | None:
    """One block of a message. What cannot be shown is said to be there."""
    number = entry.number
    if not isinstance(block, dict):
        text = block if isinstance(block, str) else _shown(block)
        return _Atom(number, speaker, _named(entry, speaker, text)) if text.strip() else None
    kind = _text(block.get("type"))
    if kind in _THOUGHTS:
        return None  # a model's own thoughts are of the turn that they were thought in
    if (call := call_in(block)) is not None:
        return _call(number, call.id, call.name, call.arguments)
    if (result := result_in(block)) is not None:
        return _Atom(number, "result", _shown(result.content), result.of)
    if (source := _from_outside(block)) is not None:
        return _brought(entry, speaker, spoken("observation", [block]), source, kind)
    for name in _TEXTS:
        if isinstance(block.get(name), str) and (not kind or kind in _TEXTS):
            return _Atom(number, speaker, _named(entry, speaker, block[name])) if block[name].strip() else None
    return _unshown(entry, speaker, kind)


def _from_outside(block: dict[str, Any]) -> str | None:
    """Where a block, or a message, comes from that is not to be trusted; None where it is its sender's own."""
    mark = marked(block)
    return mark[1] if mark is not None and mark[0] == TRUST[0] else None


def _brought(entry: Entry, speaker: str, told: str, source: str, kind: str) -> _Atom:
    """What a message brings from outside, as far as it is text."""
    if not told.strip():
        return _unshown(entry, speaker, kind)
    return _Atom(entry.number, speaker, outside(told, source))


def _unshown(entry: Entry, speaker: str, kind: str) -> _Atom:
    return _Atom(entry.number, speaker, f"[{kind or 'block'}: not shown, see {entry.thread}#{entry.number}]")


def _named(entry: Entry, speaker: str, text: str) -> str:
    """Who speaks, where there are more than two, or where it was neither of them."""
    fields = entry.content if isinstance(entry.content, dict) else {}
    role, name = _text(fields.get("role")), _text(fields.get("name"))
    who = name or (role if speaker == "user" and role not in ("user", "") else "")
    return f"{who}: {text}" if who else text


def _call(number: int, id: Any, name: Any, arguments: Any) -> _Atom:
    return _Atom(number, "call", as_object(arguments), _text(id), _NAME.sub("_", _text(name))[:64] or "tool")


def as_object(arguments: Any) -> str:
    """What a call gives, as the JSON object that every vendor takes, whatever was written."""
    if isinstance(arguments, str):
        with suppress(msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            arguments = msgspec.json.decode(arguments) if arguments.strip() else {}
    if arguments is None:
        arguments = {}
    try:
        plain = arguments if isinstance(arguments, dict) else {"value": arguments}
        return msgspec.json.encode(plain, enc_hook=str).decode()
    except (msgspec.EncodeError, RecursionError, UnicodeEncodeError, TypeError):
        return msgspec.json.encode({"value": repr(arguments)[:_REMARK]}).decode()


def remark(entry: Entry) -> str:
    """A note or an event in one line."""
    said = spoken(entry.kind, entry.content) or _told(entry.content)
    text = " ".join(said.split())
    return f"[{entry.kind}: {harmless(text[:_REMARK])}{'…' if len(text) > _REMARK else ''}]"


def _told(content: Any) -> str:
    """What an event says that nobody said: why a question was not answered."""
    why = content.get("why") if isinstance(content, dict) else None
    return f"not answered: {why}" if isinstance(why, str) else ""


def _shown(content: Any) -> str:
    """What a tool gave back, as text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = [_part(part) for part in content]  # blocks of a page say what they hold, pictures that they are there
        return "\n".join(text for text in texts if text)
    return "" if content is None else json.dumps(content, ensure_ascii=False, default=str)


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    if isinstance(part, dict) and isinstance(part.get("type"), str):
        return spoken("observation", [part]) or f"[{part['type']}: not shown]"
    return json.dumps(part, ensure_ascii=False, default=str)


def _listed(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


# Calls and their results


class _Paired(NamedTuple):
    """An atom, and where it is a call the result that answers it, with the place that this had in the log."""

    atom: _Atom
    answer: _Atom | None = None
    place: int = 0
    answered: int = _NEVER


def _paired(atoms: list[_Atom], seen: set[str]) -> list[_Paired]:
    """Each atom with the result that answers it, where it is a call; results that answer nothing become remarks.

    ``seen`` are the ids that calls have already.
    """
    waiting: list[int] = []
    answers: dict[int, int] = {}
    for place, atom in enumerate(atoms):
        if atom.kind == "call":
            waiting.append(place)
        elif atom.kind == "result":
            called = [at for at in waiting if atoms[at].id == atom.id] or ([] if atom.id else waiting)
            if called:
                answers[called[0]] = place
                waiting.remove(called[0])
    taken = set(answers.values())
    found: list[_Paired] = []
    for place, atom in enumerate(atoms):
        at = answers.get(place)
        if atom.kind == "call":
            answer = None if at is None else atoms[at]
            found.append(_Paired(_unique(atom, seen), answer, place, _NEVER if at is None else at))
        elif atom.kind != "result":
            found.append(_Paired(atom, place=place))
        elif place not in taken:
            told = outside(atom.text, "a call before this")
            found.append(_Paired(atom._replace(kind="remark", text=told), place=place))
    return found


def _unique(call: _Atom, seen: set[str]) -> _Atom:
    id = base = _NAME.sub("_", call.id)[:_ID] or f"call-{call.number}"
    count = 0
    while id in seen:
        count += 1
        id = f"{base[:20]}-{call.number}-{count}"
    seen.add(id)
    return call._replace(id=id)


def _stretches(atoms: list[_Paired]) -> Iterator[Stretch]:
    """Calls that follow an assistant's words, or each other, are of one message; their results come right after it.

    A call that was made when the one before it was answered already is of a message of its own.
    """
    place = 0
    while place < len(atoms):
        first = atoms[place]
        end = place + 1
        if first.atom.kind in ("user", "remark"):
            number, said = first.atom.number, (Message("user", first.atom.text),)
            yield Stretch(number, number, said, first.atom.kind == "remark")
            place = end
            continue
        answered = first.answered
        while end < len(atoms) and atoms[end].atom.kind == "call" and atoms[end].place < answered:
            answered = min(answered, atoms[end].answered)
            end += 1
        yield _stretch(atoms[place:end])
        place = end


def _stretch(group: list[_Paired]) -> Stretch:
    text = group[0].atom.text if group[0].atom.kind == "assistant" else ""
    calls = [one for one in group if one.atom.kind == "call"]
    numbers = [atom.number for one in group for atom in (one.atom, one.answer) if atom is not None]
    said = Message("assistant", text, tuple(CallPart(one.atom.id, one.atom.name, one.atom.text) for one in calls))
    if not calls:
        return Stretch(min(numbers), max(numbers), (said,))
    results = tuple(_result(one.atom.id, one.answer) for one in calls)
    return Stretch(min(numbers), max(numbers), (said, Message("tool", results=results)))


def _result(of: str, answer: _Atom | None) -> ResultPart:
    if answer is None:
        return ResultPart(of, MISSING)
    return ResultPart(of, harmless(answer.text) if answer.text.strip() else EMPTY, answer.number)


def as_text(message: Message) -> str:
    """A message in plain text."""
    lines = [f"{message.role}: {message.text}"] if message.text else []
    lines += [f"assistant calls {call.name} ({call.id}): {call.arguments}" for call in message.calls]
    lines += [f"result ({result.of}): {quoted_lines(result.text)}" for result in message.results]
    return "\n\n".join(lines)
