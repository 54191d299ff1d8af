"""Settings that were there once. One that is still set is refused at the start, with what holds now."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

from ragsite.settings import env

GONE = {
    "BM25_B": "it is always 0.75",
    "BM25_K1": "it is always 1.2",
    "CACHE_URL": "the limits on mail are counted in the database",
    "CHAT_INJECTION_CHECK": "questions that instruct the site are never answered",
    "CONTEXT_BUDGET_TOKENS": "a search profile in the admin says it; without one it is 4000",
    "CROSS_ENCODER_PRECISION": "it is always int8",
    "CROSS_ENCODER_THREADS": "it is always 2",
    "DATABASE_REPLICA_LAG_SECONDS": "it is always 5",
    "DISK_RESERVE_MIB": "it is always 200",
    "DOCUMENT_GROUPS_KEY": "the metadata key is always groups",
    "DRAWINGS_AT_ONCE": "it is always 1",
    "DRAWING_MEMORY_MIB": "it is always 512",
    "DRAWING_SECONDS": "it is always 10",
    "EMAIL_USE_SSL": "EMAIL_PORT=465 means TLS from the first byte",
    "EMBEDDING_PRECISION": "it is always int8",
    "EMBEDDING_QUERY_TIMEOUT_SECONDS": "it is always 2.5",
    "EMBEDDING_THREADS": "it is always 2",
    "EVALUATE_WITH_MODEL": "a model judges the share JUDGE_SAMPLE_RATE of the answers where JUDGE_MODEL names one",
    "FILES_S3_PREFIX": "files stand at the top of the bucket: give the site a bucket of its own",
    "FILES_S3_REGION": "AWS_DEFAULT_REGION says it",
    "HSTS_PRELOAD": "it follows HSTS_SUBDOMAINS",
    "HSTS_SECONDS": "it is always a year",
    "JUDGE_ATTEMPTS": "it is always 5",
    "JUDGE_MAX_TOKENS": "it is always 4096",
    "LDAP_EMAIL_ATTRIBUTE": "it is always mail",
    "LDAP_FIRST_NAME_ATTRIBUTE": "it is always givenName",
    "LDAP_GROUPS_ATTRIBUTE": "it is memberOf, or what LDAP_GROUP_FILTER finds",
    "LDAP_ID_ATTRIBUTES": "it is the first of objectGUID, entryUUID and nsUniqueId that an entry has",
    "LDAP_LAST_NAME_ATTRIBUTE": "it is always sn",
    "LDAP_NAME": "pages say LDAP",
    "LDAP_NAME_ATTRIBUTE": "it is the attribute that LDAP_USER_FILTER compares with {name}",
    "LDAP_START_TLS": "ldap:// always begins with StartTLS",
    "LDAP_TIMEOUT_SECONDS": "it is always 5",
    "LOG_REQUESTS": "LOG_FORMAT=json has a line for each request",
    "OCR_MEMORY_MIB": "it is always 1024",
    "OCR_PAGE_SECONDS": "it is always 60",
    "OCR_TURN_SECONDS": "it is always 300",
    "OIDC_KEY_DAYS": "it is always 30",
    "OIDC_SESSION_HOURS": "it is always 12",
    "QUICK_SECONDS": "it is always 1",
    "REFORMULATE_TIMEOUT_SECONDS": "it is always 4",
    "REQUEST_MAX_MIB": "it is always 500",
    "RETRIEVAL_DEPTH": "a search profile in the admin says it; without one it is 50",
    "RETRIEVAL_LEG_TIMEOUT_SECONDS": "it is always 5",
    "RETRIEVAL_TOP_K": "a search profile in the admin says it; without one it is 8",
    "SAML_EMAIL_ATTRIBUTE": "it is always email",
    "SAML_NAME": "pages say SAML",
    "SIGN_IN_FAILURES": "it is always 10",
    "SOURCES_AT_ONCE": "it is always 1",
    "SOURCE_MAX_ITEMS": "it is always 50000",
    "SOURCE_REMOVAL_LIMIT": "it is always 0.2",
    "SOURCE_STALE_MINUTES": "it is always 60",
    "SOURCE_TIMEOUT_SECONDS": "it is always 20",
}
for _name, _now in GONE.items():
    if env.text(_name):
        raise ImproperlyConfigured(f"{_name} is no longer a setting: {_now}. Remove it from the environment and .env.")
