"""The JSON Schema of a connector's settings becomes fields, and their values become its settings again."""

from django import forms

from retrieval.sources.airbyte.spec_forms import build_config, build_fields
from retrieval.sources.options import LinesField, SecretField

SPEC = {
    "type": "object",
    "required": ["start", "credentials", "count"],
    "properties": {
        "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3, "order": 1},
        "start": {
            "type": "string",
            "title": "Start <i>date</i>",
            "description": "<script>x</script>",
            "order": 0,
        },
        "share": {"type": ["null", "number"]},
        "is_deep": {"type": "boolean", "default": True},
        "level": {"type": "integer", "enum": [1, 2]},
        "format": {"type": "string", "enum": ["a", "b"]},
        "spaces": {"type": "array", "items": {"type": "string"}},
        "kinds": {"type": "array", "items": {"enum": ["x", "y"]}},
        "headers": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "inner": {
            "type": "object",
            "properties": {"deep": {"type": "object", "properties": {"leaf": {"type": "string"}}}},
        },
        "secret_area": {"type": "string", "airbyte_secret": True, "multiline": True},
        "hidden": {"type": "string", "airbyte_hidden": True},
        "version": {"const": "v1"},
        "credentials": {
            "type": "object",
            "oneOf": [
                {
                    "title": "By token",
                    "required": ["token"],
                    "properties": {"kind": {"const": "token"}, "token": {"type": "string", "airbyte_secret": True}},
                },
                {
                    "title": "By name",
                    "required": ["user"],
                    "properties": {"kind": {"const": "name"}, "user": {"type": "string"}},
                },
            ],
        },
    },
}
FIELDS = build_fields(SPEC)


def test_each_setting_has_a_field_of_its_type():
    kinds = {name.removeprefix("config."): type(field) for name, field in FIELDS.items()}
    assert kinds == {
        "start": forms.CharField,
        "count": forms.IntegerField,
        "share": forms.FloatField,
        "is_deep": forms.BooleanField,
        "level": forms.ChoiceField,
        "format": forms.ChoiceField,
        "spaces": LinesField,
        "kinds": forms.MultipleChoiceField,
        "headers": forms.JSONField,
        "maybe": forms.CharField,
        "inner.deep.leaf": forms.CharField,
        "secret_area": SecretField,
        "credentials": forms.ChoiceField,
        "credentials.token.token": SecretField,
        "credentials.name.user": forms.CharField,
    }
    assert [*kinds][:2] == ["start", "count"], "The order is the connector's."
    assert FIELDS["config.count"].initial == 3
    assert FIELDS["config.count"].required
    assert (FIELDS["config.count"].min_value, FIELDS["config.count"].max_value) == (1, 9)
    assert FIELDS["config.credentials.name.user"].label == "credentials, By name: user"
    assert not FIELDS["config.credentials.name.user"].required, "Only one of the alternatives is needed."


def test_texts_of_the_connector_are_no_html():
    form = type("Form", (forms.Form,), dict(FIELDS))()
    page = form.as_p()
    assert "<script" not in page
    assert "<i>" not in page


def test_a_secret_text_is_not_written_back():
    form = type("Form", (forms.Form,), dict(FIELDS))(data={"config.secret_area": "t0p"})
    assert "t0p" not in form.as_p()


def test_the_settings_have_the_types_and_the_chosen_alternative():
    form = type("Form", (forms.Form,), dict(FIELDS))(
        data={
            "config.start": "2026-11-01",
            "config.count": "4",
            "config.share": "0.5",
            "config.level": "2",
            "config.spaces": "A\n\nB\n",
            "config.kinds": ["y"],
            "config.headers": '[{"name": "X"}]',
            "config.inner.deep.leaf": "leaf",
            "config.credentials": "token",
            "config.credentials.token.token": "t0p",
            "config.credentials.name.user": "ignored",
        }
    )
    assert form.is_valid(), form.errors
    config, missing = build_config(SPEC, form.cleaned_data)
    assert missing == []
    assert config == {
        "start": "2026-11-01",
        "count": 4,
        "share": 0.5,
        "is_deep": False,
        "level": 2,
        "spaces": ["A", "B"],
        "kinds": ["y"],
        "headers": [{"name": "X"}],
        "inner": {"deep": {"leaf": "leaf"}},
        "version": "v1",
        "credentials": {"kind": "token", "token": "t0p"},
    }


def test_what_is_missing_is_named_within_the_chosen_alternative_alone():
    options = {"config.start": "x", "config.count": 1, "config.credentials": "name"}
    assert build_config(SPEC, options)[1] == ["config.credentials.name.user"]
    assert build_config(SPEC, {})[1] == ["config.start", "config.count", "config.credentials"]


def test_a_spec_that_is_no_schema_is_survived():
    loop = {"type": "object", "properties": {}}
    loop["properties"]["again"] = loop
    for spec in ({}, {"properties": []}, {"properties": {"a": 1, "b": {"oneOf": [1]}}}, {"required": 3}, loop):
        build_config(spec, {})
        assert all(name.count(".") < 10 for name in build_fields(spec))
