"""What an owner and an app do once, each cut off by kill -9 and done again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.torture.interrupting import code_killed, imports_queued, rebuild_killed, upload_killed
from tests.torture.tormented import Tormented, tormented


# a server is killed and started again several times; with many imports it takes minutes
@pytest.mark.long
@pytest.mark.parametrize("scenario", [upload_killed, imports_queued, code_killed, rebuild_killed])
def test_what_was_cut_off_is_done_once(
    tmp_path: Path, scenario: Callable[[Tormented], None]
) -> None:
    with tormented(tmp_path, 17) as server:
        scenario(server)
        assert server.faults == []


@pytest.mark.long
@pytest.mark.timeout(1_500)
def test_sixty_four_uploads_wait_and_none_is_forgotten(tmp_path: Path) -> None:
    with tormented(tmp_path, 17) as server:
        imports_queued(server, 64)
        assert server.faults == []
