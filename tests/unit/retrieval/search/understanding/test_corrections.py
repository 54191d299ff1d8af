"""Words of a question that are corrected, only offered, or never changed."""

import pytest

from retrieval.search.understanding.spelling import (
    NearWord,
    correct_question,
    is_certain_typing_error,
    suggest_questions,
)
from retrieval.search.understanding.vocabulary import compute_edit_distances

WORDS = {
    "heavy": 4, "pump": 60, "warranty": 9, "hospital": 5, "contract": 8, "warehouse": 7, "maximum": 6, "price": 9,
    "Jansen": 2, "afspraak": 5, "rechten": 4, "past": 3,
}  # fmt: skip
CODES = ["MX-9920-W", "MX-9920-WS", "MX-9940-D", "SK-9920-W", "E-041", "E-107", "P2"]
ORDINARY = {"contact", "pasta", "capitol"}
KNOWN = {"how", "what", "does", "cost", "the", "is", "open", "who", "where", "mean", "can", "have", "many", "are"}


class Library:
    """A vocabulary of a few words, in memory."""

    can_recognise_words = True

    def find_unknown_words(self, text):
        held = {word.lower() for word in WORDS} | KNOWN
        return [word for word in text.strip("?").split() if word.isalpha() and word.lower() not in held]

    def is_ordinary(self, word):
        return word in ORDINARY

    def find_near_words(self, word):
        distances = compute_edit_distances(word.lower(), [each.lower() for each in WORDS])[0].tolist()
        near = [NearWord(each, edits, WORDS[each]) for each, edits in zip(WORDS, distances, strict=True)]
        return sorted((each for each in near if each.edits <= 2), key=lambda each: each.edits)

    def find_code_spellings(self, codes):
        wholes = {each.replace("-", "").lower(): [each] for each in CODES}
        return {code: wholes[code] for code in codes if code in wholes}

    def find_similar_codes(self, code):
        distances = compute_edit_distances(code, [each.replace("-", "").lower() for each in CODES])[0].tolist()
        near = sorted((edits, each) for edits, each in zip(distances, CODES, strict=True) if edits <= 2)
        return [each for _, each in near]


LIBRARY = Library()


@pytest.mark.parametrize(
    ("question", "corrected"),
    [
        ("How heavy is the pmup?", "How heavy is the pump?"),
        ("What does the waranty cost?", "What does the warranty cost?"),
        ("IS THE HOSPTIAL OPEN?", "IS THE HOSPITAL OPEN?"),
        ("hoe maak ik een afpsraak?", "hoe maak ik een afspraak?"),
        ("How heavy is the MX9920W?", "How heavy is the MX-9920-W?"),
        ("How heavy is the mx 9920 w pump?", "How heavy is the MX-9920-W pump?"),
        ("What does E041 mean?", "What does E-041 mean?"),
        ("How heavy is the pmup MX9920W?", "How heavy is the pump MX-9920-W?"),
    ],
)
def test_what_is_certain_is_put_right(question, corrected):
    correction = correct_question(question, LIBRARY)
    assert correction.question == corrected
    assert all(typed in question and meant in corrected for typed, meant in correction.replaced)


@pytest.mark.parametrize(
    "question",
    [
        "How heavy is the pump?",
        "Can I contact the pump?",  # an ordinary word that the documents lack
        "How do I cook pasta?",
        "Who is Janssen?",  # another name
        "What does E-401 mean?",  # another code
        "How heavy is the MX-9930-W?",
        'What is the "waranty" of a pump?',
        "pump -waranty",
        "What is the mx-9920-w?",  # capitals make no difference
        "Is the P2 open?",
        "How many are 2 w?",
        "",
    ],
)
def test_what_is_in_doubt_stays(question):
    assert correct_question(question, LIBRARY) is None


@pytest.mark.parametrize(
    ("question", "offered"),
    [
        ("What does E-401 mean?", ("What does E-041 mean?",)),
        ("How heavy is the MX-9930-W?", ("How heavy is the MX-9920-W?", "How heavy is the MX-9920-WS?")),
        ("Who is Janssen?", ("Who is Jansen?",)),
        ("How heavy is the pump?", ()),
    ],
)
def test_what_is_near_is_offered(question, offered):
    offers = suggest_questions(question, LIBRARY)
    assert offers[: len(offered)] == offered
    assert len(offers) <= 3
    assert bool(offers) == bool(offered)


@pytest.mark.parametrize(
    ("typed", "meant", "certain", "certain_in_doubt"),
    [
        ("hosptial", "hospital", True, True),
        ("pupm", "pump", True, True),
        ("comittee", "committee", True, False),
        ("contact", "contract", True, False),
        ("staf", "staff", False, False),
        ("grapes", "graves", False, False),
        ("houses", "housed", False, False),
        ("pumps", "pump", False, False),
        ("", "a", False, False),
    ],
)
def test_slips(typed, meant, certain, certain_in_doubt):
    assert is_certain_typing_error(typed, meant, is_no_word=True) == certain
    assert is_certain_typing_error(typed, meant, is_no_word=False) == certain_in_doubt
