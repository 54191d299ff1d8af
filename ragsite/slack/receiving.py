"""Receive messages and clicks from Slack. A message is stored before it is acknowledged."""

from __future__ import annotations

import html
import re
import threading
import uuid
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from chat.models import Feedback
from core.database import release_connections
from ragsite.models import SlackQuestion

if TYPE_CHECKING:
    from slack_bolt import App
    from slack_sdk import WebClient

RECEIVED = threading.Event()
# Messages with another subtype are edits, deletions or joins, or come from programs.
_ASKING_SUBTYPES = (None, "file_share", "thread_broadcast")
_MENTION = re.compile(r"<@[^<>]{1,100}>")
_ENTITY = re.compile(r"<([^<>|]{1,2000})(?:\|([^<>]{0,2000}))?>")


def build_slack_client(token: str | None = None) -> WebClient:
    from slack_sdk import WebClient
    from slack_sdk.http_retry.builtin_handlers import RateLimitErrorRetryHandler

    client = WebClient(token=token, base_url=settings.SLACK_API_URL, timeout=10)
    client.retry_handlers.append(RateLimitErrorRetryHandler(max_retry_count=2))
    return client


def get_app() -> App:
    return _build_app(settings.SLACK_BOT_TOKEN, settings.SLACK_SIGNING_SECRET, settings.SLACK_API_URL)


@cache
def _build_app(token: str, secret: str, _url: str) -> App:
    from slack_bolt import App
    from slack_bolt.authorization import AuthorizeResult

    def authorize(enterprise_id: str | None, team_id: str | None) -> AuthorizeResult:
        # Without this function, Bolt would ask Slack, and drop the message if Slack does not respond.
        return AuthorizeResult(enterprise_id=enterprise_id, team_id=team_id, bot_token=token)

    app = App(
        client=build_slack_client(),
        signing_secret=secret,
        authorize=authorize,
        # Bolt acknowledges a message after it is stored; otherwise Slack sends it again.
        process_before_response=True,
    )
    for name in ("app_mention", "message"):
        app.event(name)(receive_event)
    for name in ("helpful", "not_helpful"):
        app.action(name)(rate_answer)
    return app


@csrf_exempt
@require_POST
def receive_slack_events(request: HttpRequest) -> HttpResponse:
    if not (settings.SLACK_BOT_TOKEN and settings.SLACK_SIGNING_SECRET):
        raise Http404
    from slack_bolt.adapter.django.handler import to_bolt_request, to_django_response

    response: HttpResponse = to_django_response(get_app().dispatch(to_bolt_request(request)))
    return response


def receive_event(event: Mapping[str, Any]) -> None:
    """Store the question in a message from Slack. A message that Slack sends again changes nothing."""
    channel, sent_at = str(event.get("channel", "")), str(event.get("ts", ""))
    is_direct = event.get("channel_type") == "im" and channel.startswith("D")
    is_for_us = is_direct or event["type"] == "app_mention"
    is_program = event.get("bot_id") or event.get("app_id") or not event.get("user")
    if not is_for_us or is_program or event.get("subtype") not in _ASKING_SUBTYPES:
        return
    question = SlackQuestion(
        message=f"{channel}:{sent_at}",
        channel=channel,
        thread=event.get("thread_ts") or sent_at,
        person=event["user"],
        is_direct=is_direct,
        text=convert_mrkdwn_to_text(event.get("text") or ""),
    )
    try:
        SlackQuestion.objects.bulk_create([question], ignore_conflicts=True)
    finally:
        release_connections()
    RECEIVED.set()


def convert_mrkdwn_to_text(text: str) -> str:
    text = _ENTITY.sub(lambda found: found[2] or found[1], _MENTION.sub(" ", text))
    return html.unescape(text).replace("\x00", "").strip()


def rate_answer(ack: Callable[[], None], body: Mapping[str, Any], client: WebClient) -> None:
    action, person = body["actions"][0], body["user"]["id"]
    try:
        said = _keep_rating(action["value"], person, is_helpful=action["action_id"] == "helpful")
    finally:
        release_connections()
    ack()
    message = body["container"]
    thread = message.get("thread_ts") or message["message_ts"]
    client.chat_postEphemeral(channel=message["channel_id"], user=person, thread_ts=thread, text=said)


def _keep_rating(answer_id: str, person: str, *, is_helpful: bool) -> str:
    try:
        asked = SlackQuestion.objects.select_related("answer").filter(answer=uuid.UUID(answer_id)).first()
    except ValueError:
        asked = None
    if asked is None or asked.answer is None:
        return _("This answer no longer exists.")
    if asked.person != person:
        return _("Only the person who asked can rate this answer.")
    Feedback.objects.update_or_create(answer=asked.answer, defaults={"helpful": is_helpful})
    return _("Thank you, your opinion is saved.")
