"""Read the messages in a folder of a mailbox, over IMAP."""

from __future__ import annotations

import imaplib
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from retrieval.sources.network import resolve_host
from retrieval.sources.options import SourceAccountForm, SourceOptionsForm, check_server_address
from retrieval.sources.protocol import (
    Connector,
    FetchedItem,
    ItemGone,
    ItemRejected,
    RemoteItem,
    SourceUnavailable,
    SourceUnreadable,
)

_UID = re.compile(rb"\bUID (\d+)")
_SIZE = re.compile(rb"\bRFC822\.SIZE (\d+)")


class MailboxOptions(SourceOptionsForm, SourceAccountForm):
    host = forms.CharField(label=_("Server"), max_length=253, validators=[check_server_address])
    port = forms.IntegerField(label=_("Port"), min_value=1, max_value=65535, initial=993)
    security = forms.ChoiceField(
        label=_("Encryption"),
        choices=[("tls", "TLS"), ("starttls", "STARTTLS"), ("none", _("none"))],
        initial="tls",
    )
    folder = forms.RegexField(
        r"^[ -~]{1,300}$",
        label=_("Folder"),
        initial="INBOX",
        help_text=_("The folder's name as the server writes it, in ASCII."),
    )


class _Connection(imaplib.IMAP4):
    """An IMAP connection to an allowed address. It uses TLS from the start if it has a ``context``."""

    def __init__(self, host: str, port: int, *, context: ssl.SSLContext | None) -> None:
        self._context = context
        super().__init__(host, port, timeout=settings.SOURCE_TIMEOUT_SECONDS)

    def _create_socket(self, timeout: float | None) -> socket.socket:
        failure: OSError | None = None
        for address in resolve_host(self.host, self.port):
            try:
                connected = socket.create_connection((address, self.port), timeout)
            except OSError as error:
                failure = error
                continue
            if self._context is None:
                return connected
            return self._context.wrap_socket(connected, server_hostname=self.host)
        raise failure or OSError(f"{self.host} has no address.")


class MailboxConnector(Connector):
    name = "mailbox"
    label = _("Mailbox")
    description = _("Messages of a folder, over IMAP. They are not changed on the server: unread messages stay unread.")
    form = MailboxOptions

    _imap: _Connection | None = None

    def __exit__(self, *error: object) -> None:
        if self._imap is not None:
            with suppress(OSError):
                self._imap.shutdown()

    def list_items(self) -> Iterator[RemoteItem]:
        imap = self._open_mailbox()
        # UIDVALIDITY changes when the server renumbers its messages.
        _status, (validity, *_rest) = imap.response("UIDVALIDITY")
        folder = (validity or b"0").decode()
        for line in self._run_command("FETCH", "1:*", "(UID RFC822.SIZE)"):
            told = line if isinstance(line, bytes) else b" ".join(line) if isinstance(line, tuple) else b""
            number, size = _UID.search(told), _SIZE.search(told)
            if number:
                uid = number[1].decode()
                # A message never changes, so its size is enough as a fingerprint.
                yield RemoteItem(f"{folder}:{uid}", f"{folder}-{uid}.eml", size[1].decode() if size else uid)

    def fetch(self, item: RemoteItem, validators: Mapping[str, str]) -> FetchedItem:
        if item.fingerprint.isdecimal() and int(item.fingerprint) > settings.DOCUMENT_MAX_BYTES:
            raise ItemRejected(
                _t("%(name)s is larger than %(limit)d MiB.")
                % {"name": item.name, "limit": settings.DOCUMENT_MAX_BYTES // 2**20}
            )
        for part in self._run_command("FETCH", item.key.rpartition(":")[2], "(BODY.PEEK[])"):
            if isinstance(part, tuple):
                return FetchedItem(part[1])
        raise ItemGone(item.name)

    def _open_mailbox(self) -> _Connection:
        security, host = self.options["security"], self.options["host"]
        context = ssl.create_default_context()
        try:
            self._imap = imap = _Connection(host, self.options["port"], context=context if security == "tls" else None)
            if security == "starttls":
                imap.starttls(context)
        except (OSError, imaplib.IMAP4.error) as error:
            raise SourceUnavailable(
                _t("%(host)s cannot be reached: %(why)s.") % {"host": host, "why": error}
            ) from error
        try:
            imap.login(self.options.get("username", ""), self.options.get("password", ""))
        except imaplib.IMAP4.abort as error:
            raise SourceUnavailable(_t("%s does not answer in time.") % host) from error
        except imaplib.IMAP4.error as error:
            raise SourceUnreadable(_t("%s refused the user name or the password.") % host) from error
        quoted = '"' + self.options["folder"].replace("\\", "\\\\").replace('"', '\\"') + '"'
        status, _data = self._send_command(lambda: imap.select(quoted, readonly=True))
        if status != "OK":
            raise SourceUnreadable(_t("The mailbox has no folder %s.") % self.options["folder"])
        return imap

    def _run_command(self, *command: str) -> list[Any]:
        imap = self._imap
        assert imap is not None
        _status, data = self._send_command(lambda: imap.uid(*command))
        return data

    def _send_command(self, ask: Any) -> tuple[str, list[Any]]:
        try:
            answer: tuple[str, list[Any]] = ask()
        except (OSError, imaplib.IMAP4.error) as error:
            # The connection cannot be used for further items.
            raise SourceUnavailable(_t("The mailbox does not answer: %s.") % error) from error
        return answer
