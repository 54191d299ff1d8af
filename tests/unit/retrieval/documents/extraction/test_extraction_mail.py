"""Mails with words in several parts, or in forms of their own: all of them are read in order, or named."""

import base64
import datetime
import struct
from email.message import EmailMessage

import compressed_rtf
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import pkcs7

from retrieval.documents.extraction import extract
from retrieval.exceptions import DocumentRejected

FROM = "From: Ann <ann@example.org>\nSubject: Visit\nMIME-Version: 1.0\n"
PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()
EVENT = (
    "BEGIN:VCALENDAR\nMETHOD:REQUEST\nBEGIN:VEVENT\nSUMMARY:Crane check\n"
    "DTSTART;TZID=Europe/Amsterdam:20260412T080000\nDTEND;TZID=Europe/Amsterdam:20260412T093000\n"
    "LOCATION:Hall 5\\, gate 2\n"
    'ORGANIZER;CN="Bos, Ann":mailto:ann@example.org\nATTENDEE;PARTSTAT=ACCEPTED;CN=Bob:mailto:bob@example.org\n'
    "END:VEVENT\nEND:VCALENDAR"
)


def part(content, kind="text/plain; charset=utf-8", *headers):
    return "\n".join((f"Content-Type: {kind}", *headers, "", content))


def multi(kind, *parts, boundary="B"):
    bodies = "".join(f"--{boundary}\n{each}\n" for each in parts)
    return f'Content-Type: multipart/{kind}; boundary="{boundary}"\n\n{bodies}--{boundary}--\n'


def read(body, name="a.eml"):
    return extract((FROM + body).encode(), name)


def said(extracted):
    return {each.kind: (each.names, each.count) for each in extracted.left_out}


def in_order(text, *words):
    places = [text.index(word) for word in words]
    return places == sorted(places) and all(text.count(word) == 1 for word in words)


IMAGE = part(PICTURE, "image/png; name=plan.png", "Content-Disposition: inline; filename=plan.png",
             "Content-Transfer-Encoding: base64")  # fmt: skip
HTML = "text/html; charset=utf-8"


@pytest.mark.parametrize(
    "body",
    [
        multi("mixed", part("Words one."), IMAGE, part("Words two."), part("Words three.")),
        multi("mixed", part("<p>Words one.</p>", HTML), IMAGE, part("<p>Words <i>two</i>.</p>Words three.", HTML)),
        multi("mixed", part("Words one."), part("<p>Words two.</p>", HTML), part("Words three.")),
        multi(
            "alternative",
            part("Words one."),
            multi("mixed", part("Words one.", HTML), IMAGE, part("Words two. Words three.", HTML), boundary="M"),
        ),
        multi("related", part("<p>Words one. Words two. Words three.</p>", HTML), IMAGE),
        multi(
            "mixed",
            part("Words one."),
            part("Words two.", "text/plain", "Content-Disposition: inline; filename=disclaimer.txt"),
            multi("alternative", part("Words three."), part("<p>Words three.</p>", HTML), boundary="M"),
        ),
        multi("signed; micalg=x", multi("mixed", part("Words one. Words two."), part("Words three."), boundary="M"),
              part("AAAA", "application/pkcs7-signature; name=smime.p7s", "Content-Transfer-Encoding: base64")),
        part("<html><body><p>Words one.</p><p>Words two.</p><p>Words three.</p></body></html>"),
        part("<bold>Words one.</bold> Words two. Words <italic>three.</italic>", "text/enriched"),
    ],
)  # fmt: skip
def test_all_words_are_read_in_the_order_of_their_parts(body):
    extracted = read(body)
    assert in_order(extracted.text, "Words one.", "Words two.", "Words three.")
    assert "smime" not in extracted.text
    assert not said(extracted)


@pytest.mark.parametrize(
    ("plain", "page", "kept", "gone"),
    [
        ("", "<p>The pool opens at 7.</p>", ["pool opens"], []),
        ("Your program cannot show HTML.", "<p>The pool opens at 7.</p>", ["pool opens"], ["cannot show"]),
        ("Bekijk deze mail in uw browser: https://x.nl/y", "<p>Het bad gaat open.</p>", ["bad gaat"], ["Bekijk"]),
        ("The pool opens at 7.", "<p>The <b>pool</b> opens at 7.</p>", ["The pool opens at 7."], []),
        ("The pool opens at 7. Bring a towel, a lock and some soap for the shower.", "<div></div>", ["towel"], []),
        ("Our offer ends on Friday, so hurry to the shop.", "<p>The sauna is closed in May for repairs.</p>",
         ["offer ends", "sauna is closed"], []),
        ("The pool opens.", "<p>The pool opens.</p><p>At seven.</p>", ["At seven"], []),
        ("This browser costs 5 euro, the HTML course 9.", "<p>This browser costs 5 euro, the HTML course 9.</p>",
         ["costs 5"], []),
    ],
)  # fmt: skip
def test_the_form_of_a_mail_that_says_more_is_read(plain, page, kept, gone):
    text = read(multi("alternative", part(plain), part(page, HTML), part("<p>lightning</p>", "text/x-amp-html"))).text
    assert all(text.count(words) == 1 for words in kept)
    assert not any(words in text for words in [*gone, "lightning"])


FLOWED = "text/plain; charset=utf-8; format=flowed"
BASE64 = "Content-Transfer-Encoding: base64"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (part("The house \nopens \nat nine.\nBring it.\n\n> Old \n> words \n\n-- \nAnn", FLOWED),
         "The house opens at nine.\nBring it.\n\n> Old \n> words \n\n\n-- \nAnn"),
        (part("The ware \nhouse opens  \nat nine.", FLOWED + "; DelSp=yes"), "The warehouse opens at nine."),
        (part("Caf=C3=A9 at=20\nnine.", FLOWED, "Content-Transfer-Encoding: quoted-printable"), "Café at nine."),
        (part(base64.b64encode("Gate fünf – €5".encode()).decode(), "text/plain; charset=iso-8859-1", BASE64),
         "Gate fünf – €5"),
        (part(base64.b64encode("Gate fünf – €5".encode("cp1252")).decode(), "text/plain; charset=utf-8", BASE64),
         "Gate fünf – €5"),
        (part("Gate four is open, come in!", "text/plain", BASE64), "Gate four is open, come in!"),
        (part(base64.encodebytes(b"Gate four is open. " * 5 + b"\n").decode() + "\n____\nList of gates\nhttps://x.org",
              "text/plain", BASE64), "Gate four is open. " * 5 + "\n\n____\nList of gates\nhttps://x.org"),
        (part(base64.encodebytes(b"Gate four.").decode() + "--\nList", "text/plain", BASE64), "Gate four.\n\n--\nList"),
    ],
)  # fmt: skip
def test_words_are_decoded_as_they_were_meant(body, expected):
    assert read(body).text.endswith(f"\n\n{expected}\n")


def test_addresses_behind_semicolons_are_read():
    message = f"To: =?utf-8?Q?J=C3=B6rg?= <j@example.org>; Carl <carl@example.org>\n{FROM}\nx"
    assert "To: Jörg (j@example.org); Carl (carl@example.org)\n" in extract(message.encode(), "a.eml").text


@pytest.mark.parametrize(
    "name",
    [
        "=?utf-8?B?w4lt?= =?utf-8?B?aWxl?=",
        "=?utf-8?Q?=C3=89m?=\n =?utf-8?Q?ile?=",
        "=?utf-8?B?w4ltaWw=?= =?utf-8?B?ZQ==?=",
        "=?utf-8?Q?=C3?= =?utf-8?Q?=89mile?=",
        "=?utf-8?Q?=C3=89mile?=",
    ],
)
def test_a_name_that_is_cut_into_encoded_words_is_one_name(name):
    assert (
        "From: Émile (a@example.org)\n"
        in extract(f"From: {name} <a@example.org>\nSubject: x\nMIME-Version: 1.0\n\nx".encode(), "a.eml").text
    )


def test_an_invitation_says_what_when_where_and_who():
    calendar = part(EVENT, "text/calendar; method=REQUEST; charset=utf-8")
    attached = part(EVENT, "application/ics; name=invite.ics", "Content-Disposition: attachment; filename=invite.ics")
    body = multi(
        "mixed", multi("alternative", part("Join us."), part("<p>Join us.</p>", HTML), calendar, boundary="M"), attached
    )
    text = read(body).text
    assert "Join us." in text
    assert text.count("Crane check") == 1
    assert (
        "When: Sunday 2026-04-12, 08:00 to 09:30 (Europe/Amsterdam)\nWhere: Hall 5, gate 2\n"
        "Organiser: Bos, Ann (ann@example.org)\nAttendees: Bob (bob@example.org), accepted" in text
    )


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("DTSTART:20260412T080000Z\nDURATION:PT1H30M", "08:00 to 09:30 (UTC)"),
        ("DTSTART;VALUE=DATE:20260412\nDTEND;VALUE=DATE:20260413", "When: Sunday 2026-04-12\n"),
        ("DTSTART;VALUE=DATE:20260412\nDTEND;VALUE=DATE:20260415", "Sunday 2026-04-12 to Tuesday 2026-04-14"),
        ("DTSTART:20260412T220000\nDTEND:20260413T010000", "Sunday 2026-04-12, 22:00 to Monday 2026-04-13, 01:00"),
        ("DTSTART;TZID=\"A/B\":20260412T080000\nDTEND;TZID=C:20260412T100000", "08:00 (A/B) to 10:00 (C)"),
        ("DTSTART:20260412T080000\nRRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE;COUNT=5",
         "Repeats: every 2 weeks, on Monday, Wednesday, 5 times"),
        ("DTSTART:20260412\nRRULE:FREQ=MONTHLY;BYDAY=-1FR;UNTIL=20261231",
         "every month, on last Friday, until Thursday 2026-12-31"),
        ("DTSTART:20260412T080000\nEXDATE:20260419T080000,20260426T080000",
         "Not on: Sunday 2026-04-19, 08:00, Sunday 2026-04-26"),
        ("STATUS:CANCELLED\nDTSTART:20260412", "Status: Cancelled"),
        ("DTSTART:20260412\nRDATE;VALUE=PERIOD:20260413T090000/PT30M", "Also on: Monday 2026-04-13, 09:00 to 09:30"),
        ("FREEBUSY:20260412T080000Z/20260412T083000Z", "Busy: Sunday 2026-04-12, 08:00 to 08:30 (UTC)"),
        ("DESCRIPTION:Bring\\n\\nthe lo\n ng rope\\; and\n  gloves", "Bring\n\nthe long rope; and gloves"),
        ("DUE:20260501\nPERCENT-COMPLETE:40", "Due: Friday 2026-05-01\nPercent complete: 40"),
        ("DTSTART:not a day\nLOCATION;ENCODING=QUOTED-PRINTABLE;CHARSET=UTF-8:Caf=C3=\n=A9", "Where: Café"),
        ("DTSTART:20260130\nRRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
         "every month, on the last of Monday, Tuesday, Wednesday, Thursday, Friday"),
        ("DESCRIPTION:<b>Bring</b> rope &amp\\; gloves<br>Gate <a href=\"x\">4</a>", "Bring rope & gloves\nGate 4"),
        ("DESCRIPTION:Bring <b>rope</b>\\nGate 4", "Bring rope\nGate 4"),
        ("X-ALT-DESC;FMTTYPE=text/html:<html><body><p>Gate 4</p></body></html>", "Gate 4"),
        ("DESCRIPTION:Gate 4 < gate 5\nX-ALT-DESC;FMTTYPE=text/html:<p>Page</p>", "Gate 4 < gate 5\n"),
        ("BEGIN:VALARM\nDESCRIPTION:Beep\nEND:VALARM\nLOCATION:Hall", "Where: Hall"),
    ],
)  # fmt: skip
def test_entries_of_a_calendar_are_written_as_lines(lines, expected):
    extracted = extract(
        f"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\nSUMMARY:Käse\n{lines}\nEND:VEVENT\nEND:VCALENDAR".encode(), "plan.ics"
    )
    assert expected in extracted.text
    assert "Beep" not in extracted.text
    assert [section.title for section in extracted.sections] == ["Plan", "Käse"]


def test_a_calendar_without_entries_is_refused_and_its_files_are_members():
    assert "Busy" in extract(b"BEGIN:VEVENT\nDTSTART:20260412\nSUMMARY:Busy\nEND:VEVENT", "a.ics").text
    with pytest.raises(DocumentRejected, match=r"a\.ics holds no events"):
        extract(b"BEGIN:VCALENDAR\nBEGIN:VTIMEZONE\nEND:VTIMEZONE\nEND:VCALENDAR", "a.ics")
    lines = f"ATTACH;ENCODING=BASE64;VALUE=BINARY;FILENAME=list.csv:{base64.b64encode(b'a,b').decode()}"
    extracted = extract(f"BEGIN:VCALENDAR\nBEGIN:VTODO\n{lines}\nEND:VTODO\nEND:VCALENDAR".encode(), "a.ics")
    assert [member.name for member in extracted.members] == ["list.csv"]


def attribute(level, name, kind, data):
    return struct.pack("<BHHI", level, name, kind, len(data)) + data + struct.pack("<H", sum(data) & 0xFFFF)


def tnef(*attributes):
    return struct.pack("<IH", 0x223E9F78, 1) + b"".join(
        (attribute(1, 0x9006, 8, struct.pack("<I", 0x10000)), attribute(1, 0x9007, 6, struct.pack("<II", 1252, 0)),
         *attributes)
    )  # fmt: skip


def package(data, *, plain="Minutes attached."):
    encoded = base64.encodebytes(data).decode()
    outlook = part(encoded, "application/ms-tnef; name=winmail.dat", "Content-Transfer-Encoding: base64")
    return read(multi("mixed", part(plain), outlook))


def test_a_package_of_outlook_is_opened_or_named():
    attached = (
        attribute(2, 0x9002, 6, bytes(14)),
        attribute(2, 0x8010, 1, b"r\xe4sum\xe9.csv\0"),
        attribute(2, 0x800F, 6, b"name,price\nlamp,3\n"),
    )
    extracted = package(tnef(attribute(1, 0x800C, 1, b"The bridge is closed on 4 May.\0"), *attached))
    assert in_order(extracted.text, "Minutes attached.", "The bridge is closed on 4 May.")
    assert [member.data for member in extracted.members] == [b"name,price\nlamp,3\n"]
    assert extracted.members[0].name == "räsumé.csv"
    rich = compressed_rtf.compress(rb"{\rtf1\ansi The ferry leaves at 9.}")
    properties = struct.pack("<IHHII", 1, 0x0102, 0x1009, 1, len(rich)) + rich + bytes(-len(rich) % 4)
    assert "The ferry leaves at 9." in package(tnef(attribute(1, 0x9003, 6, properties)), plain="").text
    for damaged in (tnef(), tnef(*attached)[:-30], b"\x78\x9f\x3e\x22", b"nothing"):
        assert list(said(package(damaged))) == ["outlook"]


@pytest.fixture(scope="module")
def signer():
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Ann")])
    today = datetime.datetime(2026, 1, 1)
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(7)
        .not_valid_before(today).not_valid_after(today + datetime.timedelta(days=9)).sign(key, hashes.SHA256())
    )  # fmt: skip
    return certificate, key


def enveloped(data, kind="signed-data"):
    encoded = base64.encodebytes(data).decode()
    return part(
        encoded, f"application/pkcs7-mime; smime-type={kind}; name=smime.p7m", "Content-Transfer-Encoding: base64"
    )


def test_opaque_signed_mail_is_read_and_encrypted_mail_is_named(signer):
    certificate, key = signer
    inner = multi("mixed", part("The code is 4417."), part("a,b", "text/csv; name=list.csv")).encode()
    signing = pkcs7.PKCS7SignatureBuilder().set_data(inner).add_signer(certificate, key, hashes.SHA256())
    extracted = read(enveloped(signing.sign(serialization.Encoding.DER, [pkcs7.PKCS7Options.Binary])))
    assert "The code is 4417." in extracted.text
    assert [member.name for member in extracted.members] == ["list.csv"]
    locking = pkcs7.PKCS7EnvelopeBuilder().set_data(inner).add_recipient(certificate)
    locked = locking.encrypt(serialization.Encoding.DER, [])
    for body in (
        enveloped(locked, "enveloped-data"),
        enveloped(locked[:40]),
        multi("encrypted", part("Version: 1", "application/pgp-encrypted"), part("x", "application/octet-stream")),
        part("-----BEGIN PGP MESSAGE-----\n\nhQEMA4\n=abcd\n-----END PGP MESSAGE-----"),
    ):
        extracted = read(body)
        assert list(said(extracted)) == ["encrypted"]
        assert "hQEMA4" not in extracted.text


def test_signed_content_may_come_in_pieces_of_unknown_length():
    signed = bytes.fromhex("06092a864886f70d010702")
    pieces = b"\x24\x80\x04\x09Subject: \x04\x08x\n\nWords\x00\x00"
    content = b"\x30\x80\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01\xa0\x80" + pieces + b"\x00\x00\x00\x00"
    data = b"\x30\x80" + signed + b"\xa0\x80\x30\x80\x02\x01\x01\x31\x00" + content + b"\x00\x00" * 3
    assert "Words" in read(enveloped(data)).text


def test_what_pgp_adds_to_signed_words_is_left_out():
    signature = "-----BEGIN PGP SIGNATURE-----\n\niQEz\n-----END PGP SIGNATURE-----"
    body = f"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nGate 4.\n{signature}"
    assert read(part(body)).text.endswith("\n\nGate 4.\n")


def test_reports_are_read_and_pieces_are_named():
    status = "Reporting-MTA: dns; x\n\nFinal-Recipient: rfc822; bob@example.org\nAction: failed\nStatus: 5.1.1"
    returned = part("Received: from y\nSubject: Offer\nTo: bob@example.org", "text/rfc822-headers")
    body = multi(
        "report; report-type=delivery-status", part("Not delivered."), part(status, "message/delivery-status"), returned
    )
    text = read(body).text
    assert in_order(
        text, "Not delivered.", "Final-Recipient: rfc822; bob@example.org\nAction: failed", "Subject: Offer"
    )
    assert "Received" not in text
    piece = "Content-Type: message/partial; id=7; number=2; total=3\n\nSubject: x\n\nwords"
    assert list(said(read(piece))) == ["partial"]


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("filename*0*=UTF-8''Stra%C3%9F; filename*1=\"enplan.csv\"", "Straßenplan.csv"),
        ('filename="=?utf-8?Q?Stra=C3=9Fen?= =?utf-8?Q?plan.csv?="', "Straßenplan.csv"),
        ("filename==?iso-8859-1?Q?Stra=DFe.csv?=", "Straße.csv"),
        ("filename=My big plan.csv", "My big plan.csv"),
        ("filename=list.csv; size=4", "list.csv"),
        ("filename*=windows-1252''%80.csv", "€.csv"),
    ],
)
def test_names_of_attachments_are_decoded(header, name):
    attachment = part("a,b", "application/octet-stream", f"Content-Disposition: attachment; {header}")
    assert [member.name for member in read(multi("mixed", part("x"), attachment)).members] == [name]


def test_attachments_without_a_name_are_read_by_their_type_and_strange_ones_are_named():
    table = part("a,b\n1,2", "text/csv", "Content-Disposition: attachment")
    strange = part("AAAAAAAA", "application/x-strange; name=a.xyz", "Content-Transfer-Encoding: base64")
    extracted = read(multi("mixed", part("x"), table, strange))
    assert [member.name for member in extracted.members] == ["attachment.csv"]
    assert said(extracted) == {"unreadable": (("a.xyz",), 1)}


def test_a_mailbox_has_a_member_for_each_message():
    message = f"From ann@example.org Mon Feb  2 10:00:00 2026\n{FROM}\nGate 4.\n\n>From here on, walk.\n"
    told = "Hello.\n\nFrom time to time\nNote: gate 5"
    box = message + "\n" + message.replace("Visit", "Re: a/b").replace("Gate 4", told)
    extracted = extract(box.encode(), "old.mbox")
    assert [member.name for member in extracted.members] == ["Visit.eml", "Re: a-b.eml"]
    assert "- Visit; Ann (ann@example.org)" in extracted.text
    first, second = (extract(member.data, member.name).text for member in extracted.members)
    assert "Gate 4.\n\nFrom here on, walk." in first
    assert "From time to time\nNote: gate 5." in second
    assert "Gate 4." in extract(message.encode(), "one.mbox").text
    with pytest.raises(DocumentRejected, match="is not a mailbox although its name says so"):
        extract(b"Some words", "a.mbox")


@pytest.mark.parametrize("name", ["a.eml", "a.txt", "message"])
def test_the_source_of_a_mail_is_never_a_text(name):
    extracted = extract((FROM + multi("mixed", part("Gate 4."), IMAGE)).encode(), name)
    assert extracted.media_type == "message/rfc822"
    assert "Content-Type" not in extracted.text


def test_a_message_that_apple_mail_keeps_is_read():
    message = (FROM + "\nGate 4.\n").encode()
    assert extract(b"%d\n%s<?xml version='1.0'?><plist/>" % (len(message), message), "1.emlx").text.endswith(
        "Gate 4.\n"
    )


@pytest.mark.parametrize("name", ["page.mht", "page.mhtml", "page.doc", "page"])
def test_a_saved_page_is_read_with_its_frames(name):
    page = part(
        "<html><title>Canteen</title><body><p>Soup and caf=E9 at 11:30.</p><iframe src=3D'cid:f@x'></body></html>",
        "text/html; charset=windows-1252", "Content-Transfer-Encoding: quoted-printable", "Content-ID: <main@x>",
    )  # fmt: skip
    frame = part("<p>Closed on Monday.</p>", "text/html", "Content-ID: <f@x>")
    links = part("<a href=x>Only a link</a>", "text/html")
    saved = "Subject: Canteen\nMIME-Version: 1.0\n" + multi('related; start="<main@x>"', frame, links, page, IMAGE)
    extracted = extract(saved.encode(), name)
    assert (extracted.media_type, extracted.title) == ("multipart/related", "Canteen")
    assert in_order(extracted.text, "Soup and café at 11:30.", "Closed on Monday.")
    assert "=3D" not in extracted.text


def test_a_message_encoded_within_a_message_is_a_mail():
    inner = base64.b64encode((FROM + "\nGate 4.").encode()).decode()
    body = multi("mixed", part("See below."), part(inner, "message/rfc822", "Content-Transfer-Encoding: base64"))
    extracted = read(body)
    assert [member.name for member in extracted.members] == ["Visit.eml"]
    assert "Gate 4." in extract(extracted.members[0].data, "Visit.eml").text


def test_words_in_rich_text_alone_are_read():
    message = EmailMessage()
    message["Subject"] = "Rich"
    message.set_content(rb"{\rtf1\ansi The ferry leaves at 9.}", maintype="text", subtype="rtf")
    assert "The ferry leaves at 9." in extract(bytes(message), "a.eml").text


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.mbox", b"From a Mon Feb  2 10:00:00 2026\nSubject: x\n\nwords\n\n" * 50_000),
        ("b.mbox", b"From a\nSubject: x\n\n" + b">From \n" * 500_000),
        ("a.ics", b"BEGIN:VCALENDAR\n" + b"BEGIN:VEVENT\nSUMMARY:x\nEND:VEVENT\n" * 50_000),
        ("b.ics", b"BEGIN:VCALENDAR\n" + b"BEGIN:VEVENT\n" * 200_000),
        ("c.ics", b"BEGIN:VEVENT\nDTSTART" + b';X="' * 300_000 + b"\n x" * 100_000),
        ("a.eml", FROM.encode() + enveloped(b"\x30\x80" * 100_000).encode()),
        ("b.eml", FROM.encode() + enveloped(tnef(*[attribute(1, 1, 1, b"")] * 20_000)).encode()),
        ("c.eml", FROM.encode() + part("-----BEGIN PGP MESSAGE-----\n" * 50_000).encode()),
        ("d.eml", FROM.encode() + b"Content-Disposition: attachment; " + b"name= " * 100_000 + b"\n\nx"),
        (
            "a.mht",
            b"Content-Type: multipart/related; boundary=B\n\n" + b"--B\nContent-Type: text/html\n\n<p>x\n" * 20_000,
        ),
    ],
)
def test_hostile_mails_and_calendars_are_read_or_rejected_in_time(read_hostile, name, data):
    read_hostile(data, name)
