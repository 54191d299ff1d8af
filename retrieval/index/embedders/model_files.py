"""What the folder of a published model holds: descriptions as JSON, and weights as safetensors."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.float32]

CONFIG, TOKENIZER, WEIGHTS = "config.json", "tokenizer.json", "model.safetensors"
SHARDS = "model.safetensors.index.json"
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


def weight_files(folder: Path) -> tuple[Path, ...]:
    """The files of the weights: one, or the shards that an index names; empty when there are none.

    Raises: ValueError when a shard is missing.
    """
    if (folder / WEIGHTS).is_file():
        return (folder / WEIGHTS,)
    # A name with folders in it would lead out of this one.
    names = sorted({Path(name).name for name in read_object(folder / SHARDS).get("weight_map", {}).values()})
    if missing := [name for name in names if not (folder / name).is_file()]:
        raise ValueError(f"the folder {folder} lacks {missing[0]}, which {SHARDS} names")
    return tuple(folder / name for name in names)


def load_weights(files: Iterable[Path]) -> dict[str, Array]:
    """All floating-point tensors in single precision, by name. Raises: OSError, or what safetensors raises."""
    # An import that only those pay who write a graph; ml_dtypes gives numpy bfloat16.
    import ml_dtypes
    from safetensors.numpy import load_file

    floating = (np.floating, ml_dtypes.bfloat16)
    return {
        name: tensor.astype(np.float32, copy=False)
        for file in files
        for name, tensor in load_file(file).items()
        if any(np.issubdtype(tensor.dtype, kind) for kind in floating)
    }


def find_export(folder: Path) -> Path | None:
    """The model as an ONNX file, if the folder has one."""
    return next((folder / name for name in EXPORTS if (folder / name).is_file()), None)


# Models fetched by name from the Hugging Face hub into a folder.

COMPLETE = ".complete"
"""A file beside the model's that says that none is missing: a fetch that was killed leaves some."""


class UnknownModel(Exception):
    """There is no such model, or the client for the hub is not installed."""


class HubUnreachable(Exception):
    """The hub cannot be asked now; the model may exist."""


def fetch(
    name: str, cache_dir: Path | None, descriptions: Sequence[str], architectures: Collection[str], *, kind: str
) -> Path:
    """The folder of the model of that name, from the cache when it is there; ``kind`` is what messages call it.

    ``descriptions`` are the small files wanted, as patterns, config.json among them. Of one of the ``architectures``
    the weights are fetched, of another one its ONNX export. Without ``cache_dir`` the folder is the hub client's own.

    Raises: UnknownModel, HubUnreachable.
    """
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError, RepositoryNotFoundError
    except ImportError as error:
        raise UnknownModel(
            f"There is no folder {name}, and to fetch a model of that name the package huggingface_hub is missing."
        ) from error

    def fetched(*patterns: str) -> Path:
        return Path(snapshot_download(name, cache_dir=cache_dir, allow_patterns=[*patterns]))

    # The cache first: a start must not wait for the hub, nor change the model by itself.
    with contextlib.suppress(LocalEntryNotFoundError, HFValidationError, ValueError):
        folder = Path(snapshot_download(name, cache_dir=cache_dir, local_files_only=True))
        if (folder / COMPLETE).exists() and (weight_files(folder) or find_export(folder)):
            return folder
    try:
        folder = fetched(*descriptions)
        if read_object(folder / CONFIG).get("model_type") in architectures:
            fetched(WEIGHTS, SHARDS)
            if not (folder / WEIGHTS).is_file():
                shards = {Path(shard).name for shard in read_object(folder / SHARDS).get("weight_map", {}).values()}
                for shard in sorted(shards):
                    fetched(shard)
        else:
            fetched(*EXPORTS, *(f"{export}_data" for export in EXPORTS))
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
    except ValueError as error:
        raise UnknownModel(f"The {kind} {name} cannot be used: {error}.") from error
    # Where it cannot be written, the next start asks the hub again.
    with contextlib.suppress(OSError):
        (folder / COMPLETE).touch()
    return folder
