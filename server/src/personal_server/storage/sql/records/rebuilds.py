"""Sources that are stored another way: their records move into new tables, a slice at a time.

A declaration, or a newer version of the program, may want other columns, indexes or words than the
tables of a source have (`storage/sql/layout`).  New tables are then filled beside the old ones, in
transactions of some hundredths of a second between which others write; reads and writes go to the
old tables meanwhile, and read fields without a column from the text.  When every line is copied,
what changed since is copied again, as the change feed names it, and the new tables take the place
of the old ones, which are emptied in slices too.  Each slice notes how far it came in its own
transaction, so that a crash costs at most one.

Rule: whatever a record held that was erased is overwritten in both (`erase_copies`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import orjson

from pdpp_kernel.record import JsonObject
from personal_server.domain.stored import Rebuild
from personal_server.storage.checksums import line_sum, record_sum
from personal_server.storage.sql.driver import Database, Line, Session
from personal_server.storage.sql.fixed_tables import (
    BlobReferenceRow,
    ChangeRow,
    MentionRow,
    RebuildRow,
    SourceRow,
    StoreRow,
)
from personal_server.storage.sql.layout import Layout
from personal_server.storage.sql.record_ids import free_places, place_in_time
from personal_server.storage.sql.records.passages import (
    begin_copy,
    copy_passages,
    embedded_fields,
    forget_all_passages,
    forget_passages,
    forget_some_passages,
)
from personal_server.storage.sql.records.summaries import count_lines, uncount_lines
from personal_server.storage.sql.records.written_rows import NewLines, prepare_one, put_mentions
from personal_server.storage.sql.source_tables import (
    SourceTables,
    checked_data,
    make_tables,
    remove_tables,
)
from personal_server.storage.sql.statements import delete, ignoring, insert, select, update
from personal_server.storage.sql.stored_layouts import parse_layout
from personal_server.storage.tables import ColumnKind

# Sources of at most so many records are rebuilt where it is asked for: nobody notices.
AT_ONCE = 100
SLICE_SECONDS = 0.05
# So many lines are looked up, or removed, before the time is looked at.
LINES_AT_ONCE = 20

_FIND = (
    f"SELECT {RebuildRow.source}, {RebuildRow.tables}, {RebuildRow.layout}, {RebuildRow.position},"  # noqa: S608
    f" {RebuildRow.since}, {RebuildRow.copied}, {RebuildRow.emptying} FROM {RebuildRow.table}"
)
_ONE = (RebuildRow.source, RebuildRow.tables)
_OF_SOURCE = f"{_FIND} WHERE {RebuildRow.source} = ? AND {RebuildRow.emptying} = ?"
# what is emptied comes first: it frees the room that copies need
_NEXT = f"{_FIND} ORDER BY {RebuildRow.emptying} DESC, {RebuildRow.source} LIMIT 1"
_NOTE = update(RebuildRow, [RebuildRow.position, RebuildRow.since, RebuildRow.copied], *_ONE)
BEGIN_EMPTYING = update(RebuildRow, [RebuildRow.emptying], *_ONE)
_END = delete(RebuildRow, *_ONE)
LAST_SEQUENCE = f"SELECT {StoreRow.value} FROM {StoreRow.table} WHERE {StoreRow.name} = 'sequence'"  # noqa: S608
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
_PROGRESS = (
    f"SELECT s.{SourceRow.connection_id}, s.{SourceRow.stream}, b.{RebuildRow.copied},"  # noqa: S608
    f" s.{SourceRow.records} FROM {RebuildRow.table} b JOIN {SourceRow.table} s"
    f" USING ({RebuildRow.source}) WHERE s.{SourceRow.subject_id} = ?"
    f" AND b.{RebuildRow.emptying} = 0 ORDER BY 1, 2"
)


class Copying(NamedTuple):
    """A line of `_FIND`."""

    source: int
    tables: int
    layout: str
    position: int | None
    since: int
    copied: int
    emptying: bool


class _Tables(NamedTuple):
    """Tables of records, and how they are laid out."""

    number: int
    layout: Layout


# What is asked for -----------------------------------------------------------------------------
def want(session: Session, source: SourceTables, layout: Layout) -> None:
    """Have a source laid out so, now if it is small, else in slices that follow."""
    under_way = copy_under_way(session, source.source)
    text = layout.render()
    if under_way is not None and under_way.layout == text:
        return
    if under_way is not None:
        session.run(BEGIN_EMPTYING, (1, *under_way[:2]))
    if source.layout == layout:
        return
    _begin(session, source, layout)


def make_anew(session: Session, source: SourceTables) -> None:
    """Have a source stored as it is laid out once more, from its texts."""
    if copy_under_way(session, source.source) is None:
        _begin(session, source, source.layout)


def _begin(session: Session, source: SourceTables, layout: Layout) -> None:
    copying = Copying(
        source.source,
        make_tables(session, layout),
        layout.render(),
        None,
        int(session.value(LAST_SEQUENCE)),
        0,
        emptying=False,
    )
    session.run(insert(RebuildRow), copying)
    begin_copy(session, source.tables, copying.tables)
    if source.records <= AT_ONCE:
        _copy(session, copying, lambda: False)
        remove_tables(session, source)
        forget_all_passages(session, source.tables)
        session.run(_END, (source.source, source.tables))


def progress(session: Session, subject_id: str) -> tuple[Rebuild, ...]:
    """Every copy that is under way."""
    return tuple(Rebuild(*line) for line in session.rows(_PROGRESS, (subject_id,)))


def slice_once(database: Database, monotonic: Callable[[], float] = time.monotonic) -> bool:
    """One transaction of work; whether more is left."""
    with database.read() as session:
        line = session.first(_NEXT)
    if line is None:
        return False
    # what is emptied may hold words of erased records
    begin = database.erase if Copying(*line).emptying else database.write_soon
    with begin() as session:
        line = session.first(_NEXT)
        if line is not None:
            copying, end = Copying(*line), monotonic() + SLICE_SECONDS
            work = _empty if copying.emptying else _copy
            work(session, copying, lambda: monotonic() >= end)
    return line is not None


# What others have to do meanwhile --------------------------------------------------------------
def copy_under_way(session: Session, source: int) -> Copying | None:
    """The copy of a source, which needs the changes that it has not seen."""
    line = session.first(_OF_SOURCE, (source, 0))
    return None if line is None else Copying(*line)


def erase_copies(session: Session, source: int, key: str) -> None:
    """Remove a record from every further table that holds it."""
    for copying in _all_of_source(session, source):
        tables = _tables_of(copying)
        if not copying.emptying:
            _remove(session, tables, _place_of(session, tables, key))
            put_mentions(session, source, tables.layout, {key: ()})
            continue
        if session.first(session.dialect.find_table, (f"r{copying.tables}",)):
            record_id = _place_of(session, tables, key)
            if record_id is not None:
                embedded = embedded_fields(session, copying.tables)
                forget_passages(session, copying.tables, [(field, record_id) for field in embedded])
        if session.first(session.dialect.find_table, (f"h{copying.tables}",)):
            session.run(_text_of(tables), (key,))


def drop_copies(session: Session, source: int) -> None:
    """Remove further tables whole, where the whole source is erased."""
    for copying in _all_of_source(session, source):
        for name in (*_summaries(copying), *_names(_tables_of(copying))):
            _drop(session, name)
        forget_all_passages(session, copying.tables)
        session.run(_END, copying[:2])


def copied_index(session: Session, source: int) -> str | None:
    """The further word index of a source, which may hold words of erased records."""
    copying = copy_under_way(session, source)
    return (
        None if copying is None or not _tables_of(copying).layout.lexical else f"w{copying.tables}"
    )


def _all_of_source(session: Session, source: int) -> list[Copying]:
    lines = [line for phase in (0, 1) for line in session.rows(_OF_SOURCE, (source, phase))]
    return [Copying(*line) for line in lines]


def _tables_of(copying: Copying) -> _Tables:
    return _Tables(copying.tables, parse_layout(copying.layout))


def _text_of(tables: _Tables) -> str:
    number = tables.number
    return f"DELETE FROM h{number} WHERE id IN (SELECT id FROM r{number} WHERE k = ?)"  # noqa: S608


# Copying ---------------------------------------------------------------------------------------
def _copy(session: Session, copying: Copying, is_over: Callable[[], bool]) -> None:
    number, text = session.first(_SOURCE, (copying.source,)) or (0, "")
    old, new = _Tables(number, parse_layout(text)), _tables_of(copying)
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


def _places_after(session: Session, old: _Tables, position: int | None) -> list[Line]:
    after, params = ("", []) if position is None else (" WHERE id > ?", [position])
    sql = f"SELECT id FROM r{old.number}{after} ORDER BY id LIMIT ?"  # noqa: S608
    return session.rows(sql, [*params, LINES_AT_ONCE])


def _add(session: Session, source: int, old: _Tables, new: _Tables, record_id: int) -> None:
    """Copy one record.  One that was copied already may have moved to a later place since."""
    number, layout = new
    line, own, text, data = _whole(session, old, record_id)
    if data is None or text is None:
        _carry(session, old, new, record_id)
        return
    key, created, created_at, latest, changes = line
    _remove(session, new, _place_of(session, new, key))
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
    session: Session, tables: _Tables, record_id: int
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


def _carry(session: Session, old: _Tables, new: _Tables, record_id: int) -> None:
    """A damaged record keeps its bytes, and what its line says beside them, but has no words."""
    chosen, source = record_id, f"r{old.number} WHERE id = ?"
    same_key = f"SELECT id FROM r{new.number} WHERE k = (SELECT k FROM {source})"  # noqa: S608
    _remove(session, new, session.value(same_key, (record_id,)))
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


def _copy_again(session: Session, source: int, old: _Tables, new: _Tables, keys: set[str]) -> None:
    for key in sorted(keys):
        _remove(session, new, _place_of(session, new, key))
        session.run(_other_references(session), (source, _listed(old.layout.blobs), key))
        put_mentions(session, source, new.layout, {key: ()})
        for (record_id,) in session.rows(f"SELECT id FROM r{old.number} WHERE k = ?", (key,)):  # noqa: S608
            _add(session, source, old, new, record_id)


def _place_of(session: Session, tables: _Tables, key: str) -> int | None:
    return session.value(f"SELECT id FROM r{tables.number} WHERE k = ?", (key,))  # noqa: S608


def _remove(session: Session, tables: _Tables, at: int | None) -> None:
    """Remove the record of a place, if there is one."""
    number = tables.number
    if at is None:
        return
    uncount_lines(session, tables.layout, number, [at])
    for table in "hr":
        session.run(f"DELETE FROM {table}{number} WHERE id = ?", (at,))  # noqa: S608
    forget_passages(session, number, [(n, at) for n in embedded_fields(session, number)])
    if tables.layout.lexical:
        session.run(f"DELETE FROM w{number} WHERE rowid = ?", (at,))  # noqa: S608


def _swap(session: Session, copying: Copying, old: _Tables, new: _Tables) -> None:
    """The new tables are the source's from now on; the old ones wait to be emptied."""
    if old.layout.blobs != new.layout.blobs:
        session.run(_other_references(session), (copying.source, _listed(new.layout.blobs), None))
    for person_field in set(old.layout.persons) - set(new.layout.persons):
        if person_field.field not in {other.field for other in new.layout.persons}:
            session.run(_FORGET_FIELD, (copying.source, person_field.field))
    session.run(_MOVE, (new.number, copying.layout, None, copying.source))
    session.run(_END, copying[:2])
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


# Emptying --------------------------------------------------------------------------------------
def _empty(session: Session, copying: Copying, is_over: Callable[[], bool]) -> None:
    """Remove rows, then each table that has none; texts first, since lines find them by key."""
    # summaries are short, and go at once
    for name in _summaries(copying):
        _drop(session, name)
    for name in _names(_tables_of(copying)):
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
        _drop(session, name)
    while embedded_fields(session, copying.tables):
        forget_some_passages(session, copying.tables)
        if is_over():
            return
    session.run(_END, copying[:2])


def _drop(session: Session, name: str) -> None:
    plain = [f"DROP TABLE IF EXISTS {name}"]
    for statement in session.dialect.drop_words(name) if name.startswith("w") else plain:
        session.run(statement)


def _summaries(copying: Copying) -> list[str]:
    return [f"{kind}{copying.tables}" for kind in "dg"]


def _names(tables: _Tables) -> list[str]:
    """The tables, texts first and lines last."""
    # `f` is the word index of the first release
    return [f"{kind}{tables.number}" for kind in "hwfr"]
