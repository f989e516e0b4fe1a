"""Sessions, from what the last one left to what the next one finds: questions, answers, failures, keys, two at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast.engine.codec import encode
from holdfast.engine.contract import Append, Event, Query
from holdfast.errors import Conflict, Erased, Fenced, HoldfastError, Invalid, KeyReused, ModelFailed, SchemaTooNew
from holdfast.providers.models.model import Reply, ToolCall, Usage
from holdfast.sessions.session import Session
from holdfast.sessions.turn import Answer
from holdfast.testing import ManualClock
from holdfast.testing.models import Broken, Scripted

Told = Callable[[holdfast.Thread], list[str]]
NOTHING: dict[str, Any] = {"facts": []}


@pytest.fixture
def store(place: Any) -> holdfast.Store:
    found: holdfast.Store = place.open()
    return found


@pytest.fixture
def thread(store: holdfast.Store) -> holdfast.Thread:
    return store.thread("trip", user="ana")


def plain(store: holdfast.Store, thread: Any, *items: Any, **ways: Any) -> Session:
    """A session that says these things and learns nothing."""
    return store.session(thread, model=Scripted(*items), **{"learn": "off", **ways})


@holdfast.step(effect="idempotent")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def call(name: str = "add", id: str = "1", **arguments: Any) -> ToolCall:
    return ToolCall(id, name, arguments)


# A whole turn


@pytest.mark.every_engine
def test_a_turn_is_on_record_as_it_was_said(store: holdfast.Store, thread: holdfast.Thread, told: Told) -> None:
    session = plain(store, thread, call(a=1, b=2), "It is 3.", tools=[add])
    answer = session.turn("What is 1 + 2?")
    assert isinstance(answer, Answer)
    assert (str(answer), answer.repeated, answer.notes) == ("It is 3.", False, ())
    assert told(thread) == ["user: What is 1 + 2?", "call add", "result 3", "assistant: It is 3.", "(holdfast.usage)"]
    assert [entry.number for entry in answer.entries] == [2, 3, 4, 5]
    assert session.answer == answer
    assert [run.status for run in store.runs()] == ["done"]


def test_usage_is_recorded_for_each_turn_and_added_up(store: holdfast.Store, thread: holdfast.Thread) -> None:
    model = Scripted(call(a=1, b=2), "3", "again 3", usage=Usage(100, 10, 40))
    session = store.session(thread, model=model, tools=[add], learn="off")
    first, second = session.turn("q"), session.turn("q2")
    assert first.usage == Usage(200, 20, 80, 2)
    assert second.usage == Usage(100, 10, 40, 1)
    assert session.usage == Usage(300, 30, 120, 3)
    events = [entry.content for entry in thread.log() if entry.kind == "event"]
    assert [(one["question"], one["input"], one["output"], one["requests"]) for one in events] == [
        (1, 200, 20, 2), (6, 100, 10, 1),
    ]  # fmt: skip


def test_a_text_a_message_and_parts_can_be_asked(store: holdfast.Store, thread: holdfast.Thread) -> None:
    session = plain(store, thread, "a", "b", "c")
    session.turn("text")
    session.turn({"role": "user", "content": "message", "name": "Ana"})
    session.turn([{"type": "text", "text": "parts"}])
    assert [e.content["content"] for e in thread.log() if e.kind == "message" and e.content["role"] == "user"] == [
        "text", "message", [{"type": "text", "text": "parts"}],
    ]  # fmt: skip


@pytest.mark.parametrize("wrong", ["", "  ", None, 7, {"role": "assistant", "content": "x"}, "half \ud800"])
def test_what_is_no_question_is_refused_before_anything_is_written(ram: holdfast.Store, wrong: Any) -> None:
    session = plain(ram, "t", "never said")
    with pytest.raises(Invalid):
        session.turn(wrong)
    assert not ram.thread("t").exists()


def test_a_question_over_the_budget_is_refused_before_anything_is_written(ram: holdfast.Store) -> None:
    with pytest.raises(HoldfastError, match="budget"):
        plain(ram, "t", "never said", budget=200).turn("word " * 500)
    assert ram.thread("t").log() == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"learn": "sometimes"}, {"hand_off": 0}, {"hand_off": 2}, {"hand_off": True}, {"budget": 0}, {"tool": []},
        {"rounds": -1}, {"rounds": "many"}, {"timeout_s": -1}, {"budget": "large"}, {"tools": [print]},
        {"within_ms": float("nan")}, {"within_ms": float("inf")}, {"within_ms": 1e9},
    ],
)  # fmt: skip
def test_ways_that_mean_nothing_are_refused_at_once(ram: holdfast.Store, wrong: dict[str, Any]) -> None:
    with pytest.raises((HoldfastError, TypeError)):
        ram.session("t", model=Scripted(), **wrong)


def test_a_session_without_a_model_cannot_stream_or_learn_with_one(ram: holdfast.Store) -> None:
    with pytest.raises(Invalid, match="model"):
        list(ram.session("t").stream("hi"))
    with pytest.raises(Invalid, match="model"):
        ram.session("t", learn="model")


# The beginning


def test_starting_writes_nothing_and_says_what_there_is(store: holdfast.Store, thread: holdfast.Thread) -> None:
    first = store.session("nowhere").start()
    assert (first.unanswered, first.recent, first.done, first.partial) == (None, (), (), "")
    assert not store.thread("nowhere").exists()
    thread.append({"role": "user", "content": "book it"}, {"role": "assistant", "content": "done"})
    thread.save({"city": "Porto"})
    thread.handoff.update(goal="a trip", next_action="pay")
    before = [commit.position for commit in store.watch(timeout_s=0)]
    opening = store.session(thread).start()
    assert opening.unanswered is None
    assert [entry.number for entry in opening.recent] == [1, 2]
    assert opening.state.value == {"city": "Porto"}
    assert (opening.handoff.goal, opening.handoff.next_action) == ("a trip", "pay")
    assert [commit.position for commit in store.watch(timeout_s=0)] == before


def test_fields_that_are_too_old_to_act_on_are_named(place: Any, clock: ManualClock) -> None:
    store = place.open()

    class Trip(msgspec.Struct):
        city: str
        price: int

    store.core.schemas.schema("trip", 1, fresh={"price": "10m"}, critical=["price"])(Trip)
    thread = store.thread("trip", user="ana")
    thread.save(Trip("Porto", 120))
    clock.advance(3_600)
    opening = plain(store, thread, state=Trip).start()
    assert opening.must_verify == ("price",)
    model = Scripted("I will check.")
    store.session(thread, model=model, state=Trip, learn="off").turn("What does it cost?")
    assert "MUST BE VERIFIED" in str(model.asked[0])


def test_a_state_of_newer_code_is_a_clear_error_and_no_question_is_lost(place: Any) -> None:
    class Trip(msgspec.Struct):
        city: str

    newer, older = place.open(), place.open()
    newer.core.schemas.schema("trip", 3)(Trip)
    newer.thread("trip").save(Trip("Porto"))
    older.core.schemas.schema("trip", 1)(Trip)
    session = plain(older, "trip", "hello", state=Trip)
    with pytest.raises(SchemaTooNew):
        session.start()
    with pytest.raises(SchemaTooNew):
        session.turn("hi")


def test_a_handoff_of_newer_code_is_a_clear_error(store: holdfast.Store, thread: holdfast.Thread) -> None:
    thread.handoff.update(goal="a trip")
    record = store.core.engine.get(store.tenant, "handoff", "trip")
    assert record is not None
    future = Event("handoff", encode({"version": 99, "by": "agent", "document": {}}), store.core.clock.now())
    store.core.engine.commit(store.tenant, (Append("handoff", "trip", (future,)),), store.core.clock.now())
    session = plain(store, thread, "hello")
    with pytest.raises(HoldfastError, match=r"newer|99"):
        session.start()
    with pytest.raises(HoldfastError, match=r"newer|99"):
        session.end()


# What was asked and not answered


def test_what_broke_off_is_told_and_resumed(store: holdfast.Store, thread: holdfast.Thread, told: Told) -> None:
    used: list[int] = []

    @holdfast.step(effect="idempotent")
    def book(seat: int) -> str:
        used.append(seat)
        return f"seat {seat} is yours"

    with pytest.raises(ModelFailed):
        plain(store, thread, call("book", seat=7), Broken("You have se"), tools=[book]).turn("Book seat 7")
    session = plain(store, thread, "You have seat 7.", tools=[book])
    opening = session.start()
    assert opening.unanswered is not None
    assert opening.unanswered.content["content"] == "Book seat 7"
    assert opening.done == (("book", "seat 7 is yours"),)
    assert opening.partial.strip() == "You have se"
    answer = session.resume()
    assert answer.text == "You have seat 7."
    assert used == [7]
    assert [line for line in told(thread) if line != "(recalled)"] == [
        "user: Book seat 7", "(holdfast.unanswered)", "call book", "result seat 7 is yours",
        "assistant: You have seat 7.", "(holdfast.usage)",
    ]  # fmt: skip
    assert session.resume() is None
    assert session.start().unanswered is None


@pytest.mark.every_engine
def test_resuming_goes_on_where_it_was(store: holdfast.Store, thread: holdfast.Thread) -> None:
    """The replies that called tools are not asked for again, and the model sees their results."""
    with pytest.raises(ModelFailed):
        plain(store, thread, call(a=1, b=2), call(a=3, b=4), RuntimeError("down"), tools=[add]).turn("q")
    model = Scripted("3 and 7")
    store.session(thread, model=model, tools=[add], learn="off").resume()
    assert len(model.calls) == 1
    assert [said["content"] for said in model.asked[0] if said["role"] == "tool"] == ["3", "7"]


def test_asking_something_else_puts_what_was_done_on_record(
    store: holdfast.Store, thread: holdfast.Thread, told: Told
) -> None:
    with pytest.raises(ModelFailed):
        plain(store, thread, call(a=1, b=2), RuntimeError("down"), tools=[add]).turn("first")
    model = Scripted("second answer")
    store.session(thread, model=model, tools=[add], learn="off").turn("second")
    assert told(thread) == [
        "user: first", "(holdfast.unanswered)", "call add", "result 3", "(holdfast.unanswered)", "user: second",
        "assistant: second answer", "(holdfast.usage)",
    ]  # fmt: skip
    assert [said["content"] for said in model.asked[0] if said["role"] == "tool"] == ["3"]
    assert [run.status for run in store.runs()] == ["failed"]  # so that it can be taken up when it is asked again
    assert plain(store, thread).start().unanswered is None


def test_a_question_that_was_left_can_still_be_asked_again_by_its_key(
    store: holdfast.Store, thread: holdfast.Thread, told: Told
) -> None:
    session = plain(store, thread, call(a=1, b=2), RuntimeError("down"), "other", call(a=3, b=4), "seven", tools=[add])
    with pytest.raises(ModelFailed):
        session.turn("first", key="first")
    session.turn("second")
    answer = session.turn("first", key="first")
    assert (answer.text, answer.question.number) == ("seven", 1)
    assert [line for line in told(thread) if line.startswith(("user", "assistant"))] == [
        "user: first", "user: second", "assistant: other", "assistant: seven",
    ]  # fmt: skip


def test_what_was_done_for_a_question_that_was_left_is_not_done_again(
    store: holdfast.Store, thread: holdfast.Thread, told: Told
) -> None:
    done: list[str] = []

    @holdfast.step(effect="once", on_unknown="stop")
    def pay(what: str) -> str:
        done.append(what)
        return f"paid for {what}"

    model = Scripted(call("pay", what="flight"), RuntimeError("down"), "other", {}, "It is paid.")
    session = store.session(thread, model=model, tools=[pay], learn="off")
    with pytest.raises(ModelFailed):
        session.turn("Pay for the flight", key="k")
    session.turn("second")
    session.hand_off()  # what was done is not in sight any more
    answer = session.turn("Pay for the flight", key="k")
    assert (answer.text, answer.question.number, done) == ("It is paid.", 1, ["flight"])
    assert model.asked[-1][-1]["content"] == "paid for flight"
    assert told(thread).count("call pay") == 1
    assert {run.status for run in store.runs()} == {"done"}


def test_what_was_done_in_halves_for_a_question_that_was_left_is_not_done_again(
    store: holdfast.Store, thread: holdfast.Thread, told: Told
) -> None:
    done: list[str] = []

    def pay() -> str:
        done.append("flight")
        return "paid"

    session = store.session(thread, learn="off")
    with session.turn("Pay for the flight", key="k") as turn:
        turn.step("pay", pay, effect="once", on_unknown="stop")
    session.turn("second").reply("other")
    with session.turn("Pay for the flight", key="k") as turn:
        assert turn.messages[-1]["content"] == "paid"
        assert turn.step("pay", pay, effect="once", on_unknown="stop") == "paid"
        turn.reply("It is paid.")
    assert (done, told(thread).count("call pay")) == (["flight"], 1)


def test_many_attempts_do_not_hide_the_question(ram: holdfast.Store) -> None:
    session = plain(ram, "t", *[RuntimeError("down")] * 80, "at last")
    with pytest.raises(ModelFailed):
        session.turn("q")
    for _ in range(79):
        with pytest.raises(ModelFailed):
            session.resume()
    assert session.start().unanswered is not None
    assert session.resume().text == "at last"


def test_a_question_written_by_others_can_be_resumed(store: holdfast.Store, thread: holdfast.Thread) -> None:
    thread.append({"role": "user", "content": "hello?"})
    assert plain(store, thread, "hello!").resume().text == "hello!"
    thread.append({"role": "user", "content": "and?"}, {"role": "assistant", "content": "nothing"})
    assert plain(store, thread).resume() is None


def test_a_rewind_to_a_question_asks_it_again(store: holdfast.Store, thread: holdfast.Thread, told: Told) -> None:
    answer = plain(store, thread, call(a=1, b=2), "three", tools=[add]).turn("q")
    thread.rewind(answer.question.number)
    session = plain(store, thread, call(a=3, b=4), "seven", tools=[add])
    assert session.start().unanswered is not None
    assert session.resume().text == "seven"
    assert told(thread) == ["user: q", "call add", "result 7", "assistant: seven", "(holdfast.usage)"]


def test_what_was_recalled_for_a_question_can_be_seen_also_after_a_failure(
    store: holdfast.Store, thread: holdfast.Thread
) -> None:
    store.memory(user="ana").remember("Ana likes the window seat")
    session = plain(store, thread, RuntimeError("down"), "The window.")
    with pytest.raises(ModelFailed):
        session.turn("window seat?")
    session.resume()
    assert [hit.text for hit in session.recalled_for(1)] == ["Ana likes the window seat"]


def test_a_question_that_is_asked_again_after_a_rewind_is_learned_from(
    store: holdfast.Store, thread: holdfast.Thread
) -> None:
    found = {"facts": [{"text": "Ana lives in Porto.", "entry": 1, "quote": "I live in Porto", "key": "home"}]}
    session = store.session(thread, model=Scripted("one", found, "two", found), learn="model")
    session.turn("I live in Porto.")
    thread.rewind(1)
    answer = session.resume()
    assert (answer.text, answer.notes) == ("two", ())
    assert [memory.text for memory in store.memory(user="ana").facts()] == ["Ana lives in Porto."]


def test_a_lesson_that_was_left_does_not_stand_in_the_way_of_a_question(
    ram: holdfast.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is made up for comes after the question is on record, and breaks no turn."""

    class Died(BaseException):
        """The end of a process."""

    thread = ram.thread("t", user="ana")
    with pytest.raises(Died):
        ram.session(thread, model=Scripted("one", Died(), NOTHING), learn="model").turn("I live in Porto.")

    def fail(*args: Any, **more: Any) -> Any:
        raise OSError("the disk of the index is full")

    monkeypatch.setattr("holdfast.sessions.learning.by_rules", fail)
    monkeypatch.setattr("holdfast.sessions.learning.learn", fail)
    assert ram.session(thread, model=Scripted("two"), learn="model").turn("q2").text == "two"


def test_a_fork_of_an_open_question_is_answered_apart(store: holdfast.Store, thread: holdfast.Thread) -> None:
    with pytest.raises(ModelFailed):
        plain(store, thread, call(a=1, b=2), RuntimeError("down"), tools=[add]).turn("q")
    fork = thread.fork("other")
    assert plain(store, fork, call(a=1, b=1), "two", tools=[add]).resume().text == "two"
    assert plain(store, thread, "three", tools=[add]).resume().text == "three"
    assert [e.content["content"] for e in fork.log() if e.kind == "observation"] == ["3", "2"]
    assert [e.content["content"] for e in thread.log() if e.kind == "observation"] == ["3"]


# Models that fail

FAILURES: dict[str, Any] = {
    "times out": ModelFailed("no answer in time", model="m", reason="timeout"),
    "raises": RuntimeError("the library broke"),
    "breaks off": Broken("It is"),
    "says nothing": "",
    "is silent": Reply(),
    "refuses": ModelFailed("I must not", model="m", reason="refused"),
    "refuses in silence": Reply(stop="refused"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_model_that_fails_leaves_the_question_open_and_the_thread_usable(ram: holdfast.Store, name: str) -> None:
    thread = ram.thread("t", user="ana")
    session = plain(ram, thread, FAILURES[name], "Now it works.", "And on.")
    with pytest.raises(ModelFailed):
        session.turn("q")
    opening = session.start()
    assert opening.unanswered is not None
    failed = thread.log()[-1].content
    assert (failed["name"], failed["question"]) == ("holdfast.unanswered", 1)
    assert failed["why"]
    assert opening.partial.strip() == ("It is" if name == "breaks off" else "")
    assert session.resume().text == "Now it works."
    assert session.turn("q2").text == "And on."


def test_a_stream_without_its_end_is_no_answer(ram: holdfast.Store) -> None:
    class Half(Scripted):
        def stream(self, messages: list[dict[str, Any]], **more: Any) -> Any:
            yield "It is "
            yield "alm"

    session = ram.session("t", model=Half(), learn="off")
    with pytest.raises(ModelFailed, match="broke off"):
        session.turn("q")
    assert session.start().partial == "It is alm"


def test_a_function_is_a_model(ram: holdfast.Store) -> None:
    session = ram.session("t", model=lambda messages: f"You said {messages[-1]['content'][-2:]}", learn="off")
    assert session.turn("hi").text == "You said hi"


# Keys


def test_a_repetition_gives_the_recorded_answer(place: Any, told: Told) -> None:
    store = place.open()
    first = plain(store, "t", call(a=1, b=2), "three", tools=[add]).turn("q", key="msg-1")
    again = plain(place.open(), "t", tools=[add]).turn("q", key="msg-1")
    assert (again.text, again.repeated) == ("three", True)
    assert again.question == first.question
    assert again.entries == first.entries
    assert told(store.thread("t")).count("user: q") == 1


def test_a_repetition_of_what_was_not_answered_resumes_it(
    store: holdfast.Store, thread: holdfast.Thread, told: Told
) -> None:
    session = plain(store, thread, call(a=1, b=2), RuntimeError("down"), "three", tools=[add])
    with pytest.raises(ModelFailed):
        session.turn("q", key="msg-1")
    answer = session.turn("q", key="msg-1")
    assert (answer.text, answer.repeated) == ("three", False)
    assert told(thread).count("call add") == 1


def test_the_same_key_for_something_else_is_refused(store: holdfast.Store, thread: holdfast.Thread) -> None:
    session = plain(store, thread, "a", "b")
    session.turn("q", key="msg-1")
    with pytest.raises(KeyReused):
        session.turn("something else", key="msg-1")


def test_a_key_of_what_is_no_question_is_refused(store: holdfast.Store, thread: holdfast.Thread) -> None:
    thread.append({"role": "assistant", "content": "hello"}, key="msg-1")
    with pytest.raises(HoldfastError, match="key"):
        plain(store, thread, "a").turn("q", key="msg-1")


def test_a_stream_that_is_repeated_says_the_same(store: holdfast.Store, thread: holdfast.Thread) -> None:
    session = plain(store, thread, "one two three")
    assert "".join(session.stream("q", key="k")) == "one two three"
    again = plain(store, thread)
    assert "".join(again.stream("q", key="k")) == "one two three"
    assert again.answer is not None
    assert again.answer.repeated


@pytest.mark.every_engine
def test_two_processes_with_one_key_give_one_question_and_one_answer(place: Any, told: Told) -> None:
    """The second asks while the first waits for its model, each with things recalled at another moment."""
    first, second = place.open(), place.open(own=True)
    first.memory(user="ana").remember("Ana likes the window seat")
    thread = first.thread("t", user="ana")

    def meanwhile(messages: Sequence[Any], tools: Any) -> str:
        place.clock.advance(1)
        given.append(plain(second, second.thread("t", user="ana"), "by B").turn("window seat?", key="k"))
        return "by A"

    given: list[Answer] = []
    given.append(plain(first, thread, meanwhile).turn("window seat?", key="k"))
    assert {answer.text for answer in given} == {"by B"}
    assert [line for line in told(thread) if not line.startswith("(")] == ["user: window seat?", "assistant: by B"]
    assert given[1].repeated


@pytest.mark.every_engine
def test_many_threads_with_one_key_agree(place: Any, told: Told) -> None:
    store = place.open()
    given: list[str] = []
    ready = threading.Barrier(6)

    def ask(name: str) -> None:
        session = plain(store, "t", name)
        ready.wait()
        given.append(session.turn("q", key="k").text)

    workers = [threading.Thread(target=ask, args=(f"by {number}",)) for number in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(given) == 6
    assert len(set(given)) == 1
    assert told(store.thread("t")) == ["user: q", f"assistant: {given[0]}", "(holdfast.usage)"]


# Two at once


@pytest.mark.every_engine
def test_two_talk_in_one_thread_while_one_uses_tools(place: Any, told: Told) -> None:
    first, second = place.open(), place.open(own=True)

    def meanwhile(messages: Sequence[Any], tools: Any) -> str:
        assert plain(second, "t", "b").turn("q2").text == "b"
        return "a"

    assert plain(first, "t", call(a=1, b=2), meanwhile, tools=[add]).turn("q1").text == "a"
    thread = first.thread("t")
    assert told(thread) == [
        "user: q1", "user: q2", "assistant: b", "(holdfast.usage)", "call add", "result 3", "assistant: a",
        "(holdfast.usage)",
    ]  # fmt: skip
    assert plain(first, "t").start().unanswered is None
    model = Scripted("c")
    first.session("t", model=model, learn="off").turn("q3")
    roles = [said["role"] for said in model.asked[0] if said["role"] != "system"]
    assert roles[-2:] == ["assistant", "user"]


def test_a_question_behind_anothers_answer_is_not_forgotten(place: Any) -> None:
    """Q1, Q2, A1; and then whoever was to answer Q2 died."""
    first, second = place.open(), place.open(own=True)
    one = first.session("t", learn="off").turn("q1")
    second.session("t", learn="off").turn("q2")
    one.reply("a1")
    session = plain(place.open(), "t", "a2")
    opening = session.start()
    assert opening.unanswered is not None
    assert opening.unanswered.content["content"] == "q2"
    assert session.resume().text == "a2"
    assert session.resume() is None


@pytest.mark.every_engine
def test_many_at_once_lose_nothing(place: Any) -> None:
    store = place.open()
    ready = threading.Barrier(4)
    failed: list[BaseException] = []

    def talk(name: str) -> None:
        items = [item for number in range(5) for item in (call(a=number, b=0), f"{name} {number}")]
        session = plain(store, "t", *items, tools=[add])
        ready.wait()
        try:
            for number in range(5):
                assert session.turn(f"{name} asks {number}").text == f"{name} {number}"
        except BaseException as error:
            failed.append(error)

    workers = [threading.Thread(target=talk, args=(name,)) for name in "abcd"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failed == []
    log = store.thread("t").log()
    said = [entry.content for entry in log if entry.kind == "message"]
    assert sorted(one["content"] for one in said if one["role"] == "assistant") == sorted(
        f"{name} {number}" for name in "abcd" for number in range(5)
    )
    assert sum(one["role"] == "user" for one in said) == 20
    for entry, after in pairwise(log):
        assert entry.kind != "tool_call" or after.content["of"] == entry.content["id"]
    assert store.session("t").start().unanswered is None


# State


def test_a_session_does_not_hide_anothers_save_from_its_caller(store: holdfast.Store) -> None:
    store.thread("t").save({"n": 1})
    thread = store.thread("t")
    assert thread.state().value == {"n": 1}
    store.thread("t").save({"n": 2}, expect="any")
    session = plain(store, thread, "hi")
    session.start()
    session.turn("q")
    with pytest.raises(Conflict):
        thread.save({"n": 10})


# Learning


def test_facts_a_model_finds_are_learned(store: holdfast.Store, thread: holdfast.Thread) -> None:
    found = {"facts": [{"text": "Ana lives in Porto.", "entry": 1, "quote": "I live in Porto", "key": "home"}]}
    session = store.session(thread, model=Scripted("Good to know.", found, usage=Usage(30, 4)), learn="model")
    answer = session.turn("I live in Porto.")
    assert (answer.usage, answer.learning) == (Usage(30, 4), Usage(30, 4))
    assert (session.usage, session.learning) == (Usage(60, 8, requests=2), Usage(30, 4))
    assert [memory.text for memory in answer.learned] == ["Ana lives in Porto."]
    assert [memory.text for memory in store.memory(user="ana").facts()] == ["Ana lives in Porto."]
    assert answer.notes == ()


def test_facts_nobody_said_are_refused_and_noted(store: holdfast.Store, thread: holdfast.Thread) -> None:
    found = {"facts": [{"text": "Ana is rich.", "entry": 1, "quote": "I am rich", "key": "wealth"}]}
    answer = store.session(thread, model=Scripted("Hello.", found), learn="model").turn("I live in Porto.")
    assert answer.learned == ()
    assert "Ana is rich." in answer.notes[0]


@pytest.mark.parametrize(
    "broken", [RuntimeError("broke"), ModelFailed("late", model="m", reason="timeout"), Broken("{"), "no JSON"]
)
def test_without_a_usable_answer_the_rules_learn(ram: holdfast.Store, broken: Any) -> None:
    model = Scripted("Good to know.", broken, broken, broken, NOTHING)
    session = ram.session(ram.thread("t", user="ana"), model=model, learn="model")
    answer = session.turn("I live in Porto.")
    assert answer.text == "Good to know."
    assert [memory.text for memory in answer.learned] == ["ana lives in Porto"]
    assert "rules" in answer.notes[0]
    assert session.start().unanswered is None
    assert isinstance(session.model, Scripted)
    assert session.model.calls[-1].how == "extract"


def test_learning_off_learns_nothing(store: holdfast.Store, thread: holdfast.Thread) -> None:
    assert plain(store, thread, "Good.").turn("I live in Porto.").learned == ()
    assert store.memory(user="ana").facts() == []


def test_a_function_given_as_the_model_is_called_once_for_a_turn(
    store: holdfast.Store, thread: holdfast.Thread
) -> None:
    """It learns by rules unless the caller asks for a model to learn with, and says what that took."""
    asked: list[Any] = []
    answer = store.session(thread, model=lambda messages: f"{asked.append(messages) or 'Good.'}").turn(
        "I live in Porto."
    )
    assert len(asked) == 1
    assert [memory.text for memory in answer.learned] == ["ana lives in Porto"]
    assert answer.learning == Usage(requests=0)
    store.session(thread, model=lambda messages: f"{asked.append(messages) or '{}'}", learn="model").turn(
        "I have a dog."
    )
    assert len(asked) > 2


def test_rules_ask_no_model(store: holdfast.Store, thread: holdfast.Thread) -> None:
    answer = plain(store, thread, "Good.", learn="rules").turn("I live in Porto.")
    assert [memory.text for memory in answer.learned] == ["ana lives in Porto"]


def test_the_answer_stands_whatever_comes_after_it(ram: holdfast.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    session = ram.session(ram.thread("t", user="ana"), model=Scripted("Good."), learn="rules")

    def fail(*args: Any, **more: Any) -> Any:
        raise OSError("the disk of the index is full")

    monkeypatch.setattr("holdfast.sessions.learning.by_rules", fail)
    answer = session.turn("I live in Porto.")
    assert answer.text == "Good."
    assert "the disk" in " ".join(answer.notes)
    assert session.start().unanswered is None


# Erasing


@pytest.mark.every_engine
def test_erasing_the_user_erases_all_that_a_session_wrote(place: Any) -> None:
    store = place.open()
    thread = store.thread("t", user="ana")
    found = {"facts": [{"text": "Ana lives in Zanzibar.", "entry": 1, "quote": "I live in Zanzibar", "key": "home"}]}
    model = Scripted(call(a=1, b=2), "Zanzibar it is.", found, "Zanzibar again.", NOTHING)
    with store.session(thread, model=model, tools=[add], learn="model") as session:
        session.turn("I live in Zanzibar.")
        store.memory(user="ana").remember("the spice market of Zanzibar opens at dawn")
        session.turn("When does the spice market of Zanzibar open?")
    assert any(entry.kind == "event" and entry.content.get("recalled") for entry in thread.log())
    store.erase(user="ana")
    assert (store.threads(), store.runs(), store.memory(user="ana").facts()) == ([], [], [])
    with store.core.engine.snapshot() as view:
        for kind in ("thread", "state", "run", "lease", "memory", "memories", "handoff", "index", "checkpoint"):
            records = view.scan(store.tenant, Query(kind))
            assert not [record.id for record in records if b"anzibar" in record.body], kind
    if place.engine == "sqlite":
        place.close()
        assert b"anzibar" not in b"".join(path.read_bytes() for path in Path(place.url).parent.glob("store.db*"))


@pytest.mark.every_engine
@pytest.mark.parametrize("when", ["in the model", "before a tool", "after a tool", "in the lesson", "in the handoff"])
def test_what_is_erased_in_the_middle_of_a_turn_does_not_come_back(place: Any, when: str) -> None:
    store = place.open()

    def erasing(item: Any) -> Callable[..., Any]:
        def erase(messages: Any, tools: Any) -> Any:
            store.erase(user="ana")
            return item

        return erase

    lesson = {"facts": [{"text": "Ana lives in Porto.", "entry": 1, "quote": "I live in Porto", "key": "home"}]}
    scripts: dict[str, list[Any]] = {
        "in the model": [erasing("Good.")],
        "before a tool": [erasing(call(a=1, b=2)), "Good."],
        "after a tool": [call(a=1, b=2), erasing("Good.")],
        "in the lesson": ["Good.", erasing(lesson), NOTHING],
        "in the handoff": ["Good.", NOTHING, erasing({"goal": "a goal"}), NOTHING],
    }
    model = Scripted(*scripts[when])
    session = store.session(store.thread("t", user="ana"), model=model, tools=[add], hand_off=0.001, learn="model")
    if when.endswith(("lesson", "handoff")):
        assert session.turn("I live in Porto.").text == "Good."
    else:
        with pytest.raises((Erased, Fenced)):
            session.turn("I live in Porto.")
    assert (store.threads(), store.runs(), store.memory(user="ana").facts()) == ([], [], [])
    assert not store.thread("t").handoff.history()


def test_the_time_a_model_may_take_is_passed_on(store: holdfast.Store, thread: holdfast.Thread) -> None:
    model = Scripted("Good.", NOTHING)
    store.session(thread, model=model, timeout_s=7, learn="model").turn("q")
    assert [asked.timeout_s for asked in model.calls] == [7, 7]


def test_a_session_sees_what_is_known_of_its_own_user_only(store: holdfast.Store) -> None:
    store.memory(user="bob").remember("Bob takes the window seat", key="seat")
    model = Scripted("I do not know.")
    store.session(store.thread("t", user="ana"), model=model, learn="off").turn("window seat?")
    assert "Bob" not in str(model.asked)


def test_a_thread_of_nobody_teaches_nobody(store: holdfast.Store) -> None:
    """What is learned in a thread without a user would be known to every user of the store."""
    found = {"facts": [{"text": "Ana lives in Zanzibar.", "entry": 1, "quote": "I live in Zanzibar", "key": "home"}]}
    for ways in ({"model": Scripted("Noted."), "learn": "rules"}, {"model": Scripted("Noted.", found)}):
        store.session("nobody", **ways).turn("I live in Zanzibar.")
    model = Scripted("I do not know.")
    store.session(store.thread("t", user="bob"), model=model, learn="off", recall=False).turn("Where do I live?")
    assert "Zanzibar" not in str(model.asked)
