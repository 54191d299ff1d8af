import pytest
from django.core.management import CommandError, call_command

from retrieval.index.distribution import has_citus

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "This PostgreSQL has no Citus: install it on every node, or stay with one server."),
        (("--shards=0",), "The number of shards is 1 or more."),
    ],
)
def test_what_cannot_be_distributed_is_refused_in_a_sentence(arguments, sentence):
    if has_citus():
        pytest.skip("This database is a cluster's: test_citus.py distributes it.")
    with pytest.raises(CommandError) as refused:
        call_command("distribute", *arguments)
    assert str(refused.value) == sentence
