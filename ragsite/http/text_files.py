from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_GET

from retrieval.models import Collection, Document

# A language model reads the whole of llms.txt, so the file lists at most this many documents of each collection.
DOCUMENTS_LISTED = 100


@require_GET
def llms_txt(request: HttpRequest) -> HttpResponse:
    """Return an index of the public documents for language models (llms.txt)."""

    def build_address(name: str, *arguments: object) -> str:
        return request.build_absolute_uri(reverse(name, args=arguments))

    visitor = AnonymousUser()
    collections = Collection.objects.none() if settings.CHAT_REQUIRES_LOGIN else Collection.objects.readable_by(visitor)
    lines = [
        "# Ragsite",
        "",
        "> Answers to questions from the documents below, with citations that can be checked.",
        "",
        "Everything below is public." if collections else "Nothing here can be read without an account.",
        "",
        "## Programs",
        "",
        f"- [MCP]({build_address('mcp')}): tools `search`, `fetch` and `ask`, over streamable HTTP",
        f"- [HTTP API]({build_address('api_docs')}): POST a question to {build_address('chat_api:ask')}",
        f"- [OpenAPI schema]({build_address('schema')})",
    ]
    for collection in collections.in_service().order_by("name"):
        readable = Document.objects.readable_by(visitor).filter(collection=collection, status=Document.Status.READY)
        lines += ["", f"## {_join_lines(collection.name)}", ""]
        if collection.description:
            lines += [_join_lines(collection.description), ""]
        for document in readable.order_by("sort_key", "pk")[:DOCUMENTS_LISTED]:
            title = _join_lines(document.title or document.source).replace("[", "(").replace("]", ")")
            lines.append(f"- [{title}]({build_address('retrieval:document', document.pk)})")
        if (more := readable.count() - DOCUMENTS_LISTED) > 0:
            lines += ["", f"{more} more documents: search the collection `{collection.slug}`."]
    return HttpResponse("\n".join(lines) + "\n", content_type="text/plain; charset=utf-8")


def _join_lines(text: str) -> str:
    return " ".join(text.split())
