"""A Slack workspace on this machine: its Web API, and Socket Mode, which delivers events by a websocket."""

import asyncio
import hashlib
import hmac
import json
import threading
import time
from contextlib import contextmanager
from urllib.parse import parse_qsl

from aiohttp import WSMsgType, web

TEAM, BOT, SECRET = "T0HOME", "U0BOT", "signing-secret"


def person(identifier, email="", **others):
    """Return a member as users.info describes one."""
    profile = {"email": email} if email else {}
    return {
        "id": identifier,
        "team_id": TEAM,
        "is_email_confirmed": True,
        "profile": profile,
        "locale": "en-US",
    } | others


class Workspace:
    """What is posted, by channel and time; and every call, in order."""

    def __init__(self):
        self.people, self.messages, self.calls = {}, {}, []
        # Errors of the next calls, by method.
        self.failures = {}
        # A method whose next call takes effect, and is never answered.
        self.hung = ""
        self.acknowledged = []
        self._socket = None
        self._loop = asyncio.new_event_loop()
        self._is_closing = asyncio.Event()
        self._posted = 0

    def add(self, *arguments, **others):
        found = person(*arguments, **others)
        self.people[found["id"]] = found

    def replies(self, thread):
        return [each for each in self.messages.values() if each.get("thread_ts") == thread]

    def text_of(self, thread):
        """Return all words of the only reply in the thread."""
        (reply,) = self.replies(thread)
        blocks = reply.get("blocks") or []
        words = [block["text"]["text"] for block in blocks if block["type"] == "section"]
        words += [element["text"] for block in blocks if block["type"] == "context" for element in block["elements"]]
        return "\n".join(words) or reply["text"]

    async def call(self, request):
        method = request.match_info["method"]
        body = await request.text()
        is_json = request.content_type == "application/json"
        given = json.loads(body) if is_json else dict(parse_qsl(body)) | dict(request.query)
        given = {name: _decode(value) for name, value in given.items()}
        self.calls.append((method, given))
        if failures := self.failures.get(method):
            return web.json_response({"ok": False, "error": failures.pop(0)})
        done = getattr(self, f"_{method.replace('.', '_')}")(given)
        if method == self.hung:
            self.hung = ""
            await self._is_closing.wait()
        return web.json_response({"ok": True, **done})

    def _auth_test(self, _given):
        return {"team_id": TEAM, "user_id": BOT, "bot_id": "B0BOT"}

    def _apps_connections_open(self, _given):
        return {"url": f"ws://127.0.0.1:{self.port}/socket"}

    def _users_info(self, given):
        return {"user": self.people[given["user"]]}

    def _chat_postMessage(self, given):
        self._posted += 1
        given["ts"] = f"{1900000000 + self._posted}.000001"
        self.messages[given["channel"], given["ts"]] = given
        return {"ts": given["ts"], "channel": given["channel"]}

    def _chat_update(self, given):
        self.messages[given["channel"], given["ts"]].update(given)
        return {"ts": given["ts"]}

    def _chat_postEphemeral(self, _given):
        return {}

    def _conversations_replies(self, given):
        return {"messages": [each for each in self.replies(given["ts"]) if each["channel"] == given["channel"]]}

    async def _open_socket(self, request):
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self._socket = socket
        await socket.send_json({"type": "hello"})
        async for message in socket:
            if message.type == WSMsgType.TEXT:
                self.acknowledged.append(json.loads(message.data)["envelope_id"])
        return socket

    @property
    def is_connected(self):
        return self._socket is not None and not self._socket.closed

    def push(self, payload, envelope="E1", kind="events_api"):
        """Deliver by Socket Mode."""
        sent = self._socket.send_json({"type": kind, "envelope_id": envelope, "payload": payload})
        asyncio.run_coroutine_threadsafe(sent, self._loop).result(5)

    async def _start(self):
        application = web.Application()
        application.router.add_route("*", "/api/{method}", self.call)
        application.router.add_get("/socket", self._open_socket)
        self._runner = web.AppRunner(application)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self.port}/api/"

    @contextmanager
    def running(self):
        thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        try:
            yield self
        finally:
            if self.is_connected:
                asyncio.run_coroutine_threadsafe(self._socket.close(), self._loop).result(10)
            self._loop.call_soon_threadsafe(self._is_closing.set)
            asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(70)
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()


def _decode(value):
    if isinstance(value, str) and value[:1] in ("[", "{"):
        return json.loads(value)
    return value


def event_of(kind, person, text, ts, channel, **others):
    """Return the event of a message, as Slack delivers it."""
    event = {"type": kind, "user": person, "text": text, "ts": ts, "channel": channel} | others
    return {"type": "event_callback", "team_id": TEAM, "event_id": f"Ev{ts}", "event": event}


def mention(person, text, ts="1800000001.000100", channel="C0OPEN", **others):
    return event_of("app_mention", person, f"<@{BOT}> {text}", ts, channel, **others)


def direct(person, text, ts="1800000001.000100", channel="D0ANN", **others):
    return event_of("message", person, text, ts, channel, channel_type="im", **others)


def sign(body, secret=SECRET, at=None):
    """Return the headers with which Slack signs."""
    at = str(int(time.time() if at is None else at))
    signature = hmac.new(secret.encode(), f"v0:{at}:{body}".encode(), hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": at, "X-Slack-Signature": f"v0={signature}"}
