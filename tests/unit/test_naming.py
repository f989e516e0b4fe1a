"""Names of a framework inside names of ours: no two share one, and each tells what it was made of."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.extension import escaped, unescaped
from holdfast.ids import check_id

TEXTS = st.text(st.sampled_from("/%2F5ab\x00é"), max_size=8) | st.text()


@given(st.lists(TEXTS, min_size=1))
@example(["a/b", "a", "/b", "%2F", "%252F", "%", "%25", ""])
def test_a_name_tells_its_parts(parts: list[str]) -> None:
    name = "/".join(map(escaped, parts))
    assert [unescaped(part) for part in name.split("/")] == parts


def test_what_needs_no_escaping_stays_readable() -> None:
    assert escaped("Ana's trip: 2026-05") == "Ana's trip: 2026-05"
    assert escaped("100%/day") == "100%25%2Fday"


@given(st.text(st.characters(max_codepoint=0x2100, exclude_categories=["Cs"]), min_size=1, max_size=40))
def test_whatever_a_framework_calls_it_can_be_a_name_of_ours(part: str) -> None:
    assert check_id(escaped(part), "name") == escaped(part)
