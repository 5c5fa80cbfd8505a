"""Which record a row is, and what of it is its own: identity beside payload, ours or a foreign one.

Source: MCP adapter contract 3.6, 9.1.
"""

from dataclasses import dataclass

from personal_server.mcp_adapter.calls import Call
from personal_server.mcp_adapter.evidence.ladder import Holder
from personal_server.mcp_adapter.evidence.naming import record_address
from personal_server.mcp_adapter.handles import RecordRef, format_id, handle_chars, is_part
from personal_server.rs_client.json_values import Json, as_text, is_object
from personal_server.rs_client.normalize import connection_of, record_key_of

identity_members = frozenset(
    {
        "object",
        "id",
        "record_id",
        "record_key",
        "stream",
        "connection_id",
        "connector_instance_id",
        "connector_key",
        "connector_id",
        "display_name",
        "grant_id",
        "source",
        "emitted_at",
        "expanded",
        "deleted",
        "deleted_at",
        "links",
        "meta",
        "record_url",
    }
)


@dataclass(frozen=True, slots=True)
class Place:
    """What the request says about rows that do not say it themselves.

    Shapes: binary_fields are the fields whose declaration says bytes, where a schema was at hand.
    """

    stream: str
    connection_id: str | None = None
    binary_fields: frozenset[str] = frozenset()


def holder_of(call: Call, row: Json, place: Place) -> Holder:
    """The record a row is, and its id as shown."""
    key = record_key_of(row)
    stream = as_text(row.get("stream")) or place.stream
    if key is None or not is_part(stream):
        return Holder(_address(call, row), None)
    record = RecordRef(connection_of(row) or place.connection_id, stream, key)
    shown = format_id(record)
    if len(shown) > handle_chars:
        return Holder(_address(call, row), None)
    return Holder(shown, record)


def _address(call: Call, row: Json) -> str:
    return record_address(call.provider_url, row, {}, None) or "unidentified"


def payload_of(row: Json) -> Json:
    """The record's own members: `data` of a wrapper, else all that is not identity."""
    data = row.get("data")
    if is_object(data):
        return data
    return {name: value for name, value in row.items() if name not in identity_members}
