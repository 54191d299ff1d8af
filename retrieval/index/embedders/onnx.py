"""Text embedders on ONNX Runtime, on this machine's processor, without a network, a key or a GPU."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from retrieval.exceptions import ImproperEmbedder
from retrieval.index.embedders import model_cache
from retrieval.index.embedders.runtime import EmbeddingRuntime, hidden_output, multiplies_bytes_exactly
from retrieval.index.embedders.session import open_session, text_inputs
from retrieval.protocols import TextEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tokenizers import Tokenizer

    from retrieval.index.embedders.graph import Precision
    from retrieval.index.embedders.sentence_model import Prompts, SentenceModel
    from retrieval.types import Vectors

logger = logging.getLogger(__name__)

T = TypeVar("T")

GRAPH_VERSION = 1
"""Part of the cached file's name; raise it whenever `graph` writes a different graph."""


class Runtime(Protocol):
    """An embedder's session and tokenizer, open in one process."""

    def sentence(self, text: str, prompt: str) -> Vectors:
        """The unit vector of the text after its prompt. Raises: EmbeddingFailed."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """As :meth:`TextEmbedder.count_tokens`."""


R = TypeVar("R", bound=Runtime)


class OnnxEmbedder(TextEmbedder, Generic[R]):
    """An embedder of this process; a base class of those that are found in different ways.

    Instances may be shared by threads and survive a fork: a process opens its own session on first use, unless it was
    opened for forks to share.
    ``threads`` texts are embedded at once; a vector does not depend on them, nor on the texts around it.
    """

    is_local = True
    prompts: Prompts
    graph_path: Path

    def __init__(self, precision: Precision, threads: int) -> None:
        if precision not in ("int8", "fp32"):
            raise ImproperEmbedder(f'The precision of the embedder is "int8" or "fp32", not "{precision}".')
        if threads < 1:
            raise ImproperEmbedder(f"The embedder needs at least one thread, not {threads}.")
        self.precision: Precision = precision
        self.threads = threads
        self._runtime: R | None = None
        self._shared: R | None = None
        self._lock = threading.Lock()
        _embedders.add(self)

    def open(self, progress: Callable[[str], None]) -> R:
        """The session and the tokenizer, opened now; called once a process. Raises: ImproperEmbedder."""
        raise NotImplementedError

    def build_graph(self) -> bytes:
        """The graph, written from files that are as they should be. Raises: ImproperEmbedder."""
        raise NotImplementedError

    def is_converted(self) -> bool:
        """Whether all files are there that are made once."""
        return self.graph_path.exists()

    def open_for_forks(self) -> None:
        """Open the session and the tokenizer for the forks of this process to share: 90 MB once. A session of one
        thread starts none, so that it survives the fork. Raises: ImproperEmbedder."""
        self._shared = self._opened()

    def prepare(self, progress: Callable[[str], None] | None = None) -> None:
        """Everything slow about the first text, done now: writes the graph unless it is cached, opens the session.

        ``progress`` receives sentences for a person; none when the graph is there already.

        Raises: ImproperEmbedder.
        """
        self._opened(progress)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._opened().count(texts)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (len(texts), dimension), in the order given; an empty text has one too.

        Raises: EmbeddingFailed, ImproperEmbedder.
        """
        vectors = np.empty((len(texts), self.dimension), np.float32)
        if not len(texts):
            return vectors
        runtime, prompt = self._opened(), self.prompts.document
        for row, vector in enumerate(self._each(lambda text: runtime.sentence(text, prompt), texts)):
            vectors[row] = vector
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """A unit vector, shape (dimension,); where the model has no prompts, the one that the text has as a document.

        Raises: EmbeddingFailed, ImproperEmbedder.
        """
        return self._opened().sentence(text, self.prompts.query)

    def _each(self, compute: Callable[[str], T], texts: Sequence[str]) -> list[T]:
        """``compute`` of each text, in order, ``threads`` at once."""
        if self.threads == 1 or len(texts) <= 1:
            return [compute(text) for text in texts]
        with ThreadPoolExecutor(self.threads, thread_name_prefix="embed") as pool:
            return list(pool.map(compute, texts))

    def _opened(self, progress: Callable[[str], None] | None = None) -> R:
        runtime = self._runtime
        if runtime is None:
            with self._lock:
                runtime = self._runtime or self.open(progress or (lambda message: None))
                self._runtime = runtime
        return runtime

    def graph_session(self, progress: Callable[[str], None]) -> Any:
        """A session of the cached graph, which is written where it is missing or damaged. Raises: ImproperEmbedder."""
        if not self.graph_path.exists():
            self._write_graph(progress)
        saturates = not multiplies_bytes_exactly()
        try:
            return open_session(str(self.graph_path), saturates=saturates)
        except Exception:  # ONNX Runtime's exceptions have no other base
            logger.warning("The cached graph %s cannot be loaded and is written again.", self.graph_path, exc_info=True)
        self._write_graph(progress)
        return open_session(str(self.graph_path), saturates=saturates)

    def _write_graph(self, progress: Callable[[str], None]) -> None:
        progress(f"Preparing the embedding model {self.name} (once, a few seconds)...")
        started = time.monotonic()
        self.keep(self.graph_path, self.build_graph())
        progress(f"The embedding model is ready ({time.monotonic() - started:.1f} s).")

    def keep(self, path: Path, content: bytes) -> None:
        """Write a file of the cache. Raises: ImproperEmbedder."""
        try:
            model_cache.write_whole(path, content)
        except OSError as error:
            raise ImproperEmbedder(
                f"The embedding model cannot be written to {path.parent} ({error.strerror}): "
                "make the folder writable, with 100 MB free, or point DATA_DIR at one that is."
            ) from error


class SentenceEmbedder(OnnxEmbedder[EmbeddingRuntime]):
    """A sentence-transformers model, read with the `tokenizers` library."""

    def model(self) -> SentenceModel:
        """The files, read or verified now. Raises: ImproperEmbedder."""
        raise NotImplementedError

    def verified_model(self) -> SentenceModel:
        """The files, fit to write the graph from. Raises: ImproperEmbedder."""
        return self.model()

    def load_tokenizer(self) -> Tokenizer:
        """The model's tokenizer, a new one each time. Raises: ImproperEmbedder."""
        raise NotImplementedError

    def open(self, progress: Callable[[str], None]) -> EmbeddingRuntime:
        truncating, counter = self.load_tokenizer(), self.load_tokenizer()
        model = self.model()
        truncating.enable_truncation(model.max_tokens)
        if model.export is None:
            session, head, hidden = self.graph_session(progress), None, ""
        else:
            session, head, hidden = _export_sessions(model)
        return EmbeddingRuntime(
            session=session,
            head=head,
            hidden=hidden,
            inputs=text_inputs(session),
            truncating=truncating,
            counter=counter,
            lowercase=model.lowercase,
            max_tokens=model.max_tokens,
        )

    def build_graph(self) -> bytes:
        # An import of tens of MiB that only those pay who write a graph.
        from retrieval.index.embedders.sentence_graph import build_graph

        model = self.verified_model()
        try:
            return build_graph(model, self.precision, self.name.partition("/")[0])
        except Exception as error:  # safetensors' and onnx's exceptions have no other base
            raise ImproperEmbedder(
                f"No graph can be written from the embedding model in {model.folder} "
                f"({type(error).__name__}: {_one_line(error)})."
            ) from error


def _export_sessions(model: SentenceModel) -> tuple[Any, Any, str]:
    """The export's session, the one that pools what it gives, and its output's name. Raises: ImproperEmbedder."""
    # An import of tens of MiB that only exports need.
    from retrieval.index.embedders.sentence_graph import build_head

    saturates = not multiplies_bytes_exactly()
    try:
        session = open_session(str(model.export), saturates=saturates)
        text_inputs(session)
        return session, open_session(build_head(model), saturates=saturates), hidden_output(session)
    except Exception as error:  # ONNX Runtime's exceptions have no other base
        raise ImproperEmbedder(f"The model {model.export} cannot be used: {_one_line(error)}.") from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


_embedders: weakref.WeakSet[OnnxEmbedder[Any]] = weakref.WeakSet()


def _reset_after_fork() -> None:
    """A lock held by a thread that the child does not have would never open. Nor is a session shared that may have been
    opened while other threads ran."""
    for embedder in _embedders:
        embedder._lock = threading.Lock()
        embedder._runtime = embedder._shared


os.register_at_fork(after_in_child=_reset_after_fork)
