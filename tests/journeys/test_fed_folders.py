"""Folders that are written to while they are fed, for a short time; the benches do it for long."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from bench.fed_downloads import exports, fed_downloads
from bench.fed_terminal import FedTerminal
from bench.fed_vault import fed_vault
from bench.site import POSTGRESQL, Site, database
from server.tests.app.http_server.served import until
from server.tests.app.test_feeding import an_mbox

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def test_the_records_equal_a_vault_that_was_edited_meanwhile(tmp_path: Path) -> None:
    assert fed_vault(tmp_path, seconds=15, seed=1) == 0


def test_no_export_that_falls_in_is_imported_half_twice_or_into_another_account(
    tmp_path: Path,
) -> None:
    some = random.Random(2).sample(exports(), 8)
    assert fed_downloads(tmp_path, some, spread_seconds=4) == 0


def test_of_two_servers_on_one_database_one_feeds_and_the_other_goes_on(tmp_path: Path) -> None:
    """One is killed while both look; what it began is finished, and nothing comes twice."""
    folder, mails, files = tmp_path / "Downloads", 30, 8
    folder.mkdir()
    with database(POSTGRESQL) as url:
        first, second = (Site(tmp_path / name, database_url=url) for name in "ab")
        terminal = FedTerminal(second)
        terminal.pdpp("feed", "add", str(folder), "--every", "30s")
        with second.serving():
            with first.serving() as running:
                for number in range(files):
                    begin = number * mails
                    (folder / f"{number}.mbox").write_bytes(an_mbox(range(begin, begin + mails)))
                    if number == files // 2:
                        until(lambda: len(terminal.lines()) > 0)
                os.kill(running.pid, signal.SIGKILL)
            until(lambda: len(terminal.lines()) == mails * files, seconds=400)
            until(lambda: terminal.pdpp("feed", "list")[0]["state"] == "waiting", seconds=200)
        checked = terminal.pdpp("feed", "check", "Downloads")
    assert checked == {"items": files, "records": mails * files, "differences": []}
