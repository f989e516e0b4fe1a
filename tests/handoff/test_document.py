"""What a document means: facts of runs, changes by hand, and plain data."""

from __future__ import annotations

import pytest

from holdfast.engine.codec import decode, encode
from holdfast.errors import Invalid
from holdfast.handoff.document import Changes, Document, Item, Section, from_plain, merge, revised, to_plain

# Facts of runs


def test_steps_of_runs_come_after_those_stored() -> None:
    document = Document(steps=(Item("by hand"),))
    merged = merge(document, [Item("r: a", True, "r/a"), Item("r: b", False, "r/b")], [])
    assert merged.steps == (Item("by hand"), Item("r: a", True, "r/a"), Item("r: b", False, "r/b"))


def test_a_stored_step_keeps_text_and_place_but_the_run_knows_whether_it_is_done() -> None:
    document = Document(steps=(Item("my words", True, "r/a"), Item("by hand"), Item("gone", True, "old/x")))
    merged = merge(document, [Item("r: a", False, "r/a")], [])
    assert merged.steps == (Item("my words", False, "r/a"), Item("by hand"), Item("gone", True, "old/x"))


def test_hidden_steps_stay_out() -> None:
    assert merge(Document(hidden=("r/a",)), [Item("r: a", True, "r/a"), Item("r: b", ref="r/b")], []).steps == (
        Item("r: b", ref="r/b"),
    )


def test_blockers_of_runs_are_added_once() -> None:
    assert merge(Document(blockers=("a",)), [], ["b", "a", "b"]).blockers == ("a", "b")


# Changes


def test_none_leaves_everything_alone() -> None:
    document = Document("g", (Item("s"),), ("b",), "n", "c")
    assert revised(document, Changes.of()) == document
    assert revised(document, Changes.of(blockers=[], context="")) == Document("g", (Item("s"),), (), "n", "")


def test_done_ticks_an_open_step_of_the_same_text() -> None:
    document = Document(steps=(Item("a"), Item("b"), Item("a")))
    assert revised(document, Changes.of(done="a")).steps == (Item("a", True), Item("b"), Item("a"))


def test_done_twice_is_done_once_and_todo_again_is_a_new_step() -> None:
    document = revised(Document(), Changes.of(done=["a", "a"], todo=["b", "b"]))
    assert document.steps == (Item("a", True), Item("b"))
    assert revised(document, Changes.of(todo="a")).steps == (Item("a", True), Item("b"), Item("a"))


def test_replace_leaves_steps_of_runs_where_they_are() -> None:
    document = Document(steps=(Item("r: a", ref="r/a"), Item("x"), Item("r: b", ref="r/b"), Item("y", True)))
    changed = revised(document, Changes.of(done=["d"], todo="t", replace=True))
    assert changed.steps == (Item("r: a", ref="r/a"), Item("d", True), Item("t"), Item("r: b", ref="r/b"))
    assert revised(document, Changes.of(todo=[], replace=True)).steps == (document.steps[0], document.steps[2])


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"goal": 3}, "goal is text, not int"),
        ({"next_action": ["a"]}, "next_action is text, not list"),
        ({"context": b"x"}, "context is text, not bytes"),
        ({"done": 1}, "done is a text or a list of texts, not int"),
        ({"todo": {"a"}}, "todo is a text or a list of texts, not set"),
        ({"todo": ["a", 2]}, r"todo\[1\] is text, not int"),
        ({"blockers": [None]}, r"blockers\[0\] is text, not None"),
        ({"goal": "a\0"}, "goal contains a NUL"),
        ({"replace": "yes", "done": []}, "replace is True or False, not 'yes'"),
        ({"replace": True}, "give done or todo"),
    ],
)
def test_wrong_types_are_refused_with_a_sentence(given: dict[str, object], sentence: str) -> None:
    with pytest.raises(Invalid, match=sentence):
        Changes.of(**given)


# Plain data


def test_plain_data_comes_back() -> None:
    document = Document(
        "g", (Item("s", True, "r/a"), Item("t")), ("b",), "n", "c", "o", "m", (Section("h", "x", "goal", 1),), ("r/b",)
    )
    assert from_plain(decode(encode(to_plain(document)))) == document


@pytest.mark.parametrize(
    ("plain", "sentence"),
    [
        ({"goal": 1}, r"Expected `str`, got `int` - at `\$.goal`"),
        ({"steps": [{"text": "a", "done": "yes"}]}, r"at `\$.steps\[0\].done`"),
        ({"extra": [{"heading": "h", "after": "nowhere"}]}, r"at `\$.extra"),
        ([], "Expected `object`, got `array`"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_path(plain: object, sentence: str) -> None:
    with pytest.raises(Invalid, match=sentence):
        from_plain(plain)


def test_a_ref_names_a_run_and_a_step() -> None:
    with pytest.raises(Invalid, match="RUN/STEP, not 'charge'"):
        Item("a", ref="charge")


def test_sections_are_in_the_order_in_which_they_are_shown() -> None:
    last, first = Section("b", after="context"), Section("a", after="goal")
    assert Document(extra=(last, first)) == Document(extra=(first, last))
