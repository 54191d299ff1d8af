"""Read files of WebDAV shares and S3 buckets."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from urllib.parse import quote, unquote, urlencode, urlsplit

from django import forms
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from retrieval.sources.kinds.nextcloud_shares import read_shares
from retrieval.sources.network import (
    HttpConnector,
    Response,
    check_listing_response,
    check_page_is_new,
    find_children,
    join_address,
    parse_xml,
    read_fetched_item,
    read_text,
)
from retrieval.sources.options import BaseUrlForm, SecretField, SourceAccountForm, SourceOptionsForm, WebAddressField
from retrieval.sources.protocol import FetchedItem, RemoteItem, SourceUnavailable
from retrieval.sources.reader_names import ReadersBySourceForm

# Servers refuse to list all levels at once.
_ONE_LEVEL = {"Depth": "1", "Content-Type": "application/xml"}
_WANTED = (
    b'<?xml version="1.0"?><propfind xmlns="DAV:"><prop><resourcetype/><getetag/><getlastmodified/>'
    b"<getcontentlength/></prop></propfind>"
)


class WebDavOptions(ReadersBySourceForm, SourceOptionsForm, SourceAccountForm):
    url = WebAddressField(
        label=_("Folder"), help_text=_("Such as https://cloud.example.org/remote.php/dav/files/NAME/Handbook/.")
    )


class WebDavConnector(HttpConnector):
    name = "webdav"
    label = _("WebDAV")
    description = _("A folder of Nextcloud, ownCloud or another WebDAV server.")
    form = WebDavOptions
    tells_readers = True

    def _read_address(self) -> str:
        return super()._read_address().rstrip("/") + "/"

    def list_items(self) -> Iterator[RemoteItem]:
        root, seen = _read_path(self._address), set[str]()
        takes, account = self.options.get("takes_readers"), str(self.options.get("username") or "")
        shares = read_shares(self._client, self._address, account) if takes else None
        waiting = deque([self._address])
        while waiting:
            folder = waiting.popleft()
            if _read_path(folder) in seen:
                continue
            seen.add(_read_path(folder))
            response = self._client.request("PROPFIND", folder, headers=_ONE_LEVEL, content=_WANTED)
            check_listing_response(response)
            try:
                entries = find_children(parse_xml(response.body), "response")
            except ValueError as error:
                raise SourceUnavailable(_t("%s does not answer in the WebDAV protocol.") % folder) from error
            for entry in entries:
                url = join_address(folder, read_text(entry, "href"))
                path = _read_path(url)
                if not path.startswith(root) or path == _read_path(folder):
                    continue
                if find_children(entry, "collection"):
                    waiting.append(url.rstrip("/") + "/")
                    continue
                parts = (read_text(entry, name) for name in ("getetag", "getlastmodified", "getcontentlength"))
                name = path.removeprefix(root)
                readers = shares.find_file_readers(name) if shares is not None else None
                yield RemoteItem(name, name, " ".join(parts).strip(), url=url, readers=readers)


def _read_path(url: str) -> str:
    return unquote(urlsplit(url).path)


class S3Options(SourceOptionsForm, BaseUrlForm):
    endpoint = WebAddressField(
        label=_("Server"),
        help_text=_("Such as https://s3.eu-west-1.amazonaws.com, or the address of a MinIO or Ceph server."),
    )
    region = forms.CharField(label=_("Region"), max_length=60, initial="us-east-1")
    bucket = forms.RegexField(r"^[A-Za-z0-9][A-Za-z0-9._-]{1,254}$", label=_("Bucket"))
    key_prefix = forms.CharField(
        label=_("Prefix"),
        required=False,
        max_length=500,
        help_text=_("Only objects whose key begins with it are read, such as handbook/."),
    )
    access_key = forms.CharField(label=_("Access key"), required=False, max_length=200)
    secret_key = SecretField(label=_("Secret key"))


class S3Connector(HttpConnector):
    name = "s3"
    label = _("S3 bucket")
    description = _("Objects of a bucket: Amazon S3, MinIO, Ceph and others of its protocol.")
    form = S3Options

    def _read_address(self) -> str:
        return f"{self.options['endpoint'].rstrip('/')}/{self.options['bucket']}"

    def list_items(self) -> Iterator[RemoteItem]:
        prefix = self.options.get("key_prefix") or ""
        query = {"list-type": "2", "prefix": prefix}
        seen = set[str]()
        while True:
            response = self._get(f"{self._address}?{urlencode(sorted(query.items()), quote_via=quote)}", {})
            check_listing_response(response)
            try:
                page = parse_xml(response.body)
            except ValueError as error:
                raise SourceUnavailable(_t("%s is not an S3 server.") % self._address) from error
            keys_and_entries = [(entry.findtext("{*}Key") or "", entry) for entry in find_children(page, "Contents")]
            for key, entry in keys_and_entries:
                if not key.endswith("/"):
                    name = key.removeprefix(prefix).lstrip("/") or key
                    yield RemoteItem(key, name, read_text(entry, "ETag"), self.build_address(key))
            if read_text(page, "IsTruncated") != "true":
                return
            check_page_is_new(seen, [key for key, _entry in keys_and_entries])
            query["continuation-token"] = read_text(page, "NextContinuationToken")

    def fetch(self, item: RemoteItem, validators: Mapping[str, str]) -> FetchedItem | None:
        return read_fetched_item(self._get(f"{self._address}/{quote(item.key, safe='/~')}", validators), item.name)

    def _get(self, url: str, headers: Mapping[str, str]) -> Response:
        """Send a request, signed if the options have a key. Redirects are not followed: they need another signature."""
        if not self.options.get("access_key"):
            return self._client.get(url, headers=headers, redirects=0)
        from botocore.auth import S3SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials

        request = AWSRequest(method="GET", url=url, headers=dict(headers))
        credentials = Credentials(self.options["access_key"], self.options.get("secret_key", ""))
        S3SigV4Auth(credentials, "s3", self.options["region"]).add_auth(request)
        return self._client.get(url, headers=dict(request.headers.items()), redirects=0)
