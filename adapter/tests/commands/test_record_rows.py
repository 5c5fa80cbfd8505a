from __future__ import annotations

import io

from rich.console import Console

from pdpp_mcp_server.commands.record_rows import table_of_rows

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
