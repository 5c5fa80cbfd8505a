"""The statements that make and drop the tables of one source, as its layout says."""

from __future__ import annotations

from functools import partial

from pdpp_kernel.values import ValueKind
from personal_server.storage.sql.dialect import Dialect
from personal_server.storage.sql.layout import Layout
from personal_server.storage.tables import ColumnKind


def create_tables(
    layout: Layout, number: int, dialect: Dialect, *, scratch: bool = False
) -> list[str]:
    """The statements that make the tables of one source; `scratch` ones end with the snapshot."""
    integer, text, binary = map(
        dialect.column_type, (ColumnKind.INTEGER, ColumnKind.TEXT, ColumnKind.BYTES)
    )
    all_columns = (*layout.columns, *layout.folded)
    types = {kind: dialect.comparable_type(kind) for kind in {c.kind for c in all_columns}}
    columns = "".join(f", {c.name} {types[c.kind]}" for c in all_columns)
    table = partial(dialect.create_table, scratch=scratch)
    index = partial(dialect.create_index, scratch=scratch)
    tables = [
        f"{table(f'r{number}')} (id {integer} PRIMARY KEY, k {text} NOT NULL,"
        f" cs {integer} NOT NULL, ce {integer} NOT NULL, e {integer} NOT NULL{columns},"
        f" wc {binary}, fc {text})",
        f"{index(f'r{number}_k', unique=True)} ON r{number} (k)",
        f"{index(f'r{number}_e')} ON r{number} (e)",
        # the sum stands before the text, which may be long, and is read without it
        f"{table(f'h{number}')} (id {integer} PRIMARY KEY, sum {integer}, data {text} NOT NULL)",
    ]
    tables += [
        f"{index(f'r{number}_{name}')} ON r{number} ({', '.join(columns)})"
        for name, columns in layout.indexes.items()
    ]
    sums = dialect.comparable_type(ValueKind.INTEGER) or integer
    figures = "".join(f", {name} {sums} NOT NULL" for name in layout.summary_figures)
    if layout.by_day:
        tables.append(
            f"{table(f'd{number}')} (facet {integer} NOT NULL, day {integer} NOT NULL,"
            f" value {integer} NOT NULL, n {integer} NOT NULL{figures},"
            f" PRIMARY KEY (facet, day, value)){dialect.table_options(rowid=False)}"
        )
    if layout.grouped:
        tables.append(
            f"{table(f'g{number}')} (field {integer} NOT NULL, value {text} NOT NULL,"
            f" label {text} NOT NULL, mark {text} NOT NULL, n {integer} NOT NULL{figures},"
            f" PRIMARY KEY (field, value, label, mark)){dialect.table_options(rowid=False)}"
        )
    if layout.lexical:
        tables += dialect.word_index(f"w{number}", scratch=scratch)
    return tables


def drop_tables(layout: Layout, number: int, dialect: Dialect) -> list[str]:
    """The statements that remove them."""
    names = [f"r{number}", f"h{number}"]
    names += [f"d{number}"] if layout.by_day else []
    names += [f"g{number}"] if layout.grouped else []
    words = dialect.drop_words(f"w{number}") if layout.lexical else []
    # the word index of the first release, while the new one is not whole
    further = f"DROP TABLE IF EXISTS f{number}"
    return [*(f"DROP TABLE {name}" for name in names), *words, further]
