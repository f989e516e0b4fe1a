"""What holds of every stand-in, whatever the text."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from holdfast.context import masking
from holdfast.context.masking import LIMIT, SHORT, Masked, least
from holdfast.context.sentences import Count
from holdfast.providers.tokens.choose import counter_for

FETCH = "trip-42#17"

words = st.sampled_from([
    "error", "failed", "passed", "0", "no", "errors:", "E  ", "FAILED", "ERROR", "tests/a.py::t", "a.py:3:", "|",
    "2\u00d7", "[masked:", "; the whole text: trip-42#17]", "[and", "1", "more error lines in the whole text]", "{",
    "}", '"', ":", ",", "\\n", "\x1b[31m", "\x1b]", "\r", "\x00", "\u2028", "\u0130", "ß", "错误", "\ud800", "at (",
    "-->", 'File "a.py", line 3', "Traceback", "panic:", "@@", "diff --git", "+", "-", "<html>", "#", "##", "commit",
    "exit code", "Tests run", "panicked at a.rs:1:2:", "* What went wrong:", "\t/a/b.go:3", "  1:2  error  ", "a/b.js",
])  # fmt: skip
line = st.lists(words, max_size=8).map(" ".join)
shaped = st.lists(line, min_size=1, max_size=60).map("\n".join)
anything = st.text(st.characters(), max_size=3_000)
texts = st.one_of(shaped.map(lambda text: text * 30), shaped, anything, anything.map(lambda text: text * 20))

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=12) | st.just("error"), inner, max_size=8)
    ),
    max_leaves=40,
)

OURS = re.compile(r"(?:[\d,]+\u00d7 )?\| .*|\[and [\d,]+ more error lines in the whole text\]")


estimate = counter_for().count
# A model's own, an estimate, and functions that callers may bring: too coarse, too fine, and more for the whole.
counters = st.sampled_from((
    counter_for("o200k_base").count,
    estimate,
    len,
    lambda text: len(text) // 4,
    lambda text: len(text.split()),
    lambda text: len(text.encode(errors="surrogatepass")) ** 2 // 1_000,
))  # fmt: skip


def mask(text: str, count: Count = estimate, limit: int = LIMIT) -> Masked:
    return masking.mask(text, fetch=FETCH, count=count, limit=limit)


@given(texts, st.integers(0, 500), counters)
def test_any_text(text: str, more: int, count: Count) -> None:
    limit = least(FETCH, count) + more
    found = mask(text, count, limit)
    assert count(found.text) <= limit
    assert found.chars == len(text)
    assert found == mask(text, count, limit)
    again = mask(found.text, count, limit)
    assert again.text == found.text
    assert not again.masked or not found.masked
    if count(text) <= min(SHORT, limit):
        assert found.text == text
    if found.masked:
        first, *rest = found.text.split("\n")
        assert first.startswith("[masked")
        assert first.endswith(f"; the whole text: {FETCH}]")
        assert all(OURS.fullmatch(row) for row in rest)
        assert found.text.splitlines() == [first, *rest]  # no other line break in it
        found.text.encode()


@given(texts, st.integers(0, 60), st.sampled_from((None, "o200k_base")), st.integers(0, 300))
def test_an_error_is_told_where_there_is_room_for_one(text: str, more: int, name: str | None, at: int) -> None:
    count = counter_for(name).count
    said = text[:at] + "\nERROR no seats\n" + text[at:]
    found = mask(said, count, least(FETCH, count) + 48 + more)
    assert count(found.text) <= least(FETCH, count) + 48 + more
    assert not found.masked or found.kept or not mask(said, count, 100_000).kept


@given(plain, st.booleans())
def test_any_document(value: object, pretty: bool) -> None:
    text = json.dumps([value] * 40, indent=2 if pretty else None, ensure_ascii=pretty)
    found = mask(text)
    assert mask(found.text).text == found.text
    assert found.kind in ("", "JSON document") or "\\ud" in text


name = st.text("abcdefgh", min_size=4, max_size=12)
number = st.integers(1, 9_999)
errors = st.one_of(
    st.builds("E       AssertionError: {} is not {}".format, name, name),
    st.builds("FAILED tests/test_{}.py::test_{} - KeyError: '{}'".format, name, name, name),
    st.builds("src/{}.c:{}:5: error: '{}' undeclared".format, name, number, name),
    st.builds("src/{}.py:{}:1: F821 Undefined name `{}`".format, name, number, name),
    st.builds("--- FAIL: Test{} (0.01s)".format, name),
    st.builds("error[E0425]: cannot find value `{}` in this scope".format, name),
    st.builds("2026-01-02 10:00:00 ERROR {}: lost {} after {} ms".format, name, name, number),
    st.builds("{}Error: no {} for {}".format, name.map(str.title), name, name),
    st.builds("fatal: {} refused by {}".format, name, name),
    st.builds("npm ERR! {} {}".format, name, name),
)
fine = st.one_of(
    st.builds("tests/test_{}.py::test_error_{} PASSED".format, name, name),
    st.builds("2026-01-02 10:00:00 INFO {}: handled {} in {} ms".format, name, name, number),
    st.builds("   Compiling {} v0.{}.0".format, name, number),
    st.builds("{} is done with 0 errors".format, name),
    st.builds("src/{}/error_handler.py".format, name),
)


@given(st.lists(errors, max_size=40), st.lists(fine, min_size=60, max_size=120), st.randoms(use_true_random=False))
def test_every_error_of_a_log_is_kept(wrong: list[str], well: list[str], random: object) -> None:
    lines = [*wrong, *well, *well]
    random.shuffle(lines)  # type: ignore[attr-defined]
    text = "\n".join(lines)
    found = mask(text, limit=4_000)
    if not found.masked:
        return
    rows = found.text.split("\n")
    for error in set(wrong):
        assert any(f"| {error}" in row or _is_among_the_places(error, row) for row in rows), error
    assert found.kept == len(set(wrong))


def _is_among_the_places(error: str, row: str) -> bool:
    """The row says the same of another place, and names this one."""
    said, found, places = row.partition(" @ ")
    own = [word.strip(":") for word in error.split() if re.search(r"::|\.(?:py|c):\d|^Test", word)]
    rest = [word for word in error.split() if word.strip(":") not in own and not re.search(r"\d", word)]
    shared = re.sub(r"(\S+?):(\S+)", lambda seen: seen[0].replace(",", f" {seen[1]}:"), places)
    return bool(found) and all(word in said for word in rest) and all(word in f"{said} {shared}" for word in own)
