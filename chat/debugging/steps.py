"""The stages of one answer for the debug panel: their labels, candidates, snippets and sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.utils.formats import number_format
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from chat.models import Answer
from chat.pages.cards import passage_url, plain
from chat.types import AnswerTrace, KnownPassage
from retrieval.search.trace import SearchTrace, StageStatus
from retrieval.types import Candidate, Retriever, RetrieverScore

# The words of a passage around what a search found in it. Pure Python.

Span = tuple[int, int]

FRAGMENT_CHARACTERS = 150
LARGEST_FRAGMENTS = 2
# So much is shown in front of the first match of a fragment.
LEAD_CHARACTERS = 40
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class SnippetPart:
    """A stretch of text; ``marked`` where it matches."""

    text: str
    marked: bool = False


def snippet(text: str, spans: Iterable[Span] = ()) -> tuple[SnippetPart, ...]:
    """The beginning of the text, or, where ``spans`` of it match, up to two fragments that show the first of them.

    ``spans`` are places ``[start, end)`` of the text in any order. The second fragment begins at the first match,
    behind the first fragment, of a word that it does not show. White space is one blank; "…" stands for what is left
    out. Empty for an empty text.
    """
    matches = sorted(span for span in spans if 0 <= span[0] < span[1] <= len(text))
    fragments = _fragments(text, matches) or [_cut(text, 0)]
    pieces: list[SnippetPart] = []
    for number, (start, end) in enumerate(fragments):
        if number or text[:start].strip():
            pieces.append(SnippetPart("… " if not number else " … "))
        pieces += _pieces(text, start, end, matches)
    if text[fragments[-1][1] :].strip():
        pieces.append(SnippetPart(" …"))
    return tuple(piece for piece in pieces if piece.text)


def _fragments(text: str, matches: Sequence[Span]) -> list[Span]:
    fragments: list[Span] = []
    shown: set[str] = set()
    for start, end in matches:
        word = text[start:end].lower()
        if word in shown or len(fragments) == LARGEST_FRAGMENTS:
            continue
        if fragments and start < fragments[-1][1]:
            shown.add(word)
            continue
        fragment = _cut(text, max(start - LEAD_CHARACTERS, fragments[-1][1] if fragments else 0))
        # A match that is longer than a fragment is shown as far as it goes.
        fragments.append((fragment[0], max(fragment[1], min(end, start + FRAGMENT_CHARACTERS))))
        shown.add(word)
    if len(fragments) == 2 and fragments[1][0] - fragments[0][1] < 3:
        return [(fragments[0][0], fragments[1][1])]
    return fragments


def _cut(text: str, start: int) -> Span:
    """A fragment from the word at or behind ``start`` to the end of a word."""
    if start and (space := _SPACE.search(text, start)) and space.start() - start < LEAD_CHARACTERS // 2:
        start = space.end()
    end = min(len(text), start + FRAGMENT_CHARACTERS)
    if end < len(text):
        space_before = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
        end = space_before if space_before > start + FRAGMENT_CHARACTERS // 2 else end
    return start, end


def _pieces(text: str, start: int, end: int, matches: Sequence[Span]) -> list[SnippetPart]:
    pieces = []
    at = start
    for first, last in matches:
        if first < at or first >= end:
            continue
        pieces.append(SnippetPart(_SPACE.sub(" ", text[at:first])))
        pieces.append(SnippetPart(_SPACE.sub(" ", text[first : min(last, end)]), marked=True))
        at = min(last, end)
    pieces.append(SnippetPart(_SPACE.sub(" ", text[at:end])))
    return pieces


# The candidates of a saved search, as rows of a table. Pure Python.

UNKNOWN = KnownPassage(title="", section="", preview="")


@dataclass(frozen=True, slots=True)
class Shown:
    """What the passage of a candidate says, and where it can be read; ``href`` is empty when it is gone.

    ``is_closed`` tells that it is there, and that the viewer may not read it.
    """

    pieces: tuple[SnippetPart, ...] = ()
    href: str = ""
    page: str = ""
    is_closed: bool = False


@dataclass(frozen=True, slots=True)
class ScoreBar:
    """What a retriever said of a candidate, and the bar of its contribution: start and width, in percent."""

    score: RetrieverScore
    start: float
    width: float


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """One candidate. ``added_parts`` are those of its score that have no column: bonus, boosts."""

    candidate: Candidate
    known: KnownPassage
    shown: Shown
    added_parts: tuple[tuple[str, float], ...]
    vector: ScoreBar
    lexical: ScoreBar

    @property
    def added(self) -> float:
        return sum(contribution for _, contribution in self.added_parts)

    @property
    def moved(self) -> int:
        """How many places the reranker took the candidate up."""
        rank, rerank = self.candidate.rank, self.candidate.rerank
        return rerank.rank_before - rank if rerank and rank is not None else 0


def candidate_rows(trace: AnswerTrace, shown: Mapping[int, Shown]) -> tuple[CandidateRow, ...]:
    """The candidates of a trace: those kept by rank, then those dropped by score, ties by chunk id.

    ``shown`` has the passages by chunk id, those that the viewer may not read as closed. A candidate that it lacks is
    gone, and shows the beginning that the trace has kept.
    """
    contributions = [score.contribution for each in trace.candidates for score in each.retrievers.values()]
    largest = max(map(abs, contributions), default=0.0) or 1.0
    ordered = sorted(trace.candidates, key=lambda each: (each.rank is None, each.rank or 0, -each.score, each.chunk_id))
    return tuple(
        _row(each, largest, shown.get(each.chunk_id), trace.passages.get(each.chunk_id, UNKNOWN)) for each in ordered
    )


def used_weights(trace: SearchTrace) -> dict[str, float]:
    """The retrievers' weights for this question, which a method may choose anew each time; else those of the plan."""
    used = {retriever.value: trace.weights.of(retriever) for retriever in Retriever}
    for candidate in trace.candidates:
        scores = candidate.retrievers.items()
        used.update({retriever.value: score.weight for retriever, score in scores if score.score is not None})
    return used


def _row(candidate: Candidate, largest: float, shown: Shown | None, known: KnownPassage) -> CandidateRow:
    parts = (
        ("both retrievers", candidate.bonus),
        *((boost.name, boost.contribution) for boost in candidate.boosts),
    )
    return CandidateRow(
        candidate,
        known,
        shown or Shown(snippet(known.preview)),
        tuple((name, contribution) for name, contribution in parts if contribution),
        vector=_bar(candidate.retrievers[Retriever.VECTOR], largest),
        lexical=_bar(candidate.retrievers[Retriever.LEXICAL], largest),
    )


def _bar(score: RetrieverScore, largest: float) -> ScoreBar:
    """A bar from the middle (50): to the right for what helped, to the left for what cost."""
    width = round(50 * min(1.0, abs(score.contribution) / largest), 1)
    return ScoreBar(score, 50.0 if score.contribution >= 0 else 50.0 - width, width)


# What the stages of an answer are called in the panel.

STAGES = {
    "reformulate": gettext_lazy("reformulate"),
    "classify": gettext_lazy("classify and plan"),
    "legs": gettext_lazy("both retrievers"),
    "vector": gettext_lazy("vector retriever"),
    "lexical": gettext_lazy("lexical retriever"),
    "scores": gettext_lazy("missing scores"),
    "fuse": gettext_lazy("fuse"),
    "rerank": gettext_lazy("rerank"),
    "load": gettext_lazy("load passages"),
    "search": gettext_lazy("search"),
    "context": gettext_lazy("put the context together"),
    "wait": gettext_lazy("wait for the first word"),
    "decide": gettext_lazy("decide that nothing answers"),
    "write": gettext_lazy("write"),
    "check": gettext_lazy("check the sentences"),
    "write and check": gettext_lazy("write and check"),
    "answer": gettext_lazy("answer"),
    "total": gettext_lazy("total"),
}

REASONS = {
    "number": gettext_lazy("a number of it is not in the source"),
    "name": gettext_lazy("a name of it is not in the source"),
    "negation": gettext_lazy("one of them negates what the other says"),
    "words": gettext_lazy("its words are not in the source"),
    "uncited": gettext_lazy("it names no source"),
    "elsewhere": gettext_lazy("another source than the one it names supports it"),
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


# The sentences of an answer and how far their sources bear them out.

PASSAGE_CHARACTERS = 220


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence as it was checked. ``supported`` and ``support`` are None where it could not be measured, and
    ``verbatim`` says that it stands in a source word for word.

    ``best_marker`` is the source that supports it best, ``passage`` its words; ``href`` is empty without one.
    """

    text: str
    markers: tuple[int, ...]
    support: float | None
    supported: bool | None
    reasons: tuple[str, ...]
    best_marker: int | None = None
    passage: str = ""
    href: str = ""
    verbatim: bool = False


def sentences_of(answer: Answer) -> tuple[Sentence, ...]:
    """The checked sentences in the order of the answer; empty when none were checked."""
    sources = {source["marker"]: source for source in answer.sources}
    return tuple(_sentence(answer.text, statement, sources) for statement in answer.statements)


def supported_count(sentences: Sequence[Sentence]) -> tuple[int, int]:
    """How many sentences are supported, and how many were measured."""
    measured = [sentence for sentence in sentences if sentence.supported is not None]
    return sum(bool(sentence.supported) for sentence in measured), len(measured)


def _sentence(text: str, statement: Mapping[str, Any], sources: Mapping[int, Mapping[str, Any]]) -> Sentence:
    best = statement.get("best") or {}
    source = sources.get(best.get("marker", 0))
    passage = href = ""
    if source is not None:
        start, end = best["start"], best["end"]
        words = source["content"][max(0, start - source["start"]) : max(0, end - source["start"])]
        passage = Truncator(plain(words)).chars(PASSAGE_CHARACTERS)
        href = passage_url(source["document"]["id"], start, end)
    return Sentence(
        text=plain(text[statement["start"] : statement["end"]]),
        markers=tuple(statement.get("markers", ())),
        support=statement.get("support"),
        supported=statement.get("supported"),
        reasons=tuple(map(reason_label, statement.get("reasons", ()))),
        best_marker=best.get("marker"),
        passage=passage,
        href=href,
        verbatim=statement.get("verbatim", False),
    )


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
