"""Turns in halves, for those who call their model themselves; and streams, for those who listen as it speaks."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pytest

import holdfast
from holdfast.errors import Conflict, Fenced, Invalid, KeyReused, RunHeld
from holdfast.ledger.thread import sibling
from holdfast.providers.models.model import ToolCall, Usage
from holdfast.sessions.session import Session
from holdfast.sessions.turn import Answer, Exchange
from holdfast.testing.models import Scripted

Told = Callable[[holdfast.Thread], list[str]]


@pytest.fixture
def store(place: Any) -> holdfast.Store:
    found: holdfast.Store = place.open()
    return found


@pytest.fixture
def thread(store: holdfast.Store) -> holdfast.Thread:
    return store.thread("t", user="ana")


@pytest.fixture
def session(store: holdfast.Store, thread: holdfast.Thread) -> Session:
    return store.session(thread, learn="off")


def double(x: int) -> int:
    return 2 * x


# Halves


@pytest.mark.every_engine
def test_a_turn_in_halves(session: Session, thread: holdfast.Thread, told: Told) -> None:
    with session.turn("What is 2 x 4?") as turn:
        assert isinstance(turn, Exchange)
        assert turn.messages[-1]["role"] == "user"
        assert "What is 2 x 4?" in turn.messages[-1]["content"]
        assert turn.context.messages("anthropic")
        assert told(thread) == ["user: What is 2 x 4?"]  # on record before anything is done about it
        result = turn.step("double", double, 4, effect="pure")
        answer = turn.reply(f"It is {result}.")
    assert isinstance(answer, Answer)
    assert turn.answer == session.answer == answer
    assert told(thread) == [
        "user: What is 2 x 4?",
        "call double",
        "result 8",
        "assistant: It is 8.",
        "(holdfast.usage)",
    ]


def test_a_client_s_answer_is_recorded_with_its_usage(session: Session, thread: holdfast.Thread) -> None:
    given = {
        "model": "gpt", "usage": {"prompt_tokens": 90, "completion_tokens": 3},
        "choices": [{"message": {"role": "assistant", "content": "Hello."}}],
    }  # fmt: skip
    answer = session.turn("hi").reply(given)
    assert (answer.text, answer.usage) == ("Hello.", Usage(90, 3))
    usage = thread.log()[-1].content
    assert (usage["model"], usage["input"], usage["output"]) == ("gpt", 90, 3)
    assert session.usage == Usage(90, 3)
    assert session.turn("hi again").reply("Yes?", usage=Usage(7, 1)).usage == Usage(7, 1)


def test_a_state_is_saved_with_the_answer_or_not_at_all(session: Session, thread: holdfast.Thread, told: Told) -> None:
    session.turn("a").reply("b", state={"n": 1})
    assert thread.state().value == {"n": 1}
    other = sibling(thread, "t", thread.logbook.scope)
    other.state()
    other.save({"n": 2})
    turn = session.turn("c")
    with pytest.raises(Conflict):
        turn.reply("d", state={"n": 3})
    assert "assistant: d" not in told(thread)
    thread.state()
    assert turn.reply("d", state={"n": 3}).text == "d"
    assert told(thread).count("assistant: d") == 1


def test_notes_go_on_record_with_the_answer(session: Session, thread: holdfast.Thread, told: Told) -> None:
    with session.turn("hi") as turn:
        turn.append(holdfast.note("looked twice"))
        assert told(thread) == ["user: hi"]
        turn.reply("hello")
    assert told(thread) == ["user: hi", "(note)", "assistant: hello", "(holdfast.usage)"]


@pytest.mark.parametrize("left", ["quietly", "by an error", "by an interrupt"])
def test_leaving_without_a_reply_leaves_the_question_open(
    session: Session, store: holdfast.Store, thread: holdfast.Thread, left: str
) -> None:
    ways: dict[str, list[type[BaseException]]] = {"by an error": [ValueError], "by an interrupt": [KeyboardInterrupt]}
    raised = ways.get(left, [])
    try:
        with session.turn("What is 2 x 4?") as turn:
            turn.step("double", double, 4, effect="pure")
            for error in raised:
                raise error("in the middle")
    except (ValueError, KeyboardInterrupt) as error:
        assert type(error) in raised  # noqa: PT017 - only that it is passed on
    opening = session.start()
    assert opening.unanswered is not None
    assert opening.done == (("double", "8"),)
    with session.resume() as again:
        assert again.step("double", _never, 4, effect="pure") == 8
        again.reply("8")
    assert session.start().unanswered is None
    assert [run.status for run in store.runs()] == ["done"]


def _never(x: int) -> int:
    raise AssertionError("done before")


def test_what_was_done_in_halves_is_on_record_when_something_else_is_asked(
    session: Session, thread: holdfast.Thread, told: Told
) -> None:
    with session.turn("q") as turn:
        turn.step("double", double, 4, effect="pure")
    session.turn("q2").reply("a2")
    said = [line for line in told(thread) if line != "(holdfast.unanswered)"]
    assert said == ["user: q", "call double", "result 8", "user: q2", "assistant: a2", "(holdfast.usage)"]


def test_an_answer_that_comes_late_counts(session: Session, store: holdfast.Store, thread: holdfast.Thread) -> None:
    turn = session.turn("q")
    with pytest.raises(ValueError, match="boo"), turn:  # noqa: PT012 - it breaks off in the middle
        turn.step("double", double, 4, effect="pure")
        raise ValueError("boo")
    assert turn.reply("late").text == "late"
    assert session.start().unanswered is None
    assert [run.status for run in store.runs()] == ["done"]


def test_a_second_reply_is_refused(session: Session, thread: holdfast.Thread, told: Told) -> None:
    with session.turn("q") as turn:
        turn.reply("a")
        with pytest.raises(Invalid, match="answered"):
            turn.reply("b")
        with pytest.raises(Invalid, match="answered"):
            turn.step("x", double, 1, effect="pure")
        with pytest.raises(Invalid, match="answered"):
            turn.append(holdfast.note("x"))
    assert told(thread) == ["user: q", "assistant: a", "(holdfast.usage)"]


def test_a_reply_that_is_none_leaves_the_turn_open_for_a_better_one(session: Session) -> None:
    turn = session.turn("q")
    wrongs: list[Any] = [None, "", {}, {"choices": []}]
    for wrong in wrongs:
        with pytest.raises(Invalid):
            turn.reply(wrong)
    assert turn.reply("now").text == "now"


@pytest.mark.every_engine
def test_two_who_answer_one_question_get_one_answer(place: Any, told: Told) -> None:
    first, second = place.open(), place.open(own=True)
    one = first.session("t", learn="off").turn("q", key="k")
    two = second.session("t", learn="off").turn("q", key="k")
    assert one.reply("first").repeated is False
    late = two.reply("second")
    assert (late.text, late.repeated) == ("first", True)
    assert told(first.thread("t")) == ["user: q", "assistant: first", "(holdfast.usage)"]


def test_a_repetition_in_halves_can_be_entered_and_says_that_it_was_answered(
    session: Session, thread: holdfast.Thread, told: Told
) -> None:
    for _ in range(3):
        with session.turn("q", key="k") as turn:
            assert isinstance(turn, Exchange)
            if turn.answer is None:
                turn.reply("a")
    assert turn.answer is not None
    assert (turn.answer.text, turn.answer.repeated) == ("a", True)
    with pytest.raises(KeyReused):
        session.turn("other", key="k")
    assert told(thread) == ["user: q", "assistant: a", "(holdfast.usage)"]


# Steps of a turn


def test_a_step_takes_what_a_step_of_a_run_takes(session: Session, thread: holdfast.Thread) -> None:
    def book(day: datetime.date, *, seat: str) -> dict[str, str]:
        return {"day": str(day), "seat": seat}

    with session.turn("q") as turn:
        assert turn.step("book", book, datetime.date(2024, 5, 8), seat="12A", effect="idempotent", retry=2) == {
            "day": "2024-05-08", "seat": "12A",
        }  # fmt: skip
        turn.reply("booked")
    called = next(entry.content for entry in thread.log() if entry.kind == "tool_call")
    assert "2024-05-08" in str(called["arguments"])
    assert "12A" in str(called["arguments"])


def test_a_step_that_raises_is_passed_on(session: Session) -> None:
    def fail() -> None:
        raise OSError("no way")

    with pytest.raises(holdfast.errors.StepFailed), session.turn("q") as turn:
        turn.step("fail", fail, effect="pure")
    opening = session.start()
    assert opening.unanswered is not None
    assert opening.done == (("fail", "error: OSError: no way"),)


# Streams


def spoken(store: holdfast.Store, *items: Any, **ways: Any) -> Session:
    return store.session(store.thread("t", user="ana"), model=Scripted(*items), learn="off", **ways)


def test_a_stream_is_committed_at_its_end(store: holdfast.Store, thread: holdfast.Thread, told: Told) -> None:
    session = spoken(store, "one two three")
    pieces = []
    for piece in session.stream("q"):
        pieces.append(piece)
        assert told(thread) == ["user: q"]
    assert len(pieces) > 1
    assert "".join(pieces) == "one two three"
    assert session.answer is not None
    assert session.answer.text == "one two three"
    assert told(thread) == ["user: q", "assistant: one two three", "(holdfast.usage)"]


def test_who_stops_listening_leaves_the_question_open(
    store: holdfast.Store, thread: holdfast.Thread, told: Told
) -> None:
    tool = holdfast.step("double", effect="idempotent")(double)
    session = spoken(store, ToolCall("1", "double", {"x": 4}), "one two three", "eight", tools=[tool])
    said = session.stream("q")
    first = next(said)
    said.close()  # type: ignore[attr-defined]
    opening = session.start()
    assert opening.unanswered is not None
    assert opening.partial.strip() == first.strip()
    assert opening.done == (("double", "8"),)
    assert "assistant: one two three" not in told(thread)
    assert "".join(session.resume_stream()) == "eight"
    assert told(thread).count("call double") == 1
    assert list(session.resume_stream()) == []


def test_a_stream_nobody_listens_to_asks_nothing(store: holdfast.Store, thread: holdfast.Thread) -> None:
    spoken(store, "one").stream("q")
    assert not thread.exists()


# Somebody else is at it


def test_who_finds_a_question_held_does_not_say_that_nobody_answered_it(place: Any, told: Told) -> None:
    first, second = place.open(own=True), place.open(own=True)
    mine = first.session(first.thread("t", user="ana"), learn="off").turn("2 x 4?", key="k")
    mine.step("double", double, 4, effect="pure")
    other = second.session(second.thread("t", user="ana"), model=Scripted("9"), learn="off")
    with pytest.raises(RunHeld):
        other.turn("2 x 4?", key="k")
    mine.reply("8")
    assert told(first.thread("t")) == ["user: 2 x 4?", "call double", "result 8", "assistant: 8", "(holdfast.usage)"]


def test_who_was_fenced_off_does_not_say_that_nobody_answered_it(place: Any, told: Told) -> None:
    first, second = place.open(own=True), place.open(own=True)
    late = first.session(first.thread("t", user="ana"), learn="off").turn("2 x 4?")
    late.step("double", double, 4, effect="pure")
    place.clock.advance(3_600)
    other = second.session(second.thread("t", user="ana"), learn="off").resume()
    other.step("triple", double, 6, effect="pure")
    with pytest.raises(Fenced), late:
        late.step("more", double, 5, effect="pure")
    assert "(holdfast.unanswered)" not in told(first.thread("t"))


def test_an_answer_of_somebody_else_is_not_denied(place: Any, told: Told) -> None:
    first, second = place.open(own=True), place.open(own=True)
    turn = first.session(first.thread("t", user="ana"), learn="off").turn("a?")
    second.session(second.thread("t", user="ana"), learn="off").resume().reply("b")
    with pytest.raises(ZeroDivisionError), turn:
        _ = 1 // 0
    assert told(first.thread("t")) == ["user: a?", "assistant: b", "(holdfast.usage)"]


def test_a_run_of_another_question_that_is_held_is_a_reason_like_any_other(place: Any, told: Told) -> None:
    first, second = place.open(own=True), place.open(own=True)
    first.thread("other").run("job").step("double", double, 4, effect="pure")
    with pytest.raises(RunHeld), second.session(second.thread("t", user="ana"), learn="off").turn("a?"):
        second.thread("other").run("job")
    assert told(first.thread("t")) == ["user: a?", "(holdfast.unanswered)"]


def test_who_listens_hears_the_answer_of_somebody_else_who_was_faster(place: Any, told: Told) -> None:
    first, second = place.open(own=True), place.open(own=True)

    def meanwhile(messages: Any, tools: Any) -> ToolCall:
        spoken(second, ToolCall("1", "double", {"x": 4}), "eight", tools=[tool]).turn("q", key="k")
        return ToolCall("1", "double", {"x": 4})

    tool = holdfast.step("double", effect="idempotent")(double)
    session = spoken(first, meanwhile, tools=[tool])
    assert "".join(session.stream("q", key="k")) == "eight"
    assert session.answer is not None
    assert session.answer.repeated
    assert told(first.thread("t")).count("call double") == 1


@pytest.mark.every_engine
def test_who_was_taken_over_has_no_answer_to_give(place: Any, told: Told) -> None:
    first, second = place.open(own=True), place.open(own=True)
    late = first.session(first.thread("t", user="ana"), learn="off").turn("2 x 4?")
    late.step("double", double, 4, effect="pure")
    place.lapse()
    second.session(second.thread("t", user="ana"), learn="off").turn("else?").reply("b")
    with pytest.raises(Fenced), late:
        late.reply("8")
    lines = told(first.thread("t"))
    assert "assistant: 8" not in lines
    assert lines.count("call double") == 1


class Overtaken:
    """An engine of somebody who is too late: before anything is committed here, a turn is answered elsewhere."""

    def __init__(self, engine: Any, turn: Exchange) -> None:
        self._engine, self._turn = engine, turn

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def commit(self, *args: Any) -> Any:
        if self._turn.answer is None:
            self._turn.reply("b")
        return self._engine.commit(*args)


def test_a_question_that_is_answered_as_it_is_left_counts_as_answered(place: Any, told: Told) -> None:
    """Between the look at the log and the commit of the other question."""
    second = place.open(own=True)
    turn = second.session(second.thread("t", user="ana"), learn="off").turn("a?")

    first = place.open(own=True, through=lambda engine: Overtaken(engine, turn))
    first.session(first.thread("t", user="ana"), learn="off").turn("else?").reply("c")
    assert told(second.thread("t")) == [
        "user: a?", "assistant: b", "(holdfast.usage)", "user: else?", "assistant: c", "(holdfast.usage)",
    ]  # fmt: skip


def test_a_question_that_is_answered_as_another_gives_up_is_not_denied(place: Any, told: Told) -> None:
    second = place.open(own=True)
    turn = second.session(second.thread("t", user="ana"), learn="off").turn("a?")

    first = place.open(own=True, through=lambda engine: Overtaken(engine, turn))
    with pytest.raises(ZeroDivisionError), first.session(first.thread("t", user="ana"), learn="off").resume():
        _ = 1 // 0
    assert told(second.thread("t")) == ["user: a?", "assistant: b", "(holdfast.usage)"]


def test_a_step_that_is_asked_for_twice_in_a_turn_is_on_record_once(store: holdfast.Store) -> None:
    session = store.session("t", user="ana")
    with session.turn("book it") as turn:
        assert [turn.step("book", lambda: "booked", effect="idempotent") for _ in range(2)] == ["booked", "booked"]
        with pytest.raises(holdfast.errors.Invalid, match="no log="):
            turn.step("other", lambda: 1, effect="pure", log=False)
        turn.reply("done")
    kinds = [entry.kind for entry in store.thread("t").log() if entry.kind in ("tool_call", "observation")]
    assert kinds == ["tool_call", "observation"]
