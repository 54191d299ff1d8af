"""ONNX Runtime as this site's models use it."""

from __future__ import annotations

from typing import Any


def open_session(source: str | bytes, *, saturates: bool) -> Any:
    """A session whose calls each use the one thread they come from, so that callers decide how many run at once.

    ``saturates`` takes the exact way for processors on which sums of int8 products saturate without it.
    """
    # An import of tens of MiB that a process which runs no model does not pay.
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.x64quantprecision", "1" if saturates else "0")
    # A pattern is planned and kept for each length of text: memory that grows for no gain in speed.
    options.enable_mem_pattern = False
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def well_formed(text: str) -> str:
    """The text with "?" for lone surrogates, which JSON can smuggle in and neither tokenizers nor servers take."""
    return text.encode("utf-8", "replace").decode("utf-8")
