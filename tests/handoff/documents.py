"""Documents of a handoff for generated cases: any text in any place, and pieces that look like structure."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from holdfast.handoff.document import KINDS, HandoffDocument, HandoffItem, HandoffSection

PIECES = [
    "\n", "\n\n", " ", "  ", "    ", "\t", "\\", "#", "# ", "## ", "### ", "Goal", "Notes", "Done", "- ", "* ", "1. ",
    "1) ", "[x] ", "[ ]", "<!--", "-->", "/", "<!-- a/b -->", "<!-- note -->", "```", "~~~", "````", "\r", "\r\n",
    "&#13;", "&amp;", "&#10;", "&", "<", ">", "--", ":", "**", "\ufeff", "\u2028", "\x0b", "\x85", "é", "Handoff: t",
    "## Steps\n", "## Blockers\n", "### Done\n", "<!-- holdfast: thread t, revision 3 -->", "===", "---", "> ",
    "<!-- holdfast: hidden a/b -->", "<<<<<<< ", "\n>>>>>>> ", "```json data\n", '{"a": 1}', "\n```\n",
    "```json\\ data\n", "## Features\n", "## Decisions\n", "## Start\n", "### Goal\n", "# Progress\n", "🎯 ",
]  # fmt: skip
CHARS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)
TEXTS = st.lists(st.sampled_from(PIECES) | CHARS, max_size=9).map("".join)
REFS = st.tuples(TEXTS, TEXTS).map("/".join)
ITEMS = st.builds(HandoffItem, TEXTS, st.booleans(), st.none() | REFS)
SECTIONS = st.builds(
    HandoffSection,
    TEXTS
    | st.sampled_from(
        ["Notes", "\\Notes", "Done", "Goal", "Next", "Blocked", "opening", "sections", "holdfast", "ideas"]
    ),
    TEXTS,
    st.sampled_from(["", *KINDS]),
    st.sampled_from([1, 2]),
)


def _few(strategy: Any) -> Any:
    return st.lists(strategy, max_size=3).map(tuple)


LEAVES = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    LEAVES | TEXTS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=6
)
DATA = st.none() | st.lists(VALUES, max_size=3) | st.dictionaries(TEXTS, VALUES, max_size=3)
DOCUMENTS = st.builds(
    HandoffDocument, TEXTS, _few(ITEMS), _few(TEXTS), TEXTS, TEXTS, TEXTS, TEXTS, _few(SECTIONS), _few(REFS),
    _few(TEXTS), _few(ITEMS), TEXTS, TEXTS, DATA,
)  # fmt: skip
