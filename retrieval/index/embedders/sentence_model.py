"""Read the files that describe an embedder in the layout of sentence-transformers.

Source: Reimers and Gurevych, "Sentence-BERT", EMNLP 2019.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from retrieval.index.embedders.model_files import (
    CONFIG,
    EXPORTS,
    EXPORTS_8_BIT,
    NEWER_CONFIG,
    TOKENIZER,
    WEIGHTS,
    find_model,
    read_json,
    read_json_object,
)

if TYPE_CHECKING:
    from retrieval.types import Vectors

MODULES, TRANSFORMER_CONFIG = "modules.json", "sentence_bert_config.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
QUERY_PROMPTS = ("query",)
DOCUMENT_PROMPTS = ("document", "passage", "corpus")
"""The names of prompts that sentence-transformers looks for in a model's description."""


class Pooling(StrEnum):
    """A way to compute one vector from the token vectors. The values are keys in the model's config.json."""

    CLS = "pooling_mode_cls_token"
    MEAN = "pooling_mode_mean_tokens"
    MAX = "pooling_mode_max_tokens"
    LAST = "pooling_mode_lasttoken"

    def pool(self, hidden: Vectors) -> Vectors:
        """Compute one vector from the vectors of all tokens: shape (tokens, width) -> (width,)."""
        match self:
            case Pooling.CLS | Pooling.LAST:
                vector: Vectors = hidden[0 if self is Pooling.CLS else -1]
            case Pooling.MEAN:
                vector = hidden.mean(axis=0)
            case Pooling.MAX:
                vector = hidden.max(axis=0)
        return vector


_ACTIVATIONS: Mapping[str, Callable[[Vectors], Vectors]] = {
    "Identity": lambda vector: vector,
    "Tanh": np.tanh,
    "ReLU": lambda vector: np.maximum(vector, 0),
}


@dataclass(frozen=True, slots=True)
class DenseLayer:
    """A dense layer after the pooling. ``width`` is the number of its outputs."""

    folder: Path
    width: int
    activation: str

    @property
    def file(self) -> Path:
        return self.folder / WEIGHTS

    def load(self) -> Callable[[Vectors], Vectors]:
        """Return a function that applies this dense layer to a vector.

        Raises: KeyError, OSError, and errors of safetensors.
        """
        from safetensors.numpy import load_file

        weights = {name: each.astype(np.float32) for name, each in load_file(self.file).items()}
        matrix, bias = weights["linear.weight"], weights.get("linear.bias", np.float32(0))
        activate = _ACTIVATIONS[self.activation]
        return lambda vector: activate(matrix @ vector + bias)


_POOLING_NAMES = {"cls": Pooling.CLS, "mean": Pooling.MEAN, "max": Pooling.MAX, "lasttoken": Pooling.LAST}
"""Newer versions of sentence-transformers write one of these values instead of a flag for each pooling."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """The texts that the model expects before a question and a document; empty for most models."""

    query: str = ""
    document: str = ""


@dataclass(frozen=True, slots=True)
class SentenceModel:
    """A sentence-transformers model: an encoder, and the steps that turn its output into one vector.

    - ``file``: an ONNX file, or the weights of a BERT model.
    - ``pooling``: None means the sentence vector of the ONNX file or, without one, the mean of the token vectors.
    - ``dimension``, ``kept``: the model's vectors have ``dimension`` numbers, of which the first ``kept`` are used.
    - ``max_tokens``: includes special tokens and prompts.
    """

    folder: Path
    file: Path
    pooling: Pooling | None
    dense: tuple[DenseLayer, ...]
    is_normalized: bool
    dimension: int
    kept: int
    max_tokens: int
    lowercase: bool
    prompts: Prompts

    @property
    def has_raw_weights(self) -> bool:
        return self.file.name == WEIGHTS

    @property
    def settings(self) -> tuple[str, ...]:
        steps = [each.activation for each in self.dense] + ["Normalize"] * self.is_normalized
        kept = [str(self.kept)] * (self.kept < self.dimension)
        pooling = self.pooling.value if self.pooling is not None else "the export's own"
        return (pooling, *steps, str(self.max_tokens), str(self.lowercase), *kept)

    def files(self) -> tuple[Path, ...]:
        data = sorted(self.file.parent.glob(f"{self.file.name}?data*"))
        files = (self.folder / CONFIG, self.folder / TOKENIZER, self.file, *data, *(each.file for each in self.dense))
        return tuple(file for file in files if file.is_file())

    def digest(self) -> str:
        """Return a hash of the model's files and of the settings that change its vectors. Raises: OSError.

        Prompts are not included, because an embedder's name has a hash of its prompts.
        """
        hashed = hashlib.sha256(repr([*self.settings]).encode())
        for file in self.files():
            with file.open("rb") as opened:
                hashed.update(hashlib.file_digest(opened, "sha256").digest())
        return hashed.hexdigest()


# In these architectures, positions begin at the padding token's id plus 1.
_OFFSET_POSITIONS = frozenset({"camembert", "mpnet", "roberta", "xlm-roberta"})


def read_sentence_model(folder: Path, dimension: int | None = None) -> SentenceModel:
    """Return the embedder in a folder. Its vectors have ``dimension`` numbers; None means the full length.

    Raises: ValueError if the model cannot be run here; KeyError and TypeError if its description is malformed; OSError.
    """
    config, file = read_json_object(folder / CONFIG), find_model(folder, (*EXPORTS_8_BIT, *EXPORTS, WEIGHTS))
    if file.name == WEIGHTS and (kind := config.get("model_type")) != "bert":
        raise ValueError(f"from {WEIGHTS} only the architecture 'bert' can be read, not {kind!r}: export it to ONNX")
    width = int(config.get("hidden_size") or config["dim"])
    positions = int(config["max_position_embeddings"])
    if config.get("model_type") in _OFFSET_POSITIONS:
        positions -= int(config.get("pad_token_id") or 0) + 1
    pooling: Pooling | None = None
    dense: list[DenseLayer] = []
    is_normalized = False
    for module in read_json(folder / MODULES) or []:
        kind = str(module["type"]).rpartition(".")[2]
        if kind == "Pooling":
            pooling = _read_pooling(read_json_object(folder / module["path"] / CONFIG))
        elif kind == "Dense" and pooling is not None:
            dense.append(_read_dense_layer(folder / module["path"]))
            width = dense[-1].width
        elif kind == "Normalize":
            is_normalized = True
        elif kind not in {"Transformer", "Dropout"}:
            raise ValueError(f"it has a module {kind}, which cannot be run here")
    if dimension is not None and not 0 < dimension <= width:
        raise ValueError(f"its vectors are {width} wide, and EMBEDDING_DIMENSION is {dimension}")
    described = read_json_object(folder / NEWER_CONFIG)
    similarity = described.get("similarity_fn_name") or "cosine"
    if similarity != "cosine" and not is_normalized:
        raise ValueError(f"its vectors are compared by {similarity}, and here by cosine")
    transformer = read_json_object(folder / TRANSFORMER_CONFIG)
    longest = transformer.get("max_seq_length") or _read_token_limit(folder) or positions
    return SentenceModel(
        folder=folder,
        file=file,
        pooling=pooling,
        dense=tuple(dense),
        is_normalized=is_normalized,
        dimension=width,
        kept=dimension or width,
        max_tokens=min(int(longest), positions),
        lowercase=bool(transformer.get("do_lower_case")),
        prompts=_read_prompts(described),
    )


def _read_dense_layer(folder: Path) -> DenseLayer:
    config = read_json_object(folder / CONFIG)
    activation = str(config.get("activation_function") or "Tanh").rpartition(".")[2]
    if activation not in _ACTIVATIONS:
        raise ValueError(f"it has a Dense module with the activation {activation}, which cannot be run here")
    if not (folder / WEIGHTS).is_file():
        raise ValueError(f"its module {folder.name} has no {WEIGHTS}")
    return DenseLayer(folder, int(config["out_features"]), activation)


def _read_token_limit(folder: Path) -> int | None:
    limit = read_json_object(folder / TOKENIZER_CONFIG).get("model_max_length")
    # Published models write 10^30 for "no limit".
    return int(limit) if isinstance(limit, int | float) and 0 < limit < 1_000_000 else None


def _read_pooling(config: Mapping[str, Any]) -> Pooling:
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


def _read_prompts(configuration: Mapping[str, Any]) -> Prompts:
    prompts = configuration.get("prompts") or {}
    default = prompts.get(configuration.get("default_prompt_name") or "") or ""

    def find_first_prompt(names: tuple[str, ...]) -> str:
        return next((str(prompts[name]) for name in names if prompts.get(name)), default)

    return Prompts(query=find_first_prompt(QUERY_PROMPTS), document=find_first_prompt(DOCUMENT_PROMPTS))
