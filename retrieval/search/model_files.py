"""The files of a cross encoder: in a folder, or fetched from the Hugging Face hub into one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from retrieval.exceptions import RerankFailed
from retrieval.index.embedders import hub
from retrieval.index.embedders.files import (
    CONFIG,
    EXPORTS,
    NEWER_CONFIG,
    TOKENIZER,
    WEIGHTS,
    find_export,
    read_object,
)
from retrieval.search.classifier_graph import HEADS


class Activation(StrEnum):
    """What a model's output goes through to be its score, as sentence-transformers names it."""

    SIGMOID = "Sigmoid"
    IDENTITY = "Identity"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A folder that can be loaded. ``export`` is its ONNX file; without one, ``config`` describes ``weights``."""

    folder: Path
    config: Mapping[str, Any]
    activation: Activation
    export: Path | None

    @property
    def tokenizer(self) -> Path:
        return self.folder / TOKENIZER

    @property
    def weights(self) -> Path:
        return self.folder / WEIGHTS


def read_folder(folder: Path) -> ModelFiles:
    """The model in a folder; an ONNX export counts before weights. Raises: ImproperlyConfigured."""
    if not (folder / TOKENIZER).is_file():
        raise ImproperlyConfigured(f"The cross encoder in {folder} has no {TOKENIZER}.")
    config = _json(folder / CONFIG)
    export = find_export(folder)
    if export is None:
        if not (folder / WEIGHTS).is_file():
            raise ImproperlyConfigured(f"The cross encoder in {folder} has neither {WEIGHTS} nor {EXPORTS[0]}.")
        if (kind := config.get("model_type")) not in HEADS:
            raise ImproperlyConfigured(
                f"The cross encoder in {folder} is of the architecture {kind!r}; from {WEIGHTS} only those of "
                f"{', '.join(HEADS)} can be loaded: export the model to ONNX, as {EXPORTS[0]} in the folder."
            )
    return ModelFiles(folder, config, _activation(folder, config), export)


def fetch(name: str, cache_dir: Path | None) -> ModelFiles:
    """The model of that name on the hub, from the cache folder when it is there.

    Without ``cache_dir`` it is the hub client's own folder. Raises: ImproperlyConfigured for a model that does not
    exist or cannot be loaded, RerankFailed when the hub cannot be reached.
    """
    try:
        folder = hub.fetch(name, cache_dir, (TOKENIZER, CONFIG, NEWER_CONFIG), HEADS, kind="cross encoder")
    except hub.HubUnreachable as error:
        raise RerankFailed(str(error)) from error
    except hub.UnknownModel as error:
        raise ImproperlyConfigured(str(error)) from error
    return read_folder(folder)


def _json(path: Path) -> dict[str, Any]:
    """What the file holds; empty when there is none. Raises: ImproperlyConfigured."""
    try:
        return read_object(path)
    except (OSError, ValueError) as error:
        raise ImproperlyConfigured(f"{str(error)[:1].upper()}{str(error)[1:]}.") from error


def _activation(folder: Path, config: Mapping[str, Any]) -> Activation:
    """As sentence-transformers decides it for one label: what the model names, in one of three places, or a sigmoid."""
    named = (
        _json(folder / NEWER_CONFIG).get("activation_fn")
        or (config.get("sentence_transformers") or {}).get("activation_fn")
        or config.get("sbert_ce_default_activation_function")
        or Activation.SIGMOID
    )
    try:
        return Activation(str(named).rpartition(".")[2])
    except ValueError:
        raise ImproperlyConfigured(
            f"The cross encoder in {folder} names {named} as its activation; it can be Sigmoid or Identity."
        ) from None
