"""Sources with real servers on loopback, filled and emptied alike, that count what is read from them."""

import json
import os
import sys
import threading
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from django.conf import settings

from retrieval.models import Document, RegisteredConnector, Source
from retrieval.sources.kinds import KINDS
from retrieval.sources.options import store_options
from retrieval.sources.sync_runs import attempt_source_run, request_run
from tests.support import fake_connector
from tests.support.serving import QuietHandler


class Remote:
    """The items of a source: texts by name. ``read`` has the names of those whose content was sent.

    ``options`` are for a source that reads it, ``wrong_options`` the same with credentials that it refuses; empty if it
    asks for none.
    """

    kind = ""
    options: dict[str, Any]

    def __init__(self):
        self.read = []
        self.wrong_options = {}

    def put(self, name, text):
        raise NotImplementedError

    def delete(self, name):
        raise NotImplementedError

    def go_away(self):
        """Answer no more."""
        self.close()

    def close(self):
        """Stop what runs."""

    def reads(self):
        """Return the names that were read since the last call."""
        read, self.read = self.read, []
        return sorted(read)


def make_source(collection, kind, options, name="Shelf"):
    source = Source(collection=collection, name=name, kind=kind, interval_minutes=60, found=options.get("found", {}))
    form = KINDS[kind].get_form_class(options, source.found)(data=options)
    assert form.is_valid(), form.errors
    store_options(source, type(form), form.cleaned_data)
    source.save()
    return source


def run_once(source, **options):
    """Return a run of the source, after its first attempt."""
    source.refresh_from_db()
    return attempt_source_run(request_run(source, **options).pk)


def numbers(run):
    return run.added, run.changed, run.unchanged, run.removed, run.failed


def names():
    """Return the sources of all documents."""
    return sorted(Document.objects.values_list("source", flat=True))


class FolderRemote(Remote):
    kind = "folder"

    def __init__(self, path):
        super().__init__()
        self.path = path
        self.path.mkdir(parents=True)
        self.options = {"path": str(path)}
        self._clock = 1_700_000_000

    def put(self, name, text):
        file = self.path / f"{name}.md"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        # Two writes within one tick of the file system's clock would look alike.
        self._clock += 1
        os.utime(file, (self._clock, self._clock))

    def delete(self, name):
        (self.path / f"{name}.md").unlink()

    def go_away(self):
        self.path.rename(self.path.with_name("elsewhere"))


def install_fake_connector(name="shelf"):
    """Register the connector of ``fake_connector`` as an installed one."""
    scripts = Path(settings.DATA_DIR) / "connectors" / name / "bin"
    scripts.mkdir(parents=True, exist_ok=True)
    if not (scripts / "python").exists():
        (scripts / "python").symlink_to(sys.executable)
    (scripts / "source-fake").write_text(Path(fake_connector.__file__).read_text())
    values = {"kind": "package", "package": "airbyte-source-fake", "version": "1.0", "state": "ready"}
    values |= {"program": "source-fake", "spec": fake_connector.SPEC, "is_for_curators": True}
    return RegisteredConnector.objects.update_or_create(name=name, defaults=values)[0]


class ConnectorRemote(Remote):
    """A folder whose JSON files are the records of ``fake_connector``."""

    kind = "connector"

    def __init__(self, path):
        super().__init__()
        install_fake_connector()
        self.path = path
        self.path.mkdir(parents=True)
        fields = [*fake_connector.STREAM["json_schema"]["properties"]]
        self.options = {
            "connector": "shelf",
            "config.folder": str(path),
            "config.token": "right",
            "config.mood": "",
            "config.form": "",
            "config.page": "",
            "streams": ["pages"],
            "found": {
                "streams": [{**each, "fields": fields} for each in (fake_connector.STREAM, fake_connector.OTHER_STREAM)]
            },
        }
        self.choose("pages")
        self.wrong_options = {**self.options, "config.token": "wrong"}

    def choose(self, *streams, **changed):
        """Read these streams, with the same options."""
        mapping = {"key_fields": "id", "title_fields": "title", "text_fields": "body", "text_format": "md"}
        mapping |= {"url_field": "url", "changed_field": "updated_at", "metadata_fields": "author", **changed}
        self.options = {name: value for name, value in self.options.items() if not name.startswith("of.")}
        self.options["streams"] = [*streams]
        self.options |= {f"of.{stream}.{name}": value for stream in streams for name, value in mapping.items()}

    def put(self, name, text, **values):
        record = {"id": name, "title": f"Page {name}", "body": text, **values}
        (self.path / f"{name}.json").write_text(json.dumps(record))

    def delete(self, name):
        (self.path / f"{name}.json").unlink()

    def go_away(self):
        self.path.rename(self.path.with_name("elsewhere"))


class WebServer(Remote):
    """An HTTP server. ``pages`` are bodies by path; subclasses may answer otherwise.

    A request for a path of ``failing`` gets its status.
    """

    def __init__(self):
        super().__init__()
        self.pages = {}
        self.failing = {}
        self.headers = {}
        self.requests = []
        remote = self

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                remote.requests.append(self.path)
                remote.answer(self)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, request):
        path = unquote(urlsplit(request.path).path)
        if status := self.failing.get(path):
            request.send(b"", status)
        elif path not in self.pages:
            request.send(b"There is nothing.", 404)
        else:
            body = self.pages[path].encode()
            tag = f'"{hash(body) & 0xFFFFFFFF:x}"'
            headers = {"ETag": tag, "Content-Type": "text/html; charset=utf-8", **self.headers.get(path, {})}
            if request.headers.get("If-None-Match") == tag:
                request.send(b"", 304, **headers)
            else:
                self.read.append(path)
                request.send(body, int(headers.pop("Status", 200)), **headers)

    def close(self):
        self._server.shutdown()
        self._server.server_close()


class WebsiteRemote(WebServer):
    """A start page that leads to all the others, and is no document itself."""

    kind = "website"

    def __init__(self):
        super().__init__()
        self.options = {"url": self.url, "way": "crawl", "depth": 3, "delay": 0, "exclude": "index"}
        self._link()

    def put(self, name, text):
        self.pages[f"/{name}"] = f"<html><title>{name}</title><body><main><p>{text}</p></main></body></html>"
        self._link()

    def delete(self, name):
        del self.pages[f"/{name}"]
        self._link()

    def reads(self):
        return [path.strip("/") for path in super().reads() if path != "/"]

    def _link(self):
        links = "".join(f'<a href="{path}">{path}</a>' for path in self.pages if path != "/")
        self.pages["/"] = f"<html><body>{links}</body></html>"


@contextmanager
def remote_of(kind, folder):
    """Yield a remote of this kind that runs."""
    from tests.support import source_servers as servers

    remotes = {
        "folder": lambda: FolderRemote(folder / "shelf"),
        "website": WebsiteRemote,
        "git": lambda: servers.GitRemote(folder / "repository"),
        "s3": servers.S3Remote,
        "webdav": lambda: servers.WebDavRemote(folder / "dav"),
        "mailbox": lambda: servers.MailboxRemote(folder / "mail"),
        "feed": servers.FeedRemote,
        "mediawiki": servers.MediaWikiRemote,
        "confluence": servers.ConfluenceRemote,
        "connector": lambda: ConnectorRemote(folder / "records"),
    }
    remote = remotes[kind]()
    try:
        yield remote
    finally:
        remote.close()
