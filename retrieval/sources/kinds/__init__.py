"""The kinds of sources."""

from __future__ import annotations

from retrieval.sources.kinds import (
    confluence,
    connectors,
    feed,
    file_servers,
    local_files,
    mailbox,
    push,
    website,
    wikis,
)
from retrieval.sources.protocol import Connector

KINDS: dict[str, type[Connector]] = {
    kind.name: kind
    for kind in (
        local_files.FolderConnector,
        website.WebsiteConnector,
        local_files.GitConnector,
        file_servers.S3Connector,
        file_servers.WebDavConnector,
        mailbox.MailboxConnector,
        feed.FeedConnector,
        confluence.ConfluenceConnector,
        wikis.MediaWikiConnector,
        push.PushConnector,
        connectors.ConnectorSource,
    )
}
