"""The ONNX graph of a text embedder: an encoder's tokens, pooled into one unit vector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from onnx import ValueInfoProto

from retrieval.index.embedders.architectures import EncoderShape, read_shape, with_bert_names
from retrieval.index.embedders.graph import EncoderGraph, Graph, Precision, float_output, token_input
from retrieval.index.embedders.model_files import load_weights
from retrieval.index.embedders.sentence_model import ACTIVATIONS, Dense, Normalize, Pooling, SentenceModel

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.float32]

SENTENCE, TOKENS = "sentence_embedding", "token_embeddings"


def build_graph(model: SentenceModel, precision: Precision, name: str) -> bytes:
    """A serialized ONNX model: ``input_ids`` int64 (1, n) -> two float32 outputs.

    ``sentence_embedding`` (1, dimension) has unit length; ``token_embeddings`` (1, n, dimension) is the last layer as
    it is, through the dense layers where the model has them. n is 1 to ``max_tokens``.

    Raises: KeyError, ValueError, OSError when the files are not those of such a model.
    """
    shape = read_shape(model.config)
    weights = with_bert_names(load_weights(model.weights), shape)
    graph = EncoderGraph(weights=weights, precision=precision, shape=shape)
    hidden = graph.embeddings()
    for layer in range(shape.layers):
        is_last = layer == shape.layers - 1
        hidden = graph.layer(layer, hidden, _encoder_output(model) if is_last else f"hidden_{layer}")
    _pool(graph, model, hidden)
    return graph.serialize(name, [token_input()], _outputs(model.dimension))


def build_layers(weights: Mapping[str, Array], shape: EncoderShape, precision: Precision, name: str) -> bytes:
    """A serialized ONNX model that begins after the table of words: ``word_rows`` float32 (1, n, width) ->
    ``sentence_embedding`` (1, width), the mean of the last layer in unit length.

    Raises: KeyError, ValueError when the weights are not those of such a model.
    """
    graph = EncoderGraph(weights=weights, precision=precision, shape=shape)
    hidden = graph.normalized(graph.positioned("word_rows"))
    for layer in range(shape.layers):
        hidden = graph.layer(layer, hidden, f"hidden_{layer}")
    graph.add("LpNormalization", [_pooled(graph, Pooling.MEAN, hidden)], SENTENCE, axis=-1, p=2)
    return graph.serialize(
        name, [float_output("word_rows", [1, "n", shape.width])], [float_output(SENTENCE, [1, shape.width])]
    )


def build_head(model: SentenceModel) -> bytes:
    """The same outputs from ``hidden`` float32 (1, n, width), the last layer of a model that is an export."""
    graph = Graph()
    hidden = "hidden"
    if not _dense_layers(model):
        graph.add("Identity", [hidden], TOKENS)
    _pool(graph, model, hidden)
    return graph.serialize("head", [float_output(hidden, [1, "n", "width"])], _outputs(model.dimension))


def _outputs(dimension: int) -> list[ValueInfoProto]:
    return [float_output(SENTENCE, [1, dimension]), float_output(TOKENS, [1, "n", dimension])]


def _dense_layers(model: SentenceModel) -> list[Dense]:
    return [step for step in model.steps if isinstance(step, Dense)]


def _encoder_output(model: SentenceModel) -> str:
    return "last_hidden" if _dense_layers(model) else TOKENS


def _pool(graph: Graph, model: SentenceModel, hidden: str) -> None:
    """Adds the two outputs. Vectors get unit length also where the model does not say so: cosine compares them."""
    vector = _pooled(graph, model.pooling, hidden)
    tokens = hidden
    last_dense = max((place for place, step in enumerate(model.steps) if isinstance(step, Dense)), default=-1)
    # Normalized again at the end; before a dense layer it matters where.
    for place, step in enumerate(model.steps[: last_dense + 1]):
        if isinstance(step, Normalize):
            vector = graph.add("LpNormalization", [vector], f"normalized_{place}", axis=-1, p=2)
            tokens = graph.add("LpNormalization", [tokens], f"normalized_tokens_{place}", axis=-1, p=2)
        else:
            layers = _dense_constants(graph, step, place)
            vector = _dense(graph, step, layers, vector, f"dense_{place}")
            tokens = _dense(graph, step, layers, tokens, TOKENS if place == last_dense else f"dense_tokens_{place}")
    graph.add("LpNormalization", [vector], SENTENCE, axis=-1, p=2)


def _pooled(graph: Graph, pooling: Pooling, hidden: str) -> str:
    """One vector of the tokens', special ones included; shape (1, width)."""
    if pooling in (Pooling.CLS, Pooling.LAST):
        place = np.array(0 if pooling is Pooling.CLS else -1)
        return graph.add("Gather", [hidden, graph.constant("pooled_token", place)], "pooled", axis=1)
    axis = graph.constant("sequence_axis", np.array([1]))
    if pooling is Pooling.MAX:
        return graph.add("ReduceMax", [hidden, axis], "maximum", keepdims=0)
    if pooling is Pooling.MEAN:
        return graph.add("ReduceMean", [hidden, axis], "mean", keepdims=0)
    scalar = np.array([], np.int64)
    number = graph.add("Shape", [hidden], "number_of_tokens", start=1, end=2)
    if pooling is Pooling.MEAN_SQRT:
        root = graph.add("Sqrt", [graph.add("Cast", [number], "tokens_cast", to=1)], "tokens_root")
        return graph.add("Div", [graph.add("ReduceSum", [hidden, axis], "sum", keepdims=0), root], "pooled")
    # A token counts the more the later it stands: 1, 2, 3...
    end = graph.add("Reshape", [number, graph.constant("scalar", scalar)], "last_place")
    one = graph.constant("one", np.array(1))
    places = graph.add("Range", [one, graph.add("Add", [end, one], "past_last"), one], "token_places")
    weights = graph.add("Cast", [places], "token_weights", to=1)
    column = graph.add("Unsqueeze", [weights, graph.constant("column_axis", np.array([1]))], "token_weight_column")
    total = graph.add("ReduceSum", [weights], "token_weight_sum", keepdims=1)
    weighted = graph.add("Mul", [hidden, column], "weighted_tokens")
    return graph.add("Div", [graph.add("ReduceSum", [weighted, axis], "weighted_sum", keepdims=0), total], "pooled")


def _dense_constants(graph: Graph, step: Dense, place: int) -> Sequence[str]:
    weights = load_weights([step.weights])
    names = [graph.constant(f"dense_{place}.matrix", weights["linear.weight"].T)]
    if "linear.bias" in weights:
        names.append(graph.constant(f"dense_{place}.bias", weights["linear.bias"]))
    return names


def _dense(graph: Graph, step: Dense, constants: Sequence[str], source: str, output: str) -> str:
    """In fp32 whatever the precision: it is one product, and the last."""
    value = graph.add("MatMul", [source, constants[0]], f"{output}.product")
    if len(constants) > 1:
        value = graph.add("Add", [value, constants[1]], f"{output}.biased")
    return graph.add(ACTIVATIONS[step.activation] or "Identity", [value], output)
