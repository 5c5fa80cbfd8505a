"""A feed whose server has no room left: nothing is lost, nothing half, and it goes on by itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pdpp_kernel.errors import StorageUnavailable
from personal_server.app.feeding import feed_engine, feed_store
from personal_server.app.stores import open_stores
from personal_server.feeds import feed_ledger
from personal_server.feeds.watched_folders import layout_of
from personal_server.settings import Settings
from server.tests.app.importing_here import ImportHere
from server.tests.app.test_feeding import Fed, aged, an_mbox
from server.tests.feeds.test_feed_states import a_feed
from tests.small_disk import full, small_disk

MAILS, LEFT_BYTES = 300, 400_000


def test_a_disk_that_fills_while_a_file_is_read_costs_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a byte left, and with some that end amid the import."""
    monkeypatch.setattr(feed_ledger, "SETTLED_AFTER_NS", 0)
    folder = aged(tmp_path / "Downloads" / "a.mbox", an_mbox(range(MAILS))).parent
    with small_disk(tmp_path / "disk") as disk:
        settings = Settings(data_dir=disk / "data", time_zone="UTC")
        with open_stores(settings, serving=False) as stores:
            feed = a_feed(place=str(folder), layout=layout_of(folder), due_at_ns=stores.clock())
            feed_store(stores).add_feed(feed)
            importer = ImportHere.over(stores, settings)
            fed = Fed(stores, feed_engine(settings, stores, importer), feed.feed_id)
            fed.run()  # it settles
            with full(disk), pytest.raises(StorageUnavailable):
                fed.run()
            filler = disk / "beside"
            room = os.statvfs(disk)
            filler.write_bytes(b"x" * (room.f_bavail * room.f_frsize - LEFT_BYTES))
            amid = fed.run()
            assert (amid.code, amid.needs_owner) == ("storage_read_only", False)
            assert fed.feed.state == "resting"
            filler.unlink()
            assert fed.run().code is None
            assert fed.held() == {"messages": MAILS}
            assert fed.check().differences == []
