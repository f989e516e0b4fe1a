"""The command that measures recall: its table, its lines of JSON, its picture, and that it leaves nothing behind."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest

import holdfast

typer = pytest.importorskip("typer", reason="the command's extra is not installed")

from holdfast.doors.cli import exits  # noqa: E402 - after the extra was looked for
from holdfast.doors.cli.app import run  # noqa: E402

SEVEN = ["recall@1", "recall@5", "recall@10", "recall@20", "all@10", "ndcg@10", "mrr"]
TALK = [
    {
        "id": "talk",
        "turns": [
            {"id": "1", "session": 1, "time": "8 May, 2023", "speaker": "Mira", "text": "I adopted a grey parrot."},
            {"id": "2", "session": 1, "time": "8 May, 2023", "speaker": "Tom", "text": "My oven broke last night."},
            {"id": "3", "session": 2, "time": "9 May, 2023", "speaker": "Tom", "text": "The new oven costs 700 euros."},
        ],
        "queries": [
            {"id": "a", "kind": "pets", "text": "What colour is Mira's parrot?", "gold": ["1"]},
            {"id": "b", "kind": "price_update", "text": "What about Tom's oven?", "gold": ["2", "3"]},
            {"id": "c", "kind": "pets", "text": "Does Mira have a parrot?", "gold": ["1", "3"]},
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
    """Run ``eval recall`` in this process, by words alone unless an embedder is named."""

    def call(*args: str | Path) -> Done:
        capsys.readouterr()
        code = run(["eval", "recall", "--embedder", "none", *map(str, args)])
        return Done(code, *capsys.readouterr())

    return call


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(TALK), encoding="utf-8")
    return path


def test_a_table_overall_and_by_kind(call: Call, talk: Path) -> None:
    done = call(talk)
    assert (done.code, done.err) == (0, "")
    title, heading, pets, update, total, words, margin, window, further, last = done.out.splitlines()
    assert title == "talk.json  3 questions · 1 conversation · sqlite · no embedder"
    assert heading.split() == ["KIND", *(name.upper() for name in SEVEN), "QUESTIONS"]
    assert pets.split()[:5] == ["pets", "0.750", "1.000", "1.000", "1.000"]
    assert update.split()[:6] == ["price_update", "0.500", "1.000", "1.000", "1.000", "1.000"]
    assert total.split()[:4] == ["all", "kinds", "0.667", "1.000"]
    assert total.split()[-1] == "3"
    assert (words.split()[0], window.split()[:2]) == ("BM25", ["BM25,", "window"])
    ours, theirs, above = (list(map(float, line.split()[-8:-1])) for line in (total, window, further))
    assert above == pytest.approx([one - other for one, other in zip(ours, theirs, strict=True)], abs=2e-3)
    assert margin.split()[0] == "margin"
    assert "ms a question (p95" in last
    assert "newer first in" in last
    assert "wrongly refused 0%" in last


def test_one_line_of_json_for_each_file(call: Call, talk: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps([{**TALK[0], "queries": TALK[0]["queries"][:1]}]), encoding="utf-8")
    done = call(talk, other, "--json")
    assert (done.code, done.err) == (0, "")
    first, second = map(json.loads, done.out.splitlines())
    more = ["ms", "ms_p95", "questions", "conversations", "turns", "engine", "embedder", "newer_first", "by_kind"]
    more += ["plain", "margins", "wrongly_refused", "refused", "calibration"]
    assert list(first) == list(second) == ["file", *SEVEN, *more]
    assert list(first["plain"]) == list(first["margins"]) == ["bm25", "bm25_window"]
    assert first["margins"]["bm25"]["mrr"] == round(first["mrr"] - first["plain"]["bm25"]["mrr"], 4)
    assert (first["wrongly_refused"], first["refused"], first["calibration"]) == (0.0, {}, [])
    assert (first["file"], second["file"]) == (str(talk), str(other))
    assert (first["questions"], second["questions"]) == (3, 1)
    assert (first["recall@1"], second["recall@1"]) == (0.6667, 1.0)
    assert (first["engine"], first["embedder"]) == ("sqlite", "none")
    assert first["newer_first"] in (0.0, 1.0)
    assert second["newer_first"] is None
    assert {kind: list(values) for kind, values in first["by_kind"].items()} == {
        "pets": [*SEVEN, "questions"],
        "price_update": [*SEVEN, "questions"],
    }


def test_notes_as_a_person_writes_them(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(
        "# Flat\n- Rita keeps the spare key of the flat.\nThe dentist moved to Oak Street 12.\n\n"
        "? Who keeps the spare key? => rita KEY\n? Where is the dentist now? => #3\n?! zzz?\n",
        encoding="utf-8",
    )
    done = call(path)
    assert (done.code, done.err) == (0, "")
    title, _, answerable, words, margin, last, blank, heading, *tenths = done.out.splitlines()
    assert title == "mine.txt  2 questions · 2 notes · sqlite · no embedder"
    assert answerable.split() == ["answerable", *["1.000"] * 7, "2"]
    assert (words.split()[0], margin.split()[0]) == ("BM25", "margin")
    assert "wrongly refused 0% · unanswerable: refused 100% of 1" in last
    assert (blank, heading.split()) == ("", ["CONFIDENCE", "QUESTIONS", "ANSWERABLE"])
    assert sum(int(tenth.split()[-2]) for tenth in tenths) == 3
    assert tenths[0].split()[-2:] == ["1", "0"]  # the one without an answer is the least sure
    told = json.loads(call(path, "--json").out)
    assert (told["questions"], told["turns"], told["conversations"], list(told["plain"])) == (2, 2, 0, ["bm25"])
    assert told["refused"] == {"unanswerable": {"share": 1.0, "questions": 1}}
    assert [tenth["least"] for tenth in told["calibration"]] == [at / 10 for at in range(10)]
    assert sum(tenth["answerable"] for tenth in told["calibration"]) == 2


def test_notes_are_in_contexts_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("Rita keeps the spare key.\n? Who keeps the key? => Rita\n", encoding="utf-8")
    assert run(["eval", "context", "--embedder", "none", "--json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["gold@1000"] == 1.0


def test_the_options_of_every_command_may_stand_anywhere(talk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line in (["--json", "eval", "recall"], ["eval", "--json", "recall"], ["eval", "recall", "--json"]):
        assert run([*line, str(talk), "--embedder", "none"]) == 0
        assert json.loads(capsys.readouterr().out)["questions"] == 3
    assert run(["eval"]) == exits.USAGE


def test_nothing_is_left_behind(call: Call, talk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("HOLDFAST_DB", str(tmp_path / "mine.db"))
    assert call(talk).code == 0
    assert list(folder.iterdir()) == []
    assert not (tmp_path / "mine.db").exists()


@pytest.mark.parametrize("engine", ["ram:", "kept.db"])
def test_the_engine_can_be_named(
    call: Call, talk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call(talk, "--engine", engine, "--json")
    assert json.loads(done.out)["engine"] == ("ram" if engine == "ram:" else "sqlite")
    assert (tmp_path / "kept.db").exists() == (engine == "kept.db")
    if engine == "kept.db":
        with holdfast.open(tmp_path / "kept.db") as store:
            assert store.threads() == []


@pytest.mark.slow
def test_the_same_through_postgres(call: Call, talk: Path, postgres: Any) -> None:
    url = postgres.clone()
    there = json.loads(call(talk, "--engine", url, "--json").out)
    with holdfast.open(url) as store:
        assert store.threads() == []
    here = json.loads(call(talk, "--json").out)
    assert there["engine"] == "postgresql"
    assert there["by_kind"] == here["by_kind"]


def test_stages_can_be_left_out(call: Call, talk: Path) -> None:
    assert call(talk, "--without", "around", "--without", "newer first").code == 0
    done = call(talk, "--without", "magic")
    assert done.code == exits.USAGE
    assert "there is no stage 'magic' to leave out; there are meaning, around" in done.err


def test_the_plot_compares_stages(call: Call, talk: Path, tmp_path: Path) -> None:
    plot = tmp_path / "stages.svg"
    done = call(talk, talk, "--plot", plot)
    assert done.code == 0
    assert f"The stages are compared in {plot}." in done.err
    root = ElementTree.fromstring(plot.read_text(encoding="utf-8"))
    texts = ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"words only", "+ vectors", "+ neighbours", "+ speaker and cues", "all stages"} <= set(texts)
    assert texts.count("talk.json") == 2
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) == 10


def changed(**query: Any) -> str:
    return json.dumps([{**TALK[0], "queries": [{**TALK[0]["queries"][0], **query}]}])


@pytest.mark.parametrize(
    ("content", "args", "code", "said"),
    [
        ("", [], exits.USAGE, "talk.json: the file: it is empty"),
        ('{"notes": []}', [], exits.USAGE, "talk.json: the file: there is no note in it"),
        ("[1]", [], exits.USAGE, "talk.json: conversation 1: this must be an object, not a number"),
        ("nonsense", [], exits.USAGE, "talk.json: line 1, column 1: this is not JSON"),
        (changed(gold=None), [], exits.USAGE, "conversation 1, query 1: gold is a list"),
        (changed(), ["none.json"], exits.NOT_FOUND, "there is no file none.json"),
        (changed(), ["--db", "agent.db"], exits.USAGE, "use --engine DATABASE to choose where"),
        (changed(), ["--plot", "stages.png"], exits.USAGE, "ends in .svg"),
        (changed(), ["--plot", "s.svg", "--without", "around"], exits.USAGE, "leave out --without"),
        (changed(), ["--engine", "oracle://x"], exits.MISCONFIGURED, "oracle"),
        (changed(), ["--embedder", "crystal-ball"], exits.MISCONFIGURED, "There is no embedder"),
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
