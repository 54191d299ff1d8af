"""What a page says of itself and of others: canonical address, instructions for robots, links."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

_MOST_CHARACTERS = 3 * 2**20


@dataclass(slots=True)
class PageLinks:
    """Addresses as they stand in the page. ``base`` is what they are relative to; empty: the page itself."""

    base: str = ""
    canonical: str = ""
    links: list[str] = field(default_factory=list)
    is_indexed: bool = True
    is_followed: bool = True


def read_links(data: bytes, charset: str) -> PageLinks:
    """Of the first three million characters."""
    try:
        text = data[: 4 * _MOST_CHARACTERS].decode(charset or "utf-8", "replace")
    except LookupError:
        text = data[: 4 * _MOST_CHARACTERS].decode("utf-8", "replace")
    reader = _Reader()
    # Not closed: what is open at the end is no link, and looking for its end again and again takes long.
    reader.feed(text[:_MOST_CHARACTERS])
    return reader.found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.found = PageLinks()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found, values = self.found, {name: (value or "").strip() for name, value in attrs}
        relations = values.get("rel", "").lower().split()
        if tag == "a" and values.get("href") and "nofollow" not in relations:
            found.links.append(values["href"])
        elif tag == "base":
            found.base = found.base or values.get("href", "")
        elif tag == "link" and "canonical" in relations:
            found.canonical = found.canonical or values.get("href", "")
        elif tag == "meta" and values.get("name", "").lower() in ("robots", "ragsite"):
            said = values.get("content", "").lower()
            found.is_indexed = found.is_indexed and "noindex" not in said and "none" not in said
            found.is_followed = found.is_followed and "nofollow" not in said and "none" not in said
