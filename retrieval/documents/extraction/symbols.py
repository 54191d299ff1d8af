"""Map characters of the fonts Symbol, Wingdings and Wingdings 2 to Unicode."""

from __future__ import annotations

# Characters of the font Symbol for the codes from 0x20 and from 0xA0. A space means that Unicode lacks the character.
_SYMBOL = " !∀#∃%&∋()*+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_ αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"
_SYMBOL_MORE = "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…   ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑         〉∫⌠ ⌡"
_SIGNS = {**dict(enumerate(_SYMBOL, start=0x20)), **dict(enumerate(_SYMBOL_MORE, start=0xA0))}
_DINGS = {0x6F: "☐", 0xA8: "☐", 0xFD: "☒", 0xFE: "☒", 0xFC: "✓", 0xFB: "✗", 0xE0: "→", 0xE8: "→", 0x9F: "•", 0xA7: "•"}
_DINGS_2 = {0x2A: "☐", 0xA3: "☐", 0x52: "☒", 0x53: "☒", 0x54: "☒", 0x50: "✓", 0x4F: "✗"}
_FONTS = {"symbol": _SIGNS, "wingdings": _DINGS, "wingdings 2": _DINGS_2}


def is_symbol_font(font: str) -> bool:
    return font.casefold() in _FONTS


def show_symbol(font: str, code: int) -> str:
    """Return the Unicode character for a code of the font; empty if there is none."""
    code = code & 0xFF if code >= 0xF000 else code
    return _FONTS.get(font.casefold(), {}).get(code, " " if code == 0x20 else "")
