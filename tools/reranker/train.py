"""Train the reranker: a teacher from MiniLM, and a small network that learns from it and from the same questions.

    python tools/reranker/train.py groups GROUPS.npz [--public FOLDER]           # questions as tokens; some minutes
    python tools/reranker/train.py teacher GROUPS.npz TEACHER.npz                # six layers, 384 wide
    python tools/reranker/train.py student GROUPS.npz MODEL.onnx [--teacher TEACHER.npz] [--start MODEL.onnx]

``requirements.txt`` names what it needs. On an accelerator teacher and student take some minutes, on two processor
cores some hours. Every fifth of our corpora is held out to measure with, unless ``--hold-out 0``. Never
train on anything that recall is judged with.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import groups
import jax
import jax.numpy as jnp
import network
import numpy as np
import optax
from groups import CANDIDATES, HERE, Groups

MODELS = HERE.parents[1] / "models" / "holdfast_models"
_WIDTHS = (48, 72, 104, network.PLACES)
"""Batches are padded to one of these, because each is compiled once."""


class Batch(NamedTuple):
    """Groups as arrays: tokens, which are of the passage, which are there; which are answered; what a teacher says."""

    ids: Any
    second: Any
    mask: Any
    answered: Any
    taught: Any


class Split(NamedTuple):
    """What is learned from, each of ours several times, and what is only measured with."""

    learned: Any
    held: Any


def main() -> None:
    options = _options()
    if options.step == "groups":
        found = groups.read(options.public)
        groups.kept(found, options.groups)
        print(f"{len(found.answered)} questions, {int(found.ours.sum())} of them about corpora of ours")
        return
    data = groups.loaded(options.groups)
    split = _split(data, options)
    if options.step == "teacher":
        weights = fitted(network.read_minilm(groups.MINILM / "model.onnx"), data, split, options)
        everything = said(weights, data, np.arange(len(data.answered)))
        np.savez(options.model, said=everything, **{name: np.asarray(values) for name, values in weights.items()})
        return
    teacher, taught = _teacher(options.teacher) if options.teacher else (None, None)
    start = network.read(options.start) if options.start else network.cut(teacher, options.layers)
    network.write(fitted(start, data, split, options, taught), MODELS / "reranker" / "model.onnx", options.model)


def _teacher(file: Path) -> tuple[Any, Any]:
    """Its weights, and what it says of everything."""
    with np.load(file) as held:
        return {name: jnp.asarray(held[name]) for name in held.files if name != "said"}, held["said"]


def fitted(weights: Any, data: Groups, split: Split, options: Any, taught: Any = None) -> Any:
    """The weights after so many epochs, or so many seconds, whichever is first."""
    began, rng, key = time.time(), np.random.default_rng(options.seed), jax.random.key(options.seed)
    print(f"{len(split.learned)} questions an epoch, {len(split.held)} to measure with", flush=True)
    print(f"before: {measured(weights, data, split.held)}", flush=True)
    steps = options.epochs * (len(split.learned) // options.batch)
    rates = optax.warmup_cosine_decay_schedule(0.0, options.rate, max(steps // 20, 1), steps)
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rates, weight_decay=0.01))
    state = optimiser.init(weights)

    @jax.jit
    def step(weights: Any, state: Any, batch: Batch, key: Any) -> tuple[Any, Any, Any]:
        worth, slope = jax.value_and_grad(loss)(weights, batch, key)
        change, state = optimiser.update(slope, state, weights)
        return optax.apply_updates(weights, change), state, worth

    for epoch in range(options.epochs):
        if time.time() - began > options.seconds:
            break
        losses = []
        for places in groups.batches(data, split.learned, options.batch, rng):
            if len(places) < options.batch:
                continue  # another number of rows would be compiled for it
            key, used = jax.random.split(key)
            weights, state, worth = step(weights, state, _batch(data, places, taught), used)
            losses.append(worth)
        print(f"{time.time() - began:6.0f} s  epoch {epoch + 1}  loss {np.mean(np.array(losses)):.4f}", flush=True)
        print(f"        {measured(weights, data, split.held)}", flush=True)
    return weights


def loss(weights: Any, batch: Batch, key: Any) -> Any:
    """The right text first; of each text, and of all together, whether the answer is there; and what a teacher says."""
    found = network.run(weights, batch.ids, batch.second, batch.mask, key, training=True).reshape(-1, CANDIDATES, 2)
    answered = batch.answered
    first = -jax.nn.log_softmax(found[..., 0])[:, 0] * answered
    right = jnp.zeros(found.shape[:2]).at[:, 0].set(answered)
    each = optax.sigmoid_binary_cross_entropy(found[..., 1], right) * jnp.where(right > 0, 3.0, 1.0)
    whole = optax.sigmoid_binary_cross_entropy(jax.nn.logsumexp(found[..., 1], axis=1), answered)
    told = first.sum() / jnp.maximum(answered.sum(), 1) + 0.5 * each.mean() + 0.5 * whole.mean()
    if batch.taught is None:
        return told
    theirs = batch.taught.reshape(found.shape)
    order = optax.kl_divergence(jax.nn.log_softmax(found[..., 0] / 1.5), jax.nn.softmax(theirs[..., 0] / 1.5)).mean()
    return 0.4 * told + 2.0 * order + 0.08 * ((found - theirs) ** 2).mean()


def said(weights: Any, data: Groups, chosen: Any, size: int = 64) -> Any:
    """What a network says of every candidate of some questions: two numbers each."""
    found = np.zeros((len(data.answered), CANDIDATES, 2), dtype=np.float32)
    for places in groups.batches(data, chosen, size):
        batch = _batch(data, np.resize(places, size))
        each = np.asarray(network.run(weights, batch.ids, batch.second, batch.mask)).reshape(size, CANDIDATES, 2)
        found[places] = each[: len(places)]
    return found[chosen]


def measured(weights: Any, data: Groups, held: Any) -> str:
    """How often the right text is first, and how well the best answer tells answered from unanswered questions."""
    if not len(held):
        return "nothing held out"
    found, answered = said(weights, data, held), data.answered[held]
    first = (found[..., 0].argmax(axis=1) == 0)[answered].mean()
    sure = np.logaddexp.reduce(found[..., 1], axis=1)
    yes, no = sure[answered], sure[~answered]
    area, limit = (yes[:, None] > no[None, :]).mean(), np.quantile(yes, 0.08)
    return f"right one first {first:.3f}, AUC {area:.3f}, refused {(no < limit).mean():.3f} of unanswerable for 0.08"


def _split(data: Groups, options: Any) -> Split:
    every = options.hold_out
    held = data.ours & (data.corpus % every == 0) if every else np.zeros(len(data.ours), dtype=bool)
    chance = np.random.default_rng(options.seed).random(len(data.ours))
    own, public = np.flatnonzero(~held & data.ours), np.flatnonzero(~data.ours & (chance < options.public_part))
    return Split(np.concatenate([public, *[own] * options.ours]), np.flatnonzero(held))


def _batch(data: Groups, places: Any, taught: Any = None) -> Batch:
    rows = (places[:, None] * CANDIDATES + np.arange(CANDIDATES)).ravel()
    begins, length, starts = (values[rows][:, None] for values in (data.begins, data.length, data.starts))
    width = next(width for width in _WIDTHS if width >= length.max())
    at = np.arange(width)[None, :]
    mask = at < length
    ids = np.where(mask, data.ids[np.minimum(begins + at, len(data.ids) - 1)], 0)
    second = mask & (at >= starts)
    return Batch(
        ids.astype(np.int32), second.astype(np.int32), mask.astype(np.int32), data.answered[places].astype(np.float32),
        None if taught is None else taught[places],
    )  # fmt: skip


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("groups", "teacher", "student"))
    parser.add_argument("groups", type=Path)
    parser.add_argument("model", type=Path, nargs="?", help="where to write the teacher, or the student")
    parser.add_argument("--teacher", type=Path, help="learn from what it says, too; needed unless --start is given")
    parser.add_argument("--public", type=Path, help="a folder of public data (README)")
    parser.add_argument("--start", type=Path, help="begin with this ONNX file; else with layers of the teacher")
    parser.add_argument("--layers", type=int, nargs="+", default=[1, 3, 5], help="these layers of the teacher")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no other epoch after so long")
    parser.add_argument("--batch", type=int, default=64, help="questions at a time")
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--public-part", type=float, default=1.0, help="of the public questions, so many")
    parser.add_argument("--ours", type=int, default=3, help="how often an epoch has the questions about our corpora")
    parser.add_argument("--hold-out", type=int, default=5, help="every so many corpora are only measured with; 0: none")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
