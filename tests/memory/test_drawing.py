"""Links as text for programs that draw: everything once, what no longer holds dashed, and nothing breaks the syntax."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.memory.drawing import to_dot, to_mermaid
from holdfast.memory.graph import Link

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
DAY = timedelta(days=1)


def link(subject: str, relation: str, object: str, until: int | None = None) -> Link:
    return Link("m", subject, relation, object, MONDAY, None if until is None else MONDAY + until * DAY)


FAMILY = [
    link("Ana", "knows", "Ben"), link("Ben", "knows", "Ana"), link("Ana", "lives in", "Bern"),
    link("Ana", "lives in", "Basel", until=5), link("Ana", "talks to", "Ana"), link("x", "is", "y"),
]  # fmt: skip
FORMS: list[tuple[Callable[..., str], str, str]] = [
    (to_dot, r"^  n\d+ \[", "style=dashed"),
    (to_mermaid, r'^  n\d+\["', "-.->"),
]
both = pytest.mark.parametrize(("draw", "box", "dashed"), FORMS, ids=["dot", "mermaid"])


@both
def test_every_entity_and_relation_is_there_once(draw: Callable[..., str], box: str, dashed: str) -> None:
    text = draw([*FAMILY, link("ANA", "Knows", "ben")], title="Around Ana")
    assert len(re.findall(box, text, re.M)) == 6
    assert [text.count(f'"{name}"') for name in ("Ana", "Basel", "Ben", "Bern", "x", "y")] == [1] * 6
    assert text.count("knows") == 2
    assert "Around Ana" in text


@both
def test_what_does_not_hold_is_dashed(draw: Callable[..., str], box: str, dashed: str) -> None:
    assert draw(FAMILY).count(dashed) == 1
    assert draw(FAMILY, MONDAY + DAY).count(dashed) == 0
    assert draw(FAMILY, MONDAY + 6 * DAY).count(dashed) == 1
    assert draw(FAMILY, MONDAY - DAY).count(dashed) == 6, "nothing held yet"
    assert draw([link("a", "r", "b", until=1), link("a", "r", "b")]).count(dashed) == 0, "one of the two holds"


@both
@given(text=st.text(max_size=40))
def test_no_text_breaks_out_of_its_line(draw: Callable[..., str], box: str, dashed: str, text: str) -> None:
    drawn = draw([link(f"s{text}", f"r{text}", f"o{text}")])
    plain = draw([link("s", "r", "o")])
    assert len(drawn.splitlines()) == len(plain.splitlines())
    unescaped = re.sub(r"\\.", "", drawn)
    assert unescaped.count('"') == plain.count('"')


@both
def test_no_links_are_an_empty_graph(draw: Callable[..., str], box: str, dashed: str) -> None:
    assert not re.findall(box, draw([]), re.M)


def test_dot_escapes_quotes_and_backslashes() -> None:
    dot = to_dot([link('say "hi"', "back\\slash", "b", until=1), link("b", "to", "c")], title='a "title"')
    assert dot.startswith("digraph memory {")
    assert '[label="say \\"hi\\""]' in dot
    assert 'n0 -> n1 [label="back\\\\slash", style=dashed' in dot
    assert 'n1 -> n2 [label="to"];' in dot
    assert 'label="a \\"title\\""' in dot


def test_mermaid_escapes_what_it_would_read_as_syntax() -> None:
    text = to_mermaid([link('say "hi" #1', "a|b", "<b>", until=1), link("<b>", "to", "c")], title='a "title"')
    assert text == (
        "---\n"
        'title: "a \\"title\\""\n'
        "---\n"
        "flowchart LR\n"
        '  n0["say #34;hi#34; #35;1"]\n'
        '  n1["#60;b#62;"]\n'
        '  n2["c"]\n'
        '  n0 -.->|"a#124;b"| n1\n'
        '  n1 -->|"to"| n2\n'
    )
