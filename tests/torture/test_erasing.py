"""An owner's delete, and every byte of every file afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture.erasing import erase
from tests.torture.tormented import tormented


@pytest.mark.parametrize("days", ["180", pytest.param("0", marks=pytest.mark.long)])
def test_no_file_of_a_server_holds_what_its_owner_erased(tmp_path: Path, days: str) -> None:
    with tormented(tmp_path, 12, PDPP_CHANGE_HISTORY_DAYS=days) as server:
        erase(server)
        assert server.faults == []
