"""Style sheets take colours, sizes and typefaces from tokens.css, and the typefaces stay small."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib import admin

OF_ADMIN = Path(admin.__file__).parent / "static/admin/css/base.css"
TOKENS = settings.BASE_DIR / "ragsite/static/ragsite/tokens.css"
# Swagger UI has colours of its own, which api_docs.css only darkens.
_OTHERS = ("tokens.css", "api_docs.css")
SHEETS = sorted(
    str(sheet.relative_to(settings.BASE_DIR))
    for app in ("ragsite", "core", "retrieval", "chat", "evaluation")
    for sheet in (settings.BASE_DIR / app).glob("static/**/*.css")
    if sheet.name not in _OTHERS
)
# A printed page and a code for cameras are white in every look.
_WHITE = re.compile(r"^(\.printed-page|\.sign-in \.qr|  mark \{)")
_COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b|\brgba?\(|\bhsla?\(")
_SIZE = re.compile(r"(?:font-size|border-radius): [^;}]*\d(?:rem|px)")


@pytest.mark.parametrize("path", SHEETS)
def test_a_style_sheet_has_no_colours_and_sizes_of_its_own(path):
    lines = (settings.BASE_DIR / path).read_text().splitlines()
    assert not [line for line in lines if _COLOUR.search(re.sub(r"url\([^)]*\)", "", line)) and not _WHITE.match(line)]
    assert not [line for line in lines if _SIZE.search(line)]


@pytest.mark.parametrize("path", SHEETS)
def test_every_property_that_is_used_is_declared(path):
    css = (settings.BASE_DIR / path).read_text()
    declared = set(re.findall(r"(--[\w-]+):", TOKENS.read_text() + OF_ADMIN.read_text() + css))
    used = set(re.findall(r"var\((--[\w-]+)\)", css))
    assert used <= declared | {"--ground"}


def test_the_typefaces_are_shipped_with_their_licences_and_small():
    fonts = TOKENS.parent / "fonts"
    named = set(re.findall(r'url\("fonts/([^"]+)"\)', TOKENS.read_text()))
    files = {each.name: each.stat().st_size for each in fonts.glob("*.woff2")}
    assert set(files) == named
    assert sum(files.values()) <= 120_000
    assert len(list(fonts.glob("*-OFL.txt"))) == 2
