"""What is erased is gone from the feed too, whatever of it was gone before."""

from __future__ import annotations

from typing import Any

import pytest

import holdfast


@pytest.mark.every_engine
def test_no_name_of_an_erased_user_stays_in_the_feed(process: Any) -> None:
    """Also of what was gone before: leases of runs, holds, files that were erased by themselves."""
    store: holdfast.Store = process.store
    thread = store.thread("zebra-7", user="annabel")
    thread.append(holdfast.note("hello"))
    thread.save({"a": 1})
    thread.checkpoint("before")
    with thread.run("book-zebra") as run:
        run.step("one", lambda: 1, effect="pure")
    with thread.hold():
        pass
    notes = store.folder("notes", user="annabel")
    notes.write("zebra.md", "x")
    notes.write("zebra-gone.md", "x")
    notes.delete("zebra-gone.md", erase=True)
    memory = store.memory(user="annabel")
    memory.forget(memory.remember("she likes zebras").id, erase=True)
    memory.remember("she likes zebras a lot")
    store.erase(user="annabel")
    names = [change.id for commit in store.watch(timeout_s=0) for change in commit.changes]
    assert [name for name in names if "zebra" in name or "annabel" in name] == []
