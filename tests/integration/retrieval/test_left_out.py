"""Unread parts of a file are shown in the lists, on the page, in the API and in the metrics."""

import io

import docx
import pytest
from django.urls import reverse

from retrieval.models import Document

pytestmark = pytest.mark.django_db(transaction=True)


def commented():
    document = docx.Document()
    paragraph = document.add_paragraph("The pump hums. ")
    document.add_comment(paragraph.runs, text="Does it?", author="Ann")
    paragraph.add_run("It whistles.").font.hidden = True
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def test_what_was_not_read_is_shown_wherever_a_document_is(collection, ingest, admin_client, client):
    whole = ingest(collection, "whole.txt", b"The valve drips.\n")
    document = ingest(collection, "pump.docx", commented())
    assert [document.status, whole.left_out] == [Document.Status.READY, []]
    said = "Not read: 2 hidden words, 1 comment"
    assert said in admin_client.get(reverse("retrieval:library")).content.decode()
    assert said in client.get(reverse("retrieval:document", args=[document.pk])).content.decode()
    changes = reverse("admin:retrieval_document_changelist")
    assert said in admin_client.get(changes).content.decode()
    assert "whole.txt" not in admin_client.get(changes, {"left_out": "no"}).content.decode()
    assert "pump.docx" not in admin_client.get(changes, {"left_out": "yes"}).content.decode()
    status = admin_client.get(reverse("admin:retrieval_document_status"), {"ids": document.pk}).json()
    assert status[str(document.pk)]["error"] == said
    shown = {each["source"]: each["left_out"] for each in admin_client.get("/api/v1/documents/").json()["results"]}
    assert shown == {
        "whole.txt": [],
        "pump.docx": [{"kind": "hidden", "count": 2, "names": []}, {"kind": "comments", "count": 1, "names": []}],
    }
    metrics = admin_client.get("/metrics").content.decode()
    assert 'ragsite_documents_not_wholly_read{kind="hidden"} 1.0' in metrics
    assert 'ragsite_documents_not_wholly_read{kind="charts"} 0.0' in metrics
