"""What `ne` leaves out beside what it names."""

import pytest

from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import LIST, client

DENIED = "filter[title][ne]=Rain"


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
    for is_told, asked in ((True, path), (False, path.replace("[ne]", "[contains]"))):
        warned = door.get(asked, client()).body["meta"]["warnings"]
        found = [each["field"] for each in warned if each["code"] == "without_value"]
        assert found == (["title"] if is_told else [])
