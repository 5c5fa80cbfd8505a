"""Expanding: the related records of a page, read through their own sources.

Rule: one question per relation and connection; children are disclosed by *their* source's grant.
Source: RS contract 7.5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.domain.disclosure import Disclosed
from personal_server.domain.record import Row, key_text
from personal_server.enforcement.disclose import WireRecord, discloser
from personal_server.enforcement.expansion import AllowedExpansion
from personal_server.enforcement.plans import plan_children
from personal_server.enforcement.rows import Children
from personal_server.storage.ports import ReadSnapshot

Expanded = dict[str, object]


Parent = tuple[str, str]


@dataclass(slots=True)
class Expansions:
    """What was expanded: per parent (connection, key) its relations, and whose children came."""

    by_parent: dict[Parent, Expanded] = field(default_factory=dict[Parent, Expanded])
    _children: dict[Parent, list[tuple[ReadableSource, int]]] = field(
        default_factory=dict[Parent, list[tuple[ReadableSource, int]]]
    )

    def count(self, parent: Parent, source: ReadableSource, children: int) -> None:
        """Note the children of one parent."""
        if children:
            self._children.setdefault(parent, []).append((source, children))

    def disclosed(self, shown: Iterable[Row]) -> list[Disclosed]:
        """The sources that children of the shown rows came from."""
        counts: Counter[Parent] = Counter()
        sources: dict[Parent, ReadableSource] = {}
        for row in shown:
            for source, children in self._children.get((row.connection_id, row.key), ()):
                sources[source.order] = source
                counts[source.order] += children
        return [Disclosed(sources[o], sources[o].fields, counts[o]) for o in sorted(counts)]


def expand(
    snapshot: ReadSnapshot,
    authority: ReadAuthority,
    expansions: Sequence[AllowedExpansion],
    rows: Sequence[Row],
) -> Expansions:
    """The expansions of some rows."""
    result = Expansions({(row.connection_id, row.key): {} for row in rows})
    by_connection: dict[str, list[Row]] = {}
    for row in rows:
        by_connection.setdefault(row.connection_id, []).append(row)
    for expansion in expansions:
        for connection_id, parents in by_connection.items():
            child = expansion.children.get(connection_id)
            if child is None:
                _leave_empty(result, expansion, parents)
            else:
                _expand_one(snapshot, authority, expansion, child, parents, result)
    return result


def _leave_empty(result: Expansions, expansion: AllowedExpansion, parents: list[Row]) -> None:
    for row in parents:
        empty = _child_list([], None) if expansion.is_list else None
        result.by_parent[row.connection_id, row.key][expansion.name] = empty


def _expand_one(
    snapshot: ReadSnapshot,
    authority: ReadAuthority,
    expansion: AllowedExpansion,
    child: ReadableSource,
    parents: list[Row],
    result: Expansions,
) -> None:
    values = {row.key: _joining_value(expansion, row) for row in parents}
    wanted = tuple(dict.fromkeys(v for v in values.values() if v is not None))
    found: Mapping[str, Children] = {}
    if wanted:
        found = snapshot.children(plan_children(expansion, child, wanted))
    disclose = discloser(authority, child, child.fields)
    for row in parents:
        value = values[row.key]
        children = found.get(value) if value is not None else None
        records = [disclose(r) for r in children.rows] if children else []
        result.count((row.connection_id, row.key), child, len(records))
        url = _more_url(expansion, child, value) if children and children.more else None
        rendered = _child_list(records, url) if expansion.is_list else next(iter(records), None)
        result.by_parent[row.connection_id, row.key][expansion.name] = rendered


def _joining_value(expansion: AllowedExpansion, row: Row) -> str | None:
    """What joins the two sides: this record's key, or the key it holds."""
    relation = expansion.declared.relationship
    if relation.foreign_key_on == "target":
        return row.key
    held = row.data.get(relation.foreign_key)
    return key_text(held) if isinstance(held, str | int) else None


def _child_list(records: list[WireRecord], url: str | None) -> dict[str, object]:
    members: dict[str, object] = {"object": "list", "data": records, "has_more": url is not None}
    if url is not None:
        members["url"] = url
    return members


def _more_url(expansion: AllowedExpansion, child: ReadableSource, value: str | None) -> str:
    """The list that goes on where the expansion ends."""
    name = expansion.declared.relationship.foreign_key
    condition = f"filter%5B{quote(name, safe='')}%5D={quote(value or '', safe='')}"
    where = f"connection_id={quote(child.connection_id, safe='')}"
    return f"/v1/streams/{quote(child.stream, safe='')}/records?{condition}&order=asc&{where}"
