"""The example and the page do what they say."""

from __future__ import annotations

from collections.abc import Callable


def test_the_example_remembers_after_a_restart(example: Callable[..., str]) -> None:
    first, second = example("pydantic-ai.py"), example("pydantic-ai.py")
    assert "A new conversation." in first
    assert "A conversation of 4 messages" in second
    assert "You asked 2 time(s), first: 'I like aisle seats. When is the ferry to Naxos?'" in second
    assert "Noted in ana/main/MEMORY.md: likes aisle seats" in second
    assert "Entries in the thread: 7" in second


def test_the_page_runs(page: Callable[[str], None]) -> None:
    page("pydantic-ai")
