"""The ONNX graph of a cross encoder, written from its weights without a deep-learning framework.

A cross encoder reads question and passage as one sequence and says in one number how well they fit (Nogueira and Cho,
"Passage Re-ranking with BERT", 2019): BERT's encoder, a dense layer with tanh over the first token, and a dense layer
with one output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from retrieval.index.embedders.architectures import TOKEN_TYPES, read_shape, with_bert_names
from retrieval.index.embedders.files import load_weights
from retrieval.index.embedders.graph import EncoderGraph, float_output, token_input

if TYPE_CHECKING:
    from pathlib import Path

    from retrieval.index.embedders.graph import Precision


@dataclass(frozen=True, slots=True)
class Head:
    """The names of the two layers that score what the encoder gives."""

    hidden_layer: str
    output_layer: str


_ROBERTA = Head("classifier.dense", "classifier.out_proj")
HEADS: Mapping[str, Head] = {
    "bert": Head("pooler.dense", "classifier"),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
}
"""By the `model_type` of config.json."""


def longest_input(config: Mapping[str, Any]) -> int | None:
    """Tokens that the model has positions for; None when its configuration does not say."""
    return read_shape(config).positions if config.get("model_type") in HEADS else config.get("max_position_embeddings")


def build_graph(weights: Path, config: Mapping[str, Any], precision: Precision) -> bytes:
    """A serialized ONNX model: ``input_ids`` int64 (1, n) -> ``logits`` float32 (1, 1).

    BERT's has ``token_type_ids`` of the same form beside them. n is 1 to :func:`longest_input`.

    Raises: KeyError, ValueError, OSError when the weights are not those of such a model.
    """
    shape = read_shape(config)
    head = HEADS[config["model_type"]]
    tensors = with_bert_names(load_weights([weights]), shape)
    labels = len(tensors[f"{head.output_layer}.weight"])
    if labels != 1:
        raise ValueError(f"it has {labels} labels and a cross encoder has one")
    graph = _ClassifierGraph(weights=tensors, precision=precision, shape=shape)
    hidden = graph.pair_embeddings() if shape.architecture.has_token_types else graph.embeddings()
    for layer in range(shape.layers):
        hidden = graph.layer(layer, hidden, f"hidden_{layer}")
    return graph.serialize_classifier(head, hidden)


class _ClassifierGraph(EncoderGraph):
    def pair_embeddings(self) -> str:
        """As :meth:`embeddings`, with the row of each token's own type."""
        # The rows of type 0 are in the sum already: what the other type differs by is added.
        types = self.weights[TOKEN_TYPES]
        self.add("Gather", [self.constant("token_types", types - types[0]), "token_type_ids"], "token_type_rows")
        return self.normalized(self.add("Add", [self.embedded(), "token_type_rows"], "embedded_pair"))

    def dense(self, source: str, name: str) -> str:
        """In fp32 whatever the precision: it is one token, and the last layers decide the score."""
        product = self.add("MatMul", [source, self.constant(f"{name}.matrix", self.weights[f"{name}.weight"].T)], name)
        return self.add("Add", [product, self.weight(f"{name}.bias")], f"{name}.biased")

    def serialize_classifier(self, head: Head, hidden: str) -> bytes:
        first = self.add("Gather", [hidden, self.constant("first_token", np.array([0]))], "first_hidden", axis=1)
        pooled = self.add("Tanh", [self.dense(first, head.hidden_layer)], "pooled")
        self.add("Flatten", [self.dense(pooled, head.output_layer)], "logits")
        names = ["input_ids", "token_type_ids"] if self.shape.architecture.has_token_types else ["input_ids"]
        inputs = [token_input(name) for name in names]
        return self.serialize("cross-encoder", inputs, [float_output("logits", [1, 1])])
