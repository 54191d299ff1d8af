"""Open ONNX Runtime's sessions, and an embedder's session and tokenizer."""

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


def open_session(source: str | bytes) -> Any:
    """Open a session whose calls use their caller's thread only."""
    # Telemetry starts a thread, for which a fork waits at its end.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    # The import takes tens of MiB.
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.x64quantprecision", "0" if _multiplies_bytes_exactly() else "1")
    # Memory patterns are stored for each length of text, without a gain in speed.
    options.enable_mem_pattern = False
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    give_memory_back()
    return session


class OpenedInProcess:
    """A base class of objects that a process opens once, at first use, under ``_lock``.

    A forked process gets a new lock, because one locked by another thread would never open. It shares only ``_shared``.
    """

    def __init__(self) -> None:
        self._runtime: Any = None
        self._shared: Any = None
        self._lock = threading.Lock()
        _opened_in_process.add(self)


_opened_in_process: weakref.WeakSet[OpenedInProcess] = weakref.WeakSet()


def _reset_after_fork() -> None:
    for opened in _opened_in_process:
        opened._lock = threading.Lock()
        opened._runtime = opened._shared


os.register_at_fork(after_in_child=_reset_after_fork)


def give_memory_back() -> None:
    """Return freed memory to the system: glibc keeps tens of MiB after a model was opened."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def text_inputs(session: Any) -> dict[str, Integer]:
    """Return the types of a model's inputs by name. Raises: ValueError if it does not read tokens."""
    inputs = {each.name: _INPUT_TYPES.get(each.type) for each in session.get_inputs()}
    if "input_ids" not in inputs or not inputs.keys() <= TEXT_INPUTS:
        raise ValueError(f"it asks for {', '.join(inputs)}, not for tokens alone")
    if unusable := [name for name, of in inputs.items() if of is None]:
        raise ValueError(f"it wants {unusable[0]} in other numbers than integers")
    return {name: of for name, of in inputs.items() if of is not None}


def feed_of(encoding: Encoding, inputs: Mapping[str, Integer]) -> dict[str, npt.NDArray[np.integer[Any]]]:
    """Return a model's inputs for one text or pair: arrays of shape (1, tokens)."""
    known = {
        "input_ids": encoding.ids,
        "attention_mask": encoding.attention_mask,
        "token_type_ids": encoding.type_ids,
        "position_ids": range(len(encoding.ids)),
    }
    return {name: np.array([known[name]], of) for name, of in inputs.items()}


def well_formed(text: str) -> str:
    """Replace lone surrogates by "?": tokenizers and servers refuse them."""
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
    """Return the vector that ``pool`` makes of the model's output for one text. Raises: EmbeddingFailed."""
    try:
        ((found,),) = session.run(outputs, feed)
    except Exception as error:  # ONNX Runtime's exceptions have no other base.
        raise EmbeddingFailed(f"ONNX Runtime could not embed a text of {tokens} tokens: {error}") from error
    vector = pool(found)
    if not np.isfinite(vector).all():
        raise EmbeddingFailed("The embedding model gave a vector that is not finite; its files are damaged.")
    return vector


@dataclass(frozen=True, slots=True)
class EmbeddingRuntime:
    """An open session with its tokenizer, which embeds texts one at a time.

    ``finish`` makes a unit vector of ``output`` without its first axis: the last layer, shape (1, tokens, width), or a
    sentence vector, shape (1, width).
    """

    session: Any
    inputs: Mapping[str, type[np.signedinteger[Any]]]
    output: str
    finish: Callable[[Vectors], Vectors]
    tokenizer: Tokenizer
    lowercase: bool
    max_tokens: int

    def encode(self, text: str, prompt: str) -> Encoding:
        read = well_formed(prompt + text[: max(HEAD_CHARACTERS, CHARACTERS_A_TOKEN * self.max_tokens)])
        encoding = self.tokenizer.encode(read.lower() if self.lowercase else read, add_special_tokens=False)
        # `count` shares this tokenizer, because a large vocabulary takes hundreds of MiB.
        encoding.truncate(self.max_tokens - self.tokenizer.num_special_tokens_to_add(is_pair=False))
        return self.tokenizer.post_process(encoding)

    def count(self, texts: Sequence[str]) -> list[int]:
        return [
            len(encoding.ids)
            for start in range(0, len(texts), COUNTED_AT_ONCE)
            for encoding in self.tokenizer.encode_batch_fast(
                [well_formed(text) for text in texts[start : start + COUNTED_AT_ONCE]], add_special_tokens=False
            )
        ]

    def sentence(self, text: str, prompt: str) -> Vectors:
        encoding = self.encode(text, prompt)
        feed = feed_of(encoding, self.inputs)
        return embed(self.session, [self.output], feed, len(encoding.ids), self.finish)


def hidden_output(session: Any) -> str | None:
    """Return the name of the last layer, shape (batch, tokens, width); None if missing."""
    outputs = {each.name: each.shape for each in session.get_outputs()}
    known = [name for name in HIDDEN_OUTPUTS if name in outputs]
    return next(iter(known or [name for name, shape in outputs.items() if len(shape) == 3]), None)


def sentence_output(session: Any) -> str | None:
    """Return the name of the sentence vector; None if missing."""
    return next((each.name for each in session.get_outputs() if each.name == SENTENCE_OUTPUT), None)


def _multiplies_bytes_exactly() -> bool:
    """Return whether int8 products do not saturate by themselves.

    They do on x86 without VNNI; ONNX Runtime's exact way costs half a millisecond a query. An unknown processor gets
    the exact way.
    """
    if platform.machine().lower() not in {"x86_64", "amd64", "i386", "i686"}:
        return True
    try:
        flags = set(Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split())
    except OSError:
        return False
    return not flags.isdisjoint({"avx512_vnni", "avx_vnni"})
