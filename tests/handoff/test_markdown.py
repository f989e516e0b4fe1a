"""Markdown there and back: every document exactly, and every line that a person wrote."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from tests.handoff.documents import DOCUMENTS, TEXTS

from holdfast.errors import Invalid, TooLarge
from holdfast.handoff.document import HandoffDocument, HandoffItem, HandoffSection, same
from holdfast.handoff.markdown import MAX_BYTES, known, parse, render

# Both promises


@settings(max_examples=2 * settings().max_examples)
@given(DOCUMENTS, TEXTS.filter(bool), st.integers(0, 10**18 - 1))
@example(HandoffDocument(goal="## Steps\n1. [x] not a step"), "t", 1)
@example(HandoffDocument(context="```\n# a comment\n"), "t", 1)
@example(HandoffDocument(steps=(HandoffItem("[x] in its own text", ref="a --> b/c"),)), "t", 1)
@example(HandoffDocument(extra=(HandoffSection("Notes", "b", "context"), HandoffSection("Goal", "a", ""))), "t", 1)
@example(
    HandoffDocument(goal="<<<<<<< a\n\\>>>>>>> b", steps=(HandoffItem("<<<<<<< a\n>>>>>>> b"),), opening=">>>>>>> "),
    "t",
    1,
)
@example(HandoffDocument(context='```json data\n{"a": 1}\n```', data={"a": 1.0}), "t", 1)
@example(
    HandoffDocument(context="```json\\ data\n~~~\n```json data", features=(HandoffItem("### Goal", ref="a/b"),)), "t", 1
)
@example(HandoffDocument(extra=(HandoffSection("Progress", "x", "", 1), HandoffSection("Goal", "y", "start"))), "t", 1)
@example(HandoffDocument(opening="\n", remarks="- no step\n### Done\n1. no step"), "Notes", 0)
def test_every_document_comes_back_exactly(document: HandoffDocument, thread: str, revision: int) -> None:
    found = parse(render(document, thread, revision), thread)
    assert found.document == document
    assert same(found.document, document), "1, 1.0 and true are not the same"
    assert (found.thread, found.revision) == (thread, revision)


MARKUP = re.compile(r"^(?:[\s\\>]|(?:[-*+]|[0-9]{1,9}[.)])(?=[ \t]|$)|\[[ xX]\](?=[ \t]|$)|#+(?=[ \t]|$))*")


def _content(line: str) -> str:
    """What a line says, apart from how lists, boxes, headings and escapes are written."""
    return re.sub(r"(?:[\s\\]|&#13;)+", " ", re.sub(r"[\s#\\]+$", "", MARKUP.sub("", line)))


def _contents(text: str) -> Counter[str]:
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return Counter(content for line in lines if (content := _content(line)).strip())


@settings(max_examples=2 * settings().max_examples)
@given(TEXTS | st.lists(TEXTS, max_size=8).map("\n".join))
@example("Goal\n====\n\n- a\n  - b\n      - c\n\nlast")
@example("## Done\n- a\n```\n## code\n\\\n```\n### Phase 2\n- b")
@example("## Goal\na\n## Objective\nb\n## Blocked\nc\n\nd\n- e\nf")
@example("# Fortschritt\n\n## Ziel\nEin Parser\n\n## Erledigt\n- a\n")
@example("<html>\n<h1>Goal</h1>\n<!-- ## Goal -->\n<p>x</p>\n</html>")
@example("### Goal\na\n### Risks\nb\n#### Deep\nc\n### Done\nd\n\ne\n")
@example('## Context\n```json\n{"a":1}\n```\n```json data\n{"a":1,"a":2}\n```\nlast\n')
def test_no_line_of_a_person_is_lost(text: str) -> None:
    assume(not re.search("(?:^\ufeff?|\n|\r)(?:<{7}|>{7}) ", text))  # that is refused, outside of code
    rendered = render(parse(text, "t").document, "t", 1)
    kept = _contents(rendered)
    for content, number in _contents(text).items():
        if known(content) or content.casefold() in ("handoff", "handoff: t") or "<!-- holdfast:" in content:
            continue  # the heading of a part, our title and our comments are written anew
        assert kept[content] >= number, f"{content!r} is not in\n{rendered}"
    assert render(parse(rendered, "t").document, "t", 1) == rendered


@given(TEXTS)
def test_a_text_survives_another_editor(text: str) -> None:
    """Line ends of another system and a byte order mark change nothing."""
    document = HandoffDocument(
        goal=text, steps=(HandoffItem(text, True, "a/b"),), blockers=(text,), extra=(HandoffSection(text, text),)
    )
    written = render(document, "t", 7)
    assert parse("\ufeff" + written.replace("\n", "\r\n"), "t").document == document


# How it looks


DOCUMENT = HandoffDocument(
    goal="Book a morning flight to Lisbon.",
    steps=(
        HandoffItem("Asked for the dates", True),
        HandoffItem("book-flight: search", True, "book-flight/search"),
        HandoffItem("book-flight: charge", False, "book-flight/charge"),
    ),
    blockers=("The card was declined",),
    next_action="Ask for another card.",
    context="She prefers mornings.\n\n```sh\n# not a heading\n## nor this\n```\n\n- a list\n  - nested",
)
TEXT = """\
# Handoff: trip-42

## Goal
Book a morning flight to Lisbon.

## Steps
1. [x] Asked for the dates
2. [x] book-flight: search <!-- book-flight/search -->
3. [ ] book-flight: charge <!-- book-flight/charge -->

## Blockers
- The card was declined

## Next action
Ask for another card.

## Context
She prefers mornings.

```sh
# not a heading
## nor this
```

- a list
  - nested

<!-- holdfast: thread trip-42, revision 7 -->
"""


def test_it_looks_like_what_people_know() -> None:
    assert render(DOCUMENT, "trip-42", 7) == TEXT
    assert parse(TEXT, "trip-42") == (DOCUMENT, "trip-42", 7)


def test_an_empty_handoff_is_a_form_to_fill_in() -> None:
    text = render(HandoffDocument(), "t", 0)
    assert re.findall("^## (.*)$", text, re.M) == ["Goal", "Steps", "Blockers", "Next action", "Context"]
    assert parse(text, "t").document == HandoffDocument()


def test_only_what_would_be_structure_is_escaped() -> None:
    text = render(HandoffDocument(goal="C:\\new\n## x\n\\## y\n#tag\n### z", context="```\nopen"), "t", 1)
    assert "C:\\new\n\\## x\n\\\\## y\n#tag\n### z\n" in text
    assert "\\```\nopen\n" in text


def test_a_ref_is_a_comment_for_every_viewer() -> None:
    line = render(HandoffDocument(steps=(HandoffItem("a", ref="x--y/-->z"),)), "t", 1).splitlines()[5]
    assert line == "1. [ ] a <!-- x-&#45;y/-&#45;&#62;z -->"


# What people write


@pytest.mark.parametrize(
    ("heading", "field"),
    [
        ("Goal", "goal"), ("OBJECTIVE", "goal"), ("Task:", "goal"), ("**Goal**", "goal"), ("Goal ##", "goal"),
        ("Next", "next_action"), ("next steps", "next_action"), ("Next  step", "next_action"),
        ("Notes", "context"), ("context:", "context"), ("Current Goal", "goal"), ("🎯 Goal", "goal"),
        ("1. Goal", "goal"), ("1️⃣ **Current goal:** 🎯", "goal"), ("_Objective_", "goal"),
        ("What\u2019s next?", "next_action"),
        ("▶️ Next Action", "next_action"), ("Background", "context"), ("Run first", "start"), ("🚀 Startup:", "start"),
    ],
)  # fmt: skip
def test_headings_of_texts(heading: str, field: str) -> None:
    for level in ("#", "##", "###"):
        assert parse(f"{level} {heading}\n\nabc\n").document == HandoffDocument(**{field: "abc"})


@pytest.mark.parametrize("heading", ["Steps", "Progress", "Todo", "To do", "TASKS", "Remaining"])
def test_plain_list_lines_are_open(heading: str) -> None:
    assert parse(f"## {heading}\n- a\n* [X] b\n").document.steps == (HandoffItem("a"), HandoffItem("b", True))


@pytest.mark.parametrize("heading", ["Done", "Completed", "Completed steps:", "✅ Done", "✓"])
def test_plain_list_lines_under_completed_are_done(heading: str) -> None:
    steps = parse(f"## {heading}\n- a\n- [ ] b\n").document.steps
    assert steps == (() if heading == "✓" else (HandoffItem("a", True), HandoffItem("b")))


def test_every_kind_of_list() -> None:
    text = "## Steps\n- [ ] a\n* [x] b\n+ [X]\tc\n1. d\n2) [x]   e  \n-\tf\n"
    assert parse(text).document.steps == (
        HandoffItem("a"), HandoffItem("b", True), HandoffItem("c", True),
        HandoffItem("d"), HandoffItem("e", True), HandoffItem("f"),
    )  # fmt: skip


def test_done_and_todo_are_one_list() -> None:
    text = "# Progress\n## Done\n- a\n\n## Todo\nThese are left:\n- b\n"
    document = parse(text).document
    assert document.steps == (HandoffItem("a", True), HandoffItem("b"))
    assert document.remarks == "These are left:"
    assert document.extra == (HandoffSection("Progress", level=1),)


def test_deeper_headings_say_done_too() -> None:
    text = "## Progress\n### Completed\n- a\n### Remaining\n- b\n### Phase 2\n- c\n"
    assert parse(text).document.steps == (HandoffItem("a", True), HandoffItem("b\n### Phase 2"), HandoffItem("c"))


def test_lines_below_an_item_belong_to_it() -> None:
    text = "## Steps\n- [ ] a\n  more\n  - nested\n    - deeper\nlazy\n\n  after a gap\n- b\n\nfree text\n"
    first, second = parse(text).document.steps
    assert first.text == "a\nmore\n- nested\n  - deeper\nlazy\n\nafter a gap"
    assert second.text == "b\n\nfree text"


def test_tabs_indent() -> None:
    assert parse("## Steps\n- a\n\tb\n\t- c\n").document.steps == (HandoffItem("a\nb\n- c"),)


def test_code_in_a_list_is_not_cut() -> None:
    text = "## Steps\n- a\n  ```\n  # x\n    - y\n  ```\n- b\n```\n## z\n    - w\n```\n"
    assert [item.text for item in parse(text).document.steps] == [
        "a\n```\n# x\n  - y\n```",
        "b\n```\n## z\n    - w\n```",
    ]


def test_code_beside_the_indentation_keeps_its_own() -> None:
    assert parse("## Steps\n- a\n  more\n```\n    x\n```\n").document.steps == (
        HandoffItem("a\nmore\n```\n    x\n```"),
    )


def test_plain_paragraphs_under_done_and_todo_are_steps() -> None:
    text = "## Completed\nRead the\nspec.\n\nWrote the lexer.\n\n## Todo\nWrite the parser.\n"
    document = parse(text + "\n## Progress\nIt goes well.\n").document
    done = (HandoffItem("Read the\nspec.", True), HandoffItem("Wrote the lexer.", True))
    assert document.steps == (*done, HandoffItem("Write the parser."))
    assert document.remarks == "It goes well."


@pytest.mark.parametrize("heading", ["Current Blocker", "Issues", "KNOWN ISSUES:", "🚧 Blockers", "Blocked on"])
@pytest.mark.parametrize("text", ["No key yet", "- No key yet", "1. No key yet"])
def test_headings_of_blockers(heading: str, text: str) -> None:
    assert parse(f"## {heading}\n\n{text}\n").document == HandoffDocument(blockers=("No key yet",))


def test_decisions_and_features_and_a_start() -> None:
    text = (
        "# Progress: a parser\n\n## Features\nAll must pass.\n- [x] lexes\n- [ ] parses\n\n## Key decisions\n"
        "- No recursion\n  because of depth\n\nLALR\n\n## Start script\n```sh\n./init.sh\n```\n"
    )
    document = parse(text).document
    assert document == HandoffDocument(
        start="```sh\n./init.sh\n```",
        features=(HandoffItem("lexes", True), HandoffItem("parses")),
        feature_remarks="All must pass.",
        decisions=("No recursion\nbecause of depth", "LALR"),
        extra=(HandoffSection("Progress: a parser", level=1),),
    )
    assert "# Progress: a parser\n" in render(document, "t", 1)


def test_several_next_steps_and_two_goals_lose_nothing() -> None:
    document = parse("## Next steps\n- a\n- b\n\n## Goal\nx\n\n## Objective\ny\n").document
    assert document == HandoffDocument(goal="x\n\ny", next_action="- a\n- b")


def test_headings_of_the_third_level_count_when_the_parts_are_there() -> None:
    text = "# Notes of the week\n## Sprint 3\nGo.\n### Done\n- a\n### Risks\nr\n#### Deep\n### Next\nb\n"
    assert parse(text).document == HandoffDocument(
        steps=(HandoffItem("a", True),),
        next_action="b",
        extra=(
            HandoffSection("Notes of the week", level=1),
            HandoffSection("Sprint 3", "Go."),
            HandoffSection("Risks", "r\n#### Deep", "steps"),
        ),
    )
    assert parse("## Goal\ng\n### Next\nx\n").document == HandoffDocument(goal="g\n### Next\nx")


def test_data_of_a_context_is_a_block_of_its_own() -> None:
    document = HandoffDocument(context="Mornings.", data={"files": ["a.py"], "apis": []})
    text = render(document, "t", 1)
    assert '## Context\nMornings.\n\n```json data\n{\n  "files": [\n' in text
    assert parse(text.replace("a.py", "b.py") + "And this.\n", "t").document == HandoffDocument(
        context="Mornings.\n\nAnd this.", data={"files": ["b.py"], "apis": []}
    )


@pytest.mark.parametrize("broken", ["{", '{"a": 1, "a": 2}', "[NaN]", "3", "{}", "[" * 5_000, '["\\ud800"]'])
def test_a_block_that_cannot_be_data_stays_text(broken: str) -> None:
    block = f"```json data\n{broken}\n```"
    document = parse(f"## Context\n{block}\n").document
    assert document == HandoffDocument(context=block)
    assert parse(render(document, "t", 1), "t").document == document


def test_blockers_in_any_form() -> None:
    text = "## Blocked\nThe card\nwas declined.\n\nNo answer.\n- a\n  b\n\nand this\n"
    assert parse(text).document.blockers == ("The card\nwas declined.", "No answer.", "a\nb", "and this")


def test_unknown_headings_keep_their_place() -> None:
    text = (
        "Hello.\n\n# Handoff: t\n\n## Warning\nw\n\n## Goal\ng\n\n## Ideas\n\ni\n\n## Steps\n- a\n\n## Links\nl\n"
        "\n## Notes\nn\n\n## Context\nsecond\n"
    )
    document = parse(text, "t").document
    assert document.extra == (
        HandoffSection("Warning", "w", ""),
        HandoffSection("Ideas", "i", "goal"),
        HandoffSection("Links", "l", "steps"),
    )
    assert (document.opening, document.context) == ("Hello.", "n\n\nsecond")
    headings = re.findall("^#+ (.*)$", render(document, "t", 1), re.M)
    assert headings == [
        "Handoff: t", "Warning", "Goal", "Ideas", "Steps", "Links", "Blockers", "Next action", "Context",
    ]  # fmt: skip


def test_headings_of_the_first_level_count_when_there_are_no_others() -> None:
    assert parse("# Goal\ng\n# Next\nn\n").document == HandoffDocument(goal="g", next_action="n")
    mixed = parse("# Goal\ng\n## Next\nn\n").document
    assert (mixed.goal, mixed.next_action, mixed.extra) == ("g", "n", ())
    titled = parse("# Progress\n\n## Goal\ng\n## Next\nn\n").document
    assert (titled.goal, titled.next_action, titled.steps) == ("g", "n", ())


def test_a_title_of_another_thread_is_kept() -> None:
    assert parse("# Handoff: t\n", "t").document == HandoffDocument()
    assert parse("# Handoff: u\n", "t").document.extra == (HandoffSection("Handoff: u", level=1),)


def test_a_comment_without_a_ref_is_text() -> None:
    assert parse("## Steps\n- a <!-- why? -->\n- b <!-- r/s -->\n").document.steps == (
        HandoffItem("a <!-- why? -->"),
        HandoffItem("b", ref="r/s"),
    )


@pytest.mark.parametrize("fence", ["```", "~~~~", "````python"])
def test_code_is_never_a_heading(fence: str) -> None:
    end = fence.removesuffix("python")
    text = f"## Context\n{fence}\n## Goal\n<!-- holdfast: hidden a/b -->\n```x\n{end}\n## Goal\nreal\n"
    document = parse(text).document
    assert document.goal == "real"
    assert "## Goal\n<!-- holdfast: hidden a/b -->" in document.context
    assert document.hidden == ()


def test_an_unclosed_fence_does_not_swallow_the_rest() -> None:
    assert parse("## Goal\n```\nx\n## Next\ny\n").document == HandoffDocument(goal="```\nx", next_action="y")


def test_no_final_newline_and_empty_sections() -> None:
    assert parse("## Goal\n\n## Steps\n\n## Context").document == HandoffDocument()
    assert parse("## Goal\nx").document == HandoffDocument(goal="x")
    assert parse("").document == HandoffDocument()


def test_very_long_lines() -> None:
    long = "<!-- a/" * 50_000
    assert (
        parse(render(HandoffDocument(goal=long, steps=(HandoffItem(long),)), "t", 1), "t").document.steps[0].text
        == long
    )


def test_many_unclosed_fences_take_no_time() -> None:
    """Quadratic work here would be minutes: the limit of the test run notices."""
    text = "".join(f"```{number}\n" for number in range(100_000))
    assert parse(text).document.opening == text[:-1]


# What is not text


def test_a_nul_is_refused_with_its_line() -> None:
    with pytest.raises(Invalid, match="line 2 contains a NUL"):
        parse("# x\na\0b\n")


@pytest.mark.parametrize("marker", ["<<<<<<< HEAD", ">>>>>>> side branch"])
def test_a_merge_conflict_is_refused_with_its_line(marker: str) -> None:
    with pytest.raises(Invalid, match=re.escape(f"line 3 is the marker of a merge conflict ({marker})")) as refused:
        parse(f"## Steps\n- a\n{marker}\n- b\n")
    assert refused.value.facts["line"] == 3


@pytest.mark.parametrize(
    "line", ["```\n<<<<<<< HEAD\n>>>>>>> side\n```", "a <<<<<<< b", "<<<<<<<", "    >>>>>>> b", "======="]
)
def test_what_is_no_merge_conflict_is_text(line: str) -> None:
    assert parse(f"## Goal\na\n{line}\n").document.goal == f"a\n{line}"


def test_too_long_is_refused() -> None:
    with pytest.raises(TooLarge, match=f"at most {MAX_BYTES:,} bytes"):
        parse("é" * (MAX_BYTES // 2 + 1))
