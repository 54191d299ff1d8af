from __future__ import annotations

from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError

from core.exceptions import RagsiteError
from core.progress import ProgressBar
from retrieval.index.closeness import fit_thresholds
from retrieval.management.prepared import MigratedDatabaseCommand


class Command(MigratedDatabaseCommand):
    help = (
        "Measure on this site's documents on which scale the configured embedder's similarities lie, so that "
        "the site can tell with it whether the documents answer a question. Run it with the new settings before "
        "`reembed`, or at any time after; a running site takes it over within half a minute."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        bar = ProgressBar(self.stderr)
        try:
            fitted = fit_thresholds(bar.show)
        except (RagsiteError, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error
        finally:
            bar.clear()
        scale = fitted.calibration
        self.stdout.write(
            f"{fitted.name}, fitted on {fitted.passages} passages of this site.\n"
            f"Typical cosine of a question with a passage that answers it: {scale.answering:.3f}; with another one: "
            f"{scale.unrelated:.3f}; of two passages: {scale.unrelated_texts:.3f}.\n"
            f"The passage that answers a question is nearer than another one for {fitted.separation:.1%} of the "
            "questions."
        )
