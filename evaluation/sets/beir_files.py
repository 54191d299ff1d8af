"""Read queries and judgements in BEIR's format. They refer to documents of this site.

Source: Thakur, Reimers, Rücklé, Srivastava, Gurevych, "BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of
Information Retrieval Models", NeurIPS 2021 (Datasets and Benchmarks).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from evaluation.exceptions import UnreadableTestSet
from evaluation.expectations import AnswerExpectations, normalize_lines

QUERIES, JUDGEMENTS = "queries.jsonl", "qrels.tsv"
LARGEST_BYTES = 50 * 2**20
LONGEST_ID = 1000
LARGEST_GRADE = 1000
LONGEST_ANSWER = 1_000_000
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,9}")

Lines = Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class RelevanceJudgement:
    source: str
    grade: int
    where: str


@dataclass(slots=True)
class ImportedQuestion:
    id: str
    text: str
    expected_answer: str = ""
    expected: AnswerExpectations = field(default_factory=AnswerExpectations)
    judged: list[RelevanceJudgement] = field(default_factory=list)

    @property
    def says_what_is_expected(self) -> bool:
        return bool(self.expected_answer or self.expected.must or self.expected.refusal)


def read_questions(queries: bytes, judgements: bytes | None = None) -> list[ImportedQuestion]:
    """Return the queries with a relevant document, and queries that expect a refusal, in file order.

    A query may have "answer", "must", "must_not", "max_chars" and "expects_refusal". Without judgements, all queries
    with an expectation are returned. Raises: UnreadableTestSet, which names the file and the line.
    """
    questions = {question.id: question for question in _read_queries(QUERIES, queries)}
    says_itself = any(question.says_what_is_expected for question in questions.values())
    if judgements is None and not says_itself:
        raise UnreadableTestSet("There are no judgements, and no question says what is expected of its answer.")
    for query, judged in _read_judgements(JUDGEMENTS, judgements or b""):
        if query not in questions:
            continue
        if questions[query].expected.refusal and judged.grade > 0:
            raise UnreadableTestSet(
                f"{judged.where}, judges a document relevant to {query!r}, which the documents are not to answer."
            )
        questions[query].judged.append(judged)
    if judgements is None:
        return [one for one in questions.values() if one.says_what_is_expected]
    relevant = {one.id for one in questions.values() if any(judged.grade > 0 for judged in one.judged)}
    if not relevant:
        raise UnreadableTestSet(f"{JUDGEMENTS} judges no document relevant to any query of {QUERIES}.")
    return [one for one in questions.values() if one.id in relevant or one.expected.refusal]


def read_numbered_lines(name: str, content: bytes) -> Iterator[tuple[str, str]]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableTestSet(f"{name} is not UTF-8 text: {error.reason} at byte {error.start}.") from error
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield f"{name}, line {number}", line.rstrip("\r")


def parse_objects(lines: Lines) -> Iterator[tuple[str, dict[str, object]]]:
    for where, line in lines:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UnreadableTestSet(f"{where}, is not JSON: {error}.") from error
        if not isinstance(row, dict):
            raise UnreadableTestSet(f"{where}, is not a JSON object.")
        yield where, row


def parse_identified_objects(lines: Lines) -> Iterator[tuple[str, str, dict[str, object]]]:
    """Yield the position in the file, the "_id" and the JSON object of each line. An "_id" must be unique."""
    seen: set[str] = set()
    for where, row in parse_objects(lines):
        identifier = row.get("_id")
        if isinstance(identifier, int) and not isinstance(identifier, bool):
            identifier = str(identifier)
        if not isinstance(identifier, str) or not identifier:
            raise UnreadableTestSet(f'{where}, has no "_id".')
        if len(identifier) > LONGEST_ID or make_storable(identifier) != identifier:
            raise UnreadableTestSet(f'{where}: the "_id" is longer than {LONGEST_ID} characters or holds a bad one.')
        if identifier in seen:
            raise UnreadableTestSet(f'{where}: the "_id" {identifier!r} is there a second time.')
        seen.add(identifier)
        yield where, identifier, row


def parse_judgements(lines: Lines) -> Iterator[tuple[str, RelevanceJudgement]]:
    """Yield the query id and the judged document of each line; a heading is skipped."""
    for at, (where, line) in enumerate(lines):
        fields = [field.strip() for field in line.split("\t")]
        if at == 0 and fields[0].lower().replace("_", "-") in {"query-id", "qid"}:
            continue
        if len(fields) != 3 or not all(fields) or not _WHOLE_NUMBER.fullmatch(fields[2]):
            raise UnreadableTestSet(
                f"{where}, is not a judgement: a query's id, a document's source and a whole number, with tabs between."
            )
        yield fields[0], RelevanceJudgement(make_storable(fields[1]), int(fields[2]), where)


def make_storable(text: str) -> str:
    """Return the text without NUL and lone surrogates, which PostgreSQL cannot store."""
    return text.replace("\x00", " ").encode("utf-8", "replace").decode("utf-8")


def _read_queries(name: str, content: bytes) -> Iterator[ImportedQuestion]:
    for where, identifier, row in parse_identified_objects(read_numbered_lines(name, content)):
        text, answer = row.get("text"), row.get("answer") or ""
        expects_refusal = row.get("expects_refusal", False)
        if not isinstance(text, str) or not make_storable(text).strip():
            raise UnreadableTestSet(f'{where}, has no "text", or one that is empty or not a string.')
        if not isinstance(answer, str):
            raise UnreadableTestSet(f'{where}: the "answer" is not a string.')
        if not isinstance(expects_refusal, bool):
            raise UnreadableTestSet(f'{where}: "expects_refusal" is neither true nor false.')
        answer = make_storable(answer).strip()
        expected = read_answer_expectations(where, row, refusal=expects_refusal)
        if expects_refusal and (answer or expected.must or expected.must_not):
            raise UnreadableTestSet(f"{where}, expects an answer and a refusal: it is one or the other.")
        yield ImportedQuestion(identifier, " ".join(make_storable(text).split()), answer, expected)


def read_answer_expectations(where: str, row: Mapping[str, object], *, refusal: bool) -> AnswerExpectations:
    """Return what a JSON object expects of an answer: "must" and "must_not", lists of strings, and "max_chars".

    Raises: UnreadableTestSet.
    """
    lists = {}
    for name in ("must", "must_not"):
        lines = row.get(name) or []
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            raise UnreadableTestSet(f'{where}: "{name}" is not a list of strings.')
        lists[name] = tuple(normalize_lines([make_storable(line) for line in lines]))
    longest = row.get("max_chars")
    if longest is None:
        return AnswerExpectations(lists["must"], lists["must_not"], refusal=refusal)
    if not isinstance(longest, int) or isinstance(longest, bool) or not 0 < longest <= LONGEST_ANSWER:
        raise UnreadableTestSet(f'{where}: "max_chars" is not a whole number from 1 to {LONGEST_ANSWER}.')
    return AnswerExpectations(lists["must"], lists["must_not"], longest, refusal)


def _read_judgements(name: str, content: bytes) -> Iterator[tuple[str, RelevanceJudgement]]:
    seen: set[tuple[str, str]] = set()
    for query, judged in parse_judgements(read_numbered_lines(name, content)):
        if judged.grade > LARGEST_GRADE or len(judged.source) > LONGEST_ID:
            raise UnreadableTestSet(
                f"{judged.where}: a grade is at most {LARGEST_GRADE}, a source {LONGEST_ID} characters."
            )
        if (query, judged.source) in seen:
            raise UnreadableTestSet(f"{judged.where}, judges {judged.source!r} for the query {query!r} a second time.")
        seen.add((query, judged.source))
        yield query, replace(judged, grade=max(0, judged.grade))
