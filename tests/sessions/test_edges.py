"""Edges that were once crossed: what is given up, left out, forged, poisoned or erased."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec
import pytest

import holdfast
from holdfast import aio
from holdfast.errors import Invalid, Misconfigured, ModelFailed
from holdfast.providers.models.model import Reply, ToolCall
from holdfast.testing.models import Scripted


class Killed(BaseException):
    """The process is gone."""


@pytest.fixture
def store() -> Any:
    with holdfast.open("ram:", embedder="none") as opened:
        yield opened


def asked(session: Any) -> str:
    model = session.model
    assert isinstance(model, Scripted)
    return str(model.asked[-1])


@pytest.mark.parametrize("happened", [True, False])
def test_a_probe_is_asked_when_a_turn_is_given_up_for_another(store: holdfast.Store, happened: bool) -> None:
    paid: list[int] = []

    def found(amount: int) -> Any:
        return {"paid": amount} if paid else None

    @holdfast.step(effect="once", probe=found)
    def refund(amount: int) -> dict[str, int]:
        if happened:
            paid.append(amount)
        raise Killed

    thread = store.thread("t", user="ana")
    first = store.session(thread, model=Scripted(ToolCall("1", "refund", {"amount": 5})), tools=[refund], learn="off")
    with pytest.raises(Killed):
        first.turn("refund it")
    then = store.session(thread, model=Scripted("ok"), tools=[refund], learn="off")
    then.turn("something else")
    results = [entry.content["content"] for entry in thread.log() if entry.kind == "observation"]
    assert results == (['{"paid": 5}'] if happened else [])  # what did not happen needs no record
    assert store.runs(status="stopped") == []


def test_short_turns_are_summarised_also_where_the_budget_is_large(store: holdfast.Store) -> None:
    thread = store.thread("t", user="ana")
    session = store.session(thread, budget=32_000, learn="off")
    for number in range(330):
        session.turn(f"n {number}").reply("ok")
    summaries = [entry for entry in thread.log() if entry.kind == "summary"]
    window = session.context("what now?").window
    assert summaries
    assert window is not None
    assert summaries[-1].content["last"] + 1 >= window[0]


def test_a_callers_own_event_of_that_name_is_an_event_like_any_other(store: holdfast.Store) -> None:
    thread = store.thread("t", user="ana")
    thread.append({"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"})
    thread.append(holdfast.event("usage", tokens=5), holdfast.event("unanswered", question=1, left=True))
    session = store.session(thread)
    assert session.start().unanswered is None
    assert "[event: usage" in session.context("and?").text


def test_what_was_erased_is_not_kept_in_memory(store: holdfast.Store) -> None:
    thread = store.thread("t", user="ana")
    store.session(thread, learn="off").turn("the password is xyzzy-42").reply("noted")
    store.context(thread, "and?")
    store.erase(user="ana")
    builder = store._contexts()
    kept = [str(page) for page in builder._pages.values()]
    kept += [str(tail) for tail in builder._kept.tails._kept.values()]
    kept += [text for counter in builder._counters.values() for text in (*counter._young, *counter._old)]
    assert not [text for text in kept if "xyzzy-42" in text]


@pytest.mark.parametrize(
    "poisoned",
    [Reply("", ("x",)), Reply("", ToolCall("1", "a", {})), Reply("", (ToolCall(1, "a", {}),))],  # type: ignore[arg-type]
    ids=["no call", "no tuple", "no text"],
)
def test_a_reply_that_is_none_poisons_nothing(store: holdfast.Store, poisoned: Reply) -> None:
    thread = store.thread("t", user="ana")
    with pytest.raises(ModelFailed):
        store.session(thread, model=Scripted(poisoned), learn="off").turn("q")
    session = store.session(thread, model=Scripted("fine"), learn="off")
    assert session.start().unanswered is not None
    assert session.resume().text == "fine"


def test_what_annotations_say_is_checked(store: holdfast.Store) -> None:
    @holdfast.step(effect="pure")
    def half(of: Annotated[int, msgspec.Meta(ge=1, description="what to halve")]) -> float:
        return of / 2

    model = Scripted(ToolCall("1", "half", {"of": 0}), ToolCall("2", "half", {"of": 4}), "ok")
    session = store.session("t", user="ana", model=model, tools=[half], learn="off")
    session.turn("q")
    assert "what to halve" in str(model.calls[0].tools)
    assert "error: the arguments do not fit" in asked(session)
    assert "2.0" in asked(session)


def test_a_cited_entry_of_another_thread_can_be_looked_up_and_a_strangers_cannot(store: holdfast.Store) -> None:
    store.thread("older", user="ana").append({"role": "user", "content": "the whole story of the pier"})
    store.thread("foreign", user="bob").append({"role": "user", "content": "a secret of bob"})
    calls = [ToolCall(str(n), "look_up", {"ref": ref}) for n, ref in enumerate(("older#1", "foreign#1"))]
    tool = holdfast.step("noop", effect="pure")(lambda: "")
    session = store.session("t", user="ana", model=Scripted(calls, "ok"), tools=[tool], learn="off")
    session.turn("q")
    assert "the whole story of the pier" in asked(session)
    assert "secret" not in asked(session)


def test_a_thread_or_memories_of_another_store_are_refused(store: holdfast.Store) -> None:
    with holdfast.open("ram:") as other:
        thread = other.thread("t", user="ana")
        for refused in (lambda: store.session(thread), lambda: store.context(thread, "hi")):
            with pytest.raises(Invalid, match="another store"):
                refused()
        with pytest.raises(Invalid, match="another store"):
            store.session("t", user="ana", tools=[other.memory(user="ana")])


def test_an_answer_that_was_cut_off_says_so(store: holdfast.Store) -> None:
    session = store.session("t", user="ana", model=Scripted(Reply("half an ans", stop="length")), learn="off")
    assert "length" in session.turn("q").notes[0]


def test_a_slip_of_the_pen_in_the_counter_is_refused(store: holdfast.Store) -> None:
    with pytest.raises(Misconfigured, match="o200k_base"):
        store.context("t", "hi", tokens="o200k")


def test_an_async_function_is_a_model_and_halves_are_entered_without_await() -> None:
    async def model(messages: list[dict[str, Any]]) -> str:
        await asyncio.sleep(0)
        return f"heard {len(messages)}"

    async def main() -> None:
        async with aio.open("ram:") as store:
            session = store.session("t", user="ana", model=model, learn="off")
            assert (await session.turn("hi")).text.startswith("heard")
            async with store.session("t").turn("more") as turn:
                assert (await turn.reply("yes")).text == "yes"
            with pytest.raises(Invalid, match="await"):
                async with session.turn("again"):
                    pass

    asyncio.run(main())
