"""What a document means: facts of runs, changes by hand, and plain data."""

from __future__ import annotations

import pytest

from holdfast.engine.codec import decode, encode
from holdfast.errors import Invalid
from holdfast.handoff.document import (
    HandoffChanges,
    HandoffDocument,
    HandoffItem,
    HandoffSection,
    from_plain,
    merge,
    revised,
    to_plain,
)

# Facts of runs


def test_steps_of_runs_come_after_those_stored() -> None:
    document = HandoffDocument(steps=(HandoffItem("by hand"),))
    merged = merge(document, [HandoffItem("r: a", True, "r/a"), HandoffItem("r: b", False, "r/b")], [])
    assert merged.steps == (HandoffItem("by hand"), HandoffItem("r: a", True, "r/a"), HandoffItem("r: b", False, "r/b"))


def test_a_stored_step_keeps_text_and_place_but_the_run_knows_whether_it_is_done() -> None:
    document = HandoffDocument(
        steps=(HandoffItem("my words", True, "r/a"), HandoffItem("by hand"), HandoffItem("gone", True, "old/x"))
    )
    merged = merge(document, [HandoffItem("r: a", False, "r/a")], [])
    assert merged.steps == (
        HandoffItem("my words", False, "r/a"),
        HandoffItem("by hand"),
        HandoffItem("gone", True, "old/x"),
    )


def test_hidden_steps_stay_out() -> None:
    assert merge(
        HandoffDocument(hidden=("r/a",)), [HandoffItem("r: a", True, "r/a"), HandoffItem("r: b", ref="r/b")], []
    ).steps == (HandoffItem("r: b", ref="r/b"),)


def test_blockers_of_runs_are_added_once() -> None:
    assert merge(HandoffDocument(blockers=("a",)), [], ["b", "a", "b"]).blockers == ("a", "b")


# Changes


def test_none_leaves_everything_alone() -> None:
    document = HandoffDocument("g", (HandoffItem("s"),), ("b",), "n", "c")
    assert revised(document, HandoffChanges.of()) == document
    assert revised(document, HandoffChanges.of(blockers=[], context="")) == HandoffDocument(
        "g", (HandoffItem("s"),), (), "n", ""
    )


def test_done_ticks_an_open_step_of_the_same_text() -> None:
    document = HandoffDocument(steps=(HandoffItem("a"), HandoffItem("b"), HandoffItem("a")))
    assert revised(document, HandoffChanges.of(done="a")).steps == (
        HandoffItem("a", True),
        HandoffItem("b"),
        HandoffItem("a"),
    )


def test_done_twice_is_done_once_and_todo_again_is_a_new_step() -> None:
    document = revised(HandoffDocument(), HandoffChanges.of(done=["a", "a"], todo=["b", "b"]))
    assert document.steps == (HandoffItem("a", True), HandoffItem("b"))
    assert revised(document, HandoffChanges.of(todo="a")).steps == (
        HandoffItem("a", True),
        HandoffItem("b"),
        HandoffItem("a"),
    )


def test_replace_leaves_steps_of_runs_where_they_are() -> None:
    document = HandoffDocument(
        steps=(HandoffItem("r: a", ref="r/a"), HandoffItem("x"), HandoffItem("r: b", ref="r/b"), HandoffItem("y", True))
    )
    changed = revised(document, HandoffChanges.of(done=["d"], todo="t", replace=True))
    assert changed.steps == (
        HandoffItem("r: a", ref="r/a"),
        HandoffItem("d", True),
        HandoffItem("t"),
        HandoffItem("r: b", ref="r/b"),
    )
    assert revised(document, HandoffChanges.of(todo=[], replace=True)).steps == (document.steps[0], document.steps[2])


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"goal": 3}, "goal is text, not int"),
        ({"next_action": ["a"]}, "next_action is text, not list"),
        ({"context": b"x"}, "context is text, a dict or a list, not bytes"),
        ({"done": 1}, "done is a text or a list of texts, not int"),
        ({"todo": {"a"}}, "todo is a text or a list of texts, not set"),
        ({"todo": ["a", 2]}, r"todo\[1\] is text, not int"),
        ({"blockers": [None]}, r"blockers\[0\] is text, not None"),
        ({"goal": "a\0"}, "goal contains a NUL"),
        ({"replace": "yes", "done": []}, "replace is True or False, not 'yes'"),
        ({"replace": True}, "replaces what you give"),
    ],
)
def test_wrong_types_are_refused_with_a_sentence(given: dict[str, object], sentence: str) -> None:
    with pytest.raises(Invalid, match=sentence):
        HandoffChanges.of(**given)


# Plain data


def test_plain_data_comes_back() -> None:
    document = HandoffDocument(
        "g",
        (HandoffItem("s", True, "r/a"), HandoffItem("t")),
        ("b",),
        "n",
        "c",
        "o",
        "m",
        (HandoffSection("h", "x", "goal", 1),),
        ("r/b",),
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
        HandoffItem("a", ref="charge")


def test_sections_are_in_the_order_in_which_they_are_shown() -> None:
    last, first = HandoffSection("b", after="context"), HandoffSection("a", after="goal")
    assert HandoffDocument(extra=(last, first)) == HandoffDocument(extra=(first, last))


def test_decisions_and_features_are_replaced_only_where_that_is_asked_for() -> None:
    first = revised(HandoffDocument(), HandoffChanges.of(decisions=["use pg"], features=["it starts", "it stops"]))
    added = revised(first, HandoffChanges.of(decisions=["ship"], features={"it starts": True}))
    assert (added.decisions, [(one.text, one.done) for one in added.features]) == (
        ("use pg", "ship"), [("it starts", True), ("it stops", False)],
    )  # fmt: skip
    gone = revised(added, HandoffChanges.of(decisions=[], features=["it runs"], replace=True))
    assert (gone.decisions, [one.text for one in gone.features]) == ((), ["it runs"])
    assert revised(added, HandoffChanges.of(decisions=[], features=[])) == added
