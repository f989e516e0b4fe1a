"""What ``add_items`` promises: all of it or nothing, and exactly as it was or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from session_suite.scene import (
    CONVERSATION,
    Item,
    Scene,
    Sessions,
    SessionStore,
    awaited,
    exactly,
    refused,
    said,
)

ODD: list[Item] = [
    {},
    {"role": "user"},
    {"content": "nobody"},
    {"role": None, "content": None},
    {"type": None, "role": "user", "content": []},
    {"type": "message"},
    {"type": "function_call", "name": "without an id"},
    {"type": "function_call", "call_id": None, "name": None, "arguments": None},
    {"type": "of tomorrow", "id": 7, "deep": {"er": [[], {}, [None, True, False, 0, -1, 0.1, "", {"": ""}]]}},
    {"__enc__": 1, "v": 1, "kid": "k", "payload": "x"},
    {"name": "item", "kind": "event", "item": {"id": 1}, "key": "k", "text": "t", "role": "user", "content": "c"},
]
"""Items that no model would send, and that must not be changed for that."""

TEXTS = {
    "empty": "",
    "white": " \t\r\n",
    "scripts": "Grüße, 東京, שלום, 🧑🏽‍🚀",
    "combining": "e\u0301 \u00e9",
    "quotes": "'; DROP TABLE x; --",
    "JSON": '{"a": 1}',
    "escapes": "\\u0000 \\n",
    "line separator": "\u2028",
}
STRANGE = {
    "NUL inside": "a\x00b",
    "NUL": "\x00",
    "controls": "\x1f\x7f\ufffe",
    "lone surrogate": "\ud800",
    "lone surrogate, deep": ["ok", {"deep": "\udfff"}],
    "lone surrogate, key": {"\ud83d": 1},
}
NUMBERS = {
    "2**53+1": 2**53 + 1,
    "2**63-1": 2**63 - 1,
    "-2**63": -(2**63),
    "2**70": 2**70,
    "1e308": 1e308,
    "5e-324": 5e-324,
    "-0.0": -0.0,
    "1.0": 1.0,
    "True": True,
}

DEEP: list[Any] = []
for _ in range(250):
    DEEP = [DEEP]
NOT_PLAIN = {
    "key 1": {1: "a"},
    "key None": {None: "a"},
    "key True": {True: "a"},
    "infinity": float("inf"),
    "set": {"a", "b"},
    "bytes": b"bytes",
    "250 levels": DEEP,
}
NO_ITEMS = {
    "text": "text",
    "one item": {"role": "user", "content": "hi"},
    "number": 7,
    "list of texts": ["text"],
    "list of lists": [["role", "user"]],
}


class AddingPromises(Scene):
    """Promises about what is added together."""

    @awaited
    async def test_adding_nothing_does_nothing(self, sessions: Sessions) -> None:
        """An empty list is not an error, and no item."""
        session = sessions()
        await session.add_items([])
        await session.add_items(said("1"))
        await session.add_items([])
        assert await session.get_items() == said("1")

    @awaited
    async def test_the_same_item_twice_is_there_twice(self, sessions: Sessions) -> None:
        """With an id as well: models that are not OpenAI's give many answers the same one."""
        session = sessions()
        twice = {"type": "message", "id": "msg", "role": "assistant", "content": "yes"}
        await session.add_items([twice, twice])
        await session.add_items([twice])
        assert await session.get_items() == [twice] * 3

    @awaited
    async def test_what_is_changed_after_adding_is_not_changed_in_the_store(self, sessions: Sessions) -> None:
        """What was added is what it was at that moment, however deep the change."""
        session = sessions()
        item: Item = {"role": "user", "content": [{"type": "input_text", "text": "hi"}]}
        await session.add_items([item])
        item["content"][0]["text"] = "changed"
        assert (await session.get_items())[0]["content"][0]["text"] == "hi"

    @awaited
    async def test_many_items_are_added_at_once(self, sessions: Sessions) -> None:
        """More than a statement has places for."""
        session = sessions()
        many = said(*(str(number) for number in range(3_000)))
        await session.add_items(many)
        assert await session.get_items() == many

    @awaited
    async def test_one_bad_item_keeps_all_of_its_batch_out(self, sessions: Sessions) -> None:
        """What is not data is refused with all that came with it, and the session goes on."""
        session = sessions()
        await session.add_items(said("before"))
        if not await refused(session.add_items([*said("1"), {"role": "user", "content": object()}, *said("2")])):
            pytest.fail("add_items took an item that holds an object, which cannot be given back")
        assert await session.get_items() == said("before")
        await session.add_items(said("after"))
        assert await session.get_items() == said("before", "after")

    @pytest.mark.parametrize("items", NO_ITEMS.values(), ids=NO_ITEMS)
    @awaited
    async def test_what_is_no_list_of_items_is_refused(self, sessions: Sessions, items: Any) -> None:
        """A text is not the list of its letters, nor an item that of its keys."""
        session = sessions()
        if not await refused(session.add_items(items)):
            pytest.fail(f"add_items({items!r}) raised nothing, and the session now holds {await session.get_items()}")
        assert await session.get_items() == []


class PlainDataPromises(Scene):
    """Promises about single items: each comes back exactly as it was, or is refused; nothing changes in silence."""

    @pytest.mark.parametrize("item", CONVERSATION, ids=lambda item: str(item.get("type", "plain")))
    @awaited
    async def test_an_item_comes_back_as_it_was(self, sessions: Sessions, item: Item) -> None:
        """Every kind of item the SDK has, with fields that are None and lists that are empty."""
        await there_and_back(sessions(), [item])

    @pytest.mark.parametrize("item", ODD)
    @awaited
    async def test_an_odd_item_comes_back_as_it_was(self, sessions: Sessions, item: Item) -> None:
        """A store does not need to understand an item."""
        await there_and_back(sessions(), [item])

    @awaited
    async def test_a_whole_conversation_comes_back_as_it_was(self, sessions: Sessions) -> None:
        """All kinds of items together, read at once and popped one by one."""
        await there_and_back(sessions(), CONVERSATION)

    @awaited
    async def test_a_big_item_comes_back_as_it_was(self, sessions: Sessions) -> None:
        """Some megabytes, as a tool may well return."""
        session, text = sessions(), "naïve 🦊 " * 300_000
        await session.add_items([{"type": "function_call_output", "call_id": "c", "output": text}])
        back = (await session.get_items())[0]["output"]
        if back != text:  # nobody wants to read the difference of megabytes
            pytest.fail(f"{len(back):,} characters came back for {len(text):,}, and they are not the same")

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
    @awaited
    async def test_a_text_comes_back_as_it_was(self, sessions: Sessions, text: str) -> None:
        """Nothing is trimmed, normalised or read as anything but text."""
        session = sessions()
        await session.add_items(said(text))
        assert await session.get_items() == said(text)

    @pytest.mark.parametrize("content", STRANGE.values(), ids=STRANGE)
    @awaited
    async def test_a_strange_text_comes_back_or_is_refused(self, sessions: Sessions, content: Any) -> None:
        """Some databases cannot hold NUL, and UTF-8 no half of a pair: then the caller hears of it."""
        await exact_or_refused(sessions(), content)

    @pytest.mark.parametrize("content", NUMBERS.values(), ids=NUMBERS)
    @awaited
    async def test_a_number_comes_back_or_is_refused(self, sessions: Sessions, content: Any) -> None:
        """No digit is lost, no sign, and a whole number does not become a fraction."""
        await exact_or_refused(sessions(), content)

    @pytest.mark.parametrize("content", NOT_PLAIN.values(), ids=NOT_PLAIN)
    @awaited
    async def test_what_is_not_plain_comes_back_or_is_refused(self, sessions: Sessions, content: Any) -> None:
        """What JSON would change, such as a key that is a number, is not changed."""
        await exact_or_refused(sessions(), content)


async def there_and_back(session: SessionStore, items: list[Item]) -> None:
    """Add items: they are read, and popped, exactly as they were."""
    await session.add_items(items)
    assert exactly(await session.get_items()) == exactly(items)
    assert exactly([await session.pop_item() for _ in items]) == exactly(items[::-1])


async def exact_or_refused(session: SessionStore, content: Any) -> None:
    """Add an item: it comes back as it was, or the add raises and leaves the session as it was, and usable."""
    await session.add_items(said("before"))
    added = [*said("first"), {"role": "user", "content": content}]
    kept = said("before") if await refused(session.add_items(added)) else [*said("before"), *added]
    assert exactly(await session.get_items()) == exactly(kept)
    await session.add_items(said("after"))
    assert exactly(await session.get_items()) == exactly([*kept, *said("after")])
