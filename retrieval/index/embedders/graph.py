"""The ONNX graph of an encoder, written from its weights without a deep-learning framework.

The graph takes ONE text a run, hence no mask and no padding. That is as fast on a CPU as batches, keeps memory flat,
and makes int8 repeatable: activations are scaled by the largest value *of the run*, so that a text's vector would
otherwise depend on its neighbours in the batch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from retrieval.index.embedders.architectures import POSITIONS, RELATIVE_BIAS, TOKEN_TYPES, EncoderShape

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Array = npt.NDArray[np.float32]

Precision = Literal["int8", "fp32"]

MICROSOFT = "com.microsoft"
"""ONNX Runtime's own operators: fused BERT blocks and the int8 product. All of them exist in its CPU build."""


@dataclass
class Graph:
    """Nodes and constants as they accumulate; every method returns the name of the value it added."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    def constant(self, name: str, array: npt.NDArray[np.generic]) -> str:
        # Of a scalar, numpy would make a list of one.
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array) if array.ndim else array, name))
        return name

    def add(self, operator: str, inputs: Sequence[str], *outputs: str, domain: str = "", **attributes: Any) -> str:
        self.nodes.append(helper.make_node(operator, inputs, outputs, name=outputs[0], domain=domain, **attributes))
        return outputs[0]

    def serialize(
        self,
        name: str,
        inputs: Sequence[onnx.ValueInfoProto],
        outputs: Sequence[onnx.ValueInfoProto],
    ) -> bytes:
        """The model as bytes. Raises: ValueError past the 2 GB that one such model can take."""
        graph = helper.make_graph(self.nodes, name, inputs=inputs, outputs=outputs, initializer=self.constants)
        # Opset 20 and IR 10 are what ONNX Runtime 1.20 and later read, older than what this `onnx` writes by default.
        model: onnx.ModelProto = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid(MICROSOFT, 1)],
            ir_version=10,
        )
        serialized: bytes = model.SerializeToString()
        return serialized


def token_input(name: str = "input_ids") -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.INT64, [1, "n"])


def float_output(name: str, shape: Sequence[int | str]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


@dataclass(kw_only=True)
class EncoderGraph(Graph):
    """The embeddings and layers of an encoder, whose ``weights`` have BERT's names.

    "int8" stores word rows and every product's weights in 8 bits (all-MiniLM-L6-v2 in 23 MB instead of 91): symmetric,
    one scale a word row and one an output channel; products run in integers, the rest in fp32.
    """

    weights: Mapping[str, Array]
    precision: Precision
    shape: EncoderShape

    def embeddings(self) -> str:
        """What is :meth:`embedded`, normalized."""
        return self.normalized(self.embedded())

    def embedded(self) -> str:
        """Word row + position row + the row of token type 0, where there are types."""
        return self.positioned(self.word_rows())

    def word_rows(self) -> str:
        """The row of each token's word."""
        words = self.weights["embeddings.word_embeddings.weight"]
        if self.precision == "fp32":
            return self.add("Gather", [self.constant("words", words), "input_ids"], "word_rows")
        rows, scales = _quantize(words, axis=1)
        self.add("Gather", [self.constant("words", rows), "input_ids"], "word_rows_int8")
        self.add("Cast", ["word_rows_int8"], "word_rows_cast", to=TensorProto.FLOAT)
        self.add("Gather", [self.constant("word_scales", scales), "input_ids"], "word_row_scales")
        return self.add("Mul", ["word_rows_cast", "word_row_scales"], "word_rows")

    def positioned(self, word_rows: str) -> str:
        """``word_rows``, shape (1, n, width), with the rows of their positions and of token type 0 added."""
        positions = self.weights[POSITIONS]
        if TOKEN_TYPES in self.weights:
            positions = positions + self.weights[TOKEN_TYPES][0]
        self.add("Shape", [word_rows], "length", start=1, end=2)
        start = self.constant("first_position", np.array([0]))
        self.add("Slice", [self.constant("positions", positions), start, "length"], "position_rows")
        return self.add("Add", [word_rows, "position_rows"], "embedded")

    def normalized(self, embedded: str) -> str:
        """Layer normalization of what was embedded."""
        norm = "embeddings.LayerNorm"
        return self.add(
            "LayerNormalization",
            [embedded, self.weight(f"{norm}.weight"), self.weight(f"{norm}.bias")],
            "embeddings",
            epsilon=self.shape.epsilon,
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
        inputs = [*parts, bias]
        if RELATIVE_BIAS in self.weights:
            inputs += ["", self.relative_bias()]
        attended = self.add(
            "MultiHeadAttention", inputs, f"{prefix}.attended", domain=MICROSOFT, num_heads=self.shape.heads
        )
        middle = self.residual(f"{prefix}.attention.output", attended, hidden, f"{prefix}.middle")
        inner = f"{prefix}.intermediate.dense"
        widened = self.product(middle, self.weights[f"{inner}.weight"], inner)
        activated = self.activated(widened, self.weight(f"{inner}.bias"), f"{prefix}.activated")
        return self.residual(f"{prefix}.output", activated, middle, output)

    def activated(self, widened: str, bias: str, output: str) -> str:
        """``widened`` plus its bias, through the model's activation."""
        if self.shape.activation == "relu":
            return self.add("Relu", [self.add("Add", [widened, bias], f"{output}.biased")], output)
        operator = "BiasGelu" if self.shape.activation == "gelu" else "FastGelu"
        return self.add(operator, [widened, bias], output, domain=MICROSOFT)

    def relative_bias(self) -> str:
        """What attention gains by the distance of two tokens, (1, heads, n, n); made once, shared by the layers."""
        output = "relative_bias"
        if any(node.name == output for node in self.nodes):
            return output
        distances = np.arange(1 - self.shape.positions, self.shape.positions)
        table = self.weights[RELATIVE_BIAS]
        rows = table[_buckets(distances, len(table))].T[None]
        places = self.constant("places", np.arange(self.shape.positions))
        start = self.constant("first_place", np.array([0]))
        here = self.add("Slice", [places, start, "length"], "attended_places")
        there = self.add("Unsqueeze", [here, self.constant("column", np.array([1]))], "attending_places")
        # Distances start at 1 - positions, in row 0.
        shift = self.constant("distance_of_row_0", np.array([self.shape.positions - 1]))
        distance = self.add("Add", [self.add("Sub", [here, there], "distances"), shift], "distance_rows")
        return self.add("Gather", [self.constant("relative_rows", rows), distance], output, axis=2)

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
            epsilon=self.shape.epsilon,
        )

    def product(self, source: str, matrix: Array, name: str) -> str:
        """``source`` times the transpose of ``matrix``, which checkpoints store as (out, in)."""
        output = f"{name}.product"
        if self.precision == "fp32":
            return self.add("MatMul", [source, self.constant(f"{name}.matrix", matrix.T)], output)
        rows, scales = _quantize(matrix, axis=1)
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


def _buckets(distances: npt.NDArray[np.int64], buckets: int, furthest: int = 128) -> npt.NDArray[np.int64]:
    """The row of the table of relative biases for each distance (attended minus attending place).

    Half the rows are for what comes before, half for what comes after; near distances have a row each, farther ones
    share them by logarithm. Source: Raffel et al., "Exploring the Limits of Transfer Learning" (T5), JMLR 2020.
    """
    half = buckets // 2
    exact = half // 2
    size = np.abs(distances)
    ratio = np.log(np.maximum(size, 1) / exact) / math.log(furthest / exact)
    shared = np.minimum(exact + (ratio * (half - exact)).astype(np.int64), half - 1)
    rows: npt.NDArray[np.int64] = np.where(distances > 0, half, 0) + np.where(size < exact, size, shared)
    return rows


def _quantize(matrix: Array, *, axis: int) -> tuple[npt.NDArray[np.int8], Array]:
    """Integers in -127..127 and the scales (kept dimension) that bring them back; an all-zero slice has scale 1."""
    scales = np.abs(matrix).max(axis=axis, keepdims=True) / np.float32(127)
    scales[scales == 0] = 1
    return np.rint(matrix / scales).astype(np.int8), scales.astype(np.float32)
