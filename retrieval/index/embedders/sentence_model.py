"""An embedder as sentence-transformers publishes it: an encoder, how its tokens become one vector, and prompts.

Source: Reimers and Gurevych, "Sentence-BERT", EMNLP 2019.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from retrieval.index.embedders.architectures import ARCHITECTURES, read_shape
from retrieval.index.embedders.model_files import (
    CONFIG,
    NEWER_CONFIG,
    find_export,
    read_json,
    read_object,
    weight_files,
)
from retrieval.index.embedders.tokenizer import TOKENIZER_FILES, longest_text, tokenizer_files

MODULES, TRANSFORMER_CONFIG = "modules.json", "sentence_bert_config.json"
DESCRIPTIONS = (CONFIG, NEWER_CONFIG, MODULES, TRANSFORMER_CONFIG, *TOKENIZER_FILES, "*_*/*")
"""What is fetched of a model on the hub, before its weights."""

QUERY_PROMPTS = ("query",)
DOCUMENT_PROMPTS = ("document", "passage", "corpus")
"""Their names in a model's description, as sentence-transformers looks for them."""


class Pooling(StrEnum):
    """How the vectors of a text's tokens become one; the keys of a Pooling module's config.json."""

    CLS = "pooling_mode_cls_token"
    MEAN = "pooling_mode_mean_tokens"
    MAX = "pooling_mode_max_tokens"
    MEAN_SQRT = "pooling_mode_mean_sqrt_len_tokens"
    WEIGHTED_MEAN = "pooling_mode_weightedmean_tokens"
    LAST = "pooling_mode_lasttoken"


_POOLING_NAMES = {
    "cls": Pooling.CLS,
    "mean": Pooling.MEAN,
    "max": Pooling.MAX,
    "mean_sqrt_len_tokens": Pooling.MEAN_SQRT,
    "weightedmean": Pooling.WEIGHTED_MEAN,
    "lasttoken": Pooling.LAST,
}
"""The values of the one key that newer versions write."""


@dataclass(frozen=True, slots=True)
class Dense:
    """A layer after the pooling; ``weights`` are linear.weight and, unless the layer has none, linear.bias."""

    weights: Path
    width: int
    activation: str


class Normalize:
    """The vector is scaled to unit length here."""


ACTIVATIONS = {"Identity": "", "Tanh": "Tanh", "ReLU": "Relu", "GELU": "Gelu", "Sigmoid": "Sigmoid"}
"""Of a dense layer: by the class's name, the operator."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """What stands before a question, and before a document's text; mostly nothing."""

    query: str = ""
    document: str = ""


@dataclass(frozen=True, slots=True)
class SentenceModel:
    """A model that can be run. ``export`` is its ONNX file where no graph can be written from ``weights``.

    ``max_tokens`` is the longest input, special tokens and prompts included.
    """

    folder: Path
    config: Mapping[str, Any]
    weights: tuple[Path, ...]
    export: Path | None
    pooling: Pooling
    steps: tuple[Dense | Normalize, ...]
    dimension: int
    max_tokens: int
    lowercase: bool
    prompts: Prompts

    def files(self) -> tuple[Path, ...]:
        """What decides its vectors."""
        exported = (self.export, self.export.with_name(f"{self.export.name}_data")) if self.export else self.weights
        dense = [step.weights for step in self.steps if isinstance(step, Dense)]
        described = [self.folder / CONFIG, *tokenizer_files(self.folder)]
        return tuple(file for file in (*described, *exported, *dense) if file.is_file())

    def digest(self) -> str:
        """A hash of all that decides its vectors but the prompts. Raises: OSError."""
        activations = [step.activation if isinstance(step, Dense) else "Normalize" for step in self.steps]
        settings = [self.pooling, *activations, self.max_tokens, self.lowercase]
        hashed = hashlib.sha256(repr([str(each) for each in settings]).encode())
        for file in self.files():
            with file.open("rb") as opened:
                hashed.update(hashlib.file_digest(opened, "sha256").digest())
        return hashed.hexdigest()


def read_sentence_model(folder: Path) -> SentenceModel:
    """The embedder in a folder; without modules.json, an encoder whose tokens' mean is taken.

    Raises: ValueError (with KeyError and TypeError from a malformed description) when it cannot be run here, OSError.
    """
    config = read_object(folder / CONFIG)
    files = weight_files(folder)
    export = None
    if config.get("model_type") not in ARCHITECTURES or not files:
        export = find_export(folder)
        if export is None:
            raise ValueError(
                f"it has no model.onnx, and no model.safetensors of one of {', '.join(ARCHITECTURES)} "
                f"(it is {config.get('model_type')!r}): export it to ONNX, or convert its weights to safetensors"
            )
        width = int(config.get("hidden_size") or config["dim"])
        positions = int(config["max_position_embeddings"])
    else:
        shape = read_shape(config)
        width, positions = shape.width, shape.positions
    if not tokenizer_files(folder):
        raise ValueError("it has no tokenizer.json")
    pooling, steps = Pooling.MEAN, list[Dense | Normalize]()
    for module in read_json(folder / MODULES) or []:
        kind, path = str(module["type"]).rpartition(".")[2], folder / module["path"]
        if kind == "Pooling":
            pooling = _pooling(read_object(path / CONFIG))
        elif kind == "Dense":
            steps.append(_dense(path))
        elif kind == "Normalize":
            steps.append(Normalize())
        elif kind not in {"Transformer", "Dropout"}:
            raise ValueError(f"it has a module {kind}, which cannot be run here")
    described = read_object(folder / NEWER_CONFIG)
    similarity = described.get("similarity_fn_name") or "cosine"
    if similarity != "cosine" and not (steps and isinstance(steps[-1], Normalize)):
        raise ValueError(f"its vectors are compared by {similarity}, and here by cosine")
    transformer = read_object(folder / TRANSFORMER_CONFIG)
    limits = (transformer.get("max_seq_length"), longest_text(folder), positions)
    longest = limits[0] or limits[1] or positions
    return SentenceModel(
        folder=folder,
        config=config,
        weights=() if export else files,
        export=export,
        pooling=pooling,
        steps=tuple(steps),
        dimension=next((step.width for step in reversed(steps) if isinstance(step, Dense)), width),
        max_tokens=min(int(longest), positions),
        lowercase=bool(transformer.get("do_lower_case")),
        prompts=_prompts(described),
    )


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


def _dense(folder: Path) -> Dense:
    config = read_object(folder / CONFIG)
    activation = str(config.get("activation_function") or "torch.nn.modules.activation.Tanh").rpartition(".")[2]
    if activation not in ACTIVATIONS:
        raise ValueError(f"its dense layer's activation is {activation}, and can be one of {', '.join(ACTIVATIONS)}")
    (weights,) = weight_files(folder) or [None]
    if weights is None:
        raise ValueError(f"the folder {folder} has no model.safetensors: convert its weights")
    return Dense(weights, int(config["out_features"]), activation)


def _prompts(described: Mapping[str, Any]) -> Prompts:
    prompts = described.get("prompts") or {}
    default = prompts.get(described.get("default_prompt_name") or "") or ""

    def first(names: tuple[str, ...]) -> str:
        return next((str(prompts[name]) for name in names if prompts.get(name)), default)

    return Prompts(query=first(QUERY_PROMPTS), document=first(DOCUMENT_PROMPTS))
