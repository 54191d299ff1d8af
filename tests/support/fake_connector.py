"""A connector of Airbyte's protocol as a script: JSON files are its records, ``mood`` is how it fails."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

SPEC = {
    "type": "object",
    "required": ["folder", "token"],
    "properties": {
        "folder": {"type": "string", "title": "Folder", "description": "Where the <b>files</b> are.", "order": 0},
        "token": {"type": "string", "title": "Token", "airbyte_secret": True, "order": 1},
        "mood": {"type": "string", "title": "Mood", "order": 2},
        "form": {"type": "string", "title": "Form of STATE", "order": 3},
        "page": {"type": "integer", "title": "Records before each STATE", "order": 4},
    },
}
STREAM = {
    "name": "pages",
    "json_schema": {
        "type": "object",
        "properties": {name: {"type": "string"} for name in ("id", "title", "body", "url", "updated_at", "author")},
    },
    "supported_sync_modes": ["full_refresh", "incremental"],
    "source_defined_cursor": True,
    "default_cursor_field": ["updated_at"],
    "source_defined_primary_key": [["id"]],
}
# Its records are in a folder of its name.
OTHER_STREAM = {
    **{name: value for name, value in STREAM.items() if name != "source_defined_cursor"},
    "name": "comments",
    "supported_sync_modes": ["full_refresh"],
}


def say(kind, **content):
    print(json.dumps({"type": kind, **content}), flush=True)


def fail(message, kind):
    say("TRACE", trace={"type": "ERROR", "error": {"message": message, "failure_type": kind}})
    sys.exit(1)


def main():
    call, *arguments = sys.argv[1:]
    if call == "spec":
        say("SPEC", spec={"connectionSpecification": SPEC})
        return
    files = dict(zip(arguments[::2], arguments[1::2], strict=True))
    config = json.loads(Path(files["--config"]).read_text())
    token = config["token"]
    say("LOG", log={"level": "INFO", "message": f"Signing in with {token}"})
    is_wrong = token.startswith("wrong")
    if call == "check":
        status = {"status": "FAILED", "message": f"no such token: {token}"} if is_wrong else {"status": "SUCCEEDED"}
        say("CONNECTION_STATUS", connectionStatus=status)
        return
    if is_wrong:
        fail(f"The server refused the token {token}", "config_error")
    if call == "discover":
        say("CATALOG", catalog={"streams": [STREAM, OTHER_STREAM]})
        return
    chosen = json.loads(Path(files["--catalog"]).read_text())["streams"]
    state = json.loads(Path(files["--state"]).read_text()) if "--state" in files else None
    if not Path(config["folder"]).is_dir():
        error = {"message": "The server does not answer", "failure_type": "transient_error"}
        say("TRACE", trace={"type": "ERROR", "error": error})
        # The development kit ends with such a summary.
        fail("A stream did not sync", "config_error")
    form, page = config.get("form") or "STREAM", config.get("page") or 1_000_000
    reached = read_state(state, form)
    for each in chosen:
        read(each["stream"]["name"], each["sync_mode"] == "incremental", reached, form, page, config)


def read(name, is_incremental, reached, form, page, config):
    """Print the records of a stream; a record whose time equals that of the STATE is sent again, as services do."""
    folder = Path(config["folder"], *([] if name == "pages" else [name]))
    records = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    if is_incremental:
        since = reached.get(name, "")
        records = [each for each in records if each.get("updated_at", "") >= since]
        records.sort(key=lambda record: record.get("updated_at", ""))
    for number, record in enumerate(records):
        if number == 2:
            misbehave("dies" if (folder / "dies").exists() else config.get("mood", ""), config["token"])
        say("RECORD", record={"stream": name, "data": record, "emitted_at": 0})
        if is_incremental:
            reached[name] = record.get("updated_at", "")
            if (number + 1) % page == 0:
                say("STATE", state=write_state(reached, name, form))
    if is_incremental:
        say("STATE", state=write_state(reached, name, form))
    else:
        descriptor = {"name": name}
        done = {"stream_descriptor": descriptor, "stream_state": {"__ab_full_refresh_sync_complete": True}}
        say("STATE", state={"type": "STREAM", "stream": done})


def write_state(reached, name, form):
    parts = [{"stream_descriptor": {"name": each}, "stream_state": {"at": at}} for each, at in reached.items()]
    if form == "LEGACY":
        return {"data": {"reached": reached}}
    if form == "GLOBAL":
        return {"type": "GLOBAL", "global": {"shared_state": {"lsn": "7"}, "stream_states": parts}}
    return {"type": "STREAM", "stream": next(each for each in parts if each["stream_descriptor"]["name"] == name)}


def read_state(state, form):
    if state is None:
        return {}
    if form == "LEGACY":
        return dict(state["reached"])
    if form == "GLOBAL":
        (message,) = state
        assert message["global"]["shared_state"] == {"lsn": "7"}
        parts = message["global"]["stream_states"]
    else:
        parts = [message["stream"] for message in state]
    return {part["stream_descriptor"]["name"]: part["stream_state"]["at"] for part in parts}


def misbehave(mood, token):
    if mood == "hangs":
        time.sleep(600)
    elif mood == "waits":
        Path(os.environ["HOME"], "waiting").touch()
        time.sleep(5)
    elif mood == "dies":
        print("out of luck with", token, file=sys.stderr, flush=True)
        os._exit(3)
    elif mood == "chatters":
        print("This is no JSON, with", token, flush=True)
        say("LOG", log={"level": "WARN", "message": f"slow\x00 {token}"})
    elif mood == "stutters":
        print('{"type": "RECORD", "record": {"stream": "pages", "da', flush=True)
    elif mood == "swells":
        say("RECORD", record={"stream": "pages", "data": {"id": "x", "body": "x" * 20_000_000}})
    elif mood == "floods":
        while True:
            sys.stdout.write("x" * 99 + "\n")
    elif mood == "eats":
        bytearray(3 << 30)
    elif mood == "gives up":
        say("TRACE", trace={"type": "STREAM_STATUS", "stream_status": {"status": "INCOMPLETE"}})
    elif mood == "leaves":
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    elif mood == "shows":
        say("LOG", log={"level": "WARN", "message": " ".join(sorted(os.environ))})


if __name__ == "__main__":
    main()
