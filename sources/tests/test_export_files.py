"""How a file of an export is opened: at once, and nowhere else than where it must lie."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pdpp_sources.export_files import open_file


def test_no_pipe_is_waited_for_and_no_link_leads_out(tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    folder.mkdir()
    for path in (outside, folder / "own"):
        path.write_text(path.name)
    os.mkfifo(folder / "pipe")
    (folder / "out").symlink_to(outside)
    (folder / "in").symlink_to(folder / "own")
    with open_file(folder / "in", folder) as own:
        assert own.read() == b"own"
    for name in ("pipe", "out"):
        with pytest.raises(PermissionError):
            open_file(folder / name, folder)
