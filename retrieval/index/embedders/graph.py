"""Write an encoder's ONNX graph from its weights, without a deep-learning framework. A run encodes one text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Array = npt.NDArray[np.float32]

POSITIONS = "embeddings.position_embeddings.weight"
TOKEN_TYPES = "embeddings.token_type_embeddings.weight"  # noqa: S105
MICROSOFT = "com.microsoft"
"""ONNX Runtime's own operators: fused BERT blocks and the int8 product, all in its CPU build."""


@dataclass(frozen=True, slots=True)
class EncoderShape:
    layers: int
    heads: int
    width: int
    epsilon: float


@dataclass
class _EncoderGraph:
    """Builds the graph of a BERT model (Devlin et al., NAACL 2019) with 8-bit weights.

    A method that adds a node returns the name of its output.
    """

    weights: Mapping[str, Array]
    shape: EncoderShape
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    def add_constant(self, name: str, array: npt.NDArray[np.generic]) -> str:
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def add(self, operator: str, inputs: Sequence[str], *outputs: str, domain: str = "", **attributes: Any) -> str:
        self.nodes.append(helper.make_node(operator, inputs, outputs, name=outputs[0], domain=domain, **attributes))
        return outputs[0]

    def serialize(self, name: str, read: onnx.ValueInfoProto, output: str, shape: Sequence[int | str]) -> bytes:
        """Return the model as bytes. Raises: ValueError above 2 GB, the limit of ONNX."""
        given = helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, name, inputs=[read], outputs=[given], initializer=self.constants)
        # ONNX Runtime 1.20 and later can read these versions. The default of `onnx` is newer.
        model: onnx.ModelProto = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid(MICROSOFT, 1)],
            ir_version=10,
        )
        serialized: bytes = model.SerializeToString()
        return serialized

    def add_word_rows(self) -> str:
        words = self.weights["embeddings.word_embeddings.weight"]
        rows, scales = _quantize(words)
        self.add("Gather", [self.add_constant("words", rows), "input_ids"], "word_rows_int8")
        self.add("Cast", ["word_rows_int8"], "word_rows_cast", to=TensorProto.FLOAT)
        self.add("Gather", [self.add_constant("word_scales", scales), "input_ids"], "word_row_scales")
        return self.add("Mul", ["word_rows_cast", "word_row_scales"], "word_rows")

    def encode(self, word_rows: str, output: str) -> str:
        """Add the position vectors and all layers to the ONNX graph, and return the name of the output.

        ``word_rows`` is the name of the input, which has the shape (1, n, width). ``output`` is the name of the output.
        """
        positions = self.weights[POSITIONS] + self.weights[TOKEN_TYPES][0]
        self.add("Shape", [word_rows], "length", start=1, end=2)
        start = self.add_constant("first_position", np.array([0]))
        self.add("Slice", [self.add_constant("positions", positions), start, "length"], "position_rows")
        self.add("Add", [word_rows, "position_rows"], "embedded")
        norm = [self.add_weight(f"embeddings.LayerNorm.{part}") for part in ("weight", "bias")]
        hidden = self.add("LayerNormalization", ["embedded", *norm], "embeddings", epsilon=self.shape.epsilon)
        for layer in range(self.shape.layers):
            hidden = self.add_layer(layer, hidden, output if layer == self.shape.layers - 1 else f"hidden_{layer}")
        return hidden

    def add_layer(self, index: int, hidden: str, output: str) -> str:
        prefix = f"encoder.layer.{index}"
        projections = [f"{prefix}.attention.self.{part}" for part in ("query", "key", "value")]
        projected = self.add_product(
            hidden, np.concatenate([self.weights[f"{name}.weight"] for name in projections]), f"{prefix}.qkv"
        )
        parts = [f"{name}.projected" for name in projections]
        self.add("Split", [projected], *parts, axis=2, num_outputs=3)
        bias = self.add_constant(f"{prefix}.qkv.bias", np.concatenate([self.weights[f"{n}.bias"] for n in projections]))
        attended = self.add(
            "MultiHeadAttention",
            [*parts, bias],
            f"{prefix}.attended",
            domain=MICROSOFT,
            num_heads=self.shape.heads,
        )
        middle = self.add_residual(f"{prefix}.attention.output", attended, hidden, f"{prefix}.middle")
        inner = f"{prefix}.intermediate.dense"
        widened = self.add_product(middle, self.weights[f"{inner}.weight"], inner)
        activated = self.add(
            "BiasGelu", [widened, self.add_weight(f"{inner}.bias")], f"{prefix}.activated", domain=MICROSOFT
        )
        return self.add_residual(f"{prefix}.output", activated, middle, output)

    def add_residual(self, prefix: str, source: str, skipped: str, output: str) -> str:
        projected = self.add_product(source, self.weights[f"{prefix}.dense.weight"], f"{prefix}.dense")
        gain, shift = self.add_weight(f"{prefix}.LayerNorm.weight"), self.add_weight(f"{prefix}.LayerNorm.bias")
        bias = self.add_weight(f"{prefix}.dense.bias")
        return self.add(
            "SkipLayerNormalization",
            [projected, skipped, gain, shift, bias],
            output,
            domain=MICROSOFT,
            epsilon=self.shape.epsilon,
        )

    def add_product(self, source: str, matrix: Array, name: str) -> str:
        """Add a product of ``source`` and the transposed ``matrix``, whose shape is (outputs, inputs)."""
        output = f"{name}.product"
        rows, scales = _quantize(matrix)
        return self.add(
            "DynamicQuantizeMatMul",
            [
                source,
                self.add_constant(f"{name}.matrix", rows.T),
                self.add_constant(f"{name}.scales", scales[:, 0]),
                self.add_constant(f"{name}.zeros", np.zeros(len(rows), np.int8)),
            ],
            output,
            domain=MICROSOFT,
        )

    def add_weight(self, name: str) -> str:
        return self.add_constant(name, self.weights[name])


def _quantize(matrix: Array) -> tuple[npt.NDArray[np.int8], Array]:
    """Return the matrix as integers in -127..127, and a scale for each row, shape (rows, 1)."""
    scales = np.abs(matrix).max(axis=1, keepdims=True) / np.float32(127)
    scales[scales == 0] = 1
    return np.rint(matrix / scales).astype(np.int8), scales.astype(np.float32)


TOKENS, SENTENCE = "token_embeddings", "sentence_embedding"


def build_encoder(weights: Mapping[str, Array], shape: EncoderShape, name: str) -> bytes:
    """Return an ONNX model whose output is the last layer.

    ``input_ids`` int64 (1, n) -> ``token_embeddings`` float32 (1, n, width). Raises: KeyError, ValueError if the
    weights are not of a BERT model.
    """
    graph = _EncoderGraph(weights, shape)
    graph.encode(graph.add_word_rows(), TOKENS)
    read = helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "n"])
    return graph.serialize(name, read, TOKENS, [1, "n", shape.width])


def build_layers(weights: Mapping[str, Array], shape: EncoderShape, name: str) -> bytes:
    """Return an ONNX model that takes the vectors of words as its input.

    ``word_rows`` float32 (1, n, width) -> ``sentence_embedding`` (1, width), the mean of the last layer in unit length.
    Raises: KeyError, ValueError if the weights are not of a BERT model.
    """
    graph = _EncoderGraph(weights, shape)
    hidden = graph.encode("word_rows", f"hidden_{shape.layers - 1}")
    axis = graph.add_constant("sequence_axis", np.array([1]))
    graph.add("LpNormalization", [graph.add("ReduceMean", [hidden, axis], "mean", keepdims=0)], SENTENCE, axis=-1, p=2)
    read = helper.make_tensor_value_info("word_rows", TensorProto.FLOAT, [1, "n", shape.width])
    return graph.serialize(name, read, SENTENCE, [1, shape.width])
