from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError
from django.utils import timezone

from core.key_limits import KeyScope
from ragsite.accounts.keys import issue_key
from ragsite.models.api_key import check_rate
from retrieval.management.prepared import MigratedDatabaseCommand
from retrieval.models import Collection, Source
from retrieval.models.source import PUSH


class Command(MigratedDatabaseCommand):
    help = "Make an API key of an account, and print it. It is shown this once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="The name of the account whose rights the key has.")
        parser.add_argument("--name", default="Command line", help="What the key is used for.")
        parser.add_argument(
            "--service", action="store_true", help="Make the account when there is none: without a password."
        )
        parser.add_argument(
            "--scope",
            action="append",
            choices=[scope.value for scope in KeyScope],
            help="What the key may do; repeat it for several. Without: search and ask.",
        )
        parser.add_argument(
            "--collection", action="append", metavar="SLUG", help="Limit the key to it; repeat it for several."
        )
        parser.add_argument(
            "--source",
            type=int,
            metavar="NUMBER",
            help="Let it do nothing but send documents to this source of kind Push.",
        )
        parser.add_argument("--days", type=int, default=0, help="Days until it expires. 0, the default: it does not.")
        parser.add_argument("--rate", default="", help="Most requests, such as 60/min.")
        parser.add_argument("--list-sources", action="store_true", help="End answers at /v1 with a list of sources.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["rate"]:
            try:
                check_rate(options["rate"])
            except ValidationError as error:
                raise CommandError(error.messages[0]) from error
        issued = issue_key(
            self._find_user(options["user"], may_make=options["service"]),
            options["name"],
            [KeyScope(scope) for scope in options["scope"] or (KeyScope.SEARCH, KeyScope.ASK)],
            collections=self._find_collections(options["collection"]),
            source=self._find_source(options["source"]),
            expires_at=timezone.now() + timedelta(days=options["days"]) if options["days"] > 0 else None,
            rate=options["rate"],
            lists_sources=options["list_sources"],
        )
        self.stdout.write(issued.secret)

    def _find_user(self, name: str, *, may_make: bool) -> Any:
        users = get_user_model()._default_manager
        user = users.filter(username=name).first()
        if user is None and not may_make:
            raise CommandError(f"There is no account named {name}: give --service to make one for a program.")
        return user or users.create_user(name)  # The account has no password, so no person can sign in with it.

    def _find_collections(self, slugs: list[str] | None) -> list[Collection] | None:
        if not slugs:
            return None
        collections = list(Collection.objects.filter(slug__in=slugs))
        if missing := set(slugs) - {collection.slug for collection in collections}:
            raise CommandError(f"There is no collection named {', '.join(sorted(missing))}.")
        return collections

    def _find_source(self, number: int | None) -> Source | None:
        if number is None:
            return None
        source = Source.objects.filter(pk=number, kind=PUSH).first()
        if source is None:
            raise CommandError(f"There is no source {number} of the kind Push.")
        return source
