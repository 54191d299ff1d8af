"""Trials of another embedder on this site: its measurement, and the switch to it."""

import pytest
from django.urls import reverse

from evaluation.embedder_trials import comparison, progress
from evaluation.embedder_trials.attempts import continue_embedder_trial
from evaluation.embedder_trials.known_embedders import find_known_embedder, get_known_options
from evaluation.embedder_trials.requests import (
    cancel_trial,
    delete_unused_vectors,
    request_embedder_switch,
    request_embedder_trial,
)
from evaluation.exceptions import EvaluationError
from evaluation.models import EmbedderTrial
from retrieval.index import active_embedder, closeness, embedder_choice, reembedding
from retrieval.index.embedders.onnx import OnnxMiniLM
from retrieval.models import Chunk, ChunkEmbedding, Embedder
from retrieval.rights.search_filters import build_unrestricted_filters
from retrieval.search.pipeline import search
from retrieval.types import SearchMethod
from tests.support.model_hub import hub
from tests.support.people import make_staff
from tests.support.site import wait_until

__all__ = ["hub"]

pytestmark = pytest.mark.django_db(transaction=True)
QUESTION = "May canines come along?"


@pytest.fixture(autouse=True)
def unnamed(settings):
    """Use the settings of a site without EMBEDDING_MODEL."""
    settings.EMBEDDER = {}
    settings.RETRIEVAL_RERANKER = "none"


@pytest.fixture
def options(tmp_path):
    """Return the options of an embedder in a folder, with vectors half as wide as the built-in embedder's."""
    folder = tmp_path / "half"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (folder / name).symlink_to(OnnxMiniLM(tmp_path)._read.folder / name)
    return {"model": str(folder), "dimension": 192}


@pytest.fixture
def material(evaluation_set, monkeypatch):
    """Give each passage a question, and lower the number of them that fitting needs."""
    monkeypatch.setattr(closeness, "FEWEST_PASSAGES", 4)
    for chunk in Chunk.objects.all():
        chunk.canonical_questions = [f"What about this: {chunk.content[:40]}?"]
        chunk.save(update_fields=["canonical_questions"])


@pytest.mark.usefixtures("material")
def test_a_trial_measures_and_changes_nothing(evaluation_set, options):
    own, before = embedder_choice.get_embedder().name, search(QUESTION, build_unrestricted_filters())
    trial = continue_embedder_trial(request_embedder_trial("half", options).pk)
    assert (trial.status, trial.error, trial.not_fitted) == (EmbedderTrial.Status.DONE, "", "")
    (figures,) = trial.figures
    assert (figures["set"], figures["questions"]) == ("Library", 6)
    assert figures["after"]["first"] > 0.5
    assert figures["low"] <= figures["difference"] <= figures["high"]
    made = Embedder.objects.get(is_active=False)
    assert (made.dimension, made.options) == (192, options)
    assert ChunkEmbedding.objects.filter(embedder=made).count() == Chunk.objects.count()
    assert closeness.find_calibration(made.name) is not None
    assert embedder_choice.get_embedder().name == own
    after = search(QUESTION, build_unrestricted_filters())
    assert [hit.candidate.score for hit in after.hits] == [hit.candidate.score for hit in before.hits]


def test_the_switch_needs_no_restart_and_misses_no_passage(library, ingest, options, evaluation_set):
    trial = continue_embedder_trial(request_embedder_trial("half", options).pk)
    assert "fitting needs 40" in trial.not_fitted
    late = ingest(library, "late.md", "# Late\n\nA document that was read after the vectors were made.")
    assert search(QUESTION, build_unrestricted_filters()).trace.degraded == ()
    request_embedder_switch(trial)
    assert continue_embedder_trial(trial.pk).status == EmbedderTrial.Status.SWITCHED
    active = Embedder.objects.get(is_active=True)
    assert active.dimension == 192
    assert ChunkEmbedding.objects.filter(embedder=active, document=late).exists()
    # The process has just started, and searches its former vectors until it has opened the other embedder.
    active_embedder._served.clear()
    result = search(QUESTION, build_unrestricted_filters())
    assert (result.trace.degraded, result.hits[0].passage.source) == ((), "dogs.md")
    wait_until(lambda: embedder_choice.get_embedder().name == active.name, what="the embedder")
    result = search(QUESTION, build_unrestricted_filters())
    assert (result.trace.degraded, result.hits[0].passage.source) == ((), "dogs.md")
    # A process that starts now uses the other embedder, too, and `reembed` keeps the choice.
    embedder_choice._build_site_embedder.cache_clear()
    assert embedder_choice.get_embedder().name == embedder_choice.get_embedder_for_new_vectors().name == active.name
    assert delete_unused_vectors() == 1


def test_a_worker_that_dies_or_has_no_more_time_costs_a_batch(evaluation_set, options, monkeypatch):
    monkeypatch.setattr(reembedding, "BATCH", 2)
    monkeypatch.setattr(progress, "LONGEST_STINT_SECONDS", 0.0)
    monkeypatch.setattr(progress, "_REPORT_SECONDS", 0.0)
    trial = request_embedder_trial("half", options)
    seen = []
    for _ in range(12):
        trial = continue_embedder_trial(trial.pk)
        if trial.status != EmbedderTrial.QUEUED:
            break
        seen.append(set(ChunkEmbedding.objects.filter(embedder__is_active=False).values_list("pk", flat=True)))
        monkeypatch.setattr(progress, "LONGEST_STINT_SECONDS", 0.0 if len(seen) < 2 else 60.0)
    assert (trial.status, trial.attempts) == (EmbedderTrial.Status.DONE, 1)
    assert seen
    assert all(earlier <= later for earlier, later in zip(seen, seen[1:], strict=False))


def test_one_at_a_time_and_none_beside_the_settings(library, options, settings):
    trial = request_embedder_trial("half", options)
    with pytest.raises(EvaluationError, match="Another embedder is being tried"):
        request_embedder_trial("half", options)
    with pytest.raises(EvaluationError, match="has not been measured"):
        request_embedder_switch(trial)
    cancel_trial(trial)
    assert continue_embedder_trial(trial.pk) is None
    settings.EMBEDDER = settings.BUILT_IN_EMBEDDERS["all-MiniLM-L6-v2"]
    with pytest.raises(EvaluationError, match="remove EMBEDDING_MODEL"):
        request_embedder_trial("half", options)


def test_what_cannot_be_had_fails_with_the_reason(library, hub):
    trial = continue_embedder_trial(request_embedder_trial("nobody/nothing", {"model": "nobody/nothing"}).pk)
    assert trial.status == EmbedderTrial.Status.FAILED
    assert "no model of that name on the hub" in trial.error
    assert search(QUESTION, build_unrestricted_filters()).trace.degraded == ()


@pytest.mark.usefixtures("material")
def test_the_weight_is_chosen_on_half_of_the_questions(evaluation_set, options, monkeypatch):
    monkeypatch.setattr(comparison, "FEWEST_TO_CHOOSE", 6)
    monkeypatch.setattr(comparison, "LEAST_GAIN", -2.0)
    monkeypatch.setattr(comparison, "WEIGHTS", (0.8,))
    monkeypatch.setattr(comparison, "_ask", better_with_large_weights(comparison._ask))
    trial = continue_embedder_trial(request_embedder_trial("half", options).pk)
    assert (trial.vector_weight, trial.figures[0]["questions"]) == (0.8, 3)
    fitted = closeness.find_calibration(Embedder.objects.get(is_active=False).name)
    assert fitted.vector_weight == 0.8
    request_embedder_switch(trial)
    continue_embedder_trial(trial.pk)
    embedder_choice._build_site_embedder.cache_clear()
    weights = search(QUESTION, build_unrestricted_filters()).trace.weights
    assert (weights.vector, round(weights.lexical, 6)) == (0.8, 0.2)
    assert search(QUESTION, build_unrestricted_filters(), method=SearchMethod.ZSCORE).trace.weights.vector == 0.6


def better_with_large_weights(ask):
    def asked(evaluation_set, questions, profile, progress):
        results = ask(evaluation_set, questions, profile, progress)
        for result in results:
            result.ndcg = profile.settings.weights.vector if profile.settings.weights else 0.5
        return results

    return asked


# These tests use the page of trials in the admin.


def page(client):
    return client.get(reverse("admin:evaluation_embeddertrial_changelist"))


def press(client, button, **data):
    return client.post(reverse(f"admin:evaluation_embeddertrial_{button}"), data, follow=True)


def test_an_administrator_tries_and_switches_by_clicks(admin, evaluation_set, options):
    shown = page(admin).content.decode()
    assert "EmbeddingGemma 300M" in shown
    assert f"searches with {embedder_choice.get_embedder().name}" in shown
    shown = press(admin, "try", name=options["model"]).content.decode()
    assert "is being tried" in shown
    assert "data-live" in shown
    continue_embedder_trial(EmbedderTrial.objects.get().pk)
    shown = page(admin).content.decode()
    assert "Switch to" in shown
    assert "Library" in shown
    assert "data-live" not in shown
    assert "is switching to" in press(admin, "switch").content.decode()
    continue_embedder_trial(EmbedderTrial.objects.get().pk)
    assert "searches with half/int8/" in page(admin).content.decode()
    assert "The unused vectors were deleted." in press(admin, "discard").content.decode()
    assert Embedder.objects.count() == 1


def test_a_known_one_is_tried_by_its_key_and_cancelled(admin, library):
    press(admin, "try", key="embeddinggemma-300m")
    trial = EmbedderTrial.objects.get()
    assert trial.options["model"] == "onnx-community/embeddinggemma-300m-ONNX"
    press(admin, "cancel")
    trial.refresh_from_db()
    assert trial.status == EmbedderTrial.Status.CANCELLED
    assert "Name an embedder" in press(admin, "try").content.decode()


def test_a_folder_with_a_known_one_has_its_prompts():
    assert get_known_options("/srv/models/embeddinggemma-300m-ONNX/") == {
        "model": "/srv/models/embeddinggemma-300m-ONNX/",
        "query_prompt": "task: search result | query: ",
        "document_prompt": "title: none | text: ",
    }
    assert find_known_embedder("sentence-transformers/all-mpnet-base-v2").licence == "Apache-2.0"
    assert get_known_options("someone/bert") == {"model": "someone/bert"}


def test_others_neither_see_the_page_nor_press_its_buttons(client, library):
    client.force_login(make_staff("editor"))
    assert page(client).status_code == 302
    assert client.post(reverse("admin:evaluation_embeddertrial_try"), {"name": "x"}).status_code == 403
    assert not EmbedderTrial.objects.exists()
