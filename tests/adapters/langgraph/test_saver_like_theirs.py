"""What a graph gets back of a value from ``HoldfastSaver``, beside what LangGraph's own saver gives: the same, or more.

Each table says what is expected of both, so that a change of either is seen.
"""

from __future__ import annotations

import dataclasses
import enum
import re
import sys
import types
from collections import ChainMap, Counter, OrderedDict, UserDict, defaultdict, deque
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from ipaddress import ip_address, ip_interface, ip_network
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypedDict
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import numpy as np
import pydantic
import pytest
from langchain_core.agents import AgentAction, AgentActionMessageLog, AgentFinish, AgentStep
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.outputs import (
    ChatGeneration,
    ChatGenerationChunk,
    ChatResult,
    Generation,
    GenerationChunk,
    LLMResult,
    RunInfo,
)
from langchain_core.prompt_values import (
    ChatPromptValue,
    ChatPromptValueConcrete,
    ImagePromptValue,
    StringPromptValue,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Send

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver
from holdfast.errors import Invalid

AT: Any = {"configurable": {"thread_id": "t"}}


class State(TypedDict):
    x: Any


def graph_with(saver: Any, value: Any = None) -> Any:
    graph: Any = StateGraph(State).add_node("give", lambda state: {"x": value})
    return graph.add_edge(START, "give").compile(checkpointer=saver)


def ours(store: holdfast.Store, value: Any, **settings: Any) -> Any:
    """A value that a node gave, as a saver reads it that has not seen it."""
    graph_with(HoldfastSaver(store, **settings), value).invoke({"x": None}, AT, durability="sync")
    return graph_with(HoldfastSaver(store, **settings)).get_state(AT).values["x"]


def theirs(value: Any) -> Any:
    graph = graph_with(InMemorySaver(), value)
    graph.invoke({"x": None}, AT, durability="sync")
    return graph.get_state(AT).values["x"]


def same(one: Any, other: Any) -> bool:
    """Equal and of one type; of an array and a model, in all they hold."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    if isinstance(one, pydantic.BaseModel):
        return one == other and one.__dict__ == other.__dict__
    if isinstance(one, datetime | time):
        return one == other and one.fold == other.fold and repr(one.tzinfo) == repr(other.tzinfo)
    return bool(one == other)


def named(value: Any) -> str:
    return f"{type(value).__name__} {repr(value)[:30]}"


ASKED, SAID = HumanMessage("a?", id="1"), AIMessage("b", id="2", usage_metadata=None)
CET = timezone(timedelta(hours=1), "CET")
FIELDS = np.dtype([("id", "<i4"), ("at", [("x", "<f8"), ("y", ">f8")]), ("name", "<U3"), ("grid", "<i2", (2, 2))])

SAME: list[Any] = [
    AgentAction("search", {"q": (1)}, "log"), AgentFinish({"output": [1]}, "log"),
    AgentStep(action=AgentAction("search", "q", "log"), observation={"a": 1}), StringPromptValue(text="a"),
    ChatPromptValueConcrete(messages=[ASKED, SAID]), ImagePromptValue(image_url={"url": "u", "detail": "low"}),
    Generation(text="a", generation_info={"n": 1}), GenerationChunk(text="a"), RunInfo(run_id=UUID(int=3)),
    ZoneInfo("Europe/Paris"), UTC, timezone(timedelta(hours=-5, seconds=3)), CET, re.compile("a+", re.IGNORECASE),
    re.compile(b"\xff"), ip_address("10.0.0.1"), ip_network("10.0.0.0/8"), ip_interface("10.0.0.1/8"),
    ip_address("fe80::1%eth0"), ip_network("fe80::/64"), ip_interface("fe80::1/64"), Decimal("1.10"), UUID(int=5),
    Path("a/b"), deque([1, 2]), {1, 2}, frozenset({1}), datetime(2024, 1, 1, 2, tzinfo=UTC),
    time(1, 2, tzinfo=ZoneInfo("Asia/Tokyo")), time(1, 2, tzinfo=CET, fold=1), np.array([[1.5, 2.5]]), np.zeros((0, 3)),
    np.array(7), Send("node", {"a": 1}, timeout=3),
]  # fmt: skip


@pytest.mark.parametrize("value", SAME, ids=named)
def test_a_value_comes_back_the_same_from_both(store: holdfast.Store, value: Any) -> None:
    found = ours(store, value)
    assert same(found, value)
    assert same(theirs(value), value)
    if isinstance(value, pydantic.BaseModel):
        assert found.model_fields_set == value.model_fields_set, "which theirs does not keep"


# Plain types that are more


class Text(str):
    def __str__(self) -> str:
        return "not what it is"


class Int(int):
    pass


class Float(float):
    pass


class Bytes(bytes):
    pass


class List(list[Any]):
    def __iter__(self) -> Any:
        return iter(["not what it holds"])


class Dict(dict[Any, Any]):
    def items(self) -> Any:
        return {"not": "what it holds"}.items()


class Tuple(tuple[Any, ...]):
    pass


class Set(set[Any]):
    pass


class Frozenset(frozenset[Any]):
    pass


class Ordered(OrderedDict[Any, Any]):
    pass


class Default(defaultdict[Any, Any]):
    pass


REFUSED = object()
"""What stands for an error."""
MOVED = Ordered(a=1, b=2)
MOVED.move_to_end("a")

PLAIN: list[tuple[Any, Any, Any]] = [
    (SAID.text, "b", "b"), (Text("a"), "a", "a"), (Int(3), 3, 3), (Int(2**70), 2**70, REFUSED),
    (List([1, Text("a")]), [1, "a"], [1, "a"]), (Dict(a=Text("b")), {"a": "b"}, {"a": "b"}),
    ({Text("k"): 1}, {"k": 1}, {"k": 1}), (Dict({1: 2, "$": 3}), {1: 2, "$": 3}, {1: 2, "$": 3}),
    (Ordered(b=1), {"b": 1}, {"b": 1}), (Default(lambda: 1, a=2), {"a": 2}, {"a": 2}),
    (Float(1.5), 1.5, REFUSED), (Float("-inf"), float("-inf"), REFUSED), (Tuple((1, Int(2))), (1, 2), REFUSED),
    ([Bytes(b"a")], [b"a"], REFUSED), (Set({1}), {1}, Set({1})), (Frozenset({1}), frozenset({1}), Frozenset({1})),
]  # fmt: skip


@pytest.mark.parametrize(("value", "base", "their"), PLAIN, ids=[named(value) for value, *_ in PLAIN])
def test_a_subclass_of_a_plain_type_comes_back_as_that_type(
    store: holdfast.Store, value: Any, base: Any, their: Any
) -> None:
    found = ours(store, value)
    assert repr(found) == repr(base), "with the types of all that is in it"
    compared_with_theirs(value, their)


def compared_with_theirs(value: Any, their: Any) -> None:
    if their is REFUSED:
        with pytest.raises(TypeError):
            theirs(value)
    else:
        assert same(theirs(value), their)


def test_the_order_of_a_dict_is_the_one_that_is_seen(store: holdfast.Store) -> None:
    assert list(ours(store, MOVED).items()) == [("b", 2), ("a", 1)]
    assert list(theirs(MOVED).items()) == [("a", 1), ("b", 2)], "theirs forgets that it was moved"


def test_a_subclass_of_a_plain_type_in_a_message_and_in_metadata(store: holdfast.Store) -> None:
    saver = HoldfastSaver(store)
    message = HumanMessage("a", id="1", additional_kwargs={"seen": SAID.text, Text("k"): Int(1)})
    config: Any = {**AT, "metadata": {"mine": SAID.text}}
    graph_with(saver, [message]).invoke({"x": None}, config, durability="sync")
    found = HoldfastSaver(store).get_tuple(AT)
    assert found is not None
    assert found.checkpoint["channel_values"]["x"] == [message]
    assert type(found.checkpoint["channel_values"]["x"][0].additional_kwargs["seen"]) is str
    assert found.metadata["mine"] == "b"  # type: ignore[typeddict-item]


# What comes back as it was from us alone

WITH_MESSAGES = [
    AgentActionMessageLog(tool="t", tool_input="i", log="l", message_log=[ASKED]),
    ChatPromptValue(messages=[ASKED, SAID]), ChatGeneration(message=SAID, generation_info={"n": 1}),
    ChatGenerationChunk(message=AIMessageChunk("c", id="3")), ChatResult(generations=[ChatGeneration(message=SAID)]),
    LLMResult(generations=[[ChatGeneration(message=SAID)]], run=[RunInfo(run_id=UUID(int=3))]),
]  # fmt: skip
MORE: list[tuple[Any, Any]] = [
    ((1,), [1]), (Counter("aab"), {"a": 2, "b": 1}), (OrderedDict(b=1), {"b": 1}),
    (defaultdict(list, a=[1]), {"a": [1]}),
    (deque([1], maxlen=3), deque([1])), (Fraction(1, 3), REFUSED), (PurePosixPath("a"), REFUSED),
    (np.float64(1.5), REFUSED), (np.str_(""), ""), (np.zeros(1, FIELDS)[0], REFUSED),
    (datetime(2024, 10, 27, 2, tzinfo=ZoneInfo("Europe/Paris"), fold=1),
     datetime(2024, 10, 27, 2, tzinfo=timezone(timedelta(hours=1)))),
    (datetime(2024, 1, 1, tzinfo=CET), datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=1)))),
]  # fmt: skip


@pytest.mark.parametrize("value", WITH_MESSAGES, ids=named)
def test_messages_in_a_value_keep_their_class(store: holdfast.Store, value: Any) -> None:
    assert same(ours(store, value), value)
    assert theirs(value) != value, "theirs makes each a BaseMessage"


@pytest.mark.parametrize(("value", "their"), MORE, ids=[named(value) for value, _ in MORE])
def test_a_value_comes_back_as_it_was_where_theirs_does_not(store: holdfast.Store, value: Any, their: Any) -> None:
    found = ours(store, value)
    assert same(found, value)
    assert getattr(found, "maxlen", None) == getattr(value, "maxlen", None)
    compared_with_theirs(value, their)


@pytest.mark.every_engine
def test_all_of_them_at_once_on_every_engine(kept: holdfast.Store) -> None:
    values = [*SAME, *WITH_MESSAGES, *(value for value, _ in MORE)]
    found = ours(kept, values)
    assert [named(value) for value, one in zip(values, found, strict=True) if not same(one, value)] == []


def test_a_zone_of_one_offset_is_kept_as_that_offset(store: holdfast.Store) -> None:
    read: datetime = pydantic.TypeAdapter(datetime).validate_python("2024-01-01T00:00:00+02:00")
    assert type(read.tzinfo) is not timezone
    want = datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=2)))
    assert same(ours(store, read), want)
    assert same(theirs(read), want)


class Local(tzinfo):
    """A zone as the documentation of Python shows it: it has to be asked about a moment."""

    def utcoffset(self, moment: Any) -> timedelta:
        return timedelta(hours=moment.month % 2)

    def dst(self, moment: Any) -> timedelta:
        return timedelta(0)


# Arrays with fields

ARRAYS: list[Any] = [
    np.array([(1, (0.5, 1.5), "abc", [[1, 2], [3, 4]])] * 3, FIELDS), np.zeros((2, 0), FIELDS), np.zeros((), FIELDS),
    np.zeros(2, np.dtype([("a", "i1"), ("b", "f8")], align=True)), np.zeros(2, [(("title", "a"), "i4")]),
    np.asfortranarray(np.arange(6).reshape(2, 3).astype([("n", "i8")])), np.array(["", ""]), np.zeros(2, "V4"),
    np.array(["2024-01-01"], "M8[D]"), np.zeros(4, FIELDS)[::2],
]  # fmt: skip


@pytest.mark.parametrize("value", ARRAYS, ids=lambda value: str(value.dtype)[:40])
def test_an_array_keeps_its_fields(store: holdfast.Store, value: Any) -> None:
    found = ours(store, {"rows": value})["rows"]
    assert same(found, value)
    assert found.dtype.names == value.dtype.names
    assert found.flags.writeable


def test_theirs_loses_the_fields_of_an_array() -> None:
    assert theirs(ARRAYS[0]).dtype.names is None


OVERLAP = np.dtype({"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [0, 2]})
REFUSALS: list[tuple[Any, str]] = [
    (np.zeros(2, OVERLAP), "fields in order"), (np.zeros(2, FIELDS).view(np.recarray), "recarray"),
    (np.zeros(2, np.dtype((np.record, FIELDS))), "would come back as another"),
    (np.array(["a"], np.dtypes.StringDType()), "Python objects"),
    (np.array([(1, {})], [("a", "i4"), ("b", "O")]), "make"),
    (np.ma.masked_array([1, 2], [0, 1]), "MaskedArray"), (UserDict(a=1), "UserDict"), (ChainMap({"a": 1}), "ChainMap"),
    (datetime(2024, 1, 1, tzinfo=Local()), "use UTC"), (Default, "plain data"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "word"), REFUSALS, ids=[word for _, word in REFUSALS])
def test_what_would_come_back_as_something_else_is_refused(store: holdfast.Store, value: Any, word: str) -> None:
    with pytest.raises(Invalid, match=word):
        ours(store, value)


# Secrets


class Account(pydantic.BaseModel):
    token: pydantic.SecretStr


SECRETS: list[Any] = [
    pydantic.SecretStr("hunter2"), pydantic.SecretBytes(b"hunter2"), [{"deep": pydantic.Secret[int](7)}],
    Account(token=pydantic.SecretStr("hunter2")),
]  # fmt: skip


@pytest.mark.parametrize("value", SECRETS, ids=named)
def test_a_secret_is_refused_with_what_to_do(store: holdfast.Store, value: Any) -> None:
    with pytest.raises(Invalid, match="fetch the secret in the node") as caught:
        ours(store, value, types=[Account])
    assert "hunter2" not in str(caught.value)
    assert b"hunter2" in InMemorySaver().serde.dumps_typed(SECRETS[0])[1], "theirs writes it as it is"


# Classes of the caller's


@dataclasses.dataclass
class Seat:
    row: int = 0


@dataclasses.dataclass
class Both(dict[str, Any]):
    row: int = 0


class Row(NamedTuple):
    number: int


class Kind(enum.StrEnum):
    AISLE = "aisle"


class Struct(msgspec.Struct):
    a: int


@pytest.mark.parametrize("value", [Seat(3), Both(3), Row(1), Kind.AISLE, Struct(1), Account(token="a")], ids=named)
def test_a_class_with_fields_is_never_taken_for_its_base(store: holdfast.Store, value: Any) -> None:
    with pytest.raises(Invalid, match=rf"types=\[{type(value).__name__}\]"):
        ours(store, value)


def test_a_dataclass_that_is_a_dict_too_is_refused_when_it_is_saved(store: holdfast.Store) -> None:
    with pytest.raises(Invalid, match="keep it in a field"):
        ours(store, Both(3), types=[Both])


def module(name: str, *classes: tuple[str, str]) -> types.ModuleType:
    """A module that has dataclasses, each of a name and of the module where it is written."""
    made = types.ModuleType(name)
    for called, place in classes:
        setattr(made, called, dataclasses.make_dataclass(called, ["a"], namespace={"__module__": place}))
    return made


def test_a_module_stands_for_the_classes_that_are_written_in_it(store: holdfast.Store) -> None:
    value = [Seat(3), Row(1), Kind.AISLE, Struct(1)]
    found = ours(store, value, types=[sys.modules[__name__]])
    assert [type(each) for each in found] == [Seat, Row, Kind, Struct]
    assert found == value
    again = HoldfastSaver(store, types=[Seat, Row, Kind, Struct]).get_tuple(AT)
    assert again is not None
    assert again.checkpoint["channel_values"]["x"] == value, "the names are those of the classes"


def test_a_module_stands_for_what_is_below_it_and_not_for_what_it_imports(store: holdfast.Store) -> None:
    models: Any = module("app.models", ("Trip", "app.models.trips"), ("Stay", "app.models"), ("Other", "app.models2"))
    for value in (models.Trip(1), models.Stay(2)):
        assert ours(store, value, types=[models, Row]) == value
    with pytest.raises(Invalid, match=r"types=\[Other\]"):
        ours(store, models.Other(1), types=[models])


def test_modules_that_cannot_be_given(store: holdfast.Store) -> None:
    one, two = module("one", ("Trip", "one")), module("two", ("Trip", "two"))
    wrong: list[tuple[Any, str]] = [
        ([one, two], r"'Trip' stands for one\.Trip already.*types=\{'another': Trip\}"), ([module("none")], "no class"),
        (["app.models"], "modules that have them, not 'app.models'"), ({"trip": one}, "types are classes"),
        (one, "a list of classes or modules"),
    ]  # fmt: skip
    for types_, word in wrong:
        with pytest.raises(Invalid, match=word):
            HoldfastSaver(store, types=types_)
