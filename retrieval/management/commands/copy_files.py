"""From the folder into the bucket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from retrieval.documents.storage import copy_to_bucket, is_in_a_folder
from retrieval.exceptions import FilesUnavailable
from retrieval.infrastructure.progress import ProgressBar
from retrieval.management.prepared import PreparedCommand
from retrieval.models import Document


class Command(PreparedCommand):
    help = (
        "Copy the documents' files from DATA_DIR/media into the bucket that FILES_S3_BUCKET names. "
        "What is there is left alone: called again, it goes on. The folder stays as it is."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        if is_in_a_folder():
            raise CommandError("The files are kept in a folder: set FILES_S3_BUCKET first.")
        names = sorted(set(Document.objects.exclude(file="").values_list("file", flat=True)))
        copied, missing = 0, []
        bar = ProgressBar(self.stderr)
        for number, name in enumerate(names):
            bar.show("copying files", number, len(names))
            try:
                copied += copy_to_bucket(Path(settings.MEDIA_ROOT) / name, name)
            except FileNotFoundError:
                missing.append(name)
            except FilesUnavailable as error:
                raise CommandError(f"{error} {copied} files were copied; call this again.") from error
        bar.clear()
        self.stdout.write(f"{copied} of {len(names)} files copied, {len(names) - copied - len(missing)} were there.")
        for name in missing:
            self.stderr.write(f"The file {name} is neither in the folder nor in the bucket.")
