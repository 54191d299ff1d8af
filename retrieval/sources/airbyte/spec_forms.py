"""Build form fields from the JSON Schema of a connector's settings, and the settings from the fields' values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator
from django.utils.html import escape, strip_tags
from django.utils.text import slugify
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from retrieval.sources.options import LinesField, SecretField

PREFIX = "config"
MOST_FIELDS = 200
MOST_LEVELS = 6
_LONGEST_SECRET = 20_000
_ABSENT = object()
Schema = Mapping[str, Any]


class SecretTextarea(forms.Textarea):
    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        return super().get_context(name, None, attrs)


def _simplify_schema(schema: Any) -> dict[str, Any]:
    """Replace oneOf or anyOf by the first alternative if it is the only one, or if none has properties."""
    if not isinstance(schema, dict):
        return {}
    parts = schema.get("allOf")
    if isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], dict):
        schema = {**parts[0], **schema}
    others = [each for each in _list_alternatives(schema) if each.get("type") != "null"]
    if others and (len(others) == 1 or not any("properties" in each for each in others)):
        schema = {name: value for name, value in schema.items() if name not in ("oneOf", "anyOf")}
        schema = {**others[0], **schema}
    return dict(schema)


def _list_alternatives(schema: Schema) -> list[dict[str, Any]]:
    found = schema.get("oneOf") or schema.get("anyOf")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _read_type(schema: Schema) -> str:
    named = schema.get("type")
    names = named if isinstance(named, list) else [named]
    return next((str(name) for name in names if name not in (None, "null")), "object" if "properties" in schema else "")


def _list_properties(schema: Schema) -> list[tuple[str, dict[str, Any]]]:
    found = schema.get("properties")
    if not isinstance(found, dict):
        return []
    known = [(str(name), _simplify_schema(each)) for name, each in found.items()]
    shown = [(name, each) for name, each in known if not each.get("airbyte_hidden")]

    def order(pair: tuple[str, dict[str, Any]]) -> float:
        place = pair[1].get("order")
        return place if isinstance(place, int | float) else float("inf")

    return sorted(shown, key=order)


def _read_required_names(schema: Schema) -> set[str]:
    found = schema.get("required")
    return {str(name) for name in found} if isinstance(found, list) else set()


def _list_choices(schema: Schema) -> list[tuple[str, str, dict[str, Any]]]:
    choices = []
    for number, each in enumerate(_list_alternatives(schema)):
        constants = [str(field["const"]) for _name, field in _list_properties(each) if "const" in field]
        title = str(each.get("title") or (constants[0] if constants else number + 1))
        choices.append((slugify(constants[0] if constants else title) or str(number), title, each))
    return choices


def build_fields(schema: Schema) -> dict[str, forms.Field]:
    """Return the form fields by name. A name is PREFIX, followed by the setting's path."""
    fields: dict[str, forms.Field] = {}
    for name, field in _iterate_fields(schema, PREFIX, "", is_certain=True, levels=MOST_LEVELS):
        if len(fields) < MOST_FIELDS:
            fields[name] = field
    return fields


def _iterate_fields(
    schema: Schema, path: str, above: str, *, is_certain: bool, levels: int
) -> Iterator[tuple[str, forms.Field]]:
    required = _read_required_names(schema)
    for name, each in _list_properties(schema) if levels else []:
        here = f"{path}.{name}"
        label = f"{above}{each.get('title') or name}"
        is_required = is_certain and name in required
        if "const" in each:
            continue
        if choices := _list_choices(each):
            options = [(value, title) for value, title, _schema in choices]
            first = options[0][0] if is_required else ""
            shown = options if is_required else [("", "–"), *options]
            yield (
                here,
                forms.ChoiceField(
                    label=label, choices=shown, required=is_required, initial=first, help_text=_describe_setting(each)
                ),
            )
            for value, title, inner in choices:
                yield from _iterate_fields(
                    inner, f"{here}.{value}", f"{label}, {title}: ", is_certain=False, levels=levels - 1
                )
        elif "properties" in each:
            yield from _iterate_fields(each, here, f"{label}: ", is_certain=is_required, levels=levels - 1)
        else:
            yield here, _build_field(each, label, is_required=is_required)


def _describe_setting(schema: Schema) -> str:
    examples = schema.get("examples")
    parts = [strip_tags(str(schema.get("description") or ""))[:600], str(schema.get("pattern_descriptor") or "")]
    if isinstance(examples, list) and examples:
        parts.append(_t("Such as %s.") % str(examples[0])[:200])
    return escape(" ".join(part.strip() for part in parts if part.strip()))


_SECRET_HELP = _("Encrypted, and never shown again. Empty: unchanged, or removed if another setting of it changes.")


def _build_field(schema: Schema, label: str, *, is_required: bool) -> forms.Field:
    said, kind = _describe_setting(schema), _read_type(schema)
    if schema.get("airbyte_secret"):
        field: forms.Field = SecretField(label=label, help_text=f"{said} {_SECRET_HELP}".strip())
        field.validators = [MaxLengthValidator(_LONGEST_SECRET)]
        if schema.get("multiline"):
            field.widget = SecretTextarea(attrs={"rows": 4, "autocomplete": "off"})
        return field
    shared: dict[str, Any] = {
        "label": label,
        "required": is_required,
        "help_text": said,
        "initial": schema.get("default"),
    }
    items = _simplify_schema(schema.get("items"))
    if isinstance(values := schema.get("enum"), list):
        choices = [(str(value), str(value)) for value in values]
        return forms.ChoiceField(choices=choices if is_required else [("", "–"), *choices], **shared)
    if kind == "boolean":
        return forms.BooleanField(**{**shared, "required": False})
    if kind in ("integer", "number"):
        bounds = {
            f"{end}_value": schema[f"{end}imum"] for end in ("min", "max") if _is_number(schema.get(f"{end}imum"))
        }
        return (forms.IntegerField if kind == "integer" else forms.FloatField)(**shared, **bounds)
    if kind == "array" and isinstance(values := items.get("enum"), list):
        choices = [(str(value), str(value)) for value in values]
        return forms.MultipleChoiceField(choices=choices, widget=forms.CheckboxSelectMultiple, **shared)
    if kind == "array" and _read_type(items) in ("string", ""):
        return LinesField(**shared)
    if kind in ("array", "object"):
        return forms.JSONField(widget=forms.Textarea(attrs={"rows": 4}), **shared)
    widget = forms.Textarea(attrs={"rows": 4}) if schema.get("multiline") else forms.TextInput(attrs={"size": 60})
    return forms.CharField(max_length=_LONGEST_SECRET, widget=widget, **shared)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def build_config(schema: Schema, options: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the connector's settings from the values of the form, and the labels of missing required settings."""
    missing: list[str] = []
    return _build_object(schema, options, PREFIX, missing, MOST_LEVELS), missing


def _build_object(
    schema: Schema, options: Mapping[str, Any], path: str, missing: list[str], levels: int
) -> dict[str, Any]:
    config: dict[str, Any] = {}
    required = _read_required_names(schema)
    for name, each in _list_properties(schema) if levels else []:
        here = f"{path}.{name}"
        lacking: list[str] = []
        value = _build_option_value(each, options, here, lacking, levels - 1)
        is_wanted = value is not _ABSENT and (name in required or value != {})
        if is_wanted:
            config[name] = value
        if is_wanted or name in required:
            missing += lacking or ([] if is_wanted else [here])
    return config


def _build_option_value(schema: Schema, options: Mapping[str, Any], here: str, missing: list[str], levels: int) -> Any:
    if "const" in schema:
        return schema["const"]
    if choices := _list_choices(schema):
        chosen = next((each for value, _title, each in choices if value == options.get(here)), None)
        if chosen is None:
            return _ABSENT
        return _build_object(chosen, options, f"{here}.{options[here]}", missing, levels)
    if "properties" in schema:
        return _build_object(schema, options, here, missing, levels)
    value = options.get(here)
    if value in (None, "", []):
        return _ABSENT
    if isinstance(values := schema.get("enum"), list):
        # The form sends text, but the schema may define a number.
        return next((each for each in values if str(each) == str(value)), _ABSENT)
    if schema.get("airbyte_secret") and _read_type(schema) in ("integer", "number", "object", "array"):
        return _read_json(here, value)
    return value


def _read_json(here: str, value: Any) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ValidationError({here: _t("This must be JSON.")}) from error
