"""Rerank passages with a cross encoder: a model that reads question and passage as one text.

Source: Nogueira and Cho, "Passage Re-ranking with BERT", 2019.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from django.core.exceptions import ImproperlyConfigured

from retrieval.exceptions import RerankFailed
from retrieval.index.embedders import model_files
from retrieval.index.embedders.model_files import CONFIG, NEWER_CONFIG, find_model, load_tokenizer, read_json_object
from retrieval.index.embedders.session import (
    PerProcessModel,
    build_model_inputs,
    open_onnx_session,
    read_input_types,
    replace_surrogates,
)
from retrieval.protocols import Reranker
from retrieval.search.passage_rows import load_chunk_texts

if TYPE_CHECKING:
    from tokenizers import Tokenizer


# Maximum of a question and a passage together.
MAX_TOKENS = 512
# Seconds until the next attempt to load the model.
RETRIED_AFTER_SECONDS = 60.0


class CrossEncoder(PerProcessModel, Reranker):
    """A reranker that runs a cross encoder in this process. It is safe for threads and forks.

    ``model`` is a folder with an ONNX file, or a name on the Hugging Face hub. Raises: ImproperlyConfigured for an
    unusable argument or folder.
    """

    def __init__(self, model: str, threads: int = 2, cache_dir: Path | None = None) -> None:
        if not model or threads < 1:
            raise ImproperlyConfigured("A cross encoder needs a model and a thread.")
        self.model = model
        self.threads = threads
        self._cache_dir = cache_dir
        self._folder = Path(model).expanduser()
        if self._folder.exists():
            _read_model_folder(self._folder)
        elif model.startswith(("/", ".", "~")):
            raise ImproperlyConfigured(f"There is no folder {model} with a cross encoder.")
        PerProcessModel.__init__(self)
        self._problem: tuple[float, str] | None = None

    def prepare(self, progress: Callable[[str], None] | None = None) -> None:
        if progress is not None and self._runtime is None:
            progress(f"Loading the cross encoder {self.model}...")
        self._get_runtime(math.inf)

    def score(self, query: str, chunk_ids: Sequence[int], timeout_seconds: float) -> dict[int, float]:
        deadline = time.monotonic() + timeout_seconds
        texts = load_chunk_texts(chunk_ids)
        scores = self.score_texts(query, [*texts.values()], deadline - time.monotonic())
        return dict(zip(texts, scores, strict=True))

    def score_texts(self, query: str, texts: Sequence[str], timeout_seconds: float) -> list[float]:
        """Return the model's scores in the order of ``texts``. Raises: RerankFailed, also after ``timeout_seconds``."""
        deadline = time.monotonic() + timeout_seconds
        runtime = self._get_runtime(deadline)

        def score_before_deadline(text: str) -> float | None:
            return runtime.score(query, text) if time.monotonic() < deadline else None

        with ThreadPoolExecutor(self.threads, thread_name_prefix="cross-encoder") as pool:
            judged = [*pool.map(score_before_deadline, texts)]
        scores = [score for score in judged if score is not None]
        if len(scores) < len(texts):
            raise RerankFailed(
                f"The cross encoder is late: it read {len(scores)} of {len(texts)} passages in "
                f"{timeout_seconds:.3g} s; rerank fewer, or allow more time."
            )
        return scores

    def _get_runtime(self, deadline: float) -> _PairRuntime:
        opened: _PairRuntime | None = self._runtime
        if opened is not None:
            return opened
        # Another thread may be loading the model until this thread's deadline.
        patience = min(max(0.0, deadline - time.monotonic()), threading.TIMEOUT_MAX)
        if not self._lock.acquire(timeout=patience):
            raise RerankFailed(f"The cross encoder is late: {self.model} is still being loaded.")
        try:
            opened = self._runtime or self._open()
            self._runtime = opened
            return opened
        finally:
            self._lock.release()

    def _open(self) -> _PairRuntime:
        if self._problem is not None and time.monotonic() < self._problem[0]:
            raise RerankFailed(self._problem[1])
        try:
            here = self._folder.exists()
            return _load_model(
                self._folder if here else model_files.fetch_model(self.model, self._cache_dir, kind="cross encoder")
            )
        except (model_files.ModelNotFetched, ImproperlyConfigured) as error:
            self._problem = time.monotonic() + RETRIED_AFTER_SECONDS, str(error)
            raise RerankFailed(str(error)) from error


@dataclass(frozen=True, slots=True)
class _PairRuntime:
    session: Any
    tokenizer: Tokenizer
    inputs: Mapping[str, type[np.signedinteger[Any]]]
    is_sigmoid: bool

    def score(self, query: str, text: str) -> float:
        encoding = self.tokenizer.encode(replace_surrogates(query), replace_surrogates(text))
        try:
            outputs = self.session.run(None, build_model_inputs(encoding, self.inputs))
        except Exception as error:  # ONNX Runtime's exceptions have no common base class.
            raise RerankFailed(
                f"ONNX Runtime could not read a pair of {len(encoding.ids)} tokens: {' '.join(str(error).split())}"
            ) from error
        logits = outputs[0]
        if logits.size != 1:
            raise RerankFailed(f"The cross encoder gave {logits.size} numbers for a pair, where one is the score.")
        logit = float(logits.item())
        if not math.isfinite(logit):
            raise RerankFailed("The cross encoder gave a score that is not finite.")
        # Unlike 1 / (1 + exp(-x)), this form of the sigmoid cannot overflow.
        return (1 + math.tanh(logit / 2)) / 2 if self.is_sigmoid else logit


def _read_model_folder(folder: Path) -> tuple[Path, int, bool]:
    """Return the model's ONNX file, its token limit, and whether its activation function is a sigmoid.

    Raises: ImproperlyConfigured.
    """
    try:
        export, config, newer = (
            find_model(folder),
            read_json_object(folder / CONFIG),
            read_json_object(folder / NEWER_CONFIG),
        )
    except (OSError, ValueError) as error:
        raise ImproperlyConfigured(f"The cross encoder in {folder} cannot be used: {error}.") from error
    named = (
        newer.get("activation_fn")
        or (config.get("sentence_transformers") or {}).get("activation_fn")
        or config.get("sbert_ce_default_activation_function")
        or "Sigmoid"
    )
    activation = str(named).rpartition(".")[2]
    if activation not in ("Sigmoid", "Identity"):
        raise ImproperlyConfigured(
            f"The cross encoder in {folder} names {named} as its activation; it can be Sigmoid or Identity."
        )
    return export, min(MAX_TOKENS, config.get("max_position_embeddings") or MAX_TOKENS), activation == "Sigmoid"


def _load_model(folder: Path) -> _PairRuntime:
    export, tokens, is_sigmoid = _read_model_folder(folder)
    try:
        tokenizer = load_tokenizer(folder)
        tokenizer.enable_truncation(tokens)
        session = open_onnx_session(str(export))
        return _PairRuntime(session, tokenizer, read_input_types(session), is_sigmoid)
    except Exception as error:  # ONNX Runtime's exceptions have no common base class.
        raise ImproperlyConfigured(
            f"The cross encoder in {folder} cannot be loaded ({type(error).__name__}: "
            f"{' '.join(str(error).split())}): it must score a pair of texts with one number."
        ) from error
