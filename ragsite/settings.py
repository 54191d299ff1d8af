"""Settings of the site. The only module that reads the environment; .env.example explains every variable."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from celery.schedules import crontab
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _
from dotenv import load_dotenv
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ragsite import env
from ragsite.cores import available_cores
from ragsite.embedded_postgres import EmbeddedPostgres

BASE_DIR = Path(__file__).resolve().parent.parent
if env.flag("RAGSITE_DOTENV", True):
    load_dotenv(BASE_DIR / ".env")

DATA_DIR = Path(env.text("DATA_DIR", str(BASE_DIR / "var"))).resolve()

SECRET_KEY = env.text("SECRET_KEY") or env.kept_secret_key(DATA_DIR)
# Earlier keys, with which sessions, links and the secrets of authenticator apps are still read.
SECRET_KEY_FALLBACKS = env.names("SECRET_KEY_FALLBACKS")
DEBUG = env.flag("DEBUG", False)
ALLOWED_HOSTS = env.names("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env.names("CSRF_TRUSTED_ORIGINS")
ROOT_URLCONF = "ragsite.urls"
ASGI_APPLICATION = "ragsite.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "ragsite.accounts.apps.AccountsAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.mfa",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "csp",
    "ragsite",
    "retrieval",
    "chat",
    "evaluation",
]
if (BASE_DIR / "bench").is_dir():
    # Development only: its commands measure the product. An installation leaves the folder out.
    INSTALLED_APPS.append("bench")

MIDDLEWARE = [
    "ragsite.request_context.number_requests",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "ragsite.sign_in.middleware.SignInMiddleware",
    "ragsite.middleware.StaticFilesMiddleware",
    # Behind the static files, which are public and stay cacheable.
    "ragsite.middleware.private_responses",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "ragsite.audit.origin.remember_request",
    "ragsite.errors.StorageMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# Database ------------------------------------------------------------------------------------------------------------

DATABASE_URL = env.text("DATABASE_URL")
EMBEDDED_POSTGRES = None if DATABASE_URL else EmbeddedPostgres(DATA_DIR)
_database_url = EMBEDDED_POSTGRES.url if EMBEDDED_POSTGRES else DATABASE_URL
DATABASE_POOL_SIZE = env.integer("DATABASE_POOL_SIZE", 0)
DATABASE_PREPARES_STATEMENTS = env.flag("DATABASE_PREPARES_STATEMENTS", True)

DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        "ENGINE": "django.db.backends.postgresql" if DATABASE_URL else "ragsite.postgres_backend",
        **env.database_parameters(_database_url),
        "CONN_HEALTH_CHECKS": True,
    }
}
if DATABASE_POOL_SIZE:
    # Streams give their connection back while they wait for a model; a pool makes taking it again cheap.
    DATABASES["default"]["OPTIONS"]["pool"] = {"min_size": 1, "max_size": DATABASE_POOL_SIZE, "timeout": 10}
else:
    DATABASES["default"]["CONN_MAX_AGE"] = None

CACHE_URL = env.text("CACHE_URL")
CACHES: dict[str, dict[str, Any]] = {
    # Shared by all processes: the limits of allauth are counted here.
    "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": CACHE_URL}
    if CACHE_URL
    else {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "ragsite_cache",
        # Nobody shall be able to push the counts of others out.
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    },
    # For what any process may work out for itself.
    "process": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
}

# Background work -----------------------------------------------------------------------------------------------------

# With pgmq, the host in the URL is not used: the queue is where the tables are.
CELERY_BROKER_URL = env.text("CELERY_BROKER_URL", "pgmq://localhost")
CELERY_TASK_TIME_LIMIT = 25 * 60
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = {
    # Longer than any task may run, or the broker hands a running task to a second worker.
    "visibility_timeout": CELERY_TASK_TIME_LIMIT + 5 * 60
}
if CELERY_BROKER_URL.startswith("pgmq:"):
    CELERY_BROKER_TRANSPORT_OPTIONS |= {
        # As keywords, because pgmq finds no socket in a URL.
        "conn_string": make_conninfo("", **conninfo_to_dict(_database_url)),
        "init_extension": False,
        "wait_time_seconds": 1,
        "polling_interval": 0.2,
        "pool_size": 4,
        "pool_timeout": 5,
    }
elif CELERY_BROKER_URL.startswith("redis"):
    # With the defaults a killed worker's tasks were not back after 45 seconds.
    CELERY_BROKER_TRANSPORT_OPTIONS |= {"unacked_restore_interval": 5, "unacked_restore_throttle": 1}
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_POOL = "ragsite.worker_pool:TaskPool"
CELERY_WORKER_MAX_TASKS_PER_CHILD = 500
# In KiB. A child that has grown beyond it is replaced when its task is done.
CELERY_WORKER_MAX_MEMORY_PER_CHILD = env.integer("WORKER_MAX_MEMORY_MIB", 1500) * 1024
CELERY_TASK_IGNORE_RESULT = True
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_PUBLISH_RETRY_POLICY = {"max_retries": 2, "interval_start": 0.1, "interval_step": 0.2, "interval_max": 0.5}
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULER = "ragsite.scheduling:Scheduler"
CELERY_BEAT_SCHEDULE_FILENAME = str(DATA_DIR / "celerybeat-schedule")
CELERY_BEAT_SCHEDULE = {
    "sweep": {"task": "retrieval.tasks.sweep", "schedule": 15.0},
    "request-due-sources": {"task": "retrieval.tasks.request_due_sources", "schedule": 20.0},
    "request-forgotten": {"task": "evaluation.tasks.request_forgotten", "schedule": 300.0},
    "watch-documents": {"task": "evaluation.tasks.watch_documents", "schedule": 300.0},
    "forget-sign-ins": {"task": "ragsite.tasks.forget_sign_ins", "schedule": 600.0},
    "forget-deleted-documents": {"task": "ragsite.tasks.forget_deleted_documents", "schedule": 60.0},
    "delete-old": {"task": "ragsite.tasks.delete_old", "schedule": crontab(hour="4", minute="10")},
    "check-indexes": {"task": "retrieval.tasks.reconcile", "schedule": crontab(hour="3", minute="30")},
}

# Files ---------------------------------------------------------------------------------------------------------------

STATIC_URL = "static/"
# Static files are served from where they lie; there is nothing to collect.
WHITENOISE_USE_FINDERS = True
MEDIA_ROOT = DATA_DIR / "media"
DATA_UPLOAD_MAX_MEMORY_SIZE = 5 * 2**20
FILE_UPLOAD_MAX_MEMORY_SIZE = 5 * 2**20
STORAGES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "retrieval.ingest.storage.WholeFileStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
# A bucket of S3, or of a server that speaks its protocol, instead of the folder: for sites of several machines.
if FILES_S3_BUCKET := env.text("FILES_S3_BUCKET", ""):
    STORAGES["default"] = {
        "BACKEND": "retrieval.ingest.object_storage.ObjectStorage",
        "OPTIONS": {
            "bucket_name": FILES_S3_BUCKET,
            "endpoint_url": env.text("FILES_S3_ENDPOINT", "") or None,
            "region_name": env.text("FILES_S3_REGION", "") or None,
            # Without keys, what the machine has: a role, AWS_ACCESS_KEY_ID, ~/.aws.
            "access_key": env.text("FILES_S3_ACCESS_KEY", "") or None,
            "secret_key": env.text("FILES_S3_SECRET_KEY", "") or None,
            "location": env.text("FILES_S3_PREFIX", ""),
        },
    }
# Below this, nothing is saved: PostgreSQL stops when it cannot write, and then nothing can be read either.
DISK_RESERVE_BYTES = env.integer("DISK_RESERVE_MIB", 200) * 2**20
DOCUMENT_MAX_BYTES = env.integer("DOCUMENT_MAX_MIB", 50) * 2**20
# One request with all its files: Django writes it to a temporary file before any view sees it.
REQUEST_MAX_BYTES = env.integer("REQUEST_MAX_MIB", 500) * 2**20
DOCUMENT_MAX_PASSAGES = env.integer("DOCUMENT_MAX_PASSAGES", 50_000)
# A document whose metadata name groups under this key is seen by their members alone.
DOCUMENT_GROUPS_KEY = env.text("DOCUMENT_GROUPS_KEY", "groups")
# What reading one file may take in the process of its own in which it is read, and drawing one page of it.
EXTRACTION_MEMORY_MIB = env.integer("EXTRACTION_MEMORY_MIB", 1024)
EXTRACTION_SECONDS = env.number("EXTRACTION_SECONDS", 60.0)
DRAWING_MEMORY_MIB = env.integer("DRAWING_MEMORY_MIB", 512)
DRAWING_SECONDS = env.number("DRAWING_SECONDS", 10.0)
DRAWINGS_AT_ONCE = env.integer("DRAWINGS_AT_ONCE", 1)
# Pages that are pictures are recognised in these languages, by the names that Tesseract gives them; off: not at all.
OCR_LANGUAGES = [name for name in env.names("OCR_LANGUAGES", "eng,nld") if name.lower() != "off"]
OCR_PAGE_SECONDS = env.number("OCR_PAGE_SECONDS", 60.0)
OCR_MEMORY_MIB = env.integer("OCR_MEMORY_MIB", 1024)
# After so long, a scan of many pages lets other slow files have a turn.
OCR_TURN_SECONDS = env.number("OCR_TURN_SECONDS", 300.0)
# Files that take longer than this are slow ones, of which so many are read at once: fewer than a worker has slots.
QUICK_SECONDS = env.number("QUICK_SECONDS", 1.0)
SLOW_DOCUMENTS_AT_ONCE = env.integer("SLOW_DOCUMENTS_AT_ONCE", 1)

# Sources: folders that may be read, with all that is in them, and machines inside the own network that may be asked.
SOURCE_FOLDERS = [Path(folder) for folder in env.names("SOURCE_FOLDERS")]
SOURCE_PRIVATE_HOSTS = env.names("SOURCE_PRIVATE_HOSTS")
SOURCE_TIMEOUT_SECONDS = env.number("SOURCE_TIMEOUT_SECONDS", 20.0)
SOURCE_MAX_ITEMS = env.integer("SOURCE_MAX_ITEMS", 50_000)
# A larger share of a source's documents than this is not removed at once before somebody agrees.
SOURCE_REMOVAL_LIMIT = env.number("SOURCE_REMOVAL_LIMIT", 0.2)
# A source that was not synchronised for three intervals, and at least so long, is stale.
SOURCE_STALE_MINUTES = env.integer("SOURCE_STALE_MINUTES", 60)
SOURCES_AT_ONCE = env.integer("SOURCES_AT_ONCE", 1)

# Language ------------------------------------------------------------------------------------------------------------

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("nl", _("Dutch"))]
# Before the catalogues of other apps, which translate some of the same words for uses of their own.
LOCALE_PATHS = [BASE_DIR / "ragsite" / "locale"]
TIME_ZONE = env.text("TIME_ZONE", "UTC")
USE_TZ = True

# Accounts ------------------------------------------------------------------------------------------------------------

LOGIN_URL = "account_login"
# Whoever comes from a page goes back to it; the administration names its own.
LOGIN_REDIRECT_URL = "chat:home"
LOGOUT_REDIRECT_URL = "chat:home"
# Who may make an account: nobody, who was invited, or also who confirms an address of these domains.
SIGN_UP = env.choice("SIGN_UP", "off", ("off", "invitation", "domain"))
SIGN_UP_DOMAINS = [name.lower() for name in env.names("SIGN_UP_DOMAINS")]
# Superusers keep theirs, so that somebody can sign in when the provider does not answer.
LOCAL_PASSWORDS = env.flag("LOCAL_PASSWORDS", True)
STAFF_REQUIRES_MFA = env.flag("STAFF_REQUIRES_MFA", False)
HTTPS = env.flag("HTTPS", False)
# Browsers offer them to names with HTTPS, and to localhost, and never to a bare address such as 127.0.0.1.
PASSKEYS = env.flag("PASSKEYS", HTTPS)

EMAIL_HOST = env.text("EMAIL_HOST")
EMAIL_PORT = env.integer("EMAIL_PORT", 587)
EMAIL_HOST_USER = env.text("EMAIL_HOST_USER")
EMAIL_HOST_PASSWORD = env.text("EMAIL_HOST_PASSWORD")
EMAIL_USE_SSL = env.flag("EMAIL_USE_SSL", False)
EMAIL_USE_TLS = env.flag("EMAIL_USE_TLS", not EMAIL_USE_SSL)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.text("DEFAULT_FROM_EMAIL", EMAIL_HOST_USER or "ragsite@localhost")
EMAIL_SUBJECT_PREFIX = "[Ragsite] "
MAIL_IS_SENT = bool(EMAIL_HOST)
if not MAIL_IS_SENT:
    EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
if SIGN_UP == "domain" and not (MAIL_IS_SENT and SIGN_UP_DOMAINS):
    raise ImproperlyConfigured("SIGN_UP=domain needs SIGN_UP_DOMAINS, and EMAIL_HOST to confirm addresses.")

ACCOUNT_ADAPTER = "ragsite.accounts.adapters.AccountAdapter"
ACCOUNT_FORMS = {
    "login": "ragsite.accounts.forms.SignInForm",
    "signup": "ragsite.accounts.forms.SignUpForm",
    "reset_password": "ragsite.accounts.forms.PasswordResetForm",
    "reset_password_from_key": "ragsite.accounts.forms.NewPasswordForm",
    "change_password": "ragsite.accounts.forms.PasswordChangeForm",
}
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_EMAIL_VERIFICATION = "mandatory"
ACCOUNT_EMAIL_SUBJECT_PREFIX = EMAIL_SUBJECT_PREFIX
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if HTTPS else "http"
# allauth's own would note an address as not confirmed, and ask its owner for that at the next sign-in.
ACCOUNT_PASSWORD_RESET_TOKEN_GENERATOR = "django.contrib.auth.tokens.PasswordResetTokenGenerator"  # noqa: S105
# Failed attempts are counted by ragsite.sign_in, for every way to sign in. allauth limits the rest.
ACCOUNT_RATE_LIMITS = {"login": None, "login_failed": None, "reauthenticate": None}

MFA_ADAPTER = "ragsite.accounts.adapters.MFAAdapter"
MFA_FORMS = {
    "authenticate": "ragsite.accounts.forms.CodeForm",
    "reauthenticate": "ragsite.accounts.forms.CodeAgainForm",
}
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes", *(["webauthn"] if PASSKEYS else [])]
MFA_PASSKEY_LOGIN_ENABLED = PASSKEYS
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not HTTPS
MFA_TOTP_ISSUER = "Ragsite"
# One step of half a minute, for clocks that are not quite right.
MFA_TOTP_TOLERANCE = 1
MFA_RECOVERY_CODES_SHOW_ONCE = True
# Who could not confirm an address could not sign in either; those of a provider may have none.
MFA_ALLOW_UNVERIFIED_EMAIL = True

# Single sign-on ------------------------------------------------------------------------------------------------------

OIDC_SERVER_URL = env.https_url("OIDC_SERVER_URL")
OIDC_NAME = env.text("OIDC_NAME", "Single sign-on")
OIDC_GROUPS_CLAIM = env.text("OIDC_GROUPS_CLAIM", "groups")
OIDC_GROUPS = {theirs.removeprefix("/"): ours for theirs, ours in env.pairs("OIDC_GROUPS").items()}
OIDC_STAFF_GROUP = env.text("OIDC_STAFF_GROUP").removeprefix("/")
OIDC_SUPERUSER_GROUP = env.text("OIDC_SUPERUSER_GROUP").removeprefix("/")
OIDC_DOMAINS = [name.lower() for name in env.names("OIDC_DOMAINS")]
OIDC_TRUST_EMAIL = env.flag("OIDC_TRUST_EMAIL", False)
OIDC_JOIN_BY_EMAIL = env.flag("OIDC_JOIN_BY_EMAIL", False)
OIDC_CREATES_ACCOUNTS = env.flag("OIDC_CREATES_ACCOUNTS", True)
# Rights follow the provider at each sign-in, so that a session must not last for weeks.
OIDC_SESSION_HOURS = env.number("OIDC_SESSION_HOURS", 12.0)
# API keys of accounts that the provider alone opens are refused when it has not done so for this long; 0: never.
OIDC_KEY_DAYS = env.number("OIDC_KEY_DAYS", 30.0)

SOCIALACCOUNT_ADAPTER = "ragsite.accounts.adapters.SocialAccountAdapter"
SOCIALACCOUNT_EMAIL_REQUIRED = False
SOCIALACCOUNT_EMAIL_VERIFICATION = "none"
SOCIALACCOUNT_EMAIL_AUTHENTICATION_AUTO_CONNECT = True
# A form that leads to another site is against the policy below. Nothing but signing in can be begun by a link.
SOCIALACCOUNT_LOGIN_ON_GET = True
SOCIALACCOUNT_PROVIDERS: dict[str, Any] = {}
if OIDC_SERVER_URL:
    if not env.text("OIDC_CLIENT_ID"):
        raise ImproperlyConfigured("OIDC_SERVER_URL needs OIDC_CLIENT_ID.")
    SOCIALACCOUNT_PROVIDERS["openid_connect"] = {
        "OAUTH_PKCE_ENABLED": True,
        "SCOPE": env.text("OIDC_SCOPES", "openid profile email").split(),
        "APPS": [
            {
                "provider_id": "sso",
                "name": OIDC_NAME,
                "client_id": env.text("OIDC_CLIENT_ID"),
                "secret": env.text("OIDC_CLIENT_SECRET"),
                "settings": {"server_url": OIDC_SERVER_URL},
            }
        ],
    }

# SAML, where python3-saml is installed (requirements-saml.txt). Groups and accounts follow the settings above.
SAML_ENTITY_ID = env.text("SAML_ENTITY_ID")
SAML_EMAIL_ATTRIBUTE = env.text("SAML_EMAIL_ATTRIBUTE", "email")
SAML_GROUPS_ATTRIBUTE = env.text("SAML_GROUPS_ATTRIBUTE", "groups")
if SAML_ENTITY_ID:
    if find_spec("onelogin") is None:
        raise ImproperlyConfigured("SAML_ENTITY_ID needs python3-saml: pip install -r requirements-saml.txt")
    INSTALLED_APPS.append("allauth.socialaccount.providers.saml")
    SOCIALACCOUNT_PROVIDERS["saml"] = {
        "APPS": [
            {
                "provider_id": "saml",
                "name": env.text("SAML_NAME", "SAML"),
                "client_id": "sso",
                "settings": {
                    "idp": {
                        "entity_id": SAML_ENTITY_ID,
                        "sso_url": env.https_url("SAML_SSO_URL"),
                        "x509cert": env.text("SAML_CERTIFICATE"),
                    },
                    "attribute_mapping": {
                        "email": SAML_EMAIL_ATTRIBUTE,
                        "username": ["urn:oid:0.9.2342.19200300.100.1.1", "uid", "username"],
                        "first_name": ["urn:oid:2.5.4.42", "givenName", "firstName"],
                        "last_name": ["urn:oid:2.5.4.4", "sn", "lastName"],
                    },
                    "advanced": {"want_assertion_signed": True},
                },
            }
        ]
    }

# LDAP, Active Directory included. Groups and accounts follow the settings of OpenID Connect.
LDAP_START_TLS = env.flag("LDAP_START_TLS", False)
LDAP_URL = env.ldap_url("LDAP_URL", is_encrypted_later=LDAP_START_TLS)
LDAP_NAME = env.text("LDAP_NAME", "LDAP")
LDAP_CA_FILE = env.text("LDAP_CA_FILE")
LDAP_BIND_DN = env.text("LDAP_BIND_DN")
LDAP_BIND_PASSWORD = env.text("LDAP_BIND_PASSWORD")
LDAP_SEARCH_BASE = env.text("LDAP_SEARCH_BASE")
LDAP_USER_FILTER = env.text("LDAP_USER_FILTER", "(uid={name})")
LDAP_NAME_ATTRIBUTE = env.text("LDAP_NAME_ATTRIBUTE", "uid")
LDAP_EMAIL_ATTRIBUTE = env.text("LDAP_EMAIL_ATTRIBUTE", "mail")
LDAP_FIRST_NAME_ATTRIBUTE = env.text("LDAP_FIRST_NAME_ATTRIBUTE", "givenName")
LDAP_LAST_NAME_ATTRIBUTE = env.text("LDAP_LAST_NAME_ATTRIBUTE", "sn")
# What a person keeps when the name changes, and nobody gets again: the first of them that an entry has.
LDAP_ID_ATTRIBUTES = env.names("LDAP_ID_ATTRIBUTES", "objectGUID,entryUUID,nsUniqueId")
LDAP_GROUPS_ATTRIBUTE = env.text("LDAP_GROUPS_ATTRIBUTE", "memberOf")
# Where a filter is named, groups are searched for with it instead. Below the base alone groups count.
LDAP_GROUP_FILTER = env.text("LDAP_GROUP_FILTER")
LDAP_GROUP_BASE = env.text("LDAP_GROUP_BASE", LDAP_SEARCH_BASE if LDAP_GROUP_FILTER else "")
# For each step: connecting, and each answer. A connection may take three times as long.
LDAP_TIMEOUT_SECONDS = env.integer("LDAP_TIMEOUT_SECONDS", 5)
if LDAP_URL:
    if not LDAP_SEARCH_BASE or "{name}" not in LDAP_USER_FILTER:
        raise ImproperlyConfigured("LDAP_URL needs LDAP_SEARCH_BASE, and {name} in LDAP_USER_FILTER.")
    if LDAP_BIND_DN and not LDAP_BIND_PASSWORD:
        raise ImproperlyConfigured("LDAP_BIND_DN needs LDAP_BIND_PASSWORD.")
    if LDAP_TIMEOUT_SECONDS < 1:
        raise ImproperlyConfigured("LDAP_TIMEOUT_SECONDS must be 1 or more.")

if not (LOCAL_PASSWORDS or SOCIALACCOUNT_PROVIDERS or LDAP_URL):
    raise ImproperlyConfigured("LOCAL_PASSWORDS=false needs OIDC_SERVER_URL, SAML_ENTITY_ID or LDAP_URL.")

# Security ------------------------------------------------------------------------------------------------------------

# The second keeps the sessions that were begun with it; no password reaches it.
AUTHENTICATION_BACKENDS = ["ragsite.sign_in.backend.LimitedBackend", "django.contrib.auth.backends.ModelBackend"]
# Wrong passwords for one account from one address, within a quarter of an hour, before more are refused.
SIGN_IN_FAILURES = env.integer("SIGN_IN_FAILURES", 10)
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
# Where to report a weakness, for /.well-known/security.txt: an e-mail address or an https address.
SECURITY_CONTACT = env.text("SECURITY_CONTACT")
SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = HTTPS
# Browsers that were here once then refuse plain HTTP: for so long, for hosts below this one too, and by their own list.
SECURE_HSTS_SECONDS = env.integer("HSTS_SECONDS", 31536000) if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS and env.flag("HSTS_SUBDOMAINS", True)
SECURE_HSTS_PRELOAD = SECURE_HSTS_INCLUDE_SUBDOMAINS and env.flag("HSTS_PRELOAD", True)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}
# htmx builds no code from strings and injects no style, so that the policy above holds.
DJANGO_HTMX_CONFIG = {"includeIndicatorStyles": False, "allowEval": False}

# API -----------------------------------------------------------------------------------------------------------------

# For all of the API, OpenAI's protocol included.
API_KEY_AUTHENTICATION = "ragsite.keys.authentication.KeyAuthentication"
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        # First, because the first one decides that a call without credentials is answered with 401.
        API_KEY_AUTHENTICATION,
        "rest_framework.authentication.SessionAuthentication",
        "rest_framework.authentication.BasicAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "retrieval.api.schema.SchemaWithProblems",
    "DEFAULT_PAGINATION_CLASS": "rest_framework.pagination.LimitOffsetPagination",
    "PAGE_SIZE": 50,
    # How many proxies stand before the site; their word on the caller's address is taken, anyone else's is not.
    "NUM_PROXIES": env.integer("NUM_PROXIES", 0),
    "DEFAULT_THROTTLE_CLASSES": [
        "retrieval.api.throttling.ScopedRates",
        "ragsite.keys.throttling.KeyRateThrottle",
    ],
    "DEFAULT_THROTTLE_RATES": {"search": env.text("SEARCH_RATE", "120/min"), "ask": env.text("ASK_RATE", "60/min")},
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Ragsite API",
    "DESCRIPTION": "Search documents and ask questions of them, with citations that can be checked.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    # The schema is the same for everybody: credentials are not looked at.
    "SERVE_AUTHENTICATION": [],
    # What PATCH demands is demanded.
    "COMPONENT_SPLIT_PATCH": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "ENUM_NAME_OVERRIDES": {
        "DocumentStatusEnum": "retrieval.models.Document.Status",
        "SourceRunStatusEnum": "retrieval.models.SourceRun.Status",
        "SourceStateEnum": "retrieval.sources.states.SourceState",
        "AnswerStatusEnum": "chat.models.Answer.Status",
        "ShareAudienceEnum": "chat.models.Conversation.ShareAudience",
        "ShareScopeEnum": "chat.models.Conversation.ShareScope",
        "MethodEnum": "retrieval.api.serializers.METHODS",
    },
}

# Retrieval -----------------------------------------------------------------------------------------------------------


def _backend(path: str, **options: Any) -> dict[str, Any]:
    """The class that does a part of the work, and its arguments."""
    return {"BACKEND": path, "OPTIONS": options}


EMBEDDING_BASE_URL = env.text("EMBEDDING_BASE_URL")
if EMBEDDING_BASE_URL:
    EMBEDDER = _backend(
        "retrieval.dense.openai_embedder.OpenAICompatibleEmbedder",
        base_url=EMBEDDING_BASE_URL,
        api_key=env.text("EMBEDDING_API_KEY", env.text("OPENAI_API_KEY")),
        model=env.text("EMBEDDING_MODEL", "text-embedding-3-small"),
        dimension=env.integer("EMBEDDING_DIMENSION", 1536),
        query_timeout_seconds=env.number("EMBEDDING_QUERY_TIMEOUT_SECONDS", 2.5),
    )
else:
    _IN_THIS_PROCESS = {
        "cache_dir": DATA_DIR / "models",
        "precision": env.text("EMBEDDING_PRECISION", "int8"),
        "threads": env.integer("EMBEDDING_THREADS", 2),
    }
    EMBEDDER = _backend("retrieval.dense.built_in.OnnxMiniLM", **_IN_THIS_PROCESS)
    if EMBEDDING_MODEL := env.text("EMBEDDING_MODEL"):
        EMBEDDER = _backend(
            "retrieval.dense.local_embedder.LocalEmbedder",
            model=EMBEDDING_MODEL,
            query_prompt=env.text("EMBEDDING_QUERY_PROMPT") or None,
            document_prompt=env.text("EMBEDDING_DOCUMENT_PROMPT") or None,
            **_IN_THIS_PROCESS,
        )
# A language model does some of retrieval's work where there is one: OPENAI_BASE_URL, OPENAI_MODEL.
OPENAI_BASE_URL = env.text("OPENAI_BASE_URL")
OPENAI_API_KEY = env.text("OPENAI_API_KEY")
OPENAI_MODEL = env.text("OPENAI_MODEL")
OPENAI_TIMEOUT_SECONDS = env.number("OPENAI_TIMEOUT_SECONDS", 60.0)
OPENAI_TOTAL_SECONDS = env.number("OPENAI_TOTAL_SECONDS", 300.0)
OPENAI_MAX_TOKENS = env.integer("OPENAI_MAX_TOKENS", 1000)
OPENAI_CONTEXT_TOKENS = env.integer("OPENAI_CONTEXT_TOKENS", 16000)
OPENAI_PRICE_PROMPT = env.number("OPENAI_PRICE_PROMPT", 0.0)
OPENAI_PRICE_COMPLETION = env.number("OPENAI_PRICE_COMPLETION", 0.0)
_MODEL = {"base_url": OPENAI_BASE_URL, "api_key": OPENAI_API_KEY, "model": OPENAI_MODEL}
_HAS_MODEL = bool(OPENAI_BASE_URL and OPENAI_MODEL)
QUERY_REFORMULATOR = _backend("retrieval.reformulation.rules.RuleBasedReformulator")
if _HAS_MODEL and env.flag("REFORMULATE_WITH_MODEL", True):
    QUERY_REFORMULATOR = _backend(
        "retrieval.reformulation.llm.ModelReformulator",
        **_MODEL,
        timeout_seconds=env.number("REFORMULATE_TIMEOUT_SECONDS", 4.0),
    )
QUESTION_GENERATOR = _backend("retrieval.ingest.questions.RuleBasedQuestions")
# Off unless asked for: each passage of every document costs a call.
if _HAS_MODEL and env.flag("QUESTIONS_WITH_MODEL", False):
    QUESTION_GENERATOR = _backend("retrieval.ingest.llm_questions.ModelQuestions", **_MODEL)

# By the name that a profile chooses them by. Nothing is loaded or called before one is chosen.
RERANKERS = {"maxsim": _backend("retrieval.rerank.maxsim.MaxSim")}
if CROSS_ENCODER_MODEL := env.text("CROSS_ENCODER_MODEL"):
    RERANKERS["cross_encoder"] = _backend(
        "retrieval.rerank.cross_encoder.CrossEncoder",
        model=CROSS_ENCODER_MODEL,
        cache_dir=DATA_DIR / "models",
        precision=env.text("CROSS_ENCODER_PRECISION", "int8"),
        threads=env.integer("CROSS_ENCODER_THREADS", 2),
    )
if RERANK_URL := env.text("RERANK_URL"):
    RERANKERS["http"] = _backend(
        "retrieval.rerank.http.HttpReranker",
        url=RERANK_URL,
        api_key=env.text("RERANK_API_KEY"),
        model=env.text("RERANK_MODEL"),
        api=env.text("RERANK_API", "auto"),
    )
# What searches without a published profile use.
RETRIEVAL_DEFAULT_METHOD = env.text("RETRIEVAL_METHOD", "contrast")
RETRIEVAL_TOP_K = env.integer("RETRIEVAL_TOP_K", 8)
RETRIEVAL_DEPTH = env.integer("RETRIEVAL_DEPTH", 50)
RETRIEVAL_RERANKER = env.text("RETRIEVAL_RERANKER", "none" if EMBEDDING_BASE_URL else "maxsim")
# The one switch back to vectors alone, whatever profile is published.
RETRIEVAL_HYBRID_ENABLED = env.flag("RETRIEVAL_HYBRID_ENABLED", True)
RETRIEVAL_LEG_TIMEOUT_SECONDS = env.number("RETRIEVAL_LEG_TIMEOUT_SECONDS", 5.0)
BM25_K1 = env.number("BM25_K1", 1.2)
BM25_B = env.number("BM25_B", 0.75)
CONTEXT_BUDGET_TOKENS = env.integer("CONTEXT_BUDGET_TOKENS", 4000)

# Chat ----------------------------------------------------------------------------------------------------------------

# A whole question, from its turn in the queue to the saved answer; every part that waits takes of these.
QUESTION_SECONDS = env.number("QUESTION_SECONDS", 120.0)
# Answers written at once: by one web server, and by those of all machines together (0: no such bound). More wait, up to
# ANSWERS_WAITING at each server; what is asked then is refused.
ANSWERS_AT_ONCE = max(1, env.integer("ANSWERS_AT_ONCE", 16 if _HAS_MODEL else 8))
ANSWERS_AT_ONCE_SITE = env.integer("ANSWERS_AT_ONCE_SITE", 0)
# Of each signed-in person; 0: no limit. Budgets of persons and groups, in the admin, count before it.
QUESTIONS_A_DAY = env.integer("QUESTIONS_A_DAY", 0)
# What a language model may take for their answers; then those are quoted from the documents. Cost needs OPENAI_PRICE_*.
MODEL_TOKENS_A_DAY = env.integer("MODEL_TOKENS_A_DAY", 0)
MODEL_COST_A_DAY = env.number("MODEL_COST_A_DAY", 0.0)
if MODEL_COST_A_DAY and not (OPENAI_PRICE_PROMPT or OPENAI_PRICE_COMPLETION):
    raise ImproperlyConfigured("MODEL_COST_A_DAY needs OPENAI_PRICE_PROMPT or OPENAI_PRICE_COMPLETION.")
ANSWERS_WAITING = env.integer("ANSWERS_WAITING", 32)
CHAT_REQUIRES_LOGIN = env.flag("CHAT_REQUIRES_LOGIN", False)
CHAT_DEBUG_FOR_EVERYONE = env.flag("CHAT_DEBUG_FOR_EVERYONE", False)
METRICS_PUBLIC = env.flag("METRICS_PUBLIC", False)
QUESTION_MAX_CHARACTERS = 500
CHAT_INJECTION_CHECK = env.flag("CHAT_INJECTION_CHECK", True)
CHAT_MODEL_TOOLS = env.flag("CHAT_MODEL_TOOLS", True)
ANSWER_CACHE_SECONDS = env.number("ANSWER_CACHE_SECONDS", 7 * 24 * 3600.0)

# Evaluation ----------------------------------------------------------------------------------------------------------

# Every answer is judged in the background: by rules, which cost nothing, and by a language model if one is named here.
# It is named on its own, because a model that judges its own answers flatters itself.
EVALUATE_ANSWERS = env.flag("EVALUATE_ANSWERS", True)
JUDGE_BASE_URL = env.text("JUDGE_BASE_URL")
JUDGE_API_KEY = env.text("JUDGE_API_KEY")
JUDGE_MODEL = env.text("JUDGE_MODEL")
JUDGE_RESPONSE_FORMAT = env.text("JUDGE_RESPONSE_FORMAT", "json_schema")
JUDGE_TIMEOUT_SECONDS = env.number("JUDGE_TIMEOUT_SECONDS", 60.0)
JUDGE_MAX_TOKENS = env.integer("JUDGE_MAX_TOKENS", 4096)
JUDGE_ATTEMPTS = env.integer("JUDGE_ATTEMPTS", 5)
JUDGE_SAMPLE_RATE = env.number("JUDGE_SAMPLE_RATE", 1.0)
JUDGE_DAILY_BUDGET_TOKENS = env.integer("JUDGE_DAILY_BUDGET_TOKENS", 0)
EVALUATE_WITH_MODEL = env.flag("EVALUATE_WITH_MODEL", bool(JUDGE_BASE_URL and JUDGE_MODEL))

# Retention -----------------------------------------------------------------------------------------------------------

# Days after which conversations and entries of the audit log are deleted; 0 keeps them.
CONVERSATION_DAYS = env.integer("CONVERSATION_DAYS", 0)
AUDIT_DAYS = env.integer("AUDIT_DAYS", 0)

# Web server -----------------------------------------------------------------------------------------------------------

# Processes that answer requests: more than answers are written at once would have nothing to do, and each keeps up to
# 6 connections to PostgreSQL, which allows 100 unless told otherwise.
WEB_CONCURRENCY = max(1, env.integer("WEB_CONCURRENCY", min(available_cores(), ANSWERS_AT_ONCE, 8)))

# Watching -------------------------------------------------------------------------------------------------------------

# Traces and metrics go there over OTLP; the exporters read OpenTelemetry's other variables themselves.
OTEL_ENDPOINT = env.text("OTEL_EXPORTER_OTLP_ENDPOINT")
OTEL_SERVICE_NAME = env.text("OTEL_SERVICE_NAME", "ragsite")

# One line of text an event, or one JSON object.
LOG_FORMAT = env.choice("LOG_FORMAT", "text", ("text", "json"))
# A line for each request; not for those of probes.
LOG_REQUESTS = env.flag("LOG_REQUESTS", LOG_FORMAT == "json")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "text": {
            "()": "ragsite.logs.TextFormatter",
            "format": "{asctime} {levelname:<7} {name}: {message}",
            "style": "{",
        },
        "json": {"()": "ragsite.logs.JsonFormatter"},
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        **{name: {"level": env.text("LOG_LEVEL", "INFO")} for name in ("ragsite", "retrieval", "chat", "evaluation")},
        # It has set up handlers of its own by now. Its access lines hold queries, and with them questions.
        "uvicorn": {"handlers": [], "propagate": True, "level": "WARNING"},
    },
}
