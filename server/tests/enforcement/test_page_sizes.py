"""Where pages end is compared with the contract in tests/properties; here are the edges."""

from collections.abc import Mapping

import msgspec
import pytest

from pdpp_kernel.wire_objects import raw_json
from personal_server.enforcement.disclose import ChildList, Record
from personal_server.enforcement.excerpts import Excerpt
from personal_server.enforcement.page_sizes import FRAME_CHARS, MAX_PAGE_BYTES, PageFill
from personal_server.enforcement.queries import PageSize

OWN = len("r1") + 1
"""What every record of a page counts."""
ONCE = len("notes" + "cin_abc") + 60 + 40
"""What all of them have alike."""


def record(data: Mapping[str, object], **members: object) -> Record:
    return Record(
        id="r1",
        record_id="r1",
        stream="notes",
        data=raw_json(data),
        connector_key="journal",
        **{
            "connection_id": "cin_abc",
            "emitted_at": "2026-01-01T00:00:00.000Z",
            **members,
        },  # type: ignore[arg-type]
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
    first, second = {"text": "grün"}, {"text": "blau"}
    room = ONCE + 2 * (OWN + len('"grün",')) + left_over
    assert taken(PageSize(room), record(first), record(second)) == 2 + left_over


@pytest.mark.parametrize("left_over", [0, -1])
def test_what_all_records_say_alike_counts_once(left_over: int) -> None:
    alike = {"note": "n" * 300, "fee": None, "id": "r1"}
    room = ONCE + len('"note":"","fee":null,') + 300 + 9 * OWN + left_over
    assert taken(PageSize(room), *[record(alike)] * 9) == 9 + left_over


def test_what_one_record_says_otherwise_counts_for_all() -> None:
    alike, other = {"note": "n" * 100}, {"note": True}
    room = ONCE + len("note") + 4 + 102 + 4 * OWN
    assert taken(PageSize(room), *[record(alike)] * 4) == 4
    assert taken(PageSize(room), *[record(alike)] * 3, record(other)) == 3


@pytest.mark.parametrize("left_over", [0, -1])
def test_as_json_the_names_count_for_every_record(left_over: int) -> None:
    pages = [record({f"name_of_a_member_{n}": value for n in range(9)}) for value in (1, 2)]
    as_json = ONCE + 2 * (OWN + 24 + 9 * (len("name_of_a_member_0") + 4 + 1))
    room = -(-as_json * 3 // 5) + left_over
    assert taken(PageSize(room), *pages) == 2 + left_over


@pytest.mark.parametrize("left_over", [0, -1])
def test_long_members_count_as_much_as_is_shown_of_them(left_over: int) -> None:
    long = {"a": "x" * 9_000, "b": "y" * 30}
    counted = ONCE + 2 * (OWN + 2 * (30 + 1))
    assert taken(PageSize(counted + left_over, 30), record(long), record(long)) == 2 + left_over


def test_related_records_count_too() -> None:
    children = ChildList(data=[record({"text": "x" * 300})], has_more=False)
    alone, related = record({}), record({}, expanded={"parts": children})
    assert taken(PageSize(ONCE + 2 * OWN), alone, alone) == 2
    assert taken(PageSize(ONCE + 2 * OWN + 300), alone, related) == 1


def test_without_a_size_only_the_bytes_of_a_body_end_a_page() -> None:
    large = record({"text": "x" * (MAX_PAGE_BYTES // 2 - 300)})
    assert taken(PageSize(), large, large, large) == 2
    fill = PageFill(PageSize())
    assert fill.takes(large)
    assert msgspec.json.decode(fill.items[0])["id"] == "r1"


@pytest.mark.parametrize(("longer", "count"), [(0, 2), (1, 1)])
def test_a_body_has_at_most_four_mebibytes(longer: int, count: int) -> None:
    empty = len(msgspec.json.encode(record({"text": ""})))
    half = 2 * 1024 * 1024 - empty - 1  # a comma behind each
    first, second = record({"text": "x" * half}), record({"text": "x" * (half + longer)})
    assert taken(PageSize(), first, second) == count
    assert MAX_PAGE_BYTES == 4_194_304


@pytest.mark.parametrize("left_over", [0, -1])
def test_when_records_were_taken_counts_as_json_alone(left_over: int) -> None:
    times = [f"2026-01-0{day}T00:00:00.000Z" for day in (1, 2)]
    as_table = len("notes" + "cin_abc") + 60 + 2 * OWN
    as_json = as_table + 2 * (len("emitted_at") + 4 + 26 + FRAME_CHARS)
    room = max(as_table, -(-3 * as_json // 5)) + left_over
    assert FRAME_CHARS == 24
    assert taken(PageSize(room), *(record({}, emitted_at=at) for at in times)) == 2 + left_over
    # where long members fill the table first, it has no room for them
    long = [
        record({"t": letter * 200}, emitted_at=at) for letter, at in zip("ab", times, strict=True)
    ]
    table = as_table + 2 * 203
    assert taken(PageSize(table + left_over), *long) == 2 + left_over


@pytest.mark.parametrize("left_over", [0, -1])
def test_what_turns_out_to_differ_counts_for_all_before_it(left_over: int) -> None:
    said = [record({"t": letter * 200}) for letter in "aab"]
    assert taken(PageSize(ONCE + 3 * (OWN + 203) + left_over), *said) == 3 + left_over
    elsewhere = [
        record({"t": letter * 200}, connection_id=place)
        for letter, place in zip("abc", ("cin_abc", "cin_abc", "cin_abd"), strict=True)
    ]
    place = len("notes" + "cin_abc") + 60
    room = 3 * (OWN + place + 203) + 40 + left_over
    assert taken(PageSize(room), *elsewhere) == 3 + left_over


@pytest.mark.parametrize("left_over", [0, -1])
def test_a_record_with_related_ones_counts_with_its_place_and_theirs(left_over: int) -> None:
    related = record({"id": "r1"}, expanded={"parent": record({"id": "r1"})})
    place = len("notes" + "cin_abc") + 60
    own = len("r1") + FRAME_CHARS + place + len("emitted_at") + 4 + 26
    child = len("r1") + place + len('"id":,') + len('"r1"')
    # JSON has five thirds of the room that a table has
    both = 2 * (own + child + 1)
    room = max(both, -(-3 * both // 5)) + left_over
    assert taken(PageSize(room), related, related) == 2 + left_over


@pytest.mark.parametrize("left_over", [0, -1])
def test_what_is_no_record_counts_as_long_as_it_is_sent(left_over: int) -> None:
    item = Excerpt(
        field_path="body", preview_text="grün", start_chars=0, match_ranges=(), total_chars=4
    )
    chars = len(msgspec.json.encode(item).decode()) + 1
    fill = PageFill(PageSize(3 * chars + left_over))
    assert [fill.takes(item) for _ in range(4)] == [True, True, not left_over, False]
