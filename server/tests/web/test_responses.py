import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from personal_server.web.byte_ranges import FilePart, UnsatisfiableRange, asked_range

ETAG = '"sha256-aa"'


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-3", range(4)),
        ("bytes=2-", range(2, 10)),
        ("bytes=-4", range(6, 10)),
        ("bytes=-99", range(10)),
        ("bytes=8-99", range(8, 10)),
        ("bytes=0-0", range(1)),
        ("bytes=-", None),
        ("bytes=5-2", None),
        ("bytes=0-1,4-5", None),
        ("items=0-1", None),
        ("", None),
    ],
)
def test_one_range_is_honoured_and_everything_else_is_the_whole(
    header: str, expected: range | None
) -> None:
    assert asked_range({"range": header}, ETAG, 10) == expected


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=10-20", "bytes=-0"])
def test_a_range_outside_is_refused_with_the_size(header: str) -> None:
    with pytest.raises(UnsatisfiableRange) as caught:
        asked_range({"range": header}, ETAG, 10)
    assert caught.value.size_bytes == 10


@pytest.mark.parametrize(("condition", "honoured"), [(ETAG, True), ('"other"', False)])
def test_a_range_of_another_version_is_the_whole(condition: str, honoured: bool) -> None:
    found = asked_range({"range": "bytes=0-1", "if-range": condition}, ETAG, 10)
    assert (found is not None) == honoured


@given(st.binary(max_size=50), st.integers(0, 50), st.integers(0, 50))
def test_a_part_is_that_stretch_of_the_file(content: bytes, start: int, length: int) -> None:
    part = range(min(start, len(content)), min(start + length, len(content)))
    assert b"".join(FilePart(io.BytesIO(content), part)) == content[part.start : part.stop]
