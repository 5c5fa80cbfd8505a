"""Files that are one table: the months of a bank, the days of a watch, the parts of a history.

Tables of one shape whose files are called alike are one stream. What of JSON is left by itself and
has one shape is one stream, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from pathlib import Path

import msgspec
from msgspec.structs import replace

from pdpp_kernel.source_item import Data
from pdpp_sources.common.errors import BadRecord, MemberDamaged
from pdpp_sources.file_names import family_name, slug
from pdpp_sources.tables.files import Table, TableRow

FILE_FIELD = "file"
_LOOKED_AT = 20  # rows of a table, for its shape
_ALIKE = 0.6
_FEWEST_ALIKE = 3  # files of different names that are taken for one table


class Series(msgspec.Struct, frozen=True):
    """Tables of one shape: the name they have in common, and the stream that holds them.

    Shapes: `names_files` where each row says which file it comes from, `names_folders` where it
        says the folder, too, since files have one name.
    """

    name: str
    stream: str
    tables: tuple[Table, ...]
    names_files: bool = False
    names_folders: bool = False

    @property
    def first(self) -> Table:
        """The table that tells of the others."""
        return self.tables[0]

    def values(self, table: Table, row: TableRow) -> Data:
        """The cells of a row, with the name of its file where that is told."""
        if not self.names_files:
            return row.values
        field = FILE_FIELD if FILE_FIELD not in row.values else f"{FILE_FIELD}_name"
        path = Path(table.member.name)
        file_name = f"{path.parent.name}/{path.stem}" if self.names_folders else path.stem
        return {field: file_name, **row.values}


def series_of(tables: Sequence[Table], folder: str, stored: AbstractSet[str]) -> list[Series]:
    """The tables of an export, those of one shape together, each series of a stream of its own.

    Shapes: `folder` is what the export is called; tables whose streams are `stored` stay apart.
    """
    shapes: dict[int, frozenset[str]] = {}
    by_name: dict[str, list[list[Table]]] = {}
    names = [
        table.stream if table.stream in stored else _family(table, len(tables)) for table in tables
    ]
    counts = Counter(names)
    for number, (table, name) in enumerate(zip(tables, names, strict=True)):
        if table.kind != "json" and (counts[name] == 1 or name == table.name):
            by_name.setdefault(name, []).append([table])
            continue
        shape = shapes[number] = _shape(table)
        alike = next(
            (group for group in by_name.get(name, ()) if _is_alike(_shape(group[0]), shape)), None
        )
        if alike is None:
            by_name.setdefault(name, []).append([table])
        else:
            alike.append(table)
    groups = [(name, group) for name, groups_of_name in by_name.items() for group in groups_of_name]
    return _named(_joined(groups, folder, stored), stored)


def _family(table: Table, count: int) -> str:
    """What the files of a series have in common: in JSON the list, if it has a name of its own."""
    stem = Path(table.member.name).stem
    is_file = table.kind != "sqlite" and table.name == stem
    if not is_file:
        return table.name
    return family_name(table.name, of_series=count > 1 and table.kind == "json")


def _shape(table: Table) -> frozenset[str]:
    """The names of the columns of a table, as its first rows have them."""
    if table.form is not None:
        return frozenset(table.form.names)
    if table.stored is not None:
        return frozenset(table.stored.columns)
    try:
        rows = islice((row for row in table.rows() if isinstance(row, TableRow)), _LOOKED_AT)
        return frozenset(name for row in rows for name in row.values)
    except (BadRecord, MemberDamaged):
        return frozenset()


def _is_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= _ALIKE * max(1, len(one | other))


def _joined(
    groups: Sequence[tuple[str, list[Table]]], folder: str, stored: AbstractSet[str]
) -> list[tuple[str, list[Table]]]:
    """The groups, files of JSON that have one shape and each a name of its own as one of them."""
    single = [
        (name, group)
        for name, group in groups
        if len(group) == 1 and group[0].kind == "json" and group[0].stream not in stored
    ]
    by_shape: dict[frozenset[str], list[Table]] = {}
    for _, (table,) in single:
        by_shape.setdefault(_shape(table), []).append(table)
    many = {id(t) for alike in by_shape.values() if len(alike) >= _FEWEST_ALIKE for t in alike}
    kept_groups = [(name, group) for name, group in groups if id(group[0]) not in many]
    joined = [(folder, alike) for alike in by_shape.values() if len(alike) >= _FEWEST_ALIKE]
    return [*kept_groups, *joined]


def _named(groups: Iterable[tuple[str, list[Table]]], stored: AbstractSet[str]) -> list[Series]:
    """Series of one name are told apart by the folders they lie in, else by numbers."""
    named_groups = list(groups)
    names = Counter(slug(name) for name, _ in named_groups)
    used_names: set[str] = set()
    series: list[Series] = []
    for name, group in named_groups:
        table, series_name = group[0], name
        if names[slug(name)] > 1 and table.kind != "sqlite":
            series_name = table.member.name.rpartition(".")[0]
            series_name = family_name(series_name) if len(group) > 1 else series_name
        if stream_name(series_name) in used_names:
            series_name = f"{series_name[:40]} {len(series)}"
        stream = table.stream if table.stream in stored else stream_name(series_name)
        used_names.add(stream)
        names_files = table.kind == "json" and len(group) > 1
        stems = {Path(table.member.name).stem for table in group}
        names_folders = names_files and len(stems) < len(group)
        series.append(Series(series_name, stream, tuple(group), names_files, names_folders))
    return series


def stream_name(name: str) -> str:
    """What the stream of a table of that name is called."""
    return slug(name).replace("-", "_")


def renamed(series: Series, stream: str) -> Series:
    """The series, whose stream is called as it is stored."""
    return replace(series, stream=stream)
