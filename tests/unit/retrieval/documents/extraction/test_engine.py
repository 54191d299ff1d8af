"""Formats that the engine reads: their structure, and what is done around it."""

import json

import pytest

from retrieval.documents.extraction import ExtractionLimits, extract
from retrieval.documents.extraction.sandboxed import build_sandbox_limits, extract_in_sandbox
from retrieval.exceptions import DocumentRejected

ASCIIDOC = (
    "= Crane manual\n:load: 40\n\n== Limits\n\nThe crane lifts {load} tonnes.\n\n"
    ".Hooks\n|===\n|Hook |Weight\n\n|Small\n|120 kg\n|===\n"
)
LATEX = r"""\documentclass{article}
\title{Tyre wear}
\begin{document}
\maketitle
\section{Results}
The tyre lasts \textbf{52\,000}~km.
\begin{tabular}{ll}
Front & 51\,000 \\
Rear & 54\,000 \\
\end{tabular}
\end{document}
"""
ORG = (
    "#+TITLE: Garden notes\n* Watering\n** Roses\n   Roses get 4 litres a day.\n"
    "| Plant | Litres |\n|-------+--------|\n| Rose  |      4 |\n"
)
FICTION_BOOK = (
    '<?xml version="1.0"?><FictionBook xmlns="http://www.gribuser.ru/xml/fictionbook/2.0"><description><title-info>'
    "<book-title>Dykes</book-title></title-info></description><body><section><title><p>Gates</p></title>"
    "<p>The gates close at 4.</p></section></body></FictionBook>"
)


def notebook(**more):
    picture = {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo" * 40}, "metadata": {}}
    printed = {"output_type": "stream", "name": "stdout", "text": ["accuracy 0.91\n"]}
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Churn model\n", "\n", "The cut-off is 0.37."]},
        {
            "cell_type": "code",
            "metadata": {},
            "source": ["print(1)"],
            "outputs": [printed, picture],
            "execution_count": 1,
        },
    ]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells} | more)


OLD_NOTEBOOK = json.dumps(
    {
        "nbformat": 3,
        "metadata": {},
        "worksheets": [
            {
                "cells": [
                    {"cell_type": "heading", "level": 2, "source": ["Churn"]},
                    {"cell_type": "code", "input": ["x = 1"]},
                ]
            }
        ],
    }
)


@pytest.mark.parametrize(
    ("name", "source", "title", "text"),
    [
        (
            "a.adoc", ASCIIDOC, "Crane manual",
            "# Crane manual\n\n## Limits\n\nThe crane lifts 40 tonnes.\n\nHooks\n\n| Hook | Weight |\n| --- | --- |\n"
            "| Small | 120 kg |\n",
        ),
        (
            "a.tex", LATEX, "Tyre wear",
            "# Tyre wear\n\n# Results\n\nThe tyre lasts 52 000 km.\n\n"
            "| Front | 51 000 |\n| --- | --- |\n| Rear | 54 000 |\n",
        ),
        (
            "a.org", ORG, "Garden notes",
            "# Garden notes\n\n# Watering\n\n## Roses\n\nRoses get 4 litres a day.\n\n"
            "| Plant | Litres |\n| --- | --- |\n| Rose | 4 |\n",
        ),
        (
            "a.ipynb", notebook(), "Churn model",
            "# Churn model\n\nThe cut-off is 0.37.\n\n```\nprint(1)\n```\n\naccuracy 0.91\n",
        ),
        ("a.ipynb", OLD_NOTEBOOK, "Churn", "## Churn\n\n```\nx = 1\n```\n"),
        ("a.fb2", FICTION_BOOK, "Dykes", "## Gates\n\nThe gates close at 4.\n"),
        (
            "a.rtf",
            r"{\rtf1\ansi The bridge closes at night{\footnote It opens at 05:20.}.\par "
            r"{\shp{\*\shpinst{\shptxt A ferry.\par}}}}",
            "A", "The bridge closes at night.\n\n(It opens at 05:20.)\n\nA ferry.\n",
        ),
        (
            "a.rtf",
            r"{\rtf1\ansi{\pntext 1.\tab}Open 10{\super 6} of $320{\rtlch \super\insrsid3 1}\par"
            r"{\listtext\pard\f0 2.\tab}\pard\ilvl0 Close\par}",
            "A", "1. Open 10^6 of $320^1\n2. Close\n",
        ),
        ("a.rtf", r"{\rtf1\ansi A 10\~km e\_mail C:\\~x\\_y\par}", "A", "A 10 km e-mail C:\\~x\\_y\n"),
        (
            "a.adoc", "= T\n\nNOTE: Keep dry.\n\nSee xref:x[it].footnote:[Old.]\n",
            "T", "# T\n\nNote: Keep dry.\n\nSee it. (Old.)\n",
        ),
        ("a.adoc", "= T\n\nPress kbd:[F5] or btn:[OK], see <<x,Part 2>>.\n", "T",
         "# T\n\nPress F5 or OK, see Part 2.\n"),
        (
            "a.tex",
            "\\begin{document}\n\\begin{comment}\nhidden\n\\end{comment}\nCaf\\'e M\\\"uller \\c{c}a na\\\"{\\i}f "
            "\\v{S}koda \\textcolor{red}{now} \\SI{5}{kg}\n\\end{document}",
            "A", "Café Müller ça naïf Škoda now 5 kg\n",
        ),
        ("a.org", "* A\n#+BEGIN_COMMENT\nhidden\n#+END_COMMENT\nWords.\n", "A", "# A\n\nWords.\n"),
        ("a.org", "* TODO Paint\n# hidden\nWords.\n", "TODO: Paint", "# TODO: Paint\n\nWords.\n"),
        (
            "a.tex",
            r"\documentclass{article}\newcommand{\unit}{kW}\begin{document}" "\n" r"Uses 5\,\unit{}. % secret" "\n"
            r"\begin{itemize}\item One \item Two\end{itemize}\end{document}",
            "A", "Uses 5 kW.\n\n- One\n- Two\n",
        ),
    ],
)  # fmt: skip
def test_structure_is_read(name, source, title, text):
    extracted = extract(source.encode(), name)
    assert (extracted.text, extracted.title) == (text, title)
    for section in extracted.sections:
        assert extracted.text[section.start :].lstrip("#").startswith(f" {section.title}")


@pytest.mark.parametrize("name", ["a.adoc", "a.tex", "a.org"])
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
def test_markup_is_read_in_any_encoding(name, encoding):
    assert "Één café kost € 5." in extract("Één café kost € 5.\n".encode(encoding), name).text


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.ipynb", b"not json", "a.ipynb is no notebook"),
        ("a.ipynb", b"[1, 2]", "a.ipynb is no notebook"),
        ("a.rtf", rb"{\rtf1 Words", "a.rtf is damaged, its end is missing"),
        (
            "a.doc",
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "WordDocument".encode("utf-16-le"),
            "a.doc is damaged",
        ),
        ("a.srt", b"Just words.", "a.srt holds no subtitles"),
    ],
)
def test_damaged_files_are_refused_by_name(name, data, message):
    with pytest.raises(DocumentRejected, match=message):
        extract(data, name)


def test_a_page_under_the_name_of_a_word_file_is_read():
    assert extract(b"<html><body><h1>Letter</h1><p>The rent is 930 euro.</p></body></html>", "a.doc").text == (
        "# Letter\n\nThe rent is 930 euro.\n"
    )


def test_the_engine_runs_in_the_sandbox_with_little_memory():
    limits = ExtractionLimits()
    found = extract_in_sandbox(
        notebook().encode(), "a.ipynb", limits=limits, job_limits=build_sandbox_limits(300, 20, limits)
    )
    assert found.title == "Churn model"
    assert "iVBORw0KGgo" not in found.text


@pytest.mark.parametrize(
    ("name", "source", "text"),
    [
        (
            "a.srt",
            "1\n00:00:01,000 --> 00:00:04,000\nWelcome to the <i>tour</i> of\n\n"
            "2\n00:01:04,000 --> 00:01:08,500\nthe brewery.\n",
            "[0:00:01] Welcome to the tour of the brewery.\n",
        ),
        (
            "a.vtt",
            "WEBVTT\n\nNOTE not said\n\n0:1.000 --> 0:4.000 align:start\n<v Roger>The kettle holds\n\n"
            "00:04.000 --> 00:08.000\n<v Roger>900 litres.\n\nNOTE\nnot said either\n\n"
            "00:09.000 --> 00:10.000\n<v Ann>Why?</v>\n",
            "[0:00:01] Roger: The kettle holds 900 litres.\n\n[0:00:09] Ann: Why?\n",
        ),
        (
            "capitals.srt",
            "1\n00:00:01,000 --> 00:00:02,000\nNOTEBOOKS ARE CHEAP.\n\n2\n00:00:03,000 --> 00:00:04,000\n"
            "STYLE IS ALL.\n",
            "[0:00:01] NOTEBOOKS ARE CHEAP. STYLE IS ALL.\n",
        ),
        (
            "entities.vtt",
            "WEBVTT\n\n0:1.000 --> 0:2.000\nHop &amp; malt &lt; 5&nbsp;kg\n",
            "[0:00:01] Hop & malt < 5 kg\n",
        ),
        (
            "voices.vtt",
            "WEBVTT\n\n0:1.000 --> 0:2.000\n<v Roger>How many?</v>\n<v Ann>40 boxes.</v>\n",
            "[0:00:01] Roger: How many?\n\n[0:00:01] Ann: 40 boxes.\n",
        ),
        (
            "moving.vtt",
            "WEBVTT\n\n00:00.100 --> 00:02.000 align:start\n \nwelcome<00:00:01.000><c> here</c>\n\n"
            "00:02.000 --> 00:02.010\nwelcome here\n \n\n00:02.010 --> 00:04.000\nwelcome here\nwe<c> brew</c>\n\n"
            "00:04.000 --> 00:04.010\nwe brew\n \n\n00:04.010 --> 00:06.000\nwe brew\nbeer\n\n"
            "00:07.000 --> 00:08.000\nbeer\n",
            "[0:00:00] welcome here we brew beer beer\n",
        ),
    ],
)
def test_subtitles_are_what_is_said_and_when(name, source, text):
    assert extract(source.encode(), name).text == text


def test_no_subtitle_is_cut_between_its_lines():
    long = f"{'The pump hums and hums. ' * 20}\n".encode()
    source = (
        b"1\n00:00:01,000 --> 00:00:05,000\n" + long + b"It stops.\n\n2\n00:00:06,000 --> 00:00:08,000\nIt starts.\n"
    )
    first, second = extract(source, "a.srt").text.strip().split("\n\n")
    assert first.endswith("hums. It stops.")
    assert second == "[0:00:06] It starts."


@pytest.mark.parametrize(
    ("name", "source", "left_out"),
    [
        (
            "a.rtf", r"{\rtf1\ansi Words {\v two hidden}{\deleted gone}{\*\annotation Remark}.\par}",
            [("hidden", 3), ("comments", 1)],
        ),
        ("a.tex", "\\begin{document}\nWords.\n\\input{two}\n\\end{document}", [("linked", 1)]),
        ("a.adoc", "Words.\n\ninclude::two.adoc[]\n", [("linked", 1)]),
    ],
)  # fmt: skip
def test_what_is_not_read_of_markup_is_named(name, source, left_out):
    extracted = extract(source.encode(), name)
    assert [(each.kind, each.count) for each in extracted.left_out] == left_out
    assert not {"hidden", "gone", "Remark"} & set(extracted.text.split())
