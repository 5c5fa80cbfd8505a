"""The human name and the address of a record: never empty, never the snippet.

Source: MCP adapter contract 8.4, 8.5.
"""

import re
from urllib.parse import parse_qsl, quote, urlsplit

from personal_server.mcp_adapter import budgets
from personal_server.mcp_adapter.cleaning import has_steering, one_line
from personal_server.mcp_adapter.evidence.binary import binary_facts
from personal_server.mcp_adapter.evidence.ladder import record_url
from personal_server.mcp_adapter.handles import RecordRef, record_uri
from personal_server.rs_client.json_values import Json, as_text, first_text
from personal_server.rs_client.normalize import connector_key_of

title_names = ("title", "name", "subject", "summary")
url_names = ("url", "source_url", "href")
time_names = (
    "sent_at",
    "authored_at",
    "created_at",
    "source_created_at",
    "occurred_at",
    "updated_at",
)
longest_url = 2_000
white_space = re.compile(r"\s")


def record_title(wrapper: Json, payload: Json, record: RecordRef | None, shown_id: str) -> str:
    """The first title there is; else source, stream and time; else the id."""
    candidates = (wrapper.get("title"), *(payload.get(name) for name in title_names))
    found = next((line for line in map(_line, candidates) if line), None)
    if found:
        return found
    connection = record.connection_id if record else None
    label = first_text(wrapper.get("display_name"), connector_key_of(wrapper), connection)
    parts = (label, record.stream if record else None, event_time(wrapper, payload))
    made = " / ".join(one_line(part, budgets.label) for part in parts if part)
    return one_line(made or shown_id, budgets.title)


def _line(value: object) -> str:
    if not isinstance(value, str) or binary_facts(value) is not None:
        return ""
    return one_line(value, budgets.title)


def event_time(wrapper: Json, payload: Json) -> str | None:
    """When it happened; only without such a time when it was taken in."""
    for name in time_names:
        found = first_text(wrapper.get(name), payload.get(name))
        if found:
            return one_line(found, budgets.label)
    return as_text(wrapper.get("emitted_at"))


def record_address(
    origin: str, wrapper: Json, payload: Json, record: RecordRef | None
) -> str | None:
    """The first usable address: the payload's own, the server's, one built from the parts."""
    own = next((url for name in url_names if (url := safe_url(payload.get(name)))), None)
    if own:
        return own
    connection = record.connection_id if record else None
    stated = _absolute(origin, as_text(wrapper.get("record_url")), connection)
    if stated:
        return stated
    if record is None:
        return None
    built = record_url(origin, record)
    return built if len(built) <= longest_url or not origin else record_uri(record)


def safe_url(value: object) -> str | None:
    """The value when it is a plain web address."""
    if not isinstance(value, str) or not value or len(value) > longest_url:
        return None
    if has_steering(value) or white_space.search(value):
        return None
    try:
        parts = urlsplit(value)
        plain = parts.hostname and parts.username is None and parts.password is None
    except ValueError:
        return None
    return value if parts.scheme in {"http", "https"} and plain else None


def _absolute(origin: str, path: str | None, connection_id: str | None) -> str | None:
    if path is None:
        return None
    url = path if "://" in path else f"{origin}{path}" if path.startswith("/") else None
    if safe_url(url) is None or url is None:
        return None
    parts = urlsplit(url)
    known = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    if connection_id and "connection_id" not in known and not parts.fragment:
        glue = "&" if parts.query else "?"
        return f"{url}{glue}connection_id={quote(connection_id, safe='')}"
    return url
