from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.db import DatabaseError, transaction
from django.db.models.functions import Now
from django.utils import translation
from django.utils.translation import gettext as _
from rest_framework.exceptions import APIException

from chat.api.endpoints import wait_for_answer
from chat.budgets import QuestionThrottle
from chat.exceptions import BudgetSpent, InvalidQuestion, TemporarilyUnanswerable
from chat.models import Answer
from chat.pages.plain_text import convert_to_plain_text
from chat.streaming import asking
from core.api.problems import SiteUnavailable
from core.database import release_connections
from core.exceptions import DiskFull, LeaseLost
from core.jobs import acquire_lease, compute_retry_pause, heartbeat
from core.user_types import AnyUser
from ragsite.accounts.claims import has_stale_sign_in
from ragsite.models import SlackQuestion
from ragsite.models.account import find_users_by_email
from ragsite.slack.messages import Block, build_message, escape_for_slack
from ragsite.slack.receiving import RECEIVED, build_slack_client

if TYPE_CHECKING:
    from slack_sdk.web import SlackResponse

logger = logging.getLogger(__name__)

AT_ONCE = 4
POLL_SECONDS = 1.0
NOTIFICATION_CHARACTERS = 200
_METADATA = "ragsite_question"


@dataclass(frozen=True, slots=True)
class Asker:
    """A person who asks in Slack: the account whose rights apply, the collection to search, and the language.

    ``caller`` is the account or person whose limit of questions applies.
    """

    user: AnyUser
    collection: str
    caller: str
    language: str
    note: str = ""


class NotAnswered(Exception):
    """An error: the question cannot be answered. The asker reads the message."""


class _CallerThrottle(QuestionThrottle):
    def get_cache_key(self, request: Any, view: Any) -> str:
        """Return the caller's cache key. ``request`` is the caller, because a Slack message has no HTTP request."""
        return str(self.cache_format % {"scope": self.scope, "ident": request})


def is_member(person: Mapping[str, Any], team: str) -> bool:
    """Return whether the sender is a person (no bot) and an active member of the site's own Slack workspace."""
    others = ("is_bot", "is_app_user", "is_stranger", "deleted")
    return person.get("team_id") == team and not any(person.get(name) for name in others)


def find_account(person: Mapping[str, Any], team: str) -> User | None:
    """Return the active account with the confirmed e-mail address of a Slack member; None if there is none."""
    address = str((person.get("profile") or {}).get("email") or "")
    if not is_member(person, team) or not address or person.get("is_email_confirmed") is not True:
        return None
    accounts: list[User] = [user for user in find_users_by_email(address) if user.is_active]
    if len(accounts) != 1 or has_stale_sign_in(accounts[0]):
        return None
    unconfirmed = EmailAddress.objects.filter(user=accounts[0], email__iexact=address, verified=False)
    return None if unconfirmed.exists() else accounts[0]


class Replies:
    def __init__(self) -> None:
        self._client = build_slack_client(settings.SLACK_BOT_TOKEN)
        self._team = str(self._client.auth_test()["team_id"])

    def run(self) -> None:
        busy: set[Future[None]] = set()
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="slack") as pool:
            while True:
                busy = {each for each in busy if not each.done()}
                try:
                    for question in lease_waiting_questions(AT_ONCE - len(busy)):
                        busy.add(pool.submit(self.answer, question))
                except DatabaseError:
                    logger.exception("The questions from Slack could not be read.")
                release_connections()
                RECEIVED.wait(POLL_SECONDS)
                RECEIVED.clear()

    def answer(self, question: SlackQuestion) -> None:
        """Answer a question that this process has leased (reserved).

        After the last failure, the asker gets a message.
        """
        try:
            with heartbeat(question):
                self._answer_question(question)
        except LeaseLost as error:
            logger.info("%s", error)
        except Exception as error:
            logger.exception("%s was not answered.", question.job_name)
            self._retry_or_fail_question(question, error)
        finally:
            release_connections()

    def _answer_question(self, question: SlackQuestion) -> None:
        asker = self._find_asker(question)
        with translation.override(asker.language):
            self._announce_search(question)
            try:
                if question.attempts > question.MOST_ATTEMPTS:
                    raise SiteUnavailable(_("The site was interrupted several times: please ask again."))
                answer = self._ask(question, asker)
                blocks, said = (
                    build_message(answer, asker.note),
                    convert_to_plain_text(answer.text)[:NOTIFICATION_CHARACTERS],
                )
                status = question.Status.ANSWERED
            except (NotAnswered, InvalidQuestion, TemporarilyUnanswerable, DiskFull, APIException) as error:
                blocks, said = [], str(error.detail if isinstance(error, APIException) else error)
                is_refused = isinstance(error, (NotAnswered, InvalidQuestion, TemporarilyUnanswerable))
                status = question.Status.REFUSED if is_refused else question.Status.FAILED
            self._update_reply(question, said, blocks)
        question.write_under_lease(lease=None, status=status, text="")
        logger.info("%s: %s.", question.job_name, status)

    def _find_asker(self, question: SlackQuestion) -> Asker:
        person = self._load_person(question.person)
        language = str(person.get("locale") or "").partition("-")[0]
        language = language if language in dict(settings.LANGUAGES) else settings.LANGUAGE_CODE
        account = find_account(person, self._team)
        caller = str(account.pk) if account else f"slack-{question.person}"
        collection, _sign, name = settings.SLACK_CHANNELS.get(
            "*" if question.is_direct else question.channel, settings.SLACK_CHANNELS.get("*", "")
        ).partition("@")
        user: AnyUser = AnonymousUser()
        with translation.override(language):
            if question.is_direct:
                user = account or user
                note = "" if account else _("Your address in Slack has no account here: only public documents count.")
            elif name:
                # All members of a channel read the answer, so the channel's account decides and not the asker's.
                user = self._find_channel_account(name) if is_member(person, self._team) else user
                note = _("Answered from documents that this channel may read.")
            else:
                note = _("Answered from public documents: ask in a direct message for what you alone may read.")
        return Asker(user, collection, caller, language, note)

    def _load_person(self, person: str) -> dict[str, Any]:
        from slack_sdk.errors import SlackApiError

        try:
            found: dict[str, Any] = self._client.users_info(user=person, include_locale=True)["user"]
        except SlackApiError as error:
            if error.response["error"] not in ("user_not_found", "user_not_visible"):
                raise
            return {}
        return found

    def _find_channel_account(self, name: str) -> AnyUser:
        account = User.objects.filter(username=name, is_active=True, is_staff=False, is_superuser=False).first()
        if account is None:
            logger.error("SLACK_CHANNELS names %s, which is no active account, or one of staff.", name)
        return account or AnonymousUser()

    def _announce_search(self, question: SlackQuestion) -> None:
        """Post a message that the site is searching, or reuse the last attempt's message."""
        if question.reply:
            return
        reply = self._find_reply(question) if question.attempts > 1 else ""
        if not reply:
            posted = self._client.chat_postMessage(
                channel=question.channel,
                thread_ts=question.thread,
                text=_("Searching the documents…"),
                metadata={"event_type": _METADATA, "event_payload": {"message": question.message}},
            )
            reply = str(posted["ts"])
        question.reply = reply
        question.write_under_lease(reply=reply)

    def _find_reply(self, question: SlackQuestion) -> str:
        found: SlackResponse = self._client.conversations_replies(
            channel=question.channel,
            ts=question.thread,
            oldest=question.message.rpartition(":")[2],
            include_all_metadata=True,
            limit=200,
        )
        for message in found["messages"]:
            metadata = message.get("metadata") or {}
            named = (metadata.get("event_payload") or {}).get("message")
            if metadata.get("event_type") == _METADATA and named == question.message:
                return str(message["ts"])
        return ""

    def _ask(self, question: SlackQuestion, asker: Asker) -> Answer:
        if settings.CHAT_REQUIRES_LOGIN and not asker.user.is_authenticated:
            raise NotAnswered(
                _("Your address in Slack has no account on this site, which answers only people who have one.")
                if question.is_direct
                else _("This site answers only people who have an account: ask me in a direct message.")
            )
        if question.answer is None:
            throttle = _CallerThrottle()
            if not throttle.allow_request(asker.caller, None):
                wait = round(throttle.wait() or 1)
                message = _("Too many questions at once. Please try again in %(seconds)d seconds.")
                raise BudgetSpent(message % {"seconds": wait}, wait)
            with transaction.atomic():
                # One transaction stores the answer and its link to the question, so a killed process leaves both or
                # neither.
                question.lock()
                question.answer = self._create_answer(question, asker)
                question.write_under_lease(answer=question.answer, text="")
        return wait_for_answer(question.answer, asker.user)

    def _create_answer(self, question: SlackQuestion, asker: Asker) -> Answer:
        owner = asker.user if asker.user.is_authenticated else None
        of_thread = SlackQuestion.objects.filter(channel=question.channel, thread=question.thread)
        earlier = of_thread.filter(answer__isnull=False, answer__conversation__owner=owner).order_by("-pk").first()
        return asking.create_answer(
            question.text,
            user=asker.user,
            # Session keys of browsers are hexadecimal, so none is equal to this one.
            visitor=f"slack:{question.channel}:{question.thread}",
            caller=asker.caller,
            conversation_id=earlier.answer.conversation_id if earlier and earlier.answer else None,
            collection=asker.collection,
        )

    def _update_reply(self, question: SlackQuestion, said: str, blocks: Sequence[Block]) -> None:
        self._client.chat_update(
            channel=question.channel, ts=question.reply, text=escape_for_slack(said), blocks=list(blocks), parse="none"
        )

    def _retry_or_fail_question(self, question: SlackQuestion, error: Exception) -> None:
        try:
            if question.attempts < question.MOST_ATTEMPTS:
                question.write_under_lease(lease=None, retry_at=Now() + compute_retry_pause(question.attempts))
                return
            question.write_under_lease(lease=None, status=question.Status.FAILED, text="")
            if question.reply:
                self._update_reply(question, _("The site could not answer: please ask again."), [])
        except Exception:
            logger.exception("%s: the failure could not be shown either.", question.job_name)


def lease_waiting_questions(most: int) -> list[SlackQuestion]:
    """Lease (reserve) at most ``most`` waiting questions, and return them, oldest first."""
    rows = SlackQuestion.objects.filter(status=SlackQuestion.Status.WAITING).select_related("answer__conversation")
    waiting = SlackQuestion.select_waiting_questions().values_list("pk", flat=True)[: max(0, most)]
    taken = (acquire_lease(rows, pk) for pk in waiting)
    return [question for question in taken if question is not None]
