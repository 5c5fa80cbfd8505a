"""What the recording server holds: connections, their streams, their records."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.tests.fake_wire import Json


@dataclass(slots=True)
class Source:
    """One connection and what it holds."""

    connection_id: str
    connector_key: str
    grant_id: str
    display_name: str | None
    streams: dict[str, dict[str, Json]]


def record_row(kind: str, source: Source, stream: str, key: str) -> Json:
    """One record as lists show it; a package's rows name their grant."""
    row: Json = {
        "object": "record",
        "id": key,
        "record_id": key,
        "stream": stream,
        "data": source.streams[stream][key],
        "emitted_at": "2026-07-01T08:00:00.000Z",
        "connection_id": source.connection_id,
        "connector_key": source.connector_key,
    }
    if source.display_name:
        row["display_name"] = source.display_name
    if kind == "mcp_package":
        row["grant_id"] = source.grant_id
    return row
