"""The page about checkpoints is true, its example goes on after a restart, and its picture can be drawn."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from benchmarks.checkpointers import OURS, SQLITE_SAVER, Way, grown, worked
from benchmarks.checkpoints import picture
from benchmarks.growth import drawn, told

ROOT = Path(__file__).resolve().parents[3]
SVG = "{http://www.w3.org/2000/svg}"


def test_the_page_is_true(page: Callable[[str], None]) -> None:
    page("langgraph")


def test_the_example_goes_on_after_a_restart(example: Callable[..., str]) -> None:
    first, second, third = (example("langgraph_trip.py") for _ in range(3))
    assert "searching flights to Lisbon" in first
    assert "shall I pay?" in first
    assert "Paid" not in first
    assert "searching" not in second, "a finished task ran again"
    assert "Agent: Paid, have a good trip." in second
    said = [line for line in third.splitlines() if line.startswith("log")]
    assert [line.split(". ", 1)[1] for line in said] == [
        "user: Book me a flight to Lisbon.",
        "assistant: I found a flight.",
        "assistant: Paid, have a good trip.",
    ]


@pytest.mark.every_engine
def test_the_pattern_prints_what_it_says(example: Callable[..., str], address: str) -> None:
    printed = example("../patterns/checkpointed_graph.py", address).splitlines()
    said = (ROOT / "examples/patterns/checkpointed_graph.py").read_text(encoding="utf-8").split("# prints:\n")[1]
    assert [f"# {line}" for line in printed] == said.splitlines()


def test_growth_is_measured_on_real_graphs(tmp_path: Path) -> None:
    points = (2, 4, 8)
    ours = grown(Way(OURS), str(tmp_path / "ours.db"), points)
    theirs = grown(Way(SQLITE_SAVER, delta=True), str(tmp_path / "theirs.db"), points)
    assert [count for count, _ in ours] == [count for count, _ in theirs] == list(points)
    assert all(one < other for (_, one), (_, other) in pairwise(theirs))
    assert worked(Way(SQLITE_SAVER), str(tmp_path / "run.db"), 3) > 0


def test_the_picture_has_a_line_for_each_saver() -> None:
    lines = {
        "one": [(10, 9_000), (100, 90_000)],
        "two": [(10, 50_000), (100, 5_000_000)],
        "two, exit": [(10, 1), (100, 2)],
    }
    root = ElementTree.fromstring(picture(lines))
    names = [text.text for text in root.iter(f"{SVG}text") if "name" in text.get("class", "")]
    assert sorted(names) == ["one", "raw text", "two"]
    told_of = [text.text for text in root.iter(f"{SVG}text") if text.get("class") == "told"]
    assert "90 kB, 1.8 times raw" in told_of
    assert "5 MB, 100 times raw" in told_of
    curves = [path for path in root.iter(f"{SVG}path") if "line" in path.get("class", "").split()]
    assert len(curves) == 3


def test_names_in_the_picture_do_not_cover_each_other() -> None:
    lines = {f"line {number}": [(1, 500), (10, 5_000 + number)] for number in range(6)}
    root = ElementTree.fromstring(drawn({**lines, "raw": [(1, 500), (10, 5_000)]}, raw="raw", title="t & <t>"))
    heights = sorted(float(text.get("y", "0")) for text in root.iter(f"{SVG}text") if "name" in text.get("class", ""))
    assert all(other - one >= 30 for one, other in pairwise(heights))
    assert heights[-1] < 480


def test_a_picture_of_nothing_is_refused() -> None:
    for lines in ({}, {"raw": []}, {"other": [(1, 1)]}):
        with pytest.raises(ValueError, match="lines with points"):
            drawn(lines, raw="raw", title="t")


@pytest.mark.parametrize(("size", "text"), [(999, "999 bytes"), (1_500, "1.5 kB"), (4_200_000_000, "4.2 GB")])
def test_bytes_are_told(size: int, text: str) -> None:
    assert told(size) == text
