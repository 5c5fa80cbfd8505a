"""A server on PostgreSQL: whose data it is, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from personal_server.app.data_repairs import write_lost_configuration
from personal_server.app.stores import open_stores
from personal_server.configuration_file import read_configuration
from personal_server.settings import Settings
from personal_server.upkeep.ownership import DataMismatch
from tests.postgresql import schema, server


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    with schema() as name:
        data_dir = tmp_path / "data"
        yield Settings(data_dir=data_dir, database_url=server().url(), database_schema=name)


def test_an_owner_begins_and_is_known_again(settings: Settings) -> None:
    with open_stores(settings, serving=True) as stores:
        owner = stores.configuration.subject_id
        # two servers may work on one schema
        with open_stores(settings, serving=True) as others:
            assert others.configuration.subject_id == owner
        assert stores.database.sizes()[0] > 0
    assert not settings.database_path.exists()
    settings.data_dir.joinpath("config.toml").unlink()
    write_lost_configuration(settings)
    found = read_configuration(settings.data_dir)
    assert found is not None
    assert found.subject_id == owner


def test_a_configuration_beside_an_empty_schema_is_refused(settings: Settings) -> None:
    with open_stores(settings, serving=False):
        pass
    with schema() as other:
        moved = replace(settings, database_schema=other)
        with pytest.raises(DataMismatch), open_stores(moved, serving=False):
            pass
