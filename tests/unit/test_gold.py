"""Measuring contexts: every figure is what the page shows, and the plain ways are what they say they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import evaluation
from holdfast.evaluation import BUDGETS, gold, plain
from holdfast.providers.tokens.choose import counter_for
from holdfast.testing.embedders import HashEmbedder

COUNT = counter_for().count
ESSAY = (
    "Houses need care. " * 90 + "The spare key hangs behind the clock. " + "Gardens need rain. " * 90
)  # longer than any hit is shown whole
GOLD = {
    60: "The kettle that we bought is cobalt blue.",
    90: ESSAY,
    150: "At dusk the lamps along the pier come on.",
    299: "See you on Thursday then.",
}
FILLING = "boats and ropes and tar and sails and of weather, at length"
QUESTIONS = {
    "words": ("Which blue is the kettle?", [60]),
    "essay": ("Where does the spare key hang?", [90]),
    "meaning": ("When does evening light begin?", [150]),
    "both": ("Kettle, and until which day?", [60, 299]),
}


def vectors(texts: list[str]) -> list[list[float]]:
    """Knows that evening is dusk, and nothing else."""
    return [[1.0, 0.0] if "dusk" in text or "evening" in text else [0.0, 1.0] for text in texts]


def turns() -> list[dict[str, Any]]:
    return [
        {
            "id": f"t{number}",
            "session": number // 50,
            "speaker": "Ana" if number % 2 else "Bo",
            "text": GOLD.get(number, f"Filler {number} tells of {FILLING}."),
        }
        for number in range(300)
    ]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    queries = [
        {"id": kind, "kind": kind, "text": text, "gold": [f"t{number}" for number in numbers]}
        for kind, (text, numbers) in QUESTIONS.items()
    ]
    queries.append({"id": "none", "kind": "none", "text": "Who won?", "gold": []})
    path = tmp_path / "harbour.json"
    path.write_text(json.dumps([{"id": "harbour", "turns": turns(), "queries": queries}]), encoding="utf-8")
    return path


def measured(data: Path, embedder: Any = None) -> evaluation.ContextScores:
    with evaluation.opened(evaluation.read(data), "ram:", embedder=embedder) as trial:
        return evaluation.ask_for_contexts(trial)


def share(kind: str, numbers: Sequence[int] | set[int]) -> float:
    right = QUESTIONS[kind][1]
    return sum(number in numbers for number in right) / len(right)


def test_gold_is_what_the_page_cites_and_whole_what_it_shows_in_full(data: Path) -> None:
    found = measured(data)
    with holdfast.open("ram:", embedder=None) as store:
        for number, turn in enumerate(turns()):
            store.thread(f"talk/{turn['session']}", user="u").append(
                holdfast.message("user", turn["text"], name=turn["speaker"], key=str(number))
            )
        for kind, (question, numbers) in QUESTIONS.items():
            for budget in BUDGETS:
                page = store.context(store.thread("new", user="u"), question, budget).text
                whole = [number for number in numbers if " ".join(GOLD[number].split()) in page]
                cited = [number for number in numbers if number in whole or (number == 90 and "spare key" in page)]
                assert found.kinds[kind][0][f"gold@{budget}"] == share(kind, cited), (kind, budget)
                assert found.kinds[kind][0][f"whole@{budget}"] == share(kind, whole), (kind, budget)
    for name, expected in (("words", 1), ("essay", 1)):
        assert [found.kinds[name][0][f"gold@{budget}"] for budget in BUDGETS] == [expected] * 3
    assert [found.kinds["essay"][0][f"whole@{budget}"] for budget in BUDGETS] == [0, 0, 0]
    assert found.kinds["words"][0]["whole@1000"] == 1


@pytest.mark.parametrize("embedder", [None, vectors])
def test_the_plain_ways_by_hand(data: Path, embedder: Any) -> None:
    found = measured(data, embedder)
    said = [f"{turn['speaker']}: {turn['text']}" for turn in turns()]
    first = {"words": [60], "essay": [90], "both": [60], "meaning": [150] if embedder else []}
    for kind, (question, _) in QUESTIONS.items():
        near = [150] if kind == "meaning" else []
        for method, best in (("window", None), ("topk", near if embedder else first[kind]), ("bm25", first[kind])):
            if method == "bm25" and kind == "meaning":
                best = []
            order = list(range(299, -1, -1)) if best is None else best + [n for n in range(300) if n not in best]
            if method == "topk" and embedder and not near:
                order = [n for n in range(300) if n != 150] + [150]
            for budget in BUDGETS:
                room, taken = budget - 7 - COUNT(question), set()
                for number in order:
                    cost = COUNT(said[number]) + 1
                    if cost <= room:
                        room -= cost
                        taken.add(number)
                got = found.kinds[kind][0][f"{method}@{budget}"]
                assert got == share(kind, taken), (kind, method, budget)


def test_the_plain_ways_differ(data: Path) -> None:
    found = measured(data, vectors)
    assert found.kinds["meaning"][0]["topk@1000"] == 1
    assert found.kinds["meaning"][0]["bm25@1000"] == 0
    assert found.kinds["words"][0]["topk@1000"] == 0
    assert found.kinds["words"][0]["bm25@1000"] == 1
    assert found.kinds["both"][0]["window@1000"] == 0.5
    assert found.plain(1_000) == max(found.overall["topk@1000"], found.overall["bm25@1000"])


def test_the_overall_figures_are_means_over_questions(data: Path) -> None:
    found = measured(data, HashEmbedder())
    assert (found.questions, found.conversations, found.turns) == (4, 1, 300)
    assert set(found.kinds) == set(QUESTIONS)
    for name in gold.NAMES:
        assert found.overall[name] == pytest.approx(sum(shares[name] for shares, _ in found.kinds.values()) / 4)
    assert found.embedder == "hash-64"
    assert 0 < found.ms <= found.ms_p95


def test_no_context_is_over_its_budget_and_little_is_left_unused(data: Path) -> None:
    found = measured(data)
    assert found.over == 0
    assert all(found.tokens[budget] <= budget for budget in BUDGETS)
    assert found.tokens[1_000] * 4 > 900 * 3, "three questions find something; the words of the fourth are nowhere"
    assert found.tokens[1_000] < found.tokens[4_000] < found.tokens[8_000]


def test_the_summary_has_exactly_the_promised_names(data: Path) -> None:
    summary = measured(data).summary("harbour.json")
    fifteen = [f"{way}@{n}" for way in ("gold", "whole", "window", "topk", "bm25") for n in (1000, 4000, 8000)]
    used = ["tokens@1000", "tokens@4000", "tokens@8000", "over", "ms", "ms_p95"]
    more = ["questions", "conversations", "engine", "embedder", "counter", "by_kind"]
    assert list(summary) == ["file", *fifteen, *used, *more]
    assert all(list(values) == [*fifteen, "questions"] for values in summary["by_kind"].values())
    assert (summary["embedder"], summary["topk@4000"]) == ("none", summary["bm25@4000"])
    json.dumps(summary, allow_nan=False)


def test_a_question_longer_than_a_budget_finds_nothing_there(tmp_path: Path) -> None:
    question = "Which blue is the kettle? " + "I wonder about it so much. " * 300
    queries = [{"id": "q", "kind": "long", "text": question, "gold": ["t60"]}]
    path = tmp_path / "long.json"
    path.write_text(json.dumps([{"id": "c", "turns": turns(), "queries": queries}]), encoding="utf-8")
    found = measured(path)
    assert found.overall["gold@1000"] == found.overall["bm25@1000"] == found.tokens[1_000] == 0
    assert found.overall["gold@8000"] == found.overall["bm25@8000"] == 1
    assert found.over == 0


def test_nothing_is_written_while_asking(data: Path) -> None:
    with holdfast.open("ram:", embedder=None) as store:
        trial = evaluation.Trial(store, evaluation.read(data), "ram", prefix="eval-1-")
        trial.ingest()
        before = {info.id for info in store.threads()}
        evaluation.ask_for_contexts(trial)
        assert {info.id for info in store.threads()} == before
        trial.erase()
        assert store.threads() == []


def test_progress_counts_the_questions_that_are_asked(data: Path) -> None:
    told: list[tuple[str, int, int]] = []
    conversations = evaluation.read(data)
    with evaluation.opened(conversations, "ram:", embedder=None, progress=lambda *what: told.append(what)) as trial:
        evaluation.ask_for_contexts(trial)
    assert [what for what in told if what[0] == "asking"] == [("asking", done, 4) for done in (1, 2, 3, 4)]


# The plain ways by themselves


def test_what_is_too_long_is_passed_over() -> None:
    assert plain.fitting([2, 0, 1, 3], [5, 4, 9, 1], 10) == {2, 3}
    assert plain.fitting([0, 1], [5, 4], -3) == set()


def test_rare_words_count_for_more_and_long_texts_for_less() -> None:
    texts = ["the cat and the dog", "the dog", "a dog and a dog", "fish", "the cat " + "sat and sat " * 20]
    ranked = plain.by_words(texts)("cat dog")
    assert ranked[0] == 0
    assert ranked.index(4) > ranked.index(1)  # a cat is rarer than a dog, but lost in so long a text
    assert ranked[-1] == 3
    assert plain.by_words(texts)("fish")[0] == 3
    assert plain.by_words([])("fish") == plain.nearest([], HashEmbedder())("fish") == []
