"""The names after a dot in templates exist: Django shows nothing for an attribute that was renamed.

A template does not give the types of its values, so a name passes if any class or payload of the product has it.
"""

import ast
import re
import uuid
from pathlib import Path

import pytest
from django.contrib.auth.models import AbstractUser
from django.contrib.messages.storage.base import Message
from django.core.paginator import Page, Paginator
from django.forms import BaseForm
from django.forms.boundfield import BoundField, BoundWidget
from django.http import HttpRequest
from django.urls import ResolverMatch

ROOT = Path(__file__).parents[2]
APPS = ("core", "retrieval", "chat", "evaluation", "ragsite")
OF_LIBRARIES = (
    AbstractUser, BaseForm, BoundField, BoundWidget, HttpRequest, Message, Page, Paginator, ResolverMatch, uuid.UUID,
)  # fmt: skip
# Django and allauth make these names when they run.
MADE = re.compile(r"get_\w+_display|\w+_id|counter0?|is_anonymous|paginator|resolver_match|view_name|tags|widget_type")
COMMENT = re.compile(r"\{#.*?#\}|\{% comment.*?endcomment %\}", re.S)
TAG = re.compile(r"\{[{%].*?[%}]\}", re.S)
TEXT = re.compile(r"\"[^\"]*\"|'[^']*'")
NAME = re.compile(r"\.([A-Za-z_]\w*)")
# Permissions are named after the models.
PERMISSION = re.compile(r"\bperms\.\w+\.\w+")


def find_names(tree):
    """Yield the names of attributes, methods and keyword arguments of a module, and its texts that could be keys."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef():
                for part in node.body:
                    match part:
                        case ast.FunctionDef() | ast.AsyncFunctionDef():
                            yield part.name
                        case ast.AnnAssign(target=ast.Name(id=name)):
                            yield name
                        case ast.Assign():
                            yield from (target.id for target in part.targets if isinstance(target, ast.Name))
            case ast.Attribute(ctx=ast.Store(), attr=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.Constant(value=str(text)) if text.isidentifier():
                yield text


def find_template_names(template):
    for tag in TAG.findall(COMMENT.sub("", template)):
        yield from NAME.findall(PERMISSION.sub("", TEXT.sub("", tag)))


@pytest.fixture(scope="module")
def known():
    found = {name for of in OF_LIBRARIES for name in dir(of)}
    for app in APPS:
        for path in (ROOT / app).rglob("*.py"):
            found.update(find_names(ast.parse(path.read_text())))
    return found


def test_every_name_after_a_dot_exists(known):
    templates = [path for path in (ROOT / "templates").rglob("*") if path.suffix in (".html", ".txt", ".svg", ".xml")]
    assert len(templates) > 100
    missing = {
        (str(path.relative_to(ROOT)), name)
        for path in templates
        for name in find_template_names(path.read_text())
        if name not in known and not MADE.fullmatch(name)
    }
    assert not missing


@pytest.mark.parametrize(
    ("template", "names"),
    [
        ("{% if budget.model_share.is_short %}few.words{% endif %}", ["model_share", "is_short"]),
        ("{{ turn.title|default:'a.b' }} {# turn.gone #}", ["title"]),
        ("{% if perms.retrieval.add_document and row.shown %}", ["shown"]),
    ],
)
def test_names_are_found(template, names):
    assert list(find_template_names(template)) == names
