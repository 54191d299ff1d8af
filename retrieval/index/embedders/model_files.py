"""What the folder of a published model holds: descriptions as JSON, and weights as safetensors."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.float32]

CONFIG, TOKENIZER, WEIGHTS = "config.json", "tokenizer.json", "model.safetensors"
NEWER_CONFIG = "config_sentence_transformers.json"
EXPORTS = ("model.onnx", "onnx/model.onnx")


def read_json(path: Path) -> Any:
    """What the file holds; an empty dictionary when there is none. Raises: ValueError, OSError."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ValueError(f"the file {path} cannot be read: {error}") from error


def read_object(path: Path) -> dict[str, Any]:
    """As :func:`read_json`, of a file that holds one JSON object. Raises: ValueError, OSError."""
    read = read_json(path)
    if not isinstance(read, dict):
        raise ValueError(f"the file {path} does not hold a JSON object")
    return read


def load_weights(file: Path) -> dict[str, Array]:
    """All floating-point tensors in single precision, by name. Raises: OSError, or what safetensors raises."""
    # An import that only those pay who write a graph; ml_dtypes gives numpy bfloat16.
    import ml_dtypes
    from safetensors.numpy import load_file

    floating = (np.floating, ml_dtypes.bfloat16)
    return {
        name: tensor.astype(np.float32, copy=False)
        for name, tensor in load_file(file).items()
        if any(np.issubdtype(tensor.dtype, kind) for kind in floating)
    }


def find_export(folder: Path) -> Path | None:
    """The model as an ONNX file, if the folder has one."""
    return next((folder / name for name in EXPORTS if (folder / name).is_file()), None)


# BERT (Devlin et al., NAACL 2019), of whose weights a graph can be written; other architectures come as exports.

BERT = "bert"
"""The `model_type` of config.json."""


@dataclass(frozen=True, slots=True)
class EncoderShape:
    """The numbers of a BERT that its graph needs. ``positions`` is the longest input in tokens."""

    layers: int
    heads: int
    width: int
    epsilon: float
    positions: int


def read_shape(config: Mapping[str, Any]) -> EncoderShape:
    """The shape that a config.json describes. Raises: ValueError, KeyError when no graph can be written for it."""
    if (kind := config.get("model_type")) != BERT:
        raise ValueError(f"its architecture is {kind!r}, and from {WEIGHTS} only {BERT!r} can be read")
    if (activation := config["hidden_act"]) != "gelu":
        raise ValueError(f"its activation is {activation!r}, and can be 'gelu'")
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise ValueError("only absolute positions can be written as a graph")
    return EncoderShape(
        layers=config["num_hidden_layers"],
        heads=config["num_attention_heads"],
        width=config["hidden_size"],
        epsilon=config["layer_norm_eps"],
        positions=int(config["max_position_embeddings"]),
    )


def load_bert(file: Path) -> dict[str, Array]:
    """A BERT's weights, under names without prefix. Raises: as :func:`load_weights`."""
    return {
        name.removeprefix("bert.")
        .replace("LayerNorm.gamma", "LayerNorm.weight")
        .replace("LayerNorm.beta", "LayerNorm.bias"): tensor
        for name, tensor in load_weights(file).items()
    }


# Models fetched by name from the Hugging Face hub into a folder.

FETCHED = ["*.json", "*_Pooling/*.json", WEIGHTS, *EXPORTS, *(f"{export}_data" for export in EXPORTS)]
COMPLETE = ".complete"
"""A file beside the model's that says that none is missing: a fetch that was killed leaves some."""


class UnknownModel(Exception):
    """There is no such model, or the client for the hub is not installed."""


class HubUnreachable(Exception):
    """The hub cannot be asked now; the model may exist."""


def fetch(name: str, cache_dir: Path | None, *, kind: str) -> Path:
    """The folder of the model of that name, from the cache when it is there; ``kind`` is what messages call it.

    Without ``cache_dir`` the folder is the hub client's own. Raises: UnknownModel, HubUnreachable.
    """
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError, RepositoryNotFoundError
    except ImportError as error:
        raise UnknownModel(
            f"There is no folder {name}, and to fetch a model of that name the package huggingface_hub is missing."
        ) from error
    # The cache first: a start must not wait for the hub, nor change the model by itself.
    with contextlib.suppress(LocalEntryNotFoundError, HFValidationError):
        folder = Path(snapshot_download(name, cache_dir=cache_dir, local_files_only=True))
        if (folder / COMPLETE).exists():
            return folder
    try:
        folder = Path(snapshot_download(name, cache_dir=cache_dir, allow_patterns=FETCHED))
    except LocalEntryNotFoundError as error:
        raise HubUnreachable(
            f"The {kind} {name} was not found locally and the hub cannot be reached: "
            "download it and give the folder's path."
        ) from error
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise UnknownModel(
            f"There is no folder {name} and no model of that name on the hub, or it may not be read."
        ) from error
    except OSError as error:
        raise HubUnreachable(f"The {kind} {name} could not be fetched: {type(error).__name__}.") from error
    # Where it cannot be written, the next start asks the hub again.
    with contextlib.suppress(OSError):
        (folder / COMPLETE).touch()
    return folder
