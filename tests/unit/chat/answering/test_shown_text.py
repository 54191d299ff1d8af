"""Each sentence of a model's answer gets the marker of the source that supports it, however the text is cut."""

import re
from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chat.answering.checking.answer_stream import AnswerStream
from chat.answering.checking.verification import verify_citations
from chat.answering.prompts import compose_prompt
from tests.support.contexts import source

PUMP = "The pump weighs 3450 grams. It hums at night.\n\n```\nstart(pump)\nstop(pump)\n```\n"
VALVE = "The red valve of the cellar closes at 5 bar. Mr. Jansen maintains it every Tuesday."


def encode(texts):
    """Texts about pumps mean one thing, all others another."""
    return np.array([[1.0, 0.0] if "pomp" in text.lower() or "pump" in text.lower() else [0.0, 1.0] for text in texts])


def sources():
    return [source(PUMP), source(VALVE, marker=2)]


def opened(found=None):
    found = found or sources()
    prompt = compose_prompt("How heavy?", found, today=date(2026, 3, 9), budget_tokens=8000)
    return AnswerStream(prompt, "How heavy?", found, (), encode)


def streamed(stream, pieces):
    return "".join([*map(stream.feed, pieces), stream.close()])


def attributed(text, cut=4):
    stream = opened()
    return streamed(stream, [text[at : at + cut] for at in range(0, len(text), cut)]), stream.has_no_answer


@pytest.mark.parametrize("cut", [1, 2, 5, 11, 1000])
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("The pump weighs 3450 grams.", "The pump weighs 3450 grams. [1]"),
        ("No, the pump weighs 3450 grams.", "No, the pump weighs 3450 grams. [1]"),
        # Right markers stay in their place, wrong ones are corrected there.
        ("The pump weighs 3450 grams [1]. It hums.", "The pump weighs 3450 grams [1]. It hums. [1]"),
        ("The pump weighs 3450 grams [2].", "The pump weighs 3450 grams [1]."),
        ("According to [2], the pump weighs 3450 grams.", "According to [1], the pump weighs 3450 grams."),
        ("[2] The pump weighs 3450 grams.", "The pump weighs 3450 grams. [1]"),
        ("The pump weighs 3450 grams (SOURCE [2]).", "The pump weighs 3450 grams [1]."),
        ("The pump weighs 3450 grams [1, 2]. It hums.", "The pump weighs 3450 grams [1]. It hums. [1]"),
        ("The pump weighs 3450 grams [source 1][9]. It hums [^1].", "The pump weighs 3450 grams [1]. It hums [1]."),
        ("The pump weighs 3450 grams【2†source】. It hums<sup>1</sup>.", "The pump weighs 3450 grams[1]. It hums[1]."),
        ("The pump hums at night (1).", "The pump hums at night [1]."),
        # Numbers in brackets of code are no markers; markers in another form than the prompt's are corrected.
        ("The pump hums at night, a[0] `b[2]` `c⟦2⟧` d⟦2⟧ [1].", "The pump hums at night, a[0] `b[2]` `c[2]` d[2]."),
        # Neither are values, and numbers that no source has.
        ("The pump weighs [1, 2] tons. Press [1] or [2].", "The pump weighs [1, 2] tons. Press [1] or [2]."),
        ("The pump weighs 3450 grams [9].", "The pump weighs 3450 grams [9]. [1]"),
        # Headings and bold lines stay as they are.
        (
            "The pump weighs 3450 grams.\n\n### Filter [1]\n\n**Filter** [1]\n\nThe pump hums.",
            "The pump weighs 3450 grams. [1]\n\n### Filter\n\n**Filter**\n\nThe pump hums. [1]",
        ),
        ("The pump weighs 3450 grams ` [1]. It hums.", "The pump weighs 3450 grams ` [1]. It hums. [1]"),
        # A sentence without a supporting source has no marker.
        ("The pump weighs 900 grams [1]. It hums at night.", "The pump weighs 900 grams. It hums at night. [1]"),
        (
            "It says:\n\n1. The pump hums at night.\n2. The red valve closes at 5 bar.\n\nMore",
            "It says:\n\n1. The pump hums at night. [1]\n2. The red valve closes at 5 bar. [2]\n\nMore",
        ),
        (
            "| Part | Value |\n| --- | --- |\n| pump | 3450 grams |\n| red valve | 5 bar |\n",
            "| Part | Value |\n| --- | --- |\n| pump | 3450 grams [1] |\n| red valve | 5 bar [2] |",
        ),
        (
            "So:\n\n```\nstart(pump)\nstop(pump)\n```\n\nMr. Jansen.",
            "So:\n\n```\nstart(pump)\nstop(pump)\n```\n\n[1]\n\nMr. Jansen. [2]",
        ),
        # It says what is missing, and more.
        (
            "The sources do not mention its price. The pump hums at night.",
            "The sources do not mention its price. The pump hums at night. [1]",
        ),
        # A name alone is too short to be checked, and occurs in one source.
        ("Jansen", "Jansen [2]"),
    ],
)  # fmt: skip
def test_sentences_get_their_sources(text, shown, cut):
    assert attributed(text, cut) == (shown, False)


@pytest.mark.parametrize(
    "text",
    [
        "The sources do not mention its colour.",
        "I'm sorry, but I can't help with that. Let me know if you have other questions!",
        "De bronnen vermelden geen kleur.",
    ],
)
def test_an_answer_that_gives_up_is_held_back(text):
    assert attributed(text) == ("", True)


def test_a_sentence_without_support_is_unsupported_and_takes_no_marker_of_the_next():
    text, _ = attributed("The pump weighs 900 grams. The pump hums at night. I hope this helps!")
    first, second, last = verify_citations(text, sources()).statements
    assert (first.markers, first.supported, second.markers, second.supported) == ((), False, (1,), True)
    assert (last.markers, last.supported) == ((), None)
    (citation,) = verify_citations(text, sources()).citations
    assert citation.quote == "It hums at night."


@pytest.mark.parametrize("text", ["The same is said again. " * 5, "It is one, and " * 10, "-=+*" * 40])
def test_a_loop_is_noticed(text):
    stream = opened()
    shown = streamed(stream, [text[at : at + 4] for at in range(0, len(text), 4)])
    assert stream.is_looping
    assert len(shown) < 0.7 * len(text)


def test_rows_and_rules_are_no_loop():
    attributed("| a | b |\n| --- | --- |\n" + "".join(f"| x{number} | 1 |\n" for number in range(20)))
    attributed(f"Title\n{'-' * 200}\n\nThe pump hums at night.")


def test_an_answer_in_another_language_is_attributed_by_meaning_and_numbers():
    text = "Het gewicht van de pomp is 3450 gram, zoals hier staat. De pomp zelf kost in totaal 900 euro per stuk."
    shown, _ = attributed(text)
    assert shown == text.replace("staat.", "staat. [1]")


WORDS = (
    "the pump weighs 3450 grams hums at night ; Mr. Jansen e.g. red valve 5 bar [1] [2] [1,2] [9] [1 ] ( )"
    " (1) (2) 【1】 ［2］ ⟦2⟧ <sup>1</sup> [source 1] SOURCE [^2] . ? ! : , - | ** ` ``` ~~~ ### > * 1. 2) #  [ ] 【 ("
    " < <sup> S SOU range is or and https://evil.example/a[1] www.evil.example a@b.example De pomp"
    " 有給休暇は何日ですか。 I'm sorry NO_ANSWER"
)
TEXTS = st.lists(st.sampled_from([*WORDS.split(), " ", " ", " ", "\n", "\n\n", ". "]), max_size=40).map("".join)


def without_spans(text, spans):
    """Return the text without these spans and all blanks, in which the site may differ from the model."""
    kept, at = "", 0
    for start, end in sorted(spans):
        kept += text[at:start]
        at = max(at, end)
    return re.sub(r"\s", "", kept + text[at:])


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.lists(st.integers(1, 9), min_size=1, max_size=50))
def test_the_text_of_a_model_is_never_damaged(text, cuts):
    """For any text and division, the text is shown: without its citations, with markers and neutralised addresses."""
    stream = opened()
    pieces, at = [], 0
    for cut in [*cuts * (len(text) // sum(cuts) + 1)]:
        pieces.append(text[at : at + cut])
        at += cut
    shown = streamed(stream, [*pieces, text[at:]])
    if stream.has_no_answer or stream.is_looping:
        return
    plain = without_spans(shown, [(marker.start, marker.end) for marker in stream.markers])
    restored = plain.replace("[.]", ".").replace("[@]", "@")
    written = without_spans(stream.written, stream.citations).replace("⟦2⟧", "[2]")
    assert restored == written
    assert stream.written.strip() == text.strip()
    assert all(shown[marker.start : marker.end] == f"[{marker.number}]" for marker in stream.markers)
    assert {marker.number for marker in stream.markers} <= {1, 2}


@settings(max_examples=100, deadline=None)
@given(TEXTS)
def test_what_is_cited_is_a_form_of_citation(text):
    stream = opened()
    streamed(stream, [text])
    for start, end in stream.citations:
        assert re.fullmatch(r"[\s(]*(SOURCE\s+)?([\[【［(]|<sup>)[\s\S]*", stream.written[start:end])
