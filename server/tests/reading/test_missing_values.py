"""What `ne` leaves out beside what it names."""

import pytest

from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import LIST, client

DENIED = "filter[title][ne]=Rain"
LACKED, REQUIRED = "filter[pinned][ne]=true", "filter[id][ne]=e1"


def told(door: Door, path: str) -> list[str]:
    warned = door.get(path, client()).body["meta"]["warnings"]
    return [each["field"] for each in warned if each["code"] == "without_value"]


@pytest.mark.parametrize(
    "path",
    [
        f"{LIST}?{DENIED}",
        f"/v1/streams/entries/aggregate?metric=count&{DENIED}",
        f"/v1/search?q=rain&streams=entries&{DENIED}",
        f"/v1/search?q=rain&streams=entries&sort=newest&{DENIED}",
    ],
)
def test_what_is_denied_of_a_field_leaves_out_what_has_none_and_the_answer_says_so(
    door: Door, path: str
) -> None:
    assert told(door, path) == ["title"]
    assert told(door, path.replace("[ne]", "[contains]")) == []


def test_a_record_may_lack_what_is_not_required_though_it_is_never_null(door: Door) -> None:
    assert told(door, f"{LIST}?{LACKED}") == ["pinned"]
    assert told(door, f"{LIST}?{REQUIRED}") == []


def test_it_is_said_with_the_first_records_alone(door: Door) -> None:
    assert told(door, f"{LIST}?{DENIED}&filter[id]=nobody") == []
    first = door.get(f"{LIST}?{DENIED}&limit=1", client())
    assert first.warnings == ["without_value"]
    assert told(door, f"{LIST}?{DENIED}&limit=1&cursor={first.body['next_cursor']}") == []
