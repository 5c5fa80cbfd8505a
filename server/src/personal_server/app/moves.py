"""Everything of a server, moved between a data directory and a schema of PostgreSQL."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import msgspec

from personal_server.app.databases import open_database
from personal_server.app.stores import Stores, open_stores
from personal_server.configuration_file import configuration_path, read_configuration
from personal_server.settings import Settings
from personal_server.storage.sql.care.whole_copy import CopyRefused, DatabaseCopy, Tell, silently
from personal_server.storage.sql.records.blob_files import blob_path
from personal_server.upkeep.backups import fsync_folder
from personal_server.upkeep.ledger import NAME as LEDGER


class Moved(msgspec.Struct, frozen=True):
    """What is there now as it was: the digest of each table, and how many blobs were copied."""

    digests: Mapping[str, str]
    blobs: int


def move(settings: Settings, target: Settings, tell: Tell = silently) -> Moved:
    """Copy everything to where `target` keeps it, prove that it is the same, and let it be opened.

    No server may work on the source; it stays as it is.  What was ended goes on.  Files beside the
    database are copied where `target` has another data directory.
    Raises: CopyRefused, DatabaseInUse, StorageUnavailable.
    """
    if _place_of(settings) == _place_of(target):
        raise CopyRefused("The data are there already.")
    with open_stores(settings, serving=True) as stores:
        if target.data_dir != settings.data_dir:
            file = read_configuration(target.data_dir)
            if file is not None:
                raise CopyRefused("The target of the move already has a config.toml.")
        with closing(open_database(target, serving=True, configured=None)) as database:
            # nobody writes meanwhile
            with stores.database.write() as session:
                copy = DatabaseCopy(session, database, tell)
                digests = copy.run()
                blobs = 0
                if target.data_dir != settings.data_dir:
                    blobs = _copy_files(stores, target.data_dir)
            copy.finish()
    return Moved(digests, blobs)


def _place_of(settings: Settings) -> tuple[str, str]:
    if settings.database_url is None:
        return "", str(settings.database_path.resolve())
    return settings.database_url, settings.database_schema


def _copy_files(stores: Stores, data_dir: Path) -> int:
    """Blobs and the ledger, the configuration last: with it everything is there."""
    blob_ids = stores.upkeep.counted().blob_ids
    folders = (stores.data_dir / "blobs", data_dir / "blobs")
    copied = 0
    for blob_id in blob_ids:
        source, target = (blob_path(folder, blob_id) for folder in folders)
        if source.exists() and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _copy_file(source, target)
            copied += 1
    for source in (stores.data_dir / LEDGER, configuration_path(stores.data_dir)):
        if source.exists():
            _copy_file(source, data_dir / source.name)
    return copied


def _copy_file(source: Path, target: Path) -> None:
    """Durably, and whole or not at all."""
    partial = target.with_name(f".{target.name}.moving")
    with source.open("rb") as content, partial.open("wb") as out:
        os.fchmod(out.fileno(), 0o600)
        shutil.copyfileobj(content, out)
        out.flush()
        os.fsync(out.fileno())
    partial.replace(target)
    fsync_folder(target.parent)
