"""Edges that were once crossed: what is given up, left out, forged, poisoned or erased."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec
import pytest

import holdfast
from holdfast import aio
from holdfast.errors import Invalid, Misconfigured, ModelFailed, StepUnknown
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
    session = store.session(thread, budget=12_000, learn="off")
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
    builder = store.wiring.contexts()
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


def test_a_message_that_is_repeated_with_its_key_is_recognised(store: holdfast.Store) -> None:
    asked_once = holdfast.message("user", "hi")
    session = store.session("t", user="ana", model=Scripted("hello"), learn="off")
    assert session.turn(asked_once, key="k").text == "hello"
    assert session.turn(asked_once, key="k").repeated


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


def test_after_a_handoff_the_fresh_session_knows_what_was_handed_over(store: holdfast.Store) -> None:
    thread = store.thread("t", user="ana")
    session = store.session(thread, budget=2_000, hand_off=0.7, learn="off")
    for number in range(60):
        text = f"Decision {number}: the pier of harbour {number} is painted in the colour {number * 7}."
        if session.turn(text).reply(f"Noted for harbour {number}, by order of the master.").handed_off:
            break
    page = session.context("what did we decide?")
    assert page.window is None
    assert "Context:" in page.section("handoff")
    assert "harbour" in page.section("handoff")


def test_a_handoff_is_written_of_a_conversation_with_nul_in_it(store: holdfast.Store) -> None:
    thread = store.thread("t", user="ana")
    session = store.session(thread, learn="off")
    session.turn("the goal of this\x00 trip is Lisbon").reply("Noted\x00. Next step: book\x00 a hotel.")
    session.turn("and how\x00 far is it?")
    session.end()
    written = thread.handoff.read()
    assert "how far" in written.next_action
    assert "\x00" not in f"{written.goal}{written.next_action}{written.context}"


def test_what_a_model_is_asked_for_a_summary_with_is_bounded(store: holdfast.Store) -> None:
    thread = store.thread("t", user="ana")
    for number in range(300):
        words = f"word{number} " * 300
        thread.append({"role": "user", "content": words}, {"role": "assistant", "content": words})
    model = Scripted("answered", "a summary of it", {})
    with store.session(
        thread, model=model, budget=4_000, learn="off", tokens=lambda text: len(text.split())
    ) as session:
        session.turn("and now?")
    assert len(model.asked) == 3
    for messages in model.asked:
        assert sum(len(str(message["content"]).split()) for message in messages) <= 4_000 * 1.5


def test_a_turn_with_tools_stays_within_the_budget(store: holdfast.Store) -> None:
    @holdfast.step(effect="pure")
    def look(at: str) -> str:
        return "many words of a log " * 400

    rounds = [ToolCall(str(number), "look", {"at": f"place {number} " * 50}) for number in range(14)]
    count = lambda text: len(text.split())  # noqa: E731
    model = Scripted(*rounds, "done")
    session = store.session("t", user="ana", model=model, tools=[look], budget=4_000, learn="off", tokens=count)
    session.turn("q")
    assert max(count(str(messages)) for messages in model.asked) <= 4_400


def test_hits_that_had_no_room_are_reported(store: holdfast.Store) -> None:
    older = store.thread("older", user="ana")
    older.append(*[{"role": "user", "content": f"the harbour {number} has a long pier"} for number in range(300)])
    report = store.context(store.thread("t", user="ana"), "which harbour has a pier?", 600).report
    assert any(dropped.section == "recalled" for dropped in report.dropped)


def test_a_function_is_told_of_tools_if_it_takes_them(store: holdfast.Store) -> None:
    told: list[Any] = []

    def model(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> str:
        told.append([tool["function"]["name"] for tool in tools])
        return "ok"

    tool = holdfast.step("noop", effect="pure")(lambda: "")
    store.session("t", user="ana", model=model, tools=[tool], learn="off").turn("q")
    assert told == [["noop", "look_up"]]
    with pytest.raises(Invalid, match="takes no tools"):
        store.session("t", user="ana", model=lambda messages: "ok", tools=[tool])


def test_what_was_done_before_a_crash_is_shown_and_recorded_in_halves(store: holdfast.Store) -> None:
    @holdfast.step(effect="once", on_unknown="stop")
    def pay(amount: int) -> str:
        return f"paid {amount}"

    thread = store.thread("t", user="ana")
    model = Scripted(ToolCall("1", "pay", {"amount": 5}), Killed())
    with pytest.raises(Killed):
        store.session(thread, model=model, tools=[pay], learn="off").turn("pay 5")
    with store.session(thread, learn="off").resume() as turn:
        assert "paid 5" in str(turn.messages)
        turn.reply("It is paid.")
    assert [entry.kind for entry in thread.log() if entry.kind in ("tool_call", "observation")] == [
        "tool_call", "observation",
    ]  # fmt: skip


def test_a_session_without_the_tool_does_not_call_off_what_may_have_happened(store: holdfast.Store) -> None:
    @holdfast.step(effect="once", on_unknown="stop")
    def pay(amount: int) -> str:
        raise Killed

    thread = store.thread("t", user="ana")
    model = Scripted(ToolCall("1", "pay", {"amount": 5}))
    with pytest.raises(Killed):
        store.session(thread, model=model, tools=[pay], learn="off").turn("pay 5")
    with pytest.raises(StepUnknown):
        store.session(thread, model=Scripted("never"), learn="off").resume()
    assert store.session(thread).start().unanswered is not None


def test_arguments_as_clients_give_them_are_read(store: holdfast.Store) -> None:
    seen: list[int] = []

    @holdfast.step(effect="pure")
    def add(a: int) -> int:
        seen.append(a)
        return a

    reply = Reply(calls=(ToolCall("1", "add", '{"a": 3}'), ToolCall("2", "add", "no json")))  # type: ignore[arg-type]
    session = store.session("t", user="ana", model=Scripted(reply, "ok"), tools=[add], learn="off")
    session.turn("q")
    assert seen == [3]
    assert "could not be read" in asked(session)


@pytest.mark.parametrize("part", [{"type": "text"}, {"type": "text", "text": 5}, {"type": "image_url"}])
def test_parts_that_say_nothing_are_refused(store: holdfast.Store, part: Any) -> None:
    with pytest.raises(Invalid):
        store.context("t", ["look", part])
