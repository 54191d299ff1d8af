"""Mails and archives: their own text, and the files in them, named safely and bounded."""

from __future__ import annotations

from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path

import pytest

from retrieval.exceptions import DocumentRejected
from retrieval.ingest.extraction import ExtractionLimits, extract
from retrieval.ingest.extraction.members import clean_name
from retrieval.ingest.extraction.sandboxed import extract_in_sandbox, sandbox_limits

MakeZip = Callable[[dict[str, bytes]], bytes]
NOTES = b"The pump hums.\n"


def mail() -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"] = "Ann Pump <ann@example.org>", "bob@example.org"
    message["Subject"], message["Date"] = "Invoice überall", "Tue, 03 Mar 2026 10:00:00 +0100"
    message.set_content("Dear Bob,\n\nthe invoice.\n# no heading\n--\nAnn\n")
    message.add_alternative("<p>Dear <b>Bob</b></p>", subtype="html")
    message.add_attachment(NOTES, maintype="application", subtype="octet-stream", filename="../../etc/notes.txt")
    message.add_attachment(b"PK\x03\x04", maintype="image", subtype="x-program", filename="broken.docx")
    inner = EmailMessage()
    inner["Subject"] = "Earlier"
    inner.set_content("Inner words.")
    message.add_attachment(inner)
    return message


def test_a_mail_is_its_headers_and_its_words_and_its_attachments_are_members() -> None:
    extracted = extract(bytes(mail()), "invoice.eml")
    assert extracted.text == (
        "# Invoice überall\n\nFrom: Ann Pump (ann@example.org)\nTo: bob@example.org\n"
        "Date: Tue, 03 Mar 2026 10:00:00 +0100\nAttachments: etc/notes.txt, Earlier.eml\n\n"
        "Dear Bob,\n\nthe invoice.\n\\# no heading\n\n--\nAnn\n"
    )
    assert [section.title for section in extracted.sections] == ["Invoice überall"]
    assert extracted.members[0].data == NOTES
    assert "Inner words." in extract(extracted.members[1].data, "Earlier.eml").text
    assert extracted.notice == "Left out: broken.docx (a damaged ZIP or Office file)."


def test_a_mail_of_html_alone_is_laid_out() -> None:
    message = EmailMessage()
    message["Subject"] = "News"
    message.set_content("<h2>Hi</h2><p style='display:none'>obey</p><ul><li>a</li></ul>", subtype="html")
    assert extract(bytes(message), "a.eml").text == "# News\n\n## Hi\n\n- a\n"
    damaged = b"Subject: =?utf-8?q?x?=\nContent-Type: text/plain; charset=nonsense\nTo: <<<,\n\nWords \xe9t\xe9.\n"
    assert "Words été." in extract(damaged, "b.eml").text


def test_an_archive_lists_its_files_which_come_out_of_the_sandbox_whole(make_zip: MakeZip) -> None:
    files = {
        "a/notes.txt": NOTES,
        "A\\..\\notes.txt": b"Other\n",
        "__MACOSX/._x": b"x",
        "p.exe": b"MZ\x90\x00",
        "a/": b"",
    }
    limits = ExtractionLimits()
    extracted = extract_in_sandbox(make_zip(files), "pack.zip", limits=limits, within=sandbox_limits(512, 20, limits))
    assert extracted.text == "# Pack\n\n- a/notes.txt\n- A/notes.txt\n"
    assert [member.data for member in extracted.members] == [NOTES, b"Other\n"]
    assert extracted.notice == "Left out: p.exe (a program)."


@pytest.mark.parametrize(
    ("files", "limits", "sentence"),
    [
        ({f"{n}.txt": NOTES for n in range(4)}, ExtractionLimits(max_members=3), "holds more than 3 files or 100 MB"),
        ({"a.txt": NOTES, "b.txt": NOTES}, ExtractionLimits(max_member_bytes=20), "holds more than 1,000 files"),
        ({"a.txt": bytes(30 << 20)}, ExtractionLimits(), "unpacks to far more than files hold"),
        (
            {"p.exe": b"MZ\x90\x00"},
            ExtractionLimits(),
            r"holds no file that can be read. Left out: p.exe \(a program\)",
        ),
    ],
)
def test_an_archive_that_is_too_much_is_refused(
    make_zip: MakeZip, files: dict[str, bytes], limits: ExtractionLimits, sentence: str
) -> None:
    with pytest.raises(DocumentRejected, match=sentence):
        extract(make_zip(files), "pack.zip", limits=limits)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("../../etc/passwd", "etc/passwd"),
        ("C:\\Users\\a.txt", "Users/a.txt"),
        ("/a/./b//c.txt", "a/b/c.txt"),
        ("a\0\u202eb.txt", "ab.txt"),
        (".hidden/a.txt", ""),
        ("..", ""),
        ("x" * 400 + ".docx", "x" * 195 + ".docx"),
    ],
)
def test_a_members_name_leads_nowhere_else(name: str, path: str) -> None:
    assert clean_name(name) == path


def test_an_outlook_message_is_read(tmp_path: Path) -> None:
    with pytest.raises(DocumentRejected, match="a.msg is not an Outlook message although its name says so"):
        extract(NOTES, "a.msg")
    damaged = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "__properties_version1.0".encode("utf-16-le")
    with pytest.raises(DocumentRejected, match="a.msg could not be read as an Outlook message"):
        extract(damaged, "a.msg")
