"""Fetch one web page whose address a person entered."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.db.models import QuerySet
from django.utils.translation import gettext as _t

from retrieval.documents.submission import Submission, describe_document, submit_upload
from retrieval.exceptions import DocumentRejected
from retrieval.models import Collection, Document
from retrieval.sources.kinds.website import derive_name, derive_name_and_type, normalise_address
from retrieval.sources.network import Client, Response
from retrieval.sources.options import WebAddressField
from retrieval.sources.protocol import ItemFailed, SourceUnavailable, SourceUnreadable

PAGE_SECONDS = 30.0
_CLOSED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.PAYMENT_REQUIRED, HTTPStatus.FORBIDDEN)
_AWAY = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)


def find_only_address(text: str) -> str:
    address = text.strip()
    is_alone = address.lower().startswith(("http://", "https://")) and not any(map(str.isspace, address))
    return address if is_alone else ""


def submit_page(
    collection: Collection,
    address: str,
    *,
    source: str = "",
    known: QuerySet[Document] | None = None,
    **options: Any,
) -> Submission:
    """Fetch the page at ``address``, and submit it like an uploaded file.

    - ``source``: the document's name; by default the host and path of the address.
    - ``known``: the page is rejected if one of these documents has another name but the same address or content.
    - ``options``: further arguments of ``submit_upload``.

    Raises: DocumentRejected.
    """
    # The database connection is not needed while the page loads.
    if not connection.in_atomic_block:
        connection.close()
    response = _fetch(address)
    url = normalise_address(response.url)
    name, media_type = derive_name_and_type(f"{urlsplit(url).netloc}/{derive_name(url)}", response)
    source = source or name
    if len(source) > 1000 or len(url) > 1000:
        raise DocumentRejected(_t("%s… is too long an address: save the page and upload the file.") % url[:100])
    if known is not None:
        same = known.filter(collection=collection, url=url).exclude(source=source).order_by("pk").first()
        if same is not None:
            names = {"address": url, "name": describe_document(same)}
            raise DocumentRejected(_t("%(address)s is already in the collection, as %(name)s.") % names)
    upload = SimpleUploadedFile(source.rpartition("/")[2], response.text_body, media_type)
    return submit_upload(collection, upload, source=source, url=url, known=known, **options)


def _fetch(address: str) -> Response:
    try:
        address = WebAddressField().clean(address)
        with Client(address, request_seconds=PAGE_SECONDS) as client:
            response = client.get(address)
    except ValidationError as error:
        raise DocumentRejected(f"{address[:200]}: {' '.join(error.messages)}") from error
    except (SourceUnreadable, SourceUnavailable, ItemFailed) as error:
        raise DocumentRejected(str(error)) from error
    told = {"url": response.url, "status": response.status}
    if response.status in _AWAY:
        raise DocumentRejected(_t("There is no page at %(url)s (%(status)d): check the address.") % told)
    if response.status in _CLOSED:
        raise DocumentRejected(
            _t("%(url)s is not for everybody (%(status)d): save the page in your browser and upload the file.") % told
        )
    if not 200 <= response.status < 300:
        raise DocumentRejected(_t("The server answered %(status)d for %(url)s: try again later.") % told)
    if not response.body:
        raise DocumentRejected(_t("%(url)s is an empty page.") % told)
    return response
