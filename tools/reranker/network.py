"""The reranker's network in JAX: read from its ONNX file, run, and written back into it with int8 weights.

A BERT with two outputs on the first token: how well a passage fits a question, and whether it answers it. The ONNX file
keeps the matrices as int8 with a scale for each output; a network is trained with the numbers they stand for.
"""

from __future__ import annotations

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
Weights = dict[str, Any]


def read(path: Path) -> Weights:
    """The weights of an ONNX file as 32-bit numbers."""
    raw = {item.name: numpy_helper.to_array(item) for item in onnx.load(path).graph.initializer}
    weights = {name: values for name, values in raw.items() if values.dtype == np.float32 and not _is_scale(name)}
    for name, values in raw.items():
        if name.endswith("_quantized"):
            plain = name.removesuffix("_quantized")
            weights[plain] = values.astype(np.float32) * raw[f"{plain}_scale"]
    weights["word"] = raw["word_q"].astype(np.float32) * raw["word_s"]
    return {name: jnp.asarray(values) for name, values in weights.items()}


def write(weights: Weights, template: Path, path: Path) -> None:
    """An ONNX file like the template with these weights."""
    model = onnx.load(template)
    raw = {name: np.asarray(values) for name, values in weights.items()}
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
            changed[name] = values.astype(np.float32)
    for item in model.graph.initializer:
        if item.name in changed:
            item.CopyFrom(numpy_helper.from_array(changed[item.name], item.name))
    onnx.save(model, path)


@partial(jax.jit, static_argnames=("training",))
def run(weights: Weights, ids: Any, second: Any, mask: Any, key: Any = None, training: bool = False) -> Any:
    """Two numbers for each row of tokens. ``second`` marks the tokens of the passage, ``mask`` those that are there."""
    keys = iter(jax.random.split(key, 16)) if training else None
    hidden = weights["word"][ids] + weights["typ"][second] + weights["pos"][: ids.shape[1]]
    hidden = _dropped(_normed(hidden, weights, "ln"), keys)
    heads = hidden.shape[-1] // HEAD
    for layer in range(sum(name.endswith("qkv.w") for name in weights)):
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
