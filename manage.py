#!/usr/bin/env python
"""Run a management command, e.g. ``python manage.py serve``."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError as error:
        raise SystemExit(
            "Django is not installed in this environment: run `make setup` and use .venv/bin/python."
        ) from error
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
