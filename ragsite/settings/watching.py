"""OpenTelemetry and logs."""

from __future__ import annotations

from ragsite.settings import env

# Traces and metrics go there over OTLP; the exporters read OpenTelemetry's other variables themselves.
OTEL_ENDPOINT = env.text("OTEL_EXPORTER_OTLP_ENDPOINT")

# One line of text an event, or one JSON object.
LOG_FORMAT = env.choice("LOG_FORMAT", "text", ("text", "json"))
# A line for each request; not for those of probes. Text is for people, who would drown in them.
LOG_REQUESTS = LOG_FORMAT == "json"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "text": {
            "()": "ragsite.operations.logs.TextFormatter",
            "format": "{asctime} {levelname:<7} {name}: {message}",
            "style": "{",
        },
        "json": {"()": "ragsite.operations.logs.JsonFormatter"},
    },
    "filters": {"refusals": {"()": "ragsite.operations.logs.RefusalFilter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT, "filters": ["refusals"]}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        **{name: {"level": "INFO"} for name in ("ragsite", "retrieval", "chat", "evaluation")},
        # It has set up handlers of its own by now. Its access lines hold queries, and with them questions.
        "uvicorn": {"handlers": [], "propagate": True, "level": "WARNING"},
    },
}
