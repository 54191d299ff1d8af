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
    },
}
STREAM = {
    "name": "pages",
    "json_schema": {
        "type": "object",
        "properties": {name: {"type": "string"} for name in ("id", "title", "body", "url", "updated_at", "author")},
    },
    "supported_sync_modes": ["full_refresh"],
    "source_defined_primary_key": [["id"]],
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
    mood, token = config.get("mood", ""), config["token"]
    say("LOG", log={"level": "INFO", "message": f"Signing in with {token}"})
    is_wrong = token.startswith("wrong")
    if call == "check":
        status = {"status": "FAILED", "message": f"no such token: {token}"} if is_wrong else {"status": "SUCCEEDED"}
        say("CONNECTION_STATUS", connectionStatus=status)
        return
    if is_wrong:
        fail(f"The server refused the token {token}", "config_error")
    if call == "discover":
        say("CATALOG", catalog={"streams": [STREAM]})
        return
    json.loads(Path(files["--catalog"]).read_text())
    if not Path(config["folder"]).is_dir():
        error = {"message": "The server does not answer", "failure_type": "transient_error"}
        say("TRACE", trace={"type": "ERROR", "error": error})
        # The development kit ends with such a summary.
        fail("A stream did not sync", "config_error")
    for number, path in enumerate(sorted(Path(config["folder"]).glob("*.json"))):
        if number == 2:
            misbehave(mood, token)
        say("RECORD", record={"stream": "pages", "data": json.loads(path.read_text()), "emitted_at": 0})
    say("STATE", state={"type": "STREAM"})


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
