from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from ragsite.models import AuditEntry, AuditPerson


def delete_old_entries() -> int:
    """Delete the entries that are older than AUDIT_DAYS, and the persons whom none names any more."""
    if settings.AUDIT_DAYS <= 0:
        return 0
    with transaction.atomic():
        with connection.cursor() as cursor:
            # The one exception that the database makes, for this transaction.
            cursor.execute("SET LOCAL ragsite.audit_retention = 'on'")
        old = AuditEntry.objects.filter(at__lt=timezone.now() - timedelta(days=settings.AUDIT_DAYS))
        deleted = old.delete()[0]
        acted = AuditEntry.objects.exclude(actor=None).values("actor")
        concerned = AuditEntry.objects.exclude(object_person=None).values("object_person")
        AuditPerson.objects.exclude(pk__in=acted).exclude(pk__in=concerned).delete()
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL ragsite.audit_retention = 'off'")
    return deleted
