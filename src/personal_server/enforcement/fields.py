"""Fields: which names a request may use, and what of a record it will see.

Rule: an undeclared name is `unknown_field`, a declared one outside the grant `field_not_granted`;
suggestions come from granted names only.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from personal_server.domain.authority import ReadableSource
from personal_server.domain.declaration import Property
from personal_server.enforcement.queries import Cut
from personal_server.errors import FieldNotGranted, InvalidRequest, UnknownField

MAX_SUGGESTIONS = 5

Sources = tuple[ReadableSource, ...]


def require_field(sources: Sources, name: str, param: str) -> Property:
    """The declared property, if every source grants it.

    Shapes: `sources` are of one stream of one declaration.
    Raises: UnknownField, FieldNotGranted.
    """
    declared = sources[0].declared.properties.get(name)
    if declared is None:
        raise UnknownField(
            f"'{sources[0].stream}' declares no field '{name}'.",
            param=param,
            suggestions=near(name, granted_names(sources)),
        )
    if not all(name in source.fields for source in sources):
        raise FieldNotGranted(f"Field '{name}' is not part of this grant.", param=param)
    return declared


def granted_names(sources: Sources) -> tuple[str, ...]:
    """The fields that every source grants, in schema order."""
    return tuple(n for n in sources[0].fields if all(n in source.fields for source in sources))


def near(name: str, names: Iterable[str]) -> list[str] | None:
    """At most five near names, or `None`."""
    return get_close_matches(name, list(names), n=MAX_SUGGESTIONS) or None


def check_cut(cut: Cut) -> None:
    """`fields` and `view` exclude each other.  Raises: InvalidRequest."""
    if cut.view is not None and cut.fields:
        raise InvalidRequest("'fields' and 'view' exclude each other; send one.", param="view")


def shown_fields(sources: Sources, cut: Cut) -> tuple[tuple[str, ...], ...]:
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
            f"'{source.stream}' has no such view here.",
            param="view",
            suggestions=usable[:MAX_SUGGESTIONS] or None,
        )
    return _cut(source, view.fields)


def _cut(source: ReadableSource, names: tuple[str, ...]) -> tuple[str, ...]:
    kept = {*names, *source.declared.primary_key}
    return tuple(name for name in source.fields if name in kept)
