"""The memory tool under the SDK's own runner, with many writers, over restarts, and what can be undone."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic
from anthropic.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError

import holdfast
from holdfast.adapters.anthropic import AsyncHoldfastMemoryTool, HoldfastMemoryTool
from holdfast.errors import Conflict, Invalid, Misconfigured, NotFound

HAVE = "/memories/facts.md"


def do(tool: HoldfastMemoryTool, **command: Any) -> str:
    answer = tool.call(command)
    assert isinstance(answer, str)
    return answer


# Under the SDK: a loopback server plays the Messages API


class Api:
    """What to answer, in order, and what was asked."""

    def __init__(self, *replies: list[dict[str, Any]]) -> None:
        self.replies, self.asked = list(replies), list[dict[str, Any]]()
        self.url = ""

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(request)
        content = self.replies.pop(0)
        calls = any(block["type"] == "tool_use" for block in content)
        return {
            "id": f"msg_{len(self.asked)}", "type": "message", "role": "assistant", "model": request["model"],
            "content": content, "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip

    def results(self) -> list[tuple[str, bool]]:
        """What the tools gave back: the words, and whether they are an error."""
        messages = [message["content"] for request in self.asked for message in request["messages"]]
        blocks = [block for content in messages if isinstance(content, list) for block in content]
        found = {block["tool_use_id"]: block for block in blocks if block["type"] == "tool_result"}
        return [(as_words(block["content"]), bool(block.get("is_error"))) for block in found.values()]


def as_words(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def use(number: int, **input: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "memory", "input": input}


def say(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


@contextmanager
def playing(api: Api) -> Iterator[Api]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            body = json.dumps(api.answer(request)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    api.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def script() -> Api:
    return Api(
        [use(1, command="view", path="/memories")],
        [use(2, command="create", path=HAVE, file_text="seat: aisle\n"), use(3, command="view", path="/memories/none")],
        [use(4, command="str_replace", path=HAVE, old_str="aisle", new_str="window")],
        [say("Noted.")],
    )


EXPECTED = [
    (
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:\n4K\t/memories",
        False,
    ),
    (f"File created successfully at: {HAVE}", False),
    ("The path /memories/none does not exist. Please provide a valid path.", True),
    (
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        "     1\tseat: window\n     2\t",
        False,
    ),
]
ASK: list[Any] = [{"role": "user", "content": "Remember that I like the window."}]


def test_the_runner_of_the_sdk(store: holdfast.Store) -> None:
    with playing(script()) as api, Anthropic(api_key="none", base_url=api.url) as client:
        tool = HoldfastMemoryTool(store, user="ana", cache_control={"type": "ephemeral"})
        runner = client.beta.messages.tool_runner(model="claude-x", max_tokens=99, messages=ASK, tools=[tool])
        assert runner.until_done().content[0].text == "Noted."  # type: ignore[union-attr]
        memory = {"type": "memory_20250818", "name": "memory", "cache_control": {"type": "ephemeral"}}
        assert api.asked[0]["tools"] == [memory]
        assert api.results() == EXPECTED
    assert store.folder("memories", user="ana").read("facts.md").content == "seat: window\n"


def test_the_async_runner_of_the_sdk(store: holdfast.Store) -> None:
    async def run(api: Api) -> None:
        async with AsyncAnthropic(api_key="none", base_url=api.url) as client:
            tool = AsyncHoldfastMemoryTool(store, agent="travel", folder="notes")
            runner = client.beta.messages.tool_runner(model="claude-x", max_tokens=99, messages=ASK, tools=[tool])
            await runner.until_done()

    with playing(script()) as api:
        asyncio.run(run(api))
        assert api.results() == EXPECTED
    assert store.folder("notes", agent="travel").read("facts.md").content == "seat: window\n"


def test_they_are_tools_of_the_sdk(store: holdfast.Store) -> None:
    assert isinstance(HoldfastMemoryTool(store), BetaAbstractMemoryTool)
    assert isinstance(AsyncHoldfastMemoryTool(store), BetaAsyncAbstractMemoryTool)


# Whose it is, and where


def test_memories_of_others_are_not_seen(store: holdfast.Store) -> None:
    ana, bo = HoldfastMemoryTool(store, user="ana"), HoldfastMemoryTool(store, user="bo")
    work = HoldfastMemoryTool(store, user="ana", agent="work")
    other = HoldfastMemoryTool(store, user="ana", folder="other")
    do(ana, command="create", path=HAVE, file_text="of ana")
    for tool in (bo, work, other):
        with pytest.raises(ToolError, match="does not exist"):
            do(tool, command="view", path=HAVE)
        do(tool, command="create", path=HAVE, file_text="mine")
    assert do(ana, command="view", path=HAVE).endswith("of ana")
    store.erase(user="ana")
    assert do(bo, command="view", path=HAVE).endswith("mine")
    assert "facts" not in do(ana, command="view", path="/memories")


@pytest.mark.every_engine
def test_a_restart_forgets_nothing_and_an_address_is_opened_and_closed(address: str) -> None:
    with HoldfastMemoryTool(address, user="ana") as tool:
        do(tool, command="create", path="/memories/a/b.md", file_text="kept\n")
        do(tool, command="insert", path="/memories/a/b.md", insert_line=1, insert_text="and this")
    with pytest.raises(Misconfigured, match="closed"):
        do(tool, command="view", path="/memories")
    with HoldfastMemoryTool(address, user="ana") as tool:
        assert do(tool, command="view", path="/memories/a/b.md").endswith("     1\tkept\n     2\tand this\n     3\t")
        assert [file.content for file in tool.history("/memories/a/b.md")] == ["kept\n", "kept\nand this\n"]


def test_a_store_that_was_given_stays_open(store: holdfast.Store) -> None:
    with HoldfastMemoryTool(store) as tool:
        do(tool, command="create", path=HAVE, file_text="x")
    assert store.folder("memories").read("facts.md").content == "x"


def test_an_async_store_is_taken_too(tmp_path: Path) -> None:
    async def run() -> str:
        async with await holdfast.aio.open(tmp_path / "a.db") as store, AsyncHoldfastMemoryTool(store) as tool:
            await tool.call({"command": "create", "path": HAVE, "file_text": "x"})
            assert [file.version for file in await tool.history(HAVE)] == [1]
            await tool.call({"command": "delete", "path": HAVE})
            assert await tool.restore(HAVE) == [HAVE]
            answer = await tool.call({"command": "view", "path": HAVE})
            assert await tool.erase() == 1
            return str(answer)

    assert asyncio.run(run()).endswith("     1\tx")


def test_what_is_no_store_is_refused() -> None:
    for bad in (None, 7, b"a.db"):
        with pytest.raises(Invalid, match="give a store"):
            HoldfastMemoryTool(bad)  # type: ignore[arg-type]


def test_what_others_keep_in_the_folder_is_left_alone(store: holdfast.Store) -> None:
    folder, tool = store.folder("memories"), HoldfastMemoryTool(store)
    folder.write("data.json", {"a": [1, 2]})
    folder.write("raw", b"\xff\x00")
    folder.write("/odd//path", "x")
    folder.write("tagged", "text", tags=["kept"])
    listing = do(tool, command="view", path="/memories")
    assert [line.split("\t")[1] for line in listing.splitlines()[2:]] == [
        "/memories/data.json",
        "/memories/raw",
        "/memories/tagged",
    ]
    for path in ("/memories/data.json", "/memories/raw"):
        with pytest.raises(ToolError, match="Unsupported file type"):
            do(tool, command="view", path=path)
        with pytest.raises(ToolError, match="Unsupported file type"):
            do(tool, command="insert", path=path, insert_line=0, insert_text="x")
    do(tool, command="str_replace", path="/memories/tagged", old_str="text", new_str="new")
    do(tool, command="rename", old_path="/memories/tagged", new_path="/memories/t")
    assert [file.content for file in folder.files(tag="kept")] == ["new"]
    do(tool, command="rename", old_path="/memories/raw", new_path="/memories/moved")
    assert folder.read("moved").content == b"\xff\x00"


# What can be undone


def test_every_change_is_in_the_history(store: holdfast.Store) -> None:
    tool = HoldfastMemoryTool(store)
    do(tool, command="create", path=HAVE, file_text="one")
    do(tool, command="str_replace", path=HAVE, old_str="one", new_str="two")
    do(tool, command="delete", path=HAVE)
    do(tool, command="create", path=HAVE, file_text="three")
    told = [(file.version, file.content, file.deleted) for file in tool.history("/memories/./facts.md")]
    assert told == [(1, "one", False), (2, "two", False), (3, None, True), (4, "three", False)]
    assert tool.restore(HAVE, version=1) == [HAVE]
    assert do(tool, command="view", path=HAVE).endswith("     1\tone")
    assert len(tool.history(HAVE)) == 5
    with pytest.raises(NotFound, match="version 9"):
        tool.restore(HAVE, version=9)
    with pytest.raises(NotFound, match="version 3"):
        tool.restore(HAVE, version=3)
    assert tool.history("/memories/never") == []
    assert tool.history("/memories") == []


def test_a_deletion_is_undone_as_a_whole_and_no_other(store: holdfast.Store) -> None:
    tool = HoldfastMemoryTool(store)
    for path in ("/memories/p/a", "/memories/p/q/b", "/memories/p/early"):
        do(tool, command="create", path=path, file_text=path)
    do(tool, command="delete", path="/memories/p/early")
    before = do(tool, command="view", path="/memories")
    do(tool, command="delete", path="/memories/p")
    assert sorted(tool.restore("/memories")) == ["/memories/p/a", "/memories/p/q/b"]
    assert do(tool, command="view", path="/memories") == before
    assert do(tool, command="view", path="/memories/p/q/b").endswith("/memories/p/q/b")
    assert tool.restore("/memories/p/early") == ["/memories/p/early"]
    with pytest.raises(NotFound, match="nothing was deleted"):
        tool.restore("/memories")


@pytest.mark.every_engine
def test_what_is_erased_cannot_be_brought_back(store: holdfast.Store) -> None:
    tool, secret = HoldfastMemoryTool(store, user="ana"), "the secret is mauve"
    do(tool, command="create", path="/memories/a/b", file_text=secret)
    do(tool, command="delete", path="/memories/a/b")
    do(tool, command="create", path="/memories/a/c", file_text=secret)
    do(tool, command="create", path="/memories/ab", file_text="stays")
    assert tool.erase("/memories/a") == 2
    assert tool.history("/memories/a/b") == []
    with pytest.raises(NotFound):
        tool.restore("/memories")
    assert do(tool, command="view", path="/memories").splitlines()[2:] == ["5B\t/memories/ab"]
    do(tool, command="delete", path="/memories/ab")
    assert tool.clear_all_memory() == "All memory cleared"
    assert tool.history("/memories/ab") == []
    assert store.verify().ok


@pytest.mark.every_engine
def test_what_is_erased_goes_in_one_commit(store: holdfast.Store) -> None:
    """A crash in between must not leave half of it; and a commit for each file would take minutes for thousands."""
    tool = HoldfastMemoryTool(store)
    for name in ("a", "b/c", "b/d"):
        do(tool, command="create", path=f"/memories/{name}", file_text=name)
    do(tool, command="delete", path="/memories/b/d")
    before = store.core.engine.head(store.tenant)
    assert tool.erase() == 3
    assert store.core.engine.head(store.tenant) == before + 1
    assert tool.erase() == 0
    do(tool, command="create", path="/memories/a", file_text="begun anew")
    assert [file.content for file in tool.history("/memories/a")] == ["begun anew"]


def test_nothing_is_brought_back_over_what_is_there_by_now(store: holdfast.Store) -> None:
    tool = HoldfastMemoryTool(store)
    for first, second in (("/memories/a", "/memories/a/b"), ("/memories/c/d", "/memories/c")):
        do(tool, command="create", path=first, file_text="before")
        do(tool, command="delete", path=first)
        if second == "/memories/c":
            do(tool, command="delete", path="/memories/c")  # the directory that was left empty
        do(tool, command="create", path=second, file_text="by now")
        listing = do(tool, command="view", path="/memories")
        for version in (None, 1):
            with pytest.raises(Conflict, match="is in the way of"):
                tool.restore(first, version=version)
        assert do(tool, command="view", path="/memories") == listing
        do(tool, command="delete", path=second.removesuffix("/b"))
        assert tool.restore(first, version=1) == [first]
        assert do(tool, command="view", path=first).endswith("before")


@pytest.mark.every_engine
def test_what_is_erased_while_a_deletion_is_undone_is_passed_by(
    store: holdfast.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool, other = HoldfastMemoryTool(store), HoldfastMemoryTool(store)
    do(tool, command="create", path="/memories/gone", file_text="gone")
    do(tool, command="create", path="/memories/kept", file_text="kept")
    do(tool, command="delete", path="/memories/kept")
    folder = tool._shelf._folder
    history = folder.history

    def late(path: str) -> list[holdfast.types.File]:
        if path == "gone":
            other.erase("/memories/gone")
        return history(path)

    monkeypatch.setattr(folder, "history", late)
    assert tool.restore("/memories") == ["/memories/kept"]


def test_a_bad_path_is_refused_for_the_owner_too(store: holdfast.Store) -> None:
    tool = HoldfastMemoryTool(store)
    for work in (tool.history, tool.restore, tool.erase):
        with pytest.raises(Invalid, match="would escape"):
            work("/memories/../x")


# Many at once


@pytest.mark.every_engine
def test_two_who_edit_one_file_lose_nothing(store: holdfast.Store) -> None:
    tools, each = [HoldfastMemoryTool(store) for _ in range(4)], 15
    do(tools[0], command="create", path=HAVE, file_text="".join(f"<{n}>\n" for n in range(4)))

    def work(number: int) -> None:
        for step in range(each):
            do(tools[number], command="insert", path=HAVE, insert_line=0, insert_text=f"{number}-{step}")
            new = f"<{number}>+{step}"
            do(tools[number], command="str_replace", path=HAVE, old_str=f"<{number}>", new_str=new)

    together([lambda n=n: work(n) for n in range(4)])
    text = store.folder("memories").read("facts.md").content
    assert {line for line in text.splitlines() if "-" in line} == {
        f"{n}-{step}" for n in range(4) for step in range(each)
    }
    for number in range(4):
        assert f"<{number}>{''.join(f'+{step}' for step in reversed(range(each)))}\n" in text
    assert len(tools[0].history(HAVE)) == 1 + 4 * each * 2


@pytest.mark.every_engine
def test_of_many_who_create_one_file_one_does(store: holdfast.Store) -> None:
    said: list[str] = []

    def work(number: int) -> None:
        try:
            said.append(do(HoldfastMemoryTool(store), command="create", path=HAVE, file_text=str(number)))
        except ToolError as error:
            said.append(str(error))

    together([lambda n=n: work(n) for n in range(8)])
    assert sorted(said) == [*[f"File {HAVE} already exists"] * 7, f"File created successfully at: {HAVE}"]


@pytest.mark.every_engine
def test_of_many_who_rename_one_file_one_does(store: holdfast.Store) -> None:
    do(HoldfastMemoryTool(store), command="create", path=HAVE, file_text="x")
    done: list[int] = []
    said: list[str] = []

    def work(number: int) -> None:
        try:
            do(HoldfastMemoryTool(store), command="rename", old_path=HAVE, new_path=f"/memories/{number}")
            done.append(number)
        except ToolError as error:
            said.append(str(error))

    together([lambda n=n: work(n) for n in range(6)])
    assert [file.path for file in store.folder("memories").files()] == [str(number) for number in done]
    assert len(done) == 1
    assert said == [f"The path {HAVE} does not exist"] * 5


@pytest.mark.every_engine
def test_processes_that_edit_one_file_lose_nothing(address: str) -> None:
    with HoldfastMemoryTool(address) as tool:
        do(tool, command="create", path=HAVE, file_text="")
        context = multiprocessing.get_context("spawn")
        workers = [context.Process(target=insert_lines, args=(address, n, 20)) for n in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        assert [worker.exitcode for worker in workers] == [0, 0]
        lines = tool.history(HAVE)[-1].content.splitlines()
        assert sorted(lines) == sorted(f"{n}-{step}" for n in range(2) for step in range(20))


@pytest.mark.every_engine
def test_a_cancelled_command_is_done_or_not_begun(store: holdfast.Store) -> None:
    tool = AsyncHoldfastMemoryTool(store)

    async def run() -> None:
        await tool.call({"command": "create", "path": HAVE, "file_text": ""})
        edits = [
            asyncio.ensure_future(
                tool.call({"command": "insert", "path": HAVE, "insert_line": 0, "insert_text": str(n)})
            )
            for n in range(20)
        ]
        await asyncio.sleep(0)
        for edit in edits[::2]:
            edit.cancel()
        results = await asyncio.gather(*edits, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results[::2])
        assert all(result == f"The file {HAVE} has been edited." for result in results[1::2])

    asyncio.run(run())
    lines = store.folder("memories").read("facts.md").content.splitlines()
    assert len(lines) == len(set(lines))
    assert {str(n) for n in range(1, 20, 2)} <= set(lines)


def insert_lines(address: str, number: int, count: int) -> None:
    with HoldfastMemoryTool(address) as tool:
        for step in range(count):
            do(tool, command="insert", path=HAVE, insert_line=0, insert_text=f"{number}-{step}")


def together(works: list[Callable[[], None]]) -> None:
    failed: list[BaseException] = []
    gate = threading.Barrier(len(works))

    def run(work: Callable[[], None]) -> None:
        try:
            gate.wait()
            work()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed


# What is shown to people


def test_the_example_remembers_over_a_restart(example: Callable[..., str]) -> None:
    first, second = example("anthropic_memory.py"), example("anthropic_memory.py")
    assert "I know nothing about you yet" in first
    assert "aisle" not in first.split("Claude:")[1]
    assert "You like aisle seats" in second


def test_the_page(page: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONSAFEPATH", "1")  # the page becomes a script that is named like the package it imports
    page("anthropic")
