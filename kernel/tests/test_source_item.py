"""Blobs by their content, and ids that are the same everywhere."""

from __future__ import annotations

import hashlib
import io

import pytest

from pdpp_kernel.source_item import (
    LARGEST_BLOB_BYTES,
    SourceBlob,
    blob_of_bytes,
    blob_of_stream,
    stable_id,
)

CONTENT = b"heavy rain " * 60_000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def read(blob: SourceBlob) -> bytes:
    with blob.open() as stream:
        return stream.read()


@pytest.mark.parametrize(
    "blob",
    [
        blob_of_bytes(CONTENT, "text/plain", "rain.txt"),
        blob_of_stream(lambda: io.BytesIO(CONTENT), "text/plain", "rain.txt"),
    ],
)
def test_a_blob_is_named_by_its_content_and_can_be_read_again(blob: SourceBlob) -> None:
    assert blob.json_path == "/blob_ref"
    assert blob.value == {
        "blob_id": f"blob_sha256_{SHA256}",
        "mime_type": "text/plain",
        "size_bytes": len(CONTENT),
        "sha256": SHA256,
        "filename": "rain.txt",
    }
    assert (read(blob), read(blob)) == (CONTENT, CONTENT)


def test_a_blob_without_a_file_name_says_none() -> None:
    assert "filename" not in blob_of_bytes(b"", "text/plain", None, "/photo").value


def test_a_blob_is_read_to_its_end_in_pieces() -> None:
    class Pieces(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            assert size is not None
            assert 0 < size < len(CONTENT)
            return super().read(size)

    assert blob_of_stream(lambda: Pieces(CONTENT), "text/plain", None).size_bytes == len(CONTENT)


def test_how_a_blob_is_opened_is_not_shown() -> None:
    blob = blob_of_bytes(CONTENT, "text/plain", None)
    assert "open" not in repr(blob)


def test_fifty_mebibytes_are_the_largest_blob() -> None:
    assert LARGEST_BLOB_BYTES == 52_428_800


def test_an_id_is_the_same_for_ever() -> None:
    # ids that imports gave: another one would store every record twice
    assert stable_id("msg", "ä", 7, None, b"x") == "msg_b9796b416b597e52511d6ab3"
    assert stable_id("msg", b"rain") == stable_id("msg", memoryview(b"rain"))


def test_order_and_bounds_of_the_parts_count() -> None:
    ids = {
        stable_id("a", "ab", "c"),
        stable_id("a", "a", "bc"),
        stable_id("a", "c", "ab"),
        stable_id("a", "abc"),
        stable_id("b", "abc"),
    }
    assert len(ids) == 5
    assert stable_id("a", "ab", "c") == stable_id("a", b"ab", b"c")


def test_text_that_is_no_utf_8_has_an_id() -> None:
    assert stable_id("a", "\ud800") != stable_id("a", "\ud801")
