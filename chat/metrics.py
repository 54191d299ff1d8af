from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

from core.metrics import get_counter

ANSWERS = get_counter(
    "ragsite_answers", "Finished answers.", status=("completed", "stopped", "failed"), refused=("false", "true")
)
ANSWER_CACHE = get_counter(
    "ragsite_answer_cache",
    "Questions by whether an earlier answer served, or was not to be looked for.",
    outcome=("hit", "miss", "off"),
)
MODEL_FAILURES = Counter("ragsite_model_failures", "Answers that the model failed to write; they were quoted instead.")
MODEL_WITHHELD = get_counter(
    "ragsite_model_output_withheld",
    "Answers of the model that were not shown, because they repeated what it was told in confidence.",
    reason=("prompt", "function"),
)
MODEL_TOKENS = get_counter(
    "ragsite_model_tokens", "Tokens that answers took, some reckoned.", kind=("prompt", "completion")
)
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
OUT_OF_TIME = get_counter(
    "ragsite_answers_out_of_time", "Answers that took too long.", stage=("waiting", "searching", "writing")
)
