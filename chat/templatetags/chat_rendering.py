from __future__ import annotations

import re
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from chat.answering.checking.addresses import find_addresses
from chat.answering.checking.words import find_stems, find_stems_of_word
from chat.models import Conversation
from chat.pages.cards import ResultCard
from chat.pages.rendering import render_answer
from chat.pages.turns import ShownTurn

register = template.Library()

_WORD = re.compile(r"(\w+(?:[.-]\w+)*)")


@register.filter
def render_answer_body(turn: ShownTurn) -> SafeString:
    return render_answer(turn.answer.text, turn.links, turn.doubts, turn.linkable_addresses)


@register.filter
def result_body(result: ResultCard) -> SafeString:
    # The addresses may become links, because the text comes from a document and not from a model.
    return render_answer(result.text, (), addresses=find_addresses(result.text))


@register.filter
def mark_words(text: str, question: str) -> SafeString:
    asked = set(find_stems(question))
    pieces = _WORD.split(text)
    return format_html_join("", "{}", ((_embolden_asked_word(piece, asked),) for piece in pieces))


def _embolden_asked_word(piece: str, asked: set[str]) -> str:
    return format_html("<b>{}</b>", piece) if asked.intersection(find_stems_of_word(piece)) else piece


@register.simple_tag(takes_context=True)
def build_shared_address(context: dict[str, Any], conversation: Conversation) -> str:
    address: str = context["request"].build_absolute_uri(reverse("chat:shared", args=[conversation.share_token]))
    return address
