"""The time of records: which field it stands in, and what a range of time leaves of a source.

Rule: only a granted field tells when something was, because the place in an order of hidden times
is a disclosure; the field has an index, so that a page of a time line is a walk.
Source: docs/contract/resource-server.md 7.9.
"""

from __future__ import annotations

from pdpp_kernel.criteria import Condition
from pdpp_kernel.declaration import Property
from pdpp_kernel.errors import InvalidRequest
from pdpp_kernel.texts import message
from pdpp_kernel.values import TIMES
from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.asked_times import conditions_in
from personal_server.enforcement.queries import ALWAYS, Times


def time_field(*sources: ReadableSource) -> Property | None:
    """The event time, else the consent time: the first that is granted and can be sorted by.

    Shapes: `sources` are one or more of one stream of one declaration, which all grant it.
    """
    declared = sources[0].declared
    for name in (declared.event_time_field, declared.consent_time_field):
        if name in declared.sortable and all(name in source.fields for source in sources):
            found = declared.properties[name]
            if found.kind in TIMES:
                return found
    return None


def list_conditions(sources: tuple[ReadableSource, ...], times: Times) -> tuple[Condition, ...]:
    """A range of time on the records of one stream.  Raises: InvalidRequest."""
    if times == ALWAYS:
        return ()
    field = time_field(*sources)
    if field is None:
        raise InvalidRequest(
            message(
                "'%(stream)s' has no time field in this access. Leave the time range out.",
                stream=sources[0].stream,
            ),
            param="until" if times.since_ns is None else "since",
        )
    return conditions_in(times, field, sources)


def ranged_time(sources: tuple[ReadableSource, ...], times: Times) -> str | None:
    """The field that a range of time was read of, where the records tell other times, too."""
    field = None if times == ALWAYS else time_field(*sources)
    if field is None:
        return None
    declared = sources[0].declared
    others = {each.name for each in declared.properties.values() if each.kind in TIMES}
    others -= {field.name, declared.event_end_field}
    return None if all(others.isdisjoint(each.fields) for each in sources) else field.name
