"""Models by name, functions as models, and what a reply is."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest

from holdfast.errors import Invalid, Misconfigured, ModelFailed, Unavailable
from holdfast.providers.models import local, vendor
from holdfast.providers.models.choose import choose
from holdfast.providers.models.function import FunctionModel
from holdfast.providers.models.model import Model, Reply, ToolCall, Usage
from holdfast.providers.models.shape import read, schema_of
from holdfast.testing.models import Scripted

HELLO: list[dict[str, Any]] = [{"role": "user", "content": "Hello"}]


class City(msgspec.Struct):
    name: str
    people: int


class Tree(msgspec.Struct):
    name: str
    branches: list[Tree] = []


class Trip(msgspec.Struct):
    cities: list[City]


# Choosing


@pytest.mark.parametrize("spec", [None, "none", "None", "", "  "])
def test_no_model(spec: str | None) -> None:
    assert choose(spec) is None


def test_a_model_is_taken_as_it_is() -> None:
    scripted = Scripted("Hi.")
    assert choose(scripted) is scripted
    assert isinstance(scripted, Model)


def test_a_function_is_a_model() -> None:
    def parrot(messages: list[dict[str, Any]]) -> str:
        return str(messages[-1]["content"])

    model = choose(parrot)
    assert isinstance(model, FunctionModel)
    assert model.name.startswith("function:")
    assert model.reply(HELLO).text == "Hello"


def test_a_vendor_by_name() -> None:
    pytest.importorskip("pydantic_ai", reason="extra llm is not installed")
    model = choose(" anthropic:claude-x ", api_key="k")
    assert isinstance(model, vendor.VendorModel)
    assert model.name == "anthropic:claude-x"


class Half:
    name = "half"

    def reply(self, messages: list[dict[str, Any]]) -> str:
        return ""


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("claude", "vendor:model"),
        (7, "A model is one of"),
        (Scripted, "Give an object of it"),
        (Half(), "lacks stream, extract"),
        (":x", "vendor:model"),
    ],
)
def test_what_is_not_a_model(spec: Any, words: str) -> None:
    with pytest.raises(Misconfigured, match=words):
        choose(spec)


@pytest.mark.parametrize("spec", ["local", "none"])
def test_a_key_belongs_to_a_vendor(spec: str) -> None:
    with pytest.raises(Misconfigured, match="key or an address"):
        choose(spec, api_key="k")


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Misconfigured, match=r"holdfast\[llm\]"):
        choose("openai:gpt")
    with pytest.raises(Misconfigured, match=r"holdfast\[local\]"):
        choose("local")


def test_a_file_that_is_no_model_is_refused(tmp_path: Any) -> None:
    pytest.importorskip("xllamacpp", reason="extra local is not installed")
    other = tmp_path / "notes.gguf"
    other.write_text("not a model")
    for file in (other, tmp_path / "nothing.gguf", tmp_path):
        with pytest.raises(Misconfigured, match="GGUF"):
            local.LocalServer(file)


def test_choosing_loads_no_library() -> None:
    probe = (
        "import json, sys\nfrom holdfast.providers.models.choose import choose\n"
        "try:\n    choose('openai:gpt', api_key='k'); choose('local')\nexcept Exception: pass\n"
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", probe], capture_output=True, text=True, check=True)
    assert not {"pydantic_ai", "pydantic", "openai", "httpx2", "xllamacpp", "asyncio"} & set(json.loads(done.stdout))


# Functions


def test_a_function_may_give_a_whole_reply_and_streams_it() -> None:
    whole = Reply("Hi.", (ToolCall("1", "recall", {}),), Usage(3, 1), "mine", "tools")
    model = FunctionModel(lambda messages: whole, name="mine")
    assert model.reply(HELLO) is whole
    assert list(model.stream(HELLO)) == ["Hi.", whole]
    assert list(FunctionModel(lambda messages: "", name="mute").stream(HELLO)) == [Reply(model="mute", stop="end")]


def test_a_function_that_raises() -> None:
    def broken(messages: list[dict[str, Any]]) -> str:
        raise ZeroDivisionError("oh")

    with pytest.raises(ModelFailed, match="ZeroDivisionError: oh") as caught:
        FunctionModel(broken).reply(HELLO)
    assert (caught.value.reason, caught.value.partial) == ("raised", "")
    own = FunctionModel(lambda messages: (_ for _ in ()).throw(Unavailable("later")), name="own")
    with pytest.raises(Unavailable, match="later"):
        own.reply(HELLO)


def test_a_function_that_returns_something_else() -> None:
    with pytest.raises(Misconfigured, match="int"):
        FunctionModel(lambda messages: 7, name="odd").reply(HELLO)  # type: ignore[arg-type,return-value]


def test_a_function_is_asked_for_a_shape_in_words() -> None:
    heard: list[list[dict[str, Any]]] = []

    def clerk(messages: list[dict[str, Any]]) -> str:
        heard.append(messages)
        return '{"name": "Oslo"}' if len(heard) == 1 else '```\n{"name": "Oslo", "people": 7}\n```'

    value, usage = FunctionModel(clerk).extract(HELLO, City)
    assert (value, usage.requests) == (City("Oslo", 7), 2)
    assert '"people"' in heard[0][0]["content"]
    assert "people" in heard[1][-1]["content"]


# Shapes


def test_the_schema_is_an_object_at_its_top() -> None:
    schema = schema_of(City)
    assert schema["type"] == "object"
    assert "$defs" not in schema
    trip = schema_of(Trip)
    assert (trip["type"], set(trip["$defs"])) == ("object", {"City"})


def test_a_shape_that_holds_itself_keeps_its_definition() -> None:
    schema = schema_of(Tree)
    assert (schema["type"], set(schema["$defs"])) == ("object", {"Tree"})


@pytest.mark.parametrize("shape", [int, list[City], object, type("Plain", (), {})])
def test_what_is_no_shape(shape: Any) -> None:
    with pytest.raises(Invalid):
        schema_of(shape)


@pytest.mark.parametrize("text", ['{"name":"Oslo","people":7}', ' ```json\n{"name":"Oslo","people":7}\n``` '])
def test_reading(text: str) -> None:
    assert read(text, City) == City("Oslo", 7)


def test_a_lone_surrogate_is_an_error_of_the_answer() -> None:
    with pytest.raises(msgspec.DecodeError):
        read("\ud83d", City)


# Values


def test_usage_adds_up() -> None:
    assert Usage(1, 2, 3) + Usage(10, 20, 30) == Usage(11, 22, 33, 2)
    assert sum([Usage(1, 1)], Usage(requests=0)) == Usage(1, 1)


def test_a_reply_as_a_message() -> None:
    assert Reply("Hi.").message() == {"role": "assistant", "content": "Hi."}
    said = Reply(calls=(ToolCall("1", "recall", {"query": "seät"}),)).message()
    assert json.loads(said["tool_calls"][0]["function"]["arguments"]) == {"query": "seät"}


class Own:
    """The least that is a model."""

    name = "own"

    def reply(
        self, messages: list[dict[str, Any]], *, tools: Sequence[dict[str, Any]] = (), timeout_s: float | None = None
    ) -> Reply:
        return Reply("x")

    def stream(
        self, messages: list[dict[str, Any]], *, tools: Sequence[dict[str, Any]] = (), timeout_s: float | None = None
    ) -> Iterator[str | Reply]:
        yield Reply("x")

    def extract(self, messages: list[dict[str, Any]], shape: Any, *, timeout_s: float | None = None) -> Any:
        raise NotImplementedError


def test_any_object_with_these_names_is_a_model() -> None:
    own = Own()
    assert choose(own) is own
