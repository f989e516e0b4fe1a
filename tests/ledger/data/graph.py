"""Writes ``graph.json`` and ``graph_said.json``: graphs as LangGraph saved them here, and what it then said of them.

``python tests/ledger/data/graph.py`` makes both anew, where LangGraph and Holdfast are installed. The archive holds two
threads. In "trip" a graph has messages, a list and a dict that grow, a large value, values that are not plain data, a
graph inside it, and two ways that it went on from one point. In "visa" a graph sent work to two tasks, one of which
waits for a person. The tests read the archive without LangGraph and compare.
"""

from __future__ import annotations

import json
import operator
from dataclasses import asdict, dataclass, is_dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Interrupt, Send, interrupt

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver

HERE = Path(__file__).parent
_LONG = 60
_ROLES = {"human": "user", "ai": "assistant"}


@dataclass
class Seat:
    row: int
    letter: str


class Choice(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    seat: Seat
    when: datetime
    fee: Decimal
    stops: set[str]
    days: dict[int, str]


class Trip(Choice, total=False):
    notes: Annotated[list[str], operator.add]
    prices: Annotated[dict[str, int], operator.or_]
    page: str
    scores: list[int]


def plan(state: Trip) -> Trip:
    turn = len(state["messages"]) // 2
    note = f"note {turn}: {'the river, the hill and the tram; ' * 6}"
    prices = {f"{turn}-{number}": 80 + number for number in range(8)}
    return {
        "notes": [note],
        "prices": prices,
        "page": f"page {turn}. " + "<p>nothing new</p>" * 150,
        "scores": [*range(700)],
    }


def choose(state: Choice) -> Choice:
    return {
        "seat": Seat(7, "A"), "when": datetime(2026, 5, 1, 9, 30, tzinfo=UTC), "fee": Decimal("12.50"),
        "stops": {"Lisbon"}, "days": {1: "walk", 2: "rest"},
    }  # fmt: skip


def answer(state: Trip) -> Trip:
    said = AIMessage("Noted: " + state["messages"][-1].content, id=f"answer-{len(state['messages'])}")
    return {"messages": [said]}


class Visa(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    checked: Annotated[list[str], operator.add]


def ask(state: Visa) -> Visa:
    return {"messages": [AIMessage("I will look.", id="looking")]}


def fan(state: Visa) -> list[Send]:
    return [Send("check", {"land": land}) for land in ("Portugal", "Brazil")]


def check(state: Any) -> Visa:
    if state["land"] == "Brazil":
        interrupt({"question": "Is the passport valid until June?", "on": date(2026, 6, 1)})
    return {"checked": [state["land"]]}


def trip(saver: HoldfastSaver) -> Any:
    inner = StateGraph(Choice).add_node("choose", choose).add_edge(START, "choose").compile()
    builder = StateGraph(Trip).add_node("plan", plan).add_node("inner", inner).add_node("answer", answer)
    builder.add_edge(START, "plan").add_edge("plan", "inner").add_edge("inner", "answer")
    return builder.compile(checkpointer=saver)


def visa(saver: HoldfastSaver) -> Any:
    builder = StateGraph(Visa).add_node("ask", ask).add_node("check", check)
    return builder.add_edge(START, "ask").add_conditional_edges("ask", fan, ["check"]).compile(checkpointer=saver)


def config(thread: str, **more: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread, "user_id": "ana", **more}}


def short(value: Any) -> Any:
    """Plain data in which long texts are told by what they begin with, and their digest."""
    if isinstance(value, dict):
        return {name: short(item) for name, item in value.items()}
    if isinstance(value, list):
        return [short(item) for item in value]
    if isinstance(value, str) and len(value) > _LONG:
        return f"{value[:12]}… {blake2b(value.encode(), digest_size=8).hexdigest()}"
    return value


def plain(value: Any) -> Any:
    """A value in the form in which Holdfast shows it."""
    if isinstance(value, BaseMessage):
        said = {"role": _ROLES[value.type], "content": value.content, "id": value.id}
        return {name: item for name, item in said.items() if item is not None}
    if is_dataclass(value) and not isinstance(value, Interrupt):
        return {type(value).__name__: asdict(value)}  # type: ignore[arg-type]
    if isinstance(value, Interrupt):
        return {"interrupt": {"value": plain(value.value), "id": value.id}}
    if isinstance(value, Send):
        return {"send": [value.node, plain(value.arg), value.timeout]}
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(item) for item in value]
    return value.isoformat() if isinstance(value, date) else str(value) if isinstance(value, Decimal) else value


def told(saver: HoldfastSaver, graph: Any, each: Any) -> dict[str, Any]:
    """What LangGraph says of one checkpoint."""
    named, checkpoint = each.config["configurable"], each.checkpoint
    root = not named["checkpoint_ns"]
    return {
        "thread": named["thread_id"], "namespace": named["checkpoint_ns"], "id": checkpoint["id"],
        "parent": each.parent_config and each.parent_config["configurable"]["checkpoint_id"],
        "step": each.metadata["step"], "source": each.metadata["source"], "time": checkpoint["ts"],
        "next": [*graph.get_state(each.config).next] if root else None,
        "values": short(plain(checkpoint["channel_values"])),
        "versions": {name: checkpoint["channel_versions"][name] for name in checkpoint["channel_values"]},
        "writes": [[task, channel, short(plain(value))] for task, channel, value in each.pending_writes],
    }  # fmt: skip


def main() -> None:
    with holdfast.open("ram:", embedder="none") as store:
        saver = HoldfastSaver(store, types=[Seat])
        graphs = {"trip": trip(saver), "visa": visa(saver)}
        for number, text in enumerate(("I like the window seat.", "And somewhere quiet?")):
            graphs["trip"].invoke({"messages": [HumanMessage(text, id=f"ask-{number}")]}, config("trip"))
        early = next(each for each in graphs["trip"].get_state_history(config("trip")) if each.metadata["step"] == 3)
        graphs["trip"].invoke({"messages": [HumanMessage("Or by the sea?")]}, early.config)
        graphs["visa"].invoke({"messages": [("user", "Do I need a visa?")]}, config("visa"))
        store.export(HERE / "graph.json")
        said = [
            told(saver, graphs[thread], each)
            for thread in graphs
            for each in HoldfastSaver(store, types=[Seat]).list({"configurable": {"thread_id": thread}})
        ]
    lines = ",\n".join(json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in said)
    (HERE / "graph_said.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
