from __future__ import annotations

from typing import Any

from django import template
from django.urls import reverse
from django.utils.safestring import SafeString

from chat.models import Conversation
from chat.pages.cards import NearCard
from chat.pages.rendering import answer_html
from chat.pages.turns import ShownTurn

register = template.Library()


@register.filter
def answer_body(turn: ShownTurn) -> SafeString:
    return answer_html(turn.answer.text, turn.links, turn.doubts, turn.addresses)


@register.filter
def near_body(place: NearCard) -> SafeString:
    return answer_html(place.quote, ())


@register.simple_tag(takes_context=True)
def shared_address(context: dict[str, Any], conversation: Conversation) -> str:
    """The whole address of a shared conversation's page, to be sent to others."""
    address: str = context["request"].build_absolute_uri(reverse("chat:shared", args=[conversation.share_token]))
    return address
