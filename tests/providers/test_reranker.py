"""The reranker from its wheel: what it thinks, in a forked child too, and a recall when its file is no good."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import holdfast
from holdfast.providers.choose import choose_reranker
from holdfast.providers.reranker import CrossEncoder, Passage, Reranker
from holdfast.testing.embedders import HashEmbedder

FILES = Path(next(iter(importlib.util.find_spec("holdfast_models").submodule_search_locations)))  # type: ignore[union-attr, arg-type]
QUESTION = "Where does she like to sit on a plane?"
PASSAGES = [
    Passage("Ana", "On a flight I always take the aisle seat."),
    Passage("Ana", "The invoice of the plumber is overdue."),
    Passage("", ""),
    Passage("Ana", "Nul \x00, a broken \ud83d emoji, and word after word " * 2_000, "x " * 2_000),
]


@pytest.fixture(autouse=True)
def wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests go without it."""
    monkeypatch.setenv("HOLDFAST_RERANKER", "auto")


@pytest.fixture(scope="module")
def real() -> Reranker:
    found = choose_reranker("auto")
    assert found is not None
    return found


def test_what_answers_fits_best_and_answers(real: Reranker) -> None:
    judged = real.judge(QUESTION, PASSAGES)
    assert (judged.shape, judged.dtype) == ((4, 2), numpy.float32)
    assert judged.argmax(axis=0).tolist() == [0, 0]
    assert (judged[0] > judged[1:].max(axis=0) + 1).all()


def test_passages_beside_a_passage_hardly_change_what_is_thought_of_it(real: Reranker) -> None:
    together = real.judge(QUESTION, PASSAGES)
    apart = numpy.vstack([real.judge(QUESTION, [passage]) for passage in PASSAGES])
    assert numpy.abs(together - apart).max() < 0.5
    assert real.judge(QUESTION, []).shape == (0, 2)


def test_a_recall_reads_its_first_hits_again_with_it() -> None:
    with holdfast.open("ram:", embedder=HashEmbedder()) as store:
        memory = store.memory(user="ana")
        memory.remember_all([passage.text for passage in PASSAGES[:2]])
        found = memory.recall(QUESTION, explain=True)
        assert found.hits[0].text == PASSAGES[0].text
        assert found.hits[0].why["rerank"] > 0
        assert found.report.notes == ()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_child_loads_it_anew() -> None:
    """The threads of the parent's session are not in the child: it would wait for them for ever."""
    script = f"""
import os, signal
from holdfast.providers.reranker import CrossEncoder, Passage
ranks = CrossEncoder()
before = ranks.judge({QUESTION!r}, [Passage("Ana", "the aisle")])
pid = os.fork()
if not pid:
    signal.alarm(30)
    os._exit(int(abs(ranks.judge({QUESTION!r}, [Passage("Ana", "the aisle")]) - before).max() > 1e-4))
raise SystemExit(os.waitpid(pid, 0)[1])
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_child_drops_it_whether_or_not_it_was_being_loaded() -> None:
    ranks = CrossEncoder()
    ranks.judge(QUESTION, PASSAGES[:1])
    pid = os.fork()
    if not pid:
        os._exit(0 if ranks._model is None else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert ranks._model is not None


@pytest.mark.parametrize("harm", ["reranker/model.onnx", "minilm/tokenizer.json"])
@pytest.mark.parametrize("how", ["damaged", "cut short", "another version", "gone"])
def test_with_a_bad_file_recall_goes_on_without_it_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str, how: str
) -> None:
    for name in ("reranker/model.onnx", "minilm/tokenizer.json"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).symlink_to(FILES / name)
    data = bytearray((FILES / harm).read_bytes())
    (tmp_path / harm).unlink()
    if how == "damaged":
        data[len(data) // 2] ^= 0x01
    if how != "gone":
        (tmp_path / harm).write_bytes({"cut short": data[:-1], "another version": data + b" "}.get(how, data))
    monkeypatch.setattr("holdfast.providers.onnx._package", lambda name: tmp_path)
    with holdfast.open("ram:", embedder=HashEmbedder()) as store:
        memory = store.memory(user="ana")
        memory.remember_all([passage.text for passage in PASSAGES[:2]])
        expected = [hit.text for hit in memory.recall(QUESTION, without=["rerank"])]
        found = memory.recall(QUESTION)
        assert [hit.text for hit in found] == expected
        assert any(note.startswith("not reranked: ") and Path(harm).name in note for note in found.report.notes)
        assert "rerank" not in [stage.name for stage in found.report.stages]


def test_where_it_is_not_installed_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.providers.onnx._package", lambda name: None)
    assert choose_reranker("auto") is None
    with pytest.raises(holdfast.errors.Misconfigured, match="holdfast\\[minilm\\]"):
        CrossEncoder()
