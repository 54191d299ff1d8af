"""An answer's question searched again with one setting changed, to see what difference it makes. Saves nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from asgiref.sync import async_to_sync
from django.utils.translation import gettext as _

from chat import conf
from chat.conversations.history import turns_before
from chat.debugging.replay.differences import Change, compare_words
from chat.debugging.trace import read_trace
from chat.exceptions import GenerationFailed, NoAnswer
from chat.models import Answer
from chat.protocols import AnswerGenerator
from chat.types import ContextSource
from retrieval.ranking.profile import ImproperProfile, ProfileSettings
from retrieval.search import profiles
from retrieval.search.comparison import ComparedHit, Part, ProfileComparison, ProfileResult, compare
from retrieval.search.profiles import BUILT_IN, NamedProfile
from retrieval.types import SearchFilters, SearchMethod

logger = logging.getLogger(__name__)

WRITING_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Baseline:
    """What the answer was searched with. ``notice`` says that it was something else, which is there no more."""

    profile: NamedProfile
    notice: str = ""


@dataclass(frozen=True, slots=True)
class PartPair:
    """A part of a passage's score before and after; None on the side where it has none."""

    name: str
    css_class: str
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class Move:
    """A passage that one of the two searches returns. A rank is None where it is not returned; then, ``why`` not."""

    row: ComparedHit
    before: int | None
    after: int | None
    score_before: float | None
    score_after: float | None
    parts: tuple[PartPair, ...]
    why: str = ""

    @property
    def kind(self) -> str:
        """`in`, `out`, `up`, `down` or `same`."""
        if self.before is None or self.after is None:
            return "in" if self.before is None else "out"
        return "same" if self.after == self.before else "up" if self.after < self.before else "down"

    @property
    def places(self) -> int:
        return abs(self.before - self.after) if self.before is not None and self.after is not None else 0


@dataclass(frozen=True, slots=True)
class Written:
    """An answer's text of one side in stretches; only ``error`` where there is none. ``saved``: as it was given."""

    changes: tuple[Change, ...] = ()
    error: str = ""
    saved: bool = False


@dataclass(frozen=True, slots=True)
class Replay:
    """Both searches, passage by passage, and, where asked for, both texts by the generator ``writer``."""

    comparison: ProfileComparison
    moves: tuple[Move, ...]
    writer: str = ""
    texts: tuple[Written, Written] | None = None

    @property
    def before(self) -> ProfileResult:
        return self.comparison.sides[0]

    @property
    def after(self) -> ProfileResult:
        return self.comparison.sides[1]

    def count(self, kind: str) -> int:
        return sum(move.kind == kind for move in self.moves)

    @property
    def moved(self) -> int:
        return self.count("up") + self.count("down")

    @property
    def came_in(self) -> int:
        return self.count("in")

    @property
    def went_out(self) -> int:
        return self.count("out")

    @property
    def stages(self) -> tuple[tuple[str, float | None, float | None], ...]:
        """Milliseconds of each stage before and after, in the order of the later search."""
        first, second = (side.trace.timings_ms if side.trace else {} for side in self.comparison.sides)
        return tuple((name, first.get(name), second.get(name)) for name in {**second, **first})


def baseline_of(answer: Answer) -> Baseline:
    """The settings that the answer was searched with; those in force, with a notice, when they cannot be had."""
    trace = read_trace(answer.trace)
    version, name = answer.profile_version, trace.profile if trace else ""
    notice = ""
    if version is not None:
        try:
            profile = profiles.named(version)
        except ImproperProfile:
            profile = profiles.active_profile()
            notice = _("The search profile of this answer cannot be read any more; this starts from the one in force.")
    elif name in ("", BUILT_IN):
        profile = NamedProfile(BUILT_IN, profiles.built_in_profile())
    else:
        profile = profiles.active_profile()
        if profile.name != name:
            notice = _("The search profile of this answer is gone; this starts from the one in force.")
    if answer.method:
        profile = replace(profile, settings=profile.settings.as_published(SearchMethod(answer.method)))
    return Baseline(profile, notice)


def replay(
    answer: Answer,
    changed: ProfileSettings,
    filters: SearchFilters,
    *,
    baseline: NamedProfile,
    writer: AnswerGenerator | None = None,
) -> Replay:
    """The answer's question searched with ``baseline``, and again with ``changed``; and both answers by ``writer``.

    A search that fails is told in its side, a text that cannot be written in its place.
    """
    history = turns_before(answer)
    after = NamedProfile(baseline.name, changed)
    comparison = compare(answer.question, filters, (baseline, after), history=history)
    texts = None
    if writer is not None:
        texts = _texts(answer, comparison, writer, follows=bool(history))
    return Replay(comparison, _moves(comparison), writer.name if writer else "", texts)


def _moves(comparison: ProfileComparison) -> tuple[Move, ...]:
    """What the later search returns, in its order, then what only the earlier one did."""
    before, after = (_by_chunk(side) for side in comparison.sides)
    returned = [row.candidate.chunk_id for side in reversed(comparison.sides) for row in side.rows]
    return tuple(_move(before.get(pk), after.get(pk)) for pk in dict.fromkeys(returned))


def _by_chunk(side: ProfileResult) -> dict[int, ComparedHit]:
    return {row.candidate.chunk_id: row for row in (*side.dropped, *side.rows)}


def _move(before: ComparedHit | None, after: ComparedHit | None) -> Move:
    rows = [row for row in (before, after) if row is not None]
    missing = before if before is not None and before.candidate.rank is None else None
    missing = after if after is not None and after.candidate.rank is None else missing
    parts: dict[tuple[str, str], list[float | None]] = {}
    for place, row in enumerate((before, after)):
        for part in row.parts if row else ():
            parts.setdefault(_name(part), [None, None])[place] = part.contribution
    return Move(
        row=rows[-1],
        before=before.candidate.rank if before else None,
        after=after.candidate.rank if after else None,
        score_before=before.candidate.score if before else None,
        score_after=after.candidate.score if after else None,
        parts=tuple(PartPair(*name, *values) for name, values in parts.items() if any(values)),
        why=missing.candidate.dropped if missing else "" if len(rows) == 2 else _("no candidate"),
    )


def _name(part: Part) -> tuple[str, str]:
    return part.name, part.css_class


def _texts(
    answer: Answer, comparison: ProfileComparison, writer: AnswerGenerator, *, follows: bool
) -> tuple[Written, Written]:
    """What the writer makes of both contexts; the saved text for the first, where it wrote that one."""
    before, after = comparison.sides
    second = _write_text(writer, _question(answer, after, follows=follows), _sources(after))
    if answer.generator == writer.name and answer.text and not answer.notice:
        first = Written((Change(answer.text),), saved=True)
    else:
        first = _write_text(writer, _question(answer, before, follows=follows), _sources(before))
    if first.error or second.error:
        return first, second
    left, right = compare_words(*("".join(change.text for change in one.changes) for one in (first, second)))
    return replace(first, changes=left), replace(second, changes=right)


def _question(answer: Answer, side: ProfileResult, *, follows: bool) -> str:
    """What is answered: a follow-up as it was rewritten, a misspelt question put right, as when it was answered."""
    done = side.trace.reformulation if side.trace is not None else None
    if side.trace is not None and done is not None and (follows or done.corrected):
        return side.trace.best_query
    return answer.question


def _sources(side: ProfileResult) -> tuple[ContextSource, ...]:
    blocks = side.context.blocks if side.context else ()
    return tuple(ContextSource(marker, block) for marker, block in enumerate(blocks, start=1))


def _write_text(writer: AnswerGenerator, question: str, sources: Sequence[ContextSource]) -> Written:
    if not sources:
        return Written(error=_("There is nothing to answer from."))
    try:
        text = async_to_sync(_write)(writer, question, sources)
    except NoAnswer:
        return Written(error=_("The documents do not answer this question."))
    except (GenerationFailed, TimeoutError) as error:
        logger.warning("A replay could not be written by %s: %s", writer.name, error or "too late")
        return Written(error=_("%s did not write an answer. Try again, or leave the answer out.") % writer.name)
    return Written((Change(text),))


async def _write(writer: AnswerGenerator, question: str, sources: Sequence[ContextSource]) -> str:
    async with asyncio.timeout(WRITING_SECONDS):
        return "".join([piece async for piece in writer.stream(question, sources)]).strip()


def writers() -> dict[str, AnswerGenerator]:
    """Who can write an answer anew, by the name that a form gives them: the model, where there is one, and `quoted`."""
    model, quoting = conf.generator(), conf.fallback()
    return {"quoted": quoting} if model is quoting else {"quoted": quoting, "model": model}
