"""Slices of a rebuild: some lines copied to new tables, or removed from old ones.

Rule: a slice notes how far it came in its own transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import orjson

from pdpp_kernel.record import JsonObject
from personal_server.storage.checksums import line_sum, record_sum
from personal_server.storage.sql.driver import Line, Session
from personal_server.storage.sql.fixed_tables import (
    BlobReferenceRow,
    ChangeRow,
    MentionRow,
    RebuildRow,
    SourceRow,
)
from personal_server.storage.sql.record_ids import free_places, place_in_time
from personal_server.storage.sql.records.passages import (
    copy_passages,
    embedded_fields,
    forget_some_passages,
)
from personal_server.storage.sql.records.record_copies import (
    END_COPY,
    ONE_COPY,
    Copying,
    CopyTables,
    copied_place,
    drop_table,
    names_of_tables,
    remove_copied,
    summaries_of_copy,
    tables_of_copy,
)
from personal_server.storage.sql.records.summaries import count_lines
from personal_server.storage.sql.records.written_rows import NewLines, prepare_one, put_mentions
from personal_server.storage.sql.source_tables import checked_data
from personal_server.storage.sql.statements import delete, ignoring, insert, select, update
from personal_server.storage.sql.stored_layouts import parse_layout
from personal_server.storage.tables import ColumnKind

# So many lines are looked up, or removed, before the time is looked at.
LINES_AT_ONCE = 20


_NOTE = update(RebuildRow, [RebuildRow.position, RebuildRow.since, RebuildRow.copied], *ONE_COPY)


_FORGET_FIELD = delete(MentionRow, MentionRow.source, MentionRow.field)
_SOURCE = select(SourceRow, SourceRow.source, columns=(SourceRow.tables, SourceRow.layout))
_MOVE = update(
    SourceRow,
    [SourceRow.tables, SourceRow.layout, SourceRow.unindexed_below],
    SourceRow.source,
)
_CHANGED_SINCE = (
    f"SELECT {ChangeRow.sequence}, {ChangeRow.key} FROM {ChangeRow.table}"  # noqa: S608
    f" WHERE {ChangeRow.source} = ? AND {ChangeRow.sequence} > ?"
    f" ORDER BY {ChangeRow.sequence} LIMIT ?"
)


def copy_slice(session: Session, copying: Copying, is_over: Callable[[], bool]) -> None:
    """Copy lines, then what changed since; the last slice swaps the tables."""
    number, text = session.first(_SOURCE, (copying.source,)) or (0, "")
    old, new = CopyTables(number, parse_layout(text)), tables_of_copy(copying)
    position, since, copied = copying.position, copying.since, copying.copied
    while True:
        if ids := _places_after(session, old, position):
            for (record_id,) in ids:
                _add(session, copying.source, old, new, record_id)
            position, copied = ids[-1][0], copied + len(ids)
        elif changed := session.rows(_CHANGED_SINCE, (copying.source, since, LINES_AT_ONCE)):
            _copy_again(session, copying.source, old, new, {key for _, key in changed})
            since = changed[-1][0]
        else:
            _swap(session, copying, old, new)
            return
        if is_over():
            session.run(_NOTE, (position, since, copied, *copying[:2]))
            return


def _places_after(session: Session, old: CopyTables, position: int | None) -> list[Line]:
    after, params = ("", []) if position is None else (" WHERE id > ?", [position])
    sql = f"SELECT id FROM r{old.number}{after} ORDER BY id LIMIT ?"  # noqa: S608
    return session.rows(sql, [*params, LINES_AT_ONCE])


def _add(session: Session, source: int, old: CopyTables, new: CopyTables, record_id: int) -> None:
    """Copy one record.  One that was copied already may have moved to a later place since."""
    number, layout = new
    line, own, text, data = _whole(session, old, record_id)
    if data is None or text is None:
        _carry(session, old, new, record_id)
        return
    key, created, created_at, latest, changes = line
    remove_copied(session, new, copied_place(session, new, key))
    record = prepare_one(key, data, created_at, layout)
    at = place_in_time(record.placed_ns, created_at, layout)
    columns_after = (key, created, created_at, latest, *record.values, record.word_counts, changes)
    [chosen] = free_places(session, number, [(at, key)])
    lines = NewLines([(chosen, *columns_after)], [(chosen, record_sum(own, text), text.decode())])
    if record.words:
        lines.words.append((chosen, record.words))
    lines.add(session, number, layout)
    embedded = embedded_fields(session, number)
    copy_passages(session, (old.number, record_id), (number, chosen), embedded)
    put_mentions(session, source, layout, {key: record.mentions})
    for field, blob_id in (record.blobs or {}).items():
        refer = ignoring(insert(BlobReferenceRow))
        session.run(refer, (source, key, field, blob_id))


def _whole(
    session: Session, tables: CopyTables, record_id: int
) -> tuple[Line, int, bytes | None, JsonObject | None]:
    """Line, sum of it, text and data of a record; no data where it is damaged."""
    number = tables.number
    try:
        stored = session.first(
            f"SELECT k, cs, ce, e, fc, sum, {session.dialect.bytes_of('data')}"  # noqa: S608
            f" FROM r{number} r LEFT JOIN h{number} h ON h.id = r.id WHERE r.id = ?",
            (record_id,),
        )
    except UnicodeDecodeError:
        stored = None
    if stored is None:
        return (), 0, None, None
    *line, stored_sum, text = stored
    key, created, created_at, _, changes = line
    own = line_sum(key, created, created_at, changes)
    return tuple(line), own, text, checked_data(tables.layout, own, stored_sum, text)


def _carry(session: Session, old: CopyTables, new: CopyTables, record_id: int) -> None:
    """A damaged record keeps its bytes, and what its line says beside them, but has no words."""
    chosen, source = record_id, f"r{old.number} WHERE id = ?"
    same_key = f"SELECT id FROM r{new.number} WHERE k = (SELECT k FROM {source})"  # noqa: S608
    remove_copied(session, new, session.value(same_key, (record_id,)))
    while session.first(f"SELECT 1 FROM r{new.number} WHERE id = ?", (chosen,)):  # noqa: S608
        chosen += 1
    columns_before = {(column.field, column.kind): column.name for column in old.layout.columns}
    folded = {column.field: column.name for column in old.layout.folded}
    pairs = [
        (column.name, columns_before[column.field, column.kind])
        for column in new.layout.columns
        if (column.field, column.kind) in columns_before
    ]
    pairs += [(n.name, folded[n.field]) for n in new.layout.folded if n.field in folded]
    names = "".join(f", {name}" for name, _ in pairs)
    values = "".join(f", {name}" for _, name in pairs)
    session.run(
        f"INSERT INTO r{new.number} (id, k, cs, ce, e, fc{names})"  # noqa: S608
        f" SELECT ?, k, cs, ce, e, fc{values} FROM {source}",
        (chosen, record_id),
    )
    session.run(
        f"INSERT INTO h{new.number} (id, sum, data)"  # noqa: S608
        f" SELECT ?, sum, data FROM h{old.number} WHERE id = ?",
        (chosen, record_id),
    )
    count_lines(session, new.layout, new.number, [chosen])


def _copy_again(
    session: Session, source: int, old: CopyTables, new: CopyTables, keys: set[str]
) -> None:
    for key in sorted(keys):
        remove_copied(session, new, copied_place(session, new, key))
        session.run(_other_references(session), (source, _listed(old.layout.blobs), key))
        put_mentions(session, source, new.layout, {key: ()})
        for (record_id,) in session.rows(f"SELECT id FROM r{old.number} WHERE k = ?", (key,)):  # noqa: S608
            _add(session, source, old, new, record_id)


def _swap(session: Session, copying: Copying, old: CopyTables, new: CopyTables) -> None:
    """The new tables are the source's from now on; the old ones wait to be emptied."""
    if old.layout.blobs != new.layout.blobs:
        session.run(_other_references(session), (copying.source, _listed(new.layout.blobs), None))
    for person_field in set(old.layout.persons) - set(new.layout.persons):
        if person_field.field not in {other.field for other in new.layout.persons}:
            session.run(_FORGET_FIELD, (copying.source, person_field.field))
    session.run(_MOVE, (new.number, copying.layout, None, copying.source))
    session.run(END_COPY, copying[:2])
    session.run(
        insert(RebuildRow), (copying.source, old.number, old.layout.render(), None, 0, 0, 1)
    )


def _other_references(session: Session) -> str:
    """References from fields that are not listed, of one record or (null) of all."""
    return (
        f"{delete(BlobReferenceRow, BlobReferenceRow.source)}"
        f" AND {BlobReferenceRow.field} NOT IN {session.dialect.values('?', ColumnKind.TEXT)}"
        f" AND {BlobReferenceRow.key} = coalesce(?, {BlobReferenceRow.key})"
    )


def _listed(names: Sequence[str]) -> str:
    return orjson.dumps(names).decode()


def empty_slice(session: Session, copying: Copying, is_over: Callable[[], bool]) -> None:
    """Remove rows, then each table that has none; texts first, since lines find them by key."""
    # summaries are short, and go at once
    for name in summaries_of_copy(copying):
        drop_table(session, name)
    for name in names_of_tables(tables_of_copy(copying)):
        for part in session.dialect.parts_of(name):
            line = session.dialect.line
            rows = f"SELECT {line} FROM {part} LIMIT ?"  # noqa: S608
            remove = f"DELETE FROM {part} WHERE {line} IN ({rows})"  # noqa: S608
            while session.first(session.dialect.find_table, (part,)):
                session.run(remove, (LINES_AT_ONCE,))
                if session.changed == 0:
                    break
                if is_over():
                    return
        drop_table(session, name)
    while embedded_fields(session, copying.tables):
        forget_some_passages(session, copying.tables)
        if is_over():
            return
    session.run(END_COPY, copying[:2])
