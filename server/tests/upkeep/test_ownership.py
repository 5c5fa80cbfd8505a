"""Nothing that somebody else may have planted in a data directory is opened."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from personal_server.app.data_repairs import write_lost_configuration
from personal_server.app.stores import open_stores
from personal_server.settings import Settings
from personal_server.upkeep.ownership import DataNotOwned, require_own_files

NOBODY = 65_534
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    found = Settings(data_dir=tmp_path / "data")
    with open_stores(found, serving=False):
        pass
    return found


def refused(settings: Settings) -> None:
    with pytest.raises(DataNotOwned), open_stores(settings, serving=False):
        pass
    with pytest.raises(DataNotOwned):
        write_lost_configuration(settings)


@pytest.mark.parametrize(
    "name", ["config.toml", "personal-server.sqlite3", "personal-server.sqlite3-wal", "blobs"]
)
def test_a_planted_link_is_refused(settings: Settings, tmp_path: Path, name: str) -> None:
    path, elsewhere = settings.data_dir / name, tmp_path / "elsewhere"
    if path.exists():
        path.rename(elsewhere)
    path.symlink_to(elsewhere)
    refused(settings)
    path.unlink()


@AS_ROOT
@pytest.mark.parametrize("name", [".", "config.toml", "personal-server.sqlite3"])
def test_what_belongs_to_somebody_else_is_refused(settings: Settings, name: str) -> None:
    path = settings.data_dir / name
    os.chown(path, NOBODY, NOBODY)
    try:
        refused(settings)
    finally:
        os.chown(path, 0, 0)


@AS_ROOT
def test_a_link_that_somebody_else_put_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "data"
    link.symlink_to(tmp_path / "real")
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(DataNotOwned):
        require_own_files(link)


def test_a_link_of_the_owner_to_another_disk_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "data").symlink_to(tmp_path / "real")
    with open_stores(Settings(data_dir=tmp_path / "data"), serving=False) as stores:
        assert stores.configuration.subject_id.startswith("own_")
