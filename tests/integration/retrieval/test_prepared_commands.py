"""Commands before the site was started for the first time."""

import pytest
from django.core.management import CommandError, call_command

from retrieval.management import prepared


@pytest.mark.django_db
def test_commands_migrate_the_embedded_database_once_and_no_other(monkeypatch, capsys, settings):
    unapplied = [3]
    monkeypatch.setattr(prepared, "_count_unapplied_migrations", lambda: unapplied[0])
    monkeypatch.setattr(prepared, "migrate", lambda: unapplied.__setitem__(0, 0))
    embedded, settings.EMBEDDED_POSTGRES = settings.EMBEDDED_POSTGRES, None
    with pytest.raises(CommandError, match="3 migrations are not applied .* `manage.py migrate`"):
        call_command("sync")
    settings.EMBEDDED_POSTGRES = embedded
    for _ in range(2):
        call_command("sync")
    assert unapplied == [0]
    assert capsys.readouterr().err == "Preparing the database …\n"
