"""What the stages of an answer are called in the panel."""

from __future__ import annotations

from django.utils.formats import number_format
from django.utils.translation import gettext_lazy as _

STAGES = {
    "reformulate": _("reformulate"),
    "classify": _("classify and plan"),
    "legs": _("both retrievers"),
    "vector": _("vector retriever"),
    "lexical": _("lexical retriever"),
    "scores": _("missing scores"),
    "fuse": _("fuse"),
    "rerank": _("rerank"),
    "load": _("load passages"),
    "search": _("search"),
    "context": _("put the context together"),
    "wait": _("wait for the first word"),
    "decide": _("decide that nothing answers"),
    "write": _("write"),
    "check": _("check the sentences"),
    "write and check": _("write and check"),
    "answer": _("answer"),
    "total": _("total"),
}

REASONS = {
    "number": _("a number of it is not in the source"),
    "name": _("a name of it is not in the source"),
    "negation": _("one of them negates what the other says"),
    "words": _("its words are not in the source"),
    "uncited": _("it names no source"),
    "elsewhere": _("another source than the one it names supports it"),
}


def stage_label(name: str) -> str:
    """A stage's name for people; one that is not known here as it is called in the trace."""
    return str(STAGES.get(name, name.replace("_", " ")))


def reason_label(name: str) -> str:
    """What speaks against a sentence, in words."""
    return str(REASONS.get(name, name))


def group_digits(number: int) -> str:
    """A count with its thousands set apart, as the reader's language does it."""
    return str(number_format(number, force_grouping=True))


def fill_in_number(text: str, number: int) -> str:
    """A text with its count in place of ``%(number)s``."""
    return text % {"number": group_digits(number)}
