"""The stores of a data directory, opened together."""

from pathlib import Path

from personal_server.app.stores import open_stores
from personal_server.collecting.declarations import declare
from personal_server.settings import Settings
from personal_server.storage.authorization_rows import OwnerRow

JOURNAL = Path(__file__).parents[1] / "samples" / "journal.json"


def test_one_state_shows_both_stores_as_they_were_when_it_was_opened(tmp_path: Path) -> None:
    owner = OwnerRow(created_at_ns=1)
    with open_stores(Settings(data_dir=tmp_path), serving=False) as stores:
        with stores.open_state(None) as (reader, snapshot):
            assert reader.rows(OwnerRow) == []
            declare(stores.records, JOURNAL.read_bytes(), 1)
            with stores.authorization.write() as writer:
                writer.insert(owner)
            assert reader.rows(OwnerRow) == []
            assert snapshot.declarations() == ()
        with stores.open_state(None) as (reader, snapshot):
            assert reader.rows(OwnerRow) == [owner]
            assert [found.connector_key for found in snapshot.declarations()] == ["journal"]
