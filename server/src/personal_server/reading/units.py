"""In which unit a figure or the rows of a page are, and that several units make no one figure.

Rule: units are read from granted fields of visible records of this request; a message names the
field that holds them and their number, never a unit.
Source: docs/contract/resource-server.md 2.3, 7.9, 10; docs/decisions.md C37, C42.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from pdpp_kernel.criteria import Grouping
from pdpp_kernel.declaration import Property
from pdpp_kernel.declared_units import CURRENCY, DeclaredUnit, is_in_unit
from pdpp_kernel.errors import QueryTimeout
from pdpp_kernel.record import StoredRecord
from pdpp_kernel.values import ValueKind
from personal_server.domain.answer_warnings import Warning
from personal_server.domain.authority import ReadableSource
from personal_server.domain.disclosure import Disclosed
from personal_server.enforcement.aggregates import BY_CONNECTION
from personal_server.enforcement.authorized_reads import AuthorizedRead, units_plan
from personal_server.enforcement.plans import AggregatePlan, RecordsPlan
from personal_server.enforcement.rows import Aggregation, Group, PlacedRow
from personal_server.reading.missing_values import without_value
from personal_server.reading.value_twins import value_twins
from personal_server.storage.ports.snapshots import ReadSnapshot

Code = Literal["mixed_currencies", "mixed_units"]


class Units(msgspec.Struct, frozen=True):
    """What is said of units.

    Shapes: `whole` is that of all values together, `by_key` those of groups by their only key;
        `fields` are the fields that they were read from.
    """

    whole: str | None = None
    by_key: Mapping[object, str] = msgspec.field(default_factory=dict[object, str])
    warnings: tuple[Warning, ...] = ()
    fields: tuple[str, ...] = ()

    def of(self, group: Group) -> str | None:
        """The unit of the value of a group."""
        return self.whole or (self.by_key.get(group.keys[0]) if len(group.keys) == 1 else None)


def units_of_figure(
    snapshot: ReadSnapshot, read: AuthorizedRead[AggregatePlan], found: Aggregation
) -> Units:
    """In which unit a figure and its groups are."""
    plan = read.plan
    if plan.field is None or not is_in_unit(plan.metric) or found.record_count == 0:
        return Units()
    units = _units_of(snapshot, read, plan.field, [each.field for each in plan.groupings])
    if units.whole or not units.fields or len(plan.groupings) != 1:
        return units
    (grouping,) = plan.groupings
    if grouping.field == units.fields[0]:
        return units
    stepped = replace(grouping, bin_width=found.bin_width, label_field=None, mark_field=None)
    return replace(units, by_key=_by_key(snapshot, read, plan.field, stepped))


def notes_on_page(
    snapshot: ReadSnapshot,
    read: AuthorizedRead[RecordsPlan],
    rows: Sequence[PlacedRow],
    cursor: str | None,
) -> tuple[dict[str, object], tuple[Warning, ...], list[Disclosed]]:
    """What is said of a page that has records: its units, and of the first one the values that a
    filter missed, or left out; members of `meta`, warnings, and what they were read from.
    """
    meta, warnings, disclosed = units_of_page(snapshot, read, rows)
    if cursor is None and read.plan.conditions:
        twins = value_twins(snapshot, read.sources, read.plan.conditions)
        meta, disclosed = meta | twins.meta, [*disclosed, *twins.disclosed]
        warnings = (*warnings, *without_value(read.sources, read.plan.conditions))
    return meta, warnings, disclosed


def units_of_page(
    snapshot: ReadSnapshot, read: AuthorizedRead[RecordsPlan], rows: Iterable[PlacedRow]
) -> tuple[dict[str, object], tuple[Warning, ...], list[Disclosed]]:
    """Members of `meta`, warnings and what they were read from: the units of shown fields that no
    row says itself, and whether records are in the order of values that have several units.
    """
    units, read_from, warnings = dict[str, str](), dict[str, tuple[str, ...]](), list[Warning]()
    for name in read.sources[0].declared.measured:
        names, used = _units_of_rows(read, name, [placed.row for placed in rows])
        known = {each for each in names if each is not None}
        if len(names) == len(known) == 1:
            (units[name],) = known
        elif len(known) > 1:
            what = f"The values of '{name}' here are in {len(known)} units. Ask for '{used}', too."
            detail = {"add_field": used, "unit_count": len(known)}
            warnings.append(Warning(_code(read, used), what, field=name, detail=detail))
        elif known:
            detail = {"add_field": used}
            what = f"{_some_without(read, name, used)} Ask for '{used}', too."
            warnings.append(Warning("units_unknown", what, field=name, detail=detail))
        if known:
            read_from[name] = (used,) if used else ()
    ordered = Units()
    if read.plan.order.field in read.sources[0].declared.measured:
        ordered = _units_of(snapshot, read, read.plan.order.field, ())
    used_fields = tuple(dict.fromkeys((*ordered.fields, *chain(*read_from.values()))))
    disclosed = [Disclosed(each, used_fields, 0) for each in read.sources] if used_fields else []
    meta: dict[str, object] = {"units": units} if units else {}
    return meta, (*ordered.warnings, *warnings), disclosed


def _units_of_rows(
    read: AuthorizedRead[RecordsPlan], name: str, rows: Iterable[StoredRecord]
) -> tuple[set[str | None], str]:
    """The units of a shown field that no row says itself, and the field that they are read from.

    Shapes: `None` stands for values that say no unit.
    """
    showing = [each for each in read.sources if name in read.shown[each.connection_id]]
    declared = _declared(showing, name) if showing else None
    field_name = declared.field or "" if declared else ""
    if declared is None or field_name in read.shown[showing[0].connection_id]:
        return set(), ""
    connections = {each.connection_id for each in showing}
    known = (row.data for row in rows if row.connection_id in connections)
    names = {declared.named(each.get(field_name)) for each in known if each.get(name) is not None}
    return names, field_name


def _units_of(
    snapshot: ReadSnapshot,
    read: AuthorizedRead[AggregatePlan] | AuthorizedRead[RecordsPlan],
    name: str,
    grouped: Sequence[str | None],
) -> Units:
    declared = _declared(read.sources, name)
    if declared is None:
        apart = {DeclaredUnit.of(each.declared.properties[name]) for each in read.sources}
        plain = {each.part for each in apart if each is not None and each.field is None}
        if len(plain) < 2 or None in grouped:
            return Units()
        return Units(warnings=(_mixed(name, BY_CONNECTION, len(plain), code="mixed_units"),))
    if declared.field is None:
        return Units(declared.named())
    measured, unit = (read.sources[0].declared.properties[each] for each in (name, declared.field))
    try:
        found = snapshot.aggregate(units_plan(read.plan, measured, unit))
    except QueryTimeout:
        return Units(warnings=(_untold(name, declared.field),))
    names = [str(key) for group in found.groups for key in group.keys if key not in (None, "")]
    used = (declared.field,)
    if len(names) == 1 and found.group_count == 1:
        return Units(declared.named(names[0]), fields=used)
    if not names or declared.field in grouped:
        return Units(fields=used)
    if len(names) == 1:
        what = f"{_some_without(read, name, declared.field)} Group by '{declared.field}'."
        unsaid = Warning("units_unknown", what, field=name, detail={"group_by": declared.field})
        return Units(warnings=(unsaid,), fields=used)
    code = _code(read, declared.field)
    return Units(warnings=(_mixed(name, declared.field, len(names), code=code),), fields=used)


def _by_key(
    snapshot: ReadSnapshot, read: AuthorizedRead[AggregatePlan], name: str, grouping: Grouping
) -> dict[object, str]:
    """The units of groups that have one."""
    declared = _declared(read.sources, name)
    assert declared is not None  # noqa: S101 (who asks found several units in its field)
    assert declared.field is not None  # noqa: S101 (the same)
    measured, unit = (read.sources[0].declared.properties[each] for each in (name, declared.field))
    try:
        found = snapshot.aggregate(units_plan(read.plan, measured, unit, grouping))
    except QueryTimeout:
        return {}
    if found.group_count > len(found.groups):
        return {}  # a group might have more than are told
    by_key: dict[object, set[str | None]] = {}
    for group in found.groups:
        key, unit_name = group.keys
        by_key.setdefault(key, set()).add(declared.named(unit_name))
    return {key: unit for key, (unit, *more) in by_key.items() if unit is not None and not more}


def _declared(sources: Sequence[ReadableSource], name: str) -> DeclaredUnit | None:
    """What all sources declare alike of a unit, and grant."""
    found = {DeclaredUnit.of(each.declared.properties[name]) for each in sources}
    declared = found.pop() if len(found) == 1 else None
    if declared is None or declared.field is None:
        return declared
    granted = all(declared.field in each.fields for each in sources)
    known = granted and all(_is_text(each.declared.properties, declared.field) for each in sources)
    return declared if known else None


def _is_text(properties: Mapping[str, Property], name: str) -> bool:
    declared = properties.get(name)
    kind = None if declared is None else declared.kind
    return kind is ValueKind.STRING


def _code(read: AuthorizedRead[Any], unit_field: str) -> Code:
    declared = read.sources[0].declared.properties[unit_field]
    return "mixed_currencies" if declared.type == CURRENCY else "mixed_units"


def _some_without(read: AuthorizedRead[Any], name: str, unit_field: str) -> str:
    """How a warning begins that is about values without a unit beside others of one unit."""
    what = "currency" if _code(read, unit_field) == "mixed_currencies" else "unit"
    return f"Some values of '{name}' have no {what}; all others have the same one."


def _untold(name: str, by: str) -> Warning:
    """The figure is right for one unit alone, and whether there are more was not found in time."""
    what = f"Whether all values of '{name}' are in one unit took too long to find. Group by '{by}'."
    return Warning("units_unknown", what, field=name, detail={"group_by": by})


def _mixed(name: str, by: str, number: int, *, code: Code) -> Warning:
    what = "currencies" if code == "mixed_currencies" else "units"
    return Warning(
        code,
        (
            f"The values of '{name}' are in {number} {what}; they cannot be added or compared "
            f"with each other. Group by '{by}'."
        ),
        field=name,
        detail={"group_by": by, "unit_count": number},
    )
