from __future__ import annotations

import io

from rich.console import Console

from pdpp_mcp_server.commands.record_rows import (
    asked_columns,
    fitting_columns,
    record_row,
    table_of_rows,
    titles_of,
)

COLUMNS = ("account", "stream", "records", "from", "to", "on pages")
DAYS = ("2025-01-14", "2026-11-28")
ROWS = [
    ("Home mailbox", "messages", "4,000", *DAYS, "Your e-mails"),
    ("Google", "youtube_playlist_videos", "12", *DAYS, "What is in your YouTube playlists"),
    ("An account that somebody called by a whole sentence", "notes", "1", *DAYS, "Your notes"),
]


def test_names_go_on_in_the_next_line_and_nothing_is_cut() -> None:
    out = io.StringIO()
    Console(file=out, width=80).print(table_of_rows(COLUMNS, ROWS, 80))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in out.getvalue()
    letters = "".join(sorted("".join(lines).replace(" ", "")))
    told = [*COLUMNS, *(cell for row in ROWS for cell in row)]
    assert letters == "".join(sorted("".join(told).replace(" ", "")))


RIDE = {"number": "7", "began": "2024-07-01T08:00:00.123Z", "route": "x" * 30, "fee": None}


def test_a_list_shows_when_first_whatever_the_time_is_called() -> None:
    row = record_row({"id": "7", "data": RIDE})
    assert row["when"] == "Mon 2024-07-01 08:00 UTC"
    assert record_row({"id": "7", "data": RIDE | {"sent_at": "2024-08-01T08:00:00Z"}})["when"] == (
        "Thu 2024-08-01 08:00 UTC"
    )


def test_a_list_shows_the_title_before_other_fields() -> None:
    schema = {
        "connectors": [
            {
                "streams": [
                    {"field_capabilities": {"number": "t=string", "route": "role=primary-title"}}
                ]
            }
        ]
    }
    row = record_row({"id": "7", "data": RIDE}, titles_of(schema))
    assert [*row][:3] == ["when", "route", "number"]
    assert fitting_columns([row], 52)[0] == ["when", "route", "id"]


def test_every_column_that_was_asked_for_is_there_whatever_the_width() -> None:
    rows = [record_row({"id": "7", "data": RIDE})]
    columns, width = asked_columns(rows, ["number", "began", "route", "fee"], 30)
    assert {"when", "id", *RIDE} == set(columns)
    out = io.StringIO()
    cells = [[str(row.get(name) or "") for name in columns] for row in rows]
    Console(file=out, width=width).print(table_of_rows(columns, cells, width))
    head = out.getvalue().splitlines()[0].split()
    assert head == columns
