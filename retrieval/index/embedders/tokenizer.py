"""The tokenizer of a published model: from its tokenizer.json, or from the vocabulary of an older one."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrieval.index.embedders.model_files import TOKENIZER, read_object

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# A sentencepiece model file: a protocol buffer, of which the pieces and the normalization are read.
#
# Source: sentencepiece_model.proto of Kudo and Richardson, "SentencePiece", EMNLP 2018.

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# Field numbers: in the file, in a piece, in the normalizer's and the trainer's description.
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_PIECE_TEXT, _PIECE_SCORE = 1, 2
_CHARACTER_MAP = 2
_MODEL_TYPE, _UNIGRAM = 3, 1


@dataclass(frozen=True, slots=True)
class SentencePieces:
    """``pieces`` with their scores, in the order of their numbers; ``normalization`` is the compiled character map."""

    pieces: list[tuple[str, float]]
    normalization: bytes


def read_sentencepiece(content: bytes) -> SentencePieces:
    """Raises: ValueError for what is no such file, or not one of unigrams."""
    pieces, normalization = [], b""
    try:
        for number, value in _fields(content):
            if number == _PIECES and isinstance(value, bytes):
                fields = dict(_fields(value))
                text, score = fields[_PIECE_TEXT], fields.get(_PIECE_SCORE, 0.0)
                if not isinstance(text, bytes):
                    raise ValueError("a piece without text")
                pieces.append((text.decode("utf-8"), float(score)))
            elif number == _TRAINER and isinstance(value, bytes):
                if dict(_fields(value)).get(_MODEL_TYPE, _UNIGRAM) != _UNIGRAM:
                    raise ValueError("another kind than unigrams")
            elif number == _NORMALIZER and isinstance(value, bytes):
                found = dict(_fields(value)).get(_CHARACTER_MAP, b"")
                normalization = found if isinstance(found, bytes) else b""
    except (ValueError, KeyError, IndexError, struct.error) as error:
        raise ValueError(f"the sentencepiece model cannot be read: {error}") from error
    if not pieces:
        raise ValueError("the sentencepiece model holds no pieces")
    return SentencePieces(pieces, normalization)


def _fields(message: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """Number and value of each field, in order."""
    place = 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    while place < len(message):
        key = varint()
        kind = key & 7
        if kind == _VARINT:
            yield key >> 3, varint()
        elif kind == _BYTES:
            length = varint()
            if place + length > len(message):
                raise ValueError("it ends too early")
            yield key >> 3, message[place : place + length]
            place += length
        elif kind == _FIXED32:
            yield key >> 3, struct.unpack_from("<f", message, place)[0]
            place += 4
        elif kind == _FIXED64:
            place += 8
        else:
            raise ValueError("it is no protocol buffer")


WORDPIECES, BYTE_PAIRS, MERGES, SENTENCEPIECES = "vocab.txt", "vocab.json", "merges.txt", "sentencepiece.bpe.model"
TOKENIZER_CONFIG, SPECIAL_TOKENS = "tokenizer_config.json", "special_tokens_map.json"
TOKENIZER_FILES = (TOKENIZER, WORDPIECES, BYTE_PAIRS, MERGES, SENTENCEPIECES, TOKENIZER_CONFIG, SPECIAL_TOKENS)


def tokenizer_files(folder: Path) -> tuple[Path, ...]:
    """The files that :func:`load_tokenizer` reads there."""
    alone = folder / TOKENIZER
    files = [alone] if alone.is_file() else [folder / name for name in TOKENIZER_FILES]
    return tuple(file for file in files if file.is_file())


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer, without truncation and padding.

    Without a tokenizer.json: WordPiece from vocab.txt as BERT and MPNet use it, byte pairs from vocab.json and
    merges.txt as RoBERTa does, and XLM-RoBERTa's unigrams from sentencepiece.bpe.model.

    Raises: ValueError.
    """
    # An import of tens of MiB that a process which reads no text does not pay.
    from tokenizers import Tokenizer

    try:
        if (folder / TOKENIZER).is_file():
            tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        elif (folder / WORDPIECES).is_file():
            tokenizer = _wordpiece(folder)
        elif (folder / BYTE_PAIRS).is_file() and (folder / MERGES).is_file():
            tokenizer = _byte_pairs(folder)
        elif (folder / SENTENCEPIECES).is_file():
            tokenizer = _sentencepiece(folder / SENTENCEPIECES)
        else:
            raise ValueError(f"the folder {folder} has no {TOKENIZER}")
    except ValueError:
        raise
    except Exception as error:  # the tokenizer's library raises nothing more precise
        raise ValueError(f"the tokenizer in {folder} cannot be read: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def longest_text(folder: Path) -> int | None:
    """How many tokens the tokenizer's description allows; None when it does not say."""
    limit = read_object(folder / TOKENIZER_CONFIG).get("model_max_length")
    # Published files write 10^30 for "no limit".
    return int(limit) if isinstance(limit, int | float) and 0 < limit < 1_000_000 else None


def _special_tokens(folder: Path, defaults: dict[str, str]) -> dict[str, str]:
    """By role ("cls_token"): what the folder names, else the defaults."""
    named = defaults | read_object(folder / TOKENIZER_CONFIG) | read_object(folder / SPECIAL_TOKENS)
    # Some files hold a token, some its description.
    contents = {role: value["content"] if isinstance(value := named[role], dict) else value for role in defaults}
    return {role: str(content or defaults[role]) for role, content in contents.items()}


def _wordpiece(folder: Path) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    described = read_object(folder / TOKENIZER_CONFIG)
    special = _special_tokens(
        folder, {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
    )
    tokenizer = Tokenizer(models.WordPiece.from_file(str(folder / WORDPIECES), unk_token=special["unk_token"]))
    tokenizer.normalizer = normalizers.BertNormalizer(
        lowercase=bool(described.get("do_lower_case", True)),
        strip_accents=described.get("strip_accents"),
        handle_chinese_chars=bool(described.get("tokenize_chinese_chars", True)),
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    cls, sep = special["cls_token"], special["sep_token"]
    tokenizer.add_special_tokens([*special.values()])
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{cls} $A {sep}",
        special_tokens=[(token, _number(tokenizer, token)) for token in (cls, sep)],
    )
    return tokenizer


def _byte_pairs(folder: Path) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    special = _special_tokens(
        folder, {"unk_token": "<unk>", "cls_token": "<s>", "sep_token": "</s>", "pad_token": "<pad>"}
    )
    tokenizer = Tokenizer(models.BPE.from_file(str(folder / BYTE_PAIRS), str(folder / MERGES)))
    prefixed = bool(read_object(folder / TOKENIZER_CONFIG).get("add_prefix_space", False))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefixed)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([*special.values()])
    cls, sep = special["cls_token"], special["sep_token"]
    tokenizer.post_processor = processors.RobertaProcessing(
        (sep, _number(tokenizer, sep)), (cls, _number(tokenizer, cls)), add_prefix_space=prefixed
    )
    return tokenizer


def _sentencepiece(path: Path) -> Tokenizer:
    """XLM-RoBERTa's order: four special tokens, then the pieces after sentencepiece's own three, then the mask."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    read = read_sentencepiece(path.read_bytes())
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    vocabulary: list[tuple[str, float]] = [(token, 0.0) for token in special]
    vocabulary += [*read.pieces[3:], ("<mask>", 0.0)]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=3, byte_fallback=False))
    steps: list[Any] = [normalizers.Replace(_blanks(), " ")]
    if read.normalization:
        steps.insert(0, normalizers.Precompiled(read.normalization))
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.add_special_tokens([*special, "<mask>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return tokenizer


def _blanks() -> Any:
    from tokenizers import Regex

    return Regex(" {2,}")


def _number(tokenizer: Tokenizer, token: str) -> int:
    number = tokenizer.token_to_id(token)
    if number is None:
        raise ValueError(f"the vocabulary has no {token}")
    return int(number)
