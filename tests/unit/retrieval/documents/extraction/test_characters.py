"""Text, mails and names in archives, in encodings with a wrong label or none."""

import base64
import io
import struct
import zipfile
import zlib

import pytest

from retrieval.documents.extraction import extract
from retrieval.documents.extraction.decoding import decode

WITHOUT_LABEL = {
    "cp932": ["品番,倉庫,在庫\nA-17,大阪,420\nB-03,名古屋,15\n", "会議は三月十四日の午後に大阪の本社で行われます。"],
    "euc_jp": ["会議は三月十四日の午後に大阪の本社で行われます。受付は九時からです。"],
    "iso2022_jp": ["会議は三月十四日の午後に大阪の本社で行われます。"],
    "gb18030": ["姓名,部门\n王芳,财务部\n李强,人事部\n", "名称,价格\n水泵,120\n"],
    "big5": ["姓名,部門\n王芳,財務部\n李強,人事部\n", "會議將於三月十四日下午在臺北總部舉行。"],
    "cp949": ["이름,부서\n김철수,재무부\n박영희,인사부\n"],
    "cp1251": ["Имя;Город;Телефон\nСергей;Казань;5512\n", "Цена\nНасос;120\n"],
    "koi8_r": ["Имя;Город;Телефон\nСергей;Казань;5512\n", "Заседание состоится 14 марта в Москве."],
    "cp866": ["Имя;Город;Телефон\nСергей;Казань;5512\n"],
    "cp1253": ["Όνομα;Πόλη;Τηλέφωνο\nΓιώργος;Αθήνα;5512\n"],
    "cp1250": ["Jméno;Město;Telefon\nŘehoř Dvořák;Plzeň;377\nŽaneta Šťastná;Ústí nad Labem;475\n"],
    "cp1252": ["Naam;Plaats;Prijs\nJosé;Curaçao;€ 12\n", "Straße;Größe\nMüller;äöü\n", "où est la bière – “oui”"],
    "mac_roman": ["Name;City\nJürgen Müller;Köln\nFrançois;Orléans\n"],
    "iso8859_15": ["Prix;Nom\n5 €;Œuvre\n7 €;Cœur\n"],
    "cp1255": ["הפגישה תתקיים ביום ארבעה עשר במרץ בתל אביב."],
    "cp1256": ["سيعقد الاجتماع في الرابع عشر من مارس في القاهرة."],
    "cp1257": ["Susirinkimas vyks kovo 14 dieną Vilniuje. Prašome užsiregistruoti iš anksto, ačiū."],
    "cp874": ["การประชุมจะจัดขึ้นในวันที่สิบสี่มีนาคมที่กรุงเทพ"],
}


@pytest.mark.parametrize(("codec", "text"), [(codec, text) for codec, texts in WITHOUT_LABEL.items() for text in texts])
def test_text_in_an_encoding_that_nothing_names_is_read(codec, text):
    assert decode(text.encode(codec), "a.csv") == text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ('A, "B, C", D\n1, 2, 3\n4, 5, 6\n', "A: 1; B, C: 2; D: 3\nA: 4; B, C: 5; D: 6"),
        ('id,text\n1,"a \\"b\\" c, d"\n2,e\n', 'id: 1; text: a "b" c, d\nid: 2; text: e'),
        ('Name,Note\nAnn,"open\nBob,ok\n', "Name: Ann; Note: open\nName: Bob; Note: ok"),
        ('Part;Code\nBolt;="00123"\nNut;"=""00124"""\n', "Part: Bolt; Code: 00123\nPart: Nut; Code: 00124"),
        ('"id,""full name"",city"\n"1,""Bos, Ann"",Delft"\n', "id: 1; full name: Bos, Ann; city: Delft"),
        ('"Name"\n"Bos, Ann"\n"Smit, Bob"\n', "Name\n\nBos, Ann\n\nSmit, Bob"),
        ('"Well, yes."\n"No, it is, not."\n', "Well, yes.\n\nNo, it is, not."),
        ('"Well,\nyes."\n"No,\nnot"\n', "Well,\nyes.\n\nNo,\nnot"),
        ('"id;name"\n"1;Ann"\n"2;Bob"\n', "id: 1; name: Ann\nid: 2; name: Bob"),
        ("A,B\n1,2\n3,4\n\nC,D\nx,5\ny,6\n", "A: 1; B: 2\nA: 3; B: 4\n\nC: x; D: 5\nC: y; D: 6"),
    ],
)
def test_quotation_marks_and_empty_lines_in_tables(source, text):
    assert extract(source.encode(), "a.csv").text.strip() == text


def test_words_beside_inner_elements_of_xml_are_read():
    xml = b'<?xml version="1.0"?><a><p n="5">The <b>gate</b> opens <!-- x -->at <i>9</i>.</p><q>\n <r>One</r>\n</q></a>'
    assert extract(xml, "a.unknown").text == "n: 5\np: The gate opens at 9.\nr: One\n"


def test_xml_and_encoded_data_under_an_unknown_name():
    xml = b'<?xml version="1.0"?><list><item id="5"><title>Chair</title></item></list>'
    assert extract(xml, "a.unknown").text == "id: 5\ntitle: Chair\n"
    code = b"\n  ".join([b"TVqQAAMAAAAEAAAA/8AALgAAAA" * 3] * 5)
    for xml, text in (
        (b"<p><a>Words.</a><image>\n  %s\n</image><b>More.</b></p>", "a: Words.\nimage: \nb: More.\n"),
        (b"<p>Words. <image>\n  %s\n  AAAA==</image> More.</p>", "p: Words.  More.\n"),
    ):
        read = extract(b'<?xml version="1.0"?>' + xml % code, "a.unknown")
        assert (read.text, read.left_out[0].kind) == (text, "encoded")
    encoded = extract(b"Words.\n" + b"TVqQAAMAAAAEAAAA/8AALgAAAA" * 20 + b"\n", "a.unknown")
    assert (encoded.text, encoded.left_out[0].kind) == ("Words.\n\n", "encoded")


def page(label, text):
    return f'<html><head><meta charset="{label}"><title>T</title></head><body><p>{text}</p></body></html>'


@pytest.mark.parametrize(
    ("label", "codec", "text"),
    [
        ("iso-8859-1", "cp1252", "€ 17 – that’s for “adults”"),
        ("us-ascii", "cp1252", "café – €"),
        ("gb2312", "gb18030", "董事长朱镕基"),
        ("shift_jis", "cp932", "株式会社髙橋①"),
        ("euc-kr", "cp949", "똠방각하"),
        # A page that can be read as far as its label is UTF-16 is none.
        ("utf-16", "utf-8", "Größe"),
        # UTF-8 under another label makes no words there.
        ("windows-1251", "utf-8", "Café kostet 12 € für Schüler"),
        ("iso-8859-1", "utf-8", "Größe – €"),
        ("gb2312", "utf-8", "董事长朱镕基"),
    ],
)
def test_the_label_of_a_page_means_what_browsers_take_it_for(label, codec, text):
    assert text in extract(page(label, text).encode(codec), "a.html").text


def test_a_page_with_a_few_damaged_bytes_is_read_by_its_label():
    data = (
        page("shift_jis", "会議は三月十四日の午後に大阪の本社で行われます。" * 5)
        .encode("cp932")
        .replace(b"</p>", b"\x81</p>")
    )
    assert "会議は三月十四日の午後に大阪の本社で行われます。" in extract(data, "a.html").text


def test_a_label_from_outside_counts_more_than_that_of_the_page():
    assert "Насос" in decode(page("windows-1252", "Насос").encode("cp1251"), "a.html", html=True, label="windows-1251")


def word(text, codec, label=""):
    data = text.encode(codec) if isinstance(text, str) else text
    return f"=?{label or codec}?B?{base64.b64encode(data).decode()}?="


HALVES = "über".encode()
SUBJECTS = [
    (word(HALVES[:1], "utf-8") + "\r\n " + word(HALVES[1:], "utf-8"), "über"),
    (word("Café", "utf-8") + word(" bar", "utf-8"), "Café bar"),
    (word("Café", "utf-8") + " " + word(" bar", "utf-8"), "Café bar"),
    ("=?iso-8859-1?Q?Caf=E9_=80?=", "Café €"),
    ("=?utf-8*en?Q?Caf=C3=A9?=", "Café"),
    (word("会議のお知らせ", "iso2022_jp", "ISO-2022-JP"), "会議のお知らせ"),
    (word("①会議", "cp932", "Shift_JIS"), "①会議"),
    (word("①会議", "cp932"), "①会議"),
    (word("会议镕", "gbk", "cp936"), "会议镕"),
    (word("회의", "cp949", "ks_c_5601-1987"), "회의"),
    ("Re: " + word("Café", "utf-8") + " [1]", "Re: Café [1]"),
]


@pytest.mark.parametrize(("subject", "title"), SUBJECTS)
def test_encoded_words_of_a_mail_are_read(subject, title):
    mail = f"From: a@b.example\r\nSubject: {subject}\r\nContent-Type: text/plain\r\n\r\nHello there\r\n"
    assert extract(mail.encode(), "a.eml").title == title


@pytest.mark.parametrize("codec", ["utf-8", "cp1252"])
def test_letters_in_a_header_that_are_not_encoded_are_read(codec):
    mail = (
        "From: a@b.example\r\nSubject: Café ö\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n"
        "--x\r\nContent-Type: text/plain\r\n\r\nHello\r\n--x\r\nContent-Type: text/plain\r\n"
        'Content-Disposition: attachment; filename="Bürö.txt"\r\n\r\nAttached.\r\n--x--\r\n'
    )
    extracted = extract(mail.encode(codec), "a.eml")
    assert (extracted.title, [member.name for member in extracted.members]) == ("Café ö", ["Bürö.txt"])


def archive_of(names, extra=b""):
    """Return a ZIP archive that does not declare the encoding of its names."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for at, name in enumerate(names):
            info = zipfile.ZipInfo(f"{at}".rjust(len(name), "~"))
            info.extra = extra
            archive.writestr(info, f"Words of file {at}")
    data = out.getvalue()
    for at, name in enumerate(names):
        data = data.replace(f"{at}".rjust(len(name), "~").encode(), name)
    return data


NAMES = {
    "utf-8": ["Büro/Öffnungszeiten.txt", "会議.txt"],
    "cp437": ["Notiz_ä.txt", "Größe ÄÖÜ.txt"],
    "cp850": ["Ørsted å.txt", "Ação.txt"],
    "cp1252": ["Café.txt", "naïve coördinatie.txt"],
    "cp932": ["報告書.txt", "会議の資料.txt"],
    "gb18030": ["会议纪要.txt", "财务报告.txt"],
    "big5": ["會議紀錄.txt", "財務報告書.txt"],
    "cp949": ["회의록.txt", "재무 보고서.txt"],
    "cp866": ["Отчёт.txt", "Протокол заседания.txt"],
    "cp1251": ["Отчёт.txt", "Протокол заседания.txt"],
}


@pytest.mark.parametrize("codec", NAMES)
def test_names_in_an_archive_are_read_in_the_encoding_that_they_are_in(codec):
    data = archive_of([name.encode(codec) for name in NAMES[codec]])
    assert [member.name for member in extract(data, "a.zip").members] == NAMES[codec]


def test_the_name_in_the_extra_field_and_the_mark_of_utf_8_count():
    name = "Łódź.txt"
    raw = name.encode("cp852")
    field = struct.pack("<BI", 1, zlib.crc32(raw)) + name.encode()
    data = archive_of([raw], struct.pack("<HH", 0x7075, len(field)) + field)
    assert [member.name for member in extract(data, "a.zip").members] == [name]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("Ωμ.txt", "Words")
    assert [member.name for member in extract(out.getvalue(), "a.zip").members] == ["Ωμ.txt"]
