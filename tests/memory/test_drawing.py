"""Pictures of links: well formed, the same every time, and nothing on top of anything else."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.memory.drawing import to_dot, to_svg
from holdfast.memory.graph import Link
from holdfast.memory.layout import arrange

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
DAY = timedelta(days=1)
SVG = "{http://www.w3.org/2000/svg}"


def link(subject: str, relation: str, object: str, until: int | None = None) -> Link:
    return Link("m", subject, relation, object, MONDAY, None if until is None else MONDAY + until * DAY)


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def boxes(root: ElementTree.Element) -> list[tuple[float, float, float, float]]:
    found = [one for one in root.iter(f"{SVG}rect") if one.get("class", "").startswith("box")]
    return [tuple(float(one.get(name, "")) for name in ("x", "y", "width", "height")) for one in found]  # type: ignore[misc]


def texts(root: ElementTree.Element, kind: str) -> list[str]:
    return [one.text or "" for one in root.iter(f"{SVG}text") if one.get("class", "").split()[0] == kind]


def assert_apart_and_inside(root: ElementTree.Element) -> None:
    drawn = boxes(root)
    _, _, width, height = map(float, root.get("viewBox", "").split())
    for x, y, wide, high in drawn:
        assert x >= 0
        assert y >= 0
        assert x + wide <= width
        assert y + high <= height
    for (ax, ay, aw, ah), (bx, by, bw, bh) in combinations(drawn, 2):
        assert ax + aw <= bx or bx + bw <= ax or ay + ah <= by or by + bh <= ay


FAMILY = [
    link("Ana", "knows", "Ben"), link("Ben", "knows", "Ana"), link("Ana", "lives in", "Bern"),
    link("Ana", "lives in", "Basel", until=5), link("Ana", "talks to", "Ana"), link("x", "is", "y"),
]  # fmt: skip


def test_every_entity_and_relation_is_there_once() -> None:
    root = parsed(to_svg([*FAMILY, link("ANA", "Knows", "ben")], title="Around Ana"))
    assert sorted(texts(root, "name")) == ["Ana", "Basel", "Ben", "Bern", "x", "y"]
    assert sorted(texts(root, "says")) == ["is", "knows", "knows", "lives in", "lives in", "talks to"]
    assert texts(root, "title") == ["Around Ana"]
    assert_apart_and_inside(root)


def test_what_does_not_hold_is_dashed() -> None:
    def dashed(svg: str) -> int:
        return svg.count('class="edge gone"')

    assert dashed(to_svg(FAMILY)) == 1
    assert dashed(to_svg(FAMILY, MONDAY + DAY)) == 0
    assert dashed(to_svg(FAMILY, MONDAY + 6 * DAY)) == 1
    assert dashed(to_svg(FAMILY, MONDAY - DAY)) == 6, "nothing held yet"
    assert dashed(to_svg([link("a", "r", "b", until=1), link("a", "r", "b")])) == 0, "one of the two holds"
    assert ("dashed: does not hold" in to_svg(FAMILY), "dashed: does" in to_svg(FAMILY[:3])) == (True, False)


def test_the_entity_in_focus_stands_out() -> None:
    assert to_svg(FAMILY, focus=" ana").count('class="box focus"') == 1
    assert to_svg(FAMILY).count('class="box focus"') == 0


@pytest.mark.parametrize(
    "text", ['<script>alert("x")</script>', "a & b", "]]>", "\x01\x1b", "a\nb\tc", "'\"", "\ufffe"]
)
def test_any_text_is_drawn_and_none_becomes_markup(text: str) -> None:
    svg = to_svg([link(f"s{text}", f"r{text}", f"o{text}")], title=text)
    root = parsed(svg)
    assert len(texts(root, "name")) == 2
    assert not list(root.iter(f"{SVG}script"))


def test_long_names_are_cut_and_told_in_full_beside() -> None:
    svg = to_svg([link("x" * 400, "r" * 400, "y")])
    assert "…" in svg
    assert f"<title>{'x' * 400}</title>" in svg
    assert max(width for _, _, width, _ in boxes(parsed(svg))) < 400


def test_no_links_are_a_picture_too() -> None:
    assert "There are no links." in to_svg([])
    assert parsed(to_svg([], title="Nothing")).tag == f"{SVG}svg"


def test_the_same_links_are_the_same_picture() -> None:
    assert to_svg(FAMILY, title="t") == to_svg(list(FAMILY), title="t")


def test_colours_follow_the_reader() -> None:
    assert "prefers-color-scheme:dark" in to_svg(FAMILY)


NAMES = [
    f"{word} {number}" for number, word in enumerate(["a", "a project", "the team with a long name", "日本語"] * 10)
]
GRAPHS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(["knows", "is part of", "r"]), st.sampled_from(NAMES)),
    min_size=1,
    max_size=70,
)


@given(GRAPHS)
def test_no_two_names_overlap(edges: list[tuple[str, str, str]]) -> None:
    assert_apart_and_inside(parsed(to_svg([link(*edge) for edge in edges])))


@pytest.mark.parametrize("shape", ["star", "line", "ring", "whole", "apart"])
def test_names_do_not_overlap_in_the_shapes_people_have(shape: str) -> None:
    names = NAMES[: 14 if shape == "whole" else 40]
    pairs = {
        "star": [(names[0], other) for other in names[1:]],
        "line": list(pairwise(names)),
        "ring": list(zip(names, [*names[1:], names[0]], strict=True)),
        "whole": list(combinations(names, 2)),
        "apart": list(zip(names[::2], names[1::2], strict=True)),
    }[shape]
    root = parsed(to_svg([link(a, "knows", b) for a, b in pairs]))
    assert len(boxes(root)) == len(names)
    assert_apart_and_inside(root)


def test_boxes_do_not_overlap_when_there_is_no_time_to_push_them_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.memory.layout._WORK", 0)  # as with thousands of entities
    spots = arrange([(500.0, 30.0)] * 30, [(a, b, 1.0) for a, b in combinations(range(30), 2)])
    for (ax, ay), (bx, by) in combinations(spots, 2):
        assert abs(ax - bx) >= 500 or abs(ay - by) >= 30


def test_labels_of_a_small_picture_cover_no_name() -> None:
    root = parsed(to_svg([link("Ana", relation, "Ben") for relation in ("knows", "likes", "works with")]))
    backs = [one for one in root.iter(f"{SVG}rect") if one.get("class") == "back"]
    assert len(backs) == 3
    for back in backs:
        x, y, wide, high = (float(back.get(name, "")) for name in ("x", "y", "width", "height"))
        for bx, by, bw, bh in boxes(root):
            assert x + wide <= bx or bx + bw <= x or y + high <= by or by + bh <= y


def test_dot_names_everything_and_escapes_it() -> None:
    dot = to_dot([link('say "hi"', "back\\slash", "b", until=1), link("b", "to", "c")], title='a "title"')
    assert dot.startswith("digraph memory {")
    assert '[label="say \\"hi\\""]' in dot
    assert 'n0 -> n1 [label="back\\\\slash", style=dashed' in dot
    assert 'n1 -> n2 [label="to"];' in dot
    assert 'label="a \\"title\\""' in dot
    assert len(re.findall(r"^  n\d+ \[", dot, re.M)) == 3
