"""What the folder of a published model holds: descriptions as JSON, and weights as safetensors."""

from __future__ import annotations

import json
from collections.abc import Iterable
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
