"""Owner lists: pages of a list that is read by number or by name, with sealed cursors.

Rule: a cursor is good for the same route, the same filters and the same owner only.
Source: docs/contract/resource-server.md 14.
"""

from __future__ import annotations

from collections.abc import Sequence

from personal_server.domain.cursor import (
    CursorPlace,
    Sealer,
    TokenUse,
    holder_digest,
    open_place,
    outlived,
    request_digest,
    seal_place,
)
from personal_server.resource_server.envelopes import T
from personal_server.web.requests import Request

PAGED = frozenset({"limit", "cursor"})


def page_start(request: Request, sealer: Sealer) -> object | None:
    """Where the page begins, or `None` for the first.  Raises: InvalidCursor, CursorExpired."""
    token = request.parameters.texts.get("cursor")
    if token is None:
        return None
    place = open_place(sealer, TokenUse.LIST, token, _asked(request), param="cursor")
    if place.sources != holder_digest(request.authority):
        raise outlived(request.authority)
    return place.position[0]


def cursor_after(request: Request, sealer: Sealer, position: object) -> str:
    """The cursor of the page that follows a position."""
    place = CursorPlace(_asked(request), holder_digest(request.authority), (position,))
    return seal_place(sealer, TokenUse.LIST, place)


def named_page(
    request: Request, sealer: Sealer, items: Sequence[tuple[str, T]]
) -> tuple[list[T], str | None]:
    """One page of items in the order of their names, and the cursor of the next."""
    start = page_start(request, sealer)
    limit = request.parameters.integers.get("limit") or len(items)
    rest = [item for item in items if start is None or item[0] > str(start)]
    shown = rest[:limit]
    following = cursor_after(request, sealer, shown[-1][0]) if len(rest) > len(shown) else None
    return [value for _, value in shown], following


def _asked(request: Request) -> str:
    sent = request.parameters
    scalars = {**sent.texts, **sent.integers, **sent.flags}
    filters = {k: v for k, v in scalars.items() if k not in PAGED}
    asked = (sorted(request.path.items()), sorted(filters.items()))
    return request_digest(request.authority.cursor_holder, request.route_name, asked)
