"""Small embedders and cross encoders that a test makes, in the forms of published ones; and the formulas of BERT."""

import json
import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

WIDTH, POSITIONS, EPSILON = 16, 40, 1e-12
WORDS = ("how", "many", "days", "of", "paid", "holiday", "a", "year", "the", "car", "park", "does", "close", "evening")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def write_tokenizer(folder, words=WORDS):
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
    # Published tokenizers often do this; a loader must ignore it.
    tokenizer.enable_padding(length=POSITIONS)
    tokenizer.enable_truncation(10)
    folder.mkdir(exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))


def bert_config(**changes):
    return {"model_type": "bert", "hidden_size": WIDTH, "max_position_embeddings": POSITIONS} | changes


def reference_hidden(weights, ids, types, *, heads):
    """Return the last layer in float64, formula by formula; (tokens, width).

    Devlin et al., "BERT", NAACL 2019.
    """
    w = {name: array.astype(np.float64) for name, array in weights.items()}

    def normalized(x, name):
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt(x.var(-1, keepdims=True) + EPSILON) * w[f"{name}.weight"] + w[f"{name}.bias"]

    def dense(x, name):
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


INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class _Export:
    """A graph of standard operators in the form that exporters write: any batch, any length, with a mask."""

    def __init__(self):
        self.nodes = []
        self.constants = []

    def __call__(self, operator, *inputs, **attributes):
        names = []
        for each in inputs:
            if not isinstance(each, str):
                self.constants.append(numpy_helper.from_array(np.asarray(each), f"constant_{len(self.constants)}"))
            names.append(each if isinstance(each, str) else self.constants[-1].name)
        output = str(attributes.pop("output", f"value_{len(self.nodes)}"))
        self.nodes.append(helper.make_node(operator, names, [output], **attributes))
        return output

    def save(self, path, output="logits", shape=("batch", 1), inputs=INPUTS):
        graph = helper.make_graph(
            self.nodes,
            "export",
            inputs=[helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in inputs],
            outputs=[helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
            initializer=self.constants,
        )
        path.parent.mkdir(exist_ok=True)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), str(path))


def write_overlap_model(folder, words=WORDS, *, factor=1.0, labels=1, **config):
    """Write a cross encoder whose output counts the equal (question word, passage word) pairs.

    It counts only ``words``, times ``factor``, once for each of the ``labels``.
    """
    write_tokenizer(folder, words)
    (folder / "config.json").write_text(json.dumps(bert_config(**config)))
    op = _Export()
    known = op("GreaterOrEqual", "input_ids", np.array(len(SPECIAL)))
    attended = op("And", known, op("Cast", "attention_mask", to=TensorProto.BOOL))
    in_passage = op("Cast", "token_type_ids", to=TensorProto.BOOL)
    in_question = op("Not", in_passage)
    equal = op("Equal", op("Unsqueeze", "input_ids", np.array([2])), op("Unsqueeze", "input_ids", np.array([1])))
    rows = op("Unsqueeze", op("And", attended, in_question), np.array([2]))
    columns = op("Unsqueeze", op("And", attended, in_passage), np.array([1]))
    pairs = op("Cast", op("And", op("And", equal, rows), columns), to=TensorProto.FLOAT)
    counted = op("Unsqueeze", op("ReduceSum", pairs, np.array([1, 2]), keepdims=0), np.array([1]))
    op("Concat", *[op("Mul", counted, np.array(factor, np.float32))] * labels, axis=1, output="logits")
    op.save(folder / "model.onnx", shape=("batch", labels))
    return folder


def overlap(ids, types):
    pairs = list(zip(ids, types, strict=True))
    passage = [word for word, kind in pairs if kind]
    return sum(passage.count(word) for word, kind in pairs if not kind and word >= len(SPECIAL))


def random_weights(seed):
    """Return the vectors of words and of positions."""
    rng = np.random.default_rng(seed)
    sizes = {"words": len(SPECIAL) + len(WORDS), "positions": POSITIONS}
    return {name: rng.normal(size=(size, WIDTH)).astype(np.float32) for name, size in sizes.items()}


def hidden(weights, ids):
    """Return the last layer of the model that :func:`export_encoder` writes; (tokens, width)."""
    return weights["words"][list(ids)] + weights["positions"][: len(ids)]


def export_encoder(path, weights, output="last_hidden_state"):
    """Write an encoder that adds the vectors of words and positions, as an exporter does: any batch, with a mask."""
    op = _Export()
    positions = op("Slice", weights["positions"], np.array([0]), op("Shape", "input_ids", start=1, end=2))
    op("Add", op("Gather", weights["words"], "input_ids"), positions, output=output)
    op.save(path, output, ("batch", "length", WIDTH))


def export_with_positions(path, weights):
    """Write an encoder as :func:`export_encoder`, with the positions as an input, like an exporter of decoders."""
    op = _Export()
    words, positions = (op("Gather", weights[name], each) for name, each in
                        (("words", "input_ids"), ("positions", "position_ids")))  # fmt: skip
    op("Add", words, positions, output="last_hidden_state")
    inputs = ("input_ids", "attention_mask", "position_ids")
    op.save(path, "last_hidden_state", ("batch", "length", WIDTH), inputs)


def export_sentence_encoder(path, weights):
    """Write an encoder as :func:`export_encoder` that gives only the first token's vector, in unit length."""
    op = _Export()
    positions = op("Slice", weights["positions"], np.array([0]), op("Shape", "input_ids", start=1, end=2))
    added = op("Add", op("Gather", weights["words"], "input_ids"), positions)
    first = op("Gather", added, np.array(0), axis=1)
    op("LpNormalization", first, axis=-1, p=2, output="sentence_embedding")
    op.save(path, "sentence_embedding", ("batch", WIDTH))


def write_dense(folder, width, *, activation="Identity", seed=5, of=WIDTH):
    """Write a Dense module as sentence-transformers stores it, and return its function."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(width, of)).astype(np.float32)
    bias = rng.normal(size=width).astype(np.float32)
    save_file({"linear.weight": matrix, "linear.bias": bias}, str(folder / "model.safetensors"))
    config = {"in_features": of, "out_features": width, "activation_function": f"torch.nn.modules.{activation}"}
    (folder / "config.json").write_text(json.dumps(config))
    return lambda vector: {"Tanh": np.tanh, "Identity": lambda it: it}[activation](matrix @ vector + bias)


def write_embedder(folder, weights, *, pooling="mean_tokens", modules=(), described=None, limit=None, **config):
    """Write a folder with a Pooling module, then ``modules`` (type, path).

    There is no modules.json without ``pooling``.
    """
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
    export_encoder(folder / "onnx" / "model.onnx", weights)
    return folder


def unit(vector):
    return vector / np.linalg.norm(vector)
