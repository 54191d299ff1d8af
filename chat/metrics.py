"""Counters that /metrics shows."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

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
ANSWERS_IN_WRITING = Gauge(
    "ragsite_answers_in_writing", "Answers that the web processes are writing.", multiprocess_mode="livesum"
)
ANSWERS_IN_QUEUE = Gauge("ragsite_answers_in_queue", "Answers that wait for their turn.", multiprocess_mode="livesum")
QUEUE_SECONDS = Histogram(
    "ragsite_answer_queue_seconds",
    "How long answers waited for their turn.",
    buckets=(0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120),
)
REFUSED_QUESTIONS = Counter("ragsite_refused_questions", "Questions that were not taken because the queue was full.")
OUT_OF_TIME = Counter(
    "ragsite_answers_out_of_time", "Answers that took too long: waiting, searching, or writing.", ["stage"]
)
