"""Train the reranker further on questions about notes and talks, and write it as an ONNX file with int8 weights.

    python tools/reranker/train.py --to model.onnx [--epochs 4] [--mix 1.0] [--hold-out 5]

It needs what ``requirements.txt`` beside it names, two processor cores and about half an hour, no graphics card and no
network. What it learns from is in ``corpora/``: a line for each small corpus, with questions that a text of it answers
and questions that look like it and that none does. Every fifth corpus can be held out to measure with. Of a trained
network and the one it began with the weights are mixed (``--mix``): what is learned here must not cost what was
learned before from a hundred thousand questions of other kinds (README).
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # onnxruntime reports its user unless it is told not to

import jax
import jax.numpy as jnp
import network
import numpy as np
import onnxruntime
import optax
from tokenizers import Tokenizer

HERE = Path(__file__).parent
MODELS = HERE.parents[1] / "models" / "holdfast_models"
CANDIDATES = 8
"""How many texts a question is asked of at once: those that recall would show first."""
_QUESTION, _PASSAGE, _BEFORE = 40, 92, 24  # tokens, as holdfast.providers.reranker reads them
_CLS, _SEP = 101, 102


class Group(NamedTuple):
    """A question with its candidates as tokens. The first one answers it, if ``answered``."""

    pairs: tuple[tuple[list[int], int], ...]
    answered: bool
    corpus: int


class Batch(NamedTuple):
    """Groups as arrays: tokens, which are the passage's, which are there; which groups are answered."""

    ids: Any
    second: Any
    mask: Any
    answered: Any


def main() -> None:
    options = _options()
    began, rng = time.time(), np.random.default_rng(options.seed)
    start = network.read(options.start)
    groups = list(read_groups(sorted((HERE / "corpora").glob("*.jsonl"))))
    held = [group for group in groups if options.hold_out and group.corpus % options.hold_out == 0]
    used = [group for group in groups if group not in held]
    print(f"{len(used)} questions to learn from, {len(held)} to measure with", flush=True)
    print(f"before: {measured(start, held)}", flush=True)
    steps = options.epochs * len(list(batches(used, options.batch, rng)))
    optimiser = optax.adamw(optax.warmup_cosine_decay_schedule(0.0, options.rate, 50, steps), weight_decay=0.01)
    weights, state, key = start, optimiser.init(start), jax.random.key(options.seed)

    @jax.jit
    def step(weights: Any, state: Any, batch: Batch, key: Any) -> tuple[Any, Any, Any]:
        worth, slope = jax.value_and_grad(loss)(weights, batch, key)
        change, state = optimiser.update(slope, state, weights)
        return optax.apply_updates(weights, change), state, worth

    for epoch in range(options.epochs):
        losses = []
        for batch in batches(used, options.batch, rng):
            key, used_key = jax.random.split(key)
            weights, state, worth = step(weights, state, batch, used_key)
            losses.append(float(worth))
        print(f"{time.time() - began:6.0f} s  epoch {epoch + 1}  loss {np.mean(losses):.4f}", flush=True)
        print(f"        {measured(weights, held)}", flush=True)
    for share in sorted({0.3, 0.5, 0.7, 1.0, options.mix}):
        print(f"mixed {share}: {measured(mixed(start, weights, share), held)}", flush=True)
    network.write(mixed(start, weights, options.mix), options.start, options.to)


def loss(weights: Any, batch: Batch, key: Any) -> Any:
    """The right text first; and of each text, and of all together, whether the answer is there."""
    found = network.run(weights, batch.ids, batch.second, batch.mask, key, training=True)
    found = found.reshape(-1, CANDIDATES, 2)
    answered = batch.answered
    first = -jax.nn.log_softmax(found[..., 0])[:, 0] * answered
    right = jnp.zeros(found.shape[:2]).at[:, 0].set(answered)
    each = optax.sigmoid_binary_cross_entropy(found[..., 1], right) * jnp.where(right > 0, 3.0, 1.0)
    whole = optax.sigmoid_binary_cross_entropy(jax.nn.logsumexp(found[..., 1], axis=1), answered)
    return first.sum() / jnp.maximum(answered.sum(), 1) + 0.5 * each.mean() + 0.5 * whole.mean()


def mixed(start: Any, trained: Any, share: float) -> Any:
    return {name: (1 - share) * start[name] + share * trained[name] for name in start}


def measured(weights: Any, groups: Sequence[Group]) -> str:
    """How often the right text is first, and how well the best answer tells answered from unanswered questions."""
    first, sure = [], []
    for batch in batches(groups, 16, None):
        found = np.asarray(network.run(weights, batch.ids, batch.second, batch.mask)).reshape(-1, CANDIDATES, 2)
        answered = np.asarray(batch.answered) > 0
        first += (found[..., 0].argmax(axis=1) == 0)[answered].tolist()
        sure += list(zip(found[..., 1].max(axis=1).tolist(), answered.tolist(), strict=True))
    yes, no = np.array([s for s, a in sure if a]), np.array([s for s, a in sure if not a])
    area = float((yes[:, None] > no[None, :]).mean()) if len(yes) and len(no) else 0.0
    return f"right one first {np.mean(first):.3f}, answerable told from unanswerable with AUC {area:.3f}"


def read_groups(files: Sequence[Path]) -> Iterator[Group]:
    """Every question with the texts of its corpus that are nearest to it by MiniLM."""
    tokens = Tokenizer.from_file(str(MODELS / "minilm" / "tokenizer.json"))
    tokens.no_padding()
    tokens.no_truncation()
    embedder = onnxruntime.InferenceSession(str(MODELS / "minilm" / "model.onnx"))
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines() if line.strip()]
    for number, corpus in enumerate(lines):
        texts, talk = corpus["texts"], corpus["kind"] != "notes"
        vectors = np.stack([_vector(embedder, tokens, text) for text in texts])
        asked = [(*one, True) for one in corpus["asks"]] + [(*one, False) for one in corpus["unanswered"]]
        for question, place, answered in asked:
            near = np.argsort(-(vectors @ _vector(embedder, tokens, question)), kind="stable").tolist()
            near.remove(place)
            chosen = [place, *near][:CANDIDATES]
            pairs = (_pair(tokens, question, texts, at, talk) for at in chosen)
            yield Group(tuple(pairs), answered, number)


def _pair(tokens: Tokenizer, question: str, texts: Sequence[str], at: int, talk: bool) -> tuple[list[int], int]:
    def read(text: str, most: int) -> list[int]:
        return [*tokens.encode(text, add_special_tokens=False).ids[:most], _SEP]

    asked, said = [_CLS, *read(question, _QUESTION)], read(texts[at], _PASSAGE)
    if talk and at:
        said += read(texts[at - 1], _BEFORE)
    return asked + said, len(asked)


def _vector(embedder: Any, tokens: Tokenizer, text: str) -> np.ndarray:
    ids = np.array([tokens.encode(text).ids[:256]])
    given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    hidden = embedder.run(None, {item.name: given[item.name] for item in embedder.get_inputs()})[0]
    mean: np.ndarray = hidden[0].mean(axis=0)
    return mean / np.linalg.norm(mean)


def batches(groups: Sequence[Group], size: int, rng: np.random.Generator | None) -> Iterator[Batch]:
    """Groups of like length together, so that little is padding; in another order each time."""
    whole = [group for group in groups if len(group.pairs) == CANDIDATES]
    order = sorted(range(len(whole)), key=lambda at: max(len(ids) for ids, _ in whole[at].pairs))
    parts = [order[at : at + size] for at in range(0, len(order), size)]
    if rng is not None:
        rng.shuffle(parts)
    for part in parts:
        yield _batch([whole[at] for at in part])


def _batch(groups: Sequence[Group]) -> Batch:
    pairs = [pair for group in groups for pair in group.pairs]
    longest = -(-max(len(ids) for ids, _ in pairs) // 16) * 16  # few widths: each is compiled once
    ids = np.zeros((len(pairs), longest), dtype=np.int32)
    second, mask = np.zeros_like(ids), np.zeros_like(ids)
    for row, (read, starts) in enumerate(pairs):
        ids[row, : len(read)] = read
        mask[row, : len(read)] = 1
        second[row, starts : len(read)] = 1
    return Batch(ids, second, mask, np.array([float(group.answered) for group in groups]))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", type=Path, default=MODELS / "reranker" / "model.onnx", help="begin with this one")
    parser.add_argument("--to", type=Path, required=True, help="write the trained one here")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch", type=int, default=16, help="questions at a time")
    parser.add_argument("--rate", type=float, default=1.5e-4)
    parser.add_argument("--mix", type=float, default=1.0, help="share of the trained weights")
    parser.add_argument("--hold-out", type=int, default=5, help="every so many corpora are only measured with; 0: none")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
