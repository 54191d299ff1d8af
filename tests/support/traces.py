"""Traces of searches that never ran."""

from chat.types import AnswerDraft, AnswerTrace
from retrieval.types import AssembledContext, QueryClass, RetrieverWeights


def example_trace(**parts):
    """Return the trace of a search without results, with these parts."""
    nothing = {
        "question": "What?", "query": "what", "query_class": QueryClass.CONCEPTUAL, "rule": "a word in it",
        "search_method": "adaptive", "profile": "built-in", "weights": RetrieverWeights(vector=0.65, lexical=0.35),
        "depth": 50, "top_k": 8, "rrf_k": 60,
    }  # fmt: skip
    return AnswerTrace(**nothing | parts)


def example_draft(sources=(), question="What?"):
    """Return the beginning of an answer from these sources."""
    context = AssembledContext(tuple(source.block for source in sources), {})
    return AnswerDraft(question, tuple(sources), context, example_trace())
