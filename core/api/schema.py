"""Add the shared error responses to the OpenAPI schema.

A view's ``problem_serializer`` describes the form of its errors.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from django.conf import settings
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent
from rest_framework import serializers

from core.api.fields import KnownFieldsOnly, ProblemSerializer, TextField
from core.api.permissions import MayAsk, StaffOrAskersReadOnly

Direction = Literal["request", "response"]
INVALID = "InvalidRequest"
_TEXT = {"type": "string"}
_ANY_TEXT = r"^[^\u0000]+$"
ANY_TEXT = {"type": "string", "pattern": r"^[^\u0000]*$"}
_SOME_TEXT = r"^[^\u0000]*[^\s\u0000][^\u0000]*$"
EVENT: dict[str, object] = {
    "type": "object",
    "required": ["data"],
    "properties": {
        "id": {"type": "string", "description": "By which a reader goes on behind this event."},
        "event": {"type": "string", "description": "Its name."},
        "data": {"type": "string", "description": "A JSON document."},
    },
}
_ALWAYS = {
    "400": "What was sent is wrong: which field, and why.",
    "401": "Credentials are missing or wrong.",
    "403": "The caller may not do this.",
    "404": "There is nothing with this name or id, or it is not the caller's to see.",
    "405": "Another method is needed.",
    "429": "Too many requests, or too many wrong credentials.",
    "503": "The site cannot answer at the moment.",
}
_WITH_A_BODY = {
    "413": "The request is too large.",
    "415": "The body is of another media type than the operation reads.",
}
_WRITING = {"507": "The disk is full: nothing was changed."}
_SECONDS = ("Retry-After", "Seconds to wait, where they are known.")
_HEADERS = {
    "401": ("WWW-Authenticate", "How to sign in."),
    "405": ("Allow", "The methods that are understood."),
    **dict.fromkeys(("429", "503", "507"), _SECONDS),
}

# First words of the summary of an operation without a docstring.
_VERBS = {"POST": "Add to", "PUT": "Replace one of", "PATCH": "Change one of", "DELETE": "Delete one of"}


class SchemaWithProblems(AutoSchema):
    def get_auth(self) -> list[dict[str, list[str]]]:
        """Return which keys a request may use, as OpenAPI security requirements. {} allows requests without a key."""
        auth: list[dict[str, list[str]]] = super().get_auth()
        open_to_all = not settings.CHAT_REQUIRES_LOGIN and any(
            isinstance(permission, MayAsk) or (self.method == "GET" and isinstance(permission, StaffOrAskersReadOnly))
            for permission in self.view.get_permissions()
        )
        return [*auth, {}] if open_to_all else auth

    def get_tags(self) -> list[str]:
        return [getattr(self.view, "tag", "Documents")]

    def get_summary(self) -> str:
        own = getattr(self.view, getattr(self.view, "action", None) or self.method.lower()).__doc__
        if own:
            return re.split(r"[.,;:]\s", own.strip() + " ", maxsplit=1)[0]
        read = "Read one of" if "{" in self.path else "List"
        verb = _VERBS.get(self.method, read)
        return f"{verb} the {self.view.queryset.model._meta.verbose_name_plural}"  # type: ignore[attr-defined]  # generic

    def _map_basic_serializer(self, serializer: Any, direction: Direction) -> Any:
        schema: Any = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        if isinstance(serializer, KnownFieldsOnly) and not serializer.ignored_fields:
            schema["additionalProperties"] = False
        return schema

    def _get_response_bodies(self, direction: Direction = "response") -> dict[str, Any]:
        responses: dict[str, Any] = super()._get_response_bodies(direction)
        form = getattr(self.view, "problem_serializer", ProblemSerializer)
        problem = self.resolve_serializer(form(), direction).ref
        invalid = self._register_invalid_input_problem(problem) if form is ProblemSerializer else problem
        for status, description in self._describe_error_responses().items():
            schema = invalid if status == "400" else problem
            said = responses.get(status)
            if said is not None and "content" in said:
                own = said["content"].get("application/json", {}).get("schema", schema)
                schema = own if own == schema else {"anyOf": [own, schema]}
                description = said["description"] or description
            responses[status] = {"description": description, "content": {"application/json": {"schema": schema}}}
            if status in _HEADERS:
                name, meaning = _HEADERS[status]
                responses[status]["headers"] = {name: {"description": meaning, "schema": _TEXT}}
        return dict(sorted(responses.items()))

    def _map_serializer_field(self, field: Any, direction: Direction, bypass_extensions: bool = False) -> Any:
        """Add a pattern to the schema of text fields: they refuse NUL, and whitespace at the ends is removed."""
        schema: Any = super()._map_serializer_field(field, direction, bypass_extensions)  # type: ignore[no-untyped-call]
        if isinstance(field, serializers.ListSerializer) and not field.allow_empty:
            return {**schema, "minItems": 1}
        if isinstance(field, TextField) and not field.read_only and "pattern" not in schema:
            return {**schema, "pattern": _ANY_TEXT if field.allow_blank else _SOME_TEXT}
        return schema

    def _describe_error_responses(self) -> dict[str, str]:
        has_body = self.method in ("POST", "PUT", "PATCH") and self.get_request_serializer() is not None
        return _ALWAYS | (_WITH_A_BODY if has_body else {}) | (_WRITING if self.method != "GET" else {})

    def _register_invalid_input_problem(self, problem: dict[str, str]) -> dict[str, str]:
        # Client generators cannot name the types of nested messages, so the schema allows any object.
        meaning = "By field: sentences, or the same again for fields within it."
        by_field = {"type": "object", "additionalProperties": {}, "description": meaning}
        component = ResolvedComponent(  # type: ignore[no-untyped-call]
            name=INVALID,
            type=ResolvedComponent.SCHEMA,
            object=INVALID,
            schema={"anyOf": [problem, by_field]},
        )
        self.registry.register_on_missing(component)
        ref: dict[str, str] = component.ref
        return ref
