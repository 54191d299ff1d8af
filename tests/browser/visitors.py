"""Visitors: pages of browsers that nobody has used yet, or that have forgotten what was done with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, BrowserContext, CDPSession, ConsoleMessage, Page, WebError

# However slow the machine is: nobody waits so long for what is there.
TIMEOUT_MILLISECONDS = 40_000
# Each has processes of its own.
MOST_KEPT = 6
# What these change stays with the page, or with its context.
_FOR_PAGES = ("add_init_script", "on", "once", "route", "emulate_media")
_FOR_CONTEXTS = ("new_page", "new_cdp_session", "grant_permissions", "set_offline", "route", "on")


@dataclass
class Complaints:
    """What browsers reported: errors in the console (breaches of the security policy are there too) and of scripts.

    A test that provokes one names a part of it in ``expected``.
    """

    found: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.found.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def failed(self, error: WebError) -> None:
        self.found.append(f"script: {error.error}")

    @property
    def unexpected(self) -> list[str]:
        return [one for one in self.found if not any(part in one for part in self.expected)]


class _Visitor:
    """A page in a context of its own, which can be used again unless a test has changed what does not go away."""

    def __init__(self, context: BrowserContext, options: dict[str, Any]) -> None:
        self.options = options
        self.complaints = Complaints()
        self.context = context
        self._changed: set[str] = set()
        context.set_default_timeout(TIMEOUT_MILLISECONDS)
        context.on("console", lambda message: self.complaints.heard(message))
        context.on("weberror", lambda error: self.complaints.failed(error))
        self.page: Page = context.new_page()
        self._protocol: CDPSession = context.new_cdp_session(self.page)
        for changed, names in ((self.page, _FOR_PAGES), (context, _FOR_CONTEXTS)):
            for name in names:
                setattr(changed, name, self._noting(name, getattr(changed, name)))

    def _noting(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any, **options: Any) -> Any:
            self._changed.add(name)
            return method(*arguments, **options)

        return noted

    def forget(self) -> bool:
        """Leave the pages and all that they stored; returns whether the page is as new."""
        if self._changed - {"emulate_media"} or self.page.is_closed():
            return False
        self.page.goto("about:blank")
        self._protocol.send("Storage.clearDataForOrigin", {"origin": "*", "storageTypes": "all"})
        self._protocol.send("Page.resetNavigationHistory")
        self.page.mouse.move(0, 0)
        if self.page.viewport_size != self.options["viewport"]:
            self.page.set_viewport_size(self.options["viewport"])
        if self._changed:
            self.page.emulate_media(media="null", color_scheme=self.options.get("color_scheme", "light"))
            self._changed.clear()
        return True


class Visitors:
    """Pages by the options of their contexts; a new one takes three times as long as what most tests do with it."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._free: list[_Visitor] = []
        self._busy: list[_Visitor] = []

    def come(self, options: dict[str, Any], complaints: Complaints) -> Page:
        alike = [each for each in self._free if each.options == options]
        if alike:
            visitor = alike[-1]
            self._free.remove(visitor)
        else:
            visitor = _Visitor(self._browser.new_context(**options), options)
        visitor.complaints = complaints
        self._busy.append(visitor)
        return visitor.page

    def go(self) -> None:
        """All of them, at the end of a test."""
        while self._busy:
            visitor = self._busy.pop()
            if visitor.forget():
                self._free.append(visitor)
            else:
                visitor.context.close()
        while len(self._free) > MOST_KEPT:
            self._free.pop(0).context.close()
