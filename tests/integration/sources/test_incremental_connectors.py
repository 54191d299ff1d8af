"""Connectors that are read incrementally, and several streams: what a run reads, removes and stores of its STATE."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from retrieval.documents.submission import submit
from retrieval.exceptions import DocumentRejected
from retrieval.models import Document, ReadingState, SourceItem, SourceRun
from retrieval.sources.kinds.connectors import ConnectorSource
from retrieval.sources.sync_runs import attempt_source_run, finish_run_in_process, request_run
from tests.support.sources import ConnectorRemote, make_source, names, numbers, run_once

pytestmark = pytest.mark.django_db
TOKEN = "right"


class Clock:
    """A remote whose records get later times with each change."""

    def __init__(self, remote):
        self.remote, self.now = remote, 100

    def put(self, name, text, **values):
        self.now += 1
        self.remote.put(name, text, updated_at=str(self.now), **values)


@pytest.fixture
def remote(tmp_path):
    return ConnectorRemote(tmp_path / "records")


@pytest.fixture
def shelf(remote):
    clock = Clock(remote)
    for name in "abcdef":
        clock.put(name, f"The pump {name} weighs 30 kilograms.")
    return clock


@pytest.fixture
def source(collection, remote, shelf):
    remote.choose("pages", sync_mode="incremental", deleted_field="deleted")
    return make_source(collection, "connector", remote.options)


def change(source, **options):
    """Change options of the source and keep its token, as the form does."""
    source.refresh_from_db()
    source.options |= {name.replace("__", "."): value for name, value in options.items()}
    source.set_secret(json.dumps({"config.token": TOKEN}))
    source.save()


def text_of(name):
    return Document.objects.get(source=f"Shelf/page-{name}.md").file.read().decode()


@pytest.mark.parametrize("form", ["STREAM", "GLOBAL", "LEGACY"])
def test_a_run_reads_only_what_changed_since_the_stored_state(source, shelf, remote, form):
    change(source, config__form=form)
    assert numbers(run_once(source)) == (6, 0, 0, 0, 0)
    shelf.put("b", "It was painted.")
    shelf.put("g", "It is new.")
    remote.delete("a")
    run = run_once(source)
    # The last record of the first run is sent again; that a is missing is not seen.
    assert numbers(run) == (1, 1, 1, 0, 0), run.error
    assert len(names()) == 7
    assert "painted" in text_of("b")
    assert numbers(run_once(source)) == (0, 0, 1, 0, 0)


def test_a_field_of_deletions_removes_documents_with_the_brake(source, shelf):
    run_once(source)
    shelf.put("b", "", deleted=True)
    shelf.put("h", "It never was here.", deleted="2026-11-29")
    run = run_once(source)
    assert (run.removed, run.kept_back, len(names())) == (1, 0, 5), run.details
    assert ["page-h.md", "it is marked as deleted"] in run.details["left_out"]
    for name in "ac":
        shelf.put(name, "", deleted=True)
    run = run_once(source)
    assert (run.removed, run.kept_back, len(names())) == (0, 2, 5), run.details
    # The connector does not send them again, and what was held back is still known.
    shelf.put("d", "It was painted.")
    assert run_once(source).kept_back == 2
    run = run_once(source, may_remove=True)
    assert (run.removed, len(names())) == (2, 3), run.details
    shelf.put("a", "It is back.", deleted=False)
    assert numbers(run_once(source))[0] == 1


def test_everything_is_read_now_and_then_and_removes_what_is_missing(source, shelf, remote):
    run_once(source)
    remote.delete("a")
    assert run_once(source).removed == 0
    ReadingState.objects.update(read_all_at=timezone.now() - timedelta(days=8))
    run = run_once(source)
    assert numbers(run) == (0, 0, 5, 1, 0), run.details
    assert ReadingState.objects.get().read_all_at > timezone.now() - timedelta(minutes=1)
    for name in "bcd":
        remote.delete(name)
    ReadingState.objects.update(read_all_at=timezone.now() - timedelta(days=8))
    assert run_once(source).kept_back == 3
    assert numbers(run_once(source)) == (0, 0, 1, 0, 0)
    change(source, full_days=30)
    ReadingState.objects.update(read_all_at=timezone.now() - timedelta(days=8))
    assert numbers(run_once(source)) == (0, 0, 1, 0, 0)


def test_another_mapping_or_setting_reads_everything(source, shelf):
    run_once(source)
    change(source, of__pages__text_fields=["body", "title"])
    assert numbers(run_once(source)) == (0, 6, 0, 0, 0)
    assert numbers(run_once(source)) == (0, 0, 1, 0, 0)
    source.set_secret(json.dumps({"config.token": "another"}))
    source.save()
    assert numbers(run_once(source)) == (0, 0, 6, 0, 0)
    change(source, of__pages__sync_mode="full_refresh", config__token="")
    assert numbers(run_once(source)) == (0, 0, 6, 0, 0)


def test_a_reading_that_breaks_off_goes_on_from_its_last_state(source, shelf, remote):
    change(source, config__page=2)
    (remote.path / "dies").touch()
    run = run_once(source)
    assert (run.status, len(names())) == ("waiting", 2), run.error
    assert "status 3" in run.error
    state = ReadingState.objects.get()
    assert (state.began_run, '"102"' in state.messages) == (run.pk, True)
    (remote.path / "dies").unlink()
    remote.delete("a")
    run = attempt_source_run(run.pk)
    # That the first part lost a record meanwhile is seen when everything is read again.
    assert (run.status, numbers(run)) == ("done", (6, 0, 0, 0, 0)), run.details
    state.refresh_from_db()
    assert (state.began_run, '"106"' in state.messages) == (None, True)


def test_after_another_setting_nothing_of_a_broken_reading_counts(source, shelf, remote):
    change(source, config__mood="dies", config__page=2)
    run = run_once(source)
    assert (run.status, len(names())) == ("waiting", 2), run.error
    remote.delete("a")
    change(source, config__mood="", config__page=2)
    run = attempt_source_run(run.pk)
    assert (run.status, run.removed, len(names())) == ("done", 1, 5), run.details


def test_a_reading_of_everything_that_is_finished_later_removes_what_neither_part_had(source, shelf, remote):
    change(source, config__page=2)
    run_once(source)
    remote.delete("a")
    ReadingState.objects.update(read_all_at=timezone.now() - timedelta(days=8))
    (remote.path / "dies").touch()
    run = run_once(source)
    assert (run.status, len(names())) == ("waiting", 6), run.error
    SourceRun.objects.filter(pk=run.pk).update(status="stopped")
    (remote.path / "dies").unlink()
    run = run_once(source)
    # The first part is not sent again, and its documents are not missing.
    assert (run.status, run.removed, len(names())) == ("done", 1, 5), run.details
    assert run.unchanged < 5
    assert ReadingState.objects.get().began_run is None


def test_a_change_between_two_attempts_is_read(source, shelf, monkeypatch):
    """The first attempt saved the record, and ended before it stored its STATE."""
    run_once(source)
    shelf.put("a", "It was painted.")
    with monkeypatch.context() as patched:
        patched.setattr("retrieval.models.ReadingState.objects.update_or_create", _fail)
        run = run_once(source)
    assert run.status == "waiting"
    assert "painted" in text_of("a")
    shelf.put("a", "It was painted green.")
    shelf.put("b", "", deleted=True)
    run = attempt_source_run(run.pk)
    assert (run.status, numbers(run)) == ("done", (0, 1, 1, 1, 0)), run.details
    assert "green" in text_of("a")
    assert len(names()) == SourceItem.objects.count() == 5


def _fail(**_values):
    raise OSError("The disk is gone.")


def test_several_streams_have_their_own_fields_and_keys(collection, remote, shelf):
    other = remote.path / "comments"
    other.mkdir()
    for name in "abc":
        (other / f"{name}.json").write_text(json.dumps({"id": name, "body": f"Title {name}", "author": "It leaks."}))
    remote.choose("pages", "comments", sync_mode="incremental")
    remote.options |= {"of.comments.text_fields": "author", "of.comments.title_fields": "body"}
    source = make_source(collection, "connector", remote.options)
    run = run_once(source)
    assert numbers(run) == (9, 0, 0, 0, 0), run.error
    assert Document.objects.get(source="Shelf/title-a.md").file.read() == b"# Title a\n\nIt leaks.\n"
    assert {"pages/a", "comments/a"} <= set(SourceItem.objects.values_list("key", flat=True))
    # One stream is read incrementally, the other fully.
    (other / "a.json").unlink()
    assert numbers(run_once(source)) == (0, 0, 3, 1, 0)
    change(source, streams=["pages"])
    run = run_once(source)
    assert (run.removed, run.kept_back) == (0, 2), run.details
    run = run_once(source, may_remove=True)
    assert (run.removed, len(names())) == (2, 6), run.details


def test_slashes_in_identifiers_keep_records_apart(collection, remote):
    remote.choose("pages", key_fields="id\nauthor")
    for number, (key, author) in enumerate([("a/b", "c"), ("a", "b/c"), ("a~1b", "c")]):
        (remote.path / f"{number}.json").write_text(json.dumps({"id": key, "author": author, "body": "Text."}))
    assert numbers(run_once(make_source(collection, "connector", remote.options)))[0] == 3


def test_a_state_in_the_middle_is_stored_once_the_documents_before_it_are(source, monkeypatch):
    change(source, config__page=2)
    monkeypatch.setattr("retrieval.sources.comparing.FLUSH_SECONDS", -1)
    monkeypatch.setattr("retrieval.sources.airbyte.reading._ITEMS_BETWEEN", 0)
    with monkeypatch.context() as patched:
        patched.setattr("retrieval.sources.comparing.submit", _fail_after(3))
        run = run_once(source)
    assert (run.status, len(names())) == ("waiting", 3), run.error
    assert '"102"' in ReadingState.objects.get().messages
    run = attempt_source_run(run.pk)
    assert (run.status, numbers(run)) == ("done", (6, 0, 0, 0, 0)), run.details


def _fail_after(times):
    done = []

    def submit_or_fail(*arguments, **named):
        done.append(1)
        if len(done) > times:
            _fail()
        return submit(*arguments, **named)

    return submit_or_fail


def test_many_records_are_read_in_parts(source, remote, monkeypatch):
    change(source, config__page=2)
    run_once(source)
    remote.delete("a")
    change(source, of__pages__title_fields=["id"])
    monkeypatch.setattr("retrieval.sources.kinds.connectors.PART_ITEMS", 2)
    run = request_run(source, enqueue=False)
    assert attempt_source_run(run.pk).status == "waiting"
    assert ReadingState.objects.get().began_run == run.pk
    run = finish_run_in_process(run)
    assert (run.status, run.attempts, numbers(run)) == ("done", 1, (0, 5, 0, 1, 0)), run.error


def test_a_document_that_is_refused_keeps_the_state(source, shelf, monkeypatch):
    run_once(source)
    shelf.put("b", "It was painted.")
    with monkeypatch.context() as patched:
        patched.setattr("retrieval.sources.comparing.submit", _refuse)
        run = run_once(source)
    assert (run.status, run.failed) == ("done", 1)
    assert numbers(run_once(source)) == (0, 1, 1, 0, 0)
    assert "painted" in text_of("b")


def _refuse(*_arguments, **_named):
    raise DocumentRejected("The collection is full.")


def test_a_cursor_is_asked_for_where_the_stream_has_none(collection, remote):
    (described,) = [each for each in remote.options["found"]["streams"] if each["name"] == "comments"]
    described |= {"supported_sync_modes": ["full_refresh", "incremental"], "default_cursor_field": []}
    remote.choose("comments", sync_mode="incremental")
    form = ConnectorSource.get_form_class(remote.options, remote.options["found"])
    assert form(data=remote.options).errors.keys() == {"of.comments.cursor_field"}
    cleaned = form(data={**remote.options, "of.comments.cursor_field": "updated_at"})
    assert cleaned.is_valid(), cleaned.errors
    assert cleaned.cleaned_data["full_days"] == 7
    # What was said of other streams is dropped with them.
    cleaned = form(data={**remote.options, "streams": ["pages"]})
    assert cleaned.is_valid(), cleaned.errors
    assert {name.split(".")[1] for name in cleaned.cleaned_data if name.startswith("of.")} == {"pages"}
