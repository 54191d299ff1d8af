"""The kinds of sources. A kind is a module here, and a line below."""

from __future__ import annotations

from retrieval.sources.kinds import confluence, feed, folder, git, mailbox, mediawiki, s3, webdav, website

KINDS = {
    kind.name: kind
    for kind in (
        folder.KIND,
        website.KIND,
        git.KIND,
        s3.KIND,
        webdav.KIND,
        mailbox.KIND,
        feed.KIND,
        confluence.KIND,
        mediawiki.KIND,
    )
}
