"""ONNX Runtime as this site's models use it."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    Integer = type[np.signedinteger[Any]]

_INPUT_TYPES: Mapping[str, Integer] = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
TEXT_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})


def open_session(source: str | bytes, *, saturates: bool) -> Any:
    """A session whose calls each use the one thread they come from, so that callers decide how many run at once.

    ``saturates`` takes the exact way for processors on which sums of int8 products saturate without it.
    """
    # It would report to its maker, from a thread that a fork lacks and waits for at its end.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    # An import of tens of MiB that a process which runs no model does not pay.
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.x64quantprecision", "1" if saturates else "0")
    # A pattern is planned and kept for each length of text: memory that grows for no gain in speed.
    options.enable_mem_pattern = False
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    give_memory_back()
    return session


def give_memory_back() -> None:
    """What opening a model took and freed, tens of MiB, which glibc would keep. Does nothing with others."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def text_inputs(session: Any) -> dict[str, Integer]:
    """The types of a model's inputs by name, for a model that reads tokens. Raises: ValueError for another one."""
    inputs = {each.name: _INPUT_TYPES.get(each.type) for each in session.get_inputs()}
    if "input_ids" not in inputs or not inputs.keys() <= TEXT_INPUTS:
        raise ValueError(f"it asks for {', '.join(inputs)}, not for tokens alone")
    if unusable := [name for name, of in inputs.items() if of is None]:
        raise ValueError(f"it wants {unusable[0]} in other numbers than integers")
    return {name: of for name, of in inputs.items() if of is not None}


def well_formed(text: str) -> str:
    """The text with "?" for lone surrogates, which JSON can smuggle in and neither tokenizers nor servers take."""
    return text.encode("utf-8", "replace").decode("utf-8")
