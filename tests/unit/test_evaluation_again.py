"""Measuring again: in a store of its own a trial gives the same figures, whenever and however often it is made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import evaluation

THINGS = ("kettle", "parrot", "oven", "rope", "lamp", "clock", "garden")


@pytest.fixture
def talks(tmp_path: Path) -> list[evaluation.Conversation]:
    turns = [
        {
            "id": f"t{at}",
            "session": at // 7,
            "speaker": "Ana",
            "text": f"The {THINGS[at % 7]} cost {at} euros, and so on.",
        }
        for at in range(140)
    ]
    queries = [
        {
            "id": name,
            "kind": "price",
            "text": f"What did the {name} cost?",
            "gold": [f"t{at}" for at in range(140)[at::7]],
        }
        for at, name in enumerate(THINGS)
    ]
    path = tmp_path / "talks.json"
    path.write_text(json.dumps([{"id": "talk", "turns": turns, "queries": queries}]), encoding="utf-8")
    return evaluation.read(path)


def measured(talks: list[evaluation.Conversation]) -> tuple[Any, Any, str]:
    """The figures but for the time it took, and the whole of one context."""
    with evaluation.opened(talks, embedder=None) as trial:
        held, recall = evaluation.ask_for_contexts(trial), trial.ask()
        context = trial.store.context(trial.store.thread("new", user=trial.user(talks[0])), "What did the lamp cost?")
        return (
            msgspec.structs.replace(held, ms=0, ms_p95=0),
            msgspec.structs.replace(recall, ms=0, ms_p95=0),
            json.dumps(context.messages("openai")),
        )


def test_the_same_questions_give_the_same_figures_and_pages(talks: list[evaluation.Conversation]) -> None:
    first = measured(talks)
    assert "euros" in first[2]
    assert measured(talks) == first


def test_in_a_store_that_was_there_before_names_are_used_once(
    talks: list[evaluation.Conversation], tmp_path: Path
) -> None:
    names = set()
    for _ in range(2):
        with evaluation.opened(talks, tmp_path / "mine.db", embedder=None) as trial:
            names.add(trial.user(talks[0]))
    assert len(names) == 2
