"""ONNX Runtime as this site's models use it: its sessions, and an embedder's session and tokenizers in one process."""

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

from retrieval.exceptions import EmbeddingFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tokenizers import Encoding, Tokenizer

    from retrieval.types import Vectors

    Integer = type[np.signedinteger[Any]]

_INPUT_TYPES: Mapping[str, Integer] = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
TEXT_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids", "position_ids"})


def open_session(source: str | bytes) -> Any:
    """A session whose calls each use the one thread they come from, so that callers decide how many run at once."""
    # It would report to its maker, from a thread that a fork lacks and waits for at its end.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    # An import of tens of MiB that a process which runs no model does not pay.
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.x64quantprecision", "0" if _multiplies_bytes_exactly() else "1")
    # A pattern is planned and kept for each length of text: memory that grows for no gain in speed.
    options.enable_mem_pattern = False
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    give_memory_back()
    return session


class OpenedInProcess:
    """A base class of what a process opens once, at first use, with ``_lock`` held.

    In a forked process the lock is new, for one held by another thread would never open, and what was opened is opened
    again, unless it was ``_shared``.
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


def feed_of(encoding: Encoding, inputs: Mapping[str, Integer]) -> dict[str, Any]:
    """What a model with these inputs is given of one text, or pair: arrays of shape (1, tokens)."""
    known = {
        "input_ids": encoding.ids,
        "attention_mask": encoding.attention_mask,
        "token_type_ids": encoding.type_ids,
        "position_ids": range(len(encoding.ids)),
    }
    return {name: np.array([known[name]], of) for name, of in inputs.items()}


def well_formed(text: str) -> str:
    """The text with "?" for lone surrogates, which JSON can smuggle in and neither tokenizers nor servers take."""
    return text.encode("utf-8", "replace").decode("utf-8")


# An embedder's session and tokenizers, open in one process.

HEAD_CHARACTERS, CHARACTERS_A_TOKEN = 20_000, 40
"""A text is cut here before it is tokenized: its tokens end long before, and a huge text costs no memory."""

COUNTED_AT_ONCE = 256

HIDDEN_OUTPUTS = ("last_hidden_state", "token_embeddings")
"""What exporters, and this site's own graphs, call the last layer."""
SENTENCE_OUTPUT = "sentence_embedding"


def embed(
    session: Any,
    outputs: Sequence[str] | None,
    feed: Mapping[str, Any],
    tokens: int,
    pool: Callable[[Vectors], Vectors] = lambda found: found,
) -> Vectors:
    """The vector that ``pool`` makes of a model's one output for one text. Raises: EmbeddingFailed."""
    try:
        ((found,),) = session.run(outputs, feed)
    except Exception as error:  # ONNX Runtime's exceptions have no other base
        raise EmbeddingFailed(f"ONNX Runtime could not embed a text of {tokens} tokens: {error}") from error
    vector = pool(found)
    if not np.isfinite(vector).all():
        raise EmbeddingFailed("The embedding model gave a vector that is not finite; its files are damaged.")
    return vector


@dataclass(frozen=True, slots=True)
class EmbeddingRuntime:
    """An open session with its tokenizer, which embeds texts one at a time.

    ``finish`` makes a unit vector of the session's output with the name ``output``: its last layer, shape (1, tokens,
    width), or a sentence vector, shape (1, width), without the first axis.
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
        # The text is cut here, because `count` shares this tokenizer: a large vocabulary takes hundreds of MiB.
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
    """Return the name of an export's last layer, shape (batch, tokens, width); None if it has none."""
    outputs = {each.name: each.shape for each in session.get_outputs()}
    known = [name for name in HIDDEN_OUTPUTS if name in outputs]
    return next(iter(known or [name for name, shape in outputs.items() if len(shape) == 3]), None)


def sentence_output(session: Any) -> str | None:
    """Return the name of an export's vector of the whole text, after all modules; None if it has none."""
    return next((each.name for each in session.get_outputs() if each.name == SENTENCE_OUTPUT), None)


def _multiplies_bytes_exactly() -> bool:
    """Whether sums of int8 products stay below saturation without help.

    On x86 processors without VNNI they do not; ONNX Runtime's exact way costs a query half a millisecond and gives
    the vectors that the others give. A processor that cannot be asked gets the exact way.
    """
    if platform.machine().lower() not in {"x86_64", "amd64", "i386", "i686"}:
        return True
    try:
        flags = set(Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split())
    except OSError:
        return False
    return not flags.isdisjoint({"avx512_vnni", "avx_vnni"})
