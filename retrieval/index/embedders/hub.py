"""Models fetched by name from the Hugging Face hub into a folder."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from pathlib import Path

from retrieval.index.embedders.files import CONFIG, EXPORTS, SHARDS, WEIGHTS, find_export, read_object, weight_files

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
