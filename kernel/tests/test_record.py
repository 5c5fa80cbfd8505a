"""Keys of records, and the blobs that a record points to."""

from __future__ import annotations

import pytest

from pdpp_kernel.errors import PersonalServerError
from pdpp_kernel.record import (
    MAX_KEY_CODE_POINTS,
    TombstoneRow,
    blob_references,
    canonical_key,
    key_segment,
    key_text,
)

BLOB = "blob_sha256_" + "a" * 64


@pytest.mark.parametrize(
    ("part", "text"), [("e1", "e1"), (7, "7"), (True, "true"), (False, "false"), ("", "")]
)
def test_a_key_value_is_written_as_json_writes_it(part: object, text: str) -> None:
    assert key_text(part) == text


@pytest.mark.parametrize("part", [None, 1.5, ["e1"], {}])
def test_other_values_are_no_key(part: object) -> None:
    with pytest.raises(PersonalServerError) as caught:
        key_text(part)
    assert (caught.value.code, caught.value.param) == ("invalid_request", "key")


def test_a_key_has_at_most_1024_code_points() -> None:
    assert MAX_KEY_CODE_POINTS == 1_024


def test_a_record_leaves_by_being_deleted_unless_it_was_filtered() -> None:
    assert not TombstoneRow("cin_a", "notes", "n1", 1, 1).is_filtered


def test_one_field_is_the_key_and_several_are_an_array_of_strings() -> None:
    assert canonical_key(["ä 1"]) == "ä 1"
    assert canonical_key([7]) == "7"
    assert canonical_key(["ä", 7, True]) == '["ä","7","true"]'


@pytest.mark.parametrize(
    ("key", "segment"),
    [
        ("e1", "e1"),
        ("a/b?c ä", "a%2Fb%3Fc%20%C3%A4"),
        (".", "~b64.Lg"),
        ("..", "~b64.Li4"),
        ("...", "..."),
        ("~b64.Lg", "~b64.fmI2NC5MZw"),
        ("a~b64.", "a~b64."),
    ],
)
def test_a_key_is_one_segment_of_a_path_that_nothing_on_the_way_changes(
    key: str, segment: str
) -> None:
    assert key_segment(key) == segment


def test_a_record_points_to_the_blobs_that_it_describes() -> None:
    photo = {"blob_id": BLOB, "size_bytes": 3}
    data = {
        "photo": photo,
        "text": BLOB,
        "list": [photo],
        "other": {"blob_id": "picture"},
        "numbered": {"blob_id": 1},
        "empty": {},
        "none": None,
    }
    assert blob_references(data) == {BLOB: photo}
