"""A backup of a working server, restored elsewhere, over the wire."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture.restoring import restore
from tests.torture.tormented import tormented


# minutes; each of its rules alone: server/tests/app/test_backups.py, granting/test_pauses.py
@pytest.mark.long
def test_what_a_backup_held_comes_back_without_what_was_ended_or_erased_since(
    tmp_path: Path,
) -> None:
    with tormented(tmp_path, 11) as server:
        restore(server)
        assert len(server.erased) > 0
        assert len(server.ended) == 1
