"""Bytes of a blob that are not those that were stored are never handed out."""

from __future__ import annotations

from pathlib import Path

import pytest

from pdpp_kernel.errors import DamagedRecord
from personal_server.reading.export import Enclosures, ExportArchive, extent_of
from personal_server.storage.sql.records.blob_files import blob_path
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.worlds import furnish, note, write

BYTES = b"the bytes of a picture"


def test_changed_bytes_are_refused_left_out_of_exports_and_healed(tmp_path: Path) -> None:
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a")
        upload, _ = store.receive_blob("cin_a", [BYTES], "image/png", 1, 100)
        reference = {"blob_id": upload.blob_id}
        write(store, "cin_a", [note("a", blob_ref=reference)])
        content = store.open_blob(upload.blob_id)
        assert content is not None
        with content:
            assert content.read() == BYTES
        path = blob_path(tmp_path / "data" / "blobs", upload.blob_id)
        path.write_bytes(BYTES.replace(b"picture", b"picturf"))
        with pytest.raises(DamagedRecord):
            store.open_blob(upload.blob_id)
        archive = ExportArchive(1)
        with store.snapshot() as snapshot:
            made = b"".join(archive.records(snapshot, extent_of(snapshot, None, None)))
        made += b"".join(archive.rest(Enclosures(), store.open_blob))
        assert b"picturf" not in made
        assert f'"damaged_blobs": [\n    "{upload.blob_id}"'.encode() in made
        store.receive_blob("cin_a", [BYTES], "image/png", 2, 100)
        store.look_at_damage()
        healed = store.open_blob(upload.blob_id)
        assert healed is not None
        healed.close()


def test_bytes_whose_file_is_gone_are_none_and_come_again(tmp_path: Path) -> None:
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a")
        upload, _ = store.receive_blob("cin_a", [BYTES], "image/png", 1, 100)
        blob_path(tmp_path / "data" / "blobs", upload.blob_id).unlink()
        assert store.open_blob(upload.blob_id) is None
        assert store.blob_upload("cin_a", upload.blob_id) == upload
        again, is_new = store.receive_blob("cin_a", [BYTES], "image/png", 2, 100)
        assert (again.blob_id, again.uploaded_at_ns, is_new) == (upload.blob_id, 2, False)
        content = store.open_blob(upload.blob_id)
        assert content is not None
        with content:
            assert content.read() == BYTES
