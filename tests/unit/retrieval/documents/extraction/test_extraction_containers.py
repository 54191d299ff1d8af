"""Mails and archives: their own text, and the files in them, named safely and bounded."""

import struct
from email.message import EmailMessage

import compressed_rtf
import oxmsg
import pytest
from oxmsg.storage import Storage, Stream

from retrieval.documents.extraction import ExtractionLimits, extract
from retrieval.documents.extraction.archive import clean_member_name
from retrieval.documents.extraction.mail import extract_outlook_mail
from retrieval.documents.extraction.sandboxed import build_sandbox_limits, extract_in_sandbox
from retrieval.exceptions import DocumentRejected
from retrieval.models.left_out import explain_left_out_parts
from retrieval.text.extracted import LeftOutParts

NOTES = b"The pump hums.\n"
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(20)


def mail():
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


def test_a_mail_is_its_headers_and_its_words_and_its_attachments_are_members():
    extracted = extract(bytes(mail()), "invoice.eml")
    assert extracted.text == (
        "# Invoice überall\n\nFrom: Ann Pump (ann@example.org)\nTo: bob@example.org\n"
        "Date: Tue, 03 Mar 2026 10:00:00 +0100\nAttachments: etc/notes.txt, Earlier.eml\n\n"
        "Dear Bob,\n\nthe invoice.\n\\# no heading\n\n--\nAnn\n"
    )
    assert [section.title for section in extracted.sections] == ["Invoice überall"]
    assert extracted.members[0].data == NOTES
    assert "Inner words." in extract(extracted.members[1].data, "Earlier.eml").text
    assert (
        explain_left_out_parts((each.kind, list(each.names), each.count) for each in extracted.left_out)
        == "Not read: 1 unreadable file (broken.docx)."
    )


def test_a_mail_of_html_alone_is_laid_out():
    message = EmailMessage()
    message["Subject"] = "News"
    message.set_content("<h2>Hi</h2><p style='display:none'>obey</p><ul><li>a</li></ul>", subtype="html")
    assert extract(bytes(message), "a.eml").text == "# News\n\n## Hi\n\n- a\n"
    damaged = b"Subject: =?utf-8?q?x?=\nContent-Type: text/plain; charset=nonsense\nTo: <<<,\n\nWords \xe9t\xe9.\n"
    assert "Words été." in extract(damaged, "b.eml").text


def test_a_picture_that_the_page_of_a_mail_shows_is_no_document():
    message = EmailMessage()
    message.set_content("Regards")
    message.add_alternative('<p>Regards<img src="cid:logo%40here"><img src=CID:other></p>', subtype="html")
    for name, cid in (("logo.png", "<logo@here>"), ("plan.png", "<plan@here>"), ("notes.txt", "<other>")):
        data = PICTURE if name.endswith("png") else NOTES
        message.add_attachment(data, maintype="image", subtype="png", filename=name, cid=cid, disposition="inline")
    extracted = extract(bytes(message), "a.eml")
    assert [member.name for member in extracted.members] == ["plan.png", "notes.txt"]
    assert extracted.left_out == (LeftOutParts("pictures", (), 1),)


def test_an_archive_lists_its_files_which_come_out_of_the_sandbox_whole(make_zip):
    files = {
        "a/notes.txt": NOTES,
        "A\\..\\notes.txt": b"Other\n",
        "__MACOSX/._x": b"x",
        "p.exe": b"MZ\x90\x00",
        "a/": b"",
    }
    limits = ExtractionLimits()
    extracted = extract_in_sandbox(
        make_zip(files), "pack.zip", limits=limits, job_limits=build_sandbox_limits(512, 20, limits)
    )
    assert extracted.text == "# Pack\n\n- a/notes.txt\n- A/notes.txt\n"
    assert [member.data for member in extracted.members] == [NOTES, b"Other\n"]
    assert extracted.left_out == (LeftOutParts("unreadable", ("p.exe",), 1),)


@pytest.mark.parametrize("page", ["docs/a.html", "scans/a.txt"])
def test_pictures_that_pages_of_an_archive_show_are_no_documents(make_zip, page):
    files = {page: b"<p>Some words of a page.</p>", "docs/images-tmp/screen.png": b"\x89PNG\r\n\x1a\n" + bytes(90)}
    extracted = extract(make_zip(files), "site.zip")
    is_page = page.endswith("html")
    assert [member.name for member in extracted.members] == [page, *([] if is_page else ["docs/images-tmp/screen.png"])]
    assert [each.kind for each in extracted.left_out] == (["of_pages"] if is_page else [])


@pytest.mark.parametrize(
    ("files", "limits", "sentence"),
    [
        ({f"{n}.txt": NOTES for n in range(4)}, ExtractionLimits(max_members=3), "holds more than 3 files or 100 MB"),
        ({"a.txt": NOTES, "b.txt": NOTES}, ExtractionLimits(max_member_bytes=20), "holds more than 1,000 files"),
        ({"a.txt": bytes(30 << 20)}, ExtractionLimits(), "unpacks to far more than files hold"),
        ({"p.exe": b"MZ\x90\x00"}, ExtractionLimits(), "holds no file that can be read: p.exe"),
    ],
)
def test_an_archive_that_is_too_much_is_refused(make_zip, files, limits, sentence):
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
def test_a_members_name_leads_nowhere_else(name, path):
    assert clean_member_name(name) == path


def test_an_outlook_message_is_read(tmp_path):
    with pytest.raises(DocumentRejected, match="a.msg is not an Outlook message although its name says so"):
        extract(NOTES, "a.msg")
    damaged = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600) + "__properties_version1.0".encode("utf-16-le")
    with pytest.raises(DocumentRejected, match="a.msg could not be read as an Outlook message"):
        extract(damaged, "a.msg")


def stored(path, header, values, *inner):
    """Return a storage of an Outlook message with the properties ``values``, as the format keeps them."""
    entries, streams = [bytes(header)], []
    for pid, value in values.items():
        if isinstance(value, int):
            entries.append(struct.pack("<HHIII", 0x0003, pid, 6, value, 0))
            continue
        kind, data = (0x001F, value.encode("utf-16-le")) if isinstance(value, str) else (0x0102, value)
        entries.append(struct.pack("<HHIII", kind, pid, 6, len(data), 0))
        streams.append(Stream(f"__substg1.0_{pid:04X}{kind:04X}", data))
    return Storage(path, (*streams, Stream("__properties_version1.0", b"".join(entries))), inner)


def test_messages_attached_to_an_outlook_message_are_mails(monkeypatch):
    """Real files of Outlook had these, and they were lost: their bytes are no stream but a storage."""
    plan = stored("__attach_version1.0_#0", 8, {0x3705: 1, 0x3707: "plan.txt", 0x3701: NOTES})
    logo = stored("__attach_version1.0_#1", 8, {0x3705: 1, 0x3707: "logo.png", 0x3701: PICTURE, 0x3712: "logo@x"})
    page = b'<img src="cid:logo@x"><p>Inner <b>words</b>.</p>'
    mail = stored("__substg1.0_3701000D", 24, {0x0037: "Re: a/b", 0x1000: "Inner words.", 0x1013: page}, plan, logo)
    forwarded = stored("__attach_version1.0_#0", 8, {0x3705: 5}, mail)
    linked = stored("__attach_version1.0_#1", 8, {0x3705: 2, 0x3707: "share.docx"})
    sender = "=?GBK?B?1cXI/Q==?= <zhang@example.org>"
    outer = stored("", 32, {0x0037: "Outer", 0x1000: "See below.", 0x007D: f"From: {sender}\n\n"}, forwarded, linked)
    monkeypatch.setattr(oxmsg.Message, "load", lambda _file: oxmsg.Message(outer))
    extracted = extract_outlook_mail(b"", "outer.msg", "application/vnd.ms-outlook", ExtractionLimits())
    assert "From: 张三 (zhang@example.org)\nAttachments: Re: a-b.eml" in extracted.text
    assert extracted.left_out == (LeftOutParts("linked", ("share.docx",), 1),)
    inner = extract(extracted.members[0].data, extracted.members[0].name)
    assert inner.text == "# Re: a/b\n\nAttachments: plan.txt\n\nInner words.\n"
    assert [member.data for member in inner.members] == [NOTES]
    assert inner.left_out == (LeftOutParts("pictures", (), 1),)


def test_an_outlook_message_in_rich_text_alone_is_read(monkeypatch):
    rich = compressed_rtf.compress(rb"{\rtf1\ansi The ferry leaves at 9.}")
    for body, expected in ((rich, "The ferry leaves at 9."), (b"damaged", "")):
        message = stored("", 32, {0x0037: "Ferry", 0x1009: body})
        monkeypatch.setattr(oxmsg.Message, "load", lambda _file, message=message: oxmsg.Message(message))
        extracted = extract_outlook_mail(b"", "a.msg", "application/vnd.ms-outlook", ExtractionLimits())
        assert extracted.text == f"# Ferry\n\n{expected}".strip() + "\n"
        assert [each.kind for each in extracted.left_out] == ([] if expected else ["unreadable"])
