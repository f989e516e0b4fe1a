"""Tools of a session: durable steps that a model calls by name, and that it can get wrong in every way there is."""

from __future__ import annotations

import datetime
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

import holdfast
from holdfast.errors import Invalid, ModelFailed, StepUnknown
from holdfast.extension import counter_for
from holdfast.providers.models.model import Reply, ToolCall
from holdfast.sessions.session import Session
from holdfast.steps.step_context import current_step
from holdfast.testing.models import Scripted

Told = Callable[[holdfast.Thread], list[str]]


@pytest.fixture
def store(place: Any) -> holdfast.Store:
    found: holdfast.Store = place.open()
    return found


class World:
    """What was done outside, and under which key."""

    def __init__(self) -> None:
        self.done: list[tuple[Any, str]] = []

    def do(self, what: Any) -> Any:
        self.done.append((what, current_step().key))
        return what

    def find(self, what: Any) -> Any:
        return next((done for done, key in self.done if key == current_step().key), None)


@pytest.fixture
def world() -> World:
    return World()


def call(name: str, id: str = "1", **arguments: Any) -> ToolCall:
    return ToolCall(id, name, arguments)


def session(store: holdfast.Store, *items: Any, tools: Any = (), **ways: Any) -> Session:
    return store.session(store.thread("t", user="ana"), model=Scripted(*items), tools=tools, learn="off", **ways)


def heard(session: Session) -> list[str]:
    """What the model was told by tools in its last request."""
    assert isinstance(session.model, Scripted)
    return [message["content"] for message in session.model.asked[-1] if message["role"] == "tool"]


def used(store: holdfast.Store, tool: Any, /, **arguments: Any) -> str:
    """What a model hears that calls this tool once."""
    asking = session(store, call(tool.name, **arguments), "ok", tools=[tool])
    asking.turn("q")
    return heard(asking)[-1]


# What a tool is


def test_a_definition_comes_from_the_function(ram: holdfast.Store) -> None:
    @holdfast.step(effect="pure")
    def weather(city: str, days: int = 3, unit: Literal["c", "f"] = "c", tags: list[str] | None = None) -> str:
        """What the weather will be."""
        return city

    asking = session(ram, "ok", tools=[weather])
    asking.turn("q")
    assert isinstance(asking.model, Scripted)
    function = asking.model.calls[0].tools[0]["function"]
    assert (function["name"], function["description"]) == ("weather", "What the weather will be.")
    parameters = function["parameters"]
    assert (parameters["type"], parameters["required"]) == ("object", ["city"])
    assert parameters["properties"]["city"] == {"type": "string"}
    assert parameters["properties"]["unit"]["enum"] == ["c", "f"]
    assert json.dumps(parameters)


def test_without_tools_none_are_offered_and_with_tools_things_can_be_looked_up(ram: holdfast.Store) -> None:
    @holdfast.step(effect="pure")
    def one() -> int:
        return 1

    bare, full = session(ram, "ok"), session(ram, "ok", tools=[one])
    bare.turn("q")
    full.turn("q2")
    assert isinstance(bare.model, Scripted)
    assert isinstance(full.model, Scripted)
    assert bare.model.calls[0].tools == ()
    assert [tool["function"]["name"] for tool in full.model.calls[0].tools] == ["one", "look_up"]


def _plain(city: str) -> str:
    return city


async def _waits(city: str) -> str:
    return city


def _many(*cities: str) -> str:
    return ""


def _any(**cities: str) -> str:
    return ""


def _first(city: str, /) -> str:
    return city


def _strange(city: Nowhere) -> str:  # type: ignore[name-defined]  # noqa: F821
    return ""


@pytest.mark.parametrize(
    "wrong",
    [
        _plain, _plain.__name__, print, lambda: 1, *(
            holdfast.step(effect="pure")(fn) for fn in (_waits, _many, _any, _first, _strange)
        ),
        holdfast.step("book flight!", effect="pure")(_plain), holdfast.step("a" * 80, effect="pure")(_plain),
    ],
)  # fmt: skip
def test_what_cannot_be_a_tool_is_refused_at_once(ram: holdfast.Store, wrong: Any) -> None:
    with pytest.raises(Invalid):
        session(ram, tools=[wrong])


def test_two_tools_of_one_name_are_refused(ram: holdfast.Store) -> None:
    one, other = (
        holdfast.step("look", effect="pure")(_plain),
        holdfast.step("look", effect="once", probe=_plain)(_plain),
    )
    with pytest.raises(Invalid, match="two tools"):
        session(ram, tools=[one, other])


# Arguments


def test_arguments_called_like_options_of_a_step_reach_the_function(store: holdfast.Store) -> None:
    @holdfast.step(effect="pure")
    def odd(log: str, retry: int, effect: str, name: str, self: str, probe: str, timeout_s: int, run: str) -> str:
        return f"{log}{retry}{effect}{name}{self}{probe}{timeout_s}{run}"

    given = {"log": "a", "retry": 1, "effect": "b", "name": "c", "self": "d", "probe": "e", "timeout_s": 2, "run": "f"}
    asking = session(store, ToolCall("1", "odd", given), "ok", tools=[odd])
    asking.turn("q")
    assert heard(asking) == ["a1bcde2f"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "city"), ({"city": 7}, "city"), ({"city": "x", "town": "y"}, "town"), ({"city": None}, "city"),
        ({"city": "x", "days": "many"}, "days"), ({"city": ["x"]}, "city"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit_are_told_to_the_model(
    ram: holdfast.Store, arguments: dict[str, Any], says: str
) -> None:
    done: list[str] = []

    @holdfast.step(effect="idempotent")
    def weather(city: str, days: int = 1) -> str:
        done.append(city)
        return "sun"

    asking = session(ram, ToolCall("1", "weather", arguments), call("weather", city="Porto"), "ok", tools=[weather])
    assert asking.turn("q").text == "ok"
    assert heard(asking)[0].startswith("error: ")
    assert says in heard(asking)[0]
    assert (heard(asking)[1], done) == ("sun", ["Porto"])


def test_arguments_that_are_no_json_and_tools_that_are_not_there(store: holdfast.Store, told: Told) -> None:
    @holdfast.step(effect="pure")
    def weather(city: str) -> str:
        return "sun"

    broken = ToolCall("1", "weather", {"raw": '{"city": "Po'}, invalid="the JSON ends too soon")
    asking = session(store, [broken, call("whether", "2", city="x"), ToolCall("3", "", {})], "ok", tools=[weather])
    asking.turn("q")
    first, second, third = heard(asking)
    assert "ends too soon" in first
    assert "no tool 'whether'" in second
    assert "weather" in second
    assert third.startswith("error")
    assert told(store.thread("t"))[-2] == "assistant: ok"


class Colour(Enum):
    RED = "red"


class Point(msgspec.Struct):
    x: int
    y: int = 0


def test_arguments_come_as_their_types(ram: holdfast.Store) -> None:
    @holdfast.step(effect="pure")
    def typed(day: datetime.date, at: Point, colour: Colour, points: list[Point]) -> str:
        return f"{day.year} {at.x} {colour.name} {points[0].y}"

    given = {"day": "2024-05-08", "at": {"x": 1}, "colour": "red", "points": [{"x": 1, "y": 2}]}
    assert used(ram, typed, **given) == "2024 1 RED 2"


def test_a_typed_tool_is_not_repeated_on_resume(ram: holdfast.Store) -> None:
    done: list[Any] = []

    @holdfast.step(effect="idempotent")
    def typed(day: datetime.date) -> str:
        done.append(day)
        return "ok"

    asking = session(ram, call("typed", day="2024-05-08"), RuntimeError("down"), "fine", tools=[typed])
    with pytest.raises(ModelFailed):
        asking.turn("q")
    assert asking.resume().text == "fine"
    assert done == [datetime.date(2024, 5, 8)]


# Results


@pytest.mark.parametrize(
    ("result", "heard"),
    [("text", "text"), (None, "null"), ({"a": [1]}, '{"a": [1]}'), (7, "7"), ("", ""), ("ünï", "ünï"), (True, "true")],
)
def test_a_result_is_told_as_text(ram: holdfast.Store, result: Any, heard: str) -> None:
    @holdfast.step(effect="pure")
    def give() -> Any:
        return result

    assert used(ram, give) == heard


def test_a_huge_result_is_clipped_and_can_be_looked_up(store: holdfast.Store) -> None:
    lines = [f"line {number} is fine" for number in range(20_000)]

    @holdfast.step(effect="pure")
    def logs() -> str:
        return "\n".join(lines)

    def look(messages: list[dict[str, Any]], tools: Any) -> ToolCall:
        shown = messages[-1]["content"]
        assert len(shown) < 8_000
        ref = re.search(r"looked up as (\S+)\)", shown)
        assert ref is not None
        return call("look_up", "2", ref=ref[1], find="line 12345 ")

    asking = session(store, call("logs"), look, "ok", tools=[logs], budget=4_000)
    asking.turn("q")
    assert "line 12345 is fine" in heard(asking)[-1]
    whole = next(entry for entry in store.thread("t").log() if entry.kind == "observation")
    assert whole.content["content"] == "\n".join(lines)
    later = session(store, call("look_up", ref=f"t#{whole.number}", line=19_999), "ok", tools=[logs], budget=4_000)
    later.turn("q2")
    assert heard(later)[-1].endswith("19999: line 19998 is fine\n20000: line 19999 is fine")


def test_all_of_a_turn_fits_however_many_tools_it_uses(store: holdfast.Store) -> None:
    """What a turn adds by tools must not grow over what the model takes."""

    @holdfast.step(effect="pure")
    def logs(number: int) -> str:
        return f"{number}: " + "many words of a log " * 2_000

    rounds = [call("logs", str(number), number=number) for number in range(12)]
    asking = session(store, *rounds, "ok", tools=[logs], budget=4_000)
    asking.turn("q")
    assert isinstance(asking.model, Scripted)
    sizes = [sum(asking._counter.count(str(said.get("content") or "")) for said in one) for one in asking.model.asked]
    assert max(sizes) <= 2 * 4_000


@pytest.mark.parametrize("ref", ["other#1", "#99", "t#0", "nothing", "", "#-1", "t#"])
def test_what_cannot_be_looked_up_is_told(ram: holdfast.Store, ref: str) -> None:
    ram.thread("other", user="bob").append({"role": "user", "content": "a secret of bob"})
    asking = session(ram, call("look_up", ref=ref), "ok", tools=[holdfast.step(effect="pure")(_plain)])
    asking.turn("q")
    assert heard(asking)[0].startswith("error")
    assert "secret" not in heard(asking)[0]


# Calls


def test_calls_with_the_same_id_or_none_stay_apart(store: holdfast.Store) -> None:
    @holdfast.step(effect="pure")
    def square(x: int) -> int:
        return x * x

    first = [call("square", "same", x=2), call("square", "same", x=3)]
    asking = session(store, first, [call("square", "same", x=4), call("square", "", x=5)], "ok", tools=[square])
    asking.turn("q")
    assert heard(asking) == ["4", "9", "16", "25"]
    assert isinstance(asking.model, Scripted)
    asked = asking.model.asked[-1]
    ids = [one["id"] for message in asked for one in message.get("tool_calls", ())]
    assert ids == [message["tool_call_id"] for message in asked if message["role"] == "tool"]
    assert len(set(ids)) == 4
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", id) for id in ids), ids
    again = session(store, "ok")
    again.turn("q2")
    assert isinstance(again.model, Scripted)
    later = [one["id"] for message in again.model.asked[-1] for one in message.get("tool_calls", ())]
    assert len(set(later)) == 4


@pytest.mark.parametrize("id", ["call_" + "x" * 60, "functions.add:0", "ü", "a b", "x" * 500])
def test_ids_are_what_every_vendor_takes(ram: holdfast.Store, id: str) -> None:
    asking = session(ram, call("_plain", id, city="x"), "ok", tools=[holdfast.step(effect="pure")(_plain)])
    asking.turn("q")
    assert isinstance(asking.model, Scripted)
    sent = [one["id"] for message in asking.model.asked[-1] for one in message.get("tool_calls", ())]
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", one) for one in sent), sent


def test_thirty_rounds_end_with_a_question_without_tools(store: holdfast.Store) -> None:
    done: list[int] = []

    @holdfast.step(effect="idempotent")
    def count(x: int) -> int:
        done.append(x)
        return x

    rounds = [call("count", x=number) for number in range(30)]
    asking = session(store, *rounds, "I counted enough.", tools=[count], rounds=30)
    assert asking.turn("q").text == "I counted enough."
    assert done == list(range(30))
    assert isinstance(asking.model, Scripted)
    assert [bool(one.tools) for one in asking.model.calls] == [True] * 30 + [False]


def test_a_model_that_never_stops_calling_is_stopped(ram: holdfast.Store) -> None:
    done: list[int] = []

    @holdfast.step(effect="idempotent")
    def count(x: int) -> int:
        done.append(x)
        return x

    asking = session(ram, *[call("count", x=number) for number in range(100)], tools=[count], rounds=5)
    with pytest.raises(ModelFailed):
        asking.turn("q")
    assert len(done) == 5
    assert asking.start().unanswered is not None


def test_all_rounds_of_what_broke_off_are_told(store: holdfast.Store) -> None:
    @holdfast.step(effect="idempotent")
    def count(x: int) -> int:
        return x

    rounds = [call("count", x=number) for number in range(25)]
    asking = session(store, *rounds, RuntimeError("down"), "fine", tools=[count], rounds=30)
    with pytest.raises(ModelFailed):
        asking.turn("q")
    assert asking.start().done == tuple(("count", str(number)) for number in range(25))
    asking.turn("something else")
    assert sum(entry.kind == "tool_call" for entry in store.thread("t").log()) == 25


def test_no_rounds_means_no_tools(ram: holdfast.Store) -> None:
    asking = session(ram, "ok", tools=[holdfast.step(effect="pure")(_plain)], rounds=0)
    asking.turn("q")
    assert isinstance(asking.model, Scripted)
    assert asking.model.calls[0].tools == ()


def test_words_beside_a_call_are_on_record(store: holdfast.Store, told: Told) -> None:
    reply = Reply("Let me look.", (call("_plain", city="Porto"),))
    session(store, reply, "Found.", tools=[holdfast.step(effect="pure")(_plain)]).turn("q")
    assert told(store.thread("t")) == [
        "user: q", "assistant: Let me look.", "call _plain", "result Porto", "assistant: Found.", "(holdfast.usage)",
    ]  # fmt: skip


def test_an_answer_begun_beside_a_call_is_not_taken_for_the_end(store: holdfast.Store) -> None:
    """Words, a call, and then the process is gone: what was said beside the call is not an answer."""
    reply = Reply("Let me look.", (call("_plain", city="Porto"),))
    tool = holdfast.step(effect="pure")(_plain)
    asking = session(store, reply, RuntimeError("down"), "Found.", "Next.", tools=[tool])
    with pytest.raises(ModelFailed):
        asking.turn("q", key="k")
    assert asking.start().unanswered is not None
    assert asking.turn("q", key="k").text == "Found."
    assert asking.turn("q", key="k").text == "Found."


# Failures


def test_a_tool_that_raises_is_told_and_the_turn_goes_on(store: holdfast.Store) -> None:
    @holdfast.step(effect="idempotent")
    def fail(city: str) -> str:
        raise OSError(f"no way to {city}")

    asking = session(store, call("fail", city="Porto"), "sorry", tools=[fail])
    assert asking.turn("q").text == "sorry"
    assert heard(asking) == ["error: OSError: no way to Porto"]
    assert [run.status for run in store.runs()] == ["done"]


def test_a_tool_that_times_out_is_told(store: holdfast.Store) -> None:
    may_end = threading.Event()

    @holdfast.step(effect="idempotent", timeout_s=0.01)
    def slow() -> str:
        may_end.wait(30)
        return "late"

    asking = session(store, call("slow"), "too slow", tools=[slow])
    try:
        assert asking.turn("q").text == "too slow"
    finally:
        may_end.set()
    assert "longer than" in heard(asking)[0]


def test_a_failed_tool_is_not_tried_again_on_resume(store: holdfast.Store) -> None:
    done: list[int] = []

    @holdfast.step(effect="idempotent")
    def fail() -> str:
        done.append(1)
        raise OSError("no way")

    asking = session(store, call("fail"), RuntimeError("down"), "sorry", tools=[fail])
    with pytest.raises(ModelFailed):
        asking.turn("q")
    assert asking.start().done == (("fail", "error: OSError: no way"),)
    assert asking.resume().text == "sorry"
    assert len(done) == 1


@pytest.mark.parametrize(
    "result", [object(), float("nan"), "half \ud800", 2**80, b"bytes", {1: object()}, {"a": {7}}, "nul \0", print]
)
def test_a_result_of_any_kind_is_told_somehow_and_breaks_nothing(ram: holdfast.Store, result: Any) -> None:
    @holdfast.step(effect="idempotent")
    def odd() -> Any:
        return result

    asking = session(ram, call("odd"), "and on", "further", tools=[odd])
    assert asking.turn("q").text == "and on"
    assert len(heard(asking)) == 1
    assert asking.turn("something else").text == "further"


def test_tools_that_are_gone_on_resume_keep_their_results(store: holdfast.Store) -> None:
    tool = holdfast.step(effect="idempotent")(_plain)
    with pytest.raises(ModelFailed):
        session(store, call("_plain", city="Porto"), RuntimeError("down"), tools=[tool]).turn("q")
    asking = session(store, "fine")
    asking.resume()
    assert heard(asking) == ["Porto"]
    results = [entry.content["content"] for entry in store.thread("t").log() if entry.kind == "observation"]
    assert results == ["Porto"]


# Effects


@pytest.mark.every_engine
def test_a_once_tool_is_asked_for_by_its_probe_after_a_crash(place: Any, world: World) -> None:
    @holdfast.step(effect="once", probe=world.find)
    def pay(what: str) -> str:
        world.do(what)
        if len(world.done) == 1:
            raise Died
        return "again"

    first = place.open(own=True)
    with pytest.raises(Died):
        session(first, call("pay", what="flight"), tools=[pay]).turn("q")
    place.lapse()
    asking = session(place.open(own=True), "paid", tools=[pay])
    assert asking.resume().text == "paid"
    assert heard(asking) == ["flight"]
    assert len(world.done) == 1


class Died(BaseException):
    """The end of a process."""


def paying(world: World) -> Any:
    @holdfast.step(effect="once", probe=world.find)
    def pay(what: str) -> str:
        return str(world.do(what))

    return pay


@pytest.mark.every_engine
def test_a_once_call_that_is_repeated_after_a_crash_is_answered_and_not_done_again(place: Any, world: World) -> None:
    pay, flight = paying(world), call("pay", what="flight")
    with pytest.raises(Died):
        session(place.open(own=True), flight, Died, tools=[pay]).turn("q")
    place.lapse()
    again = session(place.open(own=True), call("pay", "2", what="flight"), Died, tools=[pay])
    with pytest.raises(Died):
        again.resume()
    assert heard(again)[1].startswith("flight\n(This was done before an interruption")
    place.lapse()
    last = session(
        place.open(own=True), call("pay", "3", what="flight"), call("pay", "4", what="hotel"), "paid", tools=[pay]
    )
    assert last.resume().text == "paid"
    assert [text.partition("\n")[0] for text in heard(last)] == ["flight", "flight", "flight", "hotel"]
    assert [what for what, _ in world.done] == ["flight", "hotel"]


@pytest.mark.parametrize(
    ("before", "after", "done"),
    [
        ([call("pay", what="flight")] * 2, [call("pay", what="flight")] * 2, 2),  # two on purpose, both repeated
        ([call("pay", what="flight")], [call("pay", what="flight")] * 2, 2),  # two on purpose, one was done
        ([call("pay", what="flight")], [call("pay", what="hotel")], 2),
        ([call("look", what="flight")], [call("look", what="flight")], 2),  # may be done as often as one likes
    ],
)
def test_only_what_was_done_once_is_not_repeated(
    store: holdfast.Store, world: World, before: Any, after: Any, done: int
) -> None:
    @holdfast.step(effect="pure")
    def look(what: str) -> str:
        return str(world.do(what))

    asking = session(store, before, RuntimeError("down"), after, "paid", tools=[paying(world), look])
    with pytest.raises(ModelFailed):
        asking.turn("q")
    assert asking.resume().text == "paid"
    assert len(world.done) == done


def test_a_model_that_insists_or_was_not_interrupted_does_it_twice(store: holdfast.Store, world: World) -> None:
    pay = call("pay", what="flight")
    session(store, pay, pay, "paid", tools=[paying(world)]).turn("q")
    assert len(world.done) == 2
    asking = session(store, pay, RuntimeError("down"), pay, pay, "paid", tools=[paying(world)])
    with pytest.raises(ModelFailed):
        asking.turn("once more")
    assert asking.resume().text == "paid"
    assert len(world.done) == 4


def test_what_nobody_can_say_stops_and_goes_on_once_it_is_settled(store: holdfast.Store, world: World) -> None:
    @holdfast.step(effect="once", on_unknown="stop")
    def pay(what: str) -> str:
        world.do(what)
        raise ConnectionError("the answer was lost")

    asking = session(store, call("pay", what="flight"), "paid", "and on", tools=[pay])
    with pytest.raises(StepUnknown, match="settle"):
        asking.turn("q")
    (stopped,) = store.runs(status="stopped")
    opening = asking.start()
    assert opening.unanswered is not None
    assert "is unknown" in opening.done[0][1]
    with pytest.raises(StepUnknown):
        asking.resume()
    thread = store.thread("t", user="ana")
    run = thread.run(stopped.name)
    (open_step,) = [step for step in run.steps if step.name.startswith("pay")]
    run.settle(open_step.name, happened=True, result="receipt 7")
    run.release()
    assert asking.resume().text == "paid"
    assert heard(asking) == ["receipt 7"]
    assert len(world.done) == 1
    assert [run.status for run in store.runs()] == ["done"]
    assert asking.turn("and?").text == "and on"


def test_what_nobody_can_say_is_seen_and_settled_with_the_command(tmp_path: Path, world: World) -> None:
    pytest.importorskip("typer", reason="the command's extra is not installed")

    @holdfast.step(effect="once", on_unknown="stop")
    def pay(what: str) -> str:
        world.do(what)
        raise ConnectionError("the answer was lost")

    def command(*words: str) -> str:
        asked = [sys.executable, "-m", "holdfast", "--db", str(tmp_path / "agent.db"), *words]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout

    with holdfast.open(tmp_path / "agent.db", embedder=None) as store:
        asking = session(store, call("pay", what="flight"), tools=[pay])
        with pytest.raises(StepUnknown):
            asking.turn("q")
        (run,) = store.runs()
        (step,) = [step.name for step in store.thread("t").timeline(run.name).steps if step.name.startswith("pay")]
    listed = command("runs")
    assert run.name in listed
    assert "settle a step" in listed
    command("settle", f"t/{run.name}", step, "--happened", "--result", '"receipt 7"')
    with holdfast.open(tmp_path / "agent.db", embedder=None) as store:
        asking = session(store, "paid", tools=[pay])
        assert asking.resume().text == "paid"
        assert heard(asking) == ["receipt 7"]
    assert len(world.done) == 1


def test_what_nobody_can_say_stays_visible_when_something_else_is_asked(store: holdfast.Store, world: World) -> None:
    @holdfast.step(effect="once", on_unknown="stop")
    def pay(what: str) -> str:
        raise ConnectionError("the answer was lost")

    asking = session(store, call("pay", what="flight"), "and on", "further", tools=[pay])
    with pytest.raises(StepUnknown):
        asking.turn("q")
    assert asking.turn("something else").text == "and on"
    assert any("is unknown" in one for one in heard(asking))
    assert [run.status for run in store.runs()] != ["done"]
    assert asking.turn("more").text == "further"


# Memories


def test_memories_are_tools(store: holdfast.Store) -> None:
    memory = store.memory(user="ana")
    asking = session(
        store, call("remember", text="Ana likes aisle seats"), call("recall", query="seats"), "noted", tools=[memory]
    )
    assert asking.turn("q").text == "noted"
    assert "aisle" in heard(asking)[1]
    assert [hit.text for hit in memory.recall("aisle seats")][:1] == ["Ana likes aisle seats"]


@pytest.mark.every_engine
def test_what_a_tool_remembers_is_remembered_once(place: Any) -> None:
    store = place.open()
    memory = store.memory(user="ana")
    asking = session(store, call("remember", text="Ana likes aisle seats"), RuntimeError("down"), "ok", tools=[memory])
    with pytest.raises(ModelFailed):
        asking.turn("q")
    asking.resume()
    found = [hit for hit in memory.recall("aisle seats") if hit.memory is not None]
    assert len(found) == 1


@pytest.mark.parametrize("budget", [900, 2_000, 6_000])
def test_a_turn_with_many_calls_stays_within_its_budget(store: holdfast.Store, budget: int) -> None:
    """Old results are masked, then whole rounds left out; the newest stays, and what was left out is told."""

    @holdfast.step(effect="pure")
    def look(number: int, why: str) -> str:
        """Look something up."""
        return f"ERROR line {number} is bad\n" * 2_000

    count = counter_for(None).count
    why = "because of this and that " * 12
    calls = [ToolCall(f"c{number}", "look", {"number": number, "why": why}) for number in range(14)]
    model = Scripted(*calls, "Done.")
    with store.session("t", model=model, tools=[look], budget=budget, learn="off") as session:
        assert session.turn("Go.").text == "Done."
    for asked in model.asked:
        assert sum(count(f"{one.get('content') or ''}{one.get('tool_calls', '')}") for one in asked) <= budget
    last = str(model.asked[-1])
    assert ("left out for lack of room" in last) == (budget < 1_000)  # elsewhere short stand-ins are enough
    assert "c13" in last
