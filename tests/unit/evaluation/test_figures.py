"""Numbers and days in sentences, tables and charts, as the reader's language writes them."""

from datetime import date

import pytest
from django.utils import translation

from evaluation.figures import format_day_and_month, format_fixed, format_percent, format_whole_number

MONTHS = {
    "en": ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
    "nl": ["jan", "feb", "mrt", "apr", "mei", "jun", "jul", "aug", "sep", "okt", "nov", "dec"],
}


@pytest.mark.parametrize(
    ("figure", "english", "dutch"),
    [
        (lambda: format_fixed(0.999, 2), "1.00", "1,00"),
        (lambda: format_fixed(-1234.56, 1), "-1,234.6", "-1.234,6"),
        (lambda: format_fixed(0.0125, 3, signed=True), "+0.013", "+0,013"),
        (lambda: format_fixed(-0.0001, 3, signed=True), "+0.000", "+0,000"),
        (lambda: format_whole_number(1234567.8), "1,234,568", "1.234.568"),
        (lambda: format_percent(0.125, 1), "12.5%", "12,5%"),
        (lambda: format_percent(None), "–", "–"),
    ],
)
def test_numbers_in_both_languages(figure, english, dutch):
    with translation.override("en"):
        assert figure() == english
    with translation.override("nl"):
        assert figure() == dutch


@pytest.mark.parametrize("language", MONTHS)
def test_a_month_has_a_capital_where_the_language_has_one(language):
    with translation.override(language):
        assert [format_day_and_month(date(2026, month, 23)) for month in range(1, 13)] == [
            f"23 {name}" for name in MONTHS[language]
        ]
