"""Values of a graph's state: they come back exactly, type and all, or are refused with the path to what is wrong."""

from __future__ import annotations

import dataclasses
import enum
import math
import operator
import struct
from collections import Counter, OrderedDict, defaultdict, deque
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Annotated, Any, NamedTuple, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Interrupt, Overwrite, Send

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver
from holdfast.adapters.langgraph import known as known_messages
from holdfast.errors import Invalid, Unsupported
from holdfast.wiring import Wiring


def at(thread: str = "t", **more: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": "", **more}}


def checkpoint(values: dict[str, Any], **more: Any) -> Checkpoint:
    made: Any = {**empty_checkpoint(), "id": str(uuid6()), "channel_values": values}
    return made | {"channel_versions": dict.fromkeys(values, 1), **more}


def put(saver: HoldfastSaver, values: dict[str, Any], config: Any = None, **more: Any) -> Any:
    made = checkpoint(values, **more)
    told: Any = {"source": "loop", "step": 1, "parents": {}}
    return saver.put(config or at(), made, told, made["channel_versions"])


def again(store: holdfast.Store, value: Any, **settings: Any) -> Any:
    """A value, as a saver that knows nothing reads what another one saved: as a channel and as a write."""
    config = put(HoldfastSaver(store, **settings), {"x": value})
    HoldfastSaver(store, **settings).put_writes(config, [("x", value)], "task", "path")
    found = HoldfastSaver(store, **settings).get_tuple(config)
    assert found is not None
    assert found.pending_writes is not None
    assert alike(found.pending_writes[0][2], value), "as a write"
    return found.checkpoint["channel_values"]["x"]


def alike(one: Any, other: Any) -> bool:
    """Equal, with equal types all the way down, and NaN like NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return struct.pack("d", one) == struct.pack("d", other) or (math.isnan(one) and math.isnan(other))
    if isinstance(one, dict):
        same = len(one) == len(other) and all(alike(*pair) for pair in zip(one.items(), other.items(), strict=True))
        return same and getattr(one, "default_factory", 0) == getattr(other, "default_factory", 0)
    if isinstance(one, list | tuple | deque):
        same = len(one) == len(other) and all(alike(*pair) for pair in zip(one, other, strict=True))
        return same and getattr(one, "maxlen", None) == getattr(other, "maxlen", None)
    if isinstance(one, set | frozenset):
        return one == other and {(type(each), each) for each in one} == {(type(each), each) for each in other}
    if isinstance(one, BaseMessage):
        return one == other and alike(one.__dict__, {name: other.__dict__.get(name) for name in one.__dict__})
    return bool(one == other)


SECRET = timezone(timedelta(hours=5, minutes=30))
VALUES: list[Any] = [
    None, True, False, 0, -1, 2**63 - 1, -(2**63), 2**63, -(2**200), 10**400, 0.0, -0.0, 1e308, 5e-324, math.inf,
    -math.inf, math.nan, "", "é 🦉 \u2028", "\0", "a\0b", '"$"', "$", b"", b"\0\xff", bytearray(b"ab"), [], {}, (),
    (1,), ((), [()]), set(), {1, 2}, {(1, "a")}, frozenset({1}), [[[]]], {"": ""}, {"$": 1}, {"$": "int", "v": "1"},
    {1: "a", "1": "b"}, {None: 1, True: 2, 1.5: 3}, {(1, 2): {frozenset({3}): 4}}, {"a": {"$": {"$": []}}},
    datetime(2024, 2, 29, 1, 2, 3, 4), datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=SECRET),
    datetime.min, datetime.max, date(2024, 2, 29), time(1, 2, 3, 4), time(1, tzinfo=UTC), timedelta(-1, 2, 3),
    timedelta.max, Decimal("1.10"), Decimal("NaN"), Decimal("-Infinity"), Decimal("1E+9999"), UUID(int=5),
    Path("a/b"), PurePosixPath("/a"), PureWindowsPath("c:\\a"), deque([1, 2]), deque([1], maxlen=3), Counter("abca"),
    Counter(), OrderedDict([("b", 1), ("a", 2)]), OrderedDict([((1, 2), [3])]), defaultdict(list, {"a": [1]}),
    defaultdict(int), defaultdict(None, {1: 2}), defaultdict(dict, {(1,): {}}), {"k": [{"a": (1, {2: {3}})}]},
    ["x" * 5_000, "y" * 5_000], "z" * 100_000, {f"key {n}": [n] for n in range(50)}, {n: (n,) for n in range(50)},
    [{"n": n, "text": "t" * 50} for n in range(40)], [None] * 500, [HumanMessage("a", id="1"), "text"],
    {"deep": HumanMessage("a", id="1")}, (AIMessage("b"),), Document(page_content="p", metadata={"a": (1,)}, id="d"),
    Send("node", {"a": (1,)}), Interrupt(value={"q": (1,)}, id="i"), Command(goto="a", update={"x": [1]}, resume=(1,)),
    Command(goto=[Send("n", 1), "b"], graph=Command.PARENT), Overwrite([1, (2,)]),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{type(value).__name__}-{repr(value)[:24]}")
def test_a_value_comes_back_with_its_type(store: holdfast.Store, value: Any) -> None:
    if isinstance(value, Decimal) and value.is_nan():
        assert again_alone(store, value).is_nan()
    else:
        assert alike(again(store, value), value)


def again_alone(store: holdfast.Store, value: Any, **settings: Any) -> Any:
    found = HoldfastSaver(store, **settings).get_tuple(put(HoldfastSaver(store, **settings), {"x": value}))
    assert found is not None
    return found.checkpoint["channel_values"]["x"]


@pytest.mark.every_engine
def test_every_value_on_every_engine_at_once(kept: holdfast.Store) -> None:
    values = {f"x{number}": value for number, value in enumerate(VALUES) if repr(value) != "Decimal('NaN')"}
    config = put(HoldfastSaver(kept), values)
    found = HoldfastSaver(kept).get_tuple(config)
    assert found is not None
    assert alike(found.checkpoint["channel_values"], values)
    assert [one for one in kept.verify().problems if one.tenant == kept.tenant] == []


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SIMPLE = st.none() | st.booleans() | st.integers() | st.floats() | TEXT | st.binary(max_size=8)
KEYS = TEXT | st.integers() | st.booleans() | st.none() | st.tuples(st.integers(), TEXT)
NESTED = st.recursive(
    SIMPLE | st.datetimes() | st.dates() | st.timedeltas() | st.uuids() | st.sets(st.integers() | TEXT, max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4)
    | st.lists(inner, max_size=3).map(tuple) | st.dictionaries(st.sampled_from(["$", "v", "role"]), inner),
    max_leaves=20,
)  # fmt: skip


@given(versions=st.lists(NESTED, min_size=1, max_size=4))
@settings(max_examples=150, deadline=None)
def test_any_nesting_of_values_comes_back(versions: list[Any]) -> None:
    with holdfast.open("ram:", embedder="none") as store:
        configs = [at()]
        for value in versions:
            configs.append(put(HoldfastSaver(store), {"x": value, "y": [value, value]}, configs[-1]))
        reader = HoldfastSaver(store)
        for config, value in zip(configs[1:], versions, strict=True):
            found = reader.get_tuple(config)
            assert found is not None
            assert alike(found.checkpoint["channel_values"], {"x": value, "y": [value, value]})


# What is refused


class Unknown:
    pass


class Colour(enum.StrEnum):
    RED = "red"


CYCLE: list[Any] = [1]
CYCLE.append(CYCLE)
LOOP: dict[str, Any] = {}
LOOP["a"] = {"b": [LOOP]}
DEEP: list[Any] = []
for _ in range(500):
    DEEP = [DEEP]

REFUSED: list[tuple[Any, str]] = [
    ({"a": [1, Unknown()]}, "Unknown"), ({"a": Colour.RED}, "Colour"),
    ({"a": complex(1, 2)}, "complex"), ({"a": range(3)}, "range"), ({"a": memoryview(b"x")}, "memoryview"),
    ({"a": lambda: 1}, "function"), ({"a": Unknown}, "type"), ({"a": CYCLE}, "nested deeper"), (LOOP, "nested deeper"),
    ({"a": DEEP}, "nested deeper"), ({"a": ["\ud800"]}, "surrogate"), ({"\ud800": 1}, "surrogate"),
    ({"a": defaultdict(lambda: 1)}, "defaultdict"), ({"a": (x for x in ())}, "generator"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "word"), REFUSED, ids=[word for _, word in REFUSED])
def test_what_cannot_come_back_is_refused_with_its_path(store: holdfast.Store, value: Any, word: str) -> None:
    saver = HoldfastSaver(store)
    config = put(saver, {"x": 1})
    with pytest.raises(Invalid, match=word) as caught:
        put(saver, {"x": value})
    assert "thread 't'" in str(caught.value)
    assert "'x'" in str(caught.value)
    assert len(str(caught.value)) < 1_000
    with pytest.raises(Invalid, match=word):
        saver.put_writes(config, [("x", value)], "task")
    with pytest.raises(Invalid, match=word):
        saver.put(at(), checkpoint({}), {"source": "loop", "step": 1, "parents": {}, "mine": value}, {})  # type: ignore[typeddict-unknown-key]
    assert len(list(saver.list(at()))) == 1, "nothing of it was saved"


def test_a_graph_that_makes_such_a_value_says_so_and_stays_usable(kept: holdfast.Store) -> None:
    class State(TypedDict):
        xs: Annotated[list[Any], operator.add]

    bad = [True]
    graph: Any = StateGraph(State)
    graph.add_node("a", lambda state: {"xs": [Unknown() if bad else "fine"]})
    compiled = graph.add_edge(START, "a").compile(checkpointer=HoldfastSaver(kept))
    for durability in ("sync", "async", "exit"):
        with pytest.raises(Invalid, match="Unknown"):
            compiled.invoke({"xs": [0]}, at(durability), durability=durability)
        with pytest.raises(Invalid, match="Unknown"):
            compiled.invoke({"xs": [Unknown()]}, at(f"{durability} input"), durability=durability)
        assert compiled.get_state(at(f"{durability} input")).values == {}
    bad.clear()
    assert compiled.invoke(None, at("sync"))["xs"] == [0, "fine"]
    assert compiled.invoke({"xs": [1]}, at("exit"))["xs"] == [1, "fine"]


# Classes of the caller's


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    name: str = pydantic.Field(alias="theName")
    more: tuple[int, ...] = ()
    child: Model | None = None
    _hidden: int = pydantic.PrivateAttr(default=0)

    @pydantic.field_validator("name")
    @classmethod
    def shout(cls, value: str) -> str:
        return f"{value}!"


@dataclasses.dataclass
class Data:
    a: int
    made: int = dataclasses.field(init=False, default=0)
    tags: set[str] = dataclasses.field(default_factory=set)

    def __post_init__(self) -> None:
        self.a += 1
        self.made = self.a * 2


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    a: Any
    b: tuple[int, ...] = ()


@dataclasses.dataclass
class Given:
    a: int
    start: dataclasses.InitVar[int]

    def __post_init__(self, start: int) -> None:
        self.a += start


class Struct(msgspec.Struct, rename="camel"):
    first_name: str
    rest: Any = None

    def __post_init__(self) -> None:
        self.first_name = self.first_name.upper()


class FrozenStruct(msgspec.Struct, frozen=True, kw_only=True, tag="fs"):
    a: Any


class Point(NamedTuple):
    x: int
    y: Any = 0


class Level(enum.IntEnum):
    LOW = 1


class Shape(enum.Enum):
    BOX = (1, "a")


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


def changed(value: Any, **fields: Any) -> Any:
    for name, field in fields.items():
        setattr(value, name, field)
    return value


MINE: list[Any] = [
    Model(theName="a", more=(1, 2), child=Model(theName="b"), extra={"k": (1,)}),
    changed(Model(theName="a"), _hidden=7), changed(Model(theName="a"), more="does not validate"), Data(1),
    changed(Data(1), made=99, tags={"x"}), Frozen((1,)),
    Frozen([Frozen(None)], (1, 2)), Given(1, 5), Struct("ana"), changed(Struct("ana"), first_name="small"),
    Struct("a", Point(1, Level.LOW)), FrozenStruct(a={1: 2}), Point(1), Point(1, (2,)), Level.LOW, Shape.BOX,
    Colour.RED, Rights.READ | Rights.WRITE, [Data(n) for n in range(30)], {"a": (Point(1, Data(2)),)},
]  # fmt: skip
CLASSES = (Model, Data, Frozen, Given, Struct, FrozenStruct, Point, Level, Shape, Colour, Rights)


@pytest.mark.parametrize("value", MINE, ids=lambda value: repr(value)[:40])
def test_a_registered_class_comes_back_as_it_was(store: holdfast.Store, value: Any) -> None:
    found = again(store, value, types=CLASSES)
    assert type(found) is type(value)
    assert found == value
    if isinstance(value, Model):
        assert found._hidden == value._hidden
        assert found.model_fields_set == value.model_fields_set
        assert found.model_extra == value.model_extra


def test_an_attribute_that_is_no_field_is_not_lost_silently(store: holdfast.Store) -> None:
    value: Any = Data(1)
    value.note = "mine"
    try:
        found = again_alone(store, value, types=[Data])
    except Invalid:
        return
    assert found.note == "mine"


def test_an_exception_in_the_state_is_not_made_a_text_silently(store: holdfast.Store) -> None:
    with pytest.raises(Invalid, match="ValueError"):
        put(HoldfastSaver(store), {"x": ValueError("v")})


def test_a_class_that_is_gone_is_named(kept: holdfast.Store) -> None:
    config = put(HoldfastSaver(kept, types=[Frozen]), {"x": [Frozen(1)], "fine": 1})
    with pytest.raises(Unsupported, match=r"Frozen.*types="):
        HoldfastSaver(kept).get_tuple(config)
    with pytest.raises(Unsupported, match="Frozen"):
        list(HoldfastSaver(kept).list(at()))


def test_a_class_that_was_renamed_is_found_by_its_old_name(kept: holdfast.Store) -> None:
    @dataclasses.dataclass
    class Renamed:
        a: Any
        b: tuple[int, ...] = ()

    config = put(HoldfastSaver(kept, types=[Frozen]), {"x": [Frozen((1,), (2,))]})
    saver = HoldfastSaver(kept, types={"Frozen": Renamed})
    found = saver.get_tuple(config)
    assert found is not None
    assert found.checkpoint["channel_values"]["x"] == [Renamed((1,), (2,))]
    assert HoldfastSaver(kept, types=[Frozen]).get_tuple(put(saver, {"x": Renamed(1)}, at("u"))) is not None


def test_a_class_whose_fields_changed_is_refused_or_fills_its_defaults(store: holdfast.Store) -> None:
    @dataclasses.dataclass
    class Less:
        a: Any

    @dataclasses.dataclass
    class More:
        a: Any
        b: tuple[int, ...] = ()
        c: str = "new"

    config = put(HoldfastSaver(store, types=[Frozen]), {"x": Frozen(1, (2,))})
    with pytest.raises(Unsupported, match="'b'"):
        HoldfastSaver(store, types={"Frozen": Less}).get_tuple(config)
    found = HoldfastSaver(store, types={"Frozen": More}).get_tuple(config)
    assert found is not None
    assert found.checkpoint["channel_values"]["x"] == More(1, (2,), "new")


def test_a_declared_schema_is_migrated() -> None:
    old, new = holdfast.Registry(), holdfast.Registry()

    @dataclasses.dataclass
    class Trip:
        city: str

    @dataclasses.dataclass
    class Journey:
        cities: list[str]

    old.schema("trip", version=1)(Trip)
    new.schema("trip", version=2)(Journey)
    new.migration("trip", from_version=1, to_version=2)(lambda fields: {"cities": [fields["city"]]})
    engine = holdfast.open("ram:", embedder="none", schemas=old)
    with engine as store:
        config = put(HoldfastSaver(store), {"x": [Trip("Lima")]})
        later = holdfast.Store(Wiring(type(store.core)(store.core.engine, store.tenant, store.core.clock, new)))
        found = HoldfastSaver(later).get_tuple(config)
        assert found is not None
        assert found.checkpoint["channel_values"]["x"] == [Journey(["Lima"])]
        config = put(HoldfastSaver(later), {"x": Journey(["a"])}, at("u"))
        with pytest.raises(Unsupported, match="version 2"):
            HoldfastSaver(store).get_tuple(config)


@pytest.mark.parametrize("name", ["int", "float", "dict", "entry", "message", "tuple", "send"])
def test_a_name_that_means_something_else_is_refused_or_kept_apart(store: holdfast.Store, name: str) -> None:
    try:
        HoldfastSaver(store, types={name: Frozen})
    except Invalid as error:
        if name not in str(error):
            raise
    else:
        assert again(store, [Frozen(1), (2,), 2**70], types={name: Frozen}) == [Frozen(1), (2,), 2**70]


def test_what_cannot_be_registered(store: holdfast.Store) -> None:
    for wrong in ([Unknown], [1], {"": Frozen}, [dict]):
        with pytest.raises(Invalid):
            HoldfastSaver(store, types=wrong)  # type: ignore[arg-type]


# Messages

CALL = {"name": "f", "args": {"a": [1, None]}, "id": "c", "type": "tool_call"}
BAD: dict[str, Any] = {"name": "f", "args": "{", "id": "1"}
MESSAGES: list[Any] = [
    HumanMessage("a"), HumanMessage("a", id="1", name="ana"), HumanMessage([{"type": "text", "text": "a"}, "b"]),
    HumanMessage("a", additional_kwargs={"$": 1, "t": (1,)}, response_metadata={"x": {1: 2}}),
    HumanMessage("a", mine=(1,)),
    HumanMessage(content="a", **{"class": "y", "role": "z", "langchain": {"k": 1}}), SystemMessage("s"), AIMessage(""),
    AIMessage("a", tool_calls=[CALL], usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
    AIMessage("a", invalid_tool_calls=[{**BAD, "error": "e", "type": "invalid_tool_call"}]),
    AIMessageChunk("c", tool_call_chunks=[{**BAD, "index": 0, "type": "tool_call_chunk"}]),
    HumanMessageChunk("c"), ToolMessage("t", tool_call_id="c"), ToolMessage("t", tool_call_id="c", status="error",
    artifact={"raw": (1, b"x")}), FunctionMessage("f", name="f"), ChatMessage("c", role="critic"),
    RemoveMessage("gone"),
    ToolMessage([{"type": "image", "data": "x"}], tool_call_id="c", artifact=Document(page_content="p")),
    HumanMessage("$"), HumanMessage('"$"'), HumanMessage("a\0b"),
    AIMessage("a", additional_kwargs={"m": HumanMessage("in")}),
]  # fmt: skip


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: repr(message)[:60])
def test_a_message_comes_back_deep_equal(store: holdfast.Store, message: Any) -> None:
    value = [message, HumanMessage("other"), message]
    assert alike(again(store, value), value)
    assert alike(again(store, message), message)


@pytest.mark.every_engine
def test_messages_on_every_engine_in_the_order_they_were(kept: holdfast.Store) -> None:
    spoken = [message for message in MESSAGES if not isinstance(message, RemoveMessage)]
    configs = [put(HoldfastSaver(kept), {"messages": spoken[:n]}, at()) for n in range(1, len(spoken) + 1)]
    reader = HoldfastSaver(kept)
    for number, config in enumerate(configs, 1):
        found = reader.get_tuple(config)
        assert found is not None
        assert alike(found.checkpoint["channel_values"]["messages"], spoken[:number])


def test_more_messages_than_are_remembered(kept: holdfast.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_messages, "_REMEMBERED", 50)
    told = [HumanMessage(f"message {number}", id=str(number)) for number in range(170)]
    config = put(HoldfastSaver(kept), {"messages": told, "other": told[::3]})
    reader = HoldfastSaver(kept)
    for _ in range(2):
        found = reader.get_tuple(config)
        assert found is not None
        assert found.checkpoint["channel_values"] == {"messages": told, "other": told[::3]}
    assert len(kept.thread("t").log()) == 170


def edited_graph(edit: Any, saver: Any) -> Any:
    graph: Any = StateGraph(MessagesState)
    graph.add_node("edit", edit)
    graph.add_node("look", lambda state: {"messages": []})
    return graph.add_edge(START, "edit").add_edge("edit", "look").compile(checkpointer=saver)


def by_content(message: Any) -> None:
    message.content = "edited"


def by_block(message: Any) -> None:
    message.content = [{"type": "text", "text": "edited"}]


def by_kwargs(message: Any) -> None:
    message.additional_kwargs["edited"] = [1]


def by_metadata(message: Any) -> None:
    message.response_metadata["edited"] = True


def by_call(message: Any) -> None:
    message.tool_calls.append(dict(CALL))


def by_name(message: Any) -> None:
    message.name = "edited"


@pytest.mark.parametrize("edit", [by_content, by_block, by_kwargs, by_metadata, by_call, by_name])
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_message_that_is_changed_in_place_and_given_back_is_stored(
    store: holdfast.Store, edit: Any, durability: str
) -> None:
    def node(state: Any) -> Any:
        message = state["messages"][1]
        edit(message)
        return {"messages": [message]}

    graph = edited_graph(lambda state: {"messages": []}, HoldfastSaver(store))
    graph.invoke({"messages": [HumanMessage("a", id="1"), AIMessage("b", id="2")]}, at(), durability=durability)
    want = AIMessage("b", id="2")
    edit(want)
    edited_graph(node, graph.checkpointer).invoke({"messages": []}, at(), durability=durability)
    for saver in (graph.checkpointer, HoldfastSaver(store)):
        states = list(edited_graph(node, saver).get_state_history(at()))
        assert states[0].values["messages"] == [HumanMessage("a", id="1"), want]
        turns = [state for state in states if not state.next]
        assert turns[1].values["messages"] == [HumanMessage("a", id="1"), AIMessage("b", id="2")]


def test_a_change_of_what_was_read_does_not_reach_what_is_kept(store: holdfast.Store) -> None:
    saver = HoldfastSaver(store)
    config = put(saver, {"messages": [AIMessage("a", id="1", tool_calls=[CALL])], "box": {"a": [1]}, "xs": [[1]] * 300})
    first = saver.get_tuple(config)
    assert first is not None
    values = first.checkpoint["channel_values"]
    values["messages"][0].tool_calls[0]["args"]["a"] = "changed"
    values["messages"][0].additional_kwargs["x"] = 1
    values["box"]["a"].append(2)
    values["xs"][0].append(2)
    first.metadata["source"] = "input"
    first.checkpoint["versions_seen"]["x"] = {}
    second = saver.get_tuple(config)
    assert second is not None
    assert second.checkpoint["channel_values"] == {
        "messages": [AIMessage("a", id="1", tool_calls=[CALL])], "box": {"a": [1]}, "xs": [[1]] * 300
    }  # fmt: skip
    assert second.metadata["source"] == "loop"
    assert second.checkpoint["versions_seen"] == {}


def test_other_fields_of_a_checkpoint_come_back_large_or_small(kept: holdfast.Store) -> None:
    more = {"pending_sends": [Send("n", "a" * 5_000)], "note": {"a": (1,)}, "v": 4, "updated_channels": ["x"]}
    found = HoldfastSaver(kept).get_tuple(put(HoldfastSaver(kept), {"x": 1}, **more))
    assert found is not None
    assert {name: found.checkpoint[name] for name in more} == more  # type: ignore[literal-required]
    HoldfastSaver(kept).retain(["t"], keep=1)
    put(HoldfastSaver(kept), {"x": 2}, at())
    HoldfastSaver(kept).retain(["t"], keep=2)
    oldest = list(HoldfastSaver(kept).list(at()))[-1]
    assert oldest.checkpoint.get("pending_sends") == more["pending_sends"]


@pytest.mark.parametrize("metadata", [
    {"source": ["a"], "step": 1, "parents": {}}, {"source": "mine", "step": "x", "parents": {"": "a"}},
    {"source": "loop"},
    {"source": None, "step": None, "parents": None}, {}, {"mine": {"a": (1, {2})}, "thread_id": "other"},
])  # fmt: skip
def test_any_metadata_comes_back(kept: holdfast.Store, metadata: Any) -> None:
    saver = HoldfastSaver(kept)
    configs = [at()]
    for _ in range(3):
        configs.append(saver.put(configs[-1], checkpoint({"x": 1}), metadata, {"x": 1}))
    for config in configs[1:]:
        found = HoldfastSaver(kept).get_tuple(config)
        assert found is not None
        assert found.metadata == metadata


def test_the_serialiser_that_others_may_ask_for(store: holdfast.Store) -> None:
    serde = HoldfastSaver(store, types=[Frozen]).serde
    for value in [*VALUES, Frozen((1,)), *MESSAGES]:
        if repr(value) != "Decimal('NaN')":
            assert alike(serde.loads_typed(serde.dumps_typed(value)), value)
    with pytest.raises(Invalid, match="Unknown"):
        serde.dumps_typed({"a": Unknown()})
