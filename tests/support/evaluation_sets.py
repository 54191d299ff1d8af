"""A small library, and a set of questions to it whose answers are known."""

from dataclasses import replace

from evaluation.models import EvaluationQuestion, EvaluationRun, EvaluationSet
from evaluation.runs import queue, run_execution
from evaluation.sets.building import add_expected_passage
from retrieval.models import Chunk, SearchProfile
from retrieval.profile_settings import ProfileSettings
from retrieval.search.profiles import profiles
from retrieval.search.profiles.profiles import NamedProfile
from retrieval.types import SearchMethod

# The profile searches words alone, so that a question in other words than the document's is not found.
BY_WORDS = ProfileSettings(method=SearchMethod.LEXICAL, reranker="none", fuzzy=False)
BY_MEANING = ProfileSettings(method=SearchMethod.VECTOR, reranker="none")
WORDS, MEANING = NamedProfile("words", BY_WORDS), NamedProfile("meaning", BY_MEANING)
DOCUMENTS = {
    "pump.md": "# Pump\n\nThe circulation pump weighs 3450 grams and moves water through the radiators.",
    "valve.md": "# Valve\n\nA ball valve closes with a quarter turn of its lever.",
    "hours.md": "# Hours\n\nThe warehouse opens at eight and closes at five, except on Sundays.",
    "dogs.md": "# Pets\n\nDogs are welcome in the garden as long as they stay on a leash.",
}
# Each in the words of its document, and in other words.
QUESTIONS = {
    "How many grams does the circulation pump weigh?": "pump.md",
    "How does a ball valve close with its lever?": "valve.md",
    "When does the warehouse open and close?": "hours.md",
    "May canines come along?": "dogs.md",
    "At what time can I visit the depot?": "hours.md",
    "Is bringing puppies allowed?": "dogs.md",
}


# Each question has the words of a right answer; None: the documents do not answer.
ANSWERS = {
    "How many grams does the circulation pump weigh?": "3450 grams",
    "How does a ball valve close with its lever?": "A ball valve closes with a quarter turn of its lever.",
    "When does the warehouse open and close?": "It opens at 10:30.",
    "Who won the football championship of 1974?": None,
}


def set_of(collection, slug="library", questions=QUESTIONS):
    """Return a set whose questions each expect the one passage of their document."""
    evaluation_set = EvaluationSet.objects.create(slug=slug, name=slug.title(), collection=collection)
    for text, source in questions.items():
        question = EvaluationQuestion.objects.create(evaluation_set=evaluation_set, text=text)
        add_expected_passage(question, Chunk.objects.get(document__source=source, collection=collection))
    return evaluation_set


def answers_of(collection, slug="answers", answers=ANSWERS):
    """Return a set whose questions each expect an answer, or a refusal."""
    evaluation_set = EvaluationSet.objects.create(slug=slug, name=slug.title(), collection=collection)
    for text, answer in answers.items():
        EvaluationQuestion.objects.create(
            evaluation_set=evaluation_set, text=text, expected_answer=answer or "", expects_refusal=answer is None
        )
    return evaluation_set


def version_of(settings, slug="default", **changed):
    profile, _ = SearchProfile.objects.get_or_create(slug=slug, defaults={"name": slug.title()})
    return profiles.add_version(profile, replace(settings, **changed))


def measured(evaluation_set, profile=None, **options):
    """Return a run of the set, measured; without a profile, with the one in force."""
    run = queue.request_evaluation_run(evaluation_set, profile or profiles.active_profile(), **options)
    return run_execution.measure_run(run.pk)


def answered(evaluation_set, profile=MEANING):
    return measured(evaluation_set, profile, kind="answers")


def measure_all():
    for run in EvaluationRun.objects.filter(status=EvaluationRun.WAITING):
        run_execution.measure_run(run.pk)
