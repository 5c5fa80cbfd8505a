"""Expanding: the related records of a page, read through their own sources.

Rule: one question per relation and connection; children are disclosed by *their* source's grant.
Source: docs/contract/resource-server.md 7.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote

import msgspec

from pdpp_kernel.record import StoredRecord, key_text
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.domain.disclosure import Disclosed
from personal_server.enforcement.authorized_reads import children_plan
from personal_server.enforcement.disclose import ChildList, Expanded, Record, discloser
from personal_server.enforcement.expansion import AllowedExpansion
from personal_server.enforcement.rows import Children
from personal_server.storage.ports.snapshots import ReadSnapshot

Parent = tuple[str, str]


class Expansions(msgspec.Struct):
    """What was expanded: per parent (connection, key) its relations, and whose children came."""

    by_parent: dict[Parent, dict[str, Expanded]] = msgspec.field(
        default_factory=dict[Parent, dict[str, Expanded]]
    )
    _children: dict[Parent, list[tuple[ReadableSource, Sequence[str]]]] = msgspec.field(
        default_factory=dict[Parent, list[tuple[ReadableSource, Sequence[str]]]]
    )

    def note(self, parent: Parent, source: ReadableSource, keys: Sequence[str]) -> None:
        """Note the children of one parent, by their keys."""
        if keys:
            self._children.setdefault(parent, []).append((source, keys))

    def disclosed(self, shown: Iterable[StoredRecord]) -> list[Disclosed]:
        """The sources that children of the shown rows came from."""
        keys: dict[Parent, list[str]] = {}
        sources: dict[Parent, ReadableSource] = {}
        for row in shown:
            for source, children in self._children.get((row.connection_id, row.key), ()):
                sources[source.order] = source
                keys.setdefault(source.order, []).extend(children)
        return [
            Disclosed(sources[order], sources[order].fields, len(keys[order]), tuple(keys[order]))
            for order in sorted(keys)
        ]


def expand(
    snapshot: ReadSnapshot,
    authority: ReadAuthority,
    expansions: Sequence[AllowedExpansion],
    rows: Sequence[StoredRecord],
) -> Expansions:
    """The expansions of some rows."""
    if not expansions:
        return Expansions()
    result = Expansions({(row.connection_id, row.key): {} for row in rows})
    by_connection: dict[str, list[StoredRecord]] = {}
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


def _leave_empty(
    result: Expansions, expansion: AllowedExpansion, parents: list[StoredRecord]
) -> None:
    for row in parents:
        empty = _child_list([], None) if expansion.is_list else None
        result.by_parent[row.connection_id, row.key][expansion.name] = empty


def _expand_one(
    snapshot: ReadSnapshot,
    authority: ReadAuthority,
    expansion: AllowedExpansion,
    child: ReadableSource,
    parents: list[StoredRecord],
    result: Expansions,
) -> None:
    values = {row.key: _joining_value(expansion, row) for row in parents}
    wanted = tuple(dict.fromkeys(v for v in values.values() if v is not None))
    found: Mapping[str, Children] = {}
    if wanted:
        found = snapshot.children(children_plan(expansion, child, wanted))
    disclose = discloser(authority, child, child.fields)
    for row in parents:
        value = values[row.key]
        children = found.get(value) if value is not None else None
        records = [disclose(r) for r in children.rows] if children else []
        result.note((row.connection_id, row.key), child, [record.id for record in records])
        url = _more_url(expansion, child, value) if children and children.more else None
        rendered = _child_list(records, url) if expansion.is_list else next(iter(records), None)
        result.by_parent[row.connection_id, row.key][expansion.name] = rendered


def _joining_value(expansion: AllowedExpansion, row: StoredRecord) -> str | None:
    """What joins the two sides: this record's key, or what it holds."""
    relation = expansion.declared.relationship
    if relation.foreign_key_on == "target":
        return row.key
    value = row.data.get(relation.foreign_key)
    return key_text(value) if isinstance(value, str | int) else None


def _child_list(records: list[Record], url: str | None) -> ChildList:
    return ChildList(data=records, has_more=url is not None, url=url)


def _more_url(expansion: AllowedExpansion, child: ReadableSource, value: str | None) -> str:
    """The list that goes on where the expansion ends."""
    name = expansion.declared.relationship.foreign_key
    condition = f"filter%5B{quote(name, safe='')}%5D={quote(value or '', safe='')}"
    where = f"connection_id={quote(child.connection_id, safe='')}"
    return f"/v1/streams/{quote(child.stream, safe='')}/records?{condition}&order=asc&{where}"
