"""Envelopes: lists and single objects as docs/contract/resource-server.md 2.2 draws them.

Rule: `has_more`, `next_cursor` and `links.next` always agree, because one value makes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from personal_server.domain.cursor import (
    Place,
    Sealer,
    TokenUse,
    open_place,
    request_digest,
    seal_place,
)
from personal_server.web.requests import Request

NO_COUNT: Mapping[str, object] = {"kind": "none"}


def list_body(
    request: Request,
    data: Sequence[object],
    *,
    next_cursor: str | None = None,
    next_changes_since: str | None = None,
    count: Mapping[str, object] = NO_COUNT,
    warnings: Sequence[Mapping[str, object]] = (),
    meta: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """A list envelope.  `meta` are further members of `meta`.

    Source: docs/contract/resource-server.md 2.2.
    """
    body: dict[str, object] = {
        "object": "list",
        "url": request.raw_path,
        "data": data,
        "has_more": next_cursor is not None,
    }
    if next_cursor is not None:
        body["next_cursor"] = next_cursor
    if next_changes_since is not None:
        body["next_changes_since"] = next_changes_since
    following = None if next_cursor is None else request.next_link(next_cursor)
    body["links"] = {"self": request.self_link, "next": following}
    body["meta"] = _meta(request, count, warnings, meta)
    return body


def object_body(
    request: Request,
    members: Mapping[str, object],
    *,
    warnings: Sequence[Mapping[str, object]] = (),
    meta: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """A single object: its members, `links` and `meta`, flat.

    Source: docs/contract/resource-server.md 2.2.
    """
    return {
        **members,
        "links": {"self": request.self_link},
        "meta": _meta(request, NO_COUNT, warnings, meta),
    }


def _meta(
    request: Request,
    count: Mapping[str, object],
    warnings: Sequence[Mapping[str, object]],
    meta: Mapping[str, object] | None,
) -> dict[str, object]:
    distinct: list[Mapping[str, object]] = []
    for warning in (*request.parameters.warnings, *warnings):
        if warning not in distinct:
            distinct.append(warning)
    return {"count": count, "warnings": distinct, **(meta or {})}


# Owner lists: pages of a list that is read by number or by name, with sealed cursors.
#
# Rule: a cursor is good for the same route, the same filters and the same owner only.
# Source: docs/contract/resource-server.md 14.


T = TypeVar("T")

PAGED = frozenset({"limit", "cursor"})


def page_start(request: Request, sealer: Sealer) -> object | None:
    """Where the page begins, or `None` for the first.  Raises: InvalidCursor."""
    token = request.parameters.text("cursor")
    if token is None:
        return None
    place = open_place(sealer, TokenUse.LIST, token, _asked(request), param="cursor")
    return place.position[0]


def cursor_after(request: Request, sealer: Sealer, position: object) -> str:
    """The cursor of the page that follows a position."""
    place = Place(_asked(request), "", (position,))
    return seal_place(sealer, TokenUse.LIST, place)


def named_page(
    request: Request, sealer: Sealer, items: Sequence[tuple[str, T]]
) -> tuple[list[T], str | None]:
    """One page of items in the order of their names, and the cursor of the next."""
    start = page_start(request, sealer)
    limit = request.parameters.integer("limit") or len(items)
    rest = [item for item in items if start is None or item[0] > str(start)]
    shown = rest[:limit]
    following = cursor_after(request, sealer, shown[-1][0]) if len(rest) > len(shown) else None
    return [value for _, value in shown], following


def _asked(request: Request) -> str:
    filters = {k: v for k, v in request.parameters.scalars.items() if k not in PAGED}
    asked = (sorted(request.path.items()), sorted(filters.items()))
    return request_digest(request.authority.holder, request.route_name, asked)
