"""Agents of ``create_agent`` with middleware: what a person decides, what a summary removes, what a kill interrupts."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from examples.adapters.scripted_model import ScriptedModel
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, AgentState, HumanInTheLoopMiddleware, SummarizationMiddleware
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver, task

AT: Any = {"configurable": {"thread_id": "t", "user_id": "ana"}}
SUMMARY = "Here is a summary"


@contextmanager
def saving(address: str | Path) -> Iterator[HoldfastSaver]:
    """A saver that knows nothing but what is kept, as in a new process."""
    with holdfast.open(address, embedder="none") as store:
        yield HoldfastSaver(store)
        assert store.verify().problems == ()


def said(store: holdfast.Store) -> list[str]:
    return [entry.content["content"] for entry in store.thread("t").log()]


def ask(agent: Any, text: str) -> Any:
    return agent.invoke({"messages": [{"role": "user", "content": text}]}, AT, durability="sync")


def test_the_page_is_true(page: Callable[[str], None]) -> None:
    page("langchain-agents")


def test_the_example_pays_each_invoice_once(example: Callable[..., str]) -> None:
    printed = [example("langchain_agent.py", code=code) for code in (-signal.SIGKILL, 0, 0, 0)]
    paid = [sorted(re.findall(r"euros for (\w+)", each)) for each in printed]  # two threads may print into one line
    assert paid == [["power", "water"], ["rent"], ["phone", "roof"], []]
    assert "May I pay the roof? (4 messages" in printed[1]
    assert "All five are paid. (5 messages" in printed[2]
    assert printed[3].count("log    ") == 12
    for text in ("Pay my invoices.", "Paid water.", "Paid power.", "Paid rent.", "Paid phone.", "Paid roof."):
        assert printed[3].count(text) == 1, "removed from the state, and kept in the log once"


# A person decides


def asking(saver: Any, mode: Any, paid: list[str]) -> Any:
    @tool
    def pay(invoice: str) -> str:
        """Pay an invoice."""
        paid.append(invoice)
        return f"Paid {invoice}."

    model = ScriptedModel(script={
        "": "Done.",
        "Pay.": [("pay", {"invoice": "roof"}), ("pay", {"invoice": "door"})],
    })  # fmt: skip
    middleware = HumanInTheLoopMiddleware({"pay": True}, interrupt_mode=mode)
    return create_agent(model, [pay], middleware=[middleware], checkpointer=saver)


APPROVE: Any = {"type": "approve"}
EDIT: Any = {"type": "edit", "edited_action": {"name": "pay", "args": {"invoice": "half the roof"}}}
REJECT: Any = {"type": "reject", "message": "Too dear."}


@pytest.mark.every_engine
@pytest.mark.parametrize("mode", ["batched", "per_call"])
@pytest.mark.parametrize(
    ("decision", "expected"),
    [(APPROVE, ["door", "roof"]), (EDIT, ["door", "half the roof"]), (REJECT, ["door"])],
    ids=["approve", "edit", "reject"],
)
def test_a_person_decides_after_a_restart(address: str, mode: str, decision: Any, expected: list[str]) -> None:
    paid: list[str] = []
    with saving(address) as saver:
        ask(asking(saver, mode, paid), "Pay.")
    assert paid == []
    with saving(address) as saver:
        agent = asking(saver, mode, paid)
        open_ = agent.get_state(AT).interrupts
        if mode == "batched":
            assert [each["args"] for each in open_[0].value["action_requests"]] == [
                {"invoice": "roof"}, {"invoice": "door"}
            ]  # fmt: skip
            answer: Any = {"decisions": [decision, APPROVE]}
        else:
            answer = {each.id: decision if "roof" in str(each.value) else APPROVE for each in open_}
            assert len(answer) == 2
            assert all(each.response_schema for each in open_), "what an answer must look like is kept too"
        agent.invoke(Command(resume=answer), AT, durability="sync")
    assert sorted(paid) == expected
    with saving(address) as saver:
        state = asking(saver, mode, paid).get_state(AT)
        assert state.next == ()
        kept = [message.text for message in state.values["messages"]]
        assert sorted(said(saver.store)) == sorted(kept), "said once each, whatever was decided"
        assert any("Too dear." in text for text in kept) == (decision is REJECT)


# A summary removes messages


def shortening(saver: Any) -> Any:
    model = ScriptedModel(script={"": "Noted."})
    short = SummarizationMiddleware(
        ScriptedModel(script={"": "much was said"}), trigger=("messages", 5), keep=("messages", 2)
    )
    return create_agent(model, [], middleware=[short], checkpointer=saver)


@given(turns=st.lists(st.tuples(st.sampled_from(["yes", "no", "more"]), st.booleans()), min_size=1, max_size=9))
@settings(max_examples=25, deadline=None)
def test_what_a_summary_removes_is_in_the_log_once(turns: list[tuple[str, bool]]) -> None:
    theirs = shortening(InMemorySaver())
    with holdfast.open("ram:", embedder="none") as store:
        agent = shortening(HoldfastSaver(store))
        for text, restart in turns:
            agent = shortening(HoldfastSaver(store)) if restart else agent
            ask(agent, text)
            ask(theirs, text)
        state, expected = (each.get_state(AT).values["messages"] for each in (agent, theirs))
        assert [message.text for message in state] == [message.text for message in expected]
        talk = [text for text in said(store) if not text.startswith(SUMMARY)]
        assert talk == [text for turn, _ in turns for text in (turn, "Noted.")]
        assert len({entry.content["id"] for entry in store.thread("t").log()}) == len(said(store))


def test_a_summary_outlives_the_process(tmp_path: Path) -> None:
    for number in range(8):
        with saving(tmp_path / "agent.db") as saver:
            ask(shortening(saver), f"turn {number}")
    with saving(tmp_path / "agent.db") as saver:
        state = shortening(saver).get_state(AT).values["messages"]
        assert len(state) < 6
        assert state[0].text.endswith("much was said")
        assert [text for text in said(saver.store) if text.startswith("turn")] == [f"turn {n}" for n in range(8)]
        assert any("turn 0" in hit.text for hit in saver.store.memory(user="ana").recall("turn 0").hits)


# Middleware with a state of its own


class Counting(AgentMiddleware):
    class state_schema(AgentState):
        calls: int
        seen: set[str]

    def after_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        seen = state.get("seen", set()) | {state["messages"][-2].text}
        return {"calls": state.get("calls", 0) + 1, "seen": seen}


def test_middleware_finds_its_own_fields_after_a_restart(tmp_path: Path) -> None:
    for text in ("a", "b", "a"):
        with saving(tmp_path / "agent.db") as saver:
            model = ScriptedModel(script={"": "ok"})
            values = ask(create_agent(model, [], middleware=[Counting()], checkpointer=saver), text)
    assert (values["calls"], values["seen"]) == (3, {"a", "b"})


# A kill while tools run side by side


def searching(saver: Any, notes: Path, dies: bool) -> Any:
    @task
    def look(place: str) -> str:
        if place == "slow" and dies:
            while lines(notes).count("returned") < 3:  # both others have returned, so what they gave is on disk
                pass
            os.kill(os.getpid(), signal.SIGKILL)
        note(notes, place)
        return f"Found {place}."

    @tool
    def search(place: str) -> str:
        """Search a place."""
        found = str(look(place).result())
        note(notes, "returned")
        return found

    calls = [("search", {"place": place}) for place in ("one", "slow", "two")]
    model = ScriptedModel(script={"": "Done.", "Search.": [("search", {"place": "first"})], "Found first": calls})
    return create_agent(model, [search], checkpointer=saver)


def note(notes: Path, text: str) -> None:
    with notes.open("a") as file:
        file.write(f"{text}\n")


def lines(notes: Path) -> list[str]:
    return notes.read_text().split() if notes.exists() else []


def run_until_killed(path: Path, notes: Path) -> None:
    with saving(path) as saver:
        ask(searching(saver, notes, dies=True), "Search.")


def test_no_finished_call_is_made_again_when_its_neighbour_is_killed(tmp_path: Path) -> None:
    path, notes = tmp_path / "agent.db", tmp_path / "notes"
    process = multiprocessing.get_context("spawn").Process(target=run_until_killed, args=(path, notes))
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    with saving(path) as saver:
        state = searching(saver, notes, dies=False).invoke(None, AT, durability="sync")["messages"]
        assert [message.text for message in state[-4:]] == ["Found one.", "Found slow.", "Found two.", "Done."]
        assert Counter(said(saver.store)) == Counter(message.text for message in state)
    done = Counter(line for line in lines(notes) if line != "returned")
    assert done == {"first": 1, "one": 1, "two": 1, "slow": 1}


# Growth


def sizes(path: Path, build: Callable[[Any], Any], turns: tuple[int, ...]) -> list[int]:
    """Bytes of the closed file after so many turns; each turn says about 2 kB."""
    found, done = [], 0
    for count in turns:
        with saving(path) as saver:
            agent = build(saver)
            while done < count:
                done += 1
                ask(agent, f"Question {done}: {'word ' * 100}")
        found.append(path.stat().st_size)
    return found


def tooled(saver: Any, middleware: Any = ()) -> Any:
    @tool
    def look(at: str) -> str:
        """Look at something."""
        return f"Seen: {'thing ' * 100}"

    model = ScriptedModel(script={"": "ok " * 150, "Question": [("look", {"at": "it " * 100})]})
    return create_agent(model, [look], middleware=middleware, checkpointer=saver)


def tooled_and_short(saver: Any) -> Any:
    short = SummarizationMiddleware(ScriptedModel(script={"": "short"}), trigger=("messages", 12), keep=("messages", 6))
    return tooled(saver, [short])


@pytest.mark.parametrize("build", [tooled, tooled_and_short])
def test_a_long_conversation_takes_what_its_messages_take(
    tmp_path: Path, build: Callable[[Any], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    empty, half, whole = sizes(tmp_path / "agent.db", build, (0, 20, 40))
    with saving(tmp_path / "agent.db") as saver:
        raw = sum(len(text) for text in said(saver.store))
    with capsys.disabled():
        print(f"\n   40 turns, {build.__name__}: {whole - empty:,} bytes, {(whole - empty) / raw:.1f} times the text")
    assert (whole - half) / (half - empty) < 1.3, "the second half takes what the first took"
