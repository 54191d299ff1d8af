"""Each sentence of a model's answer gets the marker of the source that supports it, however the text is cut."""

import numpy as np
import pytest

from chat.answering.attribution import AttributionStream, Attributor, LoopingAnswer
from chat.answering.verification import verify
from tests.support.contexts import source

PUMP = "The pump weighs 3450 grams. It hums at night.\n\n```\nstart(pump)\nstop(pump)\n```\n"
VALVE = "The red valve of the cellar closes at 5 bar. Mr. Jansen maintains it every Tuesday."


def encode(texts):
    """Texts about pumps mean one thing, all others another."""
    return np.array([[1.0, 0.0] if "pomp" in text.lower() or "pump" in text.lower() else [0.0, 1.0] for text in texts])


def sources():
    return [source(PUMP), source(VALVE, marker=2)]


def attributed(text, cut=4):
    stream = AttributionStream(Attributor(sources(), {1, 2}, encode))
    shown = "".join(stream.feed(text[at : at + cut]) for at in range(0, len(text), cut))
    return shown + stream.close(), stream.gives_up


@pytest.mark.parametrize("cut", [1, 2, 5, 11, 1000])
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("The pump weighs 3450 grams.", "The pump weighs 3450 grams. [1]"),
        ("No, the pump weighs 3450 grams.", "No, the pump weighs 3450 grams. [1]"),
        # Right markers stay where they stand, wrong ones are corrected there.
        ("The pump weighs 3450 grams [1]. It hums.", "The pump weighs 3450 grams [1]. It hums. [1]"),
        ("The pump weighs 3450 grams [2].", "The pump weighs 3450 grams [1]."),
        ("According to [2], the pump weighs 3450 grams.", "According to [1], the pump weighs 3450 grams."),
        ("[2] The pump weighs 3450 grams.", "The pump weighs 3450 grams. [1]"),
        ("The pump weighs 3450 grams (SOURCE [2]).", "The pump weighs 3450 grams [1]."),
        ("The pump weighs 3450 grams [1, 2]. It hums.", "The pump weighs 3450 grams [1]. It hums. [1]"),
        ("The pump weighs 3450 grams [source 1][9]. It hums [^1].", "The pump weighs 3450 grams [1]. It hums [1]."),
        # Numbers in brackets of code are none; those that the prompt wrote otherwise are put right.
        ("The pump hums at night, a[0] `b[2]` `c⟦2⟧` d⟦2⟧ [1].", "The pump hums at night, a[0] `b[2]` `c[2]` d⟦2⟧."),
        ("The pump weighs 3450 grams ` [1]. It hums.", "The pump weighs 3450 grams ` [1]. It hums. [1]"),
        # What no source says has none.
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
        # A name alone is too short to be checked, and stands in one source.
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
    first, second, last = verify(text, sources()).statements
    assert (first.markers, first.supported, second.markers, second.supported) == ((), False, (1,), True)
    assert (last.markers, last.supported) == ((), None)
    (citation,) = verify(text, sources()).citations
    assert citation.quote == "It hums at night."


@pytest.mark.parametrize("text", ["The same is said again. " * 5, "It is one, and " * 10, "-=+*" * 40])
def test_a_loop_is_noticed(text):
    with pytest.raises(LoopingAnswer):
        attributed(text)


def test_rows_and_rules_are_no_loop():
    attributed("| a | b |\n| --- | --- |\n" + "".join(f"| x{number} | 1 |\n" for number in range(20)))
    attributed(f"Title\n{'-' * 200}\n\nThe pump hums at night.")


def test_an_answer_in_another_language_is_attributed_by_meaning_and_numbers():
    text = "Het gewicht van de pomp is 3450 gram, zoals hier staat. De pomp zelf kost in totaal 900 euro per stuk."
    shown, _ = attributed(text)
    assert shown == text.replace("staat.", "staat. [1]")
