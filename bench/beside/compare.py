"""Compare the site with LlamaIndex, Haystack, LangChain and Open WebUI on one folder and its graded questions.

    python -m bench.beside.compare FOLDER QUESTIONS --site http://127.0.0.1:8000 --collection handbook \\
        --python PEERS/bin/python --open-webui http://127.0.0.1:3000

- FOLDER contains text files, which the site has read into the collection.
- QUESTIONS is a file for :mod:`bench.answers.graded`. Only its questions about this folder are asked.
  Follow-up questions, questions about tables and questions without an answer are left out.
- PEERS is an environment with ``llama-index-core llama-index-retrievers-bm25 haystack-ai langchain-community
  langchain-classic rank_bm25``. docs/quality.md says how to set up Open WebUI.

A passage is right if it contains everything that a good answer must contain. Each library gets the site's vectors.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

import httpx2

from bench.answers.graded import GradedQuestion, read_graded_questions
from bench.beside.open_webui import OpenWebUI
from bench.reporting import format_markdown_table
from evaluation.expectations import grade_answer

LEFT_OUT = ("table_lookup", "count", "superlative", "followup")
SUFFIXES = (".md", ".txt", ".rst", ".html")
# For each question, the first SHOWN texts of this site and of each other product are compared. The texts of another
# product are the passages that it finds. The site's texts are its answer, then SHOWN_CHARACTERS characters of each
# passage that is shown with the answer.
SHOWN, SHOWN_CHARACTERS = 3, 900
COLUMNS = ["", "first right", "in its first 900 characters", "right among three", "ms, p50", "characters of the first"]


@dataclass(frozen=True, slots=True)
class PassagesWithTime:
    passages: tuple[str, ...]
    milliseconds: float


def contains_answer(passage: str, question: GradedQuestion) -> bool:
    return not grade_answer(passage, refused=False, expected=question.expected).missing


def search_with_library(name: str, python: str, task: dict[str, object]) -> list[PassagesWithTime]:
    """Run a library in its own environment, and return the passages that it finds for each question.

    Raises: SystemExit, with the end of its error output, if it fails.
    """
    command = [python, "-m", "bench.beside.peers", name]
    done = subprocess.run(command, input=json.dumps(task), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-2000:]}")
    return [PassagesWithTime(tuple(each["passages"]), each["milliseconds"]) for each in json.loads(done.stdout)]


def ask_site(
    site: str, collection: str, questions: Sequence[GradedQuestion], *, as_shown: bool
) -> list[PassagesWithTime]:
    """Ask the site each question, and return the texts that it shows.

    If ``as_shown``, these are the answer and the passages on the answer's page; otherwise, the results of a search.
    """
    found = []
    with httpx2.Client(base_url=site, timeout=60, trust_env=False) as client:
        for question in questions:
            path, body = (
                ("ask", {"question": question.text, "anew": True})
                if as_shown
                else ("search", {"query": question.text, "top_k": SHOWN})
            )
            started = time.perf_counter()
            response = client.post(f"/api/v1/{path}/", json={**body, "collection": collection})
            milliseconds = (time.perf_counter() - started) * 1000
            answer = response.raise_for_status().json()
            if as_shown:
                beside = [each["text"][:SHOWN_CHARACTERS] for each in answer["alternatives"]]
                passages = beside[:SHOWN] if answer["refused"] else [answer["answer"], *beside][:SHOWN]
            else:
                passages = [each["content"] for each in answer["results"]]
            found.append(PassagesWithTime(tuple(passages), milliseconds))
    return found


def summarize_library_results(
    name: str, questions: Sequence[GradedQuestion], found: Sequence[PassagesWithTime]
) -> list[str]:
    pairs = list(zip(questions, found, strict=True))
    first = [each.passages[0] if each.passages else "" for each in found]
    shares = (
        mean(contains_answer(text, question) for question, text in zip(questions, first, strict=True)),
        mean(
            contains_answer(text[:SHOWN_CHARACTERS], question) for question, text in zip(questions, first, strict=True)
        ),
        mean(any(contains_answer(text, question) for text in each.passages) for question, each in pairs),
    )
    milliseconds = median(each.milliseconds for each in found)
    return [name, *(f"{100 * share:.0f} %" for share in shares), f"{milliseconds:.0f}", f"{mean(map(len, first)):.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--site", required=True)
    parser.add_argument("--collection", required=True)
    parser.add_argument("--python", default="", help="The interpreter of the libraries' environment.")
    parser.add_argument("--peers", default="llama_index,haystack,langchain")
    parser.add_argument("--open-webui", default="", help="The address of a running Open WebUI.")
    options = parser.parse_args()
    files = sorted(each for each in options.folder.rglob("*") if each.suffix in SUFFIXES)
    documents = {str(each.relative_to(options.folder)): each.read_text(errors="replace") for each in files}
    questions = [
        each
        for each in read_graded_questions(options.questions)
        if each.corpus == options.folder.name
        and not each.expected.refusal
        and each.kind not in LEFT_OUT
        and not each.after
    ]
    model = httpx2.get(f"{options.site}/v1/models", trust_env=False).raise_for_status().json()["data"]
    embedder = next(each["id"] for each in model if each["name"] == "Embeddings")
    task = {
        "documents": documents,
        "questions": [each.text for each in questions],
        "site": options.site,
        "model": embedder,
    }
    rows = [
        summarize_library_results(
            "this site, as shown", questions, ask_site(options.site, options.collection, questions, as_shown=True)
        ),
        summarize_library_results(
            "this site, passages", questions, ask_site(options.site, options.collection, questions, as_shown=False)
        ),
    ]
    for name in filter(None, options.peers.split(",") if options.python else []):
        rows.append(summarize_library_results(name, questions, search_with_library(name, options.python, task)))
    if options.open_webui:
        peer = OpenWebUI(options.open_webui)
        collection = peer.index(documents)
        rows.append(
            summarize_library_results(
                "open_webui",
                questions,
                [
                    PassagesWithTime(tuple(texts), ms)
                    for texts, ms in (peer.search(collection, each.text) for each in questions)
                ],
            )
        )
    print(f"{len(questions)} questions, {len(documents)} documents, embedder {embedder}")
    print(format_markdown_table(COLUMNS, rows))


if __name__ == "__main__":
    main()
