"""The files of a published model: in a folder, or fetched from the Hugging Face hub into one."""

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
"""Receives what is being done, how much of it is done, and of how much."""

CONFIG, TOKENIZER, WEIGHTS = "config.json", "tokenizer.json", "model.safetensors"
NEWER_CONFIG = "config_sentence_transformers.json"
EXPORTS = ("model.onnx", "onnx/model.onnx")
# These exports have a quarter of the size and are up to three times as fast, and lose a thousandth of nDCG.
EXPORTS_8_BIT = (
    *(f"{folder}model_{name}.onnx" for folder in ("onnx/", "") for name in ("quantized", "int8")),
    "onnx/model_qint8_avx512_vnni.onnx",
)


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


def find_model(folder: Path, names: Sequence[str] = EXPORTS) -> Path:
    """Return the path of the first of the names that the folder contains.

    Raises: ValueError if it contains none of them, or no tokenizer.
    """
    if not (folder / TOKENIZER).is_file():
        raise ValueError(f"it has no {TOKENIZER}")
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


DESCRIBING = ("*.json", "*_Pooling/*.json", "*_Dense/config.json", "*_Dense/model.safetensors")
COMPLETE = ".complete"
"""A file beside the model's that says that none is missing: a fetch that was killed leaves some."""


class NotFetched(Exception):
    """There is no such model, or the hub cannot be asked now."""


def fetch(
    name: str, cache_dir: Path | None, *, kind: str, exports: Sequence[str] = EXPORTS, report: Report | None = None
) -> Path:
    """Return the folder of the model with this name, from the cache or downloaded from the hub.

    The first of the ``exports`` that the hub has is downloaded, with the files that describe the model. ``kind`` is the
    noun for the model in messages; ``report`` receives megabytes. If ``cache_dir`` is None, the folder is the hub
    client's own. Raises: NotFetched.
    """
    try:
        from httpx import HTTPError
        from huggingface_hub import HfApi, snapshot_download
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
        wanted = _choose_files(HfApi().list_repo_files(name, revision="main"), exports)
        bar = _make_bar_class(name, report) if report is not None else None
        folder = Path(snapshot_download(name, cache_dir=cache_dir, allow_patterns=wanted, tqdm_class=bar))
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise NotFetched(
            f"There is no folder {name} and no model of that name on the hub, or it may not be read."
        ) from error
    except (LocalEntryNotFoundError, HTTPError, OSError) as error:
        raise NotFetched(
            f"The {kind} {name} was not found locally and could not be fetched from the hub "
            f"({type(error).__name__}): try again with a network, or download it elsewhere and give the folder's path."
        ) from error
    # Where it cannot be written, the next start asks the hub again.
    with contextlib.suppress(OSError):
        (folder / COMPLETE).touch()
    return folder


def _choose_files(names: Iterable[str], exports: Sequence[str]) -> list[str]:
    names = [*names]
    export = next((each for each in exports if each in names), exports[0])
    patterns = (*DESCRIBING, export, f"{export}?data*")
    return [name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]


def _make_bar_class(name: str, report: Report) -> type[Any]:
    """Return a class of progress bars for the hub's client that call ``report`` and print no text."""
    tqdm: Any = importlib.import_module("tqdm").tqdm

    class Bar(tqdm):  # type: ignore[misc]  # tqdm has no types
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **{**options, "file": io.StringIO(), "disable": False})

        def display(self, *_args: Any, **_options: Any) -> None:
            # The client makes two bars; the other one counts files.
            if self.unit == "B" and self.total:
                report(f"Downloading {name}, megabytes", int(self.n / 1e6), max(1, int(self.total / 1e6)))

    return Bar
