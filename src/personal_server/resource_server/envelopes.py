"""Envelopes: lists and single objects as section 2.2 draws them.

Rule: `has_more`, `next_cursor` and `links.next` always agree, because one value makes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from personal_server.web.requests import Request

NO_COUNT: Mapping[str, object] = {"kind": "none"}


def exact_count(value: int) -> dict[str, object]:
    """`meta.count` of a counted list."""
    return {"kind": "exact", "value": value}


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
    """A list envelope.  `meta` are further members of `meta`.  Source: RS contract 2.2."""
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
    """A single object: its members, `links` and `meta`, flat.  Source: RS contract 2.2."""
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
