"""Questions that the demo documents answer, each worded so that no earlier answer can be repeated."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count

from bench.reliability.running_site import ROOT


def distinct_questions(mark: str = "") -> Iterator[str]:
    """Without end, and no two alike."""
    texts = [each["question"] for each in json.loads((ROOT / "demo" / "questions.json").read_text())["questions"]]
    for number in count():
        yield f"{texts[number % len(texts)][:400]} ({mark}{number})"
