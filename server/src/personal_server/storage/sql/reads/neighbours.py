"""Neighbours: which records of a conversation stand right before and right after others.

Rule: both are visible, and found by one line of an index each way.
Source: docs/contract/resource-server.md 11.7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pdpp_kernel.criteria import Order
from pdpp_kernel.values import COMPARED_CODE_POINTS, ValueKind
from personal_server.enforcement.plans import BesidePlan
from personal_server.storage.sql.compiler import KEYS, Statement, Where
from personal_server.storage.sql.layout import Column
from personal_server.storage.sql.source_tables import Reader, ScopedSource


def beside(reader: Reader, plan: BesidePlan) -> Mapping[str, tuple[str | None, str | None, object]]:
    """All in one statement."""
    for scoped in reader.places([plan.scope]):
        layout = scoped.compiler.layout
        shared, ordered = layout.column(*plan.shared), layout.column(*plan.ordered)
        if shared is None or ordered is None:
            continue
        order = Order(*plan.ordered, descending=False)
        is_steered = reader.session.dialect.steers and not scoped.scope.is_picked
        keeps_order = is_steered and scoped.compiler.keeps_order(shared, order)
        asked = _statement(scoped, shared, ordered, plan.keys, shared.name if keeps_order else None)
        lines = reader.lines(scoped.source, asked)
        return {key: (before, after, value) for key, before, after, value in lines}
    return {}


def _statement(
    scoped: ScopedSource, shared: Column, ordered: Column, keys: Sequence[str], index: str | None
) -> Statement:
    """Of visible lines with these keys (`o`) the keys of the ones before and after them, and the
    value that they share.

    Lines with an equal value of one column stand together, in the order of the other; of a string
    that the column cuts nothing is told.
    """
    compiler, seen, at = scoped.compiler, scoped.visible().free, ordered.name
    lines = _lines(scoped, seen.index or index)
    sides: list[str] = []
    for sign, way in (("<", " DESC"), (">", "")):
        where = seen & Where(
            (f"r.{shared.name} = o.{shared.name}", f"(r.{at}, r.k) {sign} (o.{at}, o.k)")
        )
        by = f"r.{at}{way}, r.k{way}"
        sides.append(f"(SELECT r.k FROM {lines}{where.sql} ORDER BY {by} LIMIT 1)")  # noqa: S608
    present = Where((f"r.{shared.name} IS NOT NULL", f"r.{at} IS NOT NULL"))
    if shared.kind is ValueKind.STRING:
        present &= Where((f"length(r.{shared.name}) < {COMPARED_CODE_POINTS}",))
    those = compiler.with_keys(keys) & seen & present
    found = f"SELECT r.k, r.{shared.name}, r.{at} FROM {_lines(scoped, KEYS)}{those.sql}"  # noqa: S608
    return Statement(
        f"WITH o AS MATERIALIZED ({found}) SELECT o.k, {', '.join(sides)}, o.{shared.name} FROM o",  # noqa: S608
        (*those.params, *seen.params, *seen.params),
    )


def _lines(scoped: ScopedSource, index: str | None) -> str:
    """The lines, read by that index, where one is named."""
    compiler = scoped.compiler
    if index is None:
        return compiler.lines()
    return compiler.lines(compiler.dialect.walking(f"r{compiler.number}_{index}"))
