"""An embedder as sentence-transformers publishes it: an encoder, how its tokens become one vector, and prompts.

Source: Reimers and Gurevych, "Sentence-BERT", EMNLP 2019.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from retrieval.index.embedders.model_files import (
    CONFIG,
    NEWER_CONFIG,
    TOKENIZER,
    WEIGHTS,
    find_model,
    read_json,
    read_object,
)

if TYPE_CHECKING:
    from retrieval.types import Vectors

MODULES, TRANSFORMER_CONFIG = "modules.json", "sentence_bert_config.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
QUERY_PROMPTS = ("query",)
DOCUMENT_PROMPTS = ("document", "passage", "corpus")
"""Their names in a model's description, as sentence-transformers looks for them."""


class Pooling(StrEnum):
    """How the vectors of a text's tokens become one; the keys of a Pooling module's config.json."""

    CLS = "pooling_mode_cls_token"
    MEAN = "pooling_mode_mean_tokens"
    MAX = "pooling_mode_max_tokens"
    LAST = "pooling_mode_lasttoken"

    def of(self, hidden: Vectors) -> Vectors:
        """The unit vector of a text's tokens, special ones included; shape (tokens, width) -> (width,)."""
        match self:
            case Pooling.CLS | Pooling.LAST:
                vector: Vectors = hidden[0 if self is Pooling.CLS else -1]
            case Pooling.MEAN:
                vector = hidden.mean(axis=0)
            case Pooling.MAX:
                vector = hidden.max(axis=0)
        unit: Vectors = vector / np.linalg.norm(vector)
        return unit


_POOLING_NAMES = {"cls": Pooling.CLS, "mean": Pooling.MEAN, "max": Pooling.MAX, "lasttoken": Pooling.LAST}
"""The values of the one key that newer versions write."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """What stands before a question, and before a document's text; mostly nothing."""

    query: str = ""
    document: str = ""


@dataclass(frozen=True, slots=True)
class SentenceModel:
    """A model that can be run: the ONNX ``file`` of its encoder, or the weights of a BERT, and what makes one vector of
    its output.

    ``is_normalized`` says that the model itself scales its vectors to unit length. ``max_tokens`` is the longest input,
    special tokens and prompts included.
    """

    folder: Path
    file: Path
    pooling: Pooling
    is_normalized: bool
    dimension: int
    max_tokens: int
    lowercase: bool
    prompts: Prompts

    @property
    def is_weights(self) -> bool:
        return self.file.name == WEIGHTS

    @property
    def settings(self) -> tuple[str, ...]:
        """What decides its vectors beside the files."""
        steps = ("Normalize",) if self.is_normalized else ()
        return (self.pooling.value, *steps, str(self.max_tokens), str(self.lowercase))

    def files(self) -> tuple[Path, ...]:
        """What decides its vectors."""
        data = self.file.with_name(f"{self.file.name}_data")
        files = (self.folder / CONFIG, self.folder / TOKENIZER, self.file, data)
        return tuple(file for file in files if file.is_file())

    def digest(self) -> str:
        """A hash of all that decides its vectors but the prompts. Raises: OSError."""
        hashed = hashlib.sha256(repr([*self.settings]).encode())
        for file in self.files():
            with file.open("rb") as opened:
                hashed.update(hashlib.file_digest(opened, "sha256").digest())
        return hashed.hexdigest()


def read_sentence_model(folder: Path) -> SentenceModel:
    """The embedder in a folder; without modules.json, an encoder whose tokens' mean is taken.

    Raises: ValueError (with KeyError and TypeError from a malformed description) when it cannot be run here, OSError.
    """
    config, file = read_object(folder / CONFIG), find_model(folder, or_weights=True)
    if file.name == WEIGHTS and (kind := config.get("model_type")) != "bert":
        raise ValueError(f"from {WEIGHTS} only the architecture 'bert' can be read, not {kind!r}: export it to ONNX")
    width = int(config.get("hidden_size") or config["dim"])
    positions = int(config["max_position_embeddings"])
    pooling, is_normalized = Pooling.MEAN, False
    for module in read_json(folder / MODULES) or []:
        kind = str(module["type"]).rpartition(".")[2]
        if kind == "Pooling":
            pooling = _pooling(read_object(folder / module["path"] / CONFIG))
        elif kind == "Normalize":
            is_normalized = True
        elif kind not in {"Transformer", "Dropout"}:
            raise ValueError(f"it has a module {kind}, which cannot be run here")
    described = read_object(folder / NEWER_CONFIG)
    similarity = described.get("similarity_fn_name") or "cosine"
    if similarity != "cosine" and not is_normalized:
        raise ValueError(f"its vectors are compared by {similarity}, and here by cosine")
    transformer = read_object(folder / TRANSFORMER_CONFIG)
    longest = transformer.get("max_seq_length") or _longest_text(folder) or positions
    return SentenceModel(
        folder=folder,
        file=file,
        pooling=pooling,
        is_normalized=is_normalized,
        dimension=width,
        max_tokens=min(int(longest), positions),
        lowercase=bool(transformer.get("do_lower_case")),
        prompts=_prompts(described),
    )


def _longest_text(folder: Path) -> int | None:
    """How many tokens the tokenizer's description allows; None when it does not say."""
    limit = read_object(folder / TOKENIZER_CONFIG).get("model_max_length")
    # Published files write 10^30 for "no limit".
    return int(limit) if isinstance(limit, int | float) and 0 < limit < 1_000_000 else None


def _pooling(config: Mapping[str, Any]) -> Pooling:
    named = config.get("pooling_mode")
    modes = (
        [_POOLING_NAMES[mode] for mode in ([named] if isinstance(named, str) else named) if mode in _POOLING_NAMES]
        if named
        else [mode for mode in Pooling if config.get(mode)]
    )
    if len(modes) != 1:
        raise ValueError(f"it pools tokens in {len(modes)} ways ({', '.join(modes)}), and can in one")
    if config.get("include_prompt") is False:
        raise ValueError("it leaves its prompts out of the pooling, which cannot be done here")
    return modes[0]


def _prompts(described: Mapping[str, Any]) -> Prompts:
    prompts = described.get("prompts") or {}
    default = prompts.get(described.get("default_prompt_name") or "") or ""

    def first(names: tuple[str, ...]) -> str:
        return next((str(prompts[name]) for name in names if prompts.get(name)), default)

    return Prompts(query=first(QUERY_PROMPTS), document=first(DOCUMENT_PROMPTS))
