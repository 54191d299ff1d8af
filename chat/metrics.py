"""Counters that /metrics shows."""

from __future__ import annotations

from prometheus_client import Counter

ANSWERS = Counter("ragsite_answers", "Finished answers.", ["status", "refused"])
ANSWER_CACHE = Counter(
    "ragsite_answer_cache",
    "Questions by whether an earlier answer served: hit, miss, or off (not to be looked for).",
    ["outcome"],
)
MODEL_FAILURES = Counter("ragsite_model_failures", "Answers that the model failed to write; they were quoted instead.")
MODEL_WITHHELD = Counter(
    "ragsite_model_output_withheld",
    "Answers of the model that were not shown, because they repeated what it was told in confidence.",
    ["reason"],
)
MODEL_TOKENS = Counter("ragsite_model_tokens", "Tokens that answers took, some reckoned.", ["kind"])
INSTRUCTIONS = Counter(
    "ragsite_instructions", "Questions that read like instructions to the site and were not answered.", ["rule"]
)
INSTRUCTED_SOURCES = Counter("ragsite_instructed_sources", "Sources of answers that hold instructions to a model.")
