"""Only labels of the WHATWG Encoding Standard name an encoding, wherever an outside party names one."""

import pytest
import webencodings
from webencodings.labels import LABELS

from retrieval.documents.extraction import extract
from retrieval.documents.extraction.archive import parse_xml as parse_xml_of_archive
from retrieval.sources.kinds.website import PageLinks
from retrieval.sources.network import Response, parse_xml
from retrieval.text.encodings import find_python_codec, find_xml_label, replace_unknown_encodings

# Codecs of Python, which fail on text, take quadratic time, or decode none; and names that are no encoding.
REFUSED = [
    *("idna", "punycode", "Punycode", "PUNYCODE.", "utf-7", "utf_7", "unicode_escape", "raw-unicode-escape"),
    *("undefined", "hex", "rot13", "base64", "zlib", "bz2", "uu", "mbcs", "oem", "cp037", "cp437", "utf-32", "latin-1"),
    *(
        "replacement",
        "iso-2022-kr",
        "hz-gb-2312",
        "x-user-defined",
        "nonsense",
        "",
        "utf-8\0",
        "\udcff",
        "é",
        "x" * 9999,
    ),
]
TEXT = "Prijzen: één ketel, geïnstalleerd in café 't Hoekje – €5."


@pytest.mark.parametrize("label", REFUSED)
def test_other_names_are_refused(label):
    assert find_python_codec(label) == ""


def test_all_labels_of_the_standard_name_a_codec():
    for label, name in LABELS.items():
        if name not in ("replacement", "x-user-defined"):
            assert "a".encode(find_python_codec(f" {label.upper()}\n"))
    assert (find_python_codec("iso-8859-1"), find_python_codec("us-ascii"), find_python_codec("gb2312")) == (
        "cp1252",
        "cp1252",
        "gb18030",
    )
    assert webencodings.lookup("iso-8859-1").codec_info.name == "cp1252"


@pytest.mark.parametrize("label", [*REFUSED[:19], "utf-16"])
def test_a_page_that_names_another_encoding_is_read_as_utf_8(label):
    for declaration in (
        f'<meta charset="{label}">',
        f'<meta http-equiv="Content-Type" content="text/html; charset={label}">',
    ):
        page = f"<html><head>{declaration}<title>T</title></head><body><p>{TEXT}</p></body></html>"
        assert TEXT in extract(page.encode(), "a.html").text
    if label != "utf-16":
        assert PageLinks(f"<a href='/één'>x</a> {TEXT}".encode(), label).links == ["/één"]


@pytest.mark.parametrize("label", REFUSED[:19])
def test_a_mail_that_names_another_encoding_is_read(label):
    mail = (
        f"Subject: =?{label}?Q?Ketel_caf=C3=A9?= and ketel\nTo: =?{label}*nl?B?w6k=?= <a@b.example>\n"
        f"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n--x\n"
        f"Content-Type: text/plain; charset={label}\nContent-Transfer-Encoding: 8bit\n\n{TEXT}\n--x\n"
        f"Content-Type: text/plain; name*={label}''b%2Etxt\nContent-Disposition: attachment; filename*={label}''a%2Etxt"
        f"\n\nAttached.\n--x\nContent-Type: message/rfc822\n\nSubject: =?{label}?Q?{'=C3=A9' * 50}?= {'long ' * 30}\n"
        f"Content-Type: text/plain; charset*={label}''{label}\n\nInner.\n--x--\n"
    )
    found = extract(mail.encode(), "a.eml")
    assert TEXT in found.text
    assert "ketel" in found.title
    assert [member.name for member in found.members][0] == "a.txt"


@pytest.mark.parametrize("label", ["us-ascii", "utf-8", "iso-8859-1", "gb2312", "koi8-r"])
def test_a_mail_in_a_known_encoding_is_decoded_by_it(label):
    words = "Цена" if label == "koi8-r" else "价格" if label == "gb2312" else "café"
    data = words.encode("utf-8" if label == "us-ascii" else label)
    mail = f"Subject: S\nContent-Type: text/plain; charset={label}\n\n".encode() + data
    assert words in extract(mail, "a.eml").text


@pytest.mark.parametrize("label", [*REFUSED[:12], "cp037", "utf-32", "nonsense"])
def test_xml_that_names_another_encoding_is_read_as_utf_8(label):
    xml = f"<?xml version='1.0' encoding = '{label}' ?><a>é</a>".encode()
    assert find_xml_label(xml) == label
    assert parse_xml(xml).text == parse_xml_of_archive(xml).text == "é"


def test_xml_in_a_known_encoding_or_with_a_mark_is_read():
    for label in ("utf-8", "iso-8859-1", "windows-1252"):
        assert parse_xml(f'<?xml version="1.0" encoding="{label}"?><a>é</a>'.encode(label)).text == "é"
    assert parse_xml('<?xml version="1.0" encoding="utf-16"?><a>é</a>'.encode("utf-16")).text == "é"
    assert parse_xml(b"<a>b</a>").text == "b"


def test_headers_without_labels_stay_as_they_are():
    for header in ("text/plain; charset=utf-8", "a * b = c", "=?= *=", "form-data; name=x", "=?utf-8?Q?a?="):
        assert replace_unknown_encodings(header) == header


@pytest.mark.parametrize(
    ("header", "expected"),
    [("text/html; charset=utf-8", "utf-8"), ('text/html;Charset="idna"', "idna"), ("text/html", "")],
)
def test_the_charset_of_an_answer_is_the_label_that_the_server_names(header, expected):
    assert Response("", 200, {"content-type": header}, b"").charset == expected
