"""Embedders small enough to be made by a test, in the form of sentence-transformers, and the same by formulas."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from tests.support.cross_encoders import (
    HEADS,
    WIDTH,
    Array,
    Weights,
    bert_config,
    random_weights,
    write_tokenizer,
)

BUCKETS = 32
MPNET_NAMES = [
    ("attention.self.query.", "attention.attn.q."),
    ("attention.self.key.", "attention.attn.k."),
    ("attention.self.value.", "attention.attn.v."),
    ("attention.output.dense.", "attention.attn.o."),
    ("attention.output.LayerNorm.", "attention.LayerNorm."),
]
DISTILBERT_NAMES = [
    ("encoder.layer.", "transformer.layer."),
    ("attention.self.query.", "attention.q_lin."),
    ("attention.self.key.", "attention.k_lin."),
    ("attention.self.value.", "attention.v_lin."),
    ("attention.output.dense.", "attention.out_lin."),
    (".attention.output.LayerNorm.", ".sa_layer_norm."),
    ("intermediate.dense.", "ffn.lin1."),
    (".output.dense.", ".ffn.lin2."),
    (".output.LayerNorm.", ".output_layer_norm."),
]


def write_embedder(
    folder: Path,
    weights: Weights,
    *,
    pooling: str | None = "mean_tokens",
    modules: Sequence[tuple[str, str]] = (),
    names: Sequence[tuple[str, str]] = (),
    prefix: str = "",
    described: dict[str, Any] | None = None,
    limit: int | None = None,
    **config: Any,
) -> Path:
    """A folder with a Pooling module, then ``modules`` (type, path); without ``pooling`` there is no modules.json."""
    folder.mkdir(parents=True)
    write_tokenizer(folder)
    (folder / "config.json").write_text(json.dumps(bert_config(**config)))
    if pooling:
        listed = [("models.Transformer", ""), ("models.Pooling", "1_Pooling"), *modules]
        described_modules = [{"type": f"st.{kind}", "path": path} for kind, path in listed]
        (folder / "modules.json").write_text(json.dumps(described_modules))
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps({f"pooling_mode_{pooling}": True}))
    if described:
        (folder / "config_sentence_transformers.json").write_text(json.dumps(described))
    if limit:
        (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": limit}))
    save_file(renamed(weights, names, prefix), str(folder / "model.safetensors"))
    return folder


def renamed(weights: Weights, names: Sequence[tuple[str, str]], prefix: str = "") -> Weights:
    """The encoder's weights as a family of checkpoints names them."""
    found = {}
    for name, array in weights.items():
        if name.startswith(("classifier", "pooler")):
            continue
        theirs = name
        for ours, other in names:
            theirs = theirs.replace(ours, other)
        found[prefix + theirs] = array
    return found


def write_dense(folder: Path, width: int, activation: str, seed: int = 8) -> tuple[Array, Array]:
    """A Dense module's folder; returns its matrix and bias."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(0, 0.4, (width, WIDTH)).astype(np.float32)
    bias = rng.normal(0, 0.4, width).astype(np.float32)
    folder.mkdir(parents=True)
    described = {"in_features": WIDTH, "out_features": width, "bias": True, "activation_function": activation}
    (folder / "config.json").write_text(json.dumps(described))
    save_file({"linear.weight": matrix, "linear.bias": bias}, str(folder / "model.safetensors"))
    return matrix, bias


def without_types(seed: int) -> Weights:
    weights = random_weights(seed)
    del weights["embeddings.token_type_embeddings.weight"]
    return weights


def relative_bias(table: Array, tokens: int) -> Array:
    """MPNet's bias of attention by distance, one pair of tokens at a time; (heads, tokens, tokens)."""
    bias = np.zeros((HEADS, tokens, tokens))
    half, exact, furthest = BUCKETS // 2, BUCKETS // 4, 128
    for here in range(tokens):
        for there in range(tokens):
            size = abs(there - here)
            row = size
            if size >= exact:
                row = exact + int(math.log(size / exact) / math.log(furthest / exact) * (half - exact))
                row = min(row, half - 1)
            bias[:, here, there] = table[row + (half if there > here else 0)]
    return bias


def unit(vector: Array) -> Array:
    scaled: Array = vector / np.linalg.norm(vector)
    return scaled


POOLINGS: dict[str, Callable[[Array], Array]] = {
    "cls_token": lambda hidden: hidden[0],
    "mean_tokens": lambda hidden: hidden.mean(0),
    "max_tokens": lambda hidden: hidden.max(0),
    "mean_sqrt_len_tokens": lambda hidden: hidden.sum(0) / math.sqrt(len(hidden)),
    "weightedmean_tokens": lambda hidden: np.average(hidden, axis=0, weights=np.arange(1, len(hidden) + 1)),
    "lasttoken": lambda hidden: hidden[-1],
}
