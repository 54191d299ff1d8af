"""STATE messages of all forms come back to the connector as it sent them; those of other streams do not."""

import json

from retrieval.sources.airbyte.state_messages import StateCollector, StateMessage, serialise_state
from retrieval.sources.airbyte.streams import ChosenStream, build_option_prefix, is_deleted, select_stream_options


def stream_state(name, at, **descriptor):
    state = {"stream_descriptor": {"name": name, **descriptor}, "stream_state": {"at": at}}
    return {"type": "STREAM", "stream": state}


def after(stored, *messages, streams=("pages", "public.notes")):
    known = StateCollector(stored, streams)
    taken = [known.add_message(StateMessage(message)) for message in messages]
    return serialise_state(known.copy_state()), taken


def test_the_last_state_of_each_stream_is_kept():
    notes = stream_state("notes", 1, namespace="public")
    stored, taken = after("", stream_state("pages", 1), notes, stream_state("pages", 2), stream_state("other", 9))
    assert taken == [True, True, True, False]
    assert json.loads(stored) == [stream_state("pages", 2), notes]
    stored, _taken = after(stored, stream_state("notes", 3, namespace="public"))
    assert json.loads(stored) == [stream_state("pages", 2), stream_state("notes", 3, namespace="public")]


def test_a_global_state_and_one_of_the_older_form_replace_all():
    whole = {"type": "GLOBAL", "global": {"shared_state": {"lsn": 7}, "stream_states": []}}
    stored, _taken = after("", stream_state("pages", 1), whole)
    assert json.loads(stored) == [whole]
    stored, _taken = after(stored, {"data": {"at": "\0 1"}})
    assert json.loads(stored) == {"at": "\0 1"}
    assert after(stored) == (stored, [])
    assert json.loads(after(stored, stream_state("pages", 1))[0]) == [stream_state("pages", 1)]


def test_a_state_that_breaks_the_protocol_says_nothing():
    wrong = [{"type": "STREAM"}, {"type": "STREAM", "stream": {}}, {"type": "GLOBAL", "global": 1}, {"type": "?"}, {}]
    assert after("", *wrong) == ("", [False] * len(wrong))


def test_a_stream_is_configured_as_it_was_chosen():
    stream = {"name": "a", "fields": ["b"], "supported_sync_modes": ["incremental"], "default_cursor_field": ["at"]}
    chosen = ChosenStream("a", stream, {"sync_mode": "incremental", "cursor_field": "changed.at"}).build_catalog_entry()
    assert (chosen["sync_mode"], chosen["cursor_field"]) == ("incremental", ["changed", "at"])
    assert "fields" not in chosen["stream"]
    stream["supported_sync_modes"] = ["full_refresh"]
    assert ChosenStream("a", stream, {"sync_mode": "incremental"}).build_catalog_entry()["sync_mode"] == "full_refresh"


def test_options_of_streams_with_alike_names_are_kept_apart():
    options = {f"{build_option_prefix(name)}key_fields": name for name in ("a", "a.b", "a b", "é")}
    for name in ("a", "a.b", "a b", "é"):
        assert select_stream_options(options, name) == {"key_fields": name}


def test_what_marks_a_deleted_record():
    assert [is_deleted([value]) for value in ("2026-01-01", True, 1, "true")] == [True] * 4
    assert [is_deleted(values) for values in ([], [None], [False], [0], [""], ["false"], ["0"])] == [False] * 7
