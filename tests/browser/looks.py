"""Records that look like something other than a list: events, figures, places, pictures."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from typing import Any

from PIL import Image

from pdpp_sources.apple_health.reader import DECLARATION as HEALTH
from pdpp_sources.calendar.reader import DECLARATION as CALENDAR
from pdpp_sources.google.reader import DECLARATION as GOOGLE
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.declaration_document import parse_declaration, render_declaration
from personal_server.domain.stored import Batch, RecordWrite
from personal_server.storage.ports.whole_store import RecordStore

DAYS = 24
PLACES = ((45.46, 9.19), (41.9, 12.5), (52.5, 13.4))
EVENTS = (
    "Dentist",
    "Chess with Alan",
    "Συνάντηση",
    "פגישה",
    "A meeting with everybody from the other building about next year's budget",
)
ACCOUNTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "cin_family": (CALENDAR, "events", "Family calendar"),
    "cin_watch": (HEALTH, "measurements", "Watch"),
    "cin_album": (GOOGLE, "photos", "Photos"),
}
PATHS = {
    "month": "cin_family/events",
    "lines": "cin_watch/measurements",
    "map": "cin_album/photos?as=map",
    "pictures": "cin_album/photos",
}
"""The pages that show them, below `/owner/records/`."""


def fill_looks(records: RecordStore, now_ns: int) -> None:
    """An account of each, with a record a day, where they are not there yet."""
    with records.snapshot() as snapshot:
        if any(each.connection_id in ACCOUNTS for each in snapshot.connections()):
            return
    for connection_id, (raw, stream, name) in ACCOUNTS.items():
        declaration = parse_declaration(raw)
        records.put_declaration(declaration, render_declaration(raw), now_ns)
        records.add_connection(
            Connection(
                connection_id,
                declaration.connector_key,
                declaration.source_id,
                name,
                ConnectionStatus.ACTIVE,
                now_ns,
                now_ns,
            )
        )
        rows = [_row(records, connection_id, stream, day, now_ns) for day in range(DAYS)]
        writes = [RecordWrite(row["id"], row, now_ns) for row in rows]
        records.commit(Batch(connection_id, declaration.streams[stream], writes, now_ns))


def _row(
    records: RecordStore, connection_id: str, stream: str, day: int, now_ns: int
) -> dict[str, Any]:
    begun = datetime.fromtimestamp(now_ns // 10**9, UTC) - timedelta(days=day)
    begin, end = (f"{at:%Y-%m-%dT%H:%M:%SZ}" for at in (begun, begun + timedelta(hours=1)))
    own = {"id": f"{stream}{day:03}"}
    if stream == "events":
        return own | {"title": EVENTS[day % len(EVENTS)], "starts_at": begin, "ends_at": end}
    if stream == "measurements":
        pulse = {"kind": "heart_rate", "value": 58.0 + day * 7 % 23, "unit": "count/min"}
        return own | pulse | {"started_at": begin, "ended_at": end, "device": "Watch"}
    north, east = PLACES[day % len(PLACES)]
    content = _picture(day)
    upload, _ = records.receive_blob(connection_id, [content], "image/jpeg", 0, len(content))
    name = {"filename": f"IMG_{day:04}.jpg", "mime_type": "image/jpeg"}
    blob = {"blob_id": upload.blob_id, "size_bytes": len(content), **name}
    place = {"latitude": north + day / 100, "longitude": east}
    return own | name | place | {"taken_at": begin, "blob_ref": blob}


def _picture(day: int) -> bytes:
    """A sky of its own colour."""
    sky = Image.linear_gradient("L").resize((160, 120))
    made = io.BytesIO()
    hues = Image.new("L", sky.size, day * 97 % 256), Image.new("L", sky.size, 110), sky
    Image.merge("HSV", hues).convert("RGB").save(made, "JPEG")
    return made.getvalue()
