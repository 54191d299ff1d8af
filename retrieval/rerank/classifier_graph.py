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
import onnx
from onnx import TensorProto, helper
from safetensors.numpy import load_file

from retrieval.dense.minilm_graph import MICROSOFT, EncoderGraph

if TYPE_CHECKING:
    from pathlib import Path

    from retrieval.dense.minilm_graph import Array, Precision


@dataclass(frozen=True, slots=True)
class Architecture:
    """What sets a family of checkpoints apart: its names, and whether it tells question and passage by token types."""

    prefix: str
    hidden_layer: str
    output_layer: str
    has_token_types: bool
    positions_follow_padding: bool = False
    """Whether position rows start after the padding token's, as in fairseq's models."""


_ROBERTA = Architecture("roberta.", "classifier.dense", "classifier.out_proj", False, positions_follow_padding=True)
ARCHITECTURES: Mapping[str, Architecture] = {
    "bert": Architecture("bert.", "pooler.dense", "classifier", True),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
}
"""By the `model_type` of config.json."""


def longest_input(config: Mapping[str, Any]) -> int | None:
    """Tokens that the model has positions for; None when its configuration does not say."""
    rows = config.get("max_position_embeddings")
    return None if rows is None else int(rows) - _first_position(config)


def build_graph(weights: Path, config: Mapping[str, Any], precision: Precision) -> bytes:
    """A serialized ONNX model: ``input_ids`` int64 (1, n) -> ``logits`` float32 (1, 1).

    BERT's has ``token_type_ids`` of the same form beside them. n is 1 to :func:`longest_input`.

    Raises: KeyError, ValueError, OSError when the weights are not those of such a model.
    """
    if config["hidden_act"] != "gelu" or config.get("position_embedding_type", "absolute") != "absolute":
        raise ValueError("only exact Gelu and absolute positions can be written as a graph")
    architecture = ARCHITECTURES[config["model_type"]]
    tensors: dict[str, Array] = {
        name.removeprefix(architecture.prefix): tensor.astype(np.float32)
        for name, tensor in load_file(weights).items()
        if np.issubdtype(tensor.dtype, np.floating)
    }
    labels = len(tensors[f"{architecture.output_layer}.weight"])
    if labels != 1:
        raise ValueError(f"it has {labels} labels and a cross encoder has one")
    positions = "embeddings.position_embeddings.weight"
    tensors[positions] = tensors[positions][_first_position(config) :]
    graph = _ClassifierGraph(tensors, precision, config["num_attention_heads"], config["layer_norm_eps"])
    hidden = graph.pair_embeddings() if architecture.has_token_types else graph.embeddings()
    for layer in range(config["num_hidden_layers"]):
        hidden = graph.layer(layer, hidden, f"hidden_{layer}")
    return graph.serialize_classifier(architecture, hidden)


class _ClassifierGraph(EncoderGraph):
    def pair_embeddings(self) -> str:
        """As :meth:`embeddings`, with the row of each token's own type."""
        # The rows of type 0 are in the sum already: what the other type differs by is added.
        types = self.weights["embeddings.token_type_embeddings.weight"]
        self.add("Gather", [self.constant("token_types", types - types[0]), "token_type_ids"], "token_type_rows")
        return self.normalized(self.add("Add", [self.embedded(), "token_type_rows"], "embedded_pair"))

    def dense(self, source: str, name: str) -> str:
        """In fp32 whatever the precision: it is one token, and the last layers decide the score."""
        product = self.add("MatMul", [source, self.constant(f"{name}.matrix", self.weights[f"{name}.weight"].T)], name)
        return self.add("Add", [product, self.weight(f"{name}.bias")], f"{name}.biased")

    def serialize_classifier(self, architecture: Architecture, hidden: str) -> bytes:
        first = self.add("Gather", [hidden, self.constant("first_token", np.array([0]))], "first_hidden", axis=1)
        pooled = self.add("Tanh", [self.dense(first, architecture.hidden_layer)], "pooled")
        self.add("Flatten", [self.dense(pooled, architecture.output_layer)], "logits")
        inputs = ["input_ids", "token_type_ids"] if architecture.has_token_types else ["input_ids"]
        graph = helper.make_graph(
            self.nodes,
            "cross-encoder",
            inputs=[helper.make_tensor_value_info(name, TensorProto.INT64, [1, "n"]) for name in inputs],
            outputs=[helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 1])],
            initializer=self.constants,
        )
        model: onnx.ModelProto = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid(MICROSOFT, 1)],
            ir_version=10,
        )
        serialized: bytes = model.SerializeToString()
        return serialized


def _first_position(config: Mapping[str, Any]) -> int:
    architecture = ARCHITECTURES.get(config.get("model_type", ""))
    return int(config["pad_token_id"]) + 1 if architecture and architecture.positions_follow_padding else 0
