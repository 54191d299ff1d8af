"""Settings of the site. Only this package reads the environment; .env.example explains every variable."""

from __future__ import annotations

from csp.constants import NONE, SELF
from django.utils.translation import gettext_lazy as _

from ragsite.settings import env
from ragsite.settings.accounts import *
from ragsite.settings.accounts import HTTPS, MCP_SIGN_IN, SAML_ENTITY_ID
from ragsite.settings.answers import *
from ragsite.settings.api import *
from ragsite.settings.documents import *
from ragsite.settings.env import BASE_DIR, DATA_DIR
from ragsite.settings.gone import refuse_removed_settings
from ragsite.settings.search import *
from ragsite.settings.services import *
from ragsite.settings.slack import *

refuse_removed_settings()
VERSION = "0.1.0"

SECRET_KEY = env.read_string("SECRET_KEY") or env.load_or_create_secret_key(DATA_DIR)
SECRET_KEY_FALLBACKS = env.read_names("SECRET_KEY_FALLBACKS")
DEBUG = False
ALLOWED_HOSTS = env.read_names("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
_NAMED_HOSTS = [host.lstrip(".") for host in ALLOWED_HOSTS if host != "*"]
SITE_URL = f"http{'s' * HTTPS}://{next(iter(_NAMED_HOSTS), 'localhost')}"
CSRF_TRUSTED_ORIGINS = [
    f"https://{'*' * host.startswith('.')}{host}" for host in ALLOWED_HOSTS if HTTPS and host != "*"
]
ROOT_URLCONF = "ragsite.urls"
ASGI_APPLICATION = "ragsite.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "ragsite.apps.AccountsAdminConfig",
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
    "ragsite.apps.RagsiteConfig",
    "retrieval",
    "chat",
    "evaluation",
]
if SAML_ENTITY_ID:
    INSTALLED_APPS.append("allauth.socialaccount.providers.saml")
if MCP_SIGN_IN:
    INSTALLED_APPS.append("allauth.idp.oidc")
if (BASE_DIR / "bench").is_dir():
    INSTALLED_APPS.append("bench")

MIDDLEWARE = [
    "ragsite.operations.logs.identify_and_log_requests",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "ragsite.http.middleware.StaticFilesMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "ragsite.http.middleware.SlashMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "ragsite.http.errors.ErrorResponseMiddleware",
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
                "ragsite.site_identity.add_site_identity",
            ]
        },
    }
]

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("nl", _("Dutch"))]
# All apps' translations are here: they override other packages, which translate some words differently.
LOCALE_PATHS = [BASE_DIR / "ragsite" / "locale"]
FORMAT_MODULE_PATH = ["ragsite.formats"]
TIME_ZONE = env.read_string("TIME_ZONE", "UTC")

SESSION_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SECURE = HTTPS
SECURE_SSL_REDIRECT = HTTPS
# For a year, browsers then refuse plain HTTP to the site and its subdomains.
SECURE_HSTS_SECONDS = 31536000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS and env.read_flag("HSTS_SUBDOMAINS", True)
SECURE_HSTS_PRELOAD = SECURE_HSTS_INCLUDE_SUBDOMAINS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF],
        "font-src": [SELF],
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}
# The content security policy allows htmx neither to build code from strings nor to inject styles.
