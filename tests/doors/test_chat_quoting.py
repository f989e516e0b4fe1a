"""The answerer that quotes: what it finds in a store, and what it says when there is nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast.doors.cli.chat_choosing import is_earlier
from holdfast.doors.cli.chat_quotes import ABOUT, CLOSE, HELLO, NOTED, UNKNOWN, WELCOME, Quoting
from holdfast.errors import ModelFailed
from holdfast.providers.models.model import Model, Reply
from holdfast.providers.reranker import CrossEncoder
from holdfast.records import EntryRef


def asked(question: str, before: str = "") -> list[dict[str, Any]]:
    return [{"role": "system", "content": "be kind"}, {"role": "user", "content": f"{before}{question}"}]


@pytest.fixture
def store() -> Iterator[holdfast.Store]:
    with holdfast.open("ram:", embedder="none") as store:
        yield store


@pytest.fixture
def quoting(store: holdfast.Store) -> Quoting:
    return Quoting(store, store.memory("ana"))


def say(quoting: Quoting, question: str) -> str:
    return quoting.reply(asked(question)).text


def test_it_is_a_model(store: holdfast.Store, quoting: Quoting) -> None:
    store.memory("ana").remember("plays the cello on Sundays")
    store.memory("ana").remember("plays the cello in an orchestra")
    assert isinstance(quoting, Model)
    *pieces, whole = quoting.stream(asked("What about the cello?"))
    assert isinstance(whole, Reply)
    assert "".join(map(str, pieces)) == whole.text
    assert whole.text.startswith("“plays the cello")
    assert whole.text.count("\nAlso: “plays the cello") == 1
    assert (whole.model, whole.usage.requests) == ("quoting", 0)


def test_it_extracts_nothing() -> None:
    with pytest.raises(ModelFailed, match="only quotes"):
        Quoting().extract([], msgspec.defstruct("Anything", []))


def test_a_fact_is_quoted_with_since_when(store: holdfast.Store, quoting: Quoting) -> None:
    fact = store.memory("ana").remember("prefers the aisle seat", key="seat")
    assert say(quoting, "Which seat do I prefer?") == (
        f"“prefers the aisle seat” (fact seat, since {fact.valid_from:%Y-%m-%d})."
    )


def test_what_was_said_is_quoted_with_where_it_is(store: holdfast.Store, quoting: Quoting) -> None:
    thread = store.thread("trip-42", user="ana")
    first, second = thread.append(
        {"role": "user", "content": "My cello travels in the cabin."},
        {"role": "assistant", "content": "The cabin has room for one cello."},
    )
    thread.append({"role": "user", "content": "Where is my cello?"})
    told = say(quoting, "How does my cello travel?")
    assert f"You said: “My cello travels in the cabin.” (trip-42#{first.number}, {first.time:%Y-%m-%d})" in told
    assert "Where is my cello?" not in told, "a question answers nothing"
    assert f"trip-42#{second.number}" in say(quoting, "How much room has the cabin?")


def test_what_it_said_itself_is_no_source(store: holdfast.Store, quoting: Quoting) -> None:
    store.thread("t", user="ana").append(
        {"role": "assistant", "content": f"{NOTED} “the harbour is closed” From now on I can quote that."},
        {"role": "assistant", "content": f"{UNKNOWN} Tell me, and I will."},
    )
    assert say(quoting, "Is the harbour closed?") == (
        f"{UNKNOWN} I looked for “harbour” and “closed”. Tell me, and I will."
    )


def test_what_it_does_not_know_it_says_with_what_it_looked_for(store: holdfast.Store, quoting: Quoting) -> None:
    store.memory("ana").remember_all([f"note {number} about ferries" for number in range(30)])
    assert say(quoting, "What is the capital of Peru?") == (
        f"{UNKNOWN} I looked for “capital” and “Peru”. Tell me, and I will."
    )


def test_what_comes_near_is_shown_as_no_answer(store: holdfast.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether there is an answer is for recall to say, and only for it."""
    memory = store.memory("ana")
    quoting = Quoting(store, memory)
    memory.remember("The alarm code of the flat is 4471.")
    assert "4471" in say(quoting, "What is the alarm code of the flat?")
    refused = memory.recall("What is the alarm code of the shop?")
    monkeypatch.setattr(memory, "recall", lambda *_, **__: msgspec.structs.replace(refused, relevant=False))
    told = say(quoting, "What is the alarm code of the shop?")
    assert told.startswith(f"{UNKNOWN} I looked for “alarm”, “code” and “shop”. {CLOSE} “The alarm code of the flat")


TOLD = (
    {"role": "user", "content": "We fly to Oslo on 3 May for the fair."},
    {"role": "assistant", "content": "The flight leaves at 07:15 and costs 220 EUR. Which hotel do you want?"},
    {"role": "user", "content": "The one by the harbour."},
    {"role": "assistant", "content": "Booked: H4TT9. The room is 130 EUR a night. Anything else?"},
    {"role": "user", "content": "What would breakfast cost?"},
    {"role": "assistant", "content": "18 EUR for each of you."},
)


@pytest.mark.parametrize(
    ("question", "quoted"),
    [
        ("How much is the flight to Oslo?", "costs 220 EUR"),
        ("When does the flight to Oslo leave?", "07:15"),
        ("On which day do we fly to Oslo?", "on 3 May"),
        ("What is the booking reference of the hotel?", "H4TT9"),
        ("Which hotel did I want?", "Asked “Which hotel do you want?”, you said: “The one by the harbour.”"),
        ("What is the price of breakfast?", "You asked “What would breakfast cost?”, the agent said: “18 EUR"),
    ],
)
def test_what_a_question_asks_for_chooses_the_sentence(
    store: holdfast.Store, quoting: Quoting, question: str, quoted: str
) -> None:
    store.thread("oslo", user="ana").append(*TOLD)
    told = say(quoting, question).splitlines()
    assert quoted in told[0], told
    assert len(told) <= 2, "an answer, not a dump"
    assert not any(line.rstrip("”.").endswith("?") for line in told), "a question is no answer"


def test_what_a_tool_says_in_a_message_of_the_user_is_never_the_users_word(
    store: holdfast.Store, quoting: Quoting
) -> None:
    result = {"type": "tool_result", "tool_use_id": "1", "content": "The ferry to Bergen costs 90 EUR."}
    store.thread("t", user="ana").append(
        {"role": "assistant", "content": "What would you like to know about the ferry?"},
        {"role": "user", "content": [result]},
        {"role": "user", "content": [{"type": "text", "text": "I take the ferry to Oslo for 40 EUR."}, result]},
    )
    told = say(quoting, "How much does the ferry to Bergen cost?")
    assert "From outside: “The ferry to Bergen costs 90 EUR.”" in told
    assert "said: “The ferry to Bergen" not in told
    assert "You said: “I take the ferry to Oslo for 40 EUR.”" in say(quoting, "How much does the ferry to Oslo cost?")


def test_where_the_kind_of_thing_is_missing_it_says_so(store: holdfast.Store, quoting: Quoting) -> None:
    store.memory("ana").remember("The dentist is Dr. Weber.", key="dentist")
    assert say(quoting, "When is the dentist?").startswith("I find no date or time, only this: “The dentist is Dr. We")


def test_a_question_that_is_on_record_is_no_evidence_of_its_answer(store: holdfast.Store, quoting: Quoting) -> None:
    thread = store.thread("t", user="ana")
    thread.append(*TOLD)
    question = "Which football team do I support?"
    for _ in range(3):
        quoting.listen(question)
        thread.append({"role": "user", "content": question})
        told = say(quoting, question)
        thread.append({"role": "assistant", "content": told, "derived": True})
        assert told.startswith(f"{UNKNOWN} I looked for “football”, “team” and “support”.")
    thread.append({"role": "user", "content": "I support the football team of Porto."})
    quoting.listen(question)
    assert "the football team of Porto" in say(quoting, question)


def test_what_was_known_is_known_after_a_restart_and_what_is_told_meanwhile_is_known(tmp_path: Path) -> None:
    question = "Which food is dangerous for me?"
    for _ in range(3):  # a process each
        with holdfast.open(tmp_path / "agent.db", embedder="minilm", reranker=CrossEncoder()) as store:
            thread, quoting = store.thread("t", user="ana"), Quoting(store, store.memory("ana"))
            if not len(thread.log()):
                thread.append(
                    {"role": "user", "content": question}, {"role": "assistant", "content": UNKNOWN, "derived": True}
                )
                thread.append({"role": "user", "content": "I am allergic to peanuts."})
            quoting.listen(question)
            thread.append({"role": "user", "content": question})
            told = say(quoting, question)
            thread.append({"role": "assistant", "content": told, "derived": True})
            assert "allergic to peanuts" in told
            assert UNKNOWN not in told


def test_a_fact_and_where_it_was_heard_take_the_place_of_no_second_answer(
    store: holdfast.Store, quoting: Quoting
) -> None:
    thread = store.thread("t", user="ana")
    thread.append({"role": "user", "content": "No food with nuts: I am allergic."})
    thread.append({"role": "user", "content": "I am also allergic to kiwi."})
    heard = holdfast.Origin(entries=(EntryRef("t", 2),))
    store.memory("ana").remember("is allergic to kiwi", key="allergy:kiwi", origin=heard)
    told = say(quoting, "What am I allergic to?")
    assert "kiwi" in told
    assert "nuts" in told


def test_what_no_longer_holds_stands_behind_what_says_so(store: holdfast.Store, quoting: Quoting) -> None:
    thread = store.thread("chat", user="ana")
    for text in ("I ride a Vespa to work", "I own 2 houses", "I sold the Vespa and bought a bicycle", "I own 4 houses"):
        thread.append({"role": "user", "content": text})
    newer, older = say(quoting, "What do I ride to work?").splitlines()
    assert "bought a bicycle" in newer
    assert older.startswith("Earlier: You said: “I ride a Vespa")
    newer, older = say(quoting, "How many houses do I own?").splitlines()
    assert "4 houses" in newer
    assert older.startswith("Earlier: You said: “I own 2 houses")


def test_what_was_said_before_a_fact_began_is_earlier(store: holdfast.Store, quoting: Quoting) -> None:
    thread = store.thread("chat", user="ana")
    thread.append({"role": "user", "content": "My sister Lena lives in Oslo"})
    store.memory("ana").remember("Lena lives in Bergen", key="home", subject="Lena")
    thread.append({"role": "user", "content": "Lena likes Bergen"})
    fact, *said = sorted(
        quoting.find("Where does Lena live?").quotes, key=lambda quote: (not quote.is_fact, quote.where)
    )
    assert [(quote.text, is_earlier(quote, fact)) for quote in said] == [
        ("My sister Lena lives in Oslo", True), ("Lena likes Bergen", False),
    ]  # fmt: skip


def test_a_statement_is_noted_and_others_of_ones_kind_are_answered(quoting: Quoting) -> None:
    assert say(quoting, "I moved to Porto.") == f"{NOTED} “I moved to Porto.” From now on I can quote that."
    assert say(quoting, "Good morning!") == HELLO
    assert say(quoting, "Who are you?") == ABOUT
    assert say(quoting, "What do you know about me?") == f"{UNKNOWN} Tell me something about you."
    assert Quoting().reply(asked("Where do I live?")).text == ABOUT, "without memories it can only say what it is"


def test_all_that_is_known_is_listed_once(store: holdfast.Store, quoting: Quoting) -> None:
    store.memory("ana").remember("lives in Porto", key="home")
    store.memory("ana").remember("plays the cello")
    lines = say(quoting, "What do you know about me?").splitlines()
    assert len(lines) == 3
    assert "lives in Porto" in lines[1]


def test_what_a_context_puts_before_a_question_is_not_the_question(store: holdfast.Store, quoting: Quoting) -> None:
    store.memory("ana").remember("likes green tea")
    before = "<state>\nNow: 2026-06-01\n</state>\n\n<recalled>\n- coffee? (m1)\n</recalled>\n\n"
    assert "likes green tea" in quoting.reply(asked("Which tea do I like?", before)).text
    parts = [{"role": "user", "content": [{"type": "text", "text": "Which tea do I like?"}, {"type": "image"}]}]
    assert "likes green tea" in quoting.reply(parts).text


@pytest.mark.parametrize(
    "told",
    [
        "When I was young I lived in Rome.", "Did the dishes.", "What I was told is that the code is 12.",
        "Please remind me that I like tea.", "When my brother was ill I cooked.",
    ],
)  # fmt: skip
def test_what_only_begins_like_a_question_is_noted(quoting: Quoting, told: str) -> None:
    assert say(quoting, told).startswith(NOTED)


@pytest.mark.parametrize(
    "asks", ["how many kids do i have", "where do i live", "which train do I take", "who is my boss"]
)
def test_a_question_needs_no_mark(quoting: Quoting, asks: str) -> None:
    assert say(quoting, asks).startswith(UNKNOWN)


def test_thanks_and_what_it_will_not_do_in_passing(store: holdfast.Store, quoting: Quoting) -> None:
    store.thread("t", user="ana").append({"role": "user", "content": "My passport number is X1234567."})
    assert say(quoting, "Thanks a lot!") == WELCOME
    assert "/forget ID" in say(quoting, "forget my passport number")
    assert quoting.quoted == ()
    assert "X1234567" in say(quoting, "What is my passport number?")
    assert quoting.quoted == ("t#1",)
