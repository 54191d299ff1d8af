import pytest

from retrieval.text.sentences import SentenceBreak, split_sentences


def split(text):
    return [text[start:end] for start, end, _ in split_sentences(text, 0, len(text))]


@pytest.mark.parametrize(
    "sentences",
    [
        ["See Dr. Iota on p. 12.", "Then rest."],
        ["Use e.g. Django, cf. Flask.", "Or not?", "(Maybe!)", "Yes…", "No."],
        ["Neem bijv. Paracetamol, d.w.z. Een pijnstiller.", "Bel nr. 112."],
        ["Version 3.1 Is out.", '"Really?"', "He said: yes."],
        ["A. Smith wrote it.", "Not I."],
    ],
)
def test_sentences_end_where_they_end(sentences):
    assert split(" ".join(sentences)) == sentences


def test_list_items_and_paragraphs_are_cut_too():
    text = "Intro line\ngoes on:\n- one\n- two\n1. three\n\n  Next part.\n"
    assert [(text[start:end], kind) for start, end, kind in split_sentences(text, 0, len(text))] == [
        ("Intro line\ngoes on:", SentenceBreak.PARAGRAPH),
        ("- one", SentenceBreak.SENTENCE),
        ("- two", SentenceBreak.SENTENCE),
        ("1. three", SentenceBreak.SENTENCE),
        ("Next part.", SentenceBreak.PARAGRAPH),
    ]
    assert split(" \n ") == []
