from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

pytestmark = pytest.mark.django_db(transaction=True)

PASSAGES = {
    "valve": "The ball valve weighs 300 grams. The price of the ball valve is 15 euros.",
    "pump": "The MX-9920-W pump weighs 3450 grams. The price of the pump is 210 euros.",
    "cable": "Prices of cables are on request.",
}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    tasks = tmp_path / "tasks.jsonl"
    history = [{"speaker": "user", "text": "How heavy is the ball valve?"}, {"speaker": "agent", "text": "300 grams."}]
    task = {"_id": "c1<::>2", "question": "And its price?", "history": history}
    rows = [
        {**task, "contexts": [{"_id": "valve", "text": PASSAGES["valve"]}]},
        {
            **task,
            "_id": "c2<::>1",
            "history": [],
            "contexts": [{"_id": key, "text": PASSAGES[key]} for key in PASSAGES],
        },
        {**task, "_id": "c3<::>2", "contexts": []},
    ]
    tasks.write_text("".join(json.dumps(row) + "\n" for row in rows))
    folder = tmp_path / "zoo"
    folder.mkdir()
    texts = {f"d{number}": f"The {animal} eats {food}." for number, (animal, food) in enumerate(
        [("lion", "meat"), ("zebra", "grass"), ("seal", "fish"), ("panda", "bamboo")]
    )}  # fmt: skip
    rows = [{"_id": key, "title": "", "text": text} for key, text in texts.items()]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    queries = [
        {"_id": f"q{number}", "text": f"What does the {texts[f'd{number}'].split()[1]} eat?"} for number in range(4)
    ]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries))
    judgements = "".join(f"q{number}\td{number}\t1\n" for number in range(4))
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + judgements)
    return tasks, folder


def test_follow_ups_gain_and_what_stands_alone_loses_nothing(files: tuple[Path, Path]) -> None:
    out = io.StringIO()
    call_command("evaluate_follow_ups", *map(str, files), "--json", stdout=out)
    figures = json.loads(out.getvalue())
    (half,) = (group for group in figures if group.startswith("follow-ups"))
    assert {"half 0", "half 1"} & {half.split(", ")[1]}
    assert figures[half]["with"]["questions"] == 1
    assert figures[half]["with"]["mrr@10"] == 1.0
    assert figures[half]["without"]["mrr@10"] <= 1.0
    assert figures["stand alone"]["with"]["mrr@10"] == figures["stand alone"]["without"]["mrr@10"] == 1.0
    assert figures["stand alone"]["with"]["p50_ms"] > 0


def test_a_file_that_is_missing_is_named(files: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no-tasks"):
        call_command("evaluate_follow_ups", str(tmp_path / "no-tasks"), str(files[1]))
