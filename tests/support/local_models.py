"""Embedders and cross encoders small enough to be made by a test, in the forms in which real ones are published."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

Array = npt.NDArray[Any]
Weights = dict[str, Array]

WIDTH, INNER, HEADS, LAYERS, POSITIONS, EPSILON = 16, 24, 4, 2, 40, 1e-12
WORDS = ("how", "many", "days", "of", "paid", "holiday", "a", "year", "the", "car", "park", "does", "close", "evening")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def write_tokenizer(folder: Path, words: Sequence[str] = WORDS) -> None:
    """Whole words in lower case; [CLS] question [SEP] passage [SEP] with types 0 and 1."""
    vocabulary = {word: number for number, word in enumerate((*SPECIAL, *words))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    # As published tokenizers often do; whoever loads one must not be fooled by it.
    tokenizer.enable_padding(length=POSITIONS)
    tokenizer.enable_truncation(10)
    folder.mkdir(exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))


def bert_config(**changes: Any) -> dict[str, Any]:
    return {"model_type": "bert", "hidden_size": WIDTH, "max_position_embeddings": POSITIONS} | changes


def random_weights(seed: int) -> Weights:
    """Of a BERT without the prefix that checkpoints put before its names."""
    rng = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(SPECIAL) + len(WORDS), WIDTH),
        "embeddings.position_embeddings.weight": (POSITIONS, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        "embeddings.LayerNorm.weight": (WIDTH,),
        "embeddings.LayerNorm.bias": (WIDTH,),
        "pooler.dense.weight": (WIDTH, WIDTH),
        "pooler.dense.bias": (WIDTH,),
        "classifier.weight": (1, WIDTH),
        "classifier.bias": (1,),
    }
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}"
        for part in ("query", "key", "value"):
            shapes[f"{prefix}.attention.self.{part}.weight"] = (WIDTH, WIDTH)
            shapes[f"{prefix}.attention.self.{part}.bias"] = (WIDTH,)
        for part, shape in (
            ("attention.output", (WIDTH, WIDTH)),
            ("intermediate", (INNER, WIDTH)),
            ("output", (WIDTH, INNER)),
        ):
            shapes[f"{prefix}.{part}.dense.weight"] = shape
            shapes[f"{prefix}.{part}.dense.bias"] = shape[:1]
        for part in ("attention.output", "output"):
            shapes[f"{prefix}.{part}.LayerNorm.weight"] = (WIDTH,)
            shapes[f"{prefix}.{part}.LayerNorm.bias"] = (WIDTH,)
    # Small biases, gains near 1 and rows far apart: then the words decide the score, and not the weights alone.
    return {
        name: rng.normal(
            1.0 if name.endswith("LayerNorm.weight") else 0.0,
            1.0 if "embeddings.weight" in name else 0.4 if len(shape) == 2 else 0.1,
            shape,
        ).astype(np.float32)
        for name, shape in shapes.items()
    }


def write_cross_encoder(folder: Path, weights: Weights, **config: Any) -> Path:
    write_tokenizer(folder)
    (folder / "config.json").write_text(json.dumps(bert_config(**config)))
    export_bert(folder / "model.onnx", weights)
    return folder


def reference_hidden(weights: Weights, ids: Sequence[int], types: Sequence[int], *, heads: int = HEADS) -> Array:
    """The last layer in float64, after Devlin et al., "BERT", NAACL 2019, formula by formula; (tokens, width)."""
    w = {name: array.astype(np.float64) for name, array in weights.items()}

    def normalized(x: Array, name: str) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt(x.var(-1, keepdims=True) + EPSILON) * w[f"{name}.weight"] + w[f"{name}.bias"]

    def dense(x: Array, name: str) -> Array:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    x = w["embeddings.word_embeddings.weight"][list(ids)] + w["embeddings.position_embeddings.weight"][: len(ids)]
    x = x + w["embeddings.token_type_embeddings.weight"][list(types)]
    x = normalized(x, "embeddings.LayerNorm")
    width = x.shape[1]
    for layer in range(sum(name.endswith("query.weight") for name in w)):
        prefix = f"encoder.layer.{layer}"
        q, k, v = (
            dense(x, f"{prefix}.attention.self.{part}").reshape(len(ids), heads, -1).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        raised = np.exp(q @ k.transpose(0, 2, 1) / math.sqrt(width / heads))
        attended = ((raised / raised.sum(-1, keepdims=True)) @ v).transpose(1, 0, 2).reshape(len(ids), width)
        x = normalized(x + dense(attended, f"{prefix}.attention.output.dense"), f"{prefix}.attention.output.LayerNorm")
        inner = dense(x, f"{prefix}.intermediate.dense")
        inner = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
        x = normalized(x + dense(inner, f"{prefix}.output.dense"), f"{prefix}.output.LayerNorm")
    return x


def reference_logit(weights: Weights, ids: Sequence[int], types: Sequence[int]) -> float:
    """The score of a pair, from its first token."""
    first = reference_hidden(weights, ids, types)[0]
    pooled = np.tanh(first @ weights["pooler.dense.weight"].T + weights["pooler.dense.bias"])
    return float((pooled @ weights["classifier.weight"].T + weights["classifier.bias"])[0])


class _Export:
    """A graph of standard operators in the form that exporters write: any batch, any length, with a mask."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def __call__(self, operator: str, *inputs: str | Array, **attributes: Any) -> str:
        names = []
        for each in inputs:
            if not isinstance(each, str):
                self.constants.append(numpy_helper.from_array(np.asarray(each), f"constant_{len(self.constants)}"))
            names.append(each if isinstance(each, str) else self.constants[-1].name)
        output = str(attributes.pop("output", f"value_{len(self.nodes)}"))
        self.nodes.append(helper.make_node(operator, names, [output], **attributes))
        return output

    def save(self, path: Path, output: str = "logits", shape: Sequence[int | str] = ("batch", 1)) -> None:
        graph = helper.make_graph(
            self.nodes,
            "export",
            inputs=[
                helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
                for name in ("input_ids", "attention_mask", "token_type_ids")
            ],
            outputs=[helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
            initializer=self.constants,
        )
        path.parent.mkdir(exist_ok=True)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), str(path))


def export_bert(path: Path, weights: Weights, *, scores: bool = True) -> None:
    """The weights as an ONNX file of standard operators, with a mask and any batch; its last layer unless it scores."""
    op = _Export()

    def normalized(x: str, name: str) -> str:
        return op("LayerNormalization", x, weights[f"{name}.weight"], weights[f"{name}.bias"], epsilon=EPSILON)

    def dense(x: str, name: str) -> str:
        return op("Add", op("MatMul", x, np.ascontiguousarray(weights[f"{name}.weight"].T)), weights[f"{name}.bias"])

    length = op("Shape", "input_ids", start=1, end=2)
    positions = op("Slice", weights["embeddings.position_embeddings.weight"], np.array([0]), length)
    words = op("Gather", weights["embeddings.word_embeddings.weight"], "input_ids")
    types = op("Gather", weights["embeddings.token_type_embeddings.weight"], "token_type_ids")
    x = normalized(op("Add", op("Add", words, positions), types), "embeddings.LayerNorm")
    ignored = op("Mul", op("Sub", np.float32(1), op("Cast", "attention_mask", to=TensorProto.FLOAT)), np.float32(-1e4))
    mask = op("Unsqueeze", ignored, np.array([1, 2]))
    by_head = np.array([0, 0, HEADS, WIDTH // HEADS])
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}"
        q, k, v = (
            op("Reshape", dense(x, f"{prefix}.attention.self.{part}"), by_head) for part in ("query", "key", "value")
        )
        q, v = (op("Transpose", each, perm=[0, 2, 1, 3]) for each in (q, v))
        products = op("MatMul", q, op("Transpose", k, perm=[0, 2, 3, 1]))
        scaled = op("Div", products, np.float32(math.sqrt(WIDTH / HEADS)))
        heads = op("MatMul", op("Softmax", op("Add", scaled, mask), axis=-1), v)
        attended = op("Reshape", op("Transpose", heads, perm=[0, 2, 1, 3]), np.array([0, 0, WIDTH]))
        attended = dense(attended, f"{prefix}.attention.output.dense")
        x = normalized(op("Add", x, attended), f"{prefix}.attention.output.LayerNorm")
        inner = dense(op("Gelu", dense(x, f"{prefix}.intermediate.dense")), f"{prefix}.output.dense")
        x = normalized(op("Add", x, inner), f"{prefix}.output.LayerNorm")
    if not scores:
        op("Identity", x, output="last_hidden_state")
        op.save(path, "last_hidden_state", ("batch", "length", WIDTH))
        return
    pooled = op("Tanh", dense(op("Gather", x, np.array(0), axis=1), "pooler.dense"))
    op("Identity", dense(pooled, "classifier"), output="logits")
    op.save(path, shape=("batch", len(weights["classifier.weight"])))


def write_overlap_model(folder: Path, words: Sequence[str]) -> Path:
    """A model whose score is the number of (question word, passage word) pairs that are equal and in ``words``."""
    write_tokenizer(folder, words)
    (folder / "config.json").write_text(
        json.dumps({"model_type": "overlap", "sentence_transformers": {"activation_fn": "torch.nn.Identity"}})
    )
    op = _Export()
    known = op("GreaterOrEqual", "input_ids", np.array(len(SPECIAL)))
    attended = op("And", known, op("Cast", "attention_mask", to=TensorProto.BOOL))
    in_passage = op("Cast", "token_type_ids", to=TensorProto.BOOL)
    in_question = op("Not", in_passage)
    equal = op("Equal", op("Unsqueeze", "input_ids", np.array([2])), op("Unsqueeze", "input_ids", np.array([1])))
    rows = op("Unsqueeze", op("And", attended, in_question), np.array([2]))
    columns = op("Unsqueeze", op("And", attended, in_passage), np.array([1]))
    pairs = op("Cast", op("And", op("And", equal, rows), columns), to=TensorProto.FLOAT)
    op("Unsqueeze", op("ReduceSum", pairs, np.array([1, 2]), keepdims=0), np.array([1]), output="logits")
    op.save(folder / "onnx" / "model.onnx")
    return folder


def write_embedder(
    folder: Path,
    weights: Weights,
    *,
    pooling: str | None = "mean_tokens",
    modules: Sequence[tuple[str, str]] = (),
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
    export_bert(folder / "onnx" / "model.onnx", weights, scores=False)
    return folder


def unit(vector: Array) -> Array:
    scaled: Array = vector / np.linalg.norm(vector)
    return scaled
