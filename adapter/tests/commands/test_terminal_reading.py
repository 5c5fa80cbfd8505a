"""Records on a terminal, from servers that tell more or less of themselves."""

from __future__ import annotations

from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from pdpp_mcp_server.commands.read_options import OutputFlags, RowFlags
from pdpp_mcp_server.commands.terminal_reading import TerminalReading
from pdpp_mcp_server.rs_client.port import RsResponse

RIDES = [{"id": "7", "data": {"number": "K1", "route": "Home to sea"}}]


class Server:
    """Rides, and a schema with such a status."""

    def __init__(self, status: int) -> None:
        self.status = status

    async def get(self, path: Any, query: Any = (), *, max_bytes: int | None = None) -> RsResponse:
        del query, max_bytes
        if "schema" not in path:
            return RsResponse(200, {"data": RIDES, "has_more": False})
        fields = {"number": "t=string", "route": "role=primary-title"}
        streams = [{"field_capabilities": fields}]
        return RsResponse(self.status, {"connectors": [{"streams": streams}]})


@pytest.mark.parametrize(
    ("status", "columns"), [(200, ["route", "number", "id"]), (400, ["number", "route", "id"])]
)
def test_records_are_listed_whether_or_not_titles_are_told(
    status: int, columns: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with start_blocking_portal() as portal:
        reading = TerminalReading(Server(status), portal, OutputFlags(), reads_days=False)
        reading.query("rides", None, None, RowFlags())
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == columns
    assert any("Home to sea" in row for row in rows)
