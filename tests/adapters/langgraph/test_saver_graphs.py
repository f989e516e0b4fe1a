"""Real graphs on ``HoldfastSaver``: what they return and what their history shows is as on the bundled saver."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.func import task as langgraph_task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, Overwrite, Send, StateSnapshot, StateUpdate, interrupt

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver, task
from holdfast.errors import HoldfastError

DURABILITIES = ("sync", "async", "exit")


def at(thread: str = "t", **more: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread, **more}}


def shown(state: Any) -> Any:
    """A state without what differs between any two runs: ids and times."""
    tasks = [
        (task.name, task.error and repr(task.error), [each.value for each in task.interrupts], task.result,
         shown(task.state) if isinstance(task.state, StateSnapshot) else None)
        for task in state.tasks
    ]  # fmt: skip
    metadata = {name: value for name, value in (state.metadata or {}).items() if name not in ("parents", "run_id")}
    return state.values, state.next, metadata, sorted(tasks, key=repr)


def history(graph: Any, config: Any = None) -> list[Any]:
    return [shown(state) for state in graph.get_state_history(config or at())]


class Sides:
    """A graph on our saver and on the bundled one, side by side."""

    def __init__(self, store: holdfast.Store, build: Callable[[Any], Any]) -> None:
        self.store, self.build = store, build
        self.ours, self.theirs = build(HoldfastSaver(store)), build(InMemorySaver())

    def same(self, act: Callable[[Any], Any]) -> Any:
        """Do the same on both; what comes back and all that is kept must be equal. What is kept is read anew."""
        told = []
        for graph in (self.ours, self.theirs):
            try:
                told.append(without_interrupts(act(graph)))
            except HoldfastError:
                raise
            except Exception as error:
                told.append(repr(error))
        assert told[0] == told[1]
        fresh = self.build(HoldfastSaver(self.store))
        assert history(fresh) == history(self.theirs)
        ours, theirs = (shown(graph.get_state(at(), subgraphs=True)) for graph in (fresh, self.theirs))
        assert ours == theirs
        return told[0]


class State(TypedDict, total=False):
    xs: Annotated[list[Any], operator.add]
    messages: Annotated[list[Any], add_messages]
    n: int
    box: dict[str, Any]


class Counted(TypedDict):
    xs: Annotated[list[Any], operator.add]


def said(state: State, text: str) -> AIMessage:
    number = len(state.get("messages", []))
    return AIMessage(f"{text} {number}", id=f"{text}-{number}", response_metadata={"number": number})


# Graphs made of stages: each stage is a few nodes, and leads to the next.


def plain(name: str, graph: Any, saver: Any) -> tuple[list[str], str]:
    graph.add_node(name, lambda state: {"xs": [name], "n": state.get("n", 0) + 1, "box": {"by": name, name: [1, {2}]}})
    return [name], name


def talk(name: str, graph: Any, saver: Any) -> tuple[list[str], str]:
    graph.add_node(name, lambda state: {"messages": [said(state, name)], "box": {"last": said(state, name)}})
    return [name], name


def edit(name: str, graph: Any, saver: Any) -> tuple[list[str], str]:
    def edited(state: State) -> State:
        first, *rest = state["messages"]
        gone = [RemoveMessage(rest[0].id)] if rest else []
        return {"messages": [HumanMessage(f"{first.content}!", id=first.id), *gone]}

    graph.add_node(name, edited)
    return [name], name


def parallel(name: str, graph: Any, saver: Any) -> tuple[list[str], str]:
    for side in ("left", "right"):
        graph.add_node(f"{name} {side}", lambda state, side=side: {"xs": [f"{name} {side}"]})
    graph.add_node(f"{name} end", lambda state: {"xs": [f"{name} end"]})
    graph.add_edge([f"{name} left", f"{name} right"], f"{name} end")
    return [f"{name} left", f"{name} right"], f"{name} end"


def fan(name: str, graph: Any, saver: Any) -> tuple[list[str], str]:
    graph.add_node(name, lambda state: {"xs": [name]})
    graph.add_node(f"{name} each", lambda given: {"xs": [f"{name} {given['k']}"]})
    graph.add_node(f"{name} end", lambda state: {"xs": [f"{name} end"]})
    many = lambda state: [Send(f"{name} each", {"k": k}) for k in range(1 + state.get("n", 0) % 3)]  # noqa: E731
    graph.add_conditional_edges(name, many, [f"{name} each"])
    graph.add_edge(f"{name} each", f"{name} end")
    return [name], f"{name} end"


def ask(name: str, graph: Any, saver: Any) -> tuple[list[str], str]:
    graph.add_node(name, lambda state: {"xs": [[name, interrupt({"of": name, "n": state.get("n")})]]})
    return [name], name


def fail(name: str, graph: Any, saver: Any) -> tuple[list[str], str]:
    def failing(state: State) -> State:
        if state.get("n", 0) % 2:
            raise RuntimeError(f"{name} at {state.get('n')}")
        return {"xs": [name]}

    graph.add_node(name, failing)
    return [name], name


def inner(name: str, checkpointer: Any) -> Any:
    graph: Any = StateGraph(State)
    graph.add_node("in one", lambda state: {"xs": [f"{name} one {len(state.get('xs', []))}"]})
    graph.add_node("in two", lambda state: {"messages": [said(state, name)]})
    return graph.add_edge(START, "in one").add_edge("in one", "in two").compile(checkpointer=checkpointer)


def nested(name: str, graph: Any, saver: Any) -> tuple[list[str], str]:
    graph.add_node(name, inner(name, None))
    return [name], name


def lasting(name: str, graph: Any, saver: Any) -> tuple[list[str], str]:
    graph.add_node(name, inner(name, True))
    return [name], name


def forgetful(name: str, graph: Any, saver: Any) -> tuple[list[str], str]:
    graph.add_node(name, inner(name, False))
    return [name], name


STAGES = (plain, talk, edit, parallel, fan, ask, fail, nested, lasting, forgetful)


def made_of(stages: list[Any]) -> Callable[[Any], Any]:
    def build(saver: Any) -> Any:
        graph: Any = StateGraph(State)
        ends = [START]
        for number, stage in enumerate(stages):
            begins, end = stage(f"{stage.__name__}{number}", graph, saver)
            for begin in begins:
                for before in ends:
                    graph.add_edge(before, begin)
            ends = [end]
        graph.add_edge(ends[0], END)
        return graph.compile(checkpointer=saver)

    return build


def turn(number: int, durability: str) -> Callable[[Any], Any]:
    given = {"xs": [number], "n": number, "messages": [HumanMessage(f"turn {number}", id=f"h{number}")]}
    return lambda graph: graph.invoke(given, at(), durability=durability)


def resume(number: int, durability: str) -> Callable[[Any], Any]:
    return lambda graph: graph.invoke(Command(resume=number), at(), durability=durability)


def go_on(number: int, durability: str) -> Callable[[Any], Any]:
    return lambda graph: graph.invoke(None, at(), durability=durability)


def update(number: int, durability: str) -> Callable[[Any], Any]:
    def act(graph: Any) -> Any:
        node = next(name for name in graph.nodes if not name.startswith("__"))
        graph.update_state(at(), {"xs": [["by hand", number]], "n": number}, as_node=node)

    return act


def fork(number: int, durability: str) -> Callable[[Any], Any]:
    def act(graph: Any) -> Any:
        past = list(graph.get_state_history(at()))
        return graph.invoke(None, past[number % len(past)].config, durability=durability) if past else None

    return act


def branch(number: int, durability: str) -> Callable[[Any], Any]:
    def act(graph: Any) -> Any:
        past = list(graph.get_state_history(at()))
        if not past:
            return None
        given = {"xs": [["branch", number]], "messages": [HumanMessage("branch", id=f"b{number}")]}
        return graph.invoke(given, past[number % len(past)].config, durability=durability)

    return act


ACTS = (turn, turn, resume, go_on, update, fork, branch)


@given(
    stages=st.lists(st.sampled_from(STAGES), min_size=1, max_size=4),
    acts=st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 7), st.sampled_from(DURABILITIES)), max_size=5),
)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_graph_keeps_the_history_that_the_bundled_saver_keeps(stages: list[Any], acts: list[Any]) -> None:
    with holdfast.open("ram:", embedder="none") as store:
        sides = Sides(store, made_of(stages))
        for act, number, durability in [(turn, 1, "async"), *acts]:
            sides.same(act(number, durability))
        assert store.verify().problems == ()


@pytest.mark.every_engine
@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.__name__)
def test_each_kind_of_graph_on_each_engine(kept: holdfast.Store, stage: Any) -> None:
    sides = Sides(kept, made_of([talk, stage, plain]))
    sides.same(turn(2, "sync"))
    sides.same(turn(4, "async"))
    sides.same(resume(5, "sync"))
    sides.same(turn(3, "exit"))
    sides.same(update(6, "sync"))
    sides.same(branch(3, "async"))
    sides.same(turn(8, "exit"))


@pytest.mark.parametrize("durability", DURABILITIES)
def test_graphs_that_are_awaited(kept: holdfast.Store, durability: str) -> None:
    async def talks(saver: Any) -> Any:
        graph = made_of([talk, parallel, fan, lasting, ask])(saver)
        told = []
        for number in range(3):
            given = {"xs": [number], "n": number, "messages": [HumanMessage("h", id=f"h{number}")]}
            told.append(await graph.ainvoke(given, at(), durability=durability))
            told.append(await graph.ainvoke(Command(resume="yes"), at(), durability=durability))
        past = [state async for state in graph.aget_state_history(at())]
        told.append(await graph.ainvoke({"xs": ["branch"]}, past[3].config, durability=durability))
        await graph.aupdate_state(at(), {"xs": ["by hand"]}, as_node=next(n for n in graph.nodes if n != START))
        told.append([shown(state) async for state in graph.aget_state_history(at())])
        told.append(shown(await graph.aget_state(at(), subgraphs=True)))
        return told

    ours, theirs = asyncio.run(talks(HoldfastSaver(kept))), asyncio.run(talks(InMemorySaver()))
    for mine, other in zip(ours, theirs, strict=True):
        assert without_interrupts(mine) == without_interrupts(other)


def without_interrupts(told: Any) -> Any:
    """What a run returned but its interrupts, whose ids are made of the run's own."""
    return {name: value for name, value in told.items() if name != "__interrupt__"} if isinstance(told, dict) else told


def test_an_agent_with_tools(kept: holdfast.Store) -> None:
    @tool
    def weather(city: str) -> str:
        """The weather of a city."""
        return f"sun in {city}"

    def build(saver: Any) -> Any:
        call = {"name": "weather", "args": {"city": "Lima"}, "id": "c1", "type": "tool_call"}
        replies = iter([
            AIMessage("", id="a1", tool_calls=[call]), AIMessage("sunny", id="a2"), AIMessage("bye", id="a3")
        ])  # fmt: skip
        model = GenericFakeChatModel(messages=replies)
        graph: Any = StateGraph(MessagesState)
        graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
        graph.add_node("tools", ToolNode([weather]))
        graph.add_edge(START, "model").add_conditional_edges("model", tools_condition).add_edge("tools", "model")
        return graph.compile(checkpointer=saver)

    saver = HoldfastSaver(kept)
    graph = build(saver)
    graph.invoke({"messages": [HumanMessage("weather?", id="h1")]}, at())
    graph.invoke({"messages": [HumanMessage("thanks", id="h2")]}, at())
    kept_messages = build(HoldfastSaver(kept)).get_state(at()).values["messages"]
    assert [message.content for message in kept_messages] == ["weather?", "", "sun in Lima", "sunny", "thanks", "bye"]
    assert isinstance(kept_messages[2], ToolMessage)
    assert kept_messages[1].tool_calls[0]["args"] == {"city": "Lima"}
    roles = [(entry.content["role"], entry.content["content"]) for entry in kept.thread("t").log()]
    assert roles == [
        ("user", "weather?"), ("assistant", ""), ("tool", "sun in Lima"), ("assistant", "sunny"), ("user", "thanks"),
        ("assistant", "bye"),
    ]  # fmt: skip


def test_several_interrupts_are_answered_by_their_ids(kept: holdfast.Store) -> None:
    def build(saver: Any) -> Any:
        graph: Any = StateGraph(State)
        for name in ("a", "b"):
            graph.add_node(name, lambda state, name=name: {"xs": [(name, interrupt(f"{name}?"))]})
            graph.add_edge(START, name)
        return graph.compile(checkpointer=saver)

    build(HoldfastSaver(kept)).invoke({"xs": []}, at())
    graph = build(HoldfastSaver(kept))
    waiting = {each.value: each.id for each in graph.get_state(at()).interrupts}
    assert sorted(waiting) == ["a?", "b?"]
    answered = graph.invoke(Command(resume={waiting["b?"]: "B"}), at())
    assert [each.value for each in answered["__interrupt__"]] == ["a?"]
    done = build(HoldfastSaver(kept)).invoke(Command(resume={waiting["a?"]: "A"}), at())
    assert done["xs"] == [("a", "A"), ("b", "B")]


def test_an_interrupt_inside_a_subgraph(kept: holdfast.Store) -> None:
    def build(saver: Any) -> Any:
        sub: Any = StateGraph(State)
        sub.add_node("ask", lambda state: {"xs": [interrupt("really?")]})
        sub.add_edge(START, "ask")
        graph: Any = StateGraph(State)
        graph.add_node("sub", sub.compile())
        return graph.add_edge(START, "sub").compile(checkpointer=saver)

    sides = Sides(kept, build)
    sides.same(lambda graph: graph.invoke({"xs": [1]}, at())["xs"])
    sides.same(lambda graph: graph.invoke(Command(resume="yes"), at()))


def test_parallel_subgraphs_that_keep_their_own_memory(kept: holdfast.Store) -> None:
    def build(saver: Any) -> Any:
        graph: Any = StateGraph(Counted)
        for name in ("a", "b", "c"):
            sub: Any = StateGraph(Counted)
            sub.add_node("count", lambda state, name=name: {"xs": [f"{name} {len(state['xs'])}"]})
            graph.add_node(name, sub.add_edge(START, "count").compile(checkpointer=True))
            graph.add_edge(START, name)
        return graph.compile(checkpointer=saver)

    sides = Sides(kept, build)
    for number in range(3):
        sides.same(lambda graph, number=number: graph.invoke({"xs": [number]}, at()))


def test_commands_overwrites_and_bulk_updates(kept: holdfast.Store) -> None:
    def build(saver: Any) -> Any:
        graph: Any = StateGraph(State)
        graph.add_node("a", lambda state: Command(update={"xs": ["a"]}, goto="c"), destinations=("c",))
        graph.add_node("c", lambda state: {"xs": Overwrite([*state["xs"][-2:], "only"])})
        return graph.add_edge(START, "a").compile(checkpointer=saver)

    sides = Sides(kept, build)
    sides.same(turn(1, "sync"))
    updates = [[StateUpdate({"xs": [1]}, "a")], [StateUpdate({"xs": [2]}, "c"), StateUpdate({"xs": [3]}, "a")]]
    sides.same(lambda graph: graph.bulk_update_state(at(), updates) and None)
    sides.same(turn(2, "async"))


def test_static_breakpoints_and_streams(kept: holdfast.Store) -> None:
    def build(saver: Any) -> Any:
        return made_of([plain, talk, plain])(saver)

    sides = Sides(kept, build)

    def stopped(graph: Any) -> Any:
        return graph.invoke({"xs": [0], "messages": []}, at(), interrupt_before=["talk1"])

    sides.same(stopped)
    sides.same(lambda graph: list(graph.stream(None, at(), stream_mode="updates")))
    sides.same(lambda graph: [mode for mode, _ in graph.stream({"xs": [1]}, at(), stream_mode=["values", "updates"])])


def test_looking_at_the_state_while_a_fork_streams(kept: holdfast.Store) -> None:
    graph = made_of([plain, plain, plain])(HoldfastSaver(kept))
    graph.invoke({"xs": ["first"]}, at())
    graph.invoke({"xs": ["second"]}, at())
    old = [state for state in graph.get_state_history(at()) if not state.next][1]
    for _ in graph.stream({"xs": ["fork"]}, old.config):
        graph.get_state(at())
    assert graph.get_state(at()).values["xs"] == ["first", "plain0", "plain1", "plain2", "fork", "plain0", "plain1",
                                                  "plain2"]  # fmt: skip


# The functional interface


@pytest.mark.parametrize("declared", [task, langgraph_task], ids=["ours", "bundled"])
def test_an_entrypoint_with_tasks_and_memory(kept: holdfast.Store, declared: Any) -> None:
    ran: list[int] = []

    @declared
    def square(number: int) -> int:
        ran.append(number)
        return number * number

    def build(saver: Any) -> Any:
        @entrypoint(checkpointer=saver)
        def work(numbers: list[int], *, previous: Any = None) -> Any:
            made = [future.result() for future in [square(number) for number in numbers]]
            agreed = interrupt({"made": made})
            return entrypoint.final(value=[made, agreed, previous], save=sum(made))

        return work

    build(HoldfastSaver(kept)).invoke([1, 2, 3], at())
    assert sorted(ran) == [1, 2, 3]
    assert build(HoldfastSaver(kept)).invoke(Command(resume="yes"), at()) == [[1, 4, 9], "yes", None]
    assert sorted(ran) == [1, 2, 3], "a task that is done is not done again"
    build(HoldfastSaver(kept)).invoke([4], at())
    assert build(HoldfastSaver(kept)).invoke(Command(resume="on"), at()) == [[16], "on", 14]


def test_an_entrypoint_that_is_awaited(kept: holdfast.Store) -> None:
    ran: list[str] = []

    @task
    async def greet(name: str) -> str:
        ran.append(name)
        return f"hello {name}"

    async def talk_twice() -> Any:
        @entrypoint(checkpointer=HoldfastSaver(kept))
        async def work(names: list[str]) -> Any:
            made = await asyncio.gather(*(greet(name) for name in names))
            return [*made, interrupt("?")]

        await work.ainvoke(["a", "b"], at())
        return await work.ainvoke(Command(resume="!"), at())

    assert asyncio.run(talk_twice()) == ["hello a", "hello b", "!"]
    assert sorted(ran) == ["a", "b"]


def test_a_task_takes_options_and_works_without_a_saver() -> None:
    @task(name="other name")
    def double(number: int) -> int:
        return 2 * number

    @entrypoint()
    def work(number: int) -> int:
        found: int = double(number).result()
        return found

    assert work.invoke(4) == 8


def test_what_a_graph_draws_does_not_depend_on_the_saver(store: holdfast.Store) -> None:
    ours, theirs = (made_of([plain, fan, nested])(saver) for saver in (HoldfastSaver(store), InMemorySaver()))
    assert ours.get_graph(xray=True).draw_mermaid() == theirs.get_graph(xray=True).draw_mermaid()
    assert ours.get_graph().to_json() == theirs.get_graph().to_json()
