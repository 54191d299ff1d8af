"""A case in DeepEval's form."""

from __future__ import annotations

import re

from chat.grounding.citations import remove_markers
from evaluation.judges.muted_deepeval import LLMTestCase
from evaluation.judges.types import Case

_EMBEDDED_FILE = re.compile(r"\[(?=DEEPEVAL:)", re.IGNORECASE)


def deepeval_case(case: Case) -> LLMTestCase:
    """The case's texts, without the marks for which DeepEval would open a file or an address."""
    return LLMTestCase(
        input=_harmless(case.question),
        # Without markers, which a judge would take for claims.
        actual_output=_harmless(remove_markers(case.answer)),
        expected_output=_harmless(case.reference) or None,
        retrieval_context=[_harmless(source.block.content) for source in case.sources],
    )


def _harmless(text: str) -> str:
    return _EMBEDDED_FILE.sub("[ ", text)
