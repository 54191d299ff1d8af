from __future__ import annotations

import re

from django.core.exceptions import ImproperlyConfigured

from ragsite.settings import env

# Questions that each caller may ask. Twice as many searches are allowed.
ASK_RATE = env.read_string("ASK_RATE", "60/min")
if not (_rate := re.fullmatch(r"([0-9]+)/(s|m|h|d)[a-z]*", ASK_RATE)):
    raise ImproperlyConfigured(f"ASK_RATE must be a rate such as 60/min, not {ASK_RATE!r}.")
_questions, _period = int(_rate[1]), _rate[2]
API_KEY_AUTHENTICATION = "ragsite.accounts.keys.KeyAuthentication"
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        # With this class first, DRF responds to a request without credentials with 401 and not 403.
        API_KEY_AUTHENTICATION,
        "rest_framework.authentication.SessionAuthentication",
        "rest_framework.authentication.BasicAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "core.api.schema.SchemaWithProblems",
    "DEFAULT_PAGINATION_CLASS": "rest_framework.pagination.LimitOffsetPagination",
    "PAGE_SIZE": 50,
    # The number of trusted proxies in front of the site; other addresses in headers are ignored.
    "NUM_PROXIES": env.read_number("NUM_PROXIES", 0),
    "DEFAULT_THROTTLE_CLASSES": [
        "retrieval.api.throttling.ScopedRates",
        "ragsite.accounts.keys.KeyRateThrottle",
    ],
    "DEFAULT_THROTTLE_RATES": {"search": f"{2 * _questions}/{_period}", "ask": ASK_RATE},
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Ragsite API",
    "DESCRIPTION": "Search documents and ask questions of them, with citations that can be checked.",
    "VERSION": "1",
    "TAGS": [
        {"name": "Answers", "description": "Ask, read, follow and rate answers."},
        {"name": "Conversations", "description": "The caller's conversations."},
        {"name": "Search", "description": "Ranked passages, and why each ranks where it does."},
        {"name": "Documents", "description": "Collections and their documents."},
        {"name": "OpenAI", "description": "For clients of OpenAI's protocol."},
    ],
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_AUTHENTICATION": [],
    "COMPONENT_SPLIT_PATCH": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    # Deep links would be links inside buttons, which keyboards and screen readers cannot use.
    "SWAGGER_UI_SETTINGS": {"deepLinking": False},
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "ENUM_NAME_OVERRIDES": {
        "DocumentStatusEnum": "retrieval.models.Document.Status",
        "AnswerStatusEnum": "chat.models.Answer.Status",
        "SearchMethodEnum": "retrieval.api.serializers.RANKED_BY",
        "AnswerMethodEnum": "chat.api.serializers.ANSWERED_BY",
        "MethodEnum": "retrieval.api.serializers.METHODS",
    },
}
