"""Real servers of the protocols that sources speak, and wikis that answer in their documented form."""

import json
import subprocess
import sys
import threading
from email.message import EmailMessage
from functools import cache
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from wsgiref.simple_server import WSGIRequestHandler, make_server

from tests.support.sources import FolderRemote, Remote, WebServer


class _QuietHandler(WSGIRequestHandler):
    # Else it does not answer `Expect: 100-continue`, and botocore waits a second for it.
    protocol_version = "HTTP/1.1"

    def log_message(self, *_arguments):
        pass


class _WsgiRemote(Remote):
    """A WSGI application on loopback."""

    def _serve(self, application, read):
        """Serve the application; return its address.

        ``read`` says by method and path whether a request reads content.
        """

        def counting(environment, respond):
            if read(environment["REQUEST_METHOD"], environment["PATH_INFO"]):
                self.read.append(environment["PATH_INFO"])
            return application(environment, respond)

        self._server = make_server("127.0.0.1", 0, counting, handler_class=_QuietHandler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self):
        self._server.shutdown()
        self._server.server_close()


class WebDavRemote(_WsgiRemote, FolderRemote):
    """wsgidav, whose users have to sign in."""

    kind = "webdav"

    def __init__(self, folder):
        from wsgidav.wsgidav_app import WsgiDAVApp

        super().__init__(folder / "guides")
        users = {"*": {"ann": {"password": "right"}}}
        application = WsgiDAVApp(
            {
                "provider_mapping": {"/": str(folder)},
                "simple_dc": {"user_mapping": users},
                "http_authenticator": {"accept_basic": True, "accept_digest": False, "default_to_digest": False},
                "verbose": 0,
                "logging": {"enable": False},
            }
        )
        url = self._serve(application, lambda method, _path: method == "GET")
        self.options = {"url": f"{url}/", "username": "ann", "password": "right"}
        self.wrong_options = {**self.options, "password": "wrong"}

    def go_away(self):
        self.close()


@cache
def _botocore():
    """Return one shared session: each new one parses its services' descriptions, for a second of processor time."""
    import botocore.session

    return botocore.session.get_session()


class S3Remote(_WsgiRemote):
    """moto's server, which checks signatures and permissions once its user and the bucket are there."""

    kind = "s3"

    def __init__(self):
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

        super().__init__()
        application = DomainDispatcherApplication(create_backend_app)
        self._url = self._serve(application, lambda method, path: method == "GET" and path.endswith(".md"))
        self._key = {"AccessKeyId": "anybody", "SecretAccessKey": "anything"}
        self._client("s3").create_bucket(Bucket="shelf")
        iam = self._client("iam")
        iam.create_user(UserName="ann")
        allowed = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
        iam.put_user_policy(UserName="ann", PolicyName="all", PolicyDocument=policy)
        self._key = iam.create_access_key(UserName="ann")["AccessKey"]
        self._s3 = self._client("s3")
        self._ask_for_signatures(0)
        self.options = {
            "endpoint": self._url,
            "region": "us-east-1",
            "bucket": "shelf",
            "key_prefix": "guides/",
            "access_key": self._key["AccessKeyId"],
            "secret_key": self._key["SecretAccessKey"],
        }
        self.wrong_options = {**self.options, "secret_key": "wrong"}

    def _client(self, service):
        return _botocore().create_client(
            service,
            "us-east-1",
            endpoint_url=self._url,
            aws_access_key_id=self._key["AccessKeyId"],
            aws_secret_access_key=self._key["SecretAccessKey"],
        )

    def _ask_for_signatures(self, after):
        from moto import settings
        from moto.core.responses import ActionAuthenticatorMixin

        settings.INITIAL_NO_AUTH_ACTION_COUNT = after
        ActionAuthenticatorMixin.request_count = 0

    def put(self, name, text):
        self._s3.put_object(Bucket="shelf", Key=f"guides/{name}.md", Body=text.encode())

    def delete(self, name):
        self._s3.delete_object(Bucket="shelf", Key=f"guides/{name}.md")

    def close(self):
        from moto.backends import get_backend

        super().close()
        self._ask_for_signatures(float("inf"))
        get_backend("s3").reset()
        get_backend("iam").reset()


class GitRemote(_WsgiRemote):
    """dulwich's server, on a repository that is committed to."""

    kind = "git"

    def __init__(self, folder):
        from dulwich.repo import Repo
        from dulwich.server import DictBackend
        from dulwich.web import make_wsgi_chain

        super().__init__()
        folder.mkdir()
        self.repository = Repo.init(str(folder))
        self.folder = folder
        application = make_wsgi_chain(DictBackend({"/": self.repository}))
        self.options = {"repository": self._serve(application, lambda method, _path: method == "POST")}

    def put(self, name, text):
        (self.folder / f"{name}.md").write_text(text)
        self._commit(f"{name}.md")

    def delete(self, name):
        (self.folder / f"{name}.md").unlink()
        self._commit(f"{name}.md")

    def _commit(self, name):
        from dulwich import porcelain

        porcelain.add(str(self.folder), paths=[str(self.folder / name)])
        author = b"Ann <ann@example.org>"
        porcelain.commit(str(self.folder), message=b"A change.", author=author, committer=author, sign=False)


class FeedRemote(WebServer):
    """An Atom feed with the whole text of its entries."""

    kind = "feed"

    def __init__(self):
        super().__init__()
        self.entries = {}
        self.options = {"url": f"{self.url}/feed", "content": "page"}

    def put(self, name, text):
        self.entries[name] = text
        self.pages[f"/{name}"] = f"<html><p>{text}</p></html>"
        self._write()

    def delete(self, name):
        del self.entries[name]
        self._write()

    def reads(self):
        return [path for path in super().reads() if path != "/feed"]

    def _write(self):
        entries = "".join(
            f'<entry><id>urn:{name}</id><title>{name}</title><link href="{self.url}/{name}"/><summary>{text}</summary>'
            "<updated>2026-01-01T00:00:00Z</updated></entry>"
            for name, text in self.entries.items()
        )
        self.pages["/feed"] = f'<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title>{entries}</feed>'
        self.headers["/feed"] = {"Content-Type": "application/atom+xml"}


class _WikiRemote(WebServer):
    """Pages with a number and a revision, requested by parameters, a few at a time."""

    def __init__(self):
        super().__init__()
        self.revisions = {}
        self._last = 100

    def put(self, name, text):
        self._last += 1
        number = self.revisions[name][0] if name in self.revisions else self._last
        self.revisions[name] = (number, self._last, f"<p>{text}</p>")

    def delete(self, name):
        del self.revisions[name]

    def page(self, number):
        """Name and text of the page, which is read with this."""
        for name, (own, _revision, text) in self.revisions.items():
            if str(own) == number:
                self.read.append(name)
                return name, text
        return None

    def answer(self, request):
        query = {name: values[0] for name, values in parse_qs(urlsplit(request.path).query).items()}
        status, said = self.say(query, request)
        request.send(json.dumps(said).encode(), status, Content_Type="application/json")

    def say(self, query, request):
        raise NotImplementedError


class MediaWikiRemote(_WikiRemote):
    kind = "mediawiki"

    def __init__(self):
        super().__init__()
        self.options = {"url": f"{self.url}/api.php", "namespace": 0}

    def say(self, query, request):
        if query["action"] == "parse":
            found = self.page(query["pageid"])
            if found is None:
                return 200, {"error": {"code": "nosuchpageid", "info": "There is no such page."}}
            return 200, {"parse": {"title": found[0], "pageid": int(query["pageid"]), "text": found[1]}}
        assert (query["generator"], query["formatversion"]) == ("allpages", "2")
        names = sorted(self.revisions)
        names = names[names.index(query["gapcontinue"]) :] if "gapcontinue" in query else names
        pages = [
            {"pageid": self.revisions[name][0], "title": name, "lastrevid": self.revisions[name][1],
             "fullurl": f"{self.url}/wiki/{name}"}
            for name in names[:4]
        ]  # fmt: skip
        more = {"continue": {"gapcontinue": names[4], "continue": "gapcontinue||"}} if len(names) > 4 else {}
        return 200, {"batchcomplete": True, "query": {"pages": pages}, **more}


class ConfluenceRemote(_WikiRemote):
    kind = "confluence"

    def __init__(self):
        super().__init__()
        self.options = {"url": f"{self.url}/wiki", "space": "DOC", "password": "token"}
        self.wrong_options = {**self.options, "password": "wrong"}

    def say(self, query, request):
        if request.headers.get("Authorization") != "Bearer token":
            return 401, {"statusCode": 401}
        if query["cql"].startswith("id="):
            found = self.page(query["cql"].removeprefix("id="))
            body = {"body": {"export_view": {"value": found[1]}}} if found else {}
            return 200, {"results": [{"title": found[0], **body}] if found else []}
        start = int(query.get("start", 0))
        names = sorted(self.revisions)
        results = [
            {"id": str(self.revisions[name][0]), "type": "page", "title": name,
             "version": {"number": self.revisions[name][1]}, "_links": {"webui": f"/spaces/DOC/pages/{name}"}}
            for name in names[start : start + 4]
        ]  # fmt: skip
        following = f"/rest/api/content/search?cql=space%3D%22DOC%22&start={start + 4}&expand=version"
        return 200, {"results": results, "_links": ({"next": following} if len(names) > start + 4 else {})}


class MailboxRemote(Remote):
    """Twisted's IMAP server, in a process of its own. A message never changes: what is put again is another one."""

    kind = "mailbox"

    def __init__(self, folder):
        super().__init__()
        folder.mkdir()
        self.folder = folder
        self._last = 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.imap_server", str(folder)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        self.options = {
            "host": "127.0.0.1",
            "port": int(self._process.stdout.readline()),
            "security": "none",
            "folder": "INBOX",
            "username": "ann",
            "password": "right",
        }
        self.wrong_options = {**self.options, "password": "wrong"}

    def put(self, name, text):
        message = EmailMessage()
        message["Subject"], message["From"], message["To"] = name, "ann@example.org", "bob@example.org"
        message.set_content(text)
        self._last += 1
        (self.folder / f"{self._last}-{name}.eml").write_bytes(message.as_bytes())

    def delete(self, name):
        for file in self.folder.glob(f"*-{name}.eml"):
            file.unlink()

    def close(self):
        self._process.kill()
        self._process.wait()
