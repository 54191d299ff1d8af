"""The stages of one answer, in words, for the picture of the pipeline, whose places are in debug.css."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.answer_trace import AnswerTrace
from chat.debugging.candidates import used_weights
from chat.debugging.labels import fill_in_number, group_digits
from chat.debugging.sentences import Sentence, supported_count
from chat.models import Answer
from retrieval.search.trace import StageStatus
from retrieval.types import Retriever


class StepState(StrEnum):
    """How a step went. `idle`: it ran and changed nothing."""

    OK = "ok"
    IDLE = "idle"
    OFF = "off"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Step:
    """A stage, for people. ``badge`` is what stands in its corner: milliseconds, or a word for its state."""

    name: str
    title: str
    details: tuple[str, ...]
    state: StepState = StepState.OK
    badge: str = ""


_STATES = {
    StageStatus.OK: StepState.OK,
    StageStatus.OFF: StepState.OFF,
    StageStatus.FAILED: StepState.FAILED,
    StageStatus.LATE: StepState.FAILED,
}


def steps_of(
    answer: Answer, trace: AnswerTrace, sentences: Sequence[Sentence], lexical_matches: int | None = None
) -> tuple[Step, ...]:
    """A step for each stage, whether it ran or not, in the order of the work."""
    timings = trace.timings_ms
    return (
        Step("question", _("Question"), (answer.question,), badge=_total(answer)),
        _reformulation(trace, timings),
        _classification(trace, timings),
        _retriever(trace, Retriever.VECTOR, None),
        _retriever(trace, Retriever.LEXICAL, lexical_matches),
        _fusion(trace, timings),
        _rerank(trace),
        _context(trace),
        _generator(answer),
        _check(answer, sentences),
    )


def _reformulation(trace: AnswerTrace, timings: Mapping[str, float]) -> Step:
    title = _("Reformulated")
    done = trace.reformulation
    if done is None:
        return Step("reformulation", title, (_("searched as it was asked"),), StepState.OFF, _("off"))
    badge = _ms(timings.get("reformulate"))
    details = [f"“{done.query}”", _by(done.by)] if done.changed else [_("nothing to change"), _by(done.by)]
    if trace.joined_query:
        details.append(_("searched alone and with the questions before it"))
    state = StepState.OK if done.changed or trace.joined_query else StepState.IDLE
    return Step("reformulation", title, tuple(details), StepState.FAILED if done.notice else state, badge)


def _by(name: str) -> str:
    return _("by %s") % name


def _classification(trace: AnswerTrace, timings: Mapping[str, float]) -> Step:
    weights = used_weights(trace)
    shares = _("vector %(vector)s · lexical %(lexical)s") % {
        retriever.value: number_format(round(weights.get(retriever, 0.0), 2)) for retriever in Retriever
    }
    details = (_("class: %s") % trace.query_class, shares, trace.rule)
    return Step("classification", _("Class and weights"), details, badge=_ms(timings.get("classify")))


def _retriever(trace: AnswerTrace, name: Retriever, matches: int | None) -> Step:
    title = _("Vector") if name is Retriever.VECTOR else _("Lexical")
    asked = next((each for each in trace.retrievers if each.retriever is name), None)
    state = _STATES[asked.status] if asked else StepState.OFF
    if asked is None or state is StepState.OFF:
        return Step(name, title, (_("not asked by this method"),), StepState.OFF, _("off"))
    if state is StepState.FAILED:
        return Step(name, title, (_("did not answer"),), state, _status(asked.status))
    details = [fill_in_number(ngettext("%(number)s returned", "%(number)s returned", asked.returned), asked.returned)]
    if matches is not None:
        details.append(
            fill_in_number(ngettext("%(number)s passage matches", "%(number)s passages match", matches), matches)
        )
    details += [f"{typed} → {', '.join(meant)}" for typed, meant in asked.expansions.items()]
    if asked.error:
        details.append(_("its scores are incomplete"))
    return Step(name, title, tuple(details), state, _ms(asked.milliseconds))


def _fusion(trace: AnswerTrace, timings: Mapping[str, float]) -> Step:
    number = len(trace.candidates)
    candidates = fill_in_number(ngettext("%(number)s candidate", "%(number)s candidates", number), number)
    details = [_("method: %s") % trace.search_method, candidates]
    if any(candidate.boosts for candidate in trace.candidates):
        details.append(_("with boosts"))
    alone = sum(each.status is StageStatus.OK for each in trace.retrievers) < 2
    return Step(
        "fusion", _("Fusion"), tuple(details), StepState.IDLE if alone else StepState.OK, _ms(timings.get("fuse"))
    )


def _rerank(trace: AnswerTrace) -> Step:
    title = _("Reranker")
    done = trace.rerank
    if done is None:
        return Step("rerank", title, (_("the fused order stands"),), StepState.OFF, _("off"))
    state = _STATES[done.status]
    if state is not StepState.OK:
        return Step("rerank", title, (done.reranker, _("the fused order stands")), state, _status(done.status))
    judged = fill_in_number(ngettext("%(number)s judged", "%(number)s judged", done.judged), done.judged)
    decides = _("decides alone") if done.weight is None else _("weight %s") % number_format(done.weight)
    return Step("rerank", title, (done.reranker, f"{judged} · {decides}"), state, _ms(done.milliseconds))


def _context(trace: AnswerTrace) -> Step:
    title = _("Context")
    counted = trace.assembly
    kept = sum(candidate.rank is not None for candidate in trace.candidates)
    returned = fill_in_number(ngettext("%(number)s passage kept", "%(number)s passages kept", kept), kept)
    if not counted.get("blocks"):
        return Step("context", title, (returned,), StepState.OFF, _("empty"))
    blocks = fill_in_number(ngettext("%(number)s block", "%(number)s blocks", counted["blocks"]), counted["blocks"])
    tokens = _("%(tokens)s of %(budget)s tokens") % {
        "tokens": group_digits(counted["tokens"]),
        "budget": group_digits(counted["budget_tokens"]),
    }
    return Step("context", title, (returned, blocks, tokens))


def _generator(answer: Answer) -> Step:
    title = _("Answer")
    if answer.status == Answer.Status.FAILED:
        return Step("generator", title, (_("there is none"),), StepState.FAILED, _("failed"))
    timings = answer.timings_ms
    ended = timings.get("written", timings.get("total"))
    took = ended - timings["searched"] if ended is not None and "searched" in timings else None
    details = [answer.generator or _("nobody")]
    if answer.usage:
        tokens = answer.usage["prompt_tokens"] + answer.usage["completion_tokens"]
        details.append(fill_in_number(ngettext("%(number)s token", "%(number)s tokens", tokens), tokens))
    if answer.repeats_id:
        details.append(_("repeated from an earlier answer"))
    if answer.refused:
        return Step("generator", title, (_("refused"), *details), StepState.IDLE, _ms(took))
    if answer.notice and answer.status != Answer.Status.STOPPED:
        return Step("generator", title, (*details, answer.notice), StepState.FAILED, _("fallback"))
    if answer.status == Answer.Status.STOPPED:
        return Step("generator", title, tuple(details), StepState.IDLE, _("stopped"))
    return Step("generator", title, tuple(details), badge=_ms(took))


def _check(answer: Answer, sentences: Sequence[Sentence]) -> Step:
    title = _("Sentences")
    supported, measured = supported_count(sentences)
    if not measured:
        return Step("check", title, (_("none were measured"),), StepState.OFF, _("off"))
    told = _("%(supported)d of %(measured)d supported") % {"supported": supported, "measured": measured}
    written, total = (answer.timings_ms.get(moment) for moment in ("written", "total"))
    took = total - written if written is not None and total is not None else None
    return Step("check", title, (told,), StepState.OK if supported == measured else StepState.FAILED, _ms(took))


def _status(status: str) -> str:
    return {"failed": _("failed"), "late": _("late"), "off": _("off")}.get(status, status)


def _total(answer: Answer) -> str:
    return _ms(answer.timings_ms.get("total"))


def _ms(milliseconds: float | None) -> str:
    """A duration as the picture shows it; empty when it is not known."""
    if milliseconds is None:
        return ""
    if milliseconds >= 10_000:
        return _("%s s") % number_format(round(milliseconds / 1000, 1), 1)
    digits = 0 if milliseconds >= 10 else 1
    # Rounded here, because number_format cuts digits off.
    return _("%s ms") % number_format(round(milliseconds, digits), digits)
