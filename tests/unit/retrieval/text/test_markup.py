"""The text that a reader sees of Markdown in the dialects of documentation sites."""

import pytest

from retrieval.text.markup import convert_notes, strip_markup


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "Open [the menu](../menu.md#top) or [the site](https://a.example/).",
            "Open the menu or [the site](https://a.example/).",
        ),
        ('See [it](#there "There") and [them](a_(b).md).', "See it and them."),
        ('3. Save ![Screen](img/a.png){ class="shadow" }', "3. Save"),
        ("[![Screen](a.png){ .wide }](a.md)Save.", "Save."),
        ("It has 3 GB,[^1] at least.[^two]", "It has 3 GB, at least."),
        ("[^1]: Or more.", "Or more."),
        ("# Save {#save}", "# Save"),
        ("Save.<!-- ![old](a.png) --> Close.", "Save. Close."),
        ("An angle of 45<sup>o</sup>, by <kbd>Ctrl</kbd>.", "An angle of 45o, by Ctrl."),
        ("- [ ] Check it\n- [x] Save it", "- Check it\n- Save it"),
        # These signs have a meaning for the reader.
        (
            "a[i](x) < b > c, {n: 1}, {{ x }}, [1], [2, 3] and List<int>",
            "a[i](x) < b > c, {n: 1}, {{ x }}, [1], [2, 3] and List<int>",
        ),
    ],
)
def test_what_says_nothing_to_a_reader_is_left_out(text, shown):
    assert strip_markup(text) == shown


def test_of_all_links_the_words_are_left():
    assert strip_markup("Ask [us](https://a.example/memory) or [them](b.md).", all_links=True) == "Ask us or them."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            'One.\n\n!!! tip "Mind"\n    the step\n\n    and the gap\n\nTwo.',
            "One.\n\n\n**Mind**\n\nthe step\n\nand the gap\n\nTwo.",
        ),
        ('!!!info ""\n    Mind it.', "\nMind it."),
        ("!!! warning\n    Hot.", "\n**Warning**\n\nHot."),
        (
            '??? question "How?"\n    So.\n    !!! note\n        Or so.\nOn.',
            "\n**How?**\n\nSo.\n\n**Note**\n\nOr so.\nOn.",
        ),
        ('=== "Menu"\n     1. Go\n     2. Save', "\n**Menu**\n\n1. Go\n2. Save"),
        # A rule, an underline and code are neither notes nor tabs.
        ("Title\n===\n\n```\n!!! note\n    x\n```", "Title\n===\n\n```\n!!! note\n    x\n```"),
    ],
)
def test_notes_and_tabs_are_paragraphs_below_their_titles(text, shown):
    assert convert_notes(text) == shown
