"""The files of a published model: in a folder, or fetched from the Hugging Face hub into one."""

from __future__ import annotations

import contextlib
import importlib.util
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CONFIG, TOKENIZER, WEIGHTS = "config.json", "tokenizer.json", "model.safetensors"
NEWER_CONFIG = "config_sentence_transformers.json"
EXPORTS = ("model.onnx", "onnx/model.onnx")


def find_package(name: str) -> Path | None:
    """The folder of an installed package, found without importing it, which may import a framework; None without it."""
    spec = importlib.util.find_spec(name)
    folders = (spec.submodule_search_locations if spec is not None else None) or []
    return next(map(Path, folders), None)


def read_json(path: Path) -> Any:
    """The content of the file; an empty dictionary if there is none. Raises: ValueError, OSError."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ValueError(f"the file {path} cannot be read: {error}") from error


def read_object(path: Path) -> dict[str, Any]:
    """The content of a file with one JSON object; empty if there is none. Raises: ValueError, OSError."""
    read = read_json(path)
    if not isinstance(read, dict):
        raise ValueError(f"the file {path} does not hold a JSON object")
    return read


def find_model(folder: Path, *, or_weights: bool = False) -> Path:
    """The model as an ONNX file, or else its weights where ``or_weights`` allows them. Raises: ValueError when the
    folder has neither, or no tokenizer."""
    if not (folder / TOKENIZER).is_file():
        raise ValueError(f"it has no {TOKENIZER}")
    names = (*EXPORTS, WEIGHTS) if or_weights else EXPORTS
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise ValueError(f"it has no {' and no '.join(dict.fromkeys((EXPORTS[0], names[-1])))}: export it to ONNX")


def load_tokenizer(folder: Path) -> Tokenizer:
    """A new one each time, without truncation and padding. Raises: ValueError."""
    # An import of tens of MiB that a process which reads no text does not pay.
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    except Exception as error:  # the tokenizer's library raises nothing more precise
        raise ValueError(f"the tokenizer in {folder} cannot be read: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


FETCHED = ["*.json", "*_Pooling/*.json", *EXPORTS, *(f"{export}_data" for export in EXPORTS)]
COMPLETE = ".complete"
"""A file beside the model's that says that none is missing: a fetch that was killed leaves some."""


class NotFetched(Exception):
    """There is no such model, or the hub cannot be asked now."""


def fetch(name: str, cache_dir: Path | None, *, kind: str) -> Path:
    """The folder of the model of that name, from the cache when it is there; ``kind`` is what messages call it.

    Without ``cache_dir`` the folder is the hub client's own. Raises: NotFetched.
    """
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError, RepositoryNotFoundError
    except ImportError as error:
        raise NotFetched(
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
        raise NotFetched(
            f"The {kind} {name} was not found locally and the hub cannot be reached: "
            "download it and give the folder's path."
        ) from error
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise NotFetched(
            f"There is no folder {name} and no model of that name on the hub, or it may not be read."
        ) from error
    except OSError as error:
        raise NotFetched(f"The {kind} {name} could not be fetched: {type(error).__name__}.") from error
    # Where it cannot be written, the next start asks the hub again.
    with contextlib.suppress(OSError):
        (folder / COMPLETE).touch()
    return folder
