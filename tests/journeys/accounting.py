"""How many entries an export holds, counted by the plainest means there are, against the report.

By hand, over files of strangers:

    python -m tests.journeys.accounting PATH...

imports each file below the paths twice into a store of its own,
prints a line for each that does not add up or changes something the second time, and at the end the
sums of each source. Of a CSV the cells are counted too.
"""

from __future__ import annotations

import io
import json
import re
import sqlite3
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pdpp_kernel.source_item import Data, Skipped, SourceRecord
from server.tests.cli.import_machine import Machine
from sources.tests.accounting import BESIDE, COUNTED, rows_of
from sources.tests.reading import read_path


def told(machine: Machine, path: Path, streams: frozenset[str]) -> tuple[int, int]:
    """How many entries the report names, and how many of them changed what is stored."""
    _, printed = machine.run("import", path)
    return told_in(printed["imports"], streams)


def told_in(reports: Iterable[Data], streams: frozenset[str]) -> tuple[int, int]:
    """The same of some reports."""
    stored = changed = named = 0
    for report in reports:
        for name, tally in report["streams"].items():
            if name in streams or not streams:
                changed += tally["new"] + tally["updated"]
                stored += tally["new"] + tally["updated"] + tally["unchanged"] + tally["rejected"]
        named += sum(e["count"] for e in report["skipped"] if not _is_beside(report, e))
        named += sum(map(_lines_before, report["skipped"]))
    return stored + named, changed


def _is_beside(report: Data, skip: Data) -> bool:
    """Whether a report names no entry: what is missing, columns past the last, a cut statement.

    In QIF, which has no statement around its entries, it is an entry that was cut.
    """
    if skip["code"] == "too_large":
        return all("columns" in each["reason"] for each in skip["examples"])
    is_cut = skip["code"] == "truncated" and report["connector_key"] == "bank"
    is_of_qif = all(".qif " in each["where"] for each in skip["examples"])
    return (is_cut and not is_of_qif) or skip["code"] in BESIDE


def _lines_before(skip: Data) -> int:
    """How many lines before the names of columns a report tells of."""
    if skip["code"] != "before_header":
        return 0
    return sum(int(each["reason"].partition(" ")[0]) for each in skip["examples"])


@dataclass(frozen=True, slots=True)
class Account:
    """One source's part of one path: entries counted, told first and again, changed again.

    Shapes: `counted` is None of a file too broken for plain means; of a table in CSV the first row
        may be none of names, so it counts or not; `cells` are those lost of one.
    """

    source: str
    counted: int | None
    told: int
    again: int
    changed_again: int
    cells: int = 0

    @property
    def adds_up(self) -> bool:
        """Whether every entry is told, both times, and nothing changes the second time."""
        is_same = self.counted == self.told == self.again
        return is_same and not self.changed_again and not self.cells


def accounts_of(path: Path) -> Iterator[Account | str]:
    """What an import of a path tells and what it holds; a code where it is refused."""
    machine = Machine()
    _, first = machine.run("import", path)
    if "imports" not in first:
        yield first["error"]["code"]
        return
    _, second = machine.run("import", path)
    for report, repeated in zip(first["imports"], second["imports"], strict=True):
        key = report["connector_key"].partition("-")[0]
        pattern, count, streams = COUNTED[key]
        names = [name for name in report["files"] if re.fullmatch(pattern, name)]
        counted = None
        with suppress(ValueError, LookupError, TypeError, AttributeError, sqlite3.Error):
            counted = sum(_counted(count, _bytes_of(path, name)) for name in names)
        told_first, (again, changed_again) = (
            told_in([report], streams)[0],
            told_in([repeated], streams),
        )
        lost = 0
        if key == "table" and path.suffix.lower() in (".csv", ".tsv"):
            counted = told_first if counted == told_first - 1 else counted
            lost = _lost_cells(path)
        yield Account(key, counted, told_first, again, changed_again, lost)


def _counted(count: Callable[[bytes], int], body: bytes) -> int:
    """What a file holds; one that is no JSON, though it should be, is refused as a whole."""
    try:
        return count(body)
    except json.JSONDecodeError:
        return 1


def _lost_cells(path: Path) -> int:
    """Cells of a CSV less the names, the values of its records and those said to be none."""
    rows, items = rows_of(path.read_bytes()), [item for _, item in read_path(path)]
    records = [item.data for item in items if isinstance(item, SourceRecord)]
    skips = Counter(item.code for item in items if isinstance(item, Skipped))
    if skips.keys() - {"no_value"}:
        return 0
    cells = sum(bool(cell.strip()) for row in rows[len(rows) - len(records) :] for cell in row)
    is_column = any(cell.strip() == "id" for cell in rows[0])
    values = [
        value
        for record in records
        for name, value in record.items()
        if value is not None
        and str(value).strip()
        and (name != "id" or (is_column and "column_id" not in record))
    ]
    return cells - len(values) - skips["no_value"]


def _bytes_of(path: Path, name: str) -> bytes:
    if path.is_dir():
        return (path / name).read_bytes()
    if not zipfile.is_zipfile(path):
        return path.read_bytes()
    return _member_of(path.read_bytes(), name)


def _member_of(archive: bytes, name: str) -> bytes:
    """A file of an archive, or of an archive in it. Raises: KeyError."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        if name in opened.namelist():
            return opened.read(name)
        for inner in (each for each in opened.namelist() if each.endswith(".zip")):
            with suppress(KeyError):
                return _member_of(opened.read(inner), name)
    raise KeyError(name)


def main(paths: Iterable[Path]) -> None:
    """Account for each file below some paths, each by itself."""
    files = [e for p in paths for e in sorted(p.rglob("*") if p.is_dir() else [p]) if e.is_file()]
    sums: dict[str, Counter[str]] = {}
    for path in files:
        for found in accounts_of(path):
            if isinstance(found, str):
                sums.setdefault(found, Counter())["files"] += 1
                continue
            tally = sums.setdefault(found.source, Counter())
            tally.update(files=1, counted=found.counted or 0, told=found.told)
            tally.update(apart=not found.adds_up)
            if not found.adds_up:
                print(path, found, flush=True)
    for source, tally in sorted(sums.items()):
        print(source, dict(tally))


if __name__ == "__main__":
    main(map(Path, sys.argv[1:]))
