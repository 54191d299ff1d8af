"""A cross encoder on ONNX Runtime, of one's own choice: its files, its graph, and the reranker that runs it."""

from __future__ import annotations

import math
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from django.core.exceptions import ImproperlyConfigured

from retrieval.exceptions import RerankFailed, RerankLate
from retrieval.index.embedders import model_files
from retrieval.index.embedders.graph import TOKEN_TYPES, EncoderGraph, float_output, token_input
from retrieval.index.embedders.model_files import (
    BERT,
    CONFIG,
    EXPORTS,
    NEWER_CONFIG,
    TOKENIZER,
    WEIGHTS,
    find_export,
    load_bert,
    read_object,
    read_shape,
)
from retrieval.index.embedders.session import open_session, text_inputs, well_formed
from retrieval.protocols import Reranker
from retrieval.search.passage_rows import load_texts

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from retrieval.index.embedders.graph import Precision

# The ONNX graph of a cross encoder, written from its weights without a deep-learning framework.
#
# A cross encoder reads question and passage as one sequence and says in one number how well they fit (Nogueira and
# Cho, "Passage Re-ranking with BERT", 2019): BERT's encoder, a dense layer with tanh over the first token, and a
# dense layer with one output.


_HIDDEN_LAYER, _OUTPUT_LAYER = "pooler.dense", "classifier"


def build_graph(weights: Path, config: Mapping[str, Any], precision: Precision) -> bytes:
    """A serialized ONNX model: ``input_ids`` and ``token_type_ids`` int64 (1, n) -> ``logits`` float32 (1, 1).

    Raises: KeyError, ValueError, OSError when the weights are not those of such a model.
    """
    shape = read_shape(config)
    tensors = load_bert(weights)
    labels = len(tensors[f"{_OUTPUT_LAYER}.weight"])
    if labels != 1:
        raise ValueError(f"it has {labels} labels and a cross encoder has one")
    graph = _ClassifierGraph(tensors, precision, shape)
    hidden = graph.pair_embeddings()
    for layer in range(shape.layers):
        hidden = graph.layer(layer, hidden, f"hidden_{layer}")
    return graph.serialize_classifier(hidden)


class _ClassifierGraph(EncoderGraph):
    def pair_embeddings(self) -> str:
        """The embeddings of the tokens, with the row of each token's own type."""
        # The rows of type 0 are in the sum already: what the other type differs by is added.
        types = self.weights[TOKEN_TYPES]
        self.add("Gather", [self.constant("token_types", types - types[0]), "token_type_ids"], "token_type_rows")
        embedded = self.positioned(self.word_rows())
        return self.normalized(self.add("Add", [embedded, "token_type_rows"], "embedded_pair"))

    def dense(self, source: str, name: str) -> str:
        """In fp32 whatever the precision: it is one token, and the last layers decide the score."""
        product = self.add("MatMul", [source, self.constant(f"{name}.matrix", self.weights[f"{name}.weight"].T)], name)
        return self.add("Add", [product, self.weight(f"{name}.bias")], f"{name}.biased")

    def serialize_classifier(self, hidden: str) -> bytes:
        first = self.add("Gather", [hidden, self.constant("first_token", np.array([0]))], "first_hidden", axis=1)
        pooled = self.add("Tanh", [self.dense(first, _HIDDEN_LAYER)], "pooled")
        self.add("Flatten", [self.dense(pooled, _OUTPUT_LAYER)], "logits")
        inputs = [token_input(name) for name in ("input_ids", "token_type_ids")]
        return self.serialize("cross-encoder", inputs, [float_output("logits", [1, 1])])


# The files of a cross encoder: in a folder, or fetched from the Hugging Face hub into one.


class Activation(StrEnum):
    """What a model's output goes through to be its score, as sentence-transformers names it."""

    SIGMOID = "Sigmoid"
    IDENTITY = "Identity"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A folder that can be loaded. ``export`` is its ONNX file; without one, ``config`` describes ``weights``."""

    folder: Path
    config: Mapping[str, Any]
    activation: Activation
    export: Path | None

    @property
    def tokenizer(self) -> Path:
        return self.folder / TOKENIZER

    @property
    def weights(self) -> Path:
        return self.folder / WEIGHTS


def read_folder(folder: Path) -> ModelFiles:
    """The model in a folder; an ONNX export counts before weights. Raises: ImproperlyConfigured."""
    if not (folder / TOKENIZER).is_file():
        raise ImproperlyConfigured(f"The cross encoder in {folder} has no {TOKENIZER}.")
    config = _json(folder / CONFIG)
    export = find_export(folder)
    if export is None:
        if not (folder / WEIGHTS).is_file():
            raise ImproperlyConfigured(f"The cross encoder in {folder} has neither {WEIGHTS} nor {EXPORTS[0]}.")
        if (kind := config.get("model_type")) != BERT:
            raise ImproperlyConfigured(
                f"The cross encoder in {folder} is of the architecture {kind!r}; from {WEIGHTS} only {BERT!r} can be "
                f"loaded: export the model to ONNX, as {EXPORTS[0]} in the folder."
            )
    return ModelFiles(folder, config, _activation(folder, config), export)


def fetch(name: str, cache_dir: Path | None) -> ModelFiles:
    """The model of that name on the hub, from the cache folder when it is there.

    Without ``cache_dir`` it is the hub client's own folder. Raises: ImproperlyConfigured for a model that does not
    exist or cannot be loaded, RerankFailed when the hub cannot be reached.
    """
    try:
        folder = model_files.fetch(name, cache_dir, kind="cross encoder")
    except model_files.HubUnreachable as error:
        raise RerankFailed(str(error)) from error
    except model_files.UnknownModel as error:
        raise ImproperlyConfigured(str(error)) from error
    return read_folder(folder)


def _json(path: Path) -> dict[str, Any]:
    """What the file holds; empty when there is none. Raises: ImproperlyConfigured."""
    try:
        return read_object(path)
    except (OSError, ValueError) as error:
        raise ImproperlyConfigured(f"{str(error)[:1].upper()}{str(error)[1:]}.") from error


def _activation(folder: Path, config: Mapping[str, Any]) -> Activation:
    """As sentence-transformers decides it for one label: what the model names, in one of three places, or a sigmoid."""
    named = (
        _json(folder / NEWER_CONFIG).get("activation_fn")
        or (config.get("sentence_transformers") or {}).get("activation_fn")
        or config.get("sbert_ce_default_activation_function")
        or Activation.SIGMOID
    )
    try:
        return Activation(str(named).rpartition(".")[2])
    except ValueError:
        raise ImproperlyConfigured(
            f"The cross encoder in {folder} names {named} as its activation; it can be Sigmoid or Identity."
        ) from None


RETRIED_AFTER_SECONDS = 60.0
"""A model that could not be loaded is not tried again by every search."""


class CrossEncoder(Reranker):
    """Instances may be shared by threads and survive a fork (each process opens its own session).

    ``model`` is a folder in the form of sentence-transformers (a BERT from model.safetensors, anything from
    model.onnx), or a name on the hub. A score is the model's one output through the activation that the
    model names, which is a sigmoid when it names none. A pair is cut to ``max_tokens``, the longer text first;
    ``threads`` pairs are read at once, each in a run of its own, so that no score depends on its neighbours.
    ``precision`` is for models that come as weights: "int8" takes half the time of "fp32" and orders nearly alike. An
    export is as precise as it was exported.

    Raises: ImproperlyConfigured when an argument or the folder cannot work; a name is looked up at first use.
    """

    def __init__(
        self,
        model: str,
        max_tokens: int = 512,
        threads: int = 2,
        cache_dir: Path | None = None,
        precision: Precision = "int8",
    ) -> None:
        if not model or max_tokens < 8 or threads < 1 or precision not in ("fp32", "int8"):
            raise ImproperlyConfigured(
                'A cross encoder needs a model, 8 tokens, a thread, and the precision "fp32" or "int8".'
            )
        self.model = model
        self.max_tokens = max_tokens
        self.threads = threads
        self.precision: Precision = precision
        self._cache_dir = cache_dir
        self._folder = Path(model).expanduser()
        if self._folder.exists():
            read_folder(self._folder)
        elif model.startswith(("/", ".", "~")):
            raise ImproperlyConfigured(f"There is no folder {model} with a cross encoder.")
        self._runtime: _PairRuntime | None = None
        self._lock = threading.Lock()
        self._problem: tuple[float, str] | None = None
        _cross_encoders.add(self)

    def prepare(self, progress: Callable[[str], None] | None = None) -> None:
        """Everything slow about the first question, done now. Raises: RerankFailed, ImproperlyConfigured."""
        if progress is not None and self._runtime is None:
            progress(f"Loading the cross encoder {self.model}...")
        self._opened(math.inf)

    def score(self, query: str, chunk_ids: Sequence[int], timeout_seconds: float) -> dict[int, float]:
        deadline = time.monotonic() + timeout_seconds
        texts = load_texts(chunk_ids)
        scores = self.score_texts(query, [*texts.values()], deadline - time.monotonic())
        return dict(zip(texts, scores, strict=True))

    def score_texts(self, query: str, texts: Sequence[str], timeout_seconds: float) -> list[float]:
        """The model's score of each text, in the order given. Raises: RerankFailed, also when time runs out."""
        deadline = time.monotonic() + timeout_seconds
        runtime = self._opened(deadline)

        def judge(text: str) -> float | None:
            return runtime.score(query, text) if time.monotonic() < deadline else None

        with ThreadPoolExecutor(self.threads, thread_name_prefix="cross-encoder") as pool:
            judged = [*pool.map(judge, texts)]
        scores = [score for score in judged if score is not None]
        if len(scores) < len(texts):
            raise RerankLate(
                f"The cross encoder is late: it read {len(scores)} of {len(texts)} passages in "
                f"{timeout_seconds:.3g} s; rerank fewer, or allow more time."
            )
        return scores

    def _opened(self, deadline: float) -> _PairRuntime:
        if self._runtime is not None:
            return self._runtime
        # Loading can take long. Who waits for another thread's loading waits no longer than the question may.
        patience = min(max(0.0, deadline - time.monotonic()), threading.TIMEOUT_MAX)
        if not self._lock.acquire(timeout=patience):
            raise RerankLate(f"The cross encoder is late: {self.model} is still being loaded.")
        try:
            if self._runtime is None:
                self._runtime = self._open()
            return self._runtime
        finally:
            self._lock.release()

    def _open(self) -> _PairRuntime:
        if self._problem is not None and time.monotonic() < self._problem[0]:
            raise RerankFailed(self._problem[1])
        try:
            files = read_folder(self._folder) if self._folder.exists() else fetch(self.model, self._cache_dir)
            return _load(files, self.max_tokens, self.precision)
        except (RerankFailed, ImproperlyConfigured) as error:
            self._problem = time.monotonic() + RETRIED_AFTER_SECONDS, str(error)
            raise


@dataclass(frozen=True, slots=True)
class _PairRuntime:
    """What one process holds open. ``inputs`` are the types of the model's inputs, by name."""

    session: Any
    tokenizer: Tokenizer
    inputs: Mapping[str, type[np.signedinteger[Any]]]
    activation: Activation

    def score(self, query: str, text: str) -> float:
        encoding = self.tokenizer.encode(well_formed(query), well_formed(text))
        known = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
        }
        try:
            outputs = self.session.run(None, {name: np.array([known[name]], of) for name, of in self.inputs.items()})
        except Exception as error:  # ONNX Runtime's exceptions have no other base
            raise RerankFailed(
                f"ONNX Runtime could not read a pair of {len(encoding.ids)} tokens: {' '.join(str(error).split())}"
            ) from error
        logits = outputs[0]
        if logits.size != 1:
            raise RerankFailed(f"The cross encoder gave {logits.size} numbers for a pair, where one is the score.")
        logit = float(logits.item())
        if not math.isfinite(logit):
            raise RerankFailed("The cross encoder gave a score that is not finite.")
        return _sigmoid(logit) if self.activation is Activation.SIGMOID else logit


def _load(files: ModelFiles, max_tokens: int, precision: Precision) -> _PairRuntime:
    """Raises: ImproperlyConfigured when the files are not those of a cross encoder."""
    # An import of tens of MiB that a process which never reranks does not pay.
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(files.tokenizer))
    except Exception as error:  # the tokenizer's library raises nothing more precise
        raise ImproperlyConfigured(f"The file {files.tokenizer} cannot be read: {error}") from error
    tokenizer.no_padding()
    try:
        max_tokens = min(max_tokens, files.config.get("max_position_embeddings") or max_tokens)
        source = str(files.export) if files.export else build_graph(files.weights, files.config, precision)
        # Every processor scores alike.
        session = open_session(source, saturates=True)
    except Exception as error:  # ONNX Runtime's and safetensors' exceptions have no other base
        raise ImproperlyConfigured(
            f"The cross encoder in {files.folder} cannot be loaded ({type(error).__name__}: "
            f"{' '.join(str(error).split())}): it must score a pair of texts with one number."
        ) from error
    tokenizer.enable_truncation(max_tokens)
    try:
        inputs = text_inputs(session)
    except ValueError as error:
        raise ImproperlyConfigured(f"The model {files.export} cannot be used: {error}.") from error
    return _PairRuntime(session, tokenizer, inputs, files.activation)


def _sigmoid(logit: float) -> float:
    # exp of a large number overflows, of a large negative one it does not.
    return 1 / (1 + math.exp(-logit)) if logit >= 0 else math.exp(logit) / (1 + math.exp(logit))


_cross_encoders: weakref.WeakSet[CrossEncoder] = weakref.WeakSet()


def _reset_after_fork() -> None:
    """A lock held by a thread that the child does not have would never open; a session is not shared either."""
    for cross_encoder in _cross_encoders:
        cross_encoder._lock = threading.Lock()
        cross_encoder._runtime = None


os.register_at_fork(after_in_child=_reset_after_fork)
