"""Cross encoders that the tests make, against the same model computed formula by formula."""

import json
import math
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core.exceptions import ImproperlyConfigured
from tokenizers import Tokenizer

from retrieval.exceptions import RerankFailed
from retrieval.search.ranking import cross_encoder as module
from retrieval.search.ranking.cross_encoder import CrossEncoder
from tests.support.local_models import POSITIONS, overlap, write_overlap_model
from tests.support.model_hub import hub

__all__ = ["hub"]

QUERY = "How many days of holiday?"
TEXTS = [
    "Holidays\nAn employee has 25 days of paid holiday a year.",
    "The car park does close at eight in the evening.",
    "",
    "days " * 100,
    "zebra \ud800 \x00 💧",
]
IDENTITY = {"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"}
UNHURRIED = 30.0


def reference(folder, max_tokens=POSITIONS):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    encodings = [tokenizer.encode(QUERY, text.encode("utf-8", "replace").decode()) for text in TEXTS]
    return [overlap(each.ids, each.type_ids) for each in encodings]


@pytest.fixture
def folder(tmp_path):
    return write_overlap_model(tmp_path / "bert", **IDENTITY)


def scores(folder):
    return CrossEncoder(str(folder)).score_texts(QUERY, TEXTS, UNHURRIED)


def test_it_gives_the_scores_of_the_formulas(folder):
    expected = reference(folder)
    assert scores(folder) == pytest.approx(expected, abs=1e-4)
    assert len(set(expected)) > 2


@pytest.mark.parametrize(
    ("config", "newer"),
    [
        ({}, None),
        ({"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"}}, None),
        (IDENTITY, {"activation_fn": "torch.nn.modules.activation.Sigmoid"}),
    ],
)
def test_a_model_that_names_no_other_activation_has_a_sigmoid(tmp_path, config, newer):
    folder = write_overlap_model(tmp_path / "bert", **config)
    if newer:
        (folder / "config_sentence_transformers.json").write_text(json.dumps(newer))
    logits = reference(folder)
    assert scores(folder) == pytest.approx([1 / (1 + math.exp(-logit)) for logit in logits], abs=1e-4)


def test_a_pair_is_cut_to_the_tokens_allowed(folder, monkeypatch):
    monkeypatch.setattr(module, "MAX_TOKENS", 12)
    expected = reference(folder, 12)
    assert scores(folder) == pytest.approx(expected, abs=1e-4)
    assert expected != reference(folder)


def test_time_that_runs_out_between_pairs_ends_the_run(folder, monkeypatch):
    encoder = CrossEncoder(str(folder), threads=1)
    encoder.prepare()
    clock = iter(range(100))
    monkeypatch.setattr(module.time, "monotonic", lambda: float(next(clock)))
    with pytest.raises(RerankFailed, match=r"late: it read 2 of 5 passages in 3 s; rerank fewer, or allow more time"):
        encoder.score_texts(QUERY, TEXTS, 3.0)


def test_a_question_does_not_wait_for_another_ones_loading(folder, monkeypatch):
    encoder = CrossEncoder(str(folder))
    begun, finish = threading.Event(), threading.Event()
    original = module._load_model

    def slow(*arguments):
        begun.set()
        assert finish.wait(10)
        return original(*arguments)

    monkeypatch.setattr(module, "_load_model", slow)
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(encoder.score_texts, QUERY, TEXTS, UNHURRIED)
        assert begun.wait(10)
        with pytest.raises(RerankFailed, match="late: .* is still being loaded"):
            encoder.score_texts(QUERY, TEXTS, 0.05)
        finish.set()
        assert len(loading.result()) == len(TEXTS)
    assert len(encoder.score_texts(QUERY, TEXTS, UNHURRIED)) == len(TEXTS)


def test_a_model_that_cannot_be_loaded_is_not_tried_by_every_question(folder, monkeypatch):
    (folder / "model.onnx").write_bytes(b"not a model")
    encoder = CrossEncoder(str(folder))
    with pytest.raises(RerankFailed, match="cannot be loaded"):
        encoder.score_texts(QUERY, TEXTS, UNHURRIED)
    write_overlap_model(folder)
    with pytest.raises(RerankFailed, match="cannot be loaded"):
        encoder.score_texts(QUERY, TEXTS, UNHURRIED)
    monkeypatch.setattr(module, "RETRIED_AFTER_SECONDS", 0.0)
    encoder._problem = 0.0, "long ago"
    assert len(encoder.score_texts(QUERY, TEXTS, UNHURRIED)) == len(TEXTS)


def test_what_cannot_work_is_refused_at_once(folder, tmp_path):
    with pytest.raises(ImproperlyConfigured, match="no folder"):
        CrossEncoder(str(tmp_path / "absent"))
    with pytest.raises(ImproperlyConfigured, match="and a thread"):
        CrossEncoder(str(folder), threads=0)
    with pytest.raises(ImproperlyConfigured, match="needs a model"):
        CrossEncoder("")
    (folder / "config.json").write_text("{")
    with pytest.raises(ImproperlyConfigured, match=r"config\.json cannot be read"):
        CrossEncoder(str(folder))


def test_an_activation_nobody_knows_is_refused(tmp_path):
    folder = write_overlap_model(tmp_path / "bert", sbert_ce_default_activation_function="torch.nn.Tanh")
    with pytest.raises(ImproperlyConfigured, match=r"torch\.nn\.Tanh as its activation; it can be Sigmoid or Identity"):
        CrossEncoder(str(folder))


@pytest.mark.parametrize(("options", "why"), [({"labels": 3}, "gave 3 numbers"), ({"factor": math.nan}, "not finite")])
def test_what_is_no_score_is_a_failure(tmp_path, options, why):
    with pytest.raises(RerankFailed, match=why):
        scores(write_overlap_model(tmp_path / "bert", **options))


def test_a_name_is_fetched_from_the_hub(folder, hub, tmp_path):
    (folder / "model.safetensors").write_bytes(b"never needed")
    hub.models["someone/cross-encoder"] = folder
    encoder = CrossEncoder("someone/cross-encoder", cache_dir=tmp_path / "cache")
    assert encoder.score_texts(QUERY, TEXTS, UNHURRIED) == pytest.approx(reference(folder), abs=1e-4)
    assert sorted(hub.fetched) == ["config.json", "model.onnx", "tokenizer.json"]


def test_a_process_that_forks_goes_on(folder):
    encoder = CrossEncoder(str(folder))
    expected = encoder.score_texts(QUERY, TEXTS, UNHURRIED)
    with encoder._lock:  # as another thread might do
        child = os.fork()
        if not child:
            try:
                os._exit(0 if encoder.score_texts(QUERY, TEXTS, 5.0) == expected else 1)
            finally:
                os._exit(2)  # never on into the tests that follow
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
