"""Embedders that the tests make, one a pooling, against the same model formula by formula.

The formulas were compared by hand with sentence-transformers on random models of these forms: equal in fp32.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from retrieval.exceptions import EmbedderMisconfigured, EmbeddingFailed
from retrieval.index.embedders.onnx import LocalEmbedder, OnnxMiniLM
from tests.support.local_models import (
    POSITIONS,
    WIDTH,
    bert_config,
    export_encoder,
    export_sentence_encoder,
    export_with_positions,
    hidden,
    random_weights,
    unit,
    write_dense,
    write_embedder,
    write_overlap_model,
)
from tests.support.model_hub import hub

__all__ = ["hub"]

TEXTS = [
    "How many days of paid holiday?",
    "the car park does close",
    "",
    "days of holiday a year " * 5,
    "zebra \ud800 \x00 💧",
]
WEIGHTS = random_weights(seed=3)
NORMALIZE = ("models.Normalize", "2_Normalize")
POOLINGS = {
    "cls_token": lambda layer: layer[0],
    "mean_tokens": lambda layer: layer.mean(0),
    "max_tokens": lambda layer: layer.max(0),
    "lasttoken": lambda layer: layer[-1],
}


def ids_of(folder, texts, limit=POSITIONS):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(limit)
    return [tokenizer.encode(text.encode("utf-8", "replace").decode()).ids for text in texts]


def embedder(folder, **options):
    return LocalEmbedder(str(folder), folder.parent / "cache", **options)


def assert_vectors(made, expected):
    np.testing.assert_allclose(made.embed_documents(TEXTS), [unit(each) for each in expected], atol=2e-5)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_each_pooling_gives_the_vectors_of_its_formula(tmp_path, pooling):
    folder = write_embedder(tmp_path / "bert", WEIGHTS, pooling=pooling, modules=[NORMALIZE])
    assert_vectors(embedder(folder), [POOLINGS[pooling](hidden(WEIGHTS, ids)) for ids in ids_of(folder, TEXTS)])


def test_the_weights_of_a_bert_are_read_where_there_is_no_onnx_file(tmp_path):
    built_in = OnnxMiniLM(tmp_path / "cache")
    folder = tmp_path / "minilm"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (folder / name).symlink_to(built_in._read.folder / name)
    made = embedder(folder)
    assert made.name.startswith("minilm/int8/")
    np.testing.assert_allclose(made.embed_documents(TEXTS[:2]), built_in.embed_documents(TEXTS[:2]), atol=1e-6)
    (folder / "config.json").unlink()
    (folder / "config.json").write_text('{"model_type": "t5", "hidden_size": 8, "max_position_embeddings": 64}')
    with pytest.raises(EmbedderMisconfigured, match=r"only the architecture 'bert' can be read, not 't5'"):
        embedder(folder)


@pytest.mark.parametrize("activation", ["Identity", "Tanh"])
def test_dense_layers_follow_the_pooling(tmp_path, activation):
    modules = [("models.Dense", "2_Dense"), ("models.Dense", "3_Dense"), ("models.Normalize", "4_Normalize")]
    folder = write_embedder(tmp_path / "dense", WEIGHTS, modules=modules)
    first = write_dense(folder / "2_Dense", 24, activation=activation)
    second = write_dense(folder / "3_Dense", 8, of=24)
    made = embedder(folder)
    assert made.dimension == 8
    assert_vectors(made, [second(first(hidden(WEIGHTS, ids).mean(0))) for ids in ids_of(folder, TEXTS)])
    write_dense(folder / "again", 8, of=24, seed=6)
    (folder / "again" / "model.safetensors").replace(folder / "3_Dense" / "model.safetensors")
    assert embedder(folder).name != made.name


def test_vectors_are_shortened_and_have_unit_length(tmp_path):
    folder = write_embedder(tmp_path / "bert", WEIGHTS)
    whole, short = embedder(folder), embedder(folder, dimension=5)
    assert short.dimension == 5
    assert embedder(folder, dimension=WIDTH).name == whole.name != short.name
    assert_vectors(short, [hidden(WEIGHTS, ids).mean(0)[:5] for ids in ids_of(folder, TEXTS)])
    with pytest.raises(EmbedderMisconfigured, match=f"{WIDTH} wide, and EMBEDDING_DIMENSION is 17"):
        embedder(folder, dimension=17)


@pytest.mark.parametrize("export", ["onnx/model_quantized.onnx", "onnx/model_int8.onnx", "model_quantized.onnx"])
def test_an_export_in_8_bits_comes_before_the_full_one(tmp_path, export):
    folder = write_embedder(tmp_path / "bert", WEIGHTS)
    full, others = embedder(folder), random_weights(seed=8)
    export_encoder(folder / export, others)
    made = embedder(folder)
    assert made.name != full.name
    assert_vectors(made, [hidden(others, ids).mean(0) for ids in ids_of(folder, TEXTS)])


def test_the_sentence_vector_of_an_export_is_taken_as_it_is(tmp_path):
    # Others than the model's makers publish exports without modules.json; such an export does the pooling itself.
    folder = write_embedder(tmp_path / "bert", WEIGHTS, pooling="")
    export_sentence_encoder(folder / "onnx" / "model.onnx", WEIGHTS)
    assert_vectors(embedder(folder), [hidden(WEIGHTS, ids)[0] for ids in ids_of(folder, TEXTS)])
    (folder / "config.json").write_text(json.dumps(bert_config(hidden_size=12)))
    with pytest.raises(EmbeddingFailed, match="gives 16 numbers, and its files say 12"):
        embedder(folder).embed_query("days")


def test_an_export_that_asks_for_positions_is_given_them(tmp_path):
    folder = write_embedder(tmp_path / "decoder", WEIGHTS, pooling="lasttoken")
    export_with_positions(folder / "onnx" / "model.onnx", WEIGHTS)
    assert_vectors(embedder(folder), [hidden(WEIGHTS, ids)[-1] for ids in ids_of(folder, TEXTS)])


def test_positions_that_begin_after_the_padding_are_not_counted(tmp_path):
    folder = write_embedder(tmp_path / "roberta", WEIGHTS, model_type="xlm-roberta", pad_token_id=1)
    assert embedder(folder).max_tokens == POSITIONS - 2


def test_prompts_stand_before_a_text(tmp_path):
    named = {"prompts": {"query": "many ", "passage": "the car "}, "default_prompt_name": None}
    folder = write_embedder(tmp_path / "bert", WEIGHTS, described=named)
    made = embedder(folder)
    plain = embedder(folder, query_prompt=" ", document_prompt=" ")
    text = "paid holiday"
    (expected,) = plain.embed_documents([f"the car {text}"])
    np.testing.assert_array_equal(made.embed_documents([text])[0], expected)
    np.testing.assert_array_equal(made.embed_query(text), plain.embed_query(f"many {text}"))
    assert embedder(folder, query_prompt="many", document_prompt="the car").name == made.name != plain.name


def test_the_name_tells_what_decides_the_vectors(tmp_path):
    folder = write_embedder(tmp_path / "bert", WEIGHTS)
    first = embedder(folder)
    assert embedder(folder).name == first.name
    assert embedder(folder, query_prompt="query:").name != first.name
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode": "cls"}))
    pooled = embedder(folder)
    export_encoder(folder / "onnx" / "model.onnx", random_weights(seed=9))
    assert len({first.name, pooled.name, embedder(folder).name}) == 3


def test_the_longest_text_is_the_models(tmp_path):
    folder = write_embedder(tmp_path / "short", WEIGHTS, limit=20)
    made = embedder(folder)
    assert made.max_tokens == 20
    assert_vectors(made, [hidden(WEIGHTS, ids).mean(0) for ids in ids_of(folder, TEXTS, 20)])
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 1e30}))
    (folder / "sentence_bert_config.json").unlink()
    assert embedder(folder).max_tokens == POSITIONS


def test_what_cannot_be_run_is_refused_with_the_reason(tmp_path):
    def refused(match, **options):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        with pytest.raises(EmbedderMisconfigured, match=match):
            embedder(write_embedder(folder, WEIGHTS, **options))

    with pytest.raises(EmbedderMisconfigured, match="There is no folder /nowhere/at/all"):
        embedder(Path("/nowhere/at/all"))
    refused("a module WordWeights", modules=[("models.WordWeights", "2_Words")])
    refused(r"2_Dense has no model\.safetensors", modules=[("models.Dense", "2_Dense")])
    refused("compared by dot", described={"similarity_fn_name": "dot"})
    refused("pools tokens in 0 ways", pooling="nothing")
    refused("reads 8 tokens at once", limit=8)
    folder = write_embedder(tmp_path / "cut", WEIGHTS)
    (folder / "onnx" / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(EmbedderMisconfigured, match=r"model\.onnx cannot be used"):
        embedder(folder).prepare()
    (folder / "onnx" / "model.onnx").unlink()
    with pytest.raises(EmbedderMisconfigured, match=r"it has no model\.onnx and no model\.safetensors: export it"):
        embedder(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(EmbedderMisconfigured, match=r"config\.json cannot be read"):
        embedder(folder)


def test_an_export_without_token_vectors_is_refused(tmp_path):
    folder = write_embedder(tmp_path / "bert", WEIGHTS)
    write_overlap_model(folder)
    with pytest.raises(EmbedderMisconfigured, match="gives logits, and no vector for each token"):
        embedder(folder).embed_query("days")


def test_a_name_is_fetched_once_and_found_without_the_hub(tmp_path, hub):
    folder = write_embedder(tmp_path / "bert", WEIGHTS, modules=[NORMALIZE])
    (folder / "model.safetensors").write_bytes(b"not wanted")
    hub.models["someone/bert"] = folder
    cache = tmp_path / "cache"
    made = LocalEmbedder("someone/bert", cache)
    assert "model.safetensors" not in hub.fetched
    assert made.name == embedder(folder).name
    np.testing.assert_array_equal(made.embed_query("days"), embedder(folder).embed_query("days"))
    hub.models.clear()
    assert LocalEmbedder("someone/bert", cache).name == made.name
    with pytest.raises(EmbedderMisconfigured, match="no model of that name on the hub"):
        LocalEmbedder("someone/else", cache)


def test_one_export_is_fetched_with_progress(tmp_path, hub):
    modules = [("models.Dense", "2_Dense")]
    folder = write_embedder(tmp_path / "bert", WEIGHTS, modules=modules)
    write_dense(folder / "2_Dense", 8)
    export_encoder(folder / "onnx" / "model_quantized.onnx", WEIGHTS)
    hub.models["someone/dense"] = folder
    shown = []
    made = LocalEmbedder("someone/dense", tmp_path / "cache", report=lambda *step: shown.append(step))
    assert {each for each in hub.fetched if each.endswith(("onnx", "safetensors"))} == {
        "onnx/model_quantized.onnx",
        "2_Dense/model.safetensors",
    }
    assert made.name == embedder(folder).name.replace("bert", "dense", 1)
    assert {what for what, _, _ in shown} == {"Downloading someone/dense, megabytes"}


def test_without_a_network_the_sentence_says_what_to_do(tmp_path, hub, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(
        EmbedderMisconfigured, match=r"could not be fetched .* download it elsewhere and give the folder"
    ):
        LocalEmbedder("someone/bert", tmp_path / "cache")
