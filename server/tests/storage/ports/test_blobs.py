"""What every store does with blobs."""

from __future__ import annotations

from typing import Any

import pytest

from pdpp_kernel.errors import BodyTooLarge
from personal_server.domain.stored import IncomingBlob
from personal_server.enforcement.plans import BlobPlan
from personal_server.enforcement.scopes import Scope
from personal_server.storage.ports.whole_store import RecordStore
from server.tests.storage.ports.asking import BOTH, content_of, receive
from server.tests.storage.worlds import note, scope, write


def test_bytes_are_kept_by_their_content(store: RecordStore) -> None:
    first = receive(store, b"hello")
    upload, is_new = store.receive_blob("cin_a", [b"hello"], "text/html", 5, 99)
    assert (upload.blob_id, upload.size_bytes, is_new) == (first, 5, False)
    assert content_of(store, first) == b"hello"
    assert store.blob_upload("cin_b", first) is None
    assert content_of(store, "blob_sha256_" + "0" * 64) is None


def test_several_are_kept_as_each_alone(store: RecordStore) -> None:
    held_id = receive(store, b"hello")
    contents = [b"hello", *(f"{number}".encode() for number in range(120)), b"7"]
    incoming = [IncomingBlob([content], "text/plain", 99) for content in contents]
    uploads = store.receive_blobs("cin_a", incoming, 6)
    assert [content_of(store, upload.blob_id) for upload, _ in uploads] == contents
    assert [is_new for _, is_new in uploads] == [False, *[True] * 120, False]
    assert store.blob_upload("cin_a", held_id) == uploads[0][0]
    held = IncomingBlob([b"hello"], "text/html", 99, held_id)
    assert store.receive_blobs("cin_a", [held], 8) == []
    assert store.blob_upload("cin_a", held_id) == uploads[0][0]
    with pytest.raises(BodyTooLarge):
        store.receive_blobs("cin_a", [*incoming[:1], IncomingBlob([b"x" * 100], "a/b", 99)], 7)
    assert store.sweep_blobs(10) == 121


def test_a_blob_too_large_leaves_nothing(store: RecordStore) -> None:
    with pytest.raises(BodyTooLarge):
        store.receive_blob("cin_a", [b"x" * 60, b"x" * 60], "text/plain", 1, 99)
    assert store.sweep_blobs(10) == 0


def test_a_blob_is_found_through_a_granted_field_of_a_visible_record(store: RecordStore) -> None:
    blob_id = receive(store, b"hello")
    reference = {"blob_id": blob_id, "mime_type": "text/plain", "filename": "a.txt"}
    write(store, "cin_a", [note("n1", blob_ref=reference)])
    write(store, "cin_b", [note("n1", blob_ref=reference)])

    def found(*scopes: Scope) -> list[tuple[str, str, dict[str, Any]]]:
        with store.snapshot() as snapshot:
            references = snapshot.blob(BlobPlan(scopes, blob_id))
        return [(r.connection_id, r.field, r.reference) for r in references]

    assert found(*BOTH) == [("cin_a", "blob_ref", reference)]
    assert found(scope("cin_a", fields=("id", "at"))) == []
    assert found(scope("cin_a", resources=frozenset({"n2"}))) == []


def test_bytes_go_with_their_last_reference(store: RecordStore) -> None:
    blob_id = receive(store, b"hello")
    receive(store, b"hello", "cin_b")
    reference = {"blob_id": blob_id}
    write(store, "cin_a", [note("n1", blob_ref=reference), note("n2", blob_ref=reference)])
    write(store, "cin_b", [note("n1", blob_ref=reference)])
    store.delete_record("cin_a", "notes", "n1", 9)
    assert store.blob_upload("cin_a", blob_id) is not None
    write(store, "cin_a", [note("n2")])
    assert store.blob_upload("cin_a", blob_id) is None
    assert content_of(store, blob_id) == b"hello"
    store.erase_connection("cin_b", 9)
    assert content_of(store, blob_id) is None


def test_unreferenced_bytes_are_swept_after_a_while(store: RecordStore) -> None:
    old, young = receive(store, b"old", now=10), receive(store, b"young", now=30)
    kept = receive(store, b"kept", now=10)
    write(store, "cin_a", [note("n1", blob_ref={"blob_id": kept})])
    assert store.sweep_blobs(20) == 1
    found = [content_of(store, blob_id) for blob_id in (old, young, kept)]
    assert found == [None, b"young", b"kept"]
