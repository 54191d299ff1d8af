"""The adapter to DeepEval: the one module that imports it, with its side effects off.

By default DeepEval sends telemetry, reads `.env` and a key file of its own from the current folder into the
environment, writes files there, and offers to open a browser. Its import takes over a second and 95 MiB and patches
asyncio: only a worker's task imports this module, never a web process.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import sys

from chat.answering.citations import remove_markers
from evaluation.judges.types import Case

# These override the environment.
_SILENCE = {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "DEEPEVAL_DISABLE_LEGACY_KEYFILE": "1",
    "DEEPEVAL_FILE_SYSTEM": "READ_ONLY",
    "DEEPEVAL_NO_INSPECT_PROMPT": "1",
    "DEEPEVAL_EVAL_MODE": "llm",
    "DEEPEVAL_UPDATE_WARNING_OPT_IN": "0",
    "CONFIDENT_OPEN_BROWSER": "0",
    "CONFIDENT_TRACE_FLUSH": "0",
    "CONFIDENT_TRACE_SAMPLE_RATE": "0",
}

if "deepeval" not in sys.modules:
    os.environ.update(_SILENCE)
    # With a key, it would send results to its maker.
    os.environ.pop("CONFIDENT_API_KEY", None)
    # It prints and logs a warning that it may not write files.
    _said, _level = io.StringIO(), logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(_said), contextlib.redirect_stderr(_said):
            import deepeval  # noqa: F401
    finally:
        logging.disable(_level)

from deepeval.config.settings import get_settings  # noqa: E402
from deepeval.metrics import (  # noqa: E402
    AnswerRelevancyMetric,
    ContextualPrecisionMetric,
    ContextualRecallMetric,
    ContextualRelevancyMetric,
    FaithfulnessMetric,
)
from deepeval.models import DeepEvalBaseLLM  # noqa: E402
from deepeval.test_case import LLMTestCase  # noqa: E402

if not get_settings().DEEPEVAL_TELEMETRY_OPT_OUT:
    raise ImportError("DeepEval was imported before its telemetry was turned off.")

__all__ = [
    "AnswerRelevancyMetric",
    "ContextualPrecisionMetric",
    "ContextualRecallMetric",
    "ContextualRelevancyMetric",
    "DeepEvalBaseLLM",
    "FaithfulnessMetric",
    "deepeval_case",
]

_EMBEDDED_FILE = re.compile(r"\[(?=DEEPEVAL:)", re.IGNORECASE)


def deepeval_case(case: Case) -> LLMTestCase:
    """The texts of the case, without the marks that make DeepEval open a file or an address."""
    return LLMTestCase(
        input=_harmless(case.question),
        # A judge would take markers for claims.
        actual_output=_harmless(remove_markers(case.answer)),
        expected_output=_harmless(case.reference) or None,
        retrieval_context=[_harmless(source.block.content) for source in case.sources],
    )


def _harmless(text: str) -> str:
    return _EMBEDDED_FILE.sub("[ ", text)
