"""A judge over real HTTP: an OpenAI-compatible server that answers DeepEval's questions, and can be made to fail."""

import json
from dataclasses import dataclass, field
from typing import Any

from tests.support.completion_server import CompletionServer, serving_completions

Judged = dict[str, Any]
# Keys are the names of forms; verdicts have the name of their subject.
GOOD = {
    "Truths": {"truths": ["The pump weighs 3450 grams."]},
    "Claims": {"claims": ["The pump weighs 3450 grams.", "The pump is light."]},
    "Statements": {"statements": ["The pump weighs 3450 grams."]},
    "FaithfulnessVerdict": {
        "verdicts": [{"verdict": "yes", "reason": None}, {"verdict": "no", "reason": "Nothing says that it is light."}]
    },
    "AnswerRelevancyVerdict": {"verdicts": [{"verdict": "yes", "reason": None}]},
    "ContextualRelevancyVerdict": {"verdicts": [{"statement": "It weighs 3450 g.", "verdict": "yes", "reason": None}]},
    "ContextualPrecisionVerdict": {"verdicts": [{"verdict": "yes", "reason": "It names the weight."}]},
    "ContextualRecallVerdict": {"verdicts": [{"verdict": "yes", "reason": "The first passage says so."}]},
}


@dataclass
class JudgeServer(CompletionServer):
    """``judged`` overrides the good answers by form; ``content`` is said in place of any of them."""

    content: str | None = None
    usage: dict[str, int] | None = field(default_factory=lambda: {"prompt_tokens": 100, "completion_tokens": 10})
    judged: dict[str, Judged] = field(default_factory=dict)

    def said(self, request):
        if self.content is not None:
            return self.content
        form = form_of(request)
        return json.dumps({**GOOD, **self.judged}.get(form, {"reason": f"Because of {form}."}))

    @property
    def forms(self):
        """The requested forms, in order."""
        return [form_of(request) for request in self.requests]


def form_of(request):
    asked = request["response_format"]["json_schema"]
    verdicts = [name for name in asked["schema"].get("$defs", {}) if name.endswith("Verdict")]
    return str(verdicts[0] if verdicts else asked["name"])


def judge_server():
    return serving_completions(JudgeServer())
