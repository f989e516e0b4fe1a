"""The window: the newest turns that fit, beginning where it began before, and never empty for one long text."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.context.masking import mask
from holdfast.context.talk import CallPart, Message, ResultPart, Stretch, conversation
from holdfast.context.window import RecentTurns, Viewing, choose, clip, weigh
from holdfast.records import Draft, Entry, observation, tool_call


def words(text: str) -> int:
    return len(text.split())


def entries(*items: Any) -> list[Entry]:
    drafts = [item if isinstance(item, Draft) else Draft("message", item) for item in items]
    return [Entry("t", number, one.kind, one.content, None, 0, b"") for number, one in enumerate(drafts, 1)]


@cache
def masked(text: str, number: int) -> str:
    return mask(text, fetch=f"t#{number}", count=words).text


def chosen(stretches: list[Stretch], room: int, verbatim: int = 3, count: Any = words) -> RecentTurns:
    return choose(stretches, room, Viewing(verbatim, masked, room // 2), count)


def window(items: list[Any], room: int, verbatim: int = 3, count: Any = words) -> RecentTurns:
    return chosen(conversation(entries(*items)), room, verbatim, count)


def cost(found: RecentTurns, count: Any = words) -> int:
    return sum(weigh(message, count) for message in found.messages)


def turns(number: int, length: int = 8) -> list[Any]:
    said = []
    for turn in range(number):
        said += [
            {"role": "user", "content": f"question {turn} {'x ' * length}".strip()},
            {"role": "assistant", "content": f"answer {turn} {'y ' * length}".strip()},
        ]
    return said


def texts(found: RecentTurns) -> str:
    parts = []
    for message in found.messages:
        parts.append(message.text)
        parts += [call.arguments for call in message.calls] + [result.text for result in message.results]
    return "\n".join(parts)


def output(number: int) -> str:
    return "\n".join(f"test_{number}_{line} ... ok" for line in range(80))


def tools(number: int, result: str = "") -> list[Any]:
    said: list[Any] = [{"role": "user", "content": "go on"}]
    for call in range(number):
        said += [tool_call("run", {"n": call}, id=f"c{call}"), observation(result or output(call), of=f"c{call}")]
    return said


# What fits


def test_all_is_shown_where_there_is_room() -> None:
    found = window(turns(20), 10_000)
    assert (found.left, found.masked, found.clipped) == (0, 0, 0)
    assert [message.text.split()[1] for message in found.messages] == [str(turn) for turn in range(20) for _ in "qa"]
    assert found.whole == frozenset(range(1, 41))


@given(length=st.integers(0, 60), room=st.integers(0, 2_000), data=st.data())
def test_what_is_shown_fits_and_is_the_newest(length: int, room: int, data: Any, shapes: Any) -> None:
    items = [*turns(length, 4), *data.draw(shapes.drafts)]
    every = conversation(entries(*items))
    found = chosen(every, room)
    assert cost(found) <= room
    assert found.left + len(found.stretches) == len(every)
    assert [(one.first, one.last) for one in found.stretches] == [(one.first, one.last) for one in every[found.left :]]


def test_a_window_that_is_full_begins_with_a_turn() -> None:
    for room in range(60, 400, 7):
        assert window(turns(60), room).messages[0].role == "user"


def test_the_beginning_stays_while_the_conversation_goes_on() -> None:
    """Of a hundred turns a window begins anew at a few, and otherwise keeps all that it showed."""
    before = window(turns(100), 600)
    moved = 0
    for number in range(101, 201):
        after = window(turns(number), 600)
        if after.stretches[: len(before.stretches)] != before.stretches:
            moved += 1
        before = after
    assert moved <= 15


# What is too long


@pytest.mark.parametrize(
    "last",
    [
        [{"role": "user", "content": "word " * 5_000}],
        [{"role": "assistant", "content": "word " * 5_000}],
        [tool_call("write", {"text": "word " * 5_000}, id="a"), observation("ok", of="a")],
        [tool_call("read", {}, id="a"), observation("word " * 5_000, of="a")],
        [tool_call("copy", {"text": "word " * 5_000}, id="a"), observation("word " * 5_000, of="a")],
        [*[tool_call("read", {}, id=n) for n in "abcdefghi"], *[observation("w " * 300, of=n) for n in "abcdefghi"]],
        [tool_call("write", {"text": '"\n\\' * 3_000}, id="a"), observation("ok", of="a")],
    ],
    ids=["user", "assistant", "arguments", "result", "both", "many results", "escapes"],
)  # fmt: skip
@pytest.mark.parametrize("count", [words, len], ids=["words", "characters"])
def test_the_newest_is_shown_however_long_it_is(last: list[Any], count: Any) -> None:
    room = 700 if count is words else 4_000
    found = window([*turns(3), *last], room, count=count)
    assert found.stretches, "one long text emptied the window"
    assert found.stretches[-1].last == len(last) + 6
    assert cost(found, count) <= room
    for message in found.messages:
        for call in message.calls:
            assert isinstance(json.loads(call.arguments), dict)


def test_a_long_loop_of_tools_shows_its_end() -> None:
    found = window(tools(60, "word " * 50), 900)
    assert 5 < len(found.stretches) < 61
    assert found.messages[-1].results[0].of == "c59"


@given(st.text(max_size=300), st.integers(1, 80), st.sampled_from([words, len, lambda text: len(text.encode())]))
def test_a_clipped_text_is_within_its_limit(text: str, limit: int, count: Any) -> None:
    short = clip(text, limit, count)
    assert count(short) <= limit or short == "…"
    if count(text) <= limit:
        assert short == text


def test_a_clipped_text_has_its_beginning_and_its_end_and_says_how_much_is_missing() -> None:
    text = "BEGIN " + "middle " * 500 + "END"
    short = clip(text, 60, words)
    assert short.startswith("BEGIN")
    assert short.endswith("END")
    left = int(short.split("(")[1].split(" characters")[0].replace(",", ""))
    assert len(text) - left - 60 < len(short) < len(text)


def test_a_rare_script_is_not_thought_to_be_short() -> None:
    """A character may be several tokens, so its length says nothing."""
    text = "𓀀" * 100
    assert len(clip(text, 150, lambda text: 4 * len(text))) < 60


# Old output of tools


def test_output_of_long_ago_is_masked_and_says_where_it_is() -> None:
    said = [*tools(3), *turns(12)]
    found = window(said, 100_000)
    assert found.masked == 3
    short = [result.text for message in found.messages for result in message.results]
    assert all(len(text) < len(output(0)) / 4 for text in short)
    assert [f"t#{number}" in text for number, text in zip((3, 5, 7), short, strict=True)] == [True] * 3


@pytest.mark.parametrize(("verbatim", "old"), [(0, 4), (1, 4), (7, 3), (20, 0)])
def test_how_long_output_is_shown_whole_can_be_said(verbatim: int, old: int) -> None:
    said = []
    for _ in range(4):
        said += [*tools(1), *turns(3)]
    assert window([*said, *turns(2)], 100_000, verbatim).masked == old


def test_what_is_not_shown_whole_is_named() -> None:
    """So that it can be recalled: the numbers of what is masked or clipped are not among those shown."""
    said = [*tools(1), *turns(12), {"role": "user", "content": "word " * 900}, {"role": "assistant", "content": "ok"}]
    assert window(said, 1_000).whole == frozenset({1, *range(4, 28), 29})
    between = [tool_call("f", {}, id="a"), {"role": "user", "content": "word " * 900}, observation("1", of="a")]
    assert window([*between, *turns(2)], 1_000).whole == frozenset({1, *range(3, 8)})


def test_short_output_of_long_ago_stays() -> None:
    found = window([*tools(3, "exit 0"), *turns(12)], 100_000)
    assert found.masked == 0
    assert texts(found).count("exit 0") == 3


def test_what_is_masked_stays_masked_and_changes_in_steps() -> None:
    said: list[Any] = []
    changes = 0
    before: tuple[Stretch, ...] = ()
    for _ in range(60):
        said += [*tools(1), {"role": "assistant", "content": "done"}]
        after = window(said, 100_000).stretches
        changes += after[: len(before)] != before
        before = after
    assert changes <= 60 * 4 // 8 + 1


# Weighing


@given(st.lists(st.sampled_from(["a", "text", "", "long " * 30]), min_size=1, max_size=4))
def test_every_part_of_a_message_counts(parts: list[str]) -> None:
    (stretch,) = conversation(entries(*[tool_call("f", {"x": text}, id=f"i{n}") for n, text in enumerate(parts)]))
    calls, results = stretch.messages
    for one, more in pairwise([Message("assistant"), calls, calls._replace(text="more")]):
        assert weigh(one, len) < weigh(more, len)
    for call in calls.calls:
        assert weigh(calls, len) > len(call.id) + len(call.name) + len(call.arguments)
    assert weigh(results, len) > sum(len(result.of) + len(result.text) for result in results.results)


def test_ids_count_where_they_are_sent() -> None:
    call, result = CallPart("a", "f", "{}"), ResultPart("a", "done")
    short, long = (
        Message("assistant", calls=(call, call)),
        Message("assistant", calls=(call._replace(id="a" * 40), call)),
    )
    assert weigh(long, len) - weigh(short, len) == 39
    short, long = Message("tool", results=(result,)), Message("tool", results=(result._replace(of="a" * 40),))
    assert weigh(long, len) - weigh(short, len) == 39
