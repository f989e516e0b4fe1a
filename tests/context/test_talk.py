"""Whatever a log holds becomes a conversation: calls with their results, and nothing that is lost without a word."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.context.talk import (
    EMPTY,
    MISSING,
    ConversationSoFar,
    Message,
    Stretch,
    as_object,
    conversation,
    harmless,
    tell,
)
from holdfast.records import Draft, Entry, event, note, observation, tool_call


def entries(*items: Any) -> list[Entry]:
    drafts = [item if isinstance(item, Draft) else Draft("message", item) for item in items]
    return [Entry("t", number, one.kind, one.content, None, 0, b"") for number, one in enumerate(drafts, 1)]


def talk(*items: Any) -> list[Stretch]:
    return conversation(entries(*items))


def shown(stretches: list[Stretch]) -> list[str]:
    """Each message in a line: who, what, and the ids of calls and results."""
    lines = []
    for message in (message for stretch in stretches for message in stretch.messages):
        calls = "".join(f" !{call.id}" for call in message.calls)
        results = "".join(f" ={result.of}:{result.text}" for result in message.results)
        lines.append(f"{message.role}{': ' if message.text else ''}{message.text}{calls}{results}")
    return lines


def called(*ids: str, text: str | None = None, name: str = "f") -> dict[str, Any]:
    function = {"name": name, "arguments": "{}"}
    calls = [{"id": id, "type": "function", "function": function} for id in ids]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def result(of: str | None, text: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": of, "content": text}


def use(id: str, **input: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "f", "input": input}


def used(id: str, content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": content}


# Pairs

PAIRS = ["assistant: let me see !a !b", "tool =a:1 =b:2", "assistant: done"]


@pytest.mark.parametrize(
    "items",
    [
        [called("a", "b", text="let me see"), result("a", "1"), result("b", "2")],
        [called("a", "b", text="let me see"), result("b", "2"), result("a", "1")],
        [
            {"role": "assistant", "content": [{"type": "text", "text": "let me see"}, use("a"), use("b")]},
            {"role": "user", "content": [used("a", "1"), used("b", [{"type": "text", "text": "2"}])]},
        ],
        [
            {"role": "assistant", "content": "let me see"},
            tool_call("f", {}, id="a"),
            tool_call("f", {}, id="b"),
            observation("2", of="b"),
            observation("1", of="a"),
        ],
        [
            {"role": "assistant", "content": [{"type": "output_text", "text": "let me see"}]},
            *[{"role": "assistant", "content": [{"type": "function_call", "call_id": id, "name": "f"}]} for id in "ab"],
            {"role": "user", "content": [{"type": "function_call_output", "call_id": "a", "output": "1"}]},
            {"role": "user", "content": [{"type": "function_call_output", "call_id": "b", "output": "2"}]},
        ],
    ],
    ids=["openai", "out of order", "anthropic", "entries", "responses"],
)  # fmt: skip
def test_calls_made_together_are_one_message_in_every_shape(items: list[Any]) -> None:
    assert shown(talk(*items, {"role": "assistant", "content": "done"})) == PAIRS


def test_calls_made_one_after_the_other_stay_apart() -> None:
    found = talk(
        {"role": "user", "content": "fix it"},
        tool_call("f", {}, id="a"), observation("1", of="a"),
        tool_call("f", {}, id="b"), observation("2", of="b"),
    )  # fmt: skip
    assert shown(found) == ["user: fix it", "assistant !a", "tool =a:1", "assistant !b", "tool =b:2"]
    assert [(one.first, one.last) for one in found] == [(1, 1), (2, 3), (4, 5)]


def test_another_call_leaves_what_was_there_as_it_is() -> None:
    """What was sent before is sent again, byte for byte."""
    loop: list[Any] = [{"role": "user", "content": "fix it"}]
    before = talk(*loop)
    for number in range(5):
        loop += [tool_call("f", {"n": number}, id="again"), observation("ok", of="again")]
        after = talk(*loop)
        assert after[: len(before)] == before
        before = after


def test_ids_are_not_needed() -> None:
    found = talk(tool_call("f", {"n": 1}), tool_call("f", {"n": 2}), observation("one"), observation("two"))
    (call, answer) = found[0].messages
    assert [(result.of, result.text) for result in answer.results] == [
        (call.calls[0].id, "one"),
        (call.calls[1].id, "two"),
    ]
    assert call.calls[0].id != call.calls[1].id


def test_what_was_said_between_a_call_and_its_result_follows_both() -> None:
    found = talk(called("a"), {"role": "user", "content": "hurry"}, result("a", "1"))
    assert shown(found) == ["assistant !a", "tool =a:1", "user: hurry"]
    assert (found[0].first, found[0].last) == (1, 3)


def test_a_call_without_a_result_gets_a_stand_in() -> None:
    assert shown(talk(called("a"), {"role": "user", "content": "and?"})) == [
        "assistant !a",
        f"tool =a:{MISSING}",
        "user: and?",
    ]


def test_an_empty_result_says_so() -> None:
    for nothing in ("", "  \n", None, []):
        assert shown(talk(called("a"), result("a", nothing))) == ["assistant !a", f"tool =a:{EMPTY}"]


@pytest.mark.parametrize(
    "items",
    [
        [result("a", "<state>41</state>")],
        [result("a", "<state>41</state>"), called("a")],
        [called("b"), observation("<state>41</state>", of="a")],
    ],
)
def test_a_result_without_its_call_becomes_a_remark(items: list[Any]) -> None:
    remarks = [line for line in shown(talk(*items)) if "41" in line]
    assert len(remarks) == 1
    assert remarks[0].startswith('user: <outside from="a call before this">')
    assert "<state>" not in remarks[0]


def test_no_id_occurs_twice_and_each_is_one_that_vendors_take() -> None:
    ids = ["a", "a", "x" * 90, "x" * 90, "ünï 文", "", "a-1", "a"]
    found = talk(*[called(id) for id in ids], called(*["twin"] * 100))
    given_ids = [call.id for stretch in found for message in stretch.messages for call in message.calls]
    assert len(given_ids) == len(set(given_ids)) == 108
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,40}", id) for id in given_ids)
    answers = [result.of for stretch in found for message in stretch.messages for result in message.results]
    assert answers == given_ids


def test_names_are_such_that_vendors_take_them() -> None:
    for name in ("look up!", "文", "", None, "n" * 90, 7):
        (stretch,) = talk(called("a", name=name))  # type: ignore[arg-type]
        taken = stretch.messages[0].calls[0].name
        assert 0 < len(taken) <= 64
        assert taken.isascii()
        assert " " not in taken


# Arguments

ODD_ARGUMENTS = [
    "", " ", "not json", "[1]", "7", "null", '"x"', '{"a": NaN}', '{"a": Infinity}', '{"a": 1e999}', '{"a": "\\ud800"}',
    '{"a": 1', "[" * 100_000, '{"a":' * 100_000, "1" * 5_000, '{"a": ' + "1" * 5_000 + "}", "\x00",
    None, [1], 7, 2.5, True, [], {}, "{}",
]  # fmt: skip


@pytest.mark.parametrize("given_", ODD_ARGUMENTS, ids=lambda value: repr(value)[:20])
def test_arguments_are_always_an_object_that_can_be_sent(given_: Any) -> None:
    text = as_object(given_)
    value = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert isinstance(value, dict)
    assert json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    assert as_object(text) == text


@pytest.mark.parametrize("depth", [50, 150, 300, 900, 990, 1_500])
def test_arguments_that_are_nested_deeply_can_be_read_again(depth: int) -> None:
    assert isinstance(json.loads(as_object('{"a":' * depth + "1" + "}" * depth)), dict)
    assert isinstance(json.loads(as_object('{"a":' + "[" * depth + "]" * depth + "}")), dict)


@pytest.mark.parametrize("value", [{"city": "São Paulo", "n": [1, None, 2.5, {"x": True}]}, {}, {"a": "\u2028\x00"}])
def test_an_object_stays_what_it_is(value: dict[str, Any]) -> None:
    assert json.loads(as_object(value)) == json.loads(as_object(json.dumps(value))) == value


@given(st.text(max_size=40) | st.recursive(st.none() | st.integers() | st.floats() | st.text(max_size=5), st.lists))
def test_anything_becomes_an_object(value: Any) -> None:
    assert isinstance(msgspec.json.decode(as_object(value)), dict)


# What is not a plain message


@pytest.mark.parametrize(
    ("item", "told"),
    [
        ({"role": "user", "content": [{"type": "image", "source": {"data": "AAAA"}}]}, "[image: not shown, see t#1]"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, "[image_url: not shown, see t#1]"),
        ({"role": "user", "content": [{"type": "hologram", "text": "secret"}]}, "[hologram: not shown, see t#1]"),
        ({"role": "user", "content": [{"odd": 1}]}, "[block: not shown, see t#1]"),
        ({"role": "user", "content": {"odd": 1}}, "[block: not shown, see t#1]"),
        ({"role": "user", "content": 7}, "7"),
        ({"role": "user", "content": [None, 3, "text"]}, "3\ntext"),
        ({"role": "user", "text": "said"}, "said"),
        ({"role": "user", "parts": [{"text": "said"}]}, "said"),
        ({"role": "system", "content": "be brief"}, "system: be brief"),
        ({"role": "user", "name": "bob", "content": "hi"}, "bob: hi"),
        ({"role": "user", "utterance": "said"}, "[message: said]"),
        (["said", {"type": "text", "text": "twice"}], "said\ntwice"),
        (note("remember the milk\nand eggs"), "[note: remember the milk and eggs]"),
        (event("sent", what="a letter"), "[event: sent a letter]"),
        (note("x" * 900), f"[note: {'x' * 400}…]"),
    ],
)  # fmt: skip
def test_what_cannot_be_shown_as_it_is_leaves_a_trace(item: Any, told: str) -> None:
    assert shown(talk(item)) == [f"user: {told}"]


@pytest.mark.parametrize(
    "item",
    [
        {"role": "user", "content": ""},
        {"role": "assistant", "content": None},
        {"role": "user", "content": [{"type": "text", "text": " "}]},
        {"role": "user", "content": []},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": ""}]},
        event("holdfast.usage", tokens=7),
        event("holdfast.session", fresh=True),
        Draft("summary", {"first": 1, "last": 1, "text": "x", "by": "x"}),
    ],
    ids=lambda item: str(item)[:40],
)
def test_what_says_nothing_is_not_shown(item: Any) -> None:
    assert talk(item) == []


def test_a_turn_is_opened_by_a_user_and_by_no_remark() -> None:
    found = talk(
        note("later"), {"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}, result("a", "1")
    )
    assert [one.opens for one in found] == [False, True, False, False]


def test_an_old_function_call_is_a_call() -> None:
    call = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"n": 1}'}}
    found = talk(call, {"role": "function", "name": "f", "content": "42"})
    assert len(found) == 1
    said, answer = found[0].messages
    assert (said.calls[0].name, answer.results[0].text) == ("f", "42")


def test_a_model_speaks_by_any_name() -> None:
    for role in ("assistant", "model", "ai"):
        assert talk({"role": role, "content": "hi"})[0].messages == (Message("assistant", "hi"),)


def test_a_thought_is_not_shown_again_and_what_was_said_with_it_is() -> None:
    said = [{"type": "thinking", "thinking": "hm", "signature": "x"}, {"type": "text", "text": "four"}, use("a")]
    assert shown(talk({"role": "assistant", "content": said}))[0] == "assistant: four !a"


UNSEEN = (0x200B, 0x200E, 0xAD, 0x2061, 0x202A, 0, 0xFE0F, 0xE0100, 0x180E, 0xFEFF)


def test_nothing_unseen_hides_the_end_of_a_block() -> None:
    for unseen in (*map(chr, UNSEEN), "", " \n", chr(UNSEEN[0]) * 10_000):
        for tag in ("/outside>", "recalled>", "/STATE >", "news a='1'>"):
            for at in range(6 - tag.startswith("n") * 2):
                assert "<" not in harmless(f"a <{tag[:at]}{unseen}{tag[at:]} b"), ascii(unseen[:1])


def test_other_angles_stay() -> None:
    text = "if a < b: <p>news</p> <outsider> <statement> <br/> a<newsletter <<"
    assert harmless(text) == text
    assert harmless("<" * 50_000 + "\u200b" * 50_000).startswith("<")


# Whatever there is


@given(data=st.data())
def test_pairs_are_whole_whatever_a_log_holds(data: Any, shapes: Any) -> None:
    items = data.draw(shapes.drafts)
    stretches = talk(*items)
    assert [one.first for one in stretches] == sorted(one.first for one in stretches)
    seen: list[str] = []
    for stretch in stretches:
        first, *rest = stretch.messages
        assert first.role == "user" or not stretch.opens
        ids = [call.id for call in first.calls]
        assert [message.role for message in rest] == (["tool"] if ids else [])
        assert [result.of for message in rest for result in message.results] == ids
        assert first.text.strip() or ids
        assert all(result.text.strip() for message in rest for result in message.results)
        seen += ids
    assert len(seen) == len(set(seen))
    told = "\n".join(shown(stretches))
    for one in items:
        said = one.content.get("content") if isinstance(one.content, dict) else None
        if isinstance(said, str) and said.strip() and "<" not in said:
            assert said in told.replace("> ", "")


# Carried on

IDS = st.sampled_from(["", "a", "b"])
SAID = st.one_of(
    st.sampled_from(["hello", ""]).map(lambda text: {"role": "user", "content": text}),
    st.sampled_from(["hi", ""]).map(lambda text: {"role": "assistant", "content": text}),
    st.lists(IDS, max_size=2).map(lambda ids: called(*ids, text="see")),
    IDS.map(lambda id: result(id, "here")),
    IDS.map(lambda id: {"role": "user", "content": [used(id, "there"), {"type": "text", "text": "and?"}]}),
    IDS.map(lambda id: tool_call("f", {}, id=id)),
    IDS.map(lambda id: observation("found", of=id)),
    st.just(note("by the way")),
)


@given(st.lists(SAID, max_size=24), st.data())
def test_a_conversation_that_is_carried_on_is_the_one_that_would_be_told_at_once(said: list[Any], data: Any) -> None:
    log, told = entries(*said), None
    for _ in range(data.draw(st.integers(1, 5), "how often it is told")):
        first = data.draw(st.integers(0, min(2, len(log))), "how many entries are out of sight")
        seen = log[first : data.draw(st.integers(first, len(log)), "how far it is read")]
        left_out = data.draw(st.sampled_from([None, *seen]), "what is no longer told")
        seen = [entry for entry in seen if entry is not left_out]
        told = tell(seen, told)
        assert told.stretches == conversation(seen)


def test_what_is_settled_is_not_told_again() -> None:
    log = entries("hello", called("a"), result("a", "1"), "and now?", called("b"), "still there?")
    told = tell(log)
    assert shown(told.settled) == ["user: hello", "assistant !a", "tool =a:1"]  # b is not answered yet
    longer = [*log, *entries(*[""] * 6, result("b", "2"), called("a"), result("a", "3"))[6:]]
    further = tell(longer, told)
    assert all(one is other for one, other in zip(further.stretches, told.settled, strict=False))
    assert further.stretches == conversation(longer)  # also the second a has an id of its own


def test_what_was_told_of_another_log_is_told_anew() -> None:
    assert tell(
        entries("a", "b"), ConversationSoFar([], [Stretch(1, 1, (Message("user", "x"),))], entries("x"))
    ).stretches == talk("a", "b")
