"""The files of a cross encoder: in a folder, or fetched from the Hugging Face hub into one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from retrieval.exceptions import RerankFailed
from retrieval.rerank.classifier_graph import ARCHITECTURES

CONFIG, TOKENIZER, WEIGHTS = "config.json", "tokenizer.json", "model.safetensors"
NEWER_CONFIG = "config_sentence_transformers.json"
EXPORTS = ("model.onnx", "onnx/model.onnx")


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
    export = next((folder / name for name in EXPORTS if (folder / name).is_file()), None)
    if export is None:
        if not (folder / WEIGHTS).is_file():
            raise ImproperlyConfigured(f"The cross encoder in {folder} has neither {WEIGHTS} nor {EXPORTS[0]}.")
        if (kind := config.get("model_type")) not in ARCHITECTURES:
            raise ImproperlyConfigured(
                f"The cross encoder in {folder} is of the architecture {kind!r}; from {WEIGHTS} only those of "
                f"{', '.join(ARCHITECTURES)} can be loaded: export the model to ONNX, as {EXPORTS[0]} in the folder."
            )
    return ModelFiles(folder, config, _activation(folder, config), export)


def fetch(name: str, cache_dir: Path | None) -> ModelFiles:
    """The model of that name on the hub, from the cache folder when it is there.

    Without ``cache_dir`` it is the hub client's own folder. Raises: ImproperlyConfigured for a model that does not
    exist or cannot be loaded, RerankFailed when the hub cannot be reached.
    """
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError, RepositoryNotFoundError
    except ImportError as error:
        raise ImproperlyConfigured(
            f"There is no folder {name}, and to fetch a model of that name the package huggingface_hub is missing."
        ) from error

    def fetched(*patterns: str) -> Path:
        try:
            # The cache first: a start must not wait for the hub, nor change the model by itself.
            folder = Path(
                snapshot_download(name, cache_dir=cache_dir, allow_patterns=[*patterns], local_files_only=True)
            )
            if any((folder / pattern).is_file() for pattern in patterns):
                return folder
        except LocalEntryNotFoundError:
            pass
        return Path(snapshot_download(name, cache_dir=cache_dir, allow_patterns=[*patterns]))

    try:
        folder = fetched(TOKENIZER, CONFIG, NEWER_CONFIG)
        if _json(folder / CONFIG).get("model_type") in ARCHITECTURES:
            fetched(WEIGHTS)
        else:
            fetched(*EXPORTS, *(f"{export}_data" for export in EXPORTS))
    except LocalEntryNotFoundError as error:
        raise RerankFailed(
            f"The cross encoder {name} was not found locally and the hub cannot be reached: "
            "download it and give the folder's path."
        ) from error
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise ImproperlyConfigured(
            f"There is no folder {name} and no model of that name on the hub, or it may not be read."
        ) from error
    except OSError as error:
        raise RerankFailed(f"The cross encoder {name} could not be fetched: {type(error).__name__}.") from error
    return read_folder(folder)


def _json(path: Path) -> dict[str, Any]:
    """What the file holds; empty when there is none. Raises: ImproperlyConfigured."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ImproperlyConfigured(f"The file {path} cannot be read: {error}") from error
    if not isinstance(read, dict):
        raise ImproperlyConfigured(f"The file {path} does not hold a JSON object.")
    return read


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
