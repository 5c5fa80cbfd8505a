"""Where a server answers is kept for other terminals, and never the address of one before it."""

from __future__ import annotations

import os
from pathlib import Path

from personal_server.cli.served_address import FILE, note_address, noted_address
from personal_server.settings import Settings

FIRST, SECOND = "http://127.0.0.1:8000", "http://127.0.0.1:8123"


def test_the_last_server_is_the_one(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    assert noted_address(settings) is None
    note_address(tmp_path, FIRST)
    note_address(tmp_path, SECOND)
    assert noted_address(settings) == SECOND
    assert [each.name for each in tmp_path.iterdir()] == [FILE]


def test_where_it_cannot_be_kept_that_of_the_server_before_does_not_stay(tmp_path: Path) -> None:
    note_address(tmp_path, FIRST)
    (tmp_path / f".{FILE}-{os.getpid()}").mkdir()  # so that nothing can be written there
    note_address(tmp_path, SECOND)
    assert noted_address(Settings(data_dir=tmp_path)) is None
