"""Answers in the documents' own words: the blocks that answer the question, chosen, put in order and cited.

Needs no model beside the embedder, invents nothing, and works offline. It cannot reason over what it finds; it declines
when the documents probably do not answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace

from asgiref.sync import sync_to_async

from chat.composing.excerpt import Excerpt
from chat.composing.rendering import render
from chat.composing.selection import rank, select, select_comparing
from chat.exceptions import NoAnswer
from chat.grounding.evidence.answerability import Evidence
from chat.grounding.evidence.weighing import gather_evidence
from chat.questions.analysis import analyse, is_same_question
from chat.questions.comparison import find_compared
from chat.questions.presence import find_answer_values
from chat.questions.types import Question, ValueKind
from chat.types import AnswerForm, ContextSource
from retrieval.observability.tracing import span

# The values that are recognised well enough to say that one is not there. A place is told in too many ways.
TOLD_APART = frozenset(set(ValueKind) - {ValueKind.PLACE})

# Where it is not sure which place answers, this many are shown.
MOST_EXCERPTS = 3

Weigh = Callable[[str, Sequence[ContextSource]], Evidence]


class ExtractiveGenerator:
    """An AnswerGenerator without a language model."""

    name = "extractive"

    def __init__(self, weigh: Weigh = gather_evidence) -> None:
        self._weigh = weigh

    async def stream(self, question: str, sources: Sequence[ContextSource]) -> AsyncIterator[str]:
        """The excerpts, verbatim, one piece each. Raises: NoAnswer."""
        gap = ""
        for excerpt in await sync_to_async(self.excerpts, thread_sensitive=False)(question, sources):
            yield gap + render(excerpt)
            gap = "\n\n"

    @span("composition")
    def excerpts(self, question: str, sources: Sequence[ContextSource]) -> list[Excerpt]:
        """What is shown, one place for each thing that is asked. Raises: NoAnswer when the documents probably do not
        answer."""
        evidence = self._weigh(question, sources)
        if not evidence.scored or evidence.answerability.form is AnswerForm.REFUSAL:
            raise NoAnswer(evidence.answerability.missing)
        asked = analyse(question)
        if parts := find_compared(asked):
            comparing = select_comparing(asked, [part.topic for part in parts], evidence)
            apart = (each for part in parts for each in select(part, self._weigh(part.text, sources)))
            excerpts = list(apart) if comparing is None else [comparing]
        elif asked.parts:
            excerpts = self._answer_parts(asked, evidence, sources)
        else:
            is_sure = evidence.answerability.form is AnswerForm.ANSWER
            excerpts = select(asked, evidence, 1 if is_sure else MOST_EXCERPTS)
            is_asked_there = any(is_same_question(asked, each.unit.section.heading) for each in evidence.scored)
            holds_value = any(find_answer_values(asked, render(each)) for each in excerpts)
            if asked.expects in TOLD_APART and not (holds_value or is_asked_there):
                raise NoAnswer(asked.expects)
        return _without_repeats(excerpts)

    def _answer_parts(self, asked: Question, evidence: Evidence, sources: Sequence[ContextSource]) -> list[Excerpt]:
        """A place for each of several things that are asked at once, all in the document that bears most on the whole.

        What the parts share decides which document that is, their own words decide which place of it.
        """
        best = rank(asked, evidence)[0].unit.source.block.best.document_id
        near = [source for source in sources if source.block.best.document_id == best]
        excerpts: list[Excerpt] = []
        for part in asked.parts:
            own = _without_subject(part.text)
            excerpts += select(replace(part, text=own), self._weigh(own, near))
        return excerpts


def _without_repeats(excerpts: Sequence[Excerpt]) -> list[Excerpt]:
    """The excerpts, those that overlap joined."""
    kept: list[Excerpt] = []
    for excerpt in excerpts:
        at = next((number for number, other in enumerate(kept) if other.overlaps(excerpt)), None)
        if at is None:
            kept.append(excerpt)
        else:
            kept[at] = kept[at].joined(excerpt)
    return kept


def _without_subject(part: str) -> str:
    """A part of a question without the subject that analysis adds in brackets to one that does not name it."""
    bare = part.rstrip("?.! ")
    return bare[: bare.rfind("(")].rstrip() if bare.endswith(")") and "(" in bare else part
