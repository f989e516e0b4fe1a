"""Deep agents: subagents, files, to-do lists and memories are there after a restart, and no work is done again."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, StateBackend, StoreBackend
from deepagents.middleware.summarization import SummarizationMiddleware
from examples.adapters.scripted_model import ScriptedModel
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver
from holdfast.adapters.langgraph.store import HoldfastStore


def at(thread: str = "t") -> Any:
    return {"configurable": {"thread_id": thread, "user_id": "ana"}}


@contextmanager
def saving(address: str | Path) -> Iterator[HoldfastSaver]:
    """A saver that knows nothing but what is kept, as in a new process."""
    with holdfast.open(address, embedder="none") as store:
        yield HoldfastSaver(store)
        assert store.verify().problems == ()


def given(text: str) -> Any:
    return {"messages": [{"role": "user", "content": text}]}


def said(store: holdfast.Store) -> list[str]:
    return [entry.content["content"] for entry in store.thread("t").log()]


def lines(notes: Path) -> list[str]:
    return notes.read_text().split() if notes.exists() else []


def test_the_example_goes_on_inside_its_subagent(example: Callable[..., str]) -> None:
    first, second, third = (example("deep_agent.py", code=code) for code in (-signal.SIGKILL, 0, 0))
    assert "searching: lines" in first
    assert "searching: hours" not in first
    assert "searching: lines" not in second, "the subagent began again"
    assert second.count("searching: hours") == 1
    for each in (second, third):
        assert "Agent: Take line 28 at nine." in each
        assert "to do  ['Ask about trams']" in each
        assert "files  ['/lines.md', '/memories/ana.md']" in each
        assert each.count("log    ") == 8
    assert "searching" not in third


# Subagents


def delegating(saver: Any, notes: Path, *, ask: bool = False, wait: Callable[[], None] | None = None) -> Any:
    """An agent that sends two researchers out at once. Each searches twice; ``wait`` comes before slow's second."""

    @tool
    def search(query: str) -> str:
        """Search for something."""
        if query == "slow2" and wait is not None:
            wait()
        with notes.open("a") as file:
            file.write(f"{query}\n")
        return f"Found {query}."

    def both(name: str) -> dict[str, Any]:
        return {
            f"Research {name}": [("search", {"query": f"{name}1"})],
            f"Found {name}1": [("search", {"query": f"{name}2"})],
            f"Found {name}2": f"All about {name}.",
        }

    researcher: Any = {
        "name": "researcher", "description": "Finds things out.", "system_prompt": "Search.", "tools": [search],
        "model": ScriptedModel(script={"": "Stopped.", **both("quick"), **both("slow")}),
        "interrupt_on": {"search": {
            "allowed_decisions": ["approve", "reject"],
            "when": lambda request: ask and request.tool_call["args"]["query"] == "slow2",
        }},
    }  # fmt: skip
    calls = [("task", {"subagent_type": "researcher", "description": f"Research {name}"}) for name in ("quick", "slow")]
    model = ScriptedModel(script={"": "Report.", "Go.": calls})
    return create_deep_agent(model, subagents=[researcher], checkpointer=saver)


def spaces(saver: HoldfastSaver) -> set[str]:
    """The namespaces that checkpoints of the thread are in."""
    return {each.config["configurable"]["checkpoint_ns"] for each in saver.list({"configurable": {"thread_id": "t"}})}


@pytest.mark.every_engine
@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_a_subagent_waits_for_a_person_over_a_restart(address: str, tmp_path: Path, decision: str) -> None:
    notes = tmp_path / "notes"
    with saving(address) as saver:
        delegating(saver, notes, ask=True).invoke(given("Go."), at(), durability="sync")
        kept = spaces(saver)
    assert sorted(lines(notes)) == ["quick1", "quick2", "slow1"]
    assert len(kept) == 3
    assert all(space.startswith("tools:") for space in kept - {""}), "each subagent has checkpoints of its own"
    with saving(address) as saver:
        agent = delegating(saver, notes, ask=True)
        [question] = agent.get_state(at()).interrupts
        assert question.value["action_requests"][0]["args"] == {"query": "slow2"}
        done = agent.invoke(Command(resume={"decisions": [{"type": decision}]}), at(), durability="sync")
        assert spaces(saver) == kept
    assert [message.text for message in done["messages"]][-3:] == [
        "All about quick.", "All about slow." if decision == "approve" else "Stopped.", "Report."
    ]  # fmt: skip
    assert sorted(lines(notes)) == ["quick1", "quick2", "slow1", *(["slow2"] if decision == "approve" else [])]


def run_until_killed(path: Path, notes: Path) -> None:
    def wait() -> None:
        """Until somebody else can see what the quick one said, then die."""
        with holdfast.open(path, embedder="none") as other:
            reader = HoldfastSaver(other)
            while "All about quick." not in str(getattr(reader.get_tuple(at()), "pending_writes", "")):
                pass
        os.kill(os.getpid(), signal.SIGKILL)

    with saving(path) as saver:
        delegating(saver, notes, wait=wait).invoke(given("Go."), at(), durability="sync")


def test_no_subagent_does_its_work_again_after_a_kill(tmp_path: Path) -> None:
    path, notes = tmp_path / "agent.db", tmp_path / "notes"
    process = multiprocessing.get_context("spawn").Process(target=run_until_killed, args=(path, notes))
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    assert sorted(lines(notes)) == ["quick1", "quick2", "slow1"]
    with saving(path) as saver:
        done = delegating(saver, notes).invoke(None, at(), durability="sync")
        texts = [message.text for message in done["messages"]]
        assert texts[-3:] == ["All about quick.", "All about slow.", "Report."]
        assert Counter(said(saver.store)) == Counter(texts), "said once each; a subagent's own talk is not the user's"
    assert sorted(lines(notes)) == ["quick1", "quick2", "slow1", "slow2"]


def test_subagents_that_are_awaited(tmp_path: Path) -> None:
    async def run() -> Any:
        with saving(tmp_path / "agent.db") as saver:
            return await delegating(saver, tmp_path / "notes").ainvoke(given("Go."), at(), durability="sync")

    assert asyncio.run(run())["messages"][-1].text == "Report."
    with saving(tmp_path / "agent.db") as saver:
        assert len(delegating(saver, tmp_path / "notes").get_state(at()).values["messages"]) == 5


# Files and to-do lists


TODOS = [[{"content": "write", "status": status}] for status in ("in_progress", "completed")]
FILES: Any = {
    "": "Done.",
    "one": [("write_file", {"file_path": "/a.md", "content": "first"}), ("write_todos", {"todos": TODOS[0]})],
    "two": [("edit_file", {"file_path": "/a.md", "old_string": "first", "new_string": "second"})],
    "three": [("write_file", {"file_path": f"/{name}.md", "content": name * 3_000}) for name in ("b", "c")],
    "four": [("write_todos", {"todos": TODOS[1]}), ("read_file", {"file_path": "/a.md"})],
}


def writing(saver: Any) -> Any:
    return create_deep_agent(ScriptedModel(script=FILES), middleware=[TodoListMiddleware()], checkpointer=saver)


@pytest.mark.every_engine
def test_files_and_todos_are_those_of_the_bundled_saver(address: str) -> None:
    theirs = writing(InMemorySaver())
    for turn in ("one", "two", "three", "four"):
        theirs.invoke(given(turn), at())
        with saving(address) as saver:
            writing(saver).invoke(given(turn), at(), durability="sync")
        with saving(address) as saver:
            ours, expected = writing(saver).get_state(at()).values, theirs.get_state(at()).values
        assert {name: file["content"] for name, file in ours["files"].items()} == {
            name: file["content"] for name, file in expected["files"].items()
        }
        assert ours["todos"] == expected["todos"]
        assert [message.text for message in ours["messages"]] == [message.text for message in expected["messages"]]
    assert ours["files"]["/a.md"]["content"] == "second"
    with saving(address) as saver:
        assert sorted(said(saver.store)) == sorted(message.text for message in ours["messages"])


def remembering(saver: HoldfastSaver) -> Any:
    memories = StoreBackend(namespace=lambda runtime: ("ana", "files"))
    model = ScriptedModel(script={
        "": "Done.",
        "learn": [("write_file", {"file_path": "/memories/diet.md", "content": "No meat."})],
        "know": [("read_file", {"file_path": "/memories/diet.md"})],
    })  # fmt: skip
    backend = CompositeBackend(StateBackend(), {"/memories/": memories})
    return create_deep_agent(model, backend=backend, checkpointer=saver, store=HoldfastStore(saver.store))


@pytest.mark.every_engine
def test_memories_are_there_in_another_conversation(address: str) -> None:
    with saving(address) as saver:
        learned = remembering(saver).invoke(given("learn"), at("one"), durability="sync")
        assert not learned.get("files")
    with saving(address) as saver:
        read = remembering(saver).invoke(given("know"), at("two"), durability="sync")["messages"][-2]
        assert "No meat." in read.text


# Long conversations


def shortening(saver: Any) -> Any:
    backend = StateBackend()
    short = SummarizationMiddleware(
        ScriptedModel(script={"": "much was said"}), backend=backend, trigger=("messages", 6), keep=("messages", 2)
    )
    model = ScriptedModel(script={"": "Noted. " + "word " * 100})
    return create_deep_agent(model, backend=backend, middleware=[short], checkpointer=saver)


def test_a_summary_and_the_file_of_what_it_replaced_outlive_the_process(tmp_path: Path) -> None:
    for number in range(6):
        with saving(tmp_path / "agent.db") as saver:
            shortening(saver).invoke(given(f"turn {number}"), at(), durability="sync")
    with saving(tmp_path / "agent.db") as saver:
        values = shortening(saver).get_state(at()).values
        assert "much was said" in values["_summarization_event"]["summary_message"].text
        assert any("turn 0" in file["content"] for file in values["files"].values())
        assert [text for text in said(saver.store) if text.startswith("turn")] == [f"turn {n}" for n in range(6)]


def plain(saver: Any) -> Any:
    return create_deep_agent(ScriptedModel(script={"": "Noted. " + "word " * 200}), checkpointer=saver)


def test_a_long_conversation_takes_what_its_messages_take(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, sizes, done = tmp_path / "agent.db", [], 0
    for count in (0, 40, 80):  # beyond the 50 updates after which a delta channel writes out everything
        with saving(path) as saver:
            agent = plain(saver)
            while done < count:
                done += 1
                agent.invoke(given(f"turn {done} {'word ' * 200}"), at(), durability="sync")
            raw = sum(len(text) for text in said(saver.store))
        sizes.append(path.stat().st_size)
    empty, half, whole = sizes
    with capsys.disabled():
        print(f"\n   80 turns of a deep agent: {whole - empty:,} bytes, {(whole - empty) / raw:.1f} times the text")
    assert (whole - half) / (half - empty) < 1.3, "the second half takes what the first took"
