"""Fit what the site judges by similarity to the configured embedder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError

from retrieval.dense.calibration.fitting import SHOWN_QUANTILES, Fit, fit_thresholds
from retrieval.dense.calibration.scales import BUILT_IN_NAMES
from retrieval.exceptions import RetrievalError
from retrieval.management.prepared import PreparedCommand
from retrieval.management.progress import ProgressBar

NAMES = sorted(BUILT_IN_NAMES)[-1].partition("/")[0]


class Command(PreparedCommand):
    help = (
        "Fit the scale of the configured embedder's similarities on this site's documents, so that the thresholds "
        "that were chosen for the built-in model mean the same with it. Run it with the new settings before "
        "`reembed`, or at any time after; a running site takes it over within half a minute."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        bar = ProgressBar(self.stderr)
        try:
            fitted = fit_thresholds(bar.show)
        except (RetrievalError, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error
        finally:
            bar.clear()
        self.stdout.write(_tell(fitted))


def _tell(fitted: Fit) -> str:
    shown = " / ".join(map(str, SHOWN_QUANTILES))
    rows = [
        [
            each.compared.value,
            str(each.pairs),
            _in_words(each.own),
            _in_words(each.fitted),
            _in_words(each.reference),
            f"{each.off:.2f}",
        ]
        for each in fitted.scales
    ]
    head = ["compared", "pairs", "its cosines", "fitted", NAMES, "off"]
    widths = [max(len(row[place]) for row in [head, *rows]) for place in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [head, *rows]]
    return "\n".join(
        [
            f"{fitted.name}, fitted on {fitted.passages} passages of this site.",
            f"Quantiles in per cent: {shown}; off: how far they are apart, at most, on passages that were left out.",
            "",
            *(line.rstrip() for line in lines),
            "",
            f"The passage that answers a question is nearer than another one for {fitted.separation:.1%} of the "
            f"questions; with {NAMES} for {fitted.reference_separation:.1%}.",
        ]
    )


def _in_words(quantiles: Sequence[float]) -> str:
    return " / ".join(f"{value:.2f}" for value in quantiles)
