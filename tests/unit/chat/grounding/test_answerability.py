"""How likely the documents answer a question, by the evidence; vectors come from a small embedder of letters."""

from __future__ import annotations

import pytest
from chat.grounding.evidence.answerability import (
    ANSWERABLE,
    ANSWERABLE_BY_WORDS,
    ANSWERABLE_NOT_IN_ENGLISH,
    CERTAIN,
    HOPELESS,
    NEAR_BLOCK,
    SHOWABLE,
    SHOWABLE_BY_BLOCK,
    UNKNOWN_CODE,
    WEAKEST_BLOCK,
    WEAKEST_BLOCK_NOT_IN_ENGLISH,
    Answerability,
    weigh,
)
from retrieval.dense.calibration.scales import BUILT_IN

from chat.types import AnswerForm
from tests.unit.chat.grounding.test_evidence import letters, source

PUMPS = "The MX-9920-W is a wet-rotor pump. It weighs 3450 g.\n\nThe guarantee of a pump lasts three years."
TERMS = "Goods are sent back within thirty days. Carriage is paid by the buyer."


def probability(question: str, *texts: str) -> float:
    sources = [source(text, marker=marker) for marker, text in enumerate(texts, start=1)]
    return weigh(question, sources, letters).answerability.probability


def test_what_the_sources_speak_of_is_more_probable_than_what_they_do_not() -> None:
    answered = probability("How long does the guarantee of a pump last?", PUMPS, TERMS)
    foreign = probability("Which chemist discovered oxygen?", PUMPS, TERMS)
    assert 0 < foreign < answered < 1


def test_each_further_word_that_is_held_raises_it() -> None:
    without = probability("guarantee pump zebra", PUMPS)
    some = probability("guarantee pump three zebra", PUMPS)
    assert without < some < probability("guarantee pump three years", PUMPS)


def test_words_in_one_source_count_more_than_spread_over_several() -> None:
    """As one passage that answers would hold them."""
    together = weigh(
        "guarantee thirty days", [source(PUMPS + " " + TERMS)], lambda _question, _units: None
    ).answerability
    apart = weigh(
        "guarantee thirty days", [source(PUMPS), source(TERMS, marker=2)], lambda _question, _units: None
    ).answerability
    assert apart.features["reach"] == pytest.approx(together.features["reach"], abs=0.1)
    assert apart.features["coverage"] < together.features["coverage"] - 0.1
    assert apart.probability < together.probability


def test_title_and_headings_of_a_source_are_read_too() -> None:
    plain = weigh("limits of pressure", [source("The maximum is 10 bar.")], letters).answerability
    under = weigh("limits of pressure", [source("The maximum is 10 bar.", headings=("Limits of pressure",))], letters)
    assert under.answerability.features["coverage"] > plain.features["coverage"]


def test_a_code_that_no_source_names_is_not_answered() -> None:
    known = weigh("How heavy is the MX-9920-W pump, what does it weigh?", [source(PUMPS)], letters).answerability
    unknown = weigh("How heavy is the MX-9999-W pump, what does it weigh?", [source(PUMPS)], letters).answerability
    assert known.features["unknown_code"] == 0.0
    assert unknown.features["unknown_code"] == 1.0
    assert known.probability > UNKNOWN_CODE >= unknown.probability


def test_one_known_code_among_several_is_enough() -> None:
    compared = weigh("Is the MX-9920-W better than the MX-9999-W?", [source(PUMPS)], letters).answerability
    assert compared.features["unknown_code"] == 0.0


def test_a_single_word_that_is_held_is_weaker_than_several() -> None:
    one = weigh("guarantee", [source(PUMPS)], letters).answerability
    several = weigh("guarantee lasts three years", [source(PUMPS)], letters).answerability
    assert one.features["coverage"] < several.features["coverage"] < 1


@pytest.mark.parametrize("named", ["MX-9920", "MX9920W", "pre-1875", "1990s", "100-year-old"])
def test_the_beginning_of_a_code_names_it_and_numbers_among_letters_are_none(named: str) -> None:
    assert weigh(f"What is the {named} pump?", [source(PUMPS)], letters).answerability.features["unknown_code"] == 0.0


@pytest.mark.parametrize("trusted", [False, True], ids=["no vectors", "another embedder"])
def test_without_a_calibrated_embedder_words_alone_decide(trusted: bool) -> None:
    def estimate(question: str) -> Answerability:
        embed = letters if trusted else lambda _question, _units: None
        return weigh(question, [source(PUMPS)], embed, None if trusted else BUILT_IN).answerability

    about, foreign = estimate("How long does the guarantee of a pump last?"), estimate("Which chemist found oxygen?")
    assert about.by_words
    assert "similarity" not in about.features
    assert about.is_answerable
    assert not foreign.is_answerable
    # The documents may say it in another language, which a model and its embedder may know.
    assert not foreign.is_hopeless


def test_the_thresholds() -> None:
    assert Answerability(ANSWERABLE, {"best_block": WEAKEST_BLOCK}).is_answerable
    assert not Answerability(ANSWERABLE - 0.001, {"best_block": 1.0}).is_answerable
    assert not Answerability(CERTAIN - 0.001, {"best_block": WEAKEST_BLOCK - 0.001}).is_answerable
    assert Answerability(CERTAIN, {"best_block": 0.0}).is_answerable
    assert Answerability(ANSWERABLE_BY_WORDS, {"best_block": 0.0}, by_words=True).is_answerable
    assert not Answerability(ANSWERABLE_BY_WORDS - 0.001, {"best_block": 1.0}, by_words=True).is_answerable
    assert Answerability(HOPELESS - 0.001, {}).is_hopeless
    assert not Answerability(HOPELESS, {}).is_hopeless
    assert UNKNOWN_CODE >= HOPELESS  # a model may know that a code was misspelt


def test_the_form_of_an_answer() -> None:
    block = {"best_block": NEAR_BLOCK - 0.001}
    assert Answerability(ANSWERABLE, block).form is AnswerForm.ANSWER
    assert Answerability(SHOWABLE, block).form is AnswerForm.EXCERPTS
    assert Answerability(SHOWABLE - 0.001, block).form is AnswerForm.REFUSAL
    assert Answerability(ANSWERABLE_NOT_IN_ENGLISH - 0.001, block, in_english=False).form is AnswerForm.REFUSAL
    # It is better said what is missing than shown what comes near; words alone tell too little.
    assert Answerability(SHOWABLE, block, missing="amount").form is AnswerForm.REFUSAL
    assert Answerability(ANSWERABLE_BY_WORDS - 0.001, block, by_words=True).form is AnswerForm.REFUSAL
    assert Answerability(SHOWABLE, {"best_block": WEAKEST_BLOCK - 0.001}).form is AnswerForm.REFUSAL
    near = {"best_block": NEAR_BLOCK}
    assert Answerability(SHOWABLE_BY_BLOCK, near).form is AnswerForm.EXCERPTS
    assert Answerability(SHOWABLE_BY_BLOCK - 0.001, near).form is AnswerForm.REFUSAL
    assert Answerability(SHOWABLE_BY_BLOCK, near, in_english=False).form is AnswerForm.REFUSAL


def test_what_a_question_asks_for_has_to_stand_beside_its_subject() -> None:
    text = "The lockers of the hall are grey and stand beside the lift."
    without = weigh("How much is a locker in the hall?", [source(text)], letters).answerability
    priced = weigh("How much is a locker in the hall?", [source(f"{text} They cost €5.")], letters).answerability
    assert without.missing == "amount"
    assert not priced.missing
    assert priced.probability > without.probability


def test_a_code_that_is_only_replaced_is_unknown() -> None:
    rows = "sku: AB-1234; name: Seal; price_eur: 14.90; replaces: AB-1200; notes: small"
    assert weigh("How much is the AB-1200?", [source(rows)], letters).answerability.features["unknown_code"] == 1.0
    assert weigh("How much is the AB-1234?", [source(rows)], letters).answerability.features["unknown_code"] == 0.0


def test_the_bar_is_higher_where_the_embedder_did_not_learn_the_language() -> None:
    between = (ANSWERABLE + ANSWERABLE_NOT_IN_ENGLISH) / 2
    block = {"best_block": WEAKEST_BLOCK_NOT_IN_ENGLISH}
    assert Answerability(between, block).is_answerable
    assert not Answerability(between, block, in_english=False).is_answerable
    assert Answerability(between, {"best_block": NEAR_BLOCK}, in_english=False).is_answerable
    assert Answerability(ANSWERABLE_NOT_IN_ENGLISH, block, in_english=False).is_answerable
    weaker = {"best_block": WEAKEST_BLOCK_NOT_IN_ENGLISH - 0.001}
    assert not Answerability(ANSWERABLE_NOT_IN_ENGLISH, weaker, in_english=False).is_answerable
    assert not Answerability(0.999, weaker, in_english=False).is_answerable
    # Words mean as much in any language.
    assert Answerability(ANSWERABLE_BY_WORDS, {"best_block": 1.0}, by_words=True, in_english=False).is_answerable


@pytest.mark.parametrize(
    ("question", "text", "in_english"),
    [
        ("How long does the guarantee of a pump last?", PUMPS, True),
        ("Hoe lang is de garantie van een pomp?", PUMPS, False),
        ("How long is the guarantee?", "De garantie van een pomp is drie jaar, en die van een klep twee.", True),
        ("garantie", "De garantie van een pomp is drie jaar, en die van een klep twee.", False),
        ("guarantee", PUMPS, True),
    ],
)
def test_a_question_too_short_to_tell_is_in_the_language_of_its_sources(
    question: str, text: str, in_english: bool
) -> None:
    assert weigh(question, [source(text)], letters).answerability.in_english is in_english


def test_nothing_to_quote_is_no_answer() -> None:
    assert weigh("anything", [], letters).answerability.probability == 0.0
    assert weigh("anything", [source("\n")], letters).answerability.probability == 0.0


def test_a_question_without_telling_words_rests_on_similarity() -> None:
    features = weigh("What is it?", [source(PUMPS)], letters).answerability.features
    assert features["coverage"] == features["reach"] == 0.0
    assert features["similarity"] > 0


@pytest.mark.parametrize("question", ["What is 17 times 23?", "3 + 4", "wat is 12 gedeeld door 4"])
def test_a_sum_is_not_in_the_documents(question: str) -> None:
    assert probability(question, "Room 17 has 23 seats, 12 of them in 4 rows, 3 by the wall.") <= UNKNOWN_CODE


def test_a_rule_named_by_numbers_is_no_sum() -> None:
    assert (
        probability("What is the 5-3 rule of seats?", "The 5-3 rule of seats: five in front, three behind.")
        > UNKNOWN_CODE
    )
