"""Numbers, days and times as Excel shows them."""

import datetime as dt

import pytest

from retrieval.documents.extraction.number_formats import show_value

MOMENT = dt.datetime(2026, 3, 5, 14, 7, 9, 250_000)


@pytest.mark.parametrize(
    ("value", "number_format", "words"),
    [
        # Places, decimals, and words around them.
        (1234, "00000", "01234"),
        (7001, '"ACC-"000000', "ACC-007001"),
        (31201234567, '"+"0', "+31201234567"),
        (612345678, "000-00-0000", "612-34-5678"),
        (5551234, "###-####", "555-1234"),
        (1234.5, '_-* #,##0.00\\ "€"_-;-* #,##0.00', "1234.50 €"),
        (1234.567, "$#,##0.00", "$1234.57"),
        (1250, "[$€-413] #,##0.00", "€ 1250.00"),
        (3.4, '0.0" kg"', "3.4 kg"),
        (2.5, "0.###", "2.5"),
        (2, "0.###", "2"),
        (2, "0.0##", "2.0"),
        (2.675, "0.00", "2.68"),
        (0.5, ".00", ".50"),
        (0.5, "#.00", ".50"),
        (7, "General", "7"),
        (7, 'General" pieces"', "7 pieces"),
        (0.1 + 0.2, "General", "0.3"),
        (0.00001234, "General", "0.00001234"),
        (1e21, "0", "1000000000000000000000"),
        (5, '"100 x "0', "100 x 5"),
        # Thousands, hundredths, fractions, powers of ten.
        (1250000, '#,##0,"k"', "1250k"),
        (1250000, '#,##0.0,,"M"', "1.3M"),
        (900000, '#,##0.0,,"M"', "0.9M"),
        (0.125, "0.0%", "12.5%"),
        (0.125, "0%", "13%"),
        (12, '0"%"', "12%"),
        (1.5, "# ?/?", "1 1/2"),
        (0.75, "# ?/?", "3/4"),
        (2, "# ?/?", "2"),
        (0.3125, "# ??/16", "5/16"),
        (1.5, '# ?/?" in"', "1 1/2 in"),
        (12345, "0.00E+00", "1.23E+04"),
        (0.00012, "0.0E-0", "1.2E-4"),
        (12345, "##0.0E+0", "12.3E+3"),
        # Sections: negative numbers have a minus, also where they are red or in brackets.
        (-1250.5, "#,##0.00;(#,##0.00)", "-1250.50"),
        (-1250.5, "#,##0.00;[Red]#,##0.00", "-1250.50"),
        (-1250.5, "#,##0.00;[Red]-#,##0.00", "-1250.50"),
        (-0.2, "0%", "-20%"),
        (-5, '0;"debt "0', "debt 5"),
        (0, '0.00;-0.00;"none"', "none"),
        (0, "0.00;-0.00;-", "0.00"),
        (0, '_("$"* #,##0_);_("$"* (#,##0);_("$"* "-"??_);_(@_)', "$ 0"),
        (-5, '_("$"* #,##0_);_("$"* (#,##0);_("$"* "-"??_);_(@_)', "-$ 5"),
        (-5, "0.00;@", "-5.00"),
        (0, '"yes";"no";@', "yes"),
        (5, ";;;", ""),
        (-0.001, "0.00", "0.00"),
        (1, '[=1]"yes";[=0]"no";0', "yes"),
        (0, '[=1]"yes";[=0]"no";0', "no"),
        (3, '[=1]"yes";[=0]"no";0', "3"),
        (50, '[<100]0" g";0.0,"kg"', "50 g"),
        (2500, '[<1000]0" g";0.0," kg"', "2.5 kg"),
        (-3, "[>100]0;[<0]0;0", "-3"),
        # Words, truth and errors.
        ("pump", '0;-0;0;@" (type)"', "pump (type)"),
        ("pump", '@" (type)"', "pump (type)"),
        ("pump", "0.00", "pump"),
        ("", '@" (type)"', ""),
        ("00123", "@", "00123"),
        (123, "@", "123"),
        (True, "General", "TRUE"),
        # Whole days are ISO 8601, whatever the order; parts of a day and of a date are shown unchanged.
        (MOMENT, "mm-dd-yy", "2026-03-05"),
        (MOMENT, "dd-mmm-yy hh:mm", "2026-03-05 14:07"),
        (MOMENT, "dddd d mmmm yyyy", "Thursday 2026-03-05"),
        (MOMENT, "[$-413]d mmm yyyy;@", "2026-03-05"),
        (MOMENT, "h:mm dd/mm/yyyy", "2026-03-05 14:07"),
        (MOMENT, "mmm yyyy", "Mar 2026"),
        (MOMENT, "mmmm", "March"),
        (MOMENT, "yyyy", "2026"),
        (MOMENT, "d mmm", "5 Mar"),
        (MOMENT, "yyyy-mm", "2026-03"),
        (MOMENT, "h:mm AM/PM", "2:07 PM"),
        (MOMENT, "hh:mm:ss.00", "14:07:09.25"),
        (MOMENT, "mm:ss", "07:09"),
        (MOMENT, "", "2026-03-05 14:07"),
        (dt.date(2026, 3, 5), "General", "2026-03-05"),
        (46086, "dd/mm/yyyy", "2026-03-05"),
        (dt.time(9, 30), "hh:mm", "09:30"),
        (dt.timedelta(hours=26, minutes=5), "[h]:mm", "26:05"),
        (1.25, "[hh]:mm:ss", "30:00:00"),
        (dt.timedelta(minutes=90), "[mm]", "90"),
        (0.5, "h:mm", "12:00"),
        # Letters of words are no parts of a date.
        (3, '0 "days"', "3 days"),
        (3, "0\\ \\m", "3 m"),
        (float("nan"), "0", "nan"),
        (-800000.0, "d-m-yyyy", "-800000"),
        (10**40, "d-m-yyyy", "1" + "0" * 40),
    ],
)
def test_a_value_is_shown_as_its_format_says(value, number_format, words):
    assert show_value(value, number_format) == words
