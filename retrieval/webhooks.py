"""Send signed events to other programs by the "Standard Webhooks" (standardwebhooks.com).

A delivery is one event for one receiver. It may be sent again with the same id.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import logging
import secrets
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.dispatch import receiver
from django.utils import timezone

from core.encryption import SecretUnreadable, decrypt
from core.exceptions import LeaseLost, RagsiteError
from core.job_queue import enqueue, sweeping
from core.jobs import acquire_lease, build_retry_due_condition, heartbeat
from retrieval.models import Webhook, WebhookDelivery
from retrieval.sources.network import Client
from retrieval.sources.protocol import AddressRefused

logger = logging.getLogger(__name__)

PREFIX = "whsec_"
REQUEST_SECONDS = 15.0
RESPONSE_BYTES = 2**20
# Deliveries contain users' questions, so finished ones are deleted after this time.
KEPT_FOR = timedelta(days=7)
GIVEN_UP_AFTER = timedelta(days=3)


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def sign_message(secret: str, delivery: str, timestamp: int, body: bytes) -> str:
    """Return the header `webhook-signature`. A ``secret`` with the prefix `whsec_` is decoded from base64."""
    key = secret.encode()
    if secret.startswith(PREFIX):
        try:
            key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
        except binascii.Error:
            key = secret.encode()
    digest = hmac.new(key, f"{delivery}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def send_delivery(delivery_id: int) -> WebhookDelivery | None:
    """Attempt a delivery once, and return it.

    The result is None if the delivery is not due, or while another delivery is being sent to the same receiver.
    """
    delivery = _lease(delivery_id)
    if delivery is None:
        return None
    try:
        with heartbeat(delivery):
            status = _send(delivery)
    except LeaseLost as error:
        logger.info("%s", error)
        return None
    except (AddressRefused, SecretUnreadable) as error:
        delivery.end(WebhookDelivery.FAILED, str(error))
    except RagsiteError as error:
        delivery.retry(str(error))
    else:
        delivery.write_under_lease(response_status=status)
        if 200 <= status < 300:
            delivery.end(WebhookDelivery.Status.DONE)
        else:
            delivery.retry(f"The address answered {status}.")
    delivery.refresh_from_db()
    delivery.webhook.record_delivery(has_failed=delivery.status != WebhookDelivery.Status.DONE)
    following = WebhookDelivery.select_next_jobs().filter(webhook=delivery.webhook_id)
    enqueue(WebhookDelivery, list(following.values_list("pk", flat=True)))
    return delivery


def _lease(delivery_id: int) -> WebhookDelivery | None:
    """Reserve the delivery for this worker if it is due, and no other delivery to its receiver is running."""
    rows = WebhookDelivery.unfinished().filter(build_retry_due_condition()).select_related("webhook")
    with transaction.atomic():
        # Workers lock the webhook in turn, so that each sees earlier reservations.
        webhooks = Webhook.objects.filter(pk__in=rows.filter(pk=delivery_id).values("webhook"))
        webhook = webhooks.select_for_update(no_key=True).first()
        if webhook is None:
            return None
        sending = webhook.deliveries.filter(status=WebhookDelivery.RUNNING).exclude(
            WebhookDelivery.build_stale_lease_condition()
        )
        if sending.exclude(pk=delivery_id).exists():
            rows.filter(pk=delivery_id).update(enqueued_at=None)
            return None
        return acquire_lease(rows, delivery_id, status=WebhookDelivery.RUNNING)


def _send(delivery: WebhookDelivery) -> int:
    webhook, name, timestamp = delivery.webhook, f"msg_{delivery.pk}", int(timezone.now().timestamp())
    event: dict[str, object] = {"type": delivery.event, "timestamp": delivery.created_at.isoformat()}
    body = json.dumps({**event, "data": delivery.payload}).encode()
    headers = {
        "Content-Type": "application/json",
        "webhook-id": name,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign_message(decrypt(webhook.SECRET_PURPOSE, webhook.secret), name, timestamp, body),
    }
    with Client(webhook.address, request_seconds=REQUEST_SECONDS) as client:
        answer = client.request(
            "POST", webhook.address, headers=headers, content=body, redirects=0, most_bytes=RESPONSE_BYTES
        )
    return answer.status


@receiver(sweeping, dispatch_uid="retrieval.forget_deliveries")
def _delete_old_deliveries(**_options: Any) -> None:
    now = timezone.now()
    WebhookDelivery.objects.filter(finished_at__lt=now - KEPT_FOR).delete()
    waiting = WebhookDelivery.objects.filter(status=WebhookDelivery.WAITING, created_at__lt=now - GIVEN_UP_AFTER)
    waiting.update(
        status=WebhookDelivery.FAILED, error=f"It could not be sent within {GIVEN_UP_AFTER.days} days.", finished_at=now
    )
