import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.exceptions import InvalidQuery
from retrieval.search.understanding.syntax import parse_question


def test_phrases_and_exclusions_are_taken_apart():
    parsed = parse_question('clean the "wet rotor" pump -valve -"ball bearing"')
    assert (parsed.text, parsed.unquoted) == ("clean the wet rotor pump", "clean the pump")
    assert (parsed.phrases, parsed.excluded) == (("wet rotor",), ("valve", "ball bearing"))
    assert parsed.is_constrained


@pytest.mark.parametrize(
    "question",
    [
        "MX-9920-W",
        "what does --verbose do",
        "works at -5 degrees",
        "ls -l",
        'an "unbalanced mark',
        'a 3/4" pipe and a 1/2" valve',
        '"?!" means what',
        "",
    ],
)
def test_what_is_no_syntax_stays_as_it_is(question):
    parsed = parse_question(question)
    assert parsed.text == parsed.unquoted == question
    assert not parsed.is_constrained


@pytest.mark.parametrize(
    ("question", "excluded"),
    [
        ("valve -pump, please", ("pump",)),
        ("valve -MX-9920-W", ("MX-9920-W",)),
        ('valve -"9920"', ("9920",)),
        ("valve -pump -pump", ("pump",)),
    ],
)
def test_a_minus_that_starts_a_word_excludes_it(question, excluded):
    assert parse_question(question).excluded == excluded
    assert parse_question(question).phrases == ()


def test_a_minus_behind_a_quotation_does_not_start_a_word():
    parsed = parse_question('"Model C"-scholen in Zuid-Afrika')
    assert (parsed.excluded, parsed.text) == ((), "Model C-scholen in Zuid-Afrika")


@pytest.mark.parametrize(
    "question", ["“wet rotor” pump", "„wet rotor“ pump", "«wet rotor» pump", '("wet  rotor") pump']
)
def test_other_quotation_marks(question):
    assert parse_question(question).phrases == ("wet rotor",)


@pytest.mark.parametrize("question", ["-pump", '-"wet rotor" -valve', "-pump ?"])
def test_only_exclusions_are_refused(question):
    with pytest.raises(InvalidQuery, match="add what to look for"):
        parse_question(question)


WORD = st.text(alphabet="abé", min_size=2, max_size=5)


@given(st.lists(st.tuples(st.sampled_from(["word", "phrase", "excluded", "excluded phrase"]), WORD, WORD), min_size=1))
def test_every_part_ends_up_in_its_place(parts):
    written = {"word": "{0} {1}", "phrase": '"{0} {1}"', "excluded": "-{0}", "excluded phrase": '-"{0} {1}"'}
    question = " ".join(written[kind].format(first, second) for kind, first, second in parts)
    words = [f"{first} {second}" for kind, first, second in parts if kind in ("word", "phrase")]
    if not words:
        with pytest.raises(InvalidQuery):
            parse_question(question)
        return
    parsed = parse_question(question)
    assert parsed.text == " ".join(words)
    assert parsed.unquoted == " ".join(f"{first} {second}" for kind, first, second in parts if kind == "word")
    assert list(parsed.phrases) == list(dict.fromkeys(f"{a} {b}" for kind, a, b in parts if kind == "phrase"))
    out = [a if kind == "excluded" else f"{a} {b}" for kind, a, b in parts if kind.startswith("excluded")]
    assert list(parsed.excluded) == list(dict.fromkeys(out))


def test_long_hostile_questions_take_no_time():
    for question in ('"' * 50_000, "-a" * 50_000, ' -a"' * 20_000, "“" * 50_000, "-" + "a." * 50_000):
        parse_question(question + " word")


@pytest.mark.parametrize(
    "question", ['What year was the author of "Speed of Sound" born?', 'Welke scholen worden "Model C" genoemd']
)
def test_a_sentence_quotes_without_demanding(question):
    parsed = parse_question(question)
    assert parsed.phrases == ()
    assert not parsed.is_constrained
    assert '"' not in parsed.text
    assert len(parsed.unquoted) < len(parsed.text)
