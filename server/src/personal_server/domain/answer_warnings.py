"""What an answer says beside its data: that something was left out, and how much."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from pdpp_kernel.record import DamagedRow
from pdpp_kernel.wire_objects import AnyObject, WireObject

MAX_NAMED_RECORDS = 12
OfValues = Literal["mixed_currencies", "mixed_units", "units_unknown", "without_value"]


class Warning(WireObject, kw_only=False):
    """One entry of `meta.warnings`.  Source: docs/contract/resource-server.md 2.3."""

    component: ClassVar = "Warning"

    code: Literal[
        "limit_clamped",
        "deprecated_alias_used",
        "source_skipped_not_applicable",
        "source_unavailable",
        "partial_results",
        "budget_low",
        "damaged_record",
        "shown_as_occurrence",
        "first_times_only",
        "outside_time_constraint",
        "limited_access",
        OfValues,
        "newer_missing",
    ]
    message: str
    param: str | None = None
    field: str | None = None
    connection_id: str | None = None
    display_name: str | None = None
    detail: AnyObject | None = None


def damage_warnings(damaged: Iterable[DamagedRow]) -> list[Warning]:
    """A warning for each stream with damaged records, which are left out; figures count them.

    Shapes: `detail` names at most `MAX_NAMED_RECORDS`, and only those whose id is sound.
    """
    by_stream: dict[tuple[str, str], list[DamagedRow]] = {}
    for damage in damaged:
        by_stream.setdefault((damage.connection_id, damage.stream), []).append(damage)
    return [
        Warning(
            "damaged_record",
            (
                "Damaged records of this stream are left out. Tell the owner to run: "
                "pdpp doctor --data."
            ),
            connection_id=connection_id,
            detail={
                "stream": stream,
                "count": len(damages),
                "record_ids": [damage.key for damage in damages if damage.key][:MAX_NAMED_RECORDS],
            },
        )
        for (connection_id, stream), damages in sorted(by_stream.items())
    ]
