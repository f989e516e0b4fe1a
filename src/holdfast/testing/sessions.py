"""What a session store promises, as tests: the four verbs of the OpenAI Agents SDK's ``Session``, for every store.

A store is proved by a class of a few lines::

    class TestMySession(SessionSuite):
        def make(self, place, session_id):
            return MySession(session_id, path=place / "sessions.db")

``make`` opens the session of an id on the store at ``place``; asked twice for the same, it opens what is there, as
another handle or another process would. A store that forgets when it is closed says ``durable = False``, and those
promises are skipped. Nothing of the SDK is needed, and of pytest no plugin. Deliberately absent: what a store offers
beyond the four verbs; how items look, apart from being plain data; speed; and killed processes, which need to know how
a store is reached.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol

import pytest

Item = Any  # a dict of plain data; the SDK has a union of some dozens of typed dicts for it


class SessionStore(Protocol):
    """What is tested: the newest items in order, adding, taking back the newest, beginning anew."""

    async def get_items(self, limit: int | None = None) -> list[Item]: ...

    async def add_items(self, items: list[Item]) -> None: ...

    async def pop_item(self) -> Item | None: ...

    async def clear_session(self) -> None: ...


class Sessions:
    """Opens sessions of one store, and closes them at the end of a test."""

    def __init__(self, make: Callable[[str], SessionStore]) -> None:
        self._make, self._open = make, list[SessionStore]()

    def __call__(self, session_id: str = "trip") -> SessionStore:
        session = self._make(session_id)
        self._open.append(session)
        return session

    async def close(self) -> None:
        """Close all that are open, as far as they can be closed."""
        while self._open:
            closed = getattr(self._open.pop(), "close", lambda: None)()
            if inspect.isawaitable(closed):
                await closed


def awaited(test: Callable[[Any, Sessions], Awaitable[None]]) -> Callable[[Any, Path], None]:
    """Run an async test in a loop of its own, with sessions in an empty place."""

    @functools.wraps(test)
    def run(self: Any, tmp_path: Path) -> None:
        async def work() -> None:
            sessions = Sessions(functools.partial(self.make, tmp_path))
            try:
                await test(self, sessions)
            finally:
                await sessions.close()

        asyncio.run(work())

    del run.__dict__["__wrapped__"]  # pytest reads from the signature what to pass
    return run


def said(*texts: str, role: str = "user") -> list[Item]:
    """Messages, one for each text."""
    return [{"role": role, "content": text} for text in texts]


def same(one: Any, other: Any) -> bool:
    """Deeply equal, and of the same types: 1, 1.0 and True are three things."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return repr(one) == repr(other) if isinstance(one, float) else bool(one == other)


async def exact_or_loud(session: SessionStore, content: Any) -> None:
    """Add an item: it comes back as it was, or the add raises and leaves the session as it was, and usable."""
    await session.add_items(said("before"))
    kept = said("before")
    item = {"role": "user", "content": content}
    try:
        await session.add_items([*said("first"), item])
    except Exception:  # whatever a store raises: what counts is that the caller hears of it
        pass
    else:
        kept += [*said("first"), item]
    assert same(await session.get_items(), kept)
    await session.add_items(said("after"))
    assert same(await session.get_items(), [*kept, *said("after")])


CONVERSATION: list[Item] = [
    {"role": "user", "content": "What is the weather in Oslo?"},
    {"role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
    {"type": "reasoning", "id": "rs_1", "summary": [], "content": None, "encrypted_content": "gAAA", "status": None},
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": '{"city": "Oslo"}'},
    {"type": "function_call_output", "call_id": "call_1", "output": "rain", "status": "completed"},
    {"type": "function_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "ø"}], "id": None},
    {"type": "custom_tool_call", "call_id": "call_3", "name": "shell", "input": "ls -l\n"},
    {"type": "custom_tool_call_output", "call_id": "call_3", "output": ""},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "Oslo"}},
    {
        "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "Rain.", "annotations": [], "logprobs": [], "score": 0.5}],
    },
    {"type": "item_reference", "id": "msg_0"},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "gBBB"},
]  # fmt: skip
"""One item of every shape that matters."""

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

DEEP: list[Any] = []
for _ in range(250):
    DEEP = [DEEP]


class ReadingPromises:
    """What ``get_items`` promises."""

    @awaited
    async def test_a_new_session_is_empty(self, sessions: Sessions) -> None:
        session = sessions()
        assert await session.get_items() == []
        assert await session.get_items(limit=5) == []

    @awaited
    async def test_items_come_back_in_the_order_they_were_added(self, sessions: Sessions) -> None:
        session = sessions()
        await session.add_items(said("1", "2"))
        await session.add_items(said("3"))
        await session.add_items(said("4", "5", role="assistant"))
        assert await session.get_items() == [*said("1", "2", "3"), *said("4", "5", role="assistant")]

    @awaited
    async def test_a_limit_gives_the_newest_in_order(self, sessions: Sessions) -> None:
        session = sessions()
        await session.add_items(said("1", "2", "3"))
        await session.add_items(said("4", "5"))
        assert await session.get_items(1) == said("5")
        assert await session.get_items(limit=3) == said("3", "4", "5")
        assert await session.get_items(limit=5) == await session.get_items(limit=6) == said("1", "2", "3", "4", "5")

    @awaited
    async def test_a_limit_of_zero_gives_nothing(self, sessions: Sessions) -> None:
        session = sessions()
        await session.add_items(said("1"))
        assert await session.get_items(limit=0) == []

    @awaited
    async def test_every_limit_of_a_long_session_is_right(self, sessions: Sessions) -> None:
        session = sessions()
        everything = said(*(str(number) for number in range(1_234)))
        await session.add_items(everything)
        for limit in (1, 499, 500, 501, 999, 1_000, 1_001, 1_233, 1_234, 1_235, 2_147_483_647):
            assert await session.get_items(limit) == everything[-limit:]

    @awaited
    async def test_what_was_read_is_the_readers_own(self, sessions: Sessions) -> None:
        """Changing what came back changes nothing in the store."""
        session = sessions()
        await session.add_items([{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}])
        (await session.get_items())[0]["content"][0]["text"] = "changed"
        assert (await session.get_items())[0]["content"][0]["text"] == "hi"


class WritingPromises:
    """What ``add_items`` promises."""

    @awaited
    async def test_adding_nothing_does_nothing(self, sessions: Sessions) -> None:
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

    @pytest.mark.parametrize("at", range(len(CONVERSATION)), ids=lambda at: str(CONVERSATION[at].get("type", "plain")))
    def test_an_item_comes_back_as_it_was(self, at: int, tmp_path: Path) -> None:
        self._there_and_back(tmp_path, [CONVERSATION[at]])

    @pytest.mark.parametrize("at", range(len(ODD)))
    def test_an_odd_item_comes_back_as_it_was(self, at: int, tmp_path: Path) -> None:
        self._there_and_back(tmp_path, [ODD[at]])

    def test_a_whole_conversation_comes_back_as_it_was(self, tmp_path: Path) -> None:
        self._there_and_back(tmp_path, CONVERSATION)

    def _there_and_back(self, place: Path, items: list[Item]) -> None:
        async def work(self: Any, sessions: Sessions) -> None:
            session = sessions()
            await session.add_items(items)
            assert same(await session.get_items(), items)
            assert same([await session.pop_item() for _ in items], items[::-1])

        awaited(work)(self, place)

    @awaited
    async def test_what_is_changed_after_adding_is_not_changed_in_the_store(self, sessions: Sessions) -> None:
        session = sessions()
        item: Item = {"role": "user", "content": [{"type": "input_text", "text": "hi"}]}
        await session.add_items([item])
        item["content"][0]["text"] = "changed"
        assert (await session.get_items())[0]["content"][0]["text"] == "hi"

    @awaited
    async def test_a_big_item_comes_back_as_it_was(self, sessions: Sessions) -> None:
        session, text = sessions(), "naïve 🦊 " * 300_000
        await session.add_items([{"type": "function_call_output", "call_id": "c", "output": text}])
        assert (await session.get_items())[0]["output"] == text

    @awaited
    async def test_many_items_are_added_at_once(self, sessions: Sessions) -> None:
        session = sessions()
        many = said(*(str(number) for number in range(3_000)))
        await session.add_items(many)
        assert await session.get_items() == many

    @awaited
    async def test_one_bad_item_keeps_all_of_its_batch_out(self, sessions: Sessions) -> None:
        session = sessions()
        await session.add_items(said("before"))
        with pytest.raises(Exception):  # noqa: B017, PT011 - each store has its own
            await session.add_items([*said("1", "2"), {"role": "user", "content": object()}, *said("3")])
        assert await session.get_items() == said("before")
        await session.add_items(said("after"))
        assert await session.get_items() == said("before", "after")

    @pytest.mark.parametrize("items", ["text", {"role": "user", "content": "hi"}, 7, ["text"], [["role", "user"]]])
    def test_what_is_no_list_of_items_is_refused(self, items: Any, tmp_path: Path) -> None:
        async def work(self: Any, sessions: Sessions) -> None:
            session = sessions()
            with pytest.raises(Exception):  # noqa: B017, PT011 - each store has its own
                await session.add_items(items)
            assert await session.get_items() == []

        awaited(work)(self, tmp_path)


class TextPromises:
    """Texts and numbers come back exactly as they were, or are refused; nothing is changed in silence."""

    @pytest.mark.parametrize(
        "text",
        [
            "",
            " \t\r\n",
            "Grüße, 東京, שלום, 🧑🏽‍🚀",
            "e\u0301 \u00e9",
            "'; DROP TABLE x; --",
            '{"a": 1}',
            "\\u0000 \\n",
            "\u2028",
        ],
    )
    def test_a_text_comes_back_as_it_was(self, text: str, tmp_path: Path) -> None:
        async def work(self: Any, sessions: Sessions) -> None:
            session = sessions()
            await session.add_items(said(text))
            assert await session.get_items() == said(text)

        awaited(work)(self, tmp_path)

    @pytest.mark.parametrize(
        "content",
        ["a\x00b", "\x00", "\x1f\x7f\ufffe", "\ud800", ["ok", {"deep": "\udfff"}], {"\ud83d": 1}],
        ids=["NUL inside", "NUL", "controls", "lone surrogate", "lone surrogate, deep", "lone surrogate, key"],
    )
    def test_a_strange_text_comes_back_or_is_refused(self, content: Any, tmp_path: Path) -> None:
        self._exact_or_loud(content, tmp_path)

    @pytest.mark.parametrize(
        "content",
        [2**53 + 1, 2**63 - 1, -(2**63), 2**70, 1e308, 5e-324, -0.0, 1.0, True],
        ids=["2**53+1", "2**63-1", "-2**63", "2**70", "1e308", "5e-324", "-0.0", "1.0", "True"],
    )
    def test_a_number_comes_back_or_is_refused(self, content: Any, tmp_path: Path) -> None:
        self._exact_or_loud(content, tmp_path)

    @pytest.mark.parametrize(
        "content",
        [{1: "a"}, {None: "a"}, {True: "a"}, float("inf"), {"a", "b"}, b"bytes", DEEP],
        ids=["key 1", "key None", "key True", "infinity", "set", "bytes", "250 levels"],
    )
    def test_what_is_not_plain_comes_back_or_is_refused(self, content: Any, tmp_path: Path) -> None:
        self._exact_or_loud(content, tmp_path)

    def _exact_or_loud(self, content: Any, place: Path) -> None:
        async def work(self: Any, sessions: Sessions) -> None:
            await exact_or_loud(sessions(), content)

        awaited(work)(self, place)


class PoppingPromises:
    """What ``pop_item`` and ``clear_session`` promise."""

    @awaited
    async def test_nothing_can_be_popped_from_an_empty_session(self, sessions: Sessions) -> None:
        session = sessions()
        assert await session.pop_item() is None
        await session.add_items(said("1"))
        assert await session.pop_item() == said("1")[0]
        assert await session.pop_item() is None
        assert await session.get_items() == []

    @awaited
    async def test_the_newest_is_popped_first(self, sessions: Sessions) -> None:
        session = sessions()
        await session.add_items(said("1", "2"))
        await session.add_items(said("3"))
        assert [await session.pop_item() for _ in range(4)] == [*said("3", "2", "1"), None]

    @awaited
    async def test_a_session_goes_on_after_a_pop(self, sessions: Sessions) -> None:
        session = sessions()
        await session.add_items(said("1", "2", "3"))
        assert await session.pop_item() == said("3")[0]
        await session.add_items(said("4"))
        assert await session.get_items() == said("1", "2", "4")
        assert await session.get_items(limit=2) == said("2", "4")
        assert [await session.pop_item(), await session.pop_item()] == said("4", "2")
        await session.add_items(said("5"))
        assert await session.get_items() == said("1", "5")

    @awaited
    async def test_what_was_popped_can_be_added_again(self, sessions: Sessions) -> None:
        """So does the SDK when it tries a turn again."""
        session = sessions()
        await session.add_items(CONVERSATION)
        popped = [await session.pop_item() for _ in range(3)]
        await session.add_items(popped[::-1])
        assert same(await session.get_items(), CONVERSATION)

    @awaited
    async def test_a_cleared_session_is_empty_and_can_be_used_again(self, sessions: Sessions) -> None:
        session = sessions()
        await session.add_items(said("1", "2"))
        await session.clear_session()
        assert await session.get_items() == []
        assert await session.pop_item() is None
        await session.add_items(said("3"))
        assert await session.get_items() == said("3")
        assert [await session.pop_item(), await session.pop_item()] == [*said("3"), None]

    @awaited
    async def test_clearing_an_empty_session_is_no_error(self, sessions: Sessions) -> None:
        session = sessions()
        await session.clear_session()
        await session.add_items(said("1"))
        await session.clear_session()
        await session.clear_session()
        assert await session.get_items() == []


class IsolationPromises:
    """Sessions of other ids are other sessions."""

    IDS = (
        "a",
        "A",
        "ab",
        "a ",
        " a",
        "a/b",
        "a%",
        "a_",
        "ä",
        "a\u0308",
        "'; --",
        '"',
        "a:b",
        "*",
        "[a]",
        "东",
        "🦊",
        "x" * 200,
    )

    @awaited
    async def test_every_id_is_a_session_of_its_own(self, sessions: Sessions) -> None:
        for id in self.IDS:
            await sessions(id).add_items(said(f"of {id}"))
        for id in self.IDS:
            assert await sessions(id).get_items() == said(f"of {id}")

    @awaited
    async def test_popping_and_clearing_leave_other_sessions_alone(self, sessions: Sessions) -> None:
        one, other = sessions("a"), sessions("ab")
        await other.add_items(said("1", "2"))
        await one.add_items(said("3"))
        assert [await one.pop_item(), await one.pop_item()] == [*said("3"), None]
        await one.clear_session()
        assert await other.get_items() == said("1", "2")

    @awaited
    async def test_two_handles_of_one_id_are_one_session(self, sessions: Sessions) -> None:
        one, other = sessions(), sessions()
        await one.add_items(said("1"))
        await other.add_items(said("2"))
        assert await one.get_items() == await other.get_items() == said("1", "2")
        assert await one.pop_item() == said("2")[0]
        assert await other.get_items() == said("1")
        await other.clear_session()
        assert await one.get_items() == []


class ConcurrencyPromises:
    """Many at once: nothing is lost, nothing is given out twice."""

    @awaited
    async def test_no_add_of_many_at_once_is_lost(self, sessions: Sessions) -> None:
        """And what was added together stands together, in order."""
        handles = [sessions() for _ in range(4)]
        batches = [said(*(f"{number}.{part}" for part in range(3))) for number in range(40)]
        await asyncio.gather(*(handles[at % 4].add_items(batch) for at, batch in enumerate(batches)))
        found = await handles[0].get_items()
        stood = [found[at : at + 3] for at in range(0, len(found), 3)]
        assert sorted(stood, key=str) == sorted(batches, key=str)

    @awaited
    async def test_no_item_is_popped_twice(self, sessions: Sessions) -> None:
        handles = [sessions() for _ in range(4)]
        everything = [str(number) for number in range(24)]
        await handles[0].add_items(said(*everything))
        popped = await asyncio.gather(*(handles[at % 4].pop_item() for at in range(30)))
        assert sorted(item["content"] for item in popped if item is not None) == sorted(everything)
        assert popped.count(None) == 6
        assert await handles[0].get_items() == []

    @awaited
    async def test_what_was_popped_and_what_is_left_is_what_was_added(self, sessions: Sessions) -> None:
        handles = [sessions() for _ in range(4)]
        added = [f"new {number}" for number in range(20)]
        await handles[0].add_items(said("old 1", "old 2"))
        done = await asyncio.gather(
            *(handles[at % 4].add_items(said(text)) for at, text in enumerate(added)),
            *(handles[at % 4].pop_item() for at in range(10)),
        )
        popped, left = [item for item in done if item is not None], await handles[0].get_items()
        texts = [item["content"] for item in (*popped, *left)]
        assert sorted(texts) == sorted([*added, "old 1", "old 2"])

    @awaited
    async def test_a_reader_sees_whole_batches(self, sessions: Sessions) -> None:
        writer, reader = sessions(), sessions()
        writing = asyncio.ensure_future(self._write(writer))
        while not writing.done():
            found = [item["content"] for item in await reader.get_items()]
            assert found == [str(number) for number in range(len(found))]
            assert len(found) % 5 == 0
            await asyncio.sleep(0)  # a store that never waits must not keep the writer from writing
        await writing

    @staticmethod
    async def _write(session: SessionStore) -> None:
        for first in range(0, 100, 5):
            await session.add_items(said(*(str(number) for number in range(first, first + 5))))

    @awaited
    async def test_a_cancelled_add_wrote_all_or_nothing(self, sessions: Sessions) -> None:
        """And nothing lands behind the back of the caller once it was told of the cancellation."""
        for turns in (0, 1, 2, 3, 5, 10, 100):
            session = sessions(f"cancelled after {turns}")
            adding = asyncio.ensure_future(session.add_items(said("1", "2", "3")))
            await self._cancelled(adding, turns)
            found = await session.get_items()
            assert found in ([], said("1", "2", "3"))
            await session.add_items(said("4"))
            assert await session.get_items() == [*found, *said("4")]

    @awaited
    async def test_a_cancelled_pop_takes_one_or_none(self, sessions: Sessions) -> None:
        for turns in (0, 1, 2, 3, 5, 10, 100):
            session = sessions(f"cancelled after {turns}")
            await session.add_items(said("1", "2", "3"))
            await self._cancelled(asyncio.ensure_future(session.pop_item()), turns)
            assert await session.get_items() in (said("1", "2"), said("1", "2", "3"))
            await session.add_items(said("4"))
            assert (await session.get_items())[-1:] == said("4")

    @staticmethod
    async def _cancelled(task: asyncio.Future[Any], turns: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})


class RestartPromises:
    """What was there before everything was closed is there after it is opened again."""

    durable = True

    @awaited
    async def test_items_outlive_a_restart(self, sessions: Sessions) -> None:
        self._skip_unless_durable()
        await sessions().add_items(CONVERSATION)
        await sessions.close()
        assert same(await sessions().get_items(), CONVERSATION)

    @awaited
    async def test_what_was_taken_away_stays_away_after_a_restart(self, sessions: Sessions) -> None:
        self._skip_unless_durable()
        await sessions("cleared").add_items(said("1"))
        await sessions("cleared").clear_session()
        await sessions().add_items(said("1", "2", "3"))
        await sessions().pop_item()
        await sessions.close()
        assert await sessions("cleared").get_items() == []
        session = sessions()
        assert await session.get_items() == said("1", "2")
        await session.add_items(said("4"))
        assert await session.get_items() == said("1", "2", "4")

    def _skip_unless_durable(self) -> None:
        if not self.durable:
            pytest.skip("this store forgets when it is closed, and says so")


class SessionSuite(
    ReadingPromises,
    WritingPromises,
    TextPromises,
    PoppingPromises,
    IsolationPromises,
    ConcurrencyPromises,
    RestartPromises,
):
    """Every promise of a session store. Subclass it, and supply ``make``."""

    def make(self, place: Path, session_id: str) -> SessionStore:
        """Open the session of this id, on the store at this place."""
        raise NotImplementedError(f"{type(self).__name__} is to say how a session is opened: make(place, session_id)")
