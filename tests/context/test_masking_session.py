"""A coding session of 200 tool results: at least 20 times smaller, and every error line still there.

The results are made by seeded generators, one for each tool, in the formats and about the sizes of the real ones. Each
plants its errors and says which lines they are.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable
from random import Random

import pytest

from holdfast.context.masking import LIMIT, mask
from holdfast.providers.tokens.choose import counter_for

TIMES = "\u00d7"

Output = tuple[str, list[str]]

NOUNS = "seat row trip fare gate bag crew meal leg hub fleet route ticket lounge cabin wing".split()  # noqa: SIM905 (read as a sentence)
VERBS = "book hold move cancel price check load sort merge split quote refund assign print".split()  # noqa: SIM905 (read as a sentence)


def name(random: Random) -> str:
    return f"{random.choice(VERBS)}_{random.choice(NOUNS)}"


def path(random: Random, ending: str) -> str:
    return f"src/{random.choice(NOUNS)}s/{name(random)}.{ending}"


def pytest_run(random: Random) -> Output:
    number = random.randint(150, 1_500)
    tests = [f"tests/test_{random.choice(NOUNS)}.py::test_{name(random)}_{n}" for n in range(number)]
    bad = random.sample(tests, random.choice((0, 0, 1, 1, 2, 4)))
    lines = ["=" * 28 + " test session starts " + "=" * 29, "platform linux -- Python 3.11.7, pytest-8.3.4"]
    lines += [
        f"{test} {'FAILED' if test in bad else 'PASSED'}".ljust(90) + f"[{n * 100 // number:>3}%]"
        for n, test in enumerate(tests)
    ]
    errors = []
    for test in bad:
        got, place = random.randint(0, 99), f"{test.split('::')[0]}:{random.randint(5, 200)}: AssertionError"
        told = [f"E       AssertionError: {name(random)} gave {got}", f"E       assert {got} == {got + 1}", place]
        lines += ["_" * 30 + f" {test.split('::')[1]} " + "_" * 30, ""]
        lines += [f"    def {test.split('::')[1]}(store):"] + [
            f"        {name(random)} = {name(random)}(store)" for _ in range(12)
        ]
        lines += [f">       assert {name(random)}(store) == {got + 1}", *told[:2], "", told[2]]
        errors += [*told, f"FAILED {test} - AssertionError: {name(random)}"]
        lines += [errors[-1]]
    lines += [f"====== {len(bad)} failed, {number - len(bad)} passed in {random.randint(3, 90)}.20s ======"]
    return "\n".join(lines), errors


def jest_run(random: Random) -> Output:
    lines, errors = [], []
    for suite in range(random.randint(20, 80)):
        bad = random.random() < 0.03
        file = f"src/{name(random)}_{suite}.test.ts"
        lines.append(f"{'FAIL' if bad else 'PASS'} {file}")
        lines += [f"    ✓ shows an error for the {random.choice(NOUNS)} ({n} ms)" for n in range(random.randint(3, 15))]
        if bad:
            told = [
                f"  ● {name(random)} {suite} gives the {random.choice(NOUNS)}",
                "    expect(received).toBe(expected) // Object.is equality",
            ]
            told += [f"    Expected: {suite}", f"    Received: {suite + 1}"]
            lines += [told[0], "", told[1], "", *told[2:], "", f"      at Object.<anonymous> ({file}:12:5)", ""]
            errors += [f"FAIL {file}", *told]
    return "\n".join([*lines, "Test Suites: 1 failed, 40 passed, 41 total", "Time:        4.2 s"]), errors


def go_run(random: Random) -> Output:
    lines, errors = [], []
    for n in range(random.randint(100, 500)):
        test = f"Test{name(random).title().replace('_', '')}{n}"
        lines.append(f"=== RUN   {test}")
        if random.random() < 0.006:
            told = [
                f"    {random.choice(NOUNS)}_test.go:{n}: got {name(random)}, want {name(random)}",
                f"--- FAIL: {test} (0.01s)",
            ]
            lines, errors = lines + told, errors + told
        else:
            lines.append(f"--- PASS: {test} (0.00s)")
    return "\n".join([*lines, "ok  \texample.com/trips/fares\t0.412s"]), errors


def cargo_build(random: Random) -> Output:
    lines = [f"   Compiling {name(random)} v0.{n}.0" for n in range(random.randint(60, 250))]
    errors = []
    for n in range(random.choice((0, 1, 3))):
        errors.append(f"error[E0425]: cannot find function `{name(random)}_{n}` in this scope")
        lines += [
            errors[-1],
            f"   --> src/{name(random)}.rs:{n + 3}:9",
            "    |",
            f" {n + 3}  |     {name(random)}();",
            "    |     ^^^^",
        ]
    if errors:
        errors.append(f"error: could not compile `trips` (lib) due to {len(errors)} previous errors")
        lines.append(errors[-1])
    return "\n".join(lines), errors


def gradle_build(random: Random) -> Output:
    lines = [f"> Task :{name(random)}:compileJava UP-TO-DATE" for _ in range(random.randint(80, 250))]
    if random.random() < 0.6:
        return "\n".join([*lines, "BUILD SUCCESSFUL in 12s", "312 actionable tasks: 3 executed, 309 up-to-date"]), []
    task = f":{name(random)}:compileJava"
    errors = [
        f"{path(random, 'java')}:{n}: error: cannot find symbol {name(random)}{n}" for n in range(random.randint(1, 3))
    ]
    errors += [f"> Task {task} FAILED", f"Execution failed for task '{task}'.", "BUILD FAILED in 12s"]
    return "\n".join([*lines, *errors[:-2], "* What went wrong:", *errors[-2:]]), errors


def gcc_build(random: Random) -> Output:
    lines, errors = [], []
    for n in range(random.randint(60, 200)):
        file = f"{path(random, 'c')}"
        lines.append(f"gcc -O2 -Wall -Iinclude -DVERSION=3 -c -o build/{n}.o {file}")
        if random.random() < 0.2:
            lines += [
                f"{file}:{n}:5: warning: unused variable '{name(random)}' [-Wunused-variable]",
                f"  {n} |     int x;",
                "      |         ^",
            ]
        if random.random() < 0.008:
            errors.append(f"{file}:{n}:12: error: '{name(random)}' undeclared (first use in this function)")
            lines += [errors[-1], f"  {n} |     return x;", "      |            ^"]
    return "\n".join(lines), errors


def ruff_run(random: Random) -> Output:
    unused = [f"{path(random, 'py')}:{n}:8: F401 [*] `os` imported but unused" for n in range(random.randint(10, 40))]
    undefined = [
        f"{path(random, 'py')}:{n}:5: F821 Undefined name `{name(random)}`" for n in range(random.randint(0, 4))
    ]
    return "\n".join([*unused, *undefined, f"Found {len(unused) + len(undefined)} errors."]), unused + undefined


def git_diff(random: Random) -> Output:
    lines = []
    for _ in range(random.randint(3, 12)):
        file = path(random, "py")
        lines += [f"diff --git a/{file} b/{file}", "index 3f2a9c1..9c1e77d 100644", f"--- a/{file}", f"+++ b/{file}"]
        for n in range(random.randint(1, 4)):
            lines.append(f"@@ -{n * 40},9 +{n * 40},9 @@ def {name(random)}():")
            lines += [
                f"{random.choice('+- ')}    raise NotFound('{name(random)} failed: error')"
                for _ in range(random.randint(8, 40))
            ]
    return "\n".join(lines), []


def git_log(random: Random) -> Output:
    lines = []
    for _ in range(random.randint(20, 90)):
        lines += [
            f"commit {random.getrandbits(160):040x}",
            "Author: Ana <ana@example.com>",
            "Date:   Fri Jan 2 10:00:00 2026",
        ]
        lines += ["", f"    Fix the error in {name(random)}", ""]
    return "\n".join(lines), []


def found_files(random: Random) -> Output:
    return "\n".join(f"./src/{name(random)}/error_{name(random)}_{n}.py" for n in range(random.randint(80, 900))), []


def grep_hits(random: Random) -> Output:
    return "\n".join(
        f'{path(random, "py")}:{n}:    raise {name(random)}("error: it failed")' for n in range(random.randint(40, 250))
    ), []


def source_file(random: Random) -> Output:
    lines = ['"""Seats, and what can fail."""', "", "from errors import NotFound", ""]
    for n in range(random.randint(25, 120)):
        lines += [
            f"def {name(random)}_{n}(seat: str) -> int:",
            '    """An error where it failed."""',
            "    try:",
            f"        return {name(random)}(seat)",
        ]
        lines += [
            "    except KeyError as error:",
            f"        raise NotFound(f'{{seat}} not found in {n}') from error",
            "",
        ]
    return "\n".join(lines), []


def service_log(random: Random) -> Output:
    lines, errors = [], []
    for n in range(random.randint(200, 1_500)):
        at = f"2026-01-02 10:{n // 60 % 60:02}:{n % 60:02},{random.randint(0, 999):03}"
        lines.append(
            f"{at} INFO trips.{random.choice(NOUNS)}: did {random.getrandbits(64):016x} in {random.randint(1, 90)} ms"
        )
        if random.random() < 0.004:
            errors.append(
                f"{at} ERROR trips.{random.choice(NOUNS)}: could not {random.choice(VERBS)} {name(random)}: timed out"
            )
            lines.append(errors[-1])
    return "\n".join(lines), errors


def traceback(random: Random) -> Output:
    lines = [f"row {n}: {name(random)}" for n in range(random.randint(40, 300))] + [
        "Traceback (most recent call last):"
    ]
    for n in range(random.randint(5, 40)):
        lines += [
            f'  File "/srv/trips/{name(random)}.py", line {n + 3}, in {name(random)}',
            f"    return {name(random)}(seat)",
        ]
    errors = [f"trips.errors.NotFoundError: {name(random)} of {name(random)}"]
    return "\n".join(lines + errors), errors


def api_answer(random: Random) -> Output:
    items = [{"id": n, "name": name(random), "state": "booked", "error": None} for n in range(random.randint(50, 500))]
    errors = []
    for item in random.sample(items, random.choice((0, 0, 1, 2))):
        item["error"] = f"{name(random)} not found"
        errors.append(f'"error": "{item["error"]}"')
    return json.dumps({"items": items, "total": len(items), "errors": []}, indent=random.choice((None, 2))), errors


def wrapped_run(random: Random) -> Output:
    text, errors = pytest_run(random)
    return json.dumps({"stdout": text, "stderr": "", "exit_code": 0}), errors


def page(random: Random) -> Output:
    lines = ["<!DOCTYPE html>", "<html><head><title>Seats</title></head><body>"]
    lines += [
        f"<p class='a'>If {name(random)} failed, the error says why {name(random)} was refused.</p>"
        for _ in range(random.randint(60, 400))
    ]
    return "\n".join([*lines, "</body></html>"]), []


def csv_rows(random: Random) -> Output:
    rows = (f"{n},{name(random)},{random.randint(10, 999)},booked,2026-01-02" for n in range(random.randint(80, 900)))
    return "\n".join(["id,name,price,state,day", *rows]), []


def sql_rows(random: Random) -> Output:
    rows = [f" {n:>4} | {name(random):<20} | {random.randint(1, 999):>6}" for n in range(random.randint(50, 400))]
    return "\n".join(
        ["  id  | name                 | price", "------+----------------------+-------", *rows, f"({len(rows)} rows)"]
    ), []


def pip_install(random: Random) -> Output:
    lines = []
    for n in range(random.randint(20, 80)):
        lines += [f"Collecting error-{name(random)}", f"  Downloading {name(random)}-{n}.0-py3-none-any.whl (12 kB)"]
        lines.append("".join(f"\r     {'━' * k} {k}/12 kB" for k in range(12)))
    if random.random() < 0.7:
        return "\n".join([*lines, "Successfully installed trips-1.0"]), []
    errors = [
        f"ERROR: Could not find a version that satisfies the requirement {name(random)}",
        f"ERROR: No matching distribution found for {name(random)}",
    ]
    return "\n".join(lines + errors), errors


def read_me(random: Random) -> Output:
    parts = []
    for n in range(random.randint(8, 30)):
        parts += [
            f"## Part {n}",
            "",
            f"When {name(random)} has failed, the error tells what to do about it. " * random.randint(2, 6),
            "",
        ]
    return "\n".join(parts), []


def short_answer(random: Random) -> Output:
    return "\n".join(f"The file {path(random, 'py')} was edited." for _ in range(random.randint(1, 6))), []


# How often each comes in a session: reading and searching, short answers, test runs, builds, the rest.
MIX: dict[Callable[[Random], Output], int] = {
    source_file: 34, grep_hits: 18, found_files: 10, short_answer: 28, pytest_run: 26, wrapped_run: 6, jest_run: 8,
    go_run: 7, cargo_build: 6, gradle_build: 5, gcc_build: 5, ruff_run: 6, git_diff: 9, git_log: 4,
    service_log: 6, traceback: 5, api_answer: 5, page: 3, csv_rows: 2, sql_rows: 2, pip_install: 3, read_me: 2,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_session_of_two_hundred_results(seed: int) -> None:
    random, count = Random(seed), counter_for("o200k_base").count
    session = [make for make, times in MIX.items() for _ in range(times)]
    assert len(session) == 200
    random.shuffle(session)
    sizes: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for number, make in enumerate(session, 1):
        text, errors = make(random)
        found = mask(text, fetch=f"trip-42#{number}", count=count)
        assert count(found.text) <= LIMIT
        for error in errors:
            assert is_told(error, found.text), f"{make.__name__}: {error}\n{found.text}"
        for size in (sizes[make.__name__], sizes["all"]):
            size[0] += len(text)
            size[1] += len(found.text)
    for kind, (before, after) in sorted(sizes.items()):
        print(f"{kind:14} {before:>10,} {after:>8,} {before / after:6.1f}")
    assert sizes["all"][0] / sizes["all"][1] >= 20


def is_told(error: str, stand_in: str) -> bool:
    """The line is there as it was; or a row says the same with other numbers, and names its place."""
    if f"| {error}" in stand_in:
        return True
    rows = (row.partition("| ")[2].partition(" @ ") for row in stand_in.split("\n") if TIMES in row)
    return any(
        form(said) == form(error)
        and all(place.strip(":") in f"{said} {expanded(places)}" for place in error.split() if is_place(place))
        for said, _, places in rows
    )


def expanded(places: str) -> str:
    """a.py:3,5 as a.py:3 a.py:5."""
    return re.sub(r"(\S+?):(\d\S*)", lambda seen: seen[0].replace(",", f" {seen[1]}:"), places)


def form(line: str) -> list[str]:
    return [re.sub(r"\d+", "#", word) for word in line.split() if not is_place(word)]


def is_place(word: str) -> bool:
    return "/" in word or word.startswith("Test")
