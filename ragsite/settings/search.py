from __future__ import annotations

from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from core.backend_setting import BackendSetting
from ragsite.processes.machine import count_available_cores
from ragsite.settings import env
from ragsite.settings.env import DATA_DIR


def _make_backend(path: str, **options: object) -> BackendSetting:
    return {"BACKEND": path, "OPTIONS": options}


_IN_THIS_PROCESS = {"cache_dir": DATA_DIR / "models"}
BUILT_IN_EMBEDDERS = {
    "multilingual-e5-small": _make_backend("retrieval.index.embedders.e5.MultilingualE5", **_IN_THIS_PROCESS),
    "all-MiniLM-L6-v2": _make_backend("retrieval.index.embedders.onnx.OnnxMiniLM", **_IN_THIS_PROCESS),
}
EMBEDDING_BASE_URL = env.read_string("EMBEDDING_BASE_URL")
EMBEDDING_MODEL = env.read_string("EMBEDDING_MODEL")
_query_prompt, _, _document_prompt = env.read_string("EMBEDDING_PROMPTS").partition("|")
EMBEDDER = BUILT_IN_EMBEDDERS.get(EMBEDDING_MODEL, {})
if EMBEDDING_BASE_URL:
    EMBEDDER = _make_backend(
        "retrieval.index.embedders.openai.OpenAICompatibleEmbedder",
        base_url=EMBEDDING_BASE_URL,
        api_key=env.read_string("EMBEDDING_API_KEY", env.read_string("OPENAI_API_KEY")),
        model=EMBEDDING_MODEL or "text-embedding-3-small",
        dimension=env.read_number("EMBEDDING_DIMENSION", 1536),
        query_timeout_seconds=2.5,
    )
elif EMBEDDING_MODEL and not EMBEDDER:
    EMBEDDER = _make_backend(
        "retrieval.index.embedders.onnx.LocalEmbedder",
        model=EMBEDDING_MODEL,
        query_prompt=_query_prompt or None,
        document_prompt=_document_prompt or None,
        dimension=env.read_number("EMBEDDING_DIMENSION", 0) or None,
        **_IN_THIS_PROCESS,
    )
OPENAI_BASE_URL = env.read_string("OPENAI_BASE_URL")
OPENAI_API_KEY = env.read_string("OPENAI_API_KEY")
OPENAI_MODEL = env.read_string("OPENAI_MODEL")
LOCAL_MODEL = env.read_string("LOCAL_MODEL")
LOCAL_MODEL_PORT = 8411
LOCAL_MODEL_THREADS = count_available_cores()
if LOCAL_MODEL:
    if OPENAI_BASE_URL:
        raise ImproperlyConfigured("LOCAL_MODEL and OPENAI_BASE_URL both name a language model: leave out one of them.")
    LOCAL_MODEL = str(Path(LOCAL_MODEL).expanduser().resolve())
    OPENAI_BASE_URL = f"http://127.0.0.1:{LOCAL_MODEL_PORT}/v1"
    OPENAI_MODEL = OPENAI_MODEL or Path(LOCAL_MODEL).stem
OPENAI_TIMEOUT_SECONDS = env.read_number("OPENAI_TIMEOUT_SECONDS", 60.0)
OPENAI_TOTAL_SECONDS = 300.0
OPENAI_MAX_TOKENS = env.read_number("OPENAI_MAX_TOKENS", 1000)
OPENAI_CONTEXT_TOKENS = env.read_number("OPENAI_CONTEXT_TOKENS", 4096 if LOCAL_MODEL else 16000)
# The tokens of a prompt. With a model of 1.5 billion parameters, a processor reads about 90 tokens a second.
OPENAI_PROMPT_TOKENS = env.read_number("OPENAI_PROMPT_TOKENS", 750 if LOCAL_MODEL else 1500)
OPENAI_PRICE_PROMPT, OPENAI_PRICE_COMPLETION = env.read_two_numbers("OPENAI_PRICES", 0.0, 0.0)
_MODEL = {"base_url": OPENAI_BASE_URL, "api_key": OPENAI_API_KEY, "model": OPENAI_MODEL}
HAS_MODEL = bool(OPENAI_BASE_URL and OPENAI_MODEL)
QUERY_REFORMULATOR: BackendSetting = {}
if HAS_MODEL and not LOCAL_MODEL:
    QUERY_REFORMULATOR = _make_backend(
        "retrieval.search.understanding.model_reformulator.ModelReformulator",
        **_MODEL,
        timeout_seconds=4.0,
    )
QUESTION_GENERATOR: BackendSetting | None = None
if HAS_MODEL and env.read_flag("QUESTIONS_WITH_MODEL", False):
    QUESTION_GENERATOR = _make_backend("retrieval.documents.model_questions.ModelQuestions", **_MODEL)

# Search profiles choose a reranker by its name here.
RERANKERS: dict[str, BackendSetting] = {}
RERANK_URL, RERANK_MODEL = env.read_string("RERANK_URL"), env.read_string("RERANK_MODEL")
if RERANK_MODEL and not RERANK_URL:
    RERANKERS["cross_encoder"] = _make_backend(
        "retrieval.search.ranking.cross_encoder.CrossEncoder",
        model=RERANK_MODEL,
        cache_dir=DATA_DIR / "models",
        threads=2,
    )
if RERANK_URL:
    RERANKERS["http"] = _make_backend(
        "retrieval.search.ranking.http_reranker.HttpReranker",
        url=RERANK_URL,
        api_key=env.read_string("RERANK_API_KEY"),
        model=RERANK_MODEL,
        api=env.read_string("RERANK_API", "auto"),
    )
RETRIEVAL_DEFAULT_METHOD = "zscore"
RETRIEVAL_TOP_K = 8
RETRIEVAL_DEPTH = 50
RETRIEVAL_RERANKER = "none"
# If False, searches use only vectors, even if the published profile uses words too.
RETRIEVAL_HYBRID_ENABLED = env.read_flag("RETRIEVAL_HYBRID_ENABLED", True)
RETRIEVAL_LEG_TIMEOUT_SECONDS = 5.0
# The constants k1 and b of BM25 (Robertson and Zaragoza, 2009). After a change, run `manage.py reconcile --repair`.
BM25_K1, BM25_B = env.read_two_numbers("BM25", 1.2, 0.75)
if BM25_K1 == 0 or BM25_B > 1:
    raise ImproperlyConfigured("BM25 must be k1 above 0 and b from 0 to 1, as in 1.2,0.75.")
CONTEXT_BUDGET_TOKENS = 4000
