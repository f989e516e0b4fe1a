"""Notes with questions: a text as a person writes it by hand, or JSON.

In a text each line is a note, and its number is the note's id. ``? question => words of the note`` asks for the one
note that has all of the words; ``? question => #3`` for that on line 3; ``?! question`` for what no note answers. A
bullet before a line is not part of it; headings and blank lines are passed over. JSON is ``{"notes": [{"id", "text"}],
"questions": [{"text", "gold": [note ids]}], "unanswerable": [{"text"}], "offtopic": ["text"]}``; all but notes may be
missing, and other fields are ignored. Deliberately absent: the files themselves (``reading``), and guessing which note
is meant.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from holdfast.evaluation.dataset import Conversation, Question, Utterance
from holdfast.evaluation.fields import Wrong, an_object, different, each, field, identifier, text_of

_BULLET = re.compile(r"[-*•]\s+")
_HEADING = re.compile(r"#+(\s|$)")
_LINES = re.compile(r"#\d{1,9}([\s,]+#\d{1,9})*")
_ANSWERED, _UNANSWERED = "answerable", ("unanswerable", "offtopic")
_HOW = (
    "a question names its note: '? question => words of the note' or '? question => #line'; "
    "one that no note answers begins with ?!"
)


def from_text(text: str) -> Conversation:
    """The notes and questions of a plain text. A question may stand before its note."""
    lines = {at: _BULLET.sub("", line.strip(), count=1) for at, line in enumerate(text.split("\n"), 1)}
    asked = {at: line for at, line in lines.items() if line.startswith("?")}
    notes = {at: line for at, line in lines.items() if line and at not in asked and not _HEADING.match(line)}
    turns = [_note(str(at), line) for at, line in notes.items()]
    return _conversation(turns, [_asked(at, line, notes) for at, line in asked.items()])


def _asked(at: int, line: str, notes: Mapping[int, str]) -> Question:
    place = f"line {at}"
    if line.startswith("?!"):
        if "=>" in line or not line[2:].strip():
            raise Wrong(place, "after ?! stands a question that no note answers, and nothing else")
        return Question(place, _UNANSWERED[0], line[2:].strip(), frozenset())
    question, _, answer = line[1:].rpartition("=>")
    if not question.strip() or not answer.strip():
        raise Wrong(place, _HOW)
    return Question(place, _ANSWERED, question.strip(), frozenset(map(str, _named(answer.strip(), notes, place))))


def _named(answer: str, notes: Mapping[int, str], place: str) -> list[int]:
    """The lines of the notes that a question names."""
    if _LINES.fullmatch(answer):
        found = [int(number) for number in re.findall(r"\d+", answer)]
        for at in found:
            if at not in notes:
                raise Wrong(place, f"there is no note on line {at}")
        return found
    words = answer.casefold().split()
    found = [at for at, note in notes.items() if all(word in note.casefold() for word in words)]
    if not found:
        raise Wrong(place, f"no note has the words {answer!r}")
    if len(found) > 1:
        several = " ".join(f"#{at}" for at in found)
        raise Wrong(place, f"{len(found)} notes have the words {answer!r}: {several}; add a word, or name the lines")
    return found


def from_json(value: Any) -> Conversation:
    """The notes and questions of a parsed file."""
    fields = an_object(value, "the file")
    turns = each(field(fields, "notes", "the file"), "notes", "note", _read)
    different("note", turns)
    known = {turn.id for turn in turns}

    def answered(value: Any, place: str) -> Question:
        inside = an_object(value, place)
        gold = field(inside, "gold", place)
        if not isinstance(gold, list) or not gold:
            raise Wrong(place, "gold is a list of the ids of notes; a question without any belongs to unanswerable")
        for id in gold:
            if not isinstance(id, str) or id not in known:
                raise Wrong(place, f"there is no note {id!r}")
        return Question(place, _ANSWERED, _said(inside, place), frozenset(gold))

    questions = each(fields.get("questions", []), "questions", "question", answered)
    for kind in _UNANSWERED:
        texts = each(fields.get(kind, []), kind, f"{kind} question", _text_or_object)
        questions += [Question(f"{kind} {at}", kind, text, frozenset()) for at, text in enumerate(texts, 1)]
    return _conversation(turns, questions)


def _read(value: Any, place: str) -> Utterance:
    fields = an_object(value, place)
    return _note(identifier(fields, "id", place), _said(fields, place))


def _text_or_object(value: Any, place: str) -> str:
    return _said({"text": value} if isinstance(value, str) else an_object(value, place), place)


def _said(fields: dict[str, Any], place: str) -> str:
    text = text_of(fields, "text", place).strip()
    if not text:
        raise Wrong(place, "text must not be empty")
    return text


def _note(id: str, text: str) -> Utterance:
    return Utterance(id, "notes", "", text)


def _conversation(turns: list[Utterance], questions: list[Question]) -> Conversation:
    """Refuse repeated notes: the store keeps such a note once, and either would be right."""
    if not turns:
        raise Wrong("the file", "there is no note in it")
    seen: dict[str, str] = {}
    for turn in turns:
        first = seen.setdefault(turn.text, turn.id)
        if first != turn.id:
            raise Wrong("the file", f"the notes {first} and {turn.id} say the same; keep one of them")
    return Conversation("notes", tuple(turns), tuple(questions), remembered=True)
