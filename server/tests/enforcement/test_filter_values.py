"""Values of conditions, as the fields that they are compared with take them."""

from __future__ import annotations

import pytest

from pdpp_kernel.values import DAY_NANOSECONDS, Comparable, ValueKind
from personal_server.enforcement.filter_values import parsed_value

HOUR = 3_600 * 10**9
WEST = "America/Los_Angeles"


@pytest.mark.parametrize(
    ("kind", "text", "zone", "value"),
    [
        (ValueKind.INSTANT, "1970-01-02T01:00", WEST, DAY_NANOSECONDS + 9 * HOUR),
        (ValueKind.INSTANT, "1970-01-02T01:00", None, None),
        (ValueKind.INSTANT, "1970-01-02T01:00:00Z", WEST, DAY_NANOSECONDS + HOUR),
        (ValueKind.INSTANT, "1970-01-02T01:00:00Z", None, DAY_NANOSECONDS + HOUR),
        (ValueKind.DATE, "1970-01-02", WEST, 1),
        (ValueKind.INTEGER, "7", WEST, 7),
        (ValueKind.INTEGER, "7.5", None, None),
        (ValueKind.STRING, "a\x00b", None, None),
    ],
)
def test_a_value_is_what_its_field_compares(
    kind: ValueKind, text: str, zone: str | None, value: Comparable | None
) -> None:
    assert parsed_value(kind, text, zone) == value
