"""The reranker's network in JAX: read from an ONNX file, cut smaller, run, and written with int8 weights.

A BERT with two outputs on the first token: how well a passage fits a question, and whether it answers it. The ONNX file
keeps the matrices as int8 with a scale for each output; a network is trained with the numbers they stand for. Layers
and widths follow from the weights; only the width of a head is fixed, which is the same in MiniLM.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx
from onnx import numpy_helper

HEAD = 32
"""The width of an attention head."""
PLACES = 160
"""The longest pair of a question and a passage, in tokens."""
Weights = dict[str, Any]


def read(path: Path) -> Weights:
    """The weights of an ONNX file of ours as 32-bit numbers."""
    raw = {item.name: numpy_helper.to_array(item) for item in onnx.load(path).graph.initializer}
    weights = {name: values for name, values in raw.items() if values.dtype == np.float32 and not _is_scale(name)}
    for name, values in raw.items():
        if name.endswith("_quantized"):
            plain = name.removesuffix("_quantized")
            weights[plain] = values.astype(np.float32) * raw[f"{plain}_scale"]
    weights["word"] = raw["word_q"].astype(np.float32) * raw["word_s"]
    return {name: jnp.asarray(values) for name, values in weights.items()}


def read_minilm(path: Path, seed: int = 0) -> Weights:
    """MiniLM's weights, with two outputs that know nothing yet."""
    graph = onnx.load(path).graph
    raw = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
    wide = {name.removesuffix("_q"): raw[name].astype(np.float32) * raw[name.removesuffix("_q") + "_scale"]
            for name in raw if name.endswith("_q")}  # fmt: skip
    made = {node.output[0]: node.input[1] for node in graph.node if node.op_type == "MatMul" and node.input[1] in wide}
    of_bias = {bias: made[product] for node in graph.node if node.op_type == "Add"
               for bias, product in (node.input, reversed(node.input)) if product in made and bias in raw}  # fmt: skip
    base = "inner.embeddings."
    weights = {
        "word": wide[f"{base}word_embeddings.weight"],
        "pos": wide[f"{base}position_embeddings.weight"][:PLACES],
        "typ": raw[f"{base}token_type_embeddings.weight"],
        "ln.w": raw[f"{base}LayerNorm.weight"],
        "ln.b": raw[f"{base}LayerNorm.bias"],
    }
    parts = {"o": "attention.output.dense", "f1": "intermediate.dense", "f2": "output.dense"}
    norms = {"ln1": "attention.output.LayerNorm", "ln2": "output.LayerNorm"}
    for layer in range(sum(name.endswith("intermediate.dense.bias") for name in raw)):
        theirs, here = f"inner.encoder.layer.{layer}.", f"layers.{layer}."
        sides = [f"{theirs}attention.self.{side}.bias" for side in ("query", "key", "value")]
        weights[f"{here}qkv.w"] = np.concatenate([wide[of_bias[side]] for side in sides], axis=1)
        weights[f"{here}qkv.b"] = np.concatenate([raw[side] for side in sides])
        for name, part in parts.items():
            weights[f"{here}{name}.b"] = raw[f"{theirs}{part}.bias"]
            weights[f"{here}{name}.w"] = wide[of_bias[f"{theirs}{part}.bias"]]
        for name, part in norms.items():
            weights[f"{here}{name}.w"] = raw[f"{theirs}{part}.weight"]
            weights[f"{here}{name}.b"] = raw[f"{theirs}{part}.bias"]
    width = weights["word"].shape[1]
    weights["head.w"] = np.random.default_rng(seed).normal(0, 0.02, (width, 2)).astype(np.float32)
    weights["head.b"] = np.zeros(2, dtype=np.float32)
    return {name: jnp.asarray(values) for name, values in weights.items()}


def cut(weights: Weights, layers: Sequence[int]) -> Weights:
    """The network with these of its layers alone."""
    kept = {name: values for name, values in weights.items() if not name.startswith("layers.")}
    for here, there in enumerate(layers):
        for name in weights:
            if name.startswith(f"layers.{there}."):
                kept[name.replace(f"layers.{there}.", f"layers.{here}.", 1)] = weights[name]
    return kept


def depth(weights: Weights) -> int:
    return sum(name.endswith("qkv.w") for name in weights)


def write(weights: Weights, template: Path, path: Path) -> None:
    """An ONNX file like the template, which must have as many layers, with these weights."""
    model = onnx.load(template)
    raw = {name: np.asarray(values, dtype=np.float32) for name, values in weights.items()}
    changed: dict[str, np.ndarray] = {}
    for name, values in raw.items():
        if name == "word":
            scale = np.abs(values).max(axis=1, keepdims=True) / 127 + 1e-12
            changed |= {"word_q": np.round(values / scale).astype(np.int8), "word_s": scale.astype(np.float32)}
        elif values.ndim == 2 and name.endswith(".w"):
            scale = np.abs(values).max(axis=0) / 127 + 1e-12
            changed[f"{name}_quantized"] = np.round(values / scale).astype(np.int8)
            changed[f"{name}_scale"] = scale.astype(np.float32)
            changed[f"{name}_zero_point"] = np.zeros(len(scale), dtype=np.int8)
        else:
            changed[name] = values
    del model.graph.value_info[:]  # shapes of another width
    for item in model.graph.initializer:
        if item.name in changed:
            item.CopyFrom(numpy_helper.from_array(changed[item.name], item.name))
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "num_heads":
                attribute.i = raw["word"].shape[1] // HEAD
    onnx.save(model, path)


@partial(jax.jit, static_argnames=("training",))
def run(weights: Weights, ids: Any, second: Any, mask: Any, key: Any = None, training: bool = False) -> Any:
    """Two numbers for each row of tokens. ``second`` marks the tokens of the passage, ``mask`` those that are there."""
    layers = depth(weights)
    keys = iter(jax.random.split(key, 2 * layers + 1)) if training else None
    hidden = weights["word"][ids] + weights["typ"][second] + weights["pos"][: ids.shape[1]]
    hidden = _dropped(_normed(hidden, weights, "ln"), keys)
    heads = hidden.shape[-1] // HEAD
    for layer in range(layers):
        at = f"layers.{layer}."
        mixed = hidden @ weights[f"{at}qkv.w"] + weights[f"{at}qkv.b"]
        query, keys_, values = (part.reshape(*part.shape[:2], heads, HEAD) for part in jnp.split(mixed, 3, axis=-1))
        near = jnp.einsum("bqhd,bkhd->bhqk", query, keys_) / HEAD**0.5
        near = jax.nn.softmax(jnp.where(mask[:, None, None, :] > 0, near, -1e9), axis=-1)
        seen = jnp.einsum("bhqk,bkhd->bqhd", near, values).reshape(hidden.shape)
        seen = _dropped(seen @ weights[f"{at}o.w"] + weights[f"{at}o.b"], keys)
        hidden = _normed(hidden + seen, weights, f"{at}ln1")
        inner = jax.nn.gelu(hidden @ weights[f"{at}f1.w"] + weights[f"{at}f1.b"], approximate=False)
        inner = _dropped(inner @ weights[f"{at}f2.w"] + weights[f"{at}f2.b"], keys)
        hidden = _normed(hidden + inner, weights, f"{at}ln2")
    return hidden[:, 0] @ weights["head.w"] + weights["head.b"]


def _normed(values: Any, weights: Weights, name: str) -> Any:
    centred = values - values.mean(axis=-1, keepdims=True)
    spread = jnp.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
    return centred / spread * weights[f"{name}.w"] + weights[f"{name}.b"]


def _dropped(values: Any, keys: Any) -> Any:
    if keys is None:
        return values
    kept = jax.random.bernoulli(next(keys), 0.9, values.shape)
    return jnp.where(kept, values / 0.9, 0.0)


def _is_scale(name: str) -> bool:
    return name.endswith("_scale") or name == "word_s"
