"""The kinds of sources. A kind is a line below."""

from __future__ import annotations

from retrieval.sources.kinds import feed, file_servers, local_files, mailbox, website, wikis

KINDS = {
    kind.name: kind
    for kind in (
        local_files.FOLDER,
        website.KIND,
        local_files.GIT,
        file_servers.S3,
        file_servers.WEBDAV,
        mailbox.KIND,
        feed.KIND,
        wikis.CONFLUENCE,
        wikis.MEDIAWIKI,
    )
}
