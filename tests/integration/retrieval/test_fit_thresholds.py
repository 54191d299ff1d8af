"""An embedder on another scale, before its thresholds are fitted and after."""

import logging
from io import StringIO

import numpy as np
import pytest
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.urls import reverse

from retrieval import readiness
from retrieval.index import closeness, embedder_choice
from retrieval.index.active_embedder import clear_query_vector_cache
from retrieval.index.closeness import forget_calibrations
from retrieval.index.reembedding import reembed
from retrieval.models import Document
from retrieval.protocols import TextEmbedder
from tests.support.asking import answered, client_of
from tests.support.libraries import library_of
from tests.support.people import make_superuser

pytestmark = pytest.mark.django_db(transaction=True)

ANSWERED = ["Welke bus rijdt er naar het ziekenhuis?"]
# Nearly all words are there.
REFUSED = ["What is the best restaurant near the search box?"]
QUESTIONS = ANSWERED + REFUSED
DOCUMENTS = ("handbook/03-curating-documents.md", "handbook/04-how-search-works.md")
DOCUMENTS += ("ziekenhuis/01-bezoek-en-bereikbaarheid.md", "ziekenhuis/02-opname-en-ontslag.md")


class Deformed(TextEmbedder):
    """The built-in model, turned in a space of 512 dimensions and moved away from its origin: everything is alike."""

    name = "deformed"
    dimension = 512

    def __init__(self, built_in):
        turned, _ = np.linalg.qr(np.random.default_rng(7).normal(size=(self.dimension, self.dimension)))
        self._turn, self._away = turned[:384].astype(np.float32), turned[384].astype(np.float32)
        self._built_in = built_in
        self.max_tokens = built_in.max_tokens

    def count_tokens(self, texts):
        return self._built_in.count_tokens(texts)

    def embed_documents(self, texts):
        return self._moved(self._built_in.embed_documents(texts))

    def embed_query(self, text):
        return self.embed_documents([text])[0]

    def _moved(self, vectors):
        moved = vectors @ self._turn + self._away
        return moved / np.linalg.norm(moved, axis=-1, keepdims=True)


library = library_of({name: (settings.BASE_DIR / "demo" / name).read_bytes() for name in DOCUMENTS})


def ask_all():
    clear_query_vector_cache()
    return [answered(question, anew=True) for question in QUESTIONS]


def printed(*command):
    output = StringIO()
    call_command(*command, stdout=output, stderr=output)
    return output.getvalue()


def test_answers_are_those_of_the_built_in_model_once_its_thresholds_are_fitted(library, monkeypatch, caplog):
    monkeypatch.setattr(closeness, "MOST_PASSAGES", closeness.FEWEST_PASSAGES)
    with pytest.raises(CommandError, match="built-in model are shipped"):
        call_command("fit_thresholds")
    expected = ask_all()
    assert [answer.refused for answer in expected] == [False] * len(ANSWERED) + [True] * len(REFUSED)

    other = Deformed(embedder_choice.get_embedder())
    monkeypatch.setattr(embedder_choice, "get_embedder", lambda: other)
    forget_calibrations()
    reembed(lambda *_: None)
    with caplog.at_level(logging.WARNING):
        by_words = ask_all()
    staff = client_of(make_superuser("admin", password="a long enough one"))
    told = [
        caplog.text,
        printed("check"),
        str(readiness.check_embedder()),
        staff.get(reverse("admin:evaluation_dashboard_changelist")).content.decode(),
        staff.get(reverse("chat:debug", args=[by_words[0].pk])).content.decode(),
    ]
    assert all("fit_thresholds" in each for each in told)

    assert "deformed, fitted on 40 passages" in printed("fit_thresholds")
    fitted = closeness.find_calibration("deformed")
    assert 0.5 < fitted.unrelated < fitted.answering
    assert [answer.refused for answer in ask_all()] == [answer.refused for answer in expected]
    assert "fit_thresholds" not in printed("check")

    monkeypatch.setattr(other, "_turn", np.zeros_like(other._turn))
    monkeypatch.setattr(other, "name", "constant")
    with pytest.raises(CommandError, match="do not tell the passage that answers"):
        call_command("fit_thresholds")
    Document.objects.exclude(source=DOCUMENTS[0]).delete()
    with pytest.raises(CommandError, match=r"There are \d+ passages .* and fitting needs 40"):
        call_command("fit_thresholds")
