from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import httpx2
from asgiref.sync import async_to_sync
from django.contrib.auth.models import AnonymousUser

from bench.answers.graded import AnswerReply, GradedQuestion
from chat.conversations.history import REMEMBERED_TURNS
from chat.streaming.payloads import find_completed_question
from chat.types import CompletedEvent
from evaluation.exceptions import EvaluationError
from evaluation.runs.measurement import measure_reply
from retrieval.rights.search_filters import build_filters
from retrieval.types import Turn

LONGEST_SECONDS = 300.0
PAUSE_SECONDS = 5.0
# A reader is assumed to read this many characters of each passage that is shown with an answer.
READ_CHARACTERS = 900


class InProcessAsker:
    def __init__(self) -> None:
        self._turns: dict[str, tuple[Turn, ...]] = {}

    def __call__(self, question: GradedQuestion) -> AnswerReply:
        """Return the reply of the site's code, which runs in this process without a web server.

        Raises: InvalidQuery for a collection that is missing or closed to visitors.
        """
        history = self._turns.get(question.after, ())[-REMEMBERED_TURNS:]
        filters = build_filters(AnonymousUser(), question.collection)
        reply = async_to_sync(measure_reply)(question.text, filters, history=history)
        end, seconds = reply.end, reply.last_ms / 1000
        if not isinstance(end, CompletedEvent):
            return AnswerReply(seconds=seconds, error=end.message if end is not None else "The answer broke off.")
        passages = [citation.passage for citation in end.citations]
        said = Turn(
            question.text,
            "" if end.refused else end.text,
            tuple({passage.document_id for passage in passages}),
            tuple({passage.collection for passage in passages}),
        )
        self._turns[question.id] = (*history, said)
        return AnswerReply(
            text=end.text,
            refused=end.refused,
            beside=tuple(text[:READ_CHARACTERS] for text in reply.other_texts_on_answer_page),
            cited=tuple(sorted({citation.passage.document_title for citation in end.citations})),
            completed_question=find_completed_question(reply.searched.trace) if reply.searched is not None else "",
            seconds=seconds,
        )


def _join_cells(table: Mapping[str, Any] | None) -> str:
    return "\n".join(" ".join(map(str, row)) for row in table["rows"]) if table else ""


class SiteAsker:
    def __init__(self, address: str, token: str = "") -> None:
        self._address = f"{address.rstrip('/')}/api/v1/ask/"
        self._headers = {"Authorization": f"Token {token}"} if token else {}
        self._conversations: dict[str, str] = {}

    def __call__(self, question: GradedQuestion) -> AnswerReply:
        """Return the reply of a running site. Raises: EvaluationError if no site answers at the address."""
        body: dict[str, object] = {"question": question.text, "anew": True}
        if conversation := self._conversations.get(question.after):
            body["conversation"] = conversation
        elif question.collection:
            body["collection"] = question.collection
        started = time.perf_counter()
        try:
            response = self._post(body)
            while response.status_code == httpx2.codes.TOO_MANY_REQUESTS:
                wait = response.headers.get("Retry-After", "")
                time.sleep(float(wait) if wait.isdigit() else PAUSE_SECONDS)
                started = time.perf_counter()
                response = self._post(body)
            seconds = time.perf_counter() - started
            if response.status_code != httpx2.codes.OK:
                return AnswerReply(seconds=seconds, error=f"{response.status_code} {response.text[:500]}")
            answer = response.json()
        except httpx2.ConnectError as error:
            raise EvaluationError(f"No site answers at {self._address}: {error}") from error
        except (httpx2.HTTPError, json.JSONDecodeError) as error:
            return AnswerReply(seconds=time.perf_counter() - started, error=f"{type(error).__name__}: {error}")
        self._conversations[question.id] = answer["conversation"]
        return AnswerReply(
            text=answer["answer"],
            refused=answer["refused"],
            beside=(
                *(each["text"][:READ_CHARACTERS] for each in answer["alternatives"]),
                _join_cells(answer.get("table")),
            ),
            cited=tuple(sorted({citation["document"]["title"] for citation in answer["citations"]})),
            completed_question=answer["completed_question"],
            seconds=seconds,
        )

    def _post(self, body: dict[str, object]) -> httpx2.Response:
        return httpx2.post(self._address, json=body, headers=self._headers, timeout=LONGEST_SECONDS, trust_env=False)
