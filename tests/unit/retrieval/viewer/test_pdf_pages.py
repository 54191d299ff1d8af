import io
import os
from pathlib import Path

import pypdfium2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from retrieval.documents.deletion import forget_page_pictures
from retrieval.documents.extraction import extract
from retrieval.viewer import pdf_pages
from retrieval.viewer.pdf_drawing import extract_letters_and_digits, find_word_range
from retrieval.viewer.pdf_pages import PageNotDrawn, measure_page_layout
from tests.support.pdf_forms import field, form

MANUAL = Path(__file__).parents[4] / "demo" / "parts" / "service-manual.pdf"


def load_picture(source, number, cache, content_hash):
    """Return the picture as the view loads it: cached, or drawn now."""
    data = pdf_pages.load_kept_picture(number, cache, content_hash)
    if data is None:
        data = pdf_pages.draw_picture(source, number, cache, content_hash)
    return data


@given(st.lists(st.sampled_from(["pump", "ﬁlter", "Été", "10", "a"]), min_size=1, max_size=12), st.data())
def test_words_are_found_however_they_are_written(words, data):
    first = data.draw(st.integers(0, len(words) - 1))
    last = data.draw(st.integers(first + 1, len(words)))
    page = "\r\n".join(words)
    found = find_word_range(
        list(page), " - ".join(words[first:last]).upper(), len(extract_letters_and_digits(" ".join(words[:first])))
    )
    assert page[slice(*found)] == "\r\n".join(words[first:last])


@pytest.mark.parametrize(
    ("page", "words", "expected", "found"),
    [
        # Cut at the end of a line.
        ("the termi\ufffe\r\nnal box, the terminal", "terminal box", 0, (4, 19)),
        # The nearest of several places is taken.
        ("pump a pump b pump", "pump", 0, (0, 4)),
        ("pump a pump b pump", "pump", 5, (7, 11)),
        ("pump a pump b pump", "pump", 16, (14, 18)),
        ("a pump", "valve", 0, None),
        ("a pump", " - ", 0, None),
        ("", "valve", 0, None),
    ],
)
def test_words_are_found_where_they_stand(page, words, expected, found):
    assert find_word_range(list(page), words, expected) == found


def test_every_passage_of_a_manual_has_boxes_on_its_page():
    text = extract(MANUAL.read_bytes(), MANUAL.name)
    for page in text.pages:
        words = text.text[page.start : page.end]
        for start in range(0, len(words) - 100, 1800):
            found = measure_page_layout(MANUAL, page.number, words[start : start + 100], words[:start])
            assert found.boxes, (page.number, words[start : start + 100])
            for x, y, width, height in found.boxes:
                assert 0 <= x < x + width <= 10_000
                assert 0 <= y < y + height <= 10_000


def test_values_of_a_form_are_drawn_and_marked(tmp_path):
    file = tmp_path / "form.pdf"
    file.write_bytes(form(field(b"Tx", b"/V (Vermeulen)", (160, 695, 360, 715))))
    [box] = measure_page_layout(file, 1, "Surname: Vermeulen", "").boxes
    assert box[0] < 1_000
    assert box[0] + box[2] > 10_000 * 180 / 612
    drawn = Image.open(io.BytesIO(pdf_pages.draw_picture(file, 1, tmp_path, "form"))).convert("L")
    assert darkest(drawn, 165 / 612, 78 / 792, 220 / 612, 96 / 792) < 100


def darkest(image, x1, y1, x2, y2):
    """Return the darkest of 256 greys in a part of the picture, whose sides are shares of the whole."""
    width, height = image.size
    area = image.crop((round(x1 * width), round(y1 * height), round(x2 * width), round(y2 * height)))
    return int(area.getextrema()[0])


@pytest.mark.parametrize("turn", [0, 90])
def test_boxes_surround_the_ink_of_their_words(tmp_path, turn):
    document = pypdfium2.PdfDocument(MANUAL)
    document[1].set_rotation(turn)
    # The sheet may begin anywhere.
    document[1].set_cropbox(30, 20, 560, 800)
    document.save(tmp_path / "turned.pdf")
    text = extract(MANUAL.read_bytes(), MANUAL.name)
    before = text.text[text.pages[1].start : text.text.index("2.1 Position", text.pages[1].start)]
    (box,) = measure_page_layout(tmp_path / "turned.pdf", 2, "2.1 Position", before).boxes
    image = Image.open(io.BytesIO(load_picture(tmp_path / "turned.pdf", 2, tmp_path, "h"))).convert("L")
    x, y, right, below = (v / 10_000 for v in (box[0], box[1], box[0] + box[2], box[1] + box[3]))
    assert darkest(image, x, y, right, below) < 120
    for around in (
        (x - 0.01, y, x, below),
        (x, y - 0.01, right, y),
        (right, y, right + 0.01, below),
        (x, below, right, below + 0.01),
    ):
        assert darkest(image, *around) > 200


def test_a_picture_is_drawn_once(tmp_path):
    first = load_picture(MANUAL, 1, tmp_path / "kept", "hash")
    assert Image.open(io.BytesIO(first)).size[0] in (1400, 1401)
    assert load_picture(Path("/nowhere.pdf"), 1, tmp_path / "kept", "hash") == first
    forget_page_pictures(tmp_path / "kept", "hash")
    with pytest.raises(PageNotDrawn):
        load_picture(Path("/nowhere.pdf"), 1, tmp_path / "kept", "hash")


def test_the_pictures_nobody_asked_for_lately_are_dropped(tmp_path, monkeypatch):
    monkeypatch.setattr(pdf_pages, "_MOST_PICTURES", 3)
    for age, name in enumerate("edcba"):
        (tmp_path / f"{name}-1.webp").write_bytes(b"x")
        os.utime(tmp_path / f"{name}-1.webp", (1000 + age, 1000 + age))
    load_picture(MANUAL, 1, tmp_path, "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a-1.webp", "new-1.webp"]


@pytest.mark.parametrize("content", [b"", b"no PDF at all", MANUAL.read_bytes()[:2000]])
def test_a_damaged_file_is_told(tmp_path, content):
    path = tmp_path / "x.pdf"
    path.write_bytes(content)
    with pytest.raises(PageNotDrawn, match="cannot be (opened|read)"):
        measure_page_layout(path, 1)


@pytest.mark.parametrize("number", [0, 11, -1])
def test_a_page_that_is_not_there_is_told(number):
    with pytest.raises(PageNotDrawn, match="no page"):
        measure_page_layout(MANUAL, number)
