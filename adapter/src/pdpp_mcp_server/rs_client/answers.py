"""What a resource server may answer → the one shape the adapter reads.

Source: docs/contract/mcp-adapter.md 3.5 and 3.6. Pure: bodies in, values out.
"""

from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from urllib.parse import parse_qs, urlsplit

from pdpp_kernel.status_phrases import status_phrase
from pdpp_mcp_server.rs_client.json_values import (
    Json,
    as_count,
    as_object,
    as_text,
    first_text,
    is_list,
    is_object,
    objects_in,
)
from pdpp_mcp_server.rs_client.port import RsResponse

ROW_PATHS = (
    ("data",),
    ("data", "data"),
    ("data", "results"),
    ("data", "records"),
    ("data", "hits"),
    ("records",),
    ("results",),
    ("hits",),
)
"""Where servers keep the rows of a list, ours first."""


def is_coding_known(headers: Mapping[str, str]) -> bool:
    """Whether a body is plain or packed once, as was asked; packed twice it may be without end."""
    return headers.get("content-encoding", "").strip().lower() in ("", "identity", "gzip")


def error_of(response: RsResponse) -> Json:
    """The error object of a refusal; always with type, code and message."""
    body = as_object(response.body)
    error = body.get("error")
    found: Json
    if is_object(error) and as_text(error.get("code")):
        found = dict(error)
    elif as_text(error):
        found = {"type": "api_error", "code": error, "message": body.get("error_description")}
    elif as_text(body.get("code")):
        found = dict(body)
    else:
        found = {"type": "api_error", "code": f"http_{response.status}"}
    found.setdefault("type", "api_error")
    if not as_text(found.get("message")):
        found["message"] = status_phrase(response.status)
    retry = found.get("retry_with")
    if is_object(retry):
        found["retry_with"] = as_text(retry.get("field"))
        if as_text(retry.get("guidance")):
            found["guidance"] = retry["guidance"]
    if found.get("retry_with") is None:
        found.pop("retry_with", None)
    return found


def request_id_of(headers: Mapping[str, str], body: object) -> str | None:
    """The id of an answer: header first, then the body's own."""
    sent = headers.get("request-id") or headers.get("x-request-id")
    if sent:
        return sent
    whole = as_object(body)
    return first_text(
        as_object(whole.get("error")).get("request_id"),
        as_object(whole.get("meta")).get("request_id"),
    )


def retry_after_of(status: int, value: str | None, now: datetime) -> int | None:
    """Seconds to wait after a 429 or 503; a date counts from now."""
    if value is None or status not in {429, 503}:
        return None
    if value.strip().isdigit():
        return int(value.strip()[:9])
    try:
        moment = parsedate_to_datetime(value)
        return max(0, int((moment - now).total_seconds()))
    except (ValueError, TypeError):
        return None


def rows_of(body: Json) -> list[Json]:
    """The rows of a list body, wherever they stand."""
    return objects_in(_at(body, _rows_path(body)))


def with_rows(body: Json, rows: list[Json]) -> Json:
    """The same body with other rows at the same place."""
    first, *rest = _rows_path(body)
    if rest:
        return {**body, first: {**as_object(body.get(first)), rest[0]: rows}}
    return {**body, first: rows}


def _rows_path(body: Json) -> tuple[str, ...]:
    return next((path for path in ROW_PATHS if is_list(_at(body, path))), ROW_PATHS[0])


def _at(body: Json, path: tuple[str, ...]) -> object:
    value: object = body.get(path[0])
    for name in path[1:]:
        value = as_object(value).get(name)
    return value


def page_member(body: Json, name: str) -> object:
    """A member of a list envelope, also when the list is nested one level down."""
    if name in body:
        return body[name]
    return as_object(body.get("data")).get(name)


def meta_of(body: Json) -> Json:
    """The meta object of an answer."""
    return as_object(page_member(body, "meta"))


def has_more(body: Json) -> bool:
    """Whether the server says that more follows."""
    return page_member(body, "has_more") is True


def next_cursor_of(body: Json) -> str | None:
    """The cursor of the next page, also when only a link holds it."""
    direct = as_text(page_member(body, "next_cursor"))
    if direct:
        return direct
    link = as_text(as_object(page_member(body, "links")).get("next")) or ""
    return next(iter(parse_qs(urlsplit(link).query).get("cursor", ())), None)


def count_of(body: Json) -> tuple[str, int] | None:
    """The count a list states, as (kind, value); None when it states none."""
    meta = meta_of(body)
    plain, count = as_count(meta.get("count")), as_object(meta.get("count"))
    if plain is not None:
        return as_text(meta.get("count_accuracy")) or "exact", plain
    value, kind = as_count(count.get("value")), as_text(count.get("kind"))
    return (kind, value) if kind and kind != "none" and value is not None else None


def connection_of(row: Json) -> str | None:
    """The connection a row names, in either spelling."""
    return first_text(row.get("connection_id"), row.get("connector_instance_id"))


def connector_key_of(row: Json) -> str | None:
    """The short connector name; of a URL the last path segment."""
    source = as_object(row.get("source"))
    value = first_text(row.get("connector_key"), row.get("connector_id"), source.get("id"))
    if value is None or "://" not in value:
        return value
    return value.rstrip("/").rsplit("/", 1)[-1] or value


def record_key_of(row: Json) -> str | None:
    """The record key of a row."""
    return first_text(row.get("record_id"), row.get("record_key"), row.get("id"))
