"""Websites as they are: addresses that mislead, and what pages ask of robots."""

import pytest

from retrieval.models import Document
from retrieval.sources.kinds.website import PageLinks, Robots, WebsiteConnector, normalise_address
from retrieval.sources.network import Response
from tests.support.sources import WebServer, make_source, names, run_once

pytestmark = pytest.mark.django_db
HTML = "text/html; charset=utf-8"


class Site(WebServer):
    """Pages by the address as it is requested, query included; each with its headers."""

    def __init__(self):
        super().__init__()
        self.cookies = {}
        self.options = {"url": f"{self.url}/", "way": "crawl", "depth": 3, "delay": 0, "exclude": "index"}

    def put(self, address, body, status=200, **headers):
        self.pages[address] = (body if isinstance(body, bytes) else body.encode(), status, headers)

    def link(self, *addresses):
        self.put("/", "".join(f'<a href="{address}">x</a>' for address in addresses))

    def answer(self, request):
        body, status, headers = self.pages.get(request.path, (b"There is nothing.", 404, {}))
        cookie, words = self.cookies.get(request.path, ("", ""))
        if cookie and cookie in (request.headers.get("Cookie") or ""):
            body, status, headers = words.encode(), 200, {}
        request.send(body, status, **{"Content_Type": HTML, **headers})


@pytest.fixture
def site():
    remote = Site()
    yield remote
    remote.close()


def page(text, head=""):
    return f"<html><head><title>T</title>{head}</head><body><main><p>{text}</p></main></body></html>"


def canonical(address):
    return f'<link rel="canonical" href="{address}">'


def read(site, collection, **options):
    run = run_once(make_source(collection, "website", {**site.options, **options}, name="S"))
    return {name.removeprefix("S/").removesuffix(".html") for name in names()}, dict(run.details.get("left_out", []))


def test_a_canonical_address_is_believed_only_where_it_has_the_same_words(site, collection):
    site.link(*"abcdefghi", "/print?page=pump", "pump")
    site.put("/a", page("Alpha opens.", canonical("/a/")))
    site.put("/a/", "", 301, Location="/a")
    site.put("/b", page("Beta opens.", canonical("/gone")))
    site.put("/c", page("Gamma opens.", canonical("/")))
    site.put("/i", page("Iota opens.", canonical(site.url.replace("http", "https") + "/i")))
    site.put("/d", page("Delta opens.", canonical("/e")))
    site.put("/e", page("Epsilon opens.", canonical("/gone")))
    site.put("/f", page("Zeta opens.", canonical("/noindex")))
    site.put("/noindex", page("Zeta opens.", '<meta name="robots" content="noindex">'))
    site.put("/g", page("Eta opens.", canonical("http://[broken")))
    site.put("/h", page("Theta opens.", canonical("https://elsewhere.test/h")))
    site.put("/print?page=pump", page("The pump hums.", canonical("/pump")))
    site.put("/pump", page("The pump hums.", canonical("/pump")))
    found, left_out = read(site, collection)
    assert found == {*"abcdefghi", "pump"}
    assert left_out == {"print?page=pump": f"it says the same as {site.url}/pump, its original"}
    assert site.requests.count("/pump") == 1
    assert site.requests.count("/gone") == 1


def test_addresses_are_requested_as_they_are_written(site, collection):
    addresses = ["/wiki?Opening", "/forum?/topic/12-keys/", "/q?b=2&a=1", "/q?a=%C3%A9&b=+", "/e?a=", "/space%20name"]
    site.link(*addresses, "/u?utm_source=x&id=7&utm_medium=y")
    for address in (*addresses, "/u?id=7"):
        site.put(address, page(f"About {address}"))
    read(site, collection)
    assert {*addresses, "/u?id=7"} <= set(site.requests)
    assert Document.objects.count() == len(addresses) + 1
    assert Document.objects.filter(source="S/forum?/topic/12-keys.html").exists()
    assert normalise_address("http://a.test?utm_id=1#x") == "http://a.test/"


@pytest.mark.parametrize(
    ("said", "is_indexed", "is_followed"),
    [
        ("", True, True),
        ("index, follow, max-image-preview: none", True, True),
        ("index, follow, max-image-preview:none", True, True),
        ("noindexing, nofollower", True, True),
        ("NOINDEX,NoFollow", False, False),
        ("noindex nofollow", False, False),
        ("none", False, False),
        ("nofollow", True, False),
        ("googlebot: noindex, nofollow", True, True),
        ("googlebot: noindex, ragsite: nofollow", True, False),
        ("ragsite: none", False, False),
        ("*: noindex", False, True),
        ("googlebot: nofollow, unavailable_after: 2010-06-25", True, True),
        ("unavailable_after: 25 Jun 2010 15:00:00 GMT", False, True),
        ("unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, nofollow", False, False),
        ("unavailable_after: 2010-06-25", False, True),
        ("unavailable_after: 2110-06-25T10:00:00+02:00, nofollow", True, False),
        ("unavailable_after: some day", True, True),
        ("noarchive, nosnippet, notranslate, noimageindex", True, True),
    ],
)
def test_directives_for_robots_are_words(said, is_indexed, is_followed):
    robots = Robots()
    robots.read_directives(said)
    assert (robots.is_indexed, robots.is_followed) == (is_indexed, is_followed)


def test_headers_for_robots_count_for_every_file(site, collection):
    site.link("page", "list.csv", "other.csv", "links")
    site.put("/page", page("Gate 4."), X_Robots_Tag="none")
    site.put("/list.csv", "a,b\n1,2\n", Content_Type="text/csv", X_Robots_Tag="noindex")
    site.put("/other.csv", "a,b\n1,2\n", Content_Type="text/csv", X_Robots_Tag="googlebot: noindex")
    site.put("/links", page('Gate 5. <a href="/unseen">x</a>'), X_Robots_Tag="nofollow")
    site.put("/unseen", page("Unseen."))
    found, left_out = read(site, collection)
    assert found == {"other.csv", "links"}
    assert set(left_out) == {"page", "list.csv"}


def test_pages_that_lead_on_by_themselves_are_followed_with_limits(site, collection):
    site.link("now", "later", "self", "noscript", "away", "loop0", "header")
    site.put("/now", '<html><meta http-equiv="refresh" content="0; URL=\'/target\'"></html>')
    site.put("/target", page("Target."))
    site.put("/later", page("We have moved.", '<meta http-equiv="Refresh" content="5;url=new">'))
    site.put("/new", page("New place."))
    site.put("/self", page("Fresh news.", '<meta http-equiv="refresh" content="60">'))
    site.put("/noscript", page("Words.", '<noscript><meta http-equiv="refresh" content="0;url=/nojs"></noscript>'))
    site.put("/nojs", page("No script."))
    site.put("/away", '<meta http-equiv="refresh" content="0;url=https://elsewhere.test/">' + page("Bye."))
    site.put("/header", "", Refresh="0; url=/target2")
    site.put("/target2", page("Second target."))
    for n in range(50):
        site.put(f"/loop{n}", f'<html><meta http-equiv="refresh" content="0;url=/loop{n + 1}"></html>')
    found, _left_out = read(site, collection)
    assert found == {"target", "later", "new", "self", "noscript", "away", "target2"}
    assert "/loop20" not in site.requests


def test_a_start_page_that_only_leads_on_is_followed(site, collection):
    site.put("/", '<html><meta http-equiv="refresh" content="0;url=/site/start"></html>')
    site.put("/site/start", page('Start. <a href="more">x</a>'))
    site.put("/site/more", page("More."))
    assert read(site, collection, depth=1)[0] == {"site/start", "site/more"}


def test_pages_behind_a_sign_in_loops_and_other_sites_are_named(site, collection):
    site.link("secret", "loop", "cookie", "moved")
    site.put("/secret", "", 302, Location="/login?next=%2Fsecret")
    site.put("/login?next=%2Fsecret", page("Please sign in."))
    site.put("/loop", "", 301, Location="/loop2")
    site.put("/loop2", "", 301, Location="/loop")
    site.put("/cookie", "", 302, Location="/cookie", Set_Cookie="seen=1; Path=/")
    site.put("/moved", "", 301, Location="/now?from=/moved")
    site.put("/now?from=/moved", page("It has moved."))
    site.cookies["/cookie"] = "seen=1", page("Cookies are fine.")
    source = make_source(collection, "website", site.options, name="S")
    run = run_once(source)
    assert names() == ["S/cookie.html", "S/now?from=/moved.html"]
    assert [name for name, _why in run.details["failures"]] == ["loop2"]
    assert [name for name, why in run.details["left_out"] if "asks to sign in" in why] == ["secret"]


def test_sessions_and_campaigns_make_no_pages_of_their_own(site, collection):
    site.link("a;jsessionid=1A", "a;jsessionid=2B", "b?PHPSESSID=1&x=1", "b?x=1&fbclid=2", "b?x=1&gclid=3", "c?sid=1")
    for address in ("a", "b?x=1", "c?sid=1"):
        site.put(f"/{address}", page(f"About {address}."))
    assert read(site, collection)[0] == {"a", "b?x=1", "c?sid=1"}
    assert len(site.requests) == 5


def test_links_to_the_next_page_in_the_head_are_followed(site, collection):
    site.put("/", page("One.", '<link rel="next" href="/2">'))
    site.put("/2", page("Two."))
    assert read(site, collection)[0] == {"2"}


def test_a_host_with_and_without_www_is_one():
    site = WebsiteConnector({"url": "https://www.example.org/", "username": "", "password": ""}, 1)
    addresses = ("http://example.org/a", "https://www.example.org/b", "https://shop.example.org/", "ftp://example.org")
    assert [site._is_on_site(address) for address in addresses] == [True, True, False, False]


SITEMAP = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>{}/a</loc></url>{}</urlset>'


@pytest.mark.parametrize(
    ("sitemap", "found", "error"),
    [
        ("\ufeff\n<?xml version='1.0'?>" + SITEMAP, {"a"}, ""),
        (SITEMAP.format("{}", "<url><loc>https://elsewhere.test/x</loc></url>"), {"a"}, ""),
        ("<rss><channel><item><link>{}/a</link></item></channel></rss>", set(), "is not a sitemap"),
    ],
)
def test_a_sitemap_is_read_or_refused_and_pages_of_other_sites_are_named(site, collection, sitemap, found, error):
    site.put("/robots.txt", "Sitemap: /map.xml\n", Content_Type="text/plain")
    site.put("/map.xml", sitemap.format(site.url, ""), Content_Type="application/xml")
    site.put("/a", page("Gate 4."))
    run = run_once(make_source(collection, "website", {**site.options, "way": "sitemap"}, name="S"))
    assert {name[2:-5] for name in names()} == found
    assert error in run.error
    assert dict(run.details.get("left_out", [])) == ({"x": "it is a page of another site"} if "x<" in sitemap else {})


def test_frames_and_areas_are_links(site, collection):
    site.put("/", '<frameset><frame src="/menu"><frame src="/text"></frameset>')
    site.put(
        "/menu",
        page('Menu. <map><area href="/area"><area href="/not" rel="nofollow"></map><iframe src="/inner"></iframe>'),
    )
    for name in ("text", "area", "inner", "not"):
        site.put(f"/{name}", page(f"About the {name}."))
    assert read(site, collection, depth=1, exclude="")[0] == {"menu", "text", "area", "inner"}


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ('attachment; filename="prices.csv"', "prices.csv"),
        ("attachment; filename=prices.csv; size=3", "prices.csv"),
        ("attachment; filename*=UTF-8''Preis%C3%BCbersicht.csv; filename=x.csv", "Preisübersicht.csv"),
        ("attachment; filename=\"x.csv\"; filename*=iso-8859-1'de'Gr%FC%DFe.csv", "Grüße.csv"),
        (r'inline; filename="a \"b\".csv"', 'a "b".csv'),
        ('attachment; filename="..\\..\\etc/list.csv"', "list.csv"),
        ('attachment; filename="Gr\u00c3\u00bc\u00c3\u009fe.csv"', "Grüße.csv"),
        ("attachment", ""),
        ("", ""),
    ],
)
def test_the_name_of_a_download_is_read(said, name):
    assert Response("", 200, {"content-disposition": said}, b"").filename == name


def test_downloads_have_the_names_and_formats_of_their_files(site, collection):
    site.link("/file?id=7", "/get/plan?id=8", "/export.php", "/raw")
    any_type = {"Content_Type": "application/octet-stream"}
    site.put("/file?id=7", "Item,Price\nLamp,33\n", **any_type, Content_Disposition='attachment; filename="prices.csv"')
    site.put("/get/plan?id=8", "%PDF-1.4 x", **any_type)
    site.put("/export.php", "a,b\n1,2\n", Content_Type="text/csv")
    site.put("/raw", "a,b\n1,2\n", **any_type)
    assert read(site, collection)[0] == {"prices.csv", "get/plan?id=8", "export.php.csv", "raw"}


def test_the_encoding_in_the_header_counts(site, collection):
    site.link("polish", "wrong", "right")
    site.put("/polish", page("Żółw w Łodzi.").encode("iso-8859-2"), Content_Type="text/html; charset=ISO-8859-2")
    site.put("/wrong", page("Żółw w Łodzi.", "<meta charset=windows-1251>"))
    site.put("/right", page("Żółw w Łodzi.", "<meta charset=utf-8>"))
    read(site, collection)
    for document in Document.objects.all():
        with document.file.open("rb") as file:
            assert "Żółw w Łodzi." in file.read().decode("utf-8-sig")


def test_what_a_run_leaves_out_is_named_each_time(site, collection):
    site.link("missing", "elsewhere", "private/x", "page")
    site.put("/robots.txt", "User-agent: *\nDisallow: /private\n", Content_Type="text/plain")
    site.put("/elsewhere", "", 302, Location="https://elsewhere.test/x")
    site.put("/page", page("Gate 4."))
    source = make_source(collection, "website", site.options, name="S")
    for _time in range(2):
        assert dict(run_once(source).details["left_out"]) == {
            "missing": "there is nothing at this address",
            "elsewhere": "it leads to another site, https://elsewhere.test/x",
            "private/x": "the robots.txt of the site forbids reading it",
        }


def test_an_answer_in_an_encoding_that_nobody_asked_for_has_failed(site, collection):
    site.link("packed", "plain")
    site.put("/packed", b"\x8b\x02\x80hello\x03", Content_Encoding="strange")
    site.put("/plain", page("Gate 4."), Content_Encoding="identity")
    run = run_once(make_source(collection, "website", site.options, name="S"))
    assert (names(), run.failed) == (["S/plain.html"], 1)
    assert "is sent in the encoding strange" in run.details["failures"][0][1]


def test_links_in_broken_pages_are_found():
    links = PageLinks(b"<base href=/b/><a href=x>y<area href=z><frame src=f><meta http-equiv=refresh content='x'>", "")
    assert (links.base, links.links, links.frames, links.refresh) == ("/b/", ["x", "z"], ["f"], "")
