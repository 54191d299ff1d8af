"""Embedders that the tests make, one an architecture and a pooling, against the same model formula by formula.

By hand the formulas were held against sentence-transformers on random models of these forms: equal in fp32.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer

from retrieval.exceptions import EmbeddingFailed, ImproperEmbedder
from retrieval.index.embedders.onnx import LocalEmbedder
from tests.support.cross_encoders import POSITIONS, WIDTH, Array, Weights, export_bert, random_weights, reference_hidden
from tests.support.embedders import (
    BUCKETS,
    DISTILBERT_NAMES,
    MPNET_NAMES,
    POOLINGS,
    relative_bias,
    renamed,
    unit,
    without_types,
    write_dense,
    write_embedder,
)
from tests.support.model_hub import ModelHub, model_hub

TEXTS = [
    "How many days of paid holiday?",
    "the car park does close",
    "",
    "days of holiday a year " * 5,
    "zebra \ud800 \x00 💧",
]
WEIGHTS = random_weights(seed=3)
NORMALIZE = ("models.Normalize", "2_Normalize")


def ids_of(folder: Path, texts: list[str], limit: int = POSITIONS) -> list[list[int]]:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(limit)
    return [tokenizer.encode(text.encode("utf-8", "replace").decode()).ids for text in texts]


def bert_hidden(weights: Weights, ids: list[int]) -> Array:
    return reference_hidden(weights, ids, [0] * len(ids))


def embedder(folder: Path, precision: str = "fp32", **options: Any) -> LocalEmbedder:
    return LocalEmbedder(str(folder), folder.parent / "cache", precision, **options)  # type: ignore[arg-type]


def assert_vectors(made: LocalEmbedder, expected: list[Array]) -> None:
    np.testing.assert_allclose(made.embed_documents(TEXTS), [unit(each) for each in expected], atol=2e-5)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_each_pooling_gives_the_vectors_of_its_formula(tmp_path: Path, pooling: str) -> None:
    folder = write_embedder(tmp_path / "bert", WEIGHTS, pooling=pooling, modules=[NORMALIZE])
    assert_vectors(embedder(folder), [POOLINGS[pooling](bert_hidden(WEIGHTS, ids)) for ids in ids_of(folder, TEXTS)])


def roberta(folder: Path) -> tuple[Path, Callable[[list[int]], Array]]:
    weights = random_weights(seed=5, token_types=1)
    made = write_embedder(folder, weights, prefix="roberta.", model_type="xlm-roberta", pad_token_id=1)
    return made, lambda ids: reference_hidden(weights, ids, [0] * len(ids), 2)


def mpnet(folder: Path) -> tuple[Path, Callable[[list[int]], Array]]:
    weights = without_types(seed=6)
    table = np.random.default_rng(7).normal(0, 1, (BUCKETS, 4)).astype(np.float32)
    stored = weights | {"encoder.relative_attention_bias.weight": table}
    made = write_embedder(folder, stored, names=MPNET_NAMES, model_type="mpnet", pad_token_id=1)
    return made, lambda ids: reference_hidden(weights, ids, None, 2, relative_bias(table, len(ids)))


def distilbert(folder: Path) -> tuple[Path, Callable[[list[int]], Array]]:
    weights = without_types(seed=8)
    numbers = {"dim": WIDTH, "n_heads": 4, "n_layers": 2, "hidden_dim": 24, "activation": "gelu"}
    made = write_embedder(
        folder, weights, names=DISTILBERT_NAMES, prefix="distilbert.", model_type="distilbert", **numbers
    )
    return made, lambda ids: reference_hidden(weights, ids, None)


@pytest.mark.parametrize("family", [roberta, mpnet, distilbert])
def test_each_architecture_gives_the_vectors_of_its_formulas(
    tmp_path: Path, family: Callable[[Path], tuple[Path, Callable[[list[int]], Array]]]
) -> None:
    folder, hidden = family(tmp_path / family.__name__)
    made = embedder(folder)
    expected = [hidden(ids) for ids in ids_of(folder, TEXTS, made.max_tokens)]
    assert_vectors(made, [each.mean(0) for each in expected])


def test_a_dense_layer_changes_the_vector(tmp_path: Path) -> None:
    modules = [("models.Dense", "2_Dense"), NORMALIZE]
    folder = write_embedder(tmp_path / "bert", WEIGHTS, pooling="cls_token", modules=modules)
    matrix, bias = write_dense(folder / "2_Dense", 24, "torch.nn.modules.activation.Tanh")
    made = embedder(folder)
    hidden = [bert_hidden(WEIGHTS, ids) for ids in ids_of(folder, TEXTS)]
    assert_vectors(made, [np.tanh(each[0] @ matrix.T + bias) for each in hidden])
    assert made.dimension == 24


def test_an_export_gives_the_vectors_of_its_weights(tmp_path: Path) -> None:
    folder = write_embedder(tmp_path / "bert", WEIGHTS, pooling="max_tokens", model_type="somebert")
    (folder / "model.safetensors").unlink()
    export_bert(folder / "onnx" / "model.onnx", WEIGHTS, scores=False)
    made = embedder(folder)
    assert_vectors(made, [bert_hidden(WEIGHTS, ids).max(0) for ids in ids_of(folder, TEXTS)])
    assert made.name.startswith("bert/onnx/")


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, "shards"])
def test_weights_are_read_as_they_are_stored(tmp_path: Path, kind: Any) -> None:
    folder = write_embedder(tmp_path / "bert", WEIGHTS)
    weights = renamed(WEIGHTS, ())
    if kind == "shards":
        names = sorted(weights)
        (folder / "model.safetensors").unlink()
        parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
        for file, held in parts.items():
            save_file({name: weights[name] for name in held}, str(folder / file))
        index = {"weight_map": {name: file for file, held in parts.items() for name in held}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    else:
        stored = {name: array.astype(kind) for name, array in weights.items()}
        save_file(stored, str(folder / "model.safetensors"))
        weights = {name: array.astype(np.float32) for name, array in stored.items()}
    assert_vectors(embedder(folder), [bert_hidden(weights, ids).mean(0) for ids in ids_of(folder, TEXTS)])


def test_int8_is_near_and_not_equal(tmp_path: Path) -> None:
    folder = write_embedder(tmp_path / "bert", WEIGHTS)
    exact, rounded = embedder(folder).embed_documents(TEXTS), embedder(folder, "int8").embed_documents(TEXTS)
    assert (exact != rounded).any()
    assert (exact * rounded).sum(axis=1).min() > 0.99


def test_prompts_stand_before_a_text(tmp_path: Path) -> None:
    named = {"prompts": {"query": "many ", "passage": "the car "}, "default_prompt_name": None}
    folder = write_embedder(tmp_path / "bert", WEIGHTS, described=named)
    made = embedder(folder)
    plain = embedder(folder, query_prompt=" ", document_prompt=" ")
    text = "paid holiday"
    (expected,) = plain.embed_documents([f"the car {text}"])
    np.testing.assert_array_equal(made.embed_documents([text])[0], expected)
    np.testing.assert_array_equal(made.embed_query(text), plain.embed_query(f"many {text}"))
    by_setting = embedder(folder, query_prompt="many", document_prompt="the car")
    assert by_setting.name == made.name != plain.name


def test_the_name_tells_what_decides_the_vectors(tmp_path: Path) -> None:
    folder = write_embedder(tmp_path / "bert", WEIGHTS)
    first = embedder(folder)
    assert embedder(folder).name == first.name
    assert embedder(folder, "int8").name != first.name
    assert embedder(folder, query_prompt="query:").name != first.name
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": "cls"}))
    pooled = embedder(folder)
    save_file(renamed(random_weights(seed=9), ()), str(folder / "model.safetensors"))
    assert len({first.name, pooled.name, embedder(folder).name}) == 3


def test_the_longest_text_is_the_models(tmp_path: Path) -> None:
    folder = write_embedder(tmp_path / "short", WEIGHTS, limit=20)
    made = embedder(folder)
    assert made.max_tokens == 20
    assert_vectors(made, [bert_hidden(WEIGHTS, ids).mean(0) for ids in ids_of(folder, TEXTS, 20)])
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 1e30}))
    (folder / "sentence_bert_config.json").unlink()
    assert embedder(folder).max_tokens == POSITIONS


def test_an_encoder_alone_takes_the_mean(tmp_path: Path) -> None:
    folder = write_embedder(tmp_path / "bert", WEIGHTS, pooling=None)
    assert_vectors(embedder(folder), [bert_hidden(WEIGHTS, ids).mean(0) for ids in ids_of(folder, TEXTS)])


def test_what_cannot_be_run_is_refused_with_the_reason(tmp_path: Path) -> None:
    def refused(match: str, **options: Any) -> None:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        with pytest.raises(ImproperEmbedder, match=match):
            embedder(write_embedder(folder, WEIGHTS, **options))

    with pytest.raises(ImproperEmbedder, match="There is no folder /nowhere/at/all"):
        embedder(Path("/nowhere/at/all"))
    refused("no model.onnx, and no model.safetensors of one of bert, .*'modernbert'.*export", model_type="modernbert")
    refused("activation is 'silu'", hidden_act="silu")
    refused("only absolute positions", position_embedding_type="relative_key")
    refused("a module LSTM", modules=[("models.LSTM", "2_LSTM")])
    refused("compared by dot", described={"similarity_fn_name": "dot"})
    refused("pools tokens in 0 ways", pooling="nothing")
    refused("reads 8 tokens at once", limit=8)
    folder = write_embedder(tmp_path / "cut", {name: WEIGHTS[name] for name in list(WEIGHTS)[:9]})
    with pytest.raises(ImproperEmbedder, match="No graph can be written"):
        embedder(folder).prepare()
    (folder / "config.json").write_text("{")
    with pytest.raises(ImproperEmbedder, match=r"config\.json cannot be read"):
        embedder(folder)


def test_an_export_without_token_vectors_is_refused(tmp_path: Path) -> None:
    folder = write_embedder(tmp_path / "bert", WEIGHTS, model_type="somebert")
    export_bert(folder / "model.onnx", WEIGHTS)
    with pytest.raises(ImproperEmbedder, match="gives logits, and no vector for each token"):
        embedder(folder).embed_query("days")


def test_vectors_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    damaged = WEIGHTS | {"embeddings.LayerNorm.bias": np.full(WIDTH, np.nan, np.float32)}
    with pytest.raises(EmbeddingFailed, match="not finite"):
        embedder(write_embedder(tmp_path / "bert", damaged)).embed_query("days")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelHub]:
    with model_hub() as running:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", running.url)
        monkeypatch.setattr(
            "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE",
            running.url + "/{repo_id}/resolve/{revision}/{filename}",
        )
        yield running


def test_a_name_is_fetched_once_and_found_without_the_hub(tmp_path: Path, hub: ModelHub) -> None:
    folder = write_embedder(tmp_path / "bert", WEIGHTS, modules=[NORMALIZE])
    (folder / "pytorch_model.bin").write_bytes(b"not wanted")
    hub.models["someone/bert"] = folder
    cache = tmp_path / "cache"
    made = LocalEmbedder("someone/bert", cache, "fp32")
    assert "pytorch_model.bin" not in hub.fetched
    assert made.name == embedder(folder).name
    np.testing.assert_array_equal(made.embed_query("days"), embedder(folder).embed_query("days"))
    hub.models.clear()
    assert LocalEmbedder("someone/bert", cache, "fp32").name == made.name
    with pytest.raises(ImproperEmbedder, match="no model of that name on the hub"):
        LocalEmbedder("someone/else", cache)
