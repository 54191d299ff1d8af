"""A bucket of S3, or of a server that speaks its protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import quote, urlencode

from django import forms
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from retrieval.sources.network.http import HttpConnector, Response, check_item, check_listing, check_progress
from retrieval.sources.network.xml import children, parse_xml, text_of
from retrieval.sources.options import AddressField, Options, SecretField
from retrieval.sources.protocol import (
    UNCHANGED,
    Fetched,
    RemoteItem,
    SourceKind,
    SourceUnavailable,
    Unchanged,
)


class S3Options(Options):
    endpoint = AddressField(
        label=_("Server"), help_text=_("Such as https://s3.eu-west-1.amazonaws.com, or that of MinIO or Ceph.")
    )
    region = forms.CharField(label=_("Region"), max_length=60, initial="us-east-1")
    bucket = forms.RegexField(r"^[A-Za-z0-9][A-Za-z0-9._-]{1,254}$", label=_("Bucket"))
    key_prefix = forms.CharField(
        label=_("Prefix"),
        required=False,
        max_length=500,
        help_text=_("Of the keys, such as handbook/."),
    )
    access_key = forms.CharField(label=_("Access key"), required=False, max_length=200)
    secret_key = SecretField(
        label=_("Secret key"),
        help_text=_("Encrypted, and never shown again. Empty: as it is."),
    )
    base_url = AddressField(
        label=_("Web address of the bucket"), required=False, help_text=_("Where readers find the files, if they do.")
    )
    field_order = ["endpoint", "region", "bucket", "key_prefix", "access_key", "secret_key", "base_url"]


class S3Connector(HttpConnector):
    def _read_address(self) -> str:
        return f"{self.options['endpoint'].rstrip('/')}/{self.options['bucket']}"

    def list_items(self) -> Iterator[RemoteItem]:
        prefix, base = self.options.get("key_prefix") or "", (self.options.get("base_url") or "").rstrip("/")
        query = {"list-type": "2", "prefix": prefix}
        seen = set[str]()
        while True:
            response = self._get(f"{self._address}?{urlencode(sorted(query.items()), quote_via=quote)}", {})
            check_listing(response)
            try:
                page = parse_xml(response.body)
            except ValueError as error:
                raise SourceUnavailable(_t("%s does not answer as S3 does.") % self._address) from error
            keys_and_entries = [(entry.findtext("{*}Key") or "", entry) for entry in children(page, "Contents")]
            for key, entry in keys_and_entries:
                if not key.endswith("/"):
                    url = f"{base}/{quote(key)}" if base else ""
                    yield RemoteItem(key, key.removeprefix(prefix).lstrip("/") or key, text_of(entry, "ETag"), url=url)
            if text_of(page, "IsTruncated") != "true":
                return
            check_progress(seen, [key for key, _entry in keys_and_entries])
            query["continuation-token"] = text_of(page, "NextContinuationToken")

    def fetch(self, item: RemoteItem, validators: Mapping[str, str]) -> Fetched | Unchanged:
        response = self._get(f"{self._address}/{quote(item.key, safe='/~')}", validators)
        check_item(response, item.name)
        if response.is_unchanged:
            return UNCHANGED
        return Fetched(response.body, media_type=response.media_type, validators=response.validators)

    def _get(self, url: str, headers: Mapping[str, str]) -> Response:
        """Signed, if there is a key to sign with. A redirect would need another signature, and is not followed."""
        if not self.options.get("access_key"):
            return self._client.get(url, headers=headers, redirects=0)
        from botocore.auth import S3SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials

        request = AWSRequest(method="GET", url=url, headers=dict(headers))
        credentials = Credentials(self.options["access_key"], self.options.get("secret_key", ""))
        S3SigV4Auth(credentials, "s3", self.options["region"]).add_auth(request)
        return self._client.get(url, headers=dict(request.headers.items()), redirects=0)


KIND = SourceKind(
    name="s3",
    label=_("S3 bucket"),
    description=_("Objects of a bucket: Amazon S3, MinIO, Ceph and others of its protocol."),
    options=S3Options,
    connector=S3Connector,
)
