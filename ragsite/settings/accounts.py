from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from ragsite.settings import env

LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "chat:home"
LOGOUT_REDIRECT_URL = "chat:home"
# SIGN_UP is `off`, `invitation` (only invited people), or a list of domains whose addresses may sign up too.
SIGN_UP_DOMAINS = [name.lower() for name in env.read_names("SIGN_UP", "off")]
SIGN_UP = SIGN_UP_DOMAINS[0] if len(SIGN_UP_DOMAINS) == 1 and "." not in SIGN_UP_DOMAINS[0] else "domain"
if SIGN_UP not in ("off", "invitation") and not all("." in name for name in SIGN_UP_DOMAINS):
    raise ImproperlyConfigured(f"SIGN_UP must be off, invitation, or domains, not {env.read_string('SIGN_UP')!r}.")
LOCAL_PASSWORDS = env.read_flag("LOCAL_PASSWORDS", True)
STAFF_REQUIRES_MFA = env.read_flag("STAFF_REQUIRES_MFA", False)
HTTPS = env.read_flag("HTTPS", False)
PASSKEYS = HTTPS

EMAIL_HOST, EMAIL_PORT, EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = env.read_mail_server("EMAIL_URL")
# Port 465 means TLS from the first byte, port 25 no TLS, and any other port STARTTLS.
EMAIL_USE_SSL = EMAIL_PORT == 465
EMAIL_USE_TLS = EMAIL_PORT not in (25, 465)
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = env.read_string("DEFAULT_FROM_EMAIL", EMAIL_HOST_USER or "ragsite@localhost")
EMAIL_SUBJECT_PREFIX = "[Ragsite] "
MAIL_IS_SENT = bool(EMAIL_HOST)
if not MAIL_IS_SENT:
    EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
if SIGN_UP == "domain" and not MAIL_IS_SENT:
    raise ImproperlyConfigured("SIGN_UP names domains, whose addresses are confirmed by mail: set EMAIL_URL.")

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
# allauth's own generator would mark the user's address as unconfirmed.
ACCOUNT_PASSWORD_RESET_TOKEN_GENERATOR = "django.contrib.auth.tokens.PasswordResetTokenGenerator"  # noqa: S105
# ragsite.accounts.sign_in_limits counts the failures of all ways to sign in.
ACCOUNT_RATE_LIMITS = {"login": None, "login_failed": None, "reauthenticate": None}

MFA_ADAPTER = "ragsite.accounts.adapters.MFAAdapter"
MFA_FORMS = {
    "authenticate": "ragsite.accounts.forms.SecondFactorCodeForm",
    "reauthenticate": "ragsite.accounts.forms.ReauthenticationCodeForm",
}
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes", *(["webauthn"] if PASSKEYS else [])]
MFA_PASSKEY_LOGIN_ENABLED = PASSKEYS
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not HTTPS
MFA_TOTP_ISSUER = "Ragsite"
MFA_TOTP_TOLERANCE = 1
MFA_RECOVERY_CODES_SHOW_ONCE = True
MFA_ALLOW_UNVERIFIED_EMAIL = True

OIDC_SERVER_URL = env.read_https_url("OIDC_SERVER_URL")
OIDC_NAME = "Single sign-on"
OIDC_GROUPS_CLAIM = env.read_string("OIDC_GROUPS_CLAIM", "groups")
OIDC_GROUPS = {theirs.removeprefix("/"): ours for theirs, ours in env.read_pairs("OIDC_GROUPS").items()}
OIDC_STAFF_GROUP = env.read_string("OIDC_STAFF_GROUP").removeprefix("/")
OIDC_DOMAINS = [name.lower() for name in env.read_names("OIDC_DOMAINS")]
OIDC_TRUST_EMAIL = env.read_flag("OIDC_TRUST_EMAIL", False)
OIDC_JOIN_BY_EMAIL = env.read_flag("OIDC_JOIN_BY_EMAIL", False)
# Rights are read from the identity provider only at a sign-in, so sessions are short.
OIDC_SESSION_HOURS = 12.0
# API keys of an account without a password are refused after this time without a sign-in.
OIDC_KEY_DAYS = 30.0

SOCIALACCOUNT_ADAPTER = "ragsite.accounts.adapters.SocialAccountAdapter"
SOCIALACCOUNT_EMAIL_REQUIRED = False
SOCIALACCOUNT_EMAIL_VERIFICATION = "none"
SOCIALACCOUNT_EMAIL_AUTHENTICATION_AUTO_CONNECT = True
# The content security policy forbids forms that lead to another site, so a sign-in begins with a link.
SOCIALACCOUNT_LOGIN_ON_GET = True
SOCIALACCOUNT_PROVIDERS: dict[str, Any] = {}
if OIDC_SERVER_URL:
    if not env.read_string("OIDC_CLIENT_ID"):
        raise ImproperlyConfigured("OIDC_SERVER_URL needs OIDC_CLIENT_ID.")
    SOCIALACCOUNT_PROVIDERS["openid_connect"] = {
        "OAUTH_PKCE_ENABLED": True,
        "SCOPE": env.read_string("OIDC_SCOPES", "openid profile email").split(),
        "APPS": [
            {
                "provider_id": "sso",
                "name": OIDC_NAME,
                "client_id": env.read_string("OIDC_CLIENT_ID"),
                "secret": env.read_string("OIDC_CLIENT_SECRET"),
                "settings": {"server_url": OIDC_SERVER_URL},
            }
        ],
    }

SAML_ENTITY_ID = env.read_string("SAML_ENTITY_ID")
SAML_EMAIL_ATTRIBUTE = "email"
if SAML_ENTITY_ID:
    if find_spec("onelogin") is None:
        raise ImproperlyConfigured("SAML_ENTITY_ID needs python3-saml: pip install -r requirements-saml.txt")
    SOCIALACCOUNT_PROVIDERS["saml"] = {
        "APPS": [
            {
                "provider_id": "saml",
                "name": "SAML",
                "client_id": "sso",
                "settings": {
                    "idp": {
                        "entity_id": SAML_ENTITY_ID,
                        "sso_url": env.read_https_url("SAML_SSO_URL"),
                        "x509cert": env.read_string("SAML_CERTIFICATE"),
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

# If set, people connect programs to /mcp by signing in; allauth is the OAuth server.
MCP_SIGN_IN = env.read_flag("MCP_SIGN_IN", False)
IDP_OIDC_ADAPTER = "ragsite.accounts.mcp_sign_in.McpSignInAdapter"
IDP_OIDC_DCR_ENABLED = True
IDP_OIDC_DCR_REQUIRES_INITIAL_ACCESS_TOKEN = False
IDP_OIDC_REFRESH_TOKEN_EXPIRES_IN = 30 * 24 * 3600

if not (LOCAL_PASSWORDS or SOCIALACCOUNT_PROVIDERS):
    raise ImproperlyConfigured("LOCAL_PASSWORDS=false needs OIDC_SERVER_URL or SAML_ENTITY_ID.")

AUTHENTICATION_BACKENDS = ["ragsite.accounts.sign_in.LimitedBackend", "django.contrib.auth.backends.ModelBackend"]
SIGN_IN_FAILURES = 10
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
