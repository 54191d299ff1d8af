"""The admin's pages in both languages: numbers as the reader writes them, coordinates as a browser reads them."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.html import strip_tags

from evaluation import gates
from evaluation.experiments.report import report, sentence
from evaluation.gates import GateCheck, GateSubject, Verdict
from evaluation.models import EvaluationRun, EvaluationSet, GatePolicy, JudgeUsage, Score
from evaluation.models.arms import Arm
from evaluation.runs.results import RunComparison
from evaluation.statistics import Interval
from retrieval.search import profiles
from tests.support.evaluation_sets import BY_MEANING, version_of
from tests.support.experiments import simulate, started
from tests.support.judged_answers import completed_answer

pytestmark = pytest.mark.django_db

JUDGEMENTS = "/admin/evaluation/judgement/"
DASHBOARD = "/admin/evaluation/dashboard/"
LANGUAGES = pytest.mark.parametrize("language", ["en", "nl"])
# The decimal separator is not the language's own.
FOREIGN = {"en": re.compile(r"\b0,\d+|\d,\d{1,2}(?!\d)"), "nl": re.compile(r"\b0\.\d+|\d\.\d{1,2}(?!\d)")}
# They have a capital in English only.
MONTHS = {
    "en": ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
    "nl": ["jan", "feb", "mrt", "apr", "mei", "jun", "jul", "aug", "sep", "okt", "nov", "dec"],
}


@pytest.fixture(autouse=True)
def _unjudged(settings):
    settings.EVALUATE_ANSWERS = False


@pytest.fixture
def admin(client, admin_user):
    client.force_login(admin_user)
    return client


def page(client, address: str, language: str) -> str:
    # A request leaves its language to the thread, and so to the tests that follow.
    with translation.override("en"):
        response = client.get(address, headers={"accept-language": language})
    assert response.status_code == 200
    text = " ".join(response.content.decode().split())
    assert f'<html lang="{language}"' in text
    return text


def section(text: str, name: str) -> str:
    """The words of the section of a page that has this id as its heading."""
    return strip_tags(text.split(f'aria-labelledby="{name}"')[1].split("</section>")[0])


def numbers_in(words: str) -> list[str]:
    return re.findall(r"\d[\d.,]*(?<![.,])%?", words)


def coordinates(text: str) -> list[float]:
    """The coordinates of the page's charts; fails for one that a browser would not read."""
    drawings = re.findall(r'<svg[^>]*class="chart-drawing".*?</svg>', text)
    shapes = [shape for drawing in drawings for shape in ElementTree.fromstring(drawing).iter()]
    names = ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "viewBox")
    written = [part for shape in shapes for name in names for part in shape.get(name, "").split()]
    pairs = [pair.split(",") for shape in shapes for pair in shape.get("points", "").split()]
    assert all(len(pair) == 2 for pair in pairs)
    return [float(number) for number in [*written, *(number for pair in pairs for number in pair)]]


# Experiments ----------------------------------------------------------------------------------------------------------


def test_the_result_of_an_experiment(admin, admin_user):
    experiment = started(admin_user)
    simulate(experiment, 300, lambda arm: 0.85 if arm is Arm.TREATMENT else 0.4)
    for language in ("en", "nl"):
        text = page(admin, reverse("admin:evaluation_experiment_change", args=[experiment.pk]), language)
        words = section(text, "experiment-result")
        point = {"en": r"\.", "nl": ","}[language]
        assert re.search(rf"\+\d+{point}\d pp \(\+\d+{point}\d pp \w+ \+\d+{point}\d pp\)", words), "the verdict"
        assert re.search(rf"\d{point}\d% \(\d+\)", words), "a rate and the visitors behind it"
        assert not FOREIGN[language].findall(words)


def test_a_conclusion_is_written_in_the_language_of_the_reader(admin_user):
    experiment = started(admin_user)
    simulate(experiment, 260, lambda arm: 0.6)
    told = report(experiment)
    with translation.override("en"):
        english = sentence(told)
    with translation.override("nl"):
        dutch = sentence(told)
    assert [number.replace(".", ",") for number in re.findall(r"\d+\.\d", english)] == re.findall(r"\d+,\d", dutch)
    assert len(re.findall(r"\d+,\d", dutch)) == 3


# Gates ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "numbers"),
    [("en", "hit@10 -0.125 (-0.250 … +0.000)"), ("nl", "hit@10 -0,125 (-0,250 … +0,000)")],
)
@pytest.mark.parametrize("verdict", [Verdict.WORSE, Verdict.PASSED])
def test_the_verdict_of_a_gate(collection, language, numbers, verdict):
    evaluation_set = EvaluationSet.objects.create(name="Pumps", slug="pumps", collection=collection)
    policy = GatePolicy.objects.create(evaluation_set=evaluation_set, metric="hit@10", largest_loss=0.05)
    difference = Interval(-0.125, -0.25, -0.0001)
    run = EvaluationRun(evaluation_set=evaluation_set)
    comparison = RunComparison(run, run, "hit@10", {"hit@10": difference}, {"hit@10": -1}, (), (), 0, 0, ())
    version, in_force = version_of(BY_MEANING), profiles.active_profile()
    sides = GateSubject(str(version), profiles.named(version)), GateSubject(str(in_force), in_force)
    checked = GateCheck(policy, *sides, verdict, comparison=comparison)
    with translation.override(language):
        reason = gates.reason_of(checked)
    assert numbers in reason
    assert {"en": "0.050", "nl": "0,050"}[language] in reason
    assert not FOREIGN[language].findall(reason)


# Judgements -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "numbers"), [("en", ["20%", "1,234", "50,000"]), ("nl", ["20%", "1.234", "50.000"])]
)
def test_what_is_left_of_the_judges_budget(admin, settings, language, numbers):
    settings.JUDGE_BASE_URL, settings.JUDGE_MODEL, settings.EVALUATE_WITH_MODEL = "http://judge/v1", "tiny-judge", True
    settings.JUDGE_SAMPLE_RATE, settings.JUDGE_DAILY_BUDGET_TOKENS = 0.2, 50_000
    JudgeUsage.objects.create(day=timezone.localdate(), prompt_tokens=1000, completion_tokens=234)
    text = page(admin, JUDGEMENTS, language)
    (subtitle,) = set(re.findall(r"tiny-judge [^<|]*\.", text))
    assert numbers_in(subtitle) == numbers


@pytest.mark.parametrize(("language", "low", "detail"), [("en", "0.25", "0.30"), ("nl", "0,25", "0,30")])
def test_a_score_and_what_it_is_made_of(admin, language, low, detail):
    judgement = completed_answer().judgements.create(judge="offline", status="done")
    details = [{"sentence": "It weighs 3450 grams.", "support": 0.299}]
    Score.objects.create(judgement=judgement, metric="groundedness", score=0.249, threshold=0.5, details=details)
    text = page(admin, reverse("admin:evaluation_judgement_change", args=[judgement.pk]), language)
    assert f"{low}, " in text, "it is low"
    assert f"<td>{detail}</td>" in text
    assert f"{low}, " in page(admin, JUDGEMENTS, language)


# The dashboard --------------------------------------------------------------------------------------------------------


@LANGUAGES
def test_the_dashboard(admin, language):
    for number in range(3):
        made = completed_answer(refused=number == 0, timings_ms={"first_token": 250, "total": 1340})
        judgement = made.judgements.create(judge="offline", status="done")
        Score.objects.create(judgement=judgement, metric="groundedness", score=0.1 + 0.3 * number, threshold=0.35)
    text = page(admin, DASHBOARD, language)
    words = strip_tags(text.split('class="dashboard-tiles"')[1])
    point = {"en": ".", "nl": ","}[language]
    today = timezone.localdate()
    for said in (f"33{point}3 %", f"1{point}3 s", f"0{point}35", f"{today.day} {MONTHS[language][today.month - 1]}"):
        assert said in words
    assert not FOREIGN[language].findall(words)
    assert coordinates(text)


@LANGUAGES
def test_a_bin_of_scores_is_named_and_addressed(admin, language):
    text = page(admin, f"{DASHBOARD}answers/?kind=groundedness&low=0.1&high=0.2", language)
    low, high = {"en": ("0.1", "0.2"), "nl": ("0,1", "0,2")}[language]
    assert re.search(rf"<h1>[^<]* {re.escape(low)} \w+ {re.escape(high)} ", text)
    assert '<input type="hidden" name="low" value="0.1">' in text, "addresses keep the dot"
