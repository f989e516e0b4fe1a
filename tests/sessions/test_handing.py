"""Handing over: what a session leaves in the handoff, and how the next one begins from it."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.errors import Invalid, ModelFailed
from holdfast.providers.models.model import Usage
from holdfast.sessions.session import Session
from holdfast.testing.models import Scripted

PROGRESS = {
    "goal": "Plan the trip to Lisbon", "done": ["chose the flight"], "todo": ["book the hotel"],
    "blockers": ["waits for the boss"], "next_action": "ask for the dates", "context": "The budget is 900 euro.",
}  # fmt: skip


@pytest.fixture
def store(place: Any) -> holdfast.Store:
    found: holdfast.Store = place.open()
    return found


@pytest.fixture
def thread(store: holdfast.Store) -> holdfast.Thread:
    return store.thread("t", user="ana")


def talk(session: Session, turns: int, words: int = 40) -> None:
    for number in range(turns):
        session.turn(f"remark-{number} " + "um " * words).reply(f"noted-{number} " + "ah " * words)


def texts(session: Session, input: str = "and now?") -> str:
    return "\n".join(str(message["content"]) for message in session.context(input).messages("openai"))


# The end


def test_a_model_says_what_the_next_one_needs(store: holdfast.Store, thread: holdfast.Thread) -> None:
    session = store.session(thread, model=Scripted("ok", PROGRESS, usage=Usage(10, 1)), learn="off")
    session.turn("Plan my trip to Lisbon.")
    revision = session.end()
    found = thread.handoff.read()
    assert (found.goal, found.next_action) == (PROGRESS["goal"], PROGRESS["next_action"])
    assert found.context.endswith(PROGRESS["context"])
    assert [step.text for step in found.steps] == ["chose the flight", "book the hotel"]
    assert list(found.blockers) == ["waits for the boss"]
    assert thread.handoff.history()[-1].number == revision
    assert session.usage == Usage(20, 2, 0, 2)


@pytest.mark.parametrize(
    "broken", [RuntimeError("broke"), ModelFailed("late", model="m", reason="timeout"), "no JSON", {}]
)
def test_without_a_usable_answer_it_is_extractive(ram: holdfast.Store, broken: Any) -> None:
    thread = ram.thread("t", user="ana")
    session = ram.session(thread, model=Scripted("Lisbon it is.", broken, broken, broken, PROGRESS), learn="off")
    session.turn("Plan my trip to Lisbon with a budget of 900 euro.")
    session.end()
    found = thread.handoff.read()
    assert "900 euro" in found.context + found.goal


def test_an_open_question_is_what_comes_next(store: holdfast.Store, thread: holdfast.Thread) -> None:
    session = store.session(thread, learn="off")
    session.turn("Plan my trip to Lisbon.").reply("Gladly.")
    session.turn("Which hotel do you propose?")
    session.end()
    found = thread.handoff.read()
    assert "Which hotel do you propose?" in found.next_action
    assert "#4" in found.next_action
    opening = store.session(thread).start()
    assert opening.unanswered is not None
    assert opening.unanswered.content["content"] == "Which hotel do you propose?"


def test_an_answered_question_is_no_longer_what_comes_next(store: holdfast.Store, thread: holdfast.Thread) -> None:
    session = store.session(thread, learn="off")
    session.turn("Which hotel do you propose?")
    session.end()
    session.resume().reply("The one at the river.")
    session.end()
    assert "Which hotel" not in thread.handoff.read().next_action


@pytest.mark.parametrize("model", [None, "scripted"])
def test_what_people_wrote_stays(store: holdfast.Store, thread: holdfast.Thread, tmp_path: Any, model: Any) -> None:
    thread.handoff.update(goal="A goal of a person", todo=["call the bank"], blockers=["the visa"], by="ana")
    page = tmp_path / "PROGRESS.md"
    thread.handoff.write(page)
    page.write_text(page.read_text() + "\n## Remarks\n\nNever fly on a Friday.\n")
    thread.handoff.load(page)
    session = store.session(
        thread, model=Scripted("ok", {"done": ["chose the flight"]}) if model else None, learn="off"
    )
    answer = session.turn("Plan my trip.")
    if model is None:
        answer.reply("ok")
    session.end()
    text = thread.handoff.markdown()
    for kept in ("A goal of a person", "call the bank", "the visa", "Never fly on a Friday."):
        assert kept in text, kept


def test_the_end_of_the_block_hands_over_once_something_was_said(store: holdfast.Store) -> None:
    with store.session("quiet", model=Scripted(), learn="off"):
        pass
    assert not store.thread("quiet").exists()
    with store.session("t", model=Scripted("Lisbon it is.", PROGRESS), learn="off") as session:
        session.turn("Plan my trip.")
    assert store.thread("t").handoff.read().goal == PROGRESS["goal"]
    session = store.session("e", model=Scripted("Yes."), learn="off")
    with pytest.raises(ValueError, match="boo"), session:  # noqa: PT012 - it breaks off in the middle
        session.turn("Plan my trip.")
        raise ValueError("boo")
    assert store.thread("e").handoff.history() == []


def test_the_end_keeps_the_window(store: holdfast.Store, thread: holdfast.Thread) -> None:
    """The next session after ``end`` still sees the recent turns; only ``hand_off`` begins afresh."""
    session = store.session(thread, learn="off")
    talk(session, 2, 3)
    session.end()
    assert "remark-1" in texts(store.session(thread, recall=False))


# Beginning afresh


@pytest.mark.every_engine
def test_at_its_share_a_session_hands_off_and_begins_afresh(store: holdfast.Store, thread: holdfast.Thread) -> None:
    model = Scripted(*[f"noted-{number} " + "ah " * 60 for number in range(30)])
    session = store.session(thread, model=model, learn="off", budget=1_500, hand_off=0.6, summarise=False, recall=False)
    model.extract = lambda messages, shape, **_: (_progress(shape), Usage())  # type: ignore[method-assign]
    turns = 0
    while not session.turn(f"remark-{turns} " + "um " * 60).handed_off:
        turns += 1
        assert turns < 20
    assert turns > 1
    assert thread.handoff.read().goal == PROGRESS["goal"]
    text = texts(session)
    assert str(PROGRESS["goal"]) in text
    assert "remark-" not in text
    assert "noted-" not in text
    assert session.fullness() < 0.1
    session.turn("a new remark")
    assert "a new remark" in texts(session)
    opening = store.session(thread).start()
    assert opening.recent[0].content["content"] == "a new remark"


def _progress(shape: Any) -> Any:
    return shape(**PROGRESS)


def test_what_is_handed_off_is_not_summarised_again(store: holdfast.Store, thread: holdfast.Thread) -> None:
    session = store.session(thread, learn="off", budget=1_000)
    talk(session, 4)
    session.hand_off()
    mark = thread.logbook.head()
    talk(session, 14)
    found = [entry.content for entry in thread.log() if entry.kind == "summary" and entry.number > mark]
    assert found
    assert found[0]["first"] == mark + 1
    assert found[0]["previous"] == 0


def test_without_a_share_nothing_is_handed_off(store: holdfast.Store, thread: holdfast.Thread) -> None:
    session = store.session(thread, learn="off", budget=800)
    talk(session, 20)
    assert thread.handoff.history() == []
    assert session.fullness() > 0


def test_a_question_asked_before_a_hand_off_can_be_resumed_after_it(
    store: holdfast.Store, thread: holdfast.Thread
) -> None:
    session = store.session(thread, learn="off")
    talk(session, 2, 3)
    session.turn("Which hotel?")
    session.hand_off()
    later = store.session(thread, model=Scripted("The one at the river."), learn="off")
    opening = later.start()
    assert opening.unanswered is not None
    assert later.resume().text == "The one at the river."
    assert later.start().unanswered is None


def test_a_model_that_cannot_hand_off_does_not_break_the_turn(ram: holdfast.Store) -> None:
    thread = ram.thread("t", user="ana")
    for number in range(10):
        thread.append({"role": "user", "content": f"q {number} " + "um " * 60}, {"role": "assistant", "content": "a"})
    broken = RuntimeError("broke")
    model = Scripted("the answer", broken, broken, PROGRESS)
    session = ram.session(
        thread,
        model=model,
        learn="off",
        budget=1_500,
        hand_off=0.3,
        summarise=False,
    )
    answer = session.turn("q")
    assert answer.text == "the answer"
    assert answer.handed_off
    assert thread.handoff.read().context


def test_what_a_person_wrote_as_context_stays_above_what_a_session_writes(
    store: holdfast.Store, thread: holdfast.Thread
) -> None:
    thread.handoff.update(goal="Ship it", context="NEVER deploy on a Friday.", by="zed")
    for _ in range(2):
        session = store.session(thread, model=Scripted("ok", PROGRESS, "ok", PROGRESS), learn="off")
        session.turn("Plan my trip to Lisbon.")
        session.end()
    found = thread.handoff.read()
    assert found.goal == "Ship it"
    assert found.context.startswith("NEVER deploy on a Friday.")
    assert found.context.count(str(PROGRESS["context"])) == 1


@pytest.mark.every_engine
def test_what_a_person_writes_while_the_model_thinks_stays(store: holdfast.Store, thread: holdfast.Thread) -> None:
    def meanwhile(messages: Any, tools: Any) -> Any:
        thread.handoff.update(goal="Ship it", context="NEVER deploy on a Friday.", by="zed")
        return PROGRESS

    session = store.session(thread, model=Scripted("ok", meanwhile), learn="off")
    session.turn("Plan my trip to Lisbon.")
    session.end()
    found = thread.handoff.read()
    assert found.goal == "Ship it"
    assert found.context.startswith("NEVER deploy on a Friday.")
    assert found.context.endswith(str(PROGRESS["context"]))


def test_what_a_person_writes_while_the_model_thinks_is_not_replaced_by_what_it_did_not_see(
    store: holdfast.Store, thread: holdfast.Thread
) -> None:
    def meanwhile(messages: Any, tools: Any) -> Any:
        thread.handoff.update(blockers=["the visa"], next_action="call the bank", by="zed")
        return PROGRESS

    session = store.session(thread, model=Scripted("ok", meanwhile, PROGRESS), learn="off")
    session.turn("Plan my trip to Lisbon.")
    session.end()
    found = thread.handoff.read()
    assert (found.blockers, found.next_action) == (("the visa",), "call the bank")
    session.end()
    assert thread.handoff.read().next_action == PROGRESS["next_action"]


@pytest.mark.parametrize("model", [None, "scripted"])
def test_what_a_person_writes_at_any_moment_of_handing_over_stays(place: Any, model: Any) -> None:
    """Before its first, second, third … call of the engine, until it makes no more."""
    people = place.open(own=True)
    for at in count():
        store = place.open(own=True, through=Interrupted)
        engine: Any = store.core.engine
        thread, written = store.thread(f"t{at}"), people.thread(f"t{at}").handoff
        session = store.session(thread, model=Scripted("ok", PROGRESS) if model else None, learn="off")
        exchange = session.turn("Plan my trip to Lisbon with a budget of 900 euro.")
        if model is None:
            exchange.reply("ok")
        engine.expect(at, lambda written=written: written.update(goal="Ship it", context="Never on Friday.", by="z"))
        session.end()
        if not engine.done:
            break
        found = written.read()
        late = written.history()[-1].by == "z"  # it was handed over before they wrote, and they replaced that
        assert found.goal == "Ship it", at
        assert found.context.startswith("Never on Friday."), at
        assert late or "900" in found.context, at
    assert at > 10


class Interrupted:
    """An engine; before one of its calls somebody else does something."""

    def __init__(self, inner: Any) -> None:
        self._inner, self._left, self._act = inner, -1, None
        self.done = False

    def expect(self, calls: int, act: Any) -> None:
        self._left, self._act = calls, act

    def __getattr__(self, name: str) -> Any:
        if self._act is not None and callable(getattr(self._inner, name)):
            if self._left == 0:
                act, self._act, self.done = self._act, None, True
                act()
            self._left -= 1
        return getattr(self._inner, name)


# A file


@pytest.mark.parametrize("name", ["PROGRESS.md", "progress.json"])
def test_a_file_is_taken_in_before_a_turn_and_written_at_the_end(
    store: holdfast.Store, thread: holdfast.Thread, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    path.write_text('{"goal": "Plan it"}' if path.suffix == ".json" else "# Goal\nPlan it\n", encoding="utf-8")
    with store.session(thread, learn="off", handoff_file=path) as session:
        assert session.opening is not None
        assert session.opening.handoff.goal == "Plan it"
        session.turn("Plan my trip to Lisbon.").reply("Gladly.")
        assert len(thread.handoff.history()) == 1, "a file that did not change is not loaded again"
        thread.handoff.write(path)
        path.write_text(path.read_text(encoding="utf-8").replace("Plan it", "Plan it well"), encoding="utf-8")
        assert "Goal: Plan it well" in session.turn("And the hotel?").context.section("handoff")
    assert "Plan it well" in path.read_text(encoding="utf-8")
    assert [revision.by for revision in thread.handoff.history()] == ["person", "person", "session"]
    with store.session(thread, learn="off", handoff_file=path) as session:
        assert len(thread.handoff.history()) == 3, "what the session wrote is no change"


def test_a_file_that_cannot_be_taken_in_stops_no_turn_and_is_told(
    store: holdfast.Store, thread: holdfast.Thread, tmp_path: Path
) -> None:
    path = tmp_path / "progress.json"
    path.write_text("{", encoding="utf-8")
    session = store.session(thread, model=Scripted("ok", "ok", "ok"), learn="off", handoff_file=path)
    (note,) = session.turn("Hello there.").notes
    assert note.startswith("the handoff file was left alone:")
    assert "not JSON" in note
    assert session.turn("And now?").notes == (), "told once"
    session.end()
    assert path.read_text(encoding="utf-8") == "{", "nothing of a person is written over"


def test_a_file_edited_while_the_handoff_changed_is_left_alone_and_told(
    store: holdfast.Store, thread: holdfast.Thread, tmp_path: Path
) -> None:
    path = tmp_path / "PROGRESS.md"
    thread.handoff.update(goal="a")
    thread.handoff.write(path)
    session = store.session(thread, model=Scripted("ok", "ok"), learn="off", handoff_file=path)
    session.start()
    thread.handoff.update(todo="from a tool")
    edited = path.read_text(encoding="utf-8") + "\nA line of mine.\n"
    path.write_text(edited, encoding="utf-8")
    assert "written from revision 1" in session.turn("Hello there.").notes[0]
    assert [step.text for step in thread.handoff.read().steps] == ["from a tool"]
    assert path.read_text(encoding="utf-8") == edited


def test_a_handoff_file_is_a_file(store: holdfast.Store, thread: holdfast.Thread, tmp_path: Path) -> None:
    for wrong in (3, "", tmp_path, "agent.db"):
        with pytest.raises(Invalid):
            store.session(thread, handoff_file=wrong)  # type: ignore[arg-type]


def test_without_extraction_the_next_action_is_what_someone_called_it(store: holdfast.Store) -> None:
    def answers(messages: list[dict[str, Any]]) -> str:
        return "I searched and found three.\n**Next action:** compare the prices.\n\nAnything else?"

    with store.session("t", user="ana", model=answers, learn="off") as session:
        session.turn("Find me a flight to Oslo, please.")
    document = store.thread("t", user="ana").handoff.read()
    assert (document.goal, document.next_action) == ("Find me a flight to Oslo, please.", "compare the prices.")
