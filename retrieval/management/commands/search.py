from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandError

from core.dataclass_json import to_json
from core.exceptions import RagsiteError
from retrieval.management.prepared import MigratedDatabaseCommand
from retrieval.rights.search_filters import build_unrestricted_filters
from retrieval.search.pipeline import search
from retrieval.search.trace import Hit, SearchTrace, StageStatus, convert_hit_to_json
from retrieval.types import SILENT, SearchMethod


class Command(MigratedDatabaseCommand):
    help = "Search the documents and explain the ranking."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("question")
        parser.add_argument("--collection", default="", help="Short name of the only collection to search.")
        parser.add_argument("--method", default="default", choices=["default", *SearchMethod])
        parser.add_argument("--top-k", type=int, default=None)
        parser.add_argument("--json", action="store_true", help="Print one JSON document and nothing else.")

    def handle(self, *args: Any, **options: Any) -> None:
        method = None if options["method"] == "default" else SearchMethod(options["method"])
        try:
            result = search(
                options["question"],
                build_unrestricted_filters(options["collection"]),
                method=method,
                top_k=options["top_k"],
            )
        except RagsiteError as error:
            raise CommandError(str(error)) from error
        trace = result.trace
        if options["json"]:
            printed = {"results": [convert_hit_to_json(hit) for hit in result.hits], "trace": to_json(trace)}
            self.stdout.write(json.dumps(printed, ensure_ascii=False))
        else:
            self._explain(result.hits, trace)

    def _explain(self, hits: Sequence[Hit], trace: SearchTrace) -> None:
        if trace.reformulation is not None and trace.reformulation.changed:
            self.stdout.write(
                f'searched for "{trace.query}" ({trace.reformulation.reason}, by {trace.reformulation.by})'
            )
        self.stdout.write(
            f"{trace.search_method}{f' by profile {trace.profile}' if trace.profile else ''}, "
            f"class {trace.query_class} ({trace.rule}), "
            f"weights vector {trace.weights.vector:g} lexical {trace.weights.lexical:g}"
        )
        for retriever in trace.retrievers:
            detail = (
                f": {retriever.error}"
                if retriever.error
                else f", {retriever.returned} passages in {retriever.milliseconds:.1f} ms"
            )
            if retriever.status is not StageStatus.OFF:
                self.stdout.write(f"{retriever.retriever} {retriever.status}{detail}")
            for typed, meant in retriever.expansions.items():
                self.stdout.write(f"    {typed}: not in the documents; {', '.join(meant)} instead")
            for typed in retriever.unknown_words:
                if typed not in retriever.expansions:
                    self.stdout.write(f"    {typed}: not in the documents")
        if trace.rerank is not None:
            detail = f": {trace.rerank.error}" if trace.rerank.error else f", {trace.rerank.judged} passages"
            self.stdout.write(f"{trace.rerank.reranker} {trace.rerank.status}{detail}")
        for hit in hits:
            candidate = hit.candidate
            ranks = "  ".join(
                f"{retriever} #{score.rank if score.rank is not None else '-'}"
                f" ({'-' if score.score is None else f'{score.score:.3f}'}) -> {score.contribution:+.4f}"
                for retriever, score in candidate.retrievers.items()
                if score != SILENT
            )
            added = {"both retrievers": candidate.bonus, **{each.name: each.contribution for each in candidate.boosts}}
            if candidate.rerank is not None:
                added[f"rerank (was #{candidate.rerank.rank_before})"] = candidate.rerank.contribution
            more = "".join(f"  {name} {contribution:+.4f}" for name, contribution in added.items() if contribution)
            passage = hit.passage
            place = " › ".join(filter(None, [passage.document_title, passage.section]))
            page = f", {passage.page_name}" if passage.page else ""
            self.stdout.write(f"\n{hit.rank:2}. {hit.score:.4f}  {place}{page}\n    {ranks}{more}")
            for each in candidate.searches:
                self.stdout.write(f'    "{each.query}": #{each.rank or "-"} ({each.score:.4f}) x {each.weight:g}')
            if candidate.matched_terms:
                self.stdout.write(f"    terms: {', '.join(candidate.matched_terms)}")
            self.stdout.write(f"    {' '.join(passage.content.split())[:200]}")
        stages = ", ".join(f"{stage} {milliseconds:.1f}" for stage, milliseconds in trace.timings_ms.items())
        self.stdout.write(f"\nmilliseconds: {stages}")
