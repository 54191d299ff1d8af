from __future__ import annotations

import re

from django.core.exceptions import ImproperlyConfigured

from ragsite.processes.machine import count_available_cores
from ragsite.settings import env
from ragsite.settings.search import HAS_MODEL, LOCAL_MODEL

# The longest time from a question to its saved answer. It is longer with a local model, which writes one answer at a
# time.
QUESTION_SECONDS = 300.0 if LOCAL_MODEL else 120.0
# One web server writes this many answers at once, and lets ANSWERS_WAITING more questions wait.
ANSWERS_AT_ONCE = max(1, env.read_number("ANSWERS_AT_ONCE", 1 if LOCAL_MODEL else 16 if HAS_MODEL else 8))
ANSWERS_WAITING = 8 if LOCAL_MODEL else 32
CALLER_SHARE = 0.25
CHAT_REQUIRES_LOGIN = env.read_flag("CHAT_REQUIRES_LOGIN", False)
WIDGET_SITES = env.read_names("WIDGET_SITES")
for _site in WIDGET_SITES:
    if not re.fullmatch(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?", _site):
        raise ImproperlyConfigured(f"WIDGET_SITES must name sites as https://www.example.org, not {_site!r}.")
CHAT_DEBUG_FOR_EVERYONE = env.read_flag("CHAT_DEBUG_FOR_EVERYONE", False)
METRICS_PUBLIC = env.read_flag("METRICS_PUBLIC", False)
QUESTION_MAX_CHARACTERS = 500
# If its prompt allows refusals, a small model refuses half of the answerable questions (ADR 48).
CHAT_MODEL_MAY_REFUSE = env.read_flag("CHAT_MODEL_MAY_REFUSE", False)
ANSWER_CACHE_SECONDS = 7 * 24 * 3600.0

# The language model of these settings judges a sample of answers. It should not be the model that writes them.
JUDGE_BASE_URL = env.read_string("JUDGE_BASE_URL")
JUDGE_API_KEY = env.read_string("JUDGE_API_KEY")
JUDGE_MODEL = env.read_string("JUDGE_MODEL")
JUDGE_TIMEOUT_SECONDS = 60.0
JUDGE_SAMPLE_RATE = env.read_number("JUDGE_SAMPLE_RATE", 1.0)
JUDGE_DAILY_BUDGET_TOKENS = env.read_number("JUDGE_DAILY_BUDGET_TOKENS", 0)
EVALUATE_WITH_MODEL = bool(JUDGE_BASE_URL and JUDGE_MODEL)

# Days after which conversations and audit entries are deleted; 0 means never.
CONVERSATION_DAYS = env.read_number("CONVERSATION_DAYS", 0)
AUDIT_DAYS = env.read_number("AUDIT_DAYS", 0)

WEB_CONCURRENCY = max(1, env.read_number("WEB_CONCURRENCY", min(count_available_cores(), ANSWERS_AT_ONCE, 8)))
