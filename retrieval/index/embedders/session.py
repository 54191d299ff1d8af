"""Load models with ONNX Runtime, and embed texts with them."""

from __future__ import annotations

import ctypes
import os
import platform
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from retrieval.exceptions import EmbeddingFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tokenizers import Encoding, Tokenizer

    from retrieval.types import Vectors

    Integer = type[np.signedinteger[Any]]

_INPUT_TYPES: Mapping[str, Integer] = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
TEXT_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids", "position_ids"})


def open_onnx_session(source: str | bytes) -> Any:
    """Return an ONNX Runtime session for the model, given as a path or as bytes. It starts no threads of its own."""
    # A telemetry thread would delay the end of a forked process.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    # Imported here because it takes tens of MiB.
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.x64quantprecision", "0" if _multiplies_bytes_exactly() else "1")
    # Memory patterns take memory for each length of text, and save no time.
    options.enable_mem_pattern = False
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    release_freed_memory()
    return session


class PerProcessModel:
    """Base class of models that each process loads once, when they are first used.

    A forked process uses its parent's model if this is in ``_shared``. Otherwise, it loads its own.
    """

    def __init__(self) -> None:
        self._runtime: Any = None
        self._shared: Any = None
        self._lock = threading.Lock()
        _opened_in_process.add(self)


_opened_in_process: weakref.WeakSet[PerProcessModel] = weakref.WeakSet()


def _reset_after_fork() -> None:
    for opened in _opened_in_process:
        opened._lock = threading.Lock()
        opened._runtime = opened._shared


os.register_at_fork(after_in_child=_reset_after_fork)


def release_freed_memory() -> None:
    """Return freed memory to the system, because glibc keeps tens of MiB after a model is loaded."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def read_input_types(session: Any) -> dict[str, Integer]:
    """Return the types of a model's inputs by name. Raises: ValueError if it needs other inputs than tokens."""
    inputs = {each.name: _INPUT_TYPES.get(each.type) for each in session.get_inputs()}
    if "input_ids" not in inputs or not inputs.keys() <= TEXT_INPUTS:
        raise ValueError(f"it asks for {', '.join(inputs)}, not for tokens alone")
    if unusable := [name for name, of in inputs.items() if of is None]:
        raise ValueError(f"it wants {unusable[0]} in other numbers than integers")
    return {name: of for name, of in inputs.items() if of is not None}


def build_model_inputs(encoding: Encoding, inputs: Mapping[str, Integer]) -> dict[str, npt.NDArray[np.integer[Any]]]:
    """Return a model's inputs for one text or pair: arrays of shape (1, tokens)."""
    known = {
        "input_ids": encoding.ids,
        "attention_mask": encoding.attention_mask,
        "token_type_ids": encoding.type_ids,
        "position_ids": range(len(encoding.ids)),
    }
    return {name: np.array([known[name]], of) for name, of in inputs.items()}


def replace_surrogates(text: str) -> str:
    """Return the text with "?" for lone surrogates, which tokenizers and servers refuse."""
    return text.encode("utf-8", "replace").decode("utf-8")


HEAD_CHARACTERS, CHARACTERS_A_TOKEN = 20_000, 40
"""A text is cut here before tokenization: a huge text then costs no memory, and its first tokens end long before."""

COUNTED_AT_ONCE = 256

HIDDEN_OUTPUTS = ("last_hidden_state", "token_embeddings")
"""Exporters and this site's graphs use these names for the last layer."""
SENTENCE_OUTPUT = "sentence_embedding"


def embed(
    session: Any,
    outputs: Sequence[str] | None,
    feed: Mapping[str, Any],
    tokens: int,
    pool: Callable[[Vectors], Vectors] = lambda found: found,
) -> Vectors:
    """Run the model on one text, and return the text's vector. Raises: EmbeddingFailed.

    ``pool`` makes the vector from the model's output; the default returns the output unchanged. ``tokens``, the
    text's number of tokens, is for the error message.
    """
    try:
        ((found,),) = session.run(outputs, feed)
    except Exception as error:  # ONNX Runtime's exceptions have no common base class.
        raise EmbeddingFailed(f"ONNX Runtime could not embed a text of {tokens} tokens: {error}") from error
    vector = pool(found)
    if not np.isfinite(vector).all():
        raise EmbeddingFailed("The embedding model gave a vector that is not finite; its files are damaged.")
    return vector


@dataclass(frozen=True, slots=True)
class EmbeddingRuntime:
    """An open ONNX session with its tokenizer. It embeds one text at a time.

    ``finish`` turns the ``output``, shape (tokens, width) or (width,), into a unit vector.
    """

    session: Any
    inputs: Mapping[str, type[np.signedinteger[Any]]]
    output: str
    finish: Callable[[Vectors], Vectors]
    tokenizer: Tokenizer
    lowercase: bool
    max_tokens: int

    def encode(self, text: str, prompt: str) -> Encoding:
        read = replace_surrogates(prompt + text[: max(HEAD_CHARACTERS, CHARACTERS_A_TOKEN * self.max_tokens)])
        encoding = self.tokenizer.encode(read.lower() if self.lowercase else read, add_special_tokens=False)
        # The tokenizer itself does not truncate, because `count` uses it too.
        encoding.truncate(self.max_tokens - self.tokenizer.num_special_tokens_to_add(is_pair=False))
        return self.tokenizer.post_process(encoding)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [
            len(encoding.ids)
            for start in range(0, len(texts), COUNTED_AT_ONCE)
            for encoding in self.tokenizer.encode_batch_fast(
                [replace_surrogates(text) for text in texts[start : start + COUNTED_AT_ONCE]], add_special_tokens=False
            )
        ]

    def embed_sentence(self, text: str, prompt: str) -> Vectors:
        encoding = self.encode(text, prompt)
        feed = build_model_inputs(encoding, self.inputs)
        return embed(self.session, [self.output], feed, len(encoding.ids), self.finish)


def find_hidden_state_output(session: Any) -> str | None:
    """Return the name of the output with the last layer, shape (batch, tokens, width); None if there is none."""
    outputs = {each.name: each.shape for each in session.get_outputs()}
    known = [name for name in HIDDEN_OUTPUTS if name in outputs]
    return next(iter(known or [name for name, shape in outputs.items() if len(shape) == 3]), None)


def find_sentence_output(session: Any) -> str | None:
    """Return the name of the output with the sentence vector; None if there is none."""
    return next((each.name for each in session.get_outputs() if each.name == SENTENCE_OUTPUT), None)


def _multiplies_bytes_exactly() -> bool:
    """Return whether the processor multiplies int8 numbers without saturation; False if unknown."""
    if platform.machine().lower() not in {"x86_64", "amd64", "i386", "i686"}:
        return True
    try:
        flags = set(Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split())
    except OSError:
        return False
    return not flags.isdisjoint({"avx512_vnni", "avx_vnni"})
