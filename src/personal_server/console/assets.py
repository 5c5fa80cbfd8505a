"""The icon and the stylesheet: public files of the console.

Source: AS contract 12.1 (the icon is public), 12.4 (CORS).
"""

from __future__ import annotations

from starlette.responses import Response

from personal_server.console.frame import PageRoute
from personal_server.console.pages import ICON, STYLESHEET, STYLESHEET_NAME
from personal_server.console.visits import Visit

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


def icon(visit: Visit) -> Response:
    """`/icon.svg`."""
    del visit
    return Response(ICON, 200, _ICON_HEADERS, "image/svg+xml")


def stylesheet(visit: Visit) -> Response:
    """The one stylesheet, under a name that changes with its content."""
    del visit
    return Response(STYLESHEET, 200, _STYLESHEET_HEADERS, "text/css")


ASSET_ROUTES = (
    PageRoute("GET", "/icon.svg", icon, open_to_all=True),
    PageRoute("GET", f"/assets/{STYLESHEET_NAME}", stylesheet, open_to_all=True),
)
