"""The icon, the stylesheet and the scripts: public files of the console.

Source: docs/contract/authorization-server.md 12.1 (the icon is public), 12.4 (CORS).
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.responses import Response

from personal_server.console.session import PageRequest, PageRoute
from personal_server.console.static_files import (
    ICON,
    MANIFEST,
    NOTICES_WORKER,
    SCRIPTS,
    STYLESHEET,
    STYLESHEET_PATH,
    Script,
)

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


WORKER_PATH, MANIFEST_PATH = "/assets/notices-worker.js", "/assets/manifest.webmanifest"
# Names that stay: a browser keeps the worker by its address, and asks whether it changed.
_KEPT_HEADERS = {
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'",
}


def worker(visit: PageRequest) -> Response:
    """What shows the notices that a browser gets; it asks nothing of anybody."""
    del visit
    return Response(NOTICES_WORKER, 200, _KEPT_HEADERS, "text/javascript")


def manifest(visit: PageRequest) -> Response:
    """By which the pages can be installed; it tells nothing of whose they are."""
    del visit
    return Response(MANIFEST, 200, _KEPT_HEADERS, "application/manifest+json")


ASSET_ROUTES = (
    PageRoute("GET", WORKER_PATH, worker, open_to_all=True),
    PageRoute("GET", MANIFEST_PATH, manifest, open_to_all=True),
    PageRoute("GET", "/icon.svg", icon, open_to_all=True),
    PageRoute("GET", STYLESHEET_PATH, stylesheet, open_to_all=True),
    *(PageRoute("GET", each.path, _answering(each), open_to_all=True) for each in SCRIPTS),
)
