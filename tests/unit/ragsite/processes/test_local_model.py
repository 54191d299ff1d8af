"""Why a local language model cannot be served, in a sentence each; and what its setting sets."""

import importlib.util
import socket
from types import SimpleNamespace

import psutil
import pytest
from django.core.exceptions import ImproperlyConfigured

from ragsite.processes import local_model
from tests.support.fresh_settings import fresh_settings
from tests.support.site import free_port


@pytest.fixture
def model(tmp_path, settings, monkeypatch):
    """Return a file that could be served, as far as is known before it is loaded."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"GGUF" + bytes(100))
    settings.LOCAL_MODEL, settings.LOCAL_MODEL_PORT = str(path), free_port()
    return path


def test_what_can_be_served_has_no_trouble(model):
    assert local_model.find_problem() == ""
    assert not local_model.is_ready()


def test_a_file_that_is_missing_or_no_model_is_named(model, settings):
    model.write_bytes(b"PK\3\4 something else")
    assert local_model.find_problem() == f"LOCAL_MODEL: {model} is not a GGUF file."
    model.unlink()
    assert local_model.find_problem() == f"LOCAL_MODEL: the file {model} cannot be read (No such file or directory)."
    settings.LOCAL_MODEL = str(model.parent)
    assert "cannot be read (Is a directory)" in local_model.find_problem()


def test_a_missing_engine_is_told_with_its_remedy(model, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert local_model.find_problem().endswith("pip install -r requirements-local-model.txt")


def test_too_little_memory_is_told_in_mib(model, monkeypatch):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=300 * 2**20, total=2**34))
    assert local_model.find_problem() == "LOCAL_MODEL: tiny.gguf needs about 512 MiB of memory, and 300 MiB are free."


def test_a_port_that_another_program_has_is_told(model, settings):
    with socket.socket() as other:
        other.bind(("127.0.0.1", settings.LOCAL_MODEL_PORT))
        other.listen()
        found = local_model.find_problem()
    assert f"port {settings.LOCAL_MODEL_PORT} on 127.0.0.1 cannot be used (Address already in use)" in found
    assert "ask that one: OPENAI_BASE_URL=" in found


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, ("tiny", 1, 4096)),
        ({"OPENAI_MODEL": "ours", "OPENAI_CONTEXT_TOKENS": "2048", "ANSWERS_AT_ONCE": "3"}, ("ours", 3, 2048)),
    ],
)
def test_the_setting_sets_what_the_site_asks(environment, expected):
    found = fresh_settings(LOCAL_MODEL="/models/tiny.gguf", **environment)
    assert expected == (found.OPENAI_MODEL, found.ANSWERS_AT_ONCE, found.OPENAI_CONTEXT_TOKENS)
    assert (found.OPENAI_BASE_URL, found.QUERY_REFORMULATOR) == ("http://127.0.0.1:8411/v1", {})


def test_two_language_models_are_refused():
    with pytest.raises(ImproperlyConfigured, match="LOCAL_MODEL and OPENAI_BASE_URL both name a language model"):
        fresh_settings(LOCAL_MODEL="/models/tiny.gguf", OPENAI_BASE_URL="http://127.0.0.1:1/v1")
