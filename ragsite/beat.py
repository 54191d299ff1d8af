"""The scheduler's process: `python -m ragsite.beat`.

Celery's own command loads every app of the site to send the names of a few tasks. This one loads the settings.
"""

from __future__ import annotations

from celery.apps.beat import Beat

from ragsite.celery import app


class _Beat(Beat):
    def init_loader(self) -> None:
        """Nothing is imported: tasks are sent by the names that the schedule has."""
        app.finalize()


def main() -> None:
    _Beat(app=app, loglevel="WARNING", quiet=True).run()


if __name__ == "__main__":
    main()
