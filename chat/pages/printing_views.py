from __future__ import annotations

import uuid
from collections.abc import Sequence

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from chat.conversations import sharing
from chat.conversations.rights import get_withheld_message
from chat.pages.access import admit_visitors, get_own_conversation
from chat.pages.answer_files import build_file_name, write_markdown
from chat.pages.page_views import load_own_turns
from chat.pages.printed_answers import build_printed_answers
from chat.pages.sharing_views import load_shared_turns
from chat.pages.turns import ShownTurn


@require_safe
@admit_visitors
def print_own_conversation(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    return _render_printed_page(
        request, *_load_own_conversation(request, conversation_id), reverse("chat:conversation", args=[conversation_id])
    )


@require_safe
@admit_visitors
def save_own_conversation(request: HttpRequest, conversation_id: uuid.UUID) -> HttpResponse:
    return _build_markdown_download(request, *_load_own_conversation(request, conversation_id), get_withheld_message())


@require_safe
@admit_visitors
def print_shared(request: HttpRequest, token: uuid.UUID) -> HttpResponse:
    response = _render_printed_page(
        request, *_load_shared_turns_or_404(request, token), reverse("chat:shared", args=[token])
    )
    response["X-Robots-Tag"] = "noindex, nofollow"
    return response


@require_safe
@admit_visitors
def save_shared_conversation(request: HttpRequest, token: uuid.UUID) -> HttpResponse:
    turns, heading = _load_shared_turns_or_404(request, token)
    response = _build_markdown_download(
        request, turns, heading, _("This answer quotes documents that you may not read.")
    )
    response["X-Robots-Tag"] = "noindex, nofollow"
    return response


def _load_own_conversation(request: HttpRequest, conversation_id: uuid.UUID) -> tuple[list[ShownTurn], str]:
    conversation = get_own_conversation(request, conversation_id)
    return load_own_turns(conversation, request.user), str(conversation)


def _load_shared_turns_or_404(request: HttpRequest, token: uuid.UUID) -> tuple[list[ShownTurn], str]:
    conversation = sharing.find_shared_conversation(token, request.user)
    if conversation is None:
        raise Http404
    return load_shared_turns(conversation, token, request.user)


def _select_turns_to_print(
    request: HttpRequest, turns: Sequence[ShownTurn], heading: str
) -> tuple[list[ShownTurn], str]:
    wanted = request.GET.get("answer", "")
    if not wanted:
        return list(turns), heading
    chosen = [turn for turn in turns if str(turn.id) == wanted]
    if not chosen:
        raise Http404
    return chosen, chosen[0].answer.question


def _render_printed_page(request: HttpRequest, turns: Sequence[ShownTurn], heading: str, back: str) -> HttpResponse:
    chosen, heading = _select_turns_to_print(request, turns, heading)
    context = {
        "heading": heading,
        "printed": build_printed_answers(chosen, request.user, request.build_absolute_uri),
        "site": request.build_absolute_uri("/"),
        "back": f"{back}#answer-{chosen[0].id}" if request.GET.get("answer") else back,
        "query": f"?answer={chosen[0].id}" if request.GET.get("answer") else "",
        "number": len(turns),
        "is_alone": len(chosen) == 1,
        "is_shared": request.resolver_match is not None and request.resolver_match.url_name == "print_shared",
    }
    return render(request, "chat/printed.html", context)


def _build_markdown_download(
    request: HttpRequest, turns: Sequence[ShownTurn], heading: str, withheld: str
) -> HttpResponse:
    chosen, heading = _select_turns_to_print(request, turns, heading)
    printed = build_printed_answers(chosen, request.user, request.build_absolute_uri)
    text = write_markdown(printed, request.build_absolute_uri("/"), withheld)
    disposition = content_disposition_header(True, build_file_name(heading)) or ""
    return HttpResponse(text, content_type="text/markdown; charset=utf-8", headers={"Content-Disposition": disposition})
