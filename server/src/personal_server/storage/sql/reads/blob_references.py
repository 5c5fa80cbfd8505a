"""Which visible records refer to a blob."""

from __future__ import annotations

from typing import cast

import orjson

from personal_server.enforcement.plans import BlobPlan
from personal_server.enforcement.rows import BlobReference
from personal_server.storage.sql.compiler import Statement, Where
from personal_server.storage.sql.fixed_tables import BlobReferenceRow
from personal_server.storage.sql.records.received_blobs import IS_HELD
from personal_server.storage.sql.source_tables import Reader
from personal_server.storage.tables import ColumnKind


def blob(reader: Reader, plan: BlobPlan) -> tuple[BlobReference, ...]:
    """References of visible records, where the connection holds the bytes.

    Whether it does is asked last: a blob that nothing visible refers to costs what none costs.
    """
    references: list[BlobReference] = []
    key, name = f"b.{BlobReferenceRow.key}", f"b.{BlobReferenceRow.field}"
    for scoped in reader.places(plan.scopes):
        source, scope = scoped.source, scoped.scope
        granted = [field for field in scope.stream.blob_fields if field in scope.fields]
        if not granted:
            continue
        visible = scoped.visible()
        listed = reader.session.dialect.values("?", ColumnKind.TEXT)
        where = Where(
            (f"b.{BlobReferenceRow.source} = ?", f"b.{BlobReferenceRow.field} IN {listed}"),
            (source.source, orjson.dumps(granted).decode()),
        )
        of_blob = Where((f"{BlobReferenceRow.blob_id} = ?",), (plan.blob_id,))
        tables = [f"{BlobReferenceRow.table} b", scoped.compiler.lines()]
        first, second = tables
        inside, behind = of_blob & where & visible, Where()
        if visible.index:  # records that are picked lead to all their references
            first, second = second, first
            inside, behind = where & visible, of_blob
        ordered, blob_id = reader.session.dialect.ordered_join, f"b.{BlobReferenceRow.blob_id}"
        referring = Statement(
            f"WITH shown AS MATERIALIZED (SELECT r.id, {key}, {name}, {blob_id}"  # noqa: S608
            f" FROM {first} {ordered} {second} ON r.k = {key}{inside.sql})"
            f" SELECT id, {BlobReferenceRow.field} FROM shown{behind.sql}"
            f" ORDER BY {BlobReferenceRow.key}, {BlobReferenceRow.field}",
            inside.params + behind.params,
        )
        lines = reader.lines(source, referring)
        if lines and not _is_held(reader, source.connection_id, plan.blob_id):
            continue
        rows = reader.rows_by_id(scoped, scoped.compiler.with_ids([line[0] for line in lines]))
        for row_id, field in lines:
            row = rows.get(row_id)
            reference = None if row is None else row.data.get(field)
            if row is not None and isinstance(reference, dict):
                place_of = (source.connection_id, source.stream, row.key, field)
                references.append(BlobReference(*place_of, cast("dict[str, object]", reference)))
    return tuple(references)


def _is_held(reader: Reader, connection_id: str, blob_id: str) -> bool:
    row_key = (reader.subject_id, connection_id, blob_id)
    return reader.session.first(IS_HELD, row_key) is not None
