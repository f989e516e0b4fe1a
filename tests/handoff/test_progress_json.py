"""JSON there and back: every document exactly, from markdown and to it, and the keys that people use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.handoff.documents import DOCUMENTS, TEXTS, VALUES

import holdfast
from holdfast.errors import Conflict, Invalid, TooLarge
from holdfast.handoff import Handoff, markdown, progress_json
from holdfast.handoff.document import HandoffDocument, HandoffItem, HandoffSection, same


def read(**keys: Any) -> HandoffDocument:
    return progress_json.parse(json.dumps(keys)).document


# Both ways


@settings(max_examples=2 * settings().max_examples)
@given(DOCUMENTS, TEXTS.filter(bool), st.integers(0, 10**18 - 1))
@example(HandoffDocument(extra=(HandoffSection("a", "x", "context"), HandoffSection("a", "y", "context"))), "t", 1)
@example(HandoffDocument(extra=(HandoffSection("notes", "x", "context"), HandoffSection("b", "", "context"))), "t", 1)
@example(HandoffDocument(extra=(HandoffSection("b", '```json data\n"text"\n```', "context"),)), "t", 1)
@example(HandoffDocument(extra=(HandoffSection("b", "```json data\n[ 1 ]\n```", "context"),)), "t", 1)
def test_every_document_comes_back_exactly(document: HandoffDocument, thread: str, revision: int) -> None:
    found = progress_json.parse(progress_json.render(document, thread, revision))
    assert found == (document, thread, revision)
    assert same(found.document, document), "1, 1.0 and true are not the same"


@given(DOCUMENTS)
def test_from_markdown_to_json_and_back_keeps_all(document: HandoffDocument) -> None:
    text = markdown.render(document, "t", 1)
    between = progress_json.render(markdown.parse(text, "t").document, "t", 1)
    assert markdown.render(progress_json.parse(between).document, "t", 1) == text


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_keys_that_mean_nothing_here_are_written_back(keys: dict[str, Any]) -> None:
    unknown = {f"x {name}": value for name, value in keys.items()}
    text = progress_json.render(progress_json.parse(json.dumps(unknown)).document, "t", 1)
    assert repr({name: value for name, value in json.loads(text).items() if name in unknown}) == repr(unknown)
    shown = markdown.render(progress_json.parse(text).document, "t", 1)
    assert markdown.parse(shown, "t").document == progress_json.parse(text).document


# What people write


def test_the_keys_people_use() -> None:
    document = read(
        goal="Book a flight",
        completed_steps=["asked", {"step": "searched", "found": 47}],
        todo=["book", {"text": "pay", "done": False}],
        blockers=[],
        nextAction="Book TP 533",
        decisions=["No stopovers"],
        context={"files": ["trip.py"], "apis": []},
        notes="Aisle seats.",
        budget={"max": 500},
    )
    assert document == HandoffDocument(
        goal="Book a flight",
        steps=(
            HandoffItem("asked", True), HandoffItem("searched\nfound: 47", True), HandoffItem("book"),
            HandoffItem("pay"),
        ),
        next_action="Book TP 533",
        decisions=("No stopovers",),
        context="Aisle seats.",
        data={"files": ["trip.py"], "apis": []},
        extra=(HandoffSection("budget", '```json data\n{\n  "max": 500\n}\n```', "context"),),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"objective": "x"}, HandoffDocument(goal="x")),
        ({"goal": "x", "current_goal": "y"}, HandoffDocument(goal="x\n\ny")),
        ({"next_steps": ["a", "b"]}, HandoffDocument(next_action="- a\n- b")),
        ({"next_steps": ["a"]}, HandoffDocument(next_action="a")),
        ({"completed": "a"}, HandoffDocument(steps=(HandoffItem("a", True),))),
        ({"steps": {"a": True, "b": False}}, HandoffDocument(steps=(HandoffItem("a", True), HandoffItem("b")))),
        ({"tasks": [{"task": "a", "status": "completed"}]}, HandoffDocument(steps=(HandoffItem("a", True),))),
        ({"tasks": [{"task": "a", "status": "half"}]}, HandoffDocument(steps=(HandoffItem("a\nstatus: half"),))),
        ({"current_blocker": "sold out"}, HandoffDocument(blockers=("sold out",))),
        (
            {"issues": [{"text": "a", "done": True}, {"title": "b", "ref": "r/s"}]},
            HandoffDocument(blockers=("a\ndone: true", "b\nref: r/s")),
        ),
        (
            {"features": [{"category": "ui", "description": "logs in", "passes": True}, {"name": "n", "passes": None}]},
            HandoffDocument(features=(HandoffItem("logs in\ncategory: ui", True), HandoffItem("n"))),
        ),
        ({"context": {}, "notes": None, "goal": None, "blockers": None}, HandoffDocument()),
        ({"context": ["a"], "background": ["b"]}, HandoffDocument(
            data=["a"], extra=(HandoffSection("background", '```json data\n[\n  "b"\n]\n```', "context"),)
        )),
        ({"ziel": "Ein Parser"}, HandoffDocument(extra=(HandoffSection("ziel", "Ein Parser", "context"),))),
    ],
)  # fmt: skip
def test_other_ways_to_say_it(keys: dict[str, Any], expected: HandoffDocument) -> None:
    assert read(**keys) == expected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"goal": "x",\n}', "line 2: not JSON"),
        ("", "line 1: not JSON"),
        ('{"goal": "a", "goal": "b"}', "the key 'goal' is there twice"),
        ('{"x": {"a": 1, "a": 1}}', "the key 'a' is there twice"),
        ('{"x": NaN}', "NaN is not a number"),
        ('{"x": 1e999}', "inf is not a number"),
        ('{"x": ' + "1" * 5_000 + "}", "cannot be read as JSON"),
        ('{"x": ' + "[" * 100_000 + "]" * 100_000 + "}", "cannot be read as JSON"),
        ('{"x": ' + "[" * 300 + "]" * 300 + "}", "nested deeper than"),
        ('{"goal": "a\\u0000b"}', "goal contains a NUL"),
        ('{"x\\u0000": "b"}', "a key contains a NUL"),
        ('{"goal": "\\ud800"}', "lone surrogate"),
        ('[{"description": "a", "passes": false}]', r"update\(features"),
        ('"goal"', "is str, not an object"),
        ('{"goal": 3}', "goal is text or a list of texts, not int"),
        ('{"goal": {"a": 1}}', "goal is text or a list of texts, not dict"),
        ('{"steps": 3}', "steps is a list, not int"),
        ('{"steps": ["a", 3]}', r"steps\[1\] is text, or an object with a text in it, not int"),
        ('{"todo": [{"a": 1}]}', r"todo\[0\] has no text"),
        ('{"features": [{"name": "a", "passes": "yes"}]}', r"features\[0\].passes is true or false, not 'yes'"),
        ('{"holdfast": {"revision": "x"}}', "holdfast: Expected"),
        ('{"sections": [{"heading": 1}]}', "sections: Expected"),
    ],
)
def test_what_cannot_be_understood_is_refused_and_named(book: Handoff, text: str, sentence: str) -> None:
    with pytest.raises(Invalid, match=sentence):
        progress_json.parse(text)
    book.update(goal="g")
    with pytest.raises(Invalid):
        book.load(text.encode(), format="json")
    assert len(book.history()) == 1


# Files


def test_a_json_file_goes_out_and_comes_back_edited(book: Handoff, facts: Any, tmp_path: Path) -> None:
    facts.items = [HandoffItem("r: a", True, "r/a")]
    book.update(goal="g", todo="t", features=["f"], start="./init.sh", decisions="d", context={"files": []})
    path = tmp_path / "progress.json"
    assert book.write(path).changed
    assert not book.write(path).changed
    plain = json.loads(path.read_text(encoding="utf-8"))
    assert plain["steps"] == [{"text": "t", "done": False}, {"text": "r: a", "done": True, "ref": "r/a"}]
    assert (plain["features"], plain["context"]) == ([{"name": "f", "passes": False}], {"files": []})

    plain["features"][0]["passes"] = True
    plain["mood"] = ["good"]
    edited = ("\ufeff" + json.dumps(plain)).replace("\n", "\r\n").encode()
    path.write_bytes(edited)
    with pytest.raises(Conflict, match="was edited after revision"):
        book.write(path)
    document = book.load(path)
    assert document.features == (HandoffItem("f", True),)
    book.update(done="t")
    assert json.loads(book.write(path).path.read_text(encoding="utf-8"))["mood"] == ["good"]
    with pytest.raises(Conflict, match="written from revision 2"):
        book.load(edited.decode(), format="json")


def test_a_change_from_one_to_true_is_a_change(book: Handoff, tmp_path: Path) -> None:
    book.update(context={"tries": 1})
    assert book.update(context={"tries": True}) == 2
    path = book.write(tmp_path / "p.json").path
    path.write_text(path.read_text(encoding="utf-8").replace("true", "1.0"), encoding="utf-8")
    with pytest.raises(Conflict, match="was edited"):
        book.write(path)
    assert repr(book.load(path).data) == "{'tries': 1.0}"


def test_the_name_or_the_content_says_what_a_file_is(book: Handoff, tmp_path: Path) -> None:
    path = tmp_path / "claude-progress.txt"
    path.write_text('{"goal": "g", "completed_steps": ["a"]}', encoding="utf-8")
    assert book.load(path).steps == (HandoffItem("a", True),)
    book.write(path)
    assert json.loads(path.read_text(encoding="utf-8"))["goal"] == "g", "it stays what it was"
    book.write(path, format="markdown")
    assert path.read_text(encoding="utf-8").startswith("# Handoff")
    assert book.load(path).goal == "g"
    assert book.load("{not json\nat all", format="markdown").opening == "{not json\nat all"
    with pytest.raises(Invalid, match="format must be markdown or json"):
        book.load(path, format="yaml")  # type: ignore[arg-type]


def test_a_file_of_a_megabyte_is_too_large(book: Handoff, tmp_path: Path) -> None:
    for name in ("p.json", "p.md"):
        (tmp_path / name).write_text(json.dumps({"goal": "x" * 1_000_001}), encoding="utf-8")
        with pytest.raises(TooLarge, match="longer than 1,000,000 bytes"):
            book.load(tmp_path / name)
    book.update(goal='"' * 900_000)
    with pytest.raises(TooLarge, match="as text"):
        book.write(tmp_path / "q.json")
    assert not (tmp_path / "q.json").exists()


def test_features_and_decisions_are_added(book: Handoff) -> None:
    book.update(features=["a", {"description": "b", "passes": False}], decisions=["x", "x"])
    book.update(features={"b": True, "c": False}, decisions="y")
    book.update(features=["b"])
    document = book.read()
    assert document.features == (HandoffItem("a"), HandoffItem("b", True), HandoffItem("c"))
    assert document.decisions == ("x", "y")
    book.update(features={"b": False}, context={"k": [1]})
    book.update(context="text")
    assert (book.read().features[1].done, book.read().context, book.read().data) == (False, "text", {"k": [1]})
    book.update(features=[{"category": "ui", "description": "logs in", "passes": False}])
    book.update(features={"logs in": True})
    assert book.read().features[3:] == (HandoffItem("logs in\ncategory: ui", True),), "known by its first line"
    book.update(context={})
    assert (book.read().context, book.read().data) == ("text", None)


@pytest.mark.parametrize("wrong", [3, [3], {"a": "yes"}, {1: True}, [{"passes": True}], "a\0"])
def test_features_that_make_no_sense(ram: holdfast.Store, wrong: Any) -> None:
    with pytest.raises(Invalid, match="features"):
        ram.thread("t").handoff.update(features=wrong)
