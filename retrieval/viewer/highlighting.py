"""Source code coloured in the sandbox: some lexers take for ever over text that was made for it. PURE."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, BinaryIO

from retrieval import sandbox
from retrieval.metrics import CODE_NOT_COLOURED
from retrieval.viewer.code import COLOURED_CHARACTERS, KINDS, Run, coloured

logger = logging.getLogger(__name__)

# A page waits for it.
LIMITS = sandbox.Limits(memory_mib=256, seconds=1.5, output_bytes=20_000_000)


def coloured_in_sandbox(text: str, filename: str) -> Sequence[Run]:
    """As :func:`retrieval.viewer.code.coloured`, in a process of its own; one run without a kind if that fails."""
    plain = [(0, len(text), "")]
    if len(text) > COLOURED_CHARACTERS:
        return plain
    try:
        value, _ = sandbox.run(
            f"{__name__}:colour", text.encode("utf-8"), {"filename": filename}, LIMITS, preload=("pygments.lexers",)
        )
        return _checked(value, len(text))
    except (sandbox.SandboxError, ValueError, TypeError) as error:
        CODE_NOT_COLOURED.inc()
        logger.warning("source code shown without colours", extra={"source": filename, "reason": str(error)})
        return plain


def colour(file: BinaryIO, filename: str) -> tuple[list[Run], bytes]:
    """The job. What comes back is JSON: tuples become lists."""
    return list(coloured(file.read().decode("utf-8"), filename)), b""


def _checked(value: Any, length: int) -> list[Run]:
    """Raises: ValueError or TypeError unless the runs follow each other from the beginning to the end of the text."""
    runs: list[Run] = []
    position = 0
    for start, end, kind in value:
        if start != position or not start <= end <= length or (kind and kind not in KINDS):
            raise ValueError("The colours came back damaged.")
        runs.append((start, end, kind))
        position = end
    if position != length:
        raise ValueError("The colours do not cover the text.")
    return runs
