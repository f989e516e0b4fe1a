"""The command that measures contexts: its tables, its lines of JSON, its picture, and what it refuses."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest

import holdfast
from holdfast import evaluation

typer = pytest.importorskip("typer", reason="the command's extra is not installed")

from holdfast.doors.cli import exits  # noqa: E402 - after the extra was looked for
from holdfast.doors.cli.app import run  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
SIX = ["gold@1000", "gold@4000", "gold@8000", "whole@1000", "whole@4000", "whole@8000"]
FILLING = "of boats and ropes and tar and sails and of the weather, and so on at some length"
TALK = [
    {
        "id": "talk",
        "turns": [
            {"id": "1", "session": 1, "time": "8 May, 2023", "speaker": "Mira", "text": "I adopted a grey parrot."},
            *(
                {"id": f"f{number}", "session": 2, "speaker": "Tom", "text": f"Story {number} {FILLING}."}
                for number in range(150)
            ),
            {"id": "2", "session": 3, "time": "9 May, 2023", "speaker": "Tom", "text": "The new oven costs 700 euros."},
        ],
        "queries": [
            {"id": "a", "kind": "pets", "text": "What colour is Mira's parrot?", "gold": ["1"]},
            {"id": "b", "kind": "things", "text": "What does Tom's oven cost?", "gold": ["2"]},
            {"id": "c", "kind": "pets", "text": "Does Mira have a parrot?", "gold": ["1"]},
            {"id": "d", "kind": "never", "text": "Who won?", "gold": []},
        ],
    }
]


class Done(NamedTuple):
    """How a run of the command ended."""

    code: int
    out: str
    err: str


Call = Callable[..., Done]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run ``eval context`` in this process, by words alone unless an embedder is named."""

    def call(*args: str | Path) -> Done:
        capsys.readouterr()
        code = run(["eval", "context", "--embedder", "none", *map(str, args)])
        return Done(code, *capsys.readouterr())

    return call


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(TALK), encoding="utf-8")
    return path


def test_tables_by_kind_and_by_method(call: Call, talk: Path) -> None:
    done = call(talk)
    assert (done.code, done.err) == (0, "")
    title, heading, pets, things, total, blank, ways, window, words, context, last = done.out.splitlines()
    assert title == "talk.json  3 questions · 1 conversation · sqlite · no embedder"
    assert heading.split() == ["KIND", *(name.upper() for name in SIX), "QUESTIONS"]
    assert pets.split() == ["pets", *["1.000"] * 6, "2"]
    assert things.split() == ["things", *["1.000"] * 6, "1"]
    assert total.split() == ["all", "kinds", *["1.000"] * 6, "3"]
    assert blank == ""
    assert ways.split() == ["TOKENS", "1,000", "4,000", "8,000"]
    assert window.split()[:3] == ["last", "turns", "0.333"]
    assert words.split() == ["top-k", "by", "words", "1.000", "1.000", "1.000"]
    assert context.split() == ["context", "1.000", "1.000", "1.000"]
    assert "ms a context (p95" in last
    assert last.endswith("none over the budget")


def test_one_line_of_json_for_each_file(call: Call, talk: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps([{**TALK[0], "queries": TALK[0]["queries"][:1]}]), encoding="utf-8")
    done = call(talk, other, "--json")
    assert (done.code, done.err) == (0, "")
    first, second = map(json.loads, done.out.splitlines())
    with evaluation.opened(evaluation.read(talk), "ram:", embedder=None) as trial:
        expected = evaluation.ask_for_contexts(trial).summary(str(talk))
    for name in expected.keys() - {"ms", "ms_p95", "engine"}:
        if not name.startswith("tokens@"):  # the ids of threads are not the same, nor as long when counted
            assert first[name] == expected[name], name
    assert (first["gold@1000"], first["window@1000"], first["over"], second["questions"]) == (1.0, 0.3333, 0, 1)
    assert (first["engine"], first["embedder"], first["counter"]) == ("sqlite", "none", "estimate:any")


def test_tokens_can_be_counted_as_one_says(call: Call, talk: Path) -> None:
    first, second = (json.loads(call(talk, "--json", *more).out) for more in ((), ("--tokens", "estimate:large")))
    assert (first["counter"], second["counter"]) == ("estimate:any", "estimate:large")
    assert second["over"] == 0


def test_nothing_is_left_behind(call: Call, talk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    assert call(talk).code == 0
    assert list(folder.iterdir()) == []
    assert call(talk, "--engine", tmp_path / "kept.db").code == 0
    with holdfast.open(tmp_path / "kept.db") as store:
        assert store.threads() == []


def test_the_plot_compares_the_methods(call: Call, talk: Path, tmp_path: Path) -> None:
    plot = tmp_path / "contexts.svg"
    done = call(talk, "--plot", plot)
    assert done.code == 0
    assert f"The ways to fill a prompt are compared in {plot}." in done.err
    root = ElementTree.fromstring(plot.read_text(encoding="utf-8"))
    texts = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    assert {"last turns", "top-k by words", "context", "1,000 tokens", "4,000 tokens", "8,000 tokens"} <= set(texts)
    assert "top-k by vectors" not in texts
    assert len(list(root.iter(f"{SVG}path"))) == 9


def changed(**query: Any) -> str:
    return json.dumps([{**TALK[0], "queries": [{**TALK[0]["queries"][0], **query}]}])


@pytest.mark.parametrize(
    ("content", "args", "code", "said"),
    [
        ("", [], exits.USAGE, "talk.json: the file: it is empty"),
        ("[]", [], exits.USAGE, "talk.json: the file: there is no question in it"),
        ("[1]", [], exits.USAGE, "talk.json: conversation 1: this must be an object, not a number"),
        (changed(gold=None), [], exits.USAGE, "conversation 1, query 1: gold is a list"),
        (changed(text=" "), [], exits.USAGE, "the input is empty"),
        (changed(), ["none.json"], exits.NOT_FOUND, "there is no file none.json"),
        (changed(), ["--db", "agent.db"], exits.USAGE, "use --engine DATABASE to choose where"),
        (changed(), ["--plot", "stages.png"], exits.USAGE, "ends in .svg"),
        (changed(), ["--engine", "oracle://x"], exits.MISCONFIGURED, "oracle"),
        (changed(), ["--embedder", "crystal-ball"], exits.MISCONFIGURED, "There is no embedder"),
        (changed(), ["--tokens", "estimate:martian"], exits.USAGE, "no family of tokenisers 'martian'"),
        (changed(), ["--tokens", ""], exits.MISCONFIGURED, "The name of a model is empty"),
    ],
)
def test_what_cannot_be_measured(
    call: Call, talk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    content: str, args: list[str], code: int, said: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    talk.write_text(content, encoding="utf-8")
    done = call(talk, *args)
    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["talk.json"]
    assert "error" in json.loads(call(talk, *args, "--json").err)


def test_a_file_without_answers_says_so(call: Call, talk: Path) -> None:
    talk.write_text(changed(gold=[]), encoding="utf-8")
    done = call(talk, "--json")
    assert (done.code, json.loads(done.out)["questions"]) == (0, 0)
