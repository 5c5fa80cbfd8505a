"""The icon, the stylesheet and the scripts: public files of the console.

Source: docs/contract/authorization-server.md 12.1 (the icon is public), 12.4 (CORS).
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.responses import Response

from personal_server.console.pages import ICON, SCRIPTS, STYLESHEET, STYLESHEET_PATH, Script
from personal_server.console.session import PageRequest, PageRoute

_ICON_HEADERS = {
    "Cache-Control": "public, max-age=86400",
    "Access-Control-Allow-Origin": "*",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
}
_STYLESHEET_HEADERS = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "X-Content-Type-Options": "nosniff",
}


def icon(visit: PageRequest) -> Response:
    """`/icon.svg`."""
    del visit
    return Response(ICON, 200, _ICON_HEADERS, "image/svg+xml")


def stylesheet(visit: PageRequest) -> Response:
    """The one stylesheet, under a name that changes with its content."""
    del visit
    return Response(STYLESHEET, 200, _STYLESHEET_HEADERS, "text/css")


def _answering(script: Script) -> Callable[[PageRequest], Response]:
    """A script, which pages work without."""

    def answer(visit: PageRequest) -> Response:
        del visit
        return Response(script.content, 200, _STYLESHEET_HEADERS, "text/javascript")

    return answer


ASSET_ROUTES = (
    PageRoute("GET", "/icon.svg", icon, open_to_all=True),
    PageRoute("GET", STYLESHEET_PATH, stylesheet, open_to_all=True),
    *(PageRoute("GET", each.path, _answering(each), open_to_all=True) for each in SCRIPTS),
)
