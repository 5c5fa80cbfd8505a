"""What an access is limited to, said with every answer that the limit touches.

Rule: it follows from grant and request alone, whatever is stored, and names granted fields only.
Source: docs/contract/resource-server.md 2.3, 4.8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from pdpp_kernel.criteria import Condition
from personal_server.domain.answer_warnings import Warning
from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.capabilities import Constraints, constraints_of
from personal_server.enforcement.conditions import asked_span, reaching_outside

MOST_STREAMS = 12

Part = tuple[ReadableSource, tuple[Condition, ...]]


def bound_warnings(parts: Sequence[Part]) -> tuple[Warning, ...]:
    """Where the conditions reach out of the grant, and what limits the records beside them."""
    return (*reaching_outside(parts), *_limited(parts))


def _limited(parts: Sequence[Part]) -> tuple[Warning, ...]:
    limits = [(source, found) for source, asked in parts if (found := _touching(source, asked))]
    if not limits:
        return ()
    (first, constraints), *others = limits
    streams = list(dict.fromkeys(source.stream for source, _ in limits))
    if any(found != constraints for _, found in others):
        detail: dict[str, object] = {"streams": streams[:MOST_STREAMS]}
        what = f"This access is limited in {', '.join(streams[:MOST_STREAMS])}; 'schema' says how."
        return (Warning("limited_access", what, detail=detail),)
    connections = {source.connection_id for source, _ in limits}
    named: dict[str, object] = (
        {"streams": streams[:MOST_STREAMS]} if len(limits) < len(parts) else {}
    )
    where = f" in {', '.join(streams[:MOST_STREAMS])}" if named else ""
    return (
        Warning(
            "limited_access",
            f"This access is limited to {_sentence(constraints)}{where}.",
            connection_id=first.connection_id if len(connections) == 1 else None,
            display_name=first.display_name if len(connections) == 1 else None,
            detail={**msgspec.to_builtins(constraints), **named},
        ),
    )


def _touching(source: ReadableSource, conditions: tuple[Condition, ...]) -> Constraints | None:
    """What limits the answer: not the time, where the request asks for a span of that itself."""
    bound = source.time_constraint
    is_asked = bound is not None and asked_span(bound.field, conditions) is not None
    found = constraints_of(replace(source, time_constraint=None) if is_asked else source)
    return None if found.is_empty else found


def _sentence(constraints: Constraints) -> str:
    words: list[str] = []
    if (time := constraints.time_constraint) is not None:
        bounds = {"since": time.since, "until": time.until}
        span = " ".join(f"{name} {text}" for name, text in bounds.items() if text is not None)
        words.append(f"'{time.field}' {span}")
    words += [f"{each.value_count} values of '{each.field}'" for each in constraints.only or ()]
    if constraints.further_limits:
        words.append("some records by a field that is not shared")
    if constraints.resource_count is not None:
        words.append(f"{constraints.resource_count} chosen records")
    return ", ".join(words)
