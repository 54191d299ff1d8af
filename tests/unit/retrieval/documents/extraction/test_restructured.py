"""reStructuredText as Markdown, in the forms in which Sphinx documentation is written."""

import pytest

from retrieval.documents.extraction.restructured import to_markdown


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Do this::\n\n    $ make\n\nDone.", "Do this:\n\n```\n$ make\n```\n\nDone."),
        ("::\n\n    x = 1", "```\nx = 1\n```"),
        (".. code-block:: yaml\n   :linenos:\n\n   a: 1", "```yaml\na: 1\n```"),
        (".. note:: Mind this.\n\n   And that.", "**Note:** Mind this.\n\nAnd that."),
        (".. versionadded:: 2.0\n   It is new.", "**New in version 2.0.**\n\nIt is new."),
        (".. tab-set::\n\n    .. tab-item:: Move\n\n        Moves them.", "**Move**\n\nMoves them."),
        (".. function:: run(a)\n\n   Runs.", "**`run(a)`**\n\nRuns."),
        (
            "Pumps\n=====\n\n.. option:: pump.speed\n\n   Turns.\n\n.. class:: Pump\n\n   A pump.\n\n"
            "   .. method:: run(a)\n\n      Runs.",
            "# Pumps\n\n## `pump.speed`\n\nTurns.\n\n## `Pump`\n\nA pump.\n\n**`run(a)`**\n\nRuns.",
        ),
        ("Pumps\n=====\n\n.. grid:: 2\n\n   Text.", "# Pumps\n\n**`2`**\n\nText."),
        (".. _target:\n\n.. toctree::\n\n   one\n   two\n\n.. a remark\n   goes on\n\nText.", "Text."),
        ("See :doc:`the web </plugins/web>`, :ref:`here` and :doc:`/guides/main`.", "See the web, here and main."),
        ("Run :command:`git push` and :opt:`<user>\n<name>`.", "Run `git push` and `<user> <name>`."),
        ("One [#first]_, two [1]_, three [#]_, [CIT2002]_.", "One[^first], two[^1], three, [CIT2002]."),
        (
            "Text.\n\n.. [#first] See `it <x>`_.\n.. [1] Two.\n.. [#] Three.\n.. [CIT2002] A book.",
            "Text.\n\n[^first]: See [it](x).\n\n[^1]: Two.\n\nThree.\n\n[CIT2002] A book.",
        ),
        ("Call :class:`~a.b.Pump` or :func:`start`.", "Call `Pump` or `start`."),
        (
            "Set ``a\nb`` or `the manual <https://x.org/>`_ by PyPI_.",
            "Set `a\nb` or [the manual](https://x.org/) by PyPI.",
        ),
        ("auto\n  Reads all of it.\n\n  And more.", "**auto**\n\nReads all of it.\n\nAnd more."),
        ("#. One\n\n   .. code:: sh\n\n      ls\n\n#. Two", "1. One\n\n   ```sh\n   ls\n   ```\n\n2. Two"),
        ("- **a**: One\n  goes on\n- b", "- **a**: One\n  goes on\n- b"),
        (":author: Ann\n:orphan:\n", "- **author**: Ann"),
        ("===  ====\nA    B\n===  ====\n1    two\n     more\n===  ====", "| A | B |\n| --- | --- |\n| 1 | two more |"),
        ("+---+---+\n| A | B |\n+===+===+\n| 1 | 2 |\n|   | x |\n+---+---+", "| A | B |\n| --- | --- |\n| 1 | 2 x |"),
        (".. figure:: pump.png\n   :name: fig-pump\n\n   The pump.", "The pump."),
        ("Unknown :role-of:`words` stay.\n\n.. odd::\n\n   Its text.", "Unknown `words` stay.\n\nIts text."),
    ],
)
def test_what_a_reader_sees(written, expected):
    assert to_markdown(written) == f"{expected}\n"


@pytest.mark.parametrize(
    "hostile",
    [
        "".join(" " * depth + "- x\n" for depth in range(2_000)),
        ".. note::\n" + "".join(" " * (3 * depth) + ".. note::\n\n" for depth in range(1, 300)),
        "`" * 20_000,
        "``a" * 20_000,
        ":a:`" * 20_000,
        "= = " * 20_000,
        "#. a\n" * 20_000,
        "+--+\n|" * 10_000,
        "a\n b\n" * 20_000,
        "|" * 20_000 + "\n" + "*" * 20_000,
    ],
)
def test_hostile_text_is_read_in_time(hostile):
    assert to_markdown(hostile)
