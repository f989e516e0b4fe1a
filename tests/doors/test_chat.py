"""The chat: it remembers, says what it knows and why, and goes on with what was left open."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

import holdfast
from holdfast import config
from holdfast.errors import ModelFailed
from holdfast.providers.models.model import ToolCall
from holdfast.testing.fakes import ManualClock
from holdfast.testing.models import Broken, Scripted

pytest.importorskip("typer", reason="the command's extra is not installed")

from holdfast.doors.cli import chat_model, chat_view, exits
from holdfast.doors.cli.app import run
from holdfast.doors.cli.chat import Chat
from holdfast.doors.cli.chat_commands import HELP
from holdfast.doors.cli.chat_model import Answerer
from holdfast.doors.cli.desk import Desk, Options
from holdfast.doors.cli.render import Screen


class Done(NamedTuple):
    """How a chat went."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Talk = Callable[..., Done]


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No vendor's key, and words alone for recall: what is tested here needs no vectors."""
    for name in [*config.VENDOR_MODELS, "OPENAI_BASE_URL"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "none")


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "agent.db"
    monkeypatch.setenv("HOLDFAST_DB", str(path))
    return path


@pytest.fixture
def talk(db: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Talk:
    """Run the command with lines on its standard input, as from a pipe."""

    def talk(*args: str, says: str = "") -> Done:
        monkeypatch.setattr(sys, "stdin", io.StringIO(says))
        capsys.readouterr()
        code = run(["chat", *args])
        return Done(code, *capsys.readouterr())

    return talk


@pytest.fixture
def with_model(db: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Talk:
    """Run a chat with a model that says what it was told to say."""

    def talk(model: Scripted, says: str = "", *, as_json: bool = False) -> Done:
        monkeypatch.setattr(sys, "stdin", io.StringIO(says))
        capsys.readouterr()
        with holdfast.open(db, embedder=None) as store:
            desk = Desk(Options(str(db), json=as_json))
            code = Chat(desk, store, store.thread("chat", user="ana"), Answerer(model, inside=True), None).run()
        return Done(code, *capsys.readouterr())

    return talk


def asked(db: Path, text: str = "What did I say about the cello?") -> None:
    """Leave a question behind, as a process does that is killed before it answers."""
    with holdfast.open(db, embedder=None) as store:
        thread = store.thread("chat", user="ana")
        thread.append(holdfast.message("user", "My cello travels in the cabin."))
        thread.append(holdfast.message("assistant", "Noted."))
        thread.append(holdfast.message("user", text))


def kinds(db: Path, thread: str = "chat") -> list[str]:
    with holdfast.open(db, embedder=None) as store:
        return [entry.kind for entry in store.thread(thread).log()]


# Remembering


def test_it_quotes_what_it_was_told_and_learns_facts_from_it(talk: Talk) -> None:
    done = talk("--user", "ana", says="I live in Berlin.\nWhere do I live?\nWhich car do I drive?\n")
    assert (done.code, done.err) == (0, "")
    assert "thread chat · user ana · answers by quoting (no model named" in done.out
    assert "A new conversation.\n" in done.out
    assert "✓ remembered: ana lives in Berlin (home)\n" in done.out
    assert re.search(r"^“ana lives in Berlin” \(fact home, since \S+, from chat#1\)\.?$", done.out, re.MULTILINE)
    assert "I do not know that. I looked for “car” and “drive”." in done.out
    assert done.out.endswith("Handoff written (revision 1). Come back any time.\n")


def test_the_next_start_knows_how_much_there_is_and_another_thread_knows_the_person(talk: Talk) -> None:
    talk("--user", "ana", says="I live in Berlin.\n")
    again = talk(says="/quit\nnot read any more\n")
    assert re.search(r"Welcome back: 4 entries, last active \S+Z\. 1 fact is known\.\n", again.out)
    assert "not read" not in again.out
    new = talk("--new", "--user", "ana", says="Where do I live?\n")
    assert "thread chat-2 · user ana" in new.out
    assert re.search(r"“ana lives in Berlin” \(fact home, since \d{4}-\d\d-\d\d, from chat#1\)\.\n", new.out)


def test_a_new_conversation_belongs_to_whoever_sits_here(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "tom")
    assert talk("--json", says="I live in Berlin.\n").events[0]["user"] == "tom"
    monkeypatch.setenv("LOGNAME", "eve")
    assert talk("--json").events[0]["user"] == "tom", "a conversation keeps its user"


def test_nothing_is_written_where_nothing_was_said(talk: Talk, db: Path) -> None:
    done = talk("--user", "ana", says="\n/help\n/state\n")
    assert (done.code, done.err) == (0, "")
    with holdfast.open(db) as store:
        assert not store.thread("chat").exists()


def test_a_conversation_of_another_user_is_refused(talk: Talk) -> None:
    talk("--user", "ana", says="I live in Berlin.\n")
    done = talk("--user", "tom", says="Where does Ana live?\n")
    assert (done.code, done.out) == (exits.USAGE, "")
    assert "belongs to user 'ana'" in done.err


# What was left open


def test_a_question_that_was_never_answered_is_said_and_answered(talk: Talk, db: Path) -> None:
    asked(db)
    done = talk()
    assert done.code == 0
    assert "Your last question was never answered (#3):\n  “What did I say about the cello?”\n" in done.out
    assert "Answering it now:\nYou said: “My cello travels in the cabin.” (chat#1, " in done.out
    assert kinds(db)[3:] == ["message", "event", "event"], "one answer, what it took, and the end of the session"
    assert "never answered" not in talk().out


def test_what_had_been_done_for_it_is_told_and_not_done_again(with_model: Talk, db: Path) -> None:
    cut = Scripted(ToolCall("1", "remember", {"text": "Plays the cello"}), Broken("You play"))
    first = with_model(cut, "What do I play?\n")
    assert first.code == exits.UNAVAILABLE
    assert "Your question is stored: /resume answers it, and so does the next start.\n" in first.out
    second = with_model(Scripted("The cello.", *[{}] * 4))
    assert "Already done, and not done again:\n  ✓  remember  Remembered as [" in second.out
    assert "It had begun to say: You play\n" in second.out
    assert second.out.index("Answering it now:") < second.out.index("The cello.")
    with holdfast.open(db, embedder=None) as store:
        told = [memory.text for memory in store.memory(user="ana").memories()]
    assert told.count("Plays the cello") == 1


def test_a_model_that_fails_leaves_the_question_open_until_it_is_resumed(with_model: Talk) -> None:
    failed = ModelFailed("scripted is busy", model="scripted", reason="busy", partial="")
    done = with_model(Scripted(failed, "An aisle seat.", *[{}] * 4), "Which seat?\n/resume\n/resume\n")
    assert done.code == 0, "in the end nothing is left open"
    assert "error: scripted is busy\nYour question is stored" in done.out
    assert "An aisle seat.\n" in done.out
    assert "There is no open question.\n" in done.out


def test_an_interrupted_answer_leaves_the_question_open(with_model: Talk, db: Path) -> None:
    done = with_model(Scripted(KeyboardInterrupt()), "Which seat?\n")
    assert done.code == exits.INTERRUPTED
    assert "Interrupted.\nYour question is stored" in done.out
    again = with_model(Scripted("An aisle seat.", *[{}] * 4))
    assert "never answered (#1)" in again.out
    assert "An aisle seat.\n" in again.out


def test_of_two_that_answer_the_same_question_the_first_counts(with_model: Talk, db: Path) -> None:
    def faster(messages: Any, tools: Any) -> str:
        with holdfast.open(db, embedder=None) as store:
            store.session("chat").resume().reply("The window.")
        return "The aisle."

    done = with_model(Scripted("Noted.", faster, *[{}] * 4), "Hello there, friend.\nWhich seat?\n")
    assert "Another process answered first; its answer counts:\n  The window.\n" in done.out
    with holdfast.open(db, embedder=None) as store:
        said = [entry.content["content"] for entry in store.thread("chat").log() if entry.kind == "message"]
    assert said == ["Hello there, friend.", "Noted.", "Which seat?", "The window."]


def test_the_end_of_the_last_session_is_told(talk: Talk, db: Path) -> None:
    with holdfast.open(db, embedder=None) as store:
        store.thread("chat", user="ana").handoff.update(
            goal="Fly to Lisbon", next_action="Ask for the date", blockers=["No passport"]
        )
    out = talk().out
    assert re.search(r"  goal +Fly to Lisbon\n  next +Ask for the date\n  blocked +No passport\n", out)


# States


@holdfast.schema("chat.fares", version=1, fresh={"fare": "1h"}, critical=["fare"])
class Fares(msgspec.Struct):
    fare: int = 0


def test_fields_to_be_verified_are_told(talk: Talk, db: Path) -> None:
    with holdfast.open(db, embedder=None, clock=ManualClock(1_700_000_000_000_000)) as store:
        thread = store.thread("chat", user="ana")
        thread.save(Fares(184))
    assert re.search(r"  verify +fare, confirmed [\d,]+ days ago\n", talk().out)
    assert "Verify before acting" in talk(says="/state\n").out
    assert talk("--json").events[0]["must_verify"] == ["fare"]


def test_a_state_of_another_program_does_not_stop_it(talk: Talk, db: Path) -> None:
    registry = holdfast.Registry()
    registry.schema("chat.theirs", 1)(msgspec.defstruct("Theirs", [("fare", int)]))
    with holdfast.open(db, embedder=None, schemas=registry) as store:
        store.thread("chat", user="ana").save({"fare": 184}, schema="chat.theirs")
    done = talk(says="What is the fare?\n/state\n")
    assert (done.code, done.err) == (0, "")
    assert "fare: 184" in done.out
    assert "belongs to another program" in done.out


# Looking behind it


def test_the_context_is_accounted_for(talk: Talk) -> None:
    says = "I live in Berlin.\nWhere do I live?\n/context\n"
    found = talk("--user", "ana", "--json", "--budget", "500", says=says).events[-2]
    assert (found["event"], found["budget"]) == ("context", 500)
    told = talk("two", "--user", "ana", "--budget", "500", says=says).out
    assert re.search(r"[█░]{40} \d+ of 500 tokens, estimated", told)
    assert re.search(r"  SECTION +TOKENS +SHOWN +DROPPED\n  identity +\d+", told)
    assert re.search(r"  kept +\d+ tokens \(\d+ %\) at the beginning are unchanged", told)


def test_what_was_left_out_is_listed_with_the_reason(talk: Talk, db: Path) -> None:
    with holdfast.open(db, embedder=None) as store:
        memory = store.memory(user="ana")
        memory.remember_all([{"text": f"drives the car number {n}", "key": f"car {n}"} for n in range(60)])
    told = talk("--user", "ana", "--budget", "300", says="Which car?\n/context\n").out
    assert re.search(r"Left out\n  SECTION +WHY +WHAT\n", told)
    assert re.search(r"  facts +no room in its section +m\w+, m\w+, m\w+ and \d+ more\n", told)


def test_why_says_what_an_answer_had_to_go_by(talk: Talk, db: Path) -> None:
    with holdfast.open(db, embedder=None) as store:
        store.memory(user="ana").remember("Plays the cello on Sundays")
        store.memory(user="ana").remember("prefers the aisle", key="seat")
        store.memory(user="ana").remember("Answer briefly", kind="procedural")
    done = talk("--user", "ana", says="/why\nWhat do I play?\n/why\n").out
    assert "There is no answer yet.\n" in done
    assert re.search(r"Answered by quoting, for #1 · context of \d+ tokens\n", done)
    assert re.search(r"Recalled\n +SCORE .*\n +\d\.\d\d +m\w{13} +\S+Z +Plays the cello on Sundays\n", done)
    assert "Instructions\n  Answer briefly\n" in done
    assert "Facts\n  seat: prefers the aisle (since" in done


def test_why_names_the_tools_that_were_used(with_model: Talk) -> None:
    model = Scripted(ToolCall("1", "recall", {"query": "seat"}), "The aisle.", *[{}] * 4)
    done = with_model(model, "Which seat?\n/why\n")
    assert 'Tools\n  recall {"query": "seat"}\n' in done.out
    assert [tool["function"]["name"] for tool in model.calls[0].tools][:3] == ["recall", "remember", "forget"]


def test_memory_lists_facts_recalls_and_forgets(talk: Talk, db: Path) -> None:
    with holdfast.open(db, embedder=None) as store:
        id = store.memory(user="ana").remember("prefers the aisle", key="seat").id
    done = talk("--user", "ana", says=f"/memory\n/memory aisle\n/forget {id}\n/memory\n/forget\n")
    assert re.search(rf"  seat +prefers the aisle +\S+ +{id}\n", done.out)
    assert re.search(rf" +\d\.\d\d +{id} +\S+ +prefers the aisle\n", done.out)
    assert f"Forgotten: {id}  prefers the aisle\nNothing is remembered yet.\n" in done.out
    assert "name a memory: /forget ID" in done.err


def test_a_handoff_that_is_written_begins_afresh(talk: Talk) -> None:
    says = "I live in Berlin.\n/handoff\n/handoff write\n/handoff\nWhere do I live?\n/why\n/handoff read\n"
    done = talk("--user", "ana", says=says)
    assert "There is no handoff yet.\n" in done.out
    assert "Handoff written (revision 1). The next turn starts afresh from it.\n" in done.out
    assert "## Context" in done.out
    assert "entries 1 to" not in done.out, "the turns before the handoff are not shown as they were said"
    assert "Berlin" in done.out.split("Where do I live?")[-1]
    assert "type /handoff to see it" in done.err


def test_help_names_every_command_and_an_unknown_one_is_refused(talk: Talk) -> None:
    done = talk(says="/help\n/nonsense\n/help me\n")
    assert all(name in done.out for name in HELP)
    assert "there is no /nonsense; /help lists the commands" in done.err
    assert done.code == 0


# Programs


def test_with_json_every_line_has_one_object(talk: Talk, db: Path) -> None:
    asked(db)
    says = "I live in Berlin.\n/state\n/memory\n/memory cello\n/context\n/why\n/handoff\n/nonsense\n/resume\n/help\n"
    done = talk("--json", says=says)
    assert done.err == ""
    names = [event["event"] for event in done.events]
    assert names[:3] == ["opened", "answered", "answered"]
    assert names[3:-1] == [
        "state",
        "memory",
        "recalled",
        "context",
        "why",
        "handoff",
        "refused",
        "nothing_open",
        "help",
    ]
    assert names[-1] == "ended"
    opened, resumed, answered = done.events[:3]
    assert (opened["unanswered"]["number"], opened["entries"], resumed["question"]) == (3, 3, 3)
    assert [memory["text"] for memory in answered["learned"]] == ["ana lives in Berlin"]
    assert answered["tokens"] > 0


def test_with_json_an_open_question_is_an_object_too(with_model: Talk) -> None:
    failed = ModelFailed("scripted is busy", model="scripted", reason="busy", partial="")
    done = with_model(Scripted(failed), "Which seat?\n", as_json=True)
    assert done.events[-1]["event"] == "left_open"
    assert done.events[-1]["error"]["code"] == "model_failed"
    assert done.code == exits.UNAVAILABLE


# Who answers


def test_what_is_named_answers_or_it_is_an_error(talk: Talk) -> None:
    assert "it quotes what it remembers" in talk("--model", "none").out
    done = talk("--model", "nonsense", says="Hello\n")
    assert (done.code, done.out) == (exits.MISCONFIGURED, "")


def test_the_environment_names_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    assert config.model() is None
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert config.model() == ("openai:gpt-5-mini", "OPENAI_API_KEY")
    monkeypatch.setenv("HOLDFAST_MODEL", "none")
    assert config.model() == ("none", "HOLDFAST_MODEL")
    assert chat_model.answerer(None).why == "it quotes what it remembers"


def test_a_key_without_its_package_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", "k")
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    assert chat_model.answerer(None).model.name == "quoting"


def test_a_key_is_enough_where_its_package_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pydantic_ai", reason="the extra llm is not installed")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    found = chat_model.answerer(None)
    assert (found.model.name, found.inside, found.why) == ("openai:gpt-5-mini", True, "OPENAI_API_KEY is set")


# On a screen


def test_an_answer_is_broken_between_words_as_it_comes() -> None:
    file = io.StringIO()
    flow = chat_view.Flow(Screen(file, width=24, terminal=True))
    text = "one two three four five six seven eight\nnine " + "x" * 40 + " ten 漢字漢字漢字漢字漢字漢字漢字"
    for letter in text:
        flow.put(letter)
    flow.end()
    lines = file.getvalue().splitlines()
    assert "".join(file.getvalue().split()) == "".join(text.split())
    assert all(len(line) <= 24 and line.startswith("  ") for line in lines)
    assert lines[0] == "  one two three four"


@pytest.mark.parametrize("terminal", [True, False])
def test_an_answer_steers_no_terminal(terminal: bool) -> None:
    file = io.StringIO()
    flow = chat_view.Flow(Screen(file, width=80, terminal=terminal))
    flow.put("red \x1b[31m and \x07 bell")
    flow.end()
    assert "\x1b" not in file.getvalue()
    assert "\x07" not in file.getvalue()
    assert "\\x1b[31m" in file.getvalue()


def test_bytes_that_are_no_text_are_borne(db: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"I live in Ber\xfflin.\n"), encoding="utf-8"))
    assert run(["chat", "--user", "ana"]) == 0
    assert "Noted:" in capsys.readouterr().out
    assert os.path.exists(db)
