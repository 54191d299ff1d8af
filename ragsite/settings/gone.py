"""Settings that were there once. One that is still set is refused at the start, with what holds now."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

from ragsite.settings import env

# Constants now, with their values.
_ALWAYS = """
CROSS_ENCODER_PRECISION=int8 CROSS_ENCODER_THREADS=2 DEBUG=false DISK_RESERVE_MIB=200 DOCUMENT_MAX_PASSAGES=50000
DRAWINGS_AT_ONCE=1 DRAWING_MEMORY_MIB=512 DRAWING_SECONDS=10 EMBEDDING_PRECISION=int8
EMBEDDING_QUERY_TIMEOUT_SECONDS=2.5 EMBEDDING_THREADS=2 EXTRACTION_MEMORY_MIB=1024 EXTRACTION_SECONDS=60
JUDGE_ATTEMPTS=5 JUDGE_MAX_TOKENS=4096 JUDGE_RESPONSE_FORMAT=json_schema JUDGE_TIMEOUT_SECONDS=60
LOCAL_MODEL_PORT=8411 LOG_LEVEL=INFO OCR_MEMORY_MIB=1024 OCR_PAGE_SECONDS=60 OCR_TURN_SECONDS=300 OIDC_KEY_DAYS=30
OIDC_SESSION_HOURS=12 QUICK_SECONDS=1 REFORMULATE_TIMEOUT_SECONDS=4 REQUEST_MAX_MIB=500
RETRIEVAL_LEG_TIMEOUT_SECONDS=5 SAML_EMAIL_ATTRIBUTE=email SIGN_IN_FAILURES=10 SLOW_DOCUMENTS_AT_ONCE=1
SOURCES_AT_ONCE=1 SOURCE_MAX_ITEMS=50000 SOURCE_REMOVAL_LIMIT=0.2 SOURCE_STALE_MINUTES=60 SOURCE_TIMEOUT_SECONDS=20
WORKER_MAX_MEMORY_MIB=1500
"""
GONE = {name: f"it is always {value}" for name, value in (each.split("=") for each in _ALWAYS.split())} | {
    "ANSWERS_AT_ONCE_SITE": "ANSWERS_AT_ONCE bounds each web server",
    "ANSWERS_WAITING": "32 may wait, 8 with LOCAL_MODEL",
    "ANSWER_CACHE_SECONDS": "it is always a week",
    "BM25_B": "BM25 says it, as in 1.2,0.75",
    "BM25_K1": "BM25 says it, as in 1.2,0.75",
    "CACHE_URL": "the limits on mail are counted in the database",
    "CALLER_SHARE": "it is always a quarter: raise ANSWERS_AT_ONCE",
    "CHAT_INJECTION_CHECK": "questions that instruct the site are never answered",
    "CHAT_MODEL_TOOLS": "a model that passes the trial asks the tables",
    "CONTEXT_BUDGET_TOKENS": "a search profile in the admin says it; without one it is 4000",
    "CROSS_ENCODER_MODEL": "RERANK_MODEL without RERANK_URL says it",
    "CSRF_TRUSTED_ORIGINS": "with HTTPS=true they are the ALLOWED_HOSTS",
    "DATABASE_POOL_SIZE": "a process that answers requests keeps 6 to 20 connections, others one a thread",
    "DATABASE_PREPARES_STATEMENTS": "statements are always prepared: a pooler must keep them",
    "DATABASE_REPLICA_LAG_SECONDS": "searches read from the one database",
    "DATABASE_REPLICA_URLS": "searches read from the one database; docs/citus.md says how it grows",
    "DOCUMENT_GROUPS_KEY": "the metadata key is always groups",
    "EMAIL_USE_SSL": "port 465 in EMAIL_URL means TLS from the first byte",
    "EMAIL_USE_TLS": "it is false with port 25 in EMAIL_URL, and STARTTLS with others than 465",
    "EVALUATE_ANSWERS": "rules always judge the answers",
    "EVALUATE_WITH_MODEL": "a model judges the share JUDGE_SAMPLE_RATE of the answers where JUDGE_MODEL names one",
    "FILES_S3_ACCESS_KEY": "AWS_ACCESS_KEY_ID says it",
    "FILES_S3_ENDPOINT": "AWS_ENDPOINT_URL_S3 says it",
    "FILES_S3_PREFIX": "files stand at the top of the bucket: give the site a bucket of its own",
    "FILES_S3_REGION": "AWS_DEFAULT_REGION says it",
    "FILES_S3_SECRET_KEY": "AWS_SECRET_ACCESS_KEY says it",
    "HSTS_PRELOAD": "it follows HSTS_SUBDOMAINS",
    "HSTS_SECONDS": "it is always a year",
    "LDAP_URL": "AD FS, Entra or Keycloak sign in the people of a directory: OIDC_SERVER_URL, SAML_ENTITY_ID",
    "LOCAL_MODEL_THREADS": "it is the number of processors that the site may use",
    "LOG_REQUESTS": "LOG_FORMAT=json has a line for each request",
    "OIDC_CREATES_ACCOUNTS": "whom the provider lets in has an account; OIDC_DOMAINS and the provider say who that is",
    "OIDC_NAME": "the button says Single sign-on",
    "OIDC_SUPERUSER_GROUP": "superusers are made in the admin, or by manage.py createsuperuser",
    "OPENAI_PRICE_COMPLETION": "OPENAI_PRICES says it, behind the price of the prompt",
    "OPENAI_PRICE_PROMPT": "OPENAI_PRICES says it, before the price of the answer",
    "OPENAI_TOTAL_SECONDS": "a question may take 120 seconds, 300 with LOCAL_MODEL",
    "PASSKEYS": "they are offered with HTTPS=true",
    "QUESTION_SECONDS": "it is always 120, 300 with LOCAL_MODEL",
    "REFORMULATE_WITH_MODEL": "a model rewrites follow-ups unless it is LOCAL_MODEL, or the search profile says no",
    "RETRIEVAL_DEPTH": "a search profile in the admin says it; without one it is 50",
    "RETRIEVAL_METHOD": "a search profile in the admin says it; without one it is zscore",
    "RETRIEVAL_RERANKER": "a search profile in the admin says it; without one there is none",
    "RETRIEVAL_TOP_K": "a search profile in the admin says it; without one it is 8",
    "SAML_GROUPS_ATTRIBUTE": "OIDC_GROUPS_CLAIM names the attribute",
    "SAML_NAME": "pages say SAML",
    "SEARCH_RATE": "it is twice ASK_RATE",
    "SECURITY_CONTACT": "have your proxy answer for /.well-known/security.txt",
    "SIGN_UP_DOMAINS": "SIGN_UP names the domains",
    "WEB_GRACEFUL_SECONDS": "gunicorn's --graceful-timeout says it, 5 seconds more",
    **dict.fromkeys(
        ("EMAIL_HOST", "EMAIL_HOST_PASSWORD", "EMAIL_HOST_USER", "EMAIL_PORT"),
        "EMAIL_URL says it: smtp://user:password@host:587",
    ),
    **dict.fromkeys(
        ("EMBEDDING_DOCUMENT_PROMPT", "EMBEDDING_QUERY_PROMPT"),
        "EMBEDDING_PROMPTS says it: query:|passage:",
    ),
    **dict.fromkeys(
        ("MODEL_COST_A_DAY", "MODEL_TOKENS_A_DAY", "QUESTIONS_A_DAY"),
        "a budget in the admin says it: everybody's names neither a user nor a group",
    ),
}
for _name, _now in GONE.items():
    if env.text(_name):
        raise ImproperlyConfigured(f"{_name} is no longer a setting: {_now}. Remove it from the environment and .env.")
