"""An embedder's session and tokenizers, open in one process."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from retrieval.dense.token_vectors import TokenEncoding, Tokens
from retrieval.encoders.session import well_formed
from retrieval.exceptions import EmbeddingFailed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tokenizers import Encoding, Tokenizer

    from retrieval.types import Vectors

HEAD_CHARACTERS, CHARACTERS_A_TOKEN = 20_000, 40
"""A text is cut here before it is tokenized: its tokens end long before, and a huge text costs no memory."""

COUNTED_AT_ONCE = 256

HIDDEN_OUTPUTS = ("last_hidden_state", "token_embeddings")
"""What exporters call the last layer."""

WORD_MARKS = ("▁", "Ġ")
"""How pieces begin that begin a word, where it is not WordPiece that cut them."""


@dataclass(frozen=True, slots=True)
class EmbeddingRuntime:
    """``head`` pools the tokens of a ``session`` that is an export, whose output ``hidden`` is its last layer.

    ``truncating`` cuts a text to what the model reads at once, ``counter`` does not.
    """

    session: Any
    head: Any
    inputs: Mapping[str, type[np.signedinteger[Any]]]
    truncating: Tokenizer
    counter: Tokenizer
    lowercase: bool
    max_tokens: int
    hidden: str
    is_wordpiece: bool

    def encode(self, text: str, prompt: str = "") -> Encoding:
        read = well_formed(prompt + text[: max(HEAD_CHARACTERS, CHARACTERS_A_TOKEN * self.max_tokens)])
        return self.truncating.encode(read.lower() if self.lowercase else read)

    def count(self, texts: Sequence[str]) -> list[int]:
        return [
            len(encoding.ids)
            for start in range(0, len(texts), COUNTED_AT_ONCE)
            for encoding in self.counter.encode_batch_fast(
                [well_formed(text) for text in texts[start : start + COUNTED_AT_ONCE]], add_special_tokens=False
            )
        ]

    def sentence(self, text: str, prompt: str) -> Vectors:
        return self.run(["sentence_embedding"], self.encode(text, prompt))[0]

    def tokens(self, text: str, prompt: str) -> TokenEncoding:
        encoding = self.encode(text, prompt)
        sentence, vectors = self.run(["sentence_embedding", "token_embeddings"], encoding)
        tokens, places = self.own_tokens(encoding, text, prompt)
        vectors = vectors[places]
        lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float32).tiny)
        return TokenEncoding(
            vector=sentence,
            tokens=tokens,
            token_vectors=vectors / lengths,
        )

    def own_tokens(self, encoding: Encoding, text: str, prompt: str) -> tuple[Tokens, slice]:
        """The text's tokens, without special ones and the prompt's, and where they stand among all.

        Pieces are written as WordPiece writes them, whatever the tokenizer: "##" before what goes on with a word.
        """
        special = encoding.special_tokens_mask
        start, end = 0, len(special)
        while start < end and (special[start] or (prompt and encoding.offsets[start][1] <= len(prompt))):
            start += 1
        while end > start and special[end - 1]:
            end -= 1
        spans = encoding.offsets[start:end]
        if prompt:
            spans = [(max(0, left - len(prompt)), max(0, right - len(prompt))) for left, right in spans]
        if self.is_wordpiece:
            pieces = encoding.tokens[start:end]
        else:
            bare = [not piece.strip("".join(WORD_MARKS)) for piece in encoding.tokens[start:end]]
            spans = [
                (left, left) if is_bare else _without_blanks(text, left, right)
                for (left, right), is_bare in zip(spans, bare, strict=True)
            ]
            pieces = [_wordpiece(text, *span) for span in spans]
        return Tokens(pieces=tuple(pieces), spans=tuple(spans)), slice(start, end)

    def run(self, outputs: list[str], encoding: Encoding) -> list[Vectors]:
        """The outputs named, without the dimension of the one text. Raises: EmbeddingFailed."""
        known = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
        }
        try:
            feed = {name: np.array([known[name]], of) for name, of in self.inputs.items()}
            if self.head is None:
                arrays = self.session.run(outputs, feed)
            else:
                arrays = self.head.run(outputs, {"hidden": self.session.run([self.hidden], feed)[0]})
        except Exception as error:  # ONNX Runtime's exceptions have no other base
            raise EmbeddingFailed(
                f"ONNX Runtime could not embed a text of {len(encoding.ids)} tokens: {error}"
            ) from error
        if not all(np.isfinite(array).all() for array in arrays):
            raise EmbeddingFailed("The embedding model gave a vector that is not finite; its files are damaged.")
        return [array[0] for array in arrays]


def hidden_output(session: Any) -> str:
    """The name of an export's last layer, shape (batch, tokens, width). Raises: ValueError when it has none."""
    outputs = {each.name: each.shape for each in session.get_outputs()}
    known = [name for name in HIDDEN_OUTPUTS if name in outputs]
    found = known or [name for name, shape in outputs.items() if len(shape) == 3]
    if not found:
        raise ValueError(f"it gives {', '.join(outputs)}, and no vector for each token")
    return found[0]


def is_wordpiece(tokenizer: Tokenizer) -> bool:
    return not any(mark in piece for piece in tokenizer.encode("a a").tokens for mark in WORD_MARKS)


def _without_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start : start + 1].isspace():
        start += 1
    return start, end


def _wordpiece(text: str, start: int, end: int) -> str:
    """The characters as a WordPiece in lower case: after "##" when they go on with a word."""
    goes_on = start > 0 and text[start - 1 : start].isalnum() and text[start : start + 1].isalnum()
    return ("##" if goes_on else "") + text[start:end].lower()


def multiplies_bytes_exactly() -> bool:
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
