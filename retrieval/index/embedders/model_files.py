"""Find the files of a published model in a folder, or download them from the Hugging Face hub."""

from __future__ import annotations

import contextlib
import fnmatch
import importlib
import importlib.util
import io
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Report = Callable[[str, int, int], None]
"""Receives the name of the work, the amount done, and the total."""

CONFIG, TOKENIZER, WEIGHTS = "config.json", "tokenizer.json", "model.safetensors"
NEWER_CONFIG = "config_sentence_transformers.json"
EXPORTS = ("model.onnx", "onnx/model.onnx")
# Paths of 8-bit ONNX files, which are a quarter of the size and up to three times as fast.
EXPORTS_8_BIT = (
    *(f"{folder}model_{name}.onnx" for folder in ("onnx/", "") for name in ("quantized", "int8")),
    "onnx/model_qint8_avx512_vnni.onnx",
)


def find_package(name: str) -> Path | None:
    """Return the folder of a Python package without importing it; None if it is not installed."""
    spec = importlib.util.find_spec(name)
    folders = (spec.submodule_search_locations if spec is not None else None) or []
    return next(map(Path, folders), None)


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ValueError(f"the file {path} cannot be read: {error}") from error


def read_json_object(path: Path) -> dict[str, Any]:
    """Return the file's JSON object; {} if the file is missing. Raises: ValueError, OSError."""
    read = read_json(path)
    if not isinstance(read, dict):
        raise ValueError(f"the file {path} does not hold a JSON object")
    return read


def find_model(folder: Path, names: Sequence[str] = EXPORTS) -> Path:
    """Return the first file of ``names`` that exists in ``folder``.

    Raises: ValueError if none exists, or if the folder has no tokenizer.
    """
    if not (folder / TOKENIZER).is_file():
        raise ValueError(f"it has no {TOKENIZER}")
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise ValueError(f"it has no {' and no '.join(dict.fromkeys((EXPORTS[0], names[-1])))}: export it to ONNX")


def load_tokenizer(folder: Path) -> Tokenizer:
    """Return the folder's tokenizer, without truncation and padding. Raises: ValueError."""
    # Imported here because it takes tens of MiB.
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    except Exception as error:  # The library raises plain exceptions.
        raise ValueError(f"the tokenizer in {folder} cannot be read: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


DESCRIBING = ("*.json", "*_Pooling/*.json", "*_Dense/config.json", "*_Dense/model.safetensors")
COMPLETE = ".complete"
"""This file marks a complete model: a killed fetch leaves only some files."""


class ModelNotFetched(Exception):
    """An error: the model does not exist on the hub, or the hub does not answer."""


def fetch_model(
    name: str, cache_dir: Path | None, *, kind: str, exports: Sequence[str] = EXPORTS, report: Report | None = None
) -> Path:
    """Return the model's folder in the cache. A missing model is downloaded from the hub.

    The first of ``exports`` (paths of ONNX files) that the hub has is downloaded. ``report`` gets the progress in
    megabytes. Raises: ModelNotFetched.
    """
    try:
        from httpx import HTTPError
        from huggingface_hub import HfApi, snapshot_download
        from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError, RepositoryNotFoundError
    except ImportError as error:
        raise ModelNotFetched(
            f"There is no folder {name}, and to fetch a model of that name the package huggingface_hub is missing."
        ) from error
    # A cached model is used without a request to the hub, so that it stays the same.
    with contextlib.suppress(LocalEntryNotFoundError, HFValidationError):
        folder = Path(snapshot_download(name, cache_dir=cache_dir, local_files_only=True))
        if (folder / COMPLETE).exists():
            return folder
    try:
        wanted = _choose_needed_files(HfApi().list_repo_files(name, revision="main"), exports)
        bar = _make_progress_bar_class(name, report) if report is not None else None
        folder = Path(snapshot_download(name, cache_dir=cache_dir, allow_patterns=wanted, tqdm_class=bar))
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise ModelNotFetched(
            f"There is no folder {name} and no model of that name on the hub, or it may not be read."
        ) from error
    except (LocalEntryNotFoundError, HTTPError, OSError) as error:
        raise ModelNotFetched(
            f"The {kind} {name} was not found locally and could not be fetched from the hub "
            f"({type(error).__name__}): try again with a network, or download it elsewhere and give the folder's path."
        ) from error
    # If the file COMPLETE cannot be written, the next start only asks the hub again.
    with contextlib.suppress(OSError):
        (folder / COMPLETE).touch()
    return folder


def _choose_needed_files(names: Iterable[str], exports: Sequence[str]) -> list[str]:
    names = [*names]
    export = next((each for each in exports if each in names), exports[0])
    patterns = (*DESCRIBING, export, f"{export}?data*")
    return [name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]


def _make_progress_bar_class(name: str, report: Report) -> type[Any]:
    tqdm: Any = importlib.import_module("tqdm").tqdm

    class Bar(tqdm):  # type: ignore[misc]  # tqdm has no types
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **{**options, "file": io.StringIO(), "disable": False})

        def display(self, *_args: Any, **_options: Any) -> None:
            if self.unit == "B" and self.total:
                report(f"Downloading {name}, megabytes", int(self.n / 1e6), max(1, int(self.total / 1e6)))

    return Bar
