import json

import pytest

from bench.tables.questions import is_right, read_questions, split_into_halves


@pytest.mark.parametrize(
    ("stated", "expected", "right"),
    [
        (["1,400"], ["1400"], True),
        (["Karel Hromádka (Czechoslovakia)"], ["Karel Hromadka"], True),
        (['"Zero"'], ["zero"], True),
        (["4 May 1943"], ["May 4, 1943"], True),
        (["Peru", "Chile"], ["Chile", "Peru"], True),
        (["Peru"], ["Chile", "Peru"], False),
        (["2"], ["2.5"], False),
    ],
)
def test_values_are_compared_as_numbers_days_and_sets(stated, expected, right):
    assert is_right(stated, expected) is right


def test_every_other_table_judges(tmp_path):
    rows = [{"id": str(at), "question": "q", "table": f"t{at}", "answers": ["1"]} for at in range(4)]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = split_into_halves(read_questions(tmp_path))
    assert {table.name: half for table, half in found.items()} == {
        "t0.csv": "shaping",
        "t1.csv": "judging",
        "t2.csv": "shaping",
        "t3.csv": "judging",
    }
