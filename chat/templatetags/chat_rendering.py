from __future__ import annotations

from django import template
from django.utils.safestring import SafeString

from chat.rendering import answer_html
from chat.turns import Turn

register = template.Library()


@register.filter
def answer_body(turn: Turn) -> SafeString:
    return answer_html(turn.text, turn.links)
