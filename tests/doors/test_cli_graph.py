"""The command about graphs, on what LangGraph saved; it is not installed here."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

import holdfast

typer = pytest.importorskip("typer", reason="the command's extra is not installed")

from tests.doors.done import Call, Done  # noqa: E402

from holdfast.doors.cli import exits, graph  # noqa: E402 - after the extra was looked for
from holdfast.doors.cli.app import run  # noqa: E402
from holdfast.doors.cli.render import Screen  # noqa: E402

DATA = Path(__file__).parent.parent / "ledger" / "data"
SAID: list[dict[str, Any]] = json.loads((DATA / "graph_said.json").read_text(encoding="utf-8"))


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run the command in this process on a store with the graphs of LangGraph."""
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "none")
    monkeypatch.setenv("HOLDFAST_DB", str(tmp_path / "agent.db"))
    with holdfast.open(tmp_path / "agent.db", embedder="none") as store:
        store.import_(DATA / "graph.json")
        store.thread("plain").append(holdfast.note("no graph here"))

    def call(*args: str) -> Done:
        capfd.readouterr()
        code = run(list(args))
        return Done(code, *capfd.readouterr())

    return call


def ids(thread: str, namespace: str = "") -> list[str]:
    return [each["id"] for each in SAID if (each["thread"], each["namespace"]) == (thread, namespace)]


def test_a_graph_is_shown(call: Call) -> None:
    lines = call("graph", "trip").out.splitlines()
    assert re.fullmatch(r"Graph step 8 · source loop · nothing next · saved \S+Z", lines[0])
    assert lines[1].split() == ["frame", ids("trip")[0]]
    assert "    user         Or by the sea?" in lines
    assert [line.strip() for line in lines if "row" in line or "letter" in line] == ["row: 7", "letter: A"]
    table = [line.split() for line in lines if re.match(r"\w{8}-", line)]
    assert [row[0] for row in table] == ids("trip")[:10]
    assert [row[1] for row in table[:5]] == ["8", "7", "6", "5", "4"]
    assert table[2][4:] == ["notes,page,prices,scores", "inner", "inner"]  # what was updated, what is next, who wrote
    assert not [line for line in lines if "branch:to" in line]
    assert sum("inner:" in line for line in lines) == 3


def test_what_waits_for_a_person_is_shown(call: Call) -> None:
    done = call("graph", "visa")
    assert "next: check, check" in done.out
    assert 'check → checked ["Portugal"]' in done.out
    assert "check → __interrupt__" in done.out
    assert "Is the passport valid until June?" in done.out


def test_a_graph_as_data(call: Call) -> None:
    data = call("graph", "trip", "--json").data
    assert data["frame"] == data["frames"][0]
    assert [each["id"] for each in data["frames"]] == ids("trip")[:10]
    assert data["values"]["seat"] == {"Seat": {"row": 7, "letter": "A"}}
    assert data["values"]["page"].startswith("page 1.")
    assert len(data["others"]) == 3
    visa = call("graph", "visa", "--json").data
    assert visa["writes"][1]["value"][0]["interrupt"]["value"]["on"] == "2026-06-01"
    assert visa["frame"]["tasks"] == ["check", "check"]


@pytest.mark.parametrize(("last", "frames"), [("3", 3), ("0", 15), ("50", 15)])
def test_so_many_frames_are_listed(call: Call, last: str, frames: int) -> None:
    listed = call("graph", "trip", "--last", last, "--json").data["frames"]
    assert [each["id"] for each in listed] == ids("trip")[:frames]


def test_an_older_frame_is_shown(call: Call) -> None:
    first = ids("trip")[-1]
    done = call("graph", "trip", "--at", first)
    assert done.out.startswith("Graph step -1 · source input · next: __start__")
    assert "__start__ → messages" in done.out
    assert "Or by the sea?" not in done.out
    assert "FRAME" not in done.out
    data = call("graph", "trip", "--at", first, "--json").data
    assert (data["frame"]["id"], data["frame"]["parent"], data["frame"]["source"]) == (first, None, "input")


def test_a_graph_inside_another_one_is_shown(call: Call) -> None:
    inside = next(each["namespace"] for each in SAID if each["namespace"])
    done = call("graph", "trip", "--namespace", inside)
    assert f"in {inside}" in done.out
    assert call("graph", "trip", "--namespace", inside, "--json").data["frame"]["id"] == ids("trip", inside)[0]


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("plain",), exits.NOT_FOUND, "has no graph"),
        (("nobody",), exits.NOT_FOUND, "no thread 'nobody'"),
        (("trip", "--namespace", "other"), exits.NOT_FOUND, "namespace 'other'"),
        (("trip", "--at", "other"), exits.NOT_FOUND, "no frame 'other'"),
        (("trip", "--at", "other", "--last", "2"), exits.USAGE, "--last or --at"),
    ],
)
def test_what_is_not_there_is_said_so(call: Call, args: tuple[str, ...], code: int, words: str) -> None:
    done = call("graph", *args)
    assert done.code == code
    assert words in done.err


def test_who_looks_for_a_state_is_shown_the_way_to_the_graph(call: Call) -> None:
    done = call("state", "trip")
    assert (done.out, done.err) == ("No state was saved yet.\n", "It has a graph: holdfast graph trip\n")
    assert call("state", "plain").err == ""


def test_show_says_where_a_graph_stands(call: Call) -> None:
    lines = call("show", "trip").out.splitlines()
    found = [line for line in lines if line.startswith("Graph")]
    assert len(found) == 1
    assert re.fullmatch(r"Graph step 8 · 3 graphs inside it · nothing next · saved \S+Z", found[0])
    assert "Graph step 1 · next: check, check" in call("show", "visa").out
    assert "Graph" not in call("show", "plain").out
    data = call("show", "visa", "--json").data
    assert (data["frame"]["step"], [each["namespace"] for each in data["graphs"]]) == (1, [""])
    assert call("show", "plain", "--json").data["frame"] is None


def test_a_terminal_gets_the_end_of_long_things() -> None:
    """A pipe gets all of it."""
    told = {}
    messages = [{"role": "user", "content": f"message {number}"} for number in range(40)]
    for terminal in (True, False):
        out = io.StringIO()
        screen = Screen(out, width=100, terminal=terminal)
        graph._show_value(screen, "messages", messages)
        graph._show_value(screen, "xs", [*range(40)])
        graph._show_value(screen, "page", "x" * 5_000)
        told[terminal] = re.sub(r"\x1b\[[\d;]*m", "", out.getvalue())
    assert "message 39" in told[True]
    assert "message 3\n" not in told[True]
    assert told[True].count("… 28 before; --json has all") == 2
    assert "(5,000" in told[True]
    assert "message 3\n" in told[False]
    assert "x" * 5_000 in told[False]
