"""Queries and judgements in BEIR's form, without a corpus: that is the site's own documents. PURE.

Unlike bench.beir, which reads a whole test set from a folder, this reads files that somebody uploaded, and keeps
the line of each judgement, so that one of a document that the site does not have can be pointed at.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from evaluation.exceptions import UnreadableTestSet

QUERIES = "queries.jsonl"
# In this order, as in bench.beir: the first that is there counts.
JUDGEMENTS = ("qrels.tsv", "qrels.dev.tsv", "qrels/test.tsv", "qrels/dev.tsv")
LARGEST_BYTES = 50 * 2**20
LONGEST_ID = 1000
LARGEST_GRADE = 1000
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Judged:
    """A document's source, its grade, and where the file says so."""

    source: str
    grade: int
    where: str


@dataclass(slots=True)
class ImportedQuestion:
    id: str
    text: str
    expected_answer: str = ""
    expects_refusal: bool = False
    judged: list[Judged] = field(default_factory=list)


def read_questions(files: Mapping[str, bytes], judgements: str = "") -> list[ImportedQuestion]:
    """The queries with a document judged relevant, and those that expect a refusal, in the order of their file.

    ``files`` are contents by name or path; `queries.jsonl` is one of them, and ``judgements`` names the other, which is
    else the first of JUDGEMENTS that is there. A query may hold an expected "answer", or "expects_refusal": true when
    the documents do not answer it; where queries do, there need be no judgements, and then the queries that do are all.
    With judgements, queries without one are left out, and judgements without a query: files for a split share the
    queries of the whole. Raises: UnreadableTestSet, naming the file and the line.
    """
    queries = _named(files, QUERIES)
    if queries is None:
        raise UnreadableTestSet(f"There is no {QUERIES} among the files.")
    names = [judgements] if judgements else list(JUDGEMENTS)
    found = next((named for name in names if (named := _named(files, name)) is not None), None)
    questions = {question.id: question for question in _queries(*queries)}
    says_itself = any(question.expected_answer or question.expects_refusal for question in questions.values())
    if found is None and (judgements or not says_itself):
        raise UnreadableTestSet(f"There are no judgements: none of {', '.join(names)} is among the files.")
    for query, judged in _judgements(*found) if found is not None else ():
        if query not in questions:
            continue
        if questions[query].expects_refusal and judged.grade > 0:
            raise UnreadableTestSet(
                f"{judged.where}, judges a document relevant to {query!r}, which the documents are not to answer."
            )
        questions[query].judged.append(judged)
    if found is None:
        return [one for one in questions.values() if one.expected_answer or one.expects_refusal]
    relevant = {one.id for one in questions.values() if any(judged.grade > 0 for judged in one.judged)}
    if not relevant:
        raise UnreadableTestSet(f"{found[0]} judges no document relevant to any query of {queries[0]}.")
    return [one for one in questions.values() if one.id in relevant or one.expects_refusal]


def read_archive(content: bytes) -> dict[str, bytes]:
    """The files of a ZIP archive by their paths; a corpus is left out. Raises: UnreadableTestSet."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            wanted = [
                one for one in archive.infolist() if not one.is_dir() and one.filename.endswith((QUERIES, ".tsv"))
            ]
            if sum(one.file_size for one in wanted) > LARGEST_BYTES:
                raise UnreadableTestSet(f"The archive unpacks to more than {LARGEST_BYTES // 2**20} MiB.")
            return {one.filename: archive.read(one) for one in wanted}
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, OSError, zlib.error) as error:
        raise UnreadableTestSet(f"The file is not a ZIP archive that can be read: {error}.") from error


def _named(files: Mapping[str, bytes], name: str) -> tuple[str, bytes] | None:
    """The file of this name, at the top or within one folder that holds all."""
    for path, content in files.items():
        parts = PurePosixPath(path).parts
        if "/".join(parts) == name or "/".join(parts[1:]) == name:
            return path, content
    return None


def _lines(name: str, content: bytes) -> Iterator[tuple[str, str]]:
    """Where each line stands that is not blank, and the line."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableTestSet(f"{name} is not UTF-8 text: {error.reason} at byte {error.start}.") from error
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield f"{name}, line {number}", line.rstrip("\r")


def _queries(name: str, content: bytes) -> Iterator[ImportedQuestion]:
    seen: set[str] = set()
    for where, line in _lines(name, content):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise UnreadableTestSet(f"{where}, is not JSON: {error}.") from error
        if not isinstance(row, dict):
            raise UnreadableTestSet(f"{where}, is not a JSON object.")
        identifier, text, answer = row.get("_id"), row.get("text"), row.get("answer") or ""
        expects_refusal = row.get("expects_refusal", False)
        if isinstance(identifier, int) and not isinstance(identifier, bool):
            identifier = str(identifier)
        if not isinstance(identifier, str) or not identifier or len(identifier) > LONGEST_ID:
            raise UnreadableTestSet(f'{where}, has no "_id", or one longer than {LONGEST_ID} characters.')
        if identifier in seen:
            raise UnreadableTestSet(f'{where}: the "_id" {identifier!r} is there a second time.')
        if not isinstance(text, str) or not _storable(text).strip():
            raise UnreadableTestSet(f'{where}, has no "text", or one that is empty or not a string.')
        if not isinstance(answer, str):
            raise UnreadableTestSet(f'{where}: the "answer" is not a string.')
        if not isinstance(expects_refusal, bool):
            raise UnreadableTestSet(f'{where}: "expects_refusal" is neither true nor false.')
        answer = _storable(answer).strip()
        if answer and expects_refusal:
            raise UnreadableTestSet(f'{where}, has an "answer" and expects a refusal: it is one or the other.')
        seen.add(identifier)
        yield ImportedQuestion(
            _storable(identifier), " ".join(_storable(text).split()), answer, expects_refusal=expects_refusal
        )


def _judgements(name: str, content: bytes) -> Iterator[tuple[str, Judged]]:
    seen: set[tuple[str, str]] = set()
    for at, (where, line) in enumerate(_lines(name, content)):
        fields = [one.strip() for one in line.split("\t")]
        if at == 0 and fields[0].lower().replace("_", "-") in {"query-id", "qid"}:
            continue
        if len(fields) != 3 or not all(fields) or not _WHOLE_NUMBER.fullmatch(fields[2]):
            raise UnreadableTestSet(
                f"{where}, is not a judgement: a query's id, a document's source and a whole number, with tabs between."
            )
        query, source, grade = fields[0], _storable(fields[1]), max(0, int(fields[2]))
        if grade > LARGEST_GRADE or len(source) > LONGEST_ID:
            raise UnreadableTestSet(f"{where}: a grade is at most {LARGEST_GRADE}, a source {LONGEST_ID} characters.")
        if (query, source) in seen:
            raise UnreadableTestSet(f"{where}, judges {source!r} for the query {query!r} a second time.")
        seen.add((query, source))
        yield query, Judged(source, grade, where)


def _storable(text: str) -> str:
    return text.replace("\x00", " ").encode("utf-8", "replace").decode("utf-8")
