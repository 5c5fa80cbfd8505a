"""Fields: which names a request may use, filter and sort by, and what of a record it will see.

Rule: an undeclared name is `unknown_field`, a declared one outside the grant `field_not_granted`;
suggestions come from granted names only.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from pdpp_kernel.criteria import Order
from pdpp_kernel.declaration import Property
from pdpp_kernel.errors import (
    FieldNotGranted,
    InvalidRequest,
    InvalidSort,
    UnknownField,
)
from pdpp_kernel.texts import message
from pdpp_kernel.values import ValueKind
from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.asked_times import whole_days
from personal_server.enforcement.queries import FieldSelection

MAX_SUGGESTIONS = 5
MAX_GRANTED, MAX_NAME = 12, 128  # comparing names costs time by their length

Sources = tuple[ReadableSource, ...]


def require_field(sources: Sources, name: str, param: str) -> Property:
    """The declared property, if every source grants it.

    Shapes: `sources` are of one stream of one declaration.
    Raises: UnknownField, FieldNotGranted.
    """
    declared = sources[0].declared.properties.get(name)
    if declared is None:
        raise UnknownField(
            message(
                "No field '%(name)s' of '%(stream)s' is shared with you.",
                stream=sources[0].stream,
                name=name,
            ),
            param=param,
            **granted_here(name, granted_names(sources)),
        )
    if not all(name in source.fields for source in sources):
        raise FieldNotGranted(
            message("Field '%(name)s' is not part of this grant.", name=name),
            param=param,
            **granted_here(name, granted_names(sources)),
        )
    return declared


def granted_names(sources: Sources) -> tuple[str, ...]:
    """The fields that every source grants, in schema order."""
    return tuple(n for n in sources[0].fields if all(n in source.fields for source in sources))


def near(name: str, names: Iterable[str]) -> list[str] | None:
    """At most five near names, or `None`."""
    return get_close_matches(name[:MAX_NAME], list(names), n=MAX_SUGGESTIONS) or None


def granted_here(name: str, names: Iterable[str]) -> dict[str, list[str] | None]:
    """What an error about a name says of those that are granted, and of near ones among them."""
    granted = list(names)
    return {"allowed_values": granted[:MAX_GRANTED], "suggestions": near(name, granted)}


def check_cut(cut: FieldSelection) -> None:
    """`fields` and `view` exclude each other.  Raises: InvalidRequest."""
    if cut.view is not None and cut.fields:
        raise InvalidRequest(
            "'fields' and 'view' exclude each other. Send one of them.", param="view"
        )


def shown_fields(sources: Sources, cut: FieldSelection) -> tuple[tuple[str, ...], ...]:
    """Per source the fields of `data`, in schema order.

    Source: docs/contract/resource-server.md 7.4.
    Raises: UnknownField, FieldNotGranted, InvalidRequest (unusable view).
    """
    if cut.view is not None:
        return tuple(_of_view(source, cut.view) for source in sources)
    for name in cut.fields:
        require_field(sources, name, "fields")
    if not cut.fields:
        return tuple(source.fields for source in sources)
    return tuple(_cut(source, cut.fields) for source in sources)


def _of_view(source: ReadableSource, view_id: str) -> tuple[str, ...]:
    view = source.declared.view(view_id)
    if view is None or not set(view.fields) & set(source.fields):
        usable = [v.id for v in source.declared.views if set(v.fields) & set(source.fields)]
        raise InvalidRequest(
            f"The stream '{source.stream}' has no such view here.",
            param="view",
            suggestions=usable[:MAX_SUGGESTIONS] or None,
        )
    return _cut(source, view.fields)


def _cut(source: ReadableSource, names: tuple[str, ...]) -> tuple[str, ...]:
    kept = {*names, *source.declared.primary_key}
    return tuple(name for name in source.fields if name in kept)


def order_of(
    sources: Sources, sort: str | None, order: str | None, time_zone: str | None = None
) -> Order:
    """The total order of a list.

    Without a usable cursor field on every source the order is that of the keys, because the order
    of a hidden value is a disclosure.
    Raises: UnknownField, FieldNotGranted, InvalidSort.
    """
    if sort is not None:
        return _asked_order(sources, sort, order, time_zone)
    name = sources[0].cursor_field
    if name is None or any(source.cursor_field != name for source in sources):
        return Order(None, None, order == "desc")
    declared = sources[0].declared.properties[name]
    return _ordered(sources, declared, time_zone, descending=order != "asc")


def _asked_order(sources: Sources, sort: str, order: str | None, time_zone: str | None) -> Order:
    descending = sort.startswith("-")
    name = sort[1:] if descending else sort
    declared = require_field(sources, name, "sort")
    if name not in sources[0].declared.sortable or declared.kind is None:
        granted = granted_names(sources)
        raise InvalidSort(
            message(
                "Lists of '%(stream)s' cannot be sorted by '%(name)s'.",
                stream=sources[0].stream,
                name=name,
            ),
            param="sort",
            allowed_values=[n for n in sources[0].declared.sortable if n in granted],
        )
    if order is not None and (order == "desc") != descending:
        raise InvalidSort(
            f"'sort={sort}' and 'order={order}' disagree; leave 'order' out.",
            param="sort",
            allowed_values=[f"-{name}" if order == "desc" else name],
        )
    return _ordered(sources, declared, time_zone, descending=descending)


def _ordered(
    sources: Sources, field: Property, time_zone: str | None, *, descending: bool
) -> Order:
    """By a field, where whole days of a zone are not where they are stored."""
    is_moved = time_zone not in (None, "UTC") and field.kind is ValueKind.INSTANT
    days = whole_days(field, sources, time_zone) if is_moved else None
    return Order(field.name, field.kind, descending, days)
