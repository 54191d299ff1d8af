"""The ONNX graph of all-MiniLM-L6-v2, written from its weights without a deep-learning framework.

BERT (Devlin et al., NAACL 2019) as distilled to 6 layers of 384 by MiniLM (Wang et al., NeurIPS 2020) and trained on
sentence pairs (Reimers & Gurevych, EMNLP 2019): mean of the last layer's tokens, scaled to unit length.

The graph takes ONE text a run, hence no mask and no padding. That is as fast on a CPU as batches, keeps memory flat,
and makes int8 repeatable: activations are scaled by the largest value *of the run*, so that a text's vector would
otherwise depend on its neighbours in the batch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

    Array = npt.NDArray[np.float32]

Precision = Literal["int8", "fp32"]

MICROSOFT = "com.microsoft"
"""ONNX Runtime's own operators: fused BERT blocks and the int8 product. All of them exist in its CPU build."""


def build_graph(weights: Path, config: Path, precision: Precision) -> bytes:
    """A serialized ONNX model: ``input_ids`` int64 (1, n) -> two float32 outputs.

    ``sentence_embedding`` (1, width) has unit length; ``token_embeddings`` (1, n, width) is the last layer as it is.
    n is 1 to ``max_position_embeddings``. "int8" stores word rows and every product's weights in 8 bits (23 MB instead
    of 91): symmetric, one scale a word row and one an output channel; products run in integers, the rest in fp32.

    Raises: KeyError, ValueError, OSError when the files are not those of such a model.
    """
    settings = json.loads(config.read_text(encoding="utf-8"))
    if settings["hidden_act"] != "gelu" or settings["position_embedding_type"] != "absolute":
        raise ValueError("Only BERT with exact Gelu and absolute positions can be written as a graph.")
    graph = EncoderGraph(
        weights=load_file(weights),
        precision=precision,
        heads=settings["num_attention_heads"],
        epsilon=settings["layer_norm_eps"],
    )
    hidden = graph.embeddings()
    layers = settings["num_hidden_layers"]
    for layer in range(layers):
        hidden = graph.layer(layer, hidden, "token_embeddings" if layer == layers - 1 else f"hidden_{layer}")
    mean = graph.add("ReduceMean", [hidden, graph.constant("sequence_axis", np.array([1]))], "mean", keepdims=0)
    graph.add("LpNormalization", [mean], "sentence_embedding", axis=-1, p=2)
    return graph.serialize(width=settings["hidden_size"])


@dataclass
class EncoderGraph:
    """Nodes and constants as they accumulate; every method returns the name of the value it added."""

    weights: Mapping[str, Array]
    precision: Precision
    heads: int
    epsilon: float
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    def embeddings(self) -> str:
        """Word row + position row + the row of token type 0, normalized."""
        return self.normalized(self.embedded())

    def embedded(self) -> str:
        """Word row + position row + the row of token type 0."""
        words = self.weights["embeddings.word_embeddings.weight"]
        positions = self.weights["embeddings.position_embeddings.weight"]
        first_type = self.weights["embeddings.token_type_embeddings.weight"][0]
        if self.precision == "fp32":
            self.add("Gather", [self.constant("words", words), "input_ids"], "word_rows")
        else:
            rows, scales = _quantized(words, axis=1)
            self.add("Gather", [self.constant("words", rows), "input_ids"], "word_rows_int8")
            self.add("Cast", ["word_rows_int8"], "word_rows_cast", to=TensorProto.FLOAT)
            self.add("Gather", [self.constant("word_scales", scales), "input_ids"], "word_row_scales")
            self.add("Mul", ["word_rows_cast", "word_row_scales"], "word_rows")
        self.add("Shape", ["input_ids"], "length", start=1, end=2)
        start = self.constant("first_position", np.array([0]))
        self.add("Slice", [self.constant("positions", positions + first_type), start, "length"], "position_rows")
        return self.add("Add", ["word_rows", "position_rows"], "embedded")

    def normalized(self, embedded: str) -> str:
        """Layer normalization of what was embedded."""
        norm = "embeddings.LayerNorm"
        return self.add(
            "LayerNormalization",
            [embedded, self.weight(f"{norm}.weight"), self.weight(f"{norm}.bias")],
            "embeddings",
            epsilon=self.epsilon,
        )

    def layer(self, index: int, hidden: str, output: str) -> str:
        """Self-attention and feed-forward network, each with its residual and normalization."""
        prefix = f"encoder.layer.{index}"
        projections = [f"{prefix}.attention.self.{part}" for part in ("query", "key", "value")]
        projected = self.product(
            hidden, np.concatenate([self.weights[f"{name}.weight"] for name in projections]), f"{prefix}.qkv"
        )
        parts = [f"{name}.projected" for name in projections]
        self.add("Split", [projected], *parts, axis=2, num_outputs=3)
        bias = self.constant(f"{prefix}.qkv.bias", np.concatenate([self.weights[f"{n}.bias"] for n in projections]))
        attended = self.add(
            "MultiHeadAttention", [*parts, bias], f"{prefix}.attended", domain=MICROSOFT, num_heads=self.heads
        )
        middle = self.residual(f"{prefix}.attention.output", attended, hidden, f"{prefix}.middle")
        inner = f"{prefix}.intermediate.dense"
        widened = self.product(middle, self.weights[f"{inner}.weight"], inner)
        activated = self.add(
            "BiasGelu", [widened, self.weight(f"{inner}.bias")], f"{prefix}.activated", domain=MICROSOFT
        )
        return self.residual(f"{prefix}.output", activated, middle, output)

    def residual(self, prefix: str, source: str, skipped: str, output: str) -> str:
        """Layer normalization of ``source`` projected back, plus what it skipped."""
        projected = self.product(source, self.weights[f"{prefix}.dense.weight"], f"{prefix}.dense")
        gain, shift = self.weight(f"{prefix}.LayerNorm.weight"), self.weight(f"{prefix}.LayerNorm.bias")
        bias = self.weight(f"{prefix}.dense.bias")
        return self.add(
            "SkipLayerNormalization",
            [projected, skipped, gain, shift, bias],
            output,
            domain=MICROSOFT,
            epsilon=self.epsilon,
        )

    def product(self, source: str, matrix: Array, name: str) -> str:
        """``source`` times the transpose of ``matrix``, which checkpoints store as (out, in)."""
        output = f"{name}.product"
        if self.precision == "fp32":
            return self.add("MatMul", [source, self.constant(f"{name}.matrix", matrix.T)], output)
        rows, scales = _quantized(matrix, axis=1)
        return self.add(
            "DynamicQuantizeMatMul",
            [
                source,
                self.constant(f"{name}.matrix", rows.T),
                self.constant(f"{name}.scales", scales[:, 0]),
                self.constant(f"{name}.zeros", np.zeros(len(rows), np.int8)),
            ],
            output,
            domain=MICROSOFT,
        )

    def weight(self, name: str) -> str:
        return self.constant(name, self.weights[name])

    def constant(self, name: str, array: npt.NDArray[np.generic]) -> str:
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def add(self, operator: str, inputs: Sequence[str], *outputs: str, domain: str = "", **attributes: Any) -> str:
        self.nodes.append(helper.make_node(operator, inputs, outputs, name=outputs[0], domain=domain, **attributes))
        return outputs[0]

    def serialize(self, width: int) -> bytes:
        graph = helper.make_graph(
            self.nodes,
            "all-MiniLM-L6-v2",
            inputs=[helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "n"])],
            outputs=[
                helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, [1, width]),
                helper.make_tensor_value_info("token_embeddings", TensorProto.FLOAT, [1, "n", width]),
            ],
            initializer=self.constants,
        )
        # Opset 20 and IR 10 are what ONNX Runtime 1.20 and later read, older than what this `onnx` writes by default.
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid(MICROSOFT, 1)],
            ir_version=10,
        )
        serialized: bytes = model.SerializeToString()
        return serialized


def _quantized(matrix: Array, *, axis: int) -> tuple[npt.NDArray[np.int8], Array]:
    """Integers in -127..127 and the scales (kept dimension) that bring them back; an all-zero slice has scale 1."""
    scales = np.abs(matrix).max(axis=axis, keepdims=True) / np.float32(127)
    scales[scales == 0] = 1
    return np.rint(matrix / scales).astype(np.int8), scales.astype(np.float32)
