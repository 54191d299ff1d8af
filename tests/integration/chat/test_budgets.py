"""The number of questions a day that a person, or each member of a group, may ask."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import AnonymousUser, Group
from django.core.cache import cache
from django.utils import timezone

from chat import budgets
from chat.exceptions import BudgetSpent
from chat.models import Answer, Conversation, QuestionBudget, QuestionCount
from chat.streaming import asking
from tests.support.people import make_reader

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_earlier_calls_count():
    cache.clear()


@pytest.fixture
def reader():
    return make_reader("reader", password="a long password")


def ask(user, question="Why?"):
    return asking.create_answer(question, user=user, visitor="")


def questions_of(user):
    return budgets.find_budget(user).questions


def test_without_a_budget_nothing_is_counted(reader):
    ask(reader)
    ask(AnonymousUser())
    assert budgets.find_budget(reader) is None
    assert not QuestionCount.objects.exists()


def test_a_persons_own_budget_counts_before_the_groups_and_those_before_everybodys(reader):
    QuestionBudget.objects.create(questions_a_day=7)
    assert questions_of(reader).limit == 7
    assert budgets.find_budget(AnonymousUser()) is None
    for name, limit in (("few", 2), ("many", 20)):
        group = Group.objects.create(name=name)
        reader.groups.add(group)
        QuestionBudget.objects.create(group=group, questions_a_day=limit)
    assert questions_of(reader).limit == 20
    own = QuestionBudget.objects.create(user=reader, tokens_a_day=0)
    # Empty fields of a user's budget fall back to the groups' budget.
    assert (questions_of(reader).limit, budgets.find_budget(reader).tokens.limit) == (20, 0)
    assert not budgets.may_use_model(reader)
    own.questions_a_day = 1
    own.save()
    assert questions_of(reader).limit == 1


def test_it_ends_after_its_last_question_and_begins_anew_the_next_day(reader):
    budget = QuestionBudget.objects.create(user=reader, questions_a_day=0)
    with pytest.raises(BudgetSpent):
        ask(reader)
    QuestionBudget.objects.filter(pk=budget.pk).update(questions_a_day=2)
    ask(reader)
    with pytest.raises(asking.InvalidQuestion):
        ask(reader, "")
    assert budgets.find_budget(reader).few_questions_left == 1
    ask(reader)
    with pytest.raises(BudgetSpent) as refused:
        ask(reader)
    assert 0 < refused.value.retry_after_seconds <= 25 * 3600
    # Deleting conversations does not reset the count.
    Conversation.objects.all().delete()
    with pytest.raises(BudgetSpent):
        ask(reader)
    assert Answer.objects.count() == 0
    QuestionCount.objects.update(day=timezone.localdate() - timedelta(days=1))
    ask(reader)
    budgets.forget_old_counts()
    assert QuestionCount.objects.count() == 2


def test_pages_tell_before_it_runs_out_and_when_it_has(client, reader):
    client.force_login(reader)
    QuestionBudget.objects.create(user=reader, questions_a_day=5)
    assert "more question" not in client.get("/").content.decode()
    ask(reader)
    ask(reader)
    assert "You can ask 3 more questions today." in client.get("/").content.decode()
    asked = client.post("/ask/", {"question": "Why?"}, headers={"HX-Request": "true"}).content.decode()
    assert 'id="budget"' in asked
    assert "You can ask 2 more questions today." in asked
    ask(reader)
    ask(reader)
    refused = client.post("/ask/", {"question": "Why?"}, headers={"HX-Request": "true"})
    assert refused.status_code == 429
    assert int(refused["Retry-After"]) > 0
    assert "Tomorrow you can ask again." in refused.content.decode()
