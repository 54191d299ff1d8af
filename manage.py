#!/usr/bin/env python
"""Run a management command, e.g. ``python manage.py serve``."""

import errno
import os
import sys

UNUSABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.ENOTDIR, errno.EEXIST)


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
    try:
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line
        from django.db import NotSupportedError
    except ImportError as error:
        raise SystemExit(
            "Django is not installed in this environment: run `make setup` and use .venv/bin/python."
        ) from error
    from ragsite.postgres.embedded import EmbeddedPostgresError

    try:
        execute_from_command_line(sys.argv)
    except (ImproperlyConfigured, EmbeddedPostgresError) as error:
        raise SystemExit(str(error)) from None
    except NotSupportedError as error:
        if "extension" not in str(error):
            raise
        raise SystemExit("PostgreSQL has no pgvector: install it on that server, then start again.") from None
    except OSError as error:
        if error.errno not in UNUSABLE or not error.filename:
            raise
        problem = f"{error.filename} cannot be used: {error.strerror}."
        raise SystemExit(f"{problem} Give this account the right to write to DATA_DIR, or set another one.") from None


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit("Interrupted. The same command begins again where this one ended.") from None
