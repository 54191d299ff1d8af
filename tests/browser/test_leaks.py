"""Nobody reads a word of documents that they may not see, on any page that a link leads to."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from html import unescape
from urllib.parse import urljoin, urlsplit

import pytest
from django.urls import resolve
from playwright.sync_api import Error, Page

from tests.browser.conftest import Complaints, Site
from tests.browser.pages import ask

# Of one kind, and of all.
PAGES_OF_A_KIND = 2
MOST_PAGES = 70
QUESTION = "What is the code of the boiler house?"
TEXT = """# Sheet {canary}

The code of the boiler house is {canary}.

## Winter

In winter, whoever knows {canary} heats the boiler house twice a day.
"""
# Each collection has the word that stands nowhere else, and the one who reads it at first.
CANARIES = {"harbour": ("zalvorquim", "ada"), "orchard": ("wubriphant", "ben")}
# Help is the same for everybody.
LEAVES_OUT = ("/accounts/logout/", "/admin/logout/", "/static/", "/help/")


Read = tuple[str, list[str]]
"""A page, and where its links lead to."""


@dataclass
class Walk:
    """What somebody read, by address; the kinds of pages are the names of their addresses."""

    told: dict[str, str] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)


@pytest.fixture(scope="module")
def own_site(site: Site) -> Iterator[Site]:
    """The site with two readers and a collection of each: until the end of the module."""
    from django.contrib.auth.models import User

    from retrieval.models import Collection, Document

    with site.data():
        _fill()
    yield site
    with site.data():
        Document.objects.filter(collection__slug__in=CANARIES).delete()
        Collection.objects.filter(slug__in=CANARIES).delete()
        User.objects.filter(username__in=["ada", "ben"]).delete()


def test_no_page_that_a_link_leads_to_tells_a_word_of_documents_that_are_closed(
    own_site: Site, visitor: Callable[..., Page], complaints: Complaints
) -> None:
    # An address that was open before is not there any more, or refused.
    complaints.expected += ["404", "403"]
    ada, ben = visitor(), visitor()
    for page, name, slug in ((ada, "ada", "harbour"), (ben, "ben", "orchard")):
        own_site.sign_in(page, name)
        page.select_option("#scope select", slug)
        ask(page, QUESTION)
    harbour, orchard = (canary for canary, _reader in CANARIES.values())
    adas, bens = _walk(own_site, ada), _walk(own_site, ben)
    _tells(adas, harbour, not_of=orchard)
    _tells(bens, orchard, not_of=harbour)
    assert {"chat:home", "chat:conversation", "retrieval:document", "account_overview"} <= set(bens.kinds)
    assert {"admin:retrieval_document_change", "admin:retrieval_collection_change"} <= set(adas.kinds)

    with own_site.data():
        _swap()
    # Each goes to where both have been, and on from there; what scripts fetch for a page is read as a page by itself.
    addresses = [*adas.told, *bens.told]
    _tells(_walk(own_site, ada, addresses, read=_fetch), orchard, not_of=harbour)
    _tells(_walk(own_site, ben, addresses, read=_fetch), harbour, not_of=orchard)


def _fill() -> None:
    from django.contrib.auth.models import Group, User

    from retrieval.documents import ingestion, submission
    from retrieval.models import Collection, CollectionGrant

    ada = User.objects.create_user("ada", is_staff=True)
    User.objects.create_user("ben")
    ada.groups.add(Group.objects.get(name="Curators"))
    for slug, (canary, reader) in CANARIES.items():
        collection = Collection.objects.create(slug=slug, name=f"Shelf {canary}", visibility="granted")
        submitted = submission.submit(collection, f"{canary}.md", TEXT.format(canary=canary).encode(), enqueue=False)
        ingestion.ingest(submitted.document.pk)
        CollectionGrant.objects.create(
            collection=collection, user=User.objects.get(username=reader), role=CollectionGrant.Role.CURATOR
        )


def _swap() -> None:
    from django.contrib.auth.models import User

    from retrieval.models import CollectionGrant

    users = {user.username: user for user in User.objects.filter(username__in=["ada", "ben"])}
    for grant in CollectionGrant.objects.filter(collection__slug__in=CANARIES):
        grant.user = users["ben" if grant.user == users["ada"] else "ada"]
        grant.save()


def _read(page: Page, address: str) -> Read:
    """The page at the address, whole, and its links; of a file its text. What readers see is read in the browser."""
    if urlsplit(address).path.startswith("/admin/"):
        return _fetch(page, address)
    try:
        page.goto(address)
    except Error as error:
        if "Download is starting" not in error.message:
            raise
        return page.context.request.get(address).text(), []
    found: list[str] = page.locator("a[href]").evaluate_all("links => links.map(link => link.href)")
    return page.content(), [urljoin(address, link).partition("#")[0] for link in found]


def _fetch(page: Page, address: str) -> Read:
    """As `_read`, without the browser that would show it."""
    text = page.context.request.get(address).body().decode(errors="replace")
    links = re.findall(r'\b(?:href|hx-get)="([^"]+)"', text)
    return text, [urljoin(address, unescape(link)).partition("#")[0] for link in links]


def _walk(site: Site, page: Page, addresses: Sequence[str] = (), read: Callable[..., Read] = _read) -> Walk:
    """All that stands at the addresses, and where their links lead to, a few of each kind."""
    walk = Walk()
    waiting = deque([f"{site.url}/", f"{site.url}/accounts/", *addresses])
    given = set(addresses)
    while waiting and len(walk.told) < MOST_PAGES + len(given):
        address = waiting.popleft()
        kind = resolve(urlsplit(address).path).view_name
        if address in walk.told or (address not in given and walk.kinds[kind] >= PAGES_OF_A_KIND):
            continue
        walk.kinds[kind] += 1
        walk.told[address], links = read(page, address)
        waiting.extend(link for link in links if _leads_on(site, link) and link not in walk.told)
    return walk


def _leads_on(site: Site, link: str) -> bool:
    return link.startswith(f"{site.url}/") and not urlsplit(link).path.startswith(LEAVES_OUT)


def _tells(walk: Walk, own: str, *, not_of: str) -> None:
    assert [address for address, told in walk.told.items() if not_of in told.lower()] == []
    assert any(own in told.lower() for told in walk.told.values())
