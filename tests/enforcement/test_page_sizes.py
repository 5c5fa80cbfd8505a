"""Where pages end is compared with the contract in tests/properties; here are the edges."""

from collections.abc import Mapping

import msgspec
import pytest

from personal_server.domain.wire_objects import raw_json
from personal_server.enforcement.disclose import ChildList, Record
from personal_server.enforcement.page_sizes import MAX_PAGE_BYTES, PageFill
from personal_server.enforcement.queries import PageSize

IDENTITY = 2 + 5 + 7 + 60 + 1
"""What `record` counts besides its data, with what every item counts more."""


def record(data: Mapping[str, object], **members: object) -> Record:
    return Record(
        id="r1",
        record_id="r1",
        stream="notes",
        data=raw_json(data),
        emitted_at="2026-01-01T00:00:00.000Z",
        connection_id="cin_abc",
        connector_key="journal",
        **members,  # type: ignore[arg-type]
    )


def taken(size: PageSize, *records: Record) -> int:
    fill = PageFill(size)
    for each in records:
        if not fill.takes(each):
            break
    return len(fill.items)


def test_the_first_item_is_always_taken() -> None:
    assert taken(PageSize(1), record({"text": "x" * 99}), record({})) == 1


@pytest.mark.parametrize("left_over", [0, -1])
def test_a_page_ends_before_the_item_that_passes_its_size(left_over: int) -> None:
    data = {"text": "grün"}
    room = 2 * (IDENTITY + len('{"text":"grün"}')) + left_over
    assert taken(PageSize(room), record(data), record(data)) == 2 + left_over


@pytest.mark.parametrize("left_over", [0, -1])
def test_long_members_count_as_much_as_is_shown_of_them(left_over: int) -> None:
    long = {"a": "x" * 9_000, "b": [1, 2]}
    counted = IDENTITY + 1 + (1 + 4 + 30) + (1 + 4 + len("[1,2]"))
    assert taken(PageSize(2 * counted + left_over, 30), record(long), record(long)) == 2 + left_over


def test_related_records_count_too() -> None:
    children = ChildList(data=[record({"text": "x" * 300})], has_more=False)
    alone, related = record({}), record({}, expanded={"parts": children})
    assert taken(PageSize(3 * IDENTITY), alone, alone) == 2
    assert taken(PageSize(3 * IDENTITY), alone, related) == 1


def test_without_a_size_only_the_bytes_of_a_body_end_a_page() -> None:
    large = record({"text": "x" * (MAX_PAGE_BYTES // 2 - 300)})
    assert taken(PageSize(), large, large, large) == 2
    fill = PageFill(PageSize())
    assert fill.takes(large)
    assert msgspec.json.decode(fill.items[0])["id"] == "r1"
