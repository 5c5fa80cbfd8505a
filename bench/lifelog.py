"""Lives of imaginary people by the generator of TimelineQA, as tables to import, with questions.

Source: `facebookresearch/TimelineQA`, which whoever measures fetches: a copy, or its git directory.
"""

from __future__ import annotations

import csv
import json
import random
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]
EPISODES, SAID, KIND = "episodes", "said", "kind"
LISTS = {
    "daily_chat": "friends",
    "daily_meal": "people_string",
    "weekly_bakeorcook": "cuisine",
    "weekly_grocery": "fruits",
    "weekly_hobby": "people_string",
}
"""Columns that the benchmark itself takes apart at their commas; the records hold them as lists."""
WHOLE_NUMBERS = ("howlong", "heart_rate")
APART = ("q2", "q3", "q4", "q6", "q10", "q16", "q18", "q23", "q24", "q25")
"""Questions for which the benchmark draws from rows of parts of lists."""
MIDNIGHT = " 00:00:00"
DAY = re.compile(r"\b(\d{4})/(\d\d)/(\d\d)\b")
_GENERATED = re.compile(r"\d*$")
_UNFILLED = re.compile(r"\{\w+\}")


@dataclass(frozen=True, slots=True)
class Hop:
    """A question over many episodes: its number, what is asked about, and the rows that answer."""

    number: str
    words: str
    given: Mapping[str, str]
    answer: Sequence[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Life:
    """The tables of a person, each a list of rows, and the questions with their answers."""

    tables: Mapping[str, list[Json]]
    atomic: Sequence[tuple[str, str]]
    hops: Sequence[Hop]
    unfilled: int
    """How many questions the generator left with the names of its variables."""

    def write(self, folder: Path) -> None:
        """A file of JSON lines for each table that has rows."""
        folder.mkdir()
        for name, rows in self.tables.items():
            if rows:
                lines = "".join(f"{json.dumps(row)}\n" for row in rows)
                (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")


def timelineqa(source: Path, scratch: Path) -> Path:
    """A copy of the generator to run: what is given, or what its git directory holds."""
    if (source / "src" / "generateDB.py").exists():
        return source
    command = ["git", "-C", str(source), "archive", "HEAD"]
    packed = subprocess.run(command, capture_output=True, check=False)
    if packed.returncode:
        sys.exit(f"{source} holds no copy of facebookresearch/TimelineQA")
    folder = scratch / "timelineqa"
    folder.mkdir()
    unpack = ["tar", "-x", "-C", str(folder)]
    subprocess.run(unpack, input=packed.stdout, check=True)
    return folder


def life(copy: Path, folder: Path, seed: int, density: str) -> Life:
    """The person of a seed; `density` is sparse, medium or dense."""
    folder.mkdir()
    frames = Path(__file__).with_name("lifelog_frames.py")
    command = [sys.executable, str(frames), "generateDB.py", "-s", str(seed), "-c", density]
    command += ["-d", str(folder.resolve()), "-o", "life.json"]
    subprocess.run(command, cwd=copy / "src", check=True, capture_output=True)
    days: dict[str, Any] = json.loads((folder / "life.json").read_bytes())
    episodes = [(day, kind, each) for day, some in days.items() for kind, each in some.items()]
    tables = {EPISODES: [_episode(*each) for each in episodes]}
    raw = {path.name: _rows_of(path) for path in sorted(folder.glob("*-log.csv"))}
    for name, rows in raw.items():
        stream = name.removesuffix("-log.csv")
        tables[stream] = [_record(stream, row) for row in rows]
    pairs = [(asked, answer) for *_, each in episodes for asked, answer in _pairs(each)]
    filled = [pair for pair in pairs if not any(map(_UNFILLED.search, pair))]
    hops = list(_hops(copy, raw, random.Random(seed)))
    return Life(tables, filled, hops, len(pairs) - len(filled))


def iso(text: str) -> str:
    """A text with its days as the records hold them."""
    return DAY.sub(r"\1-\2-\3", text)


def _episode(day: str, kind: str, episode: Json) -> Json:
    said = iso(episode["text_template_based"])
    return {
        "id": episode["eid"],
        "date": iso(day),
        KIND: _GENERATED.sub("", kind),
        SAID: " ".join(said.split()),
    }


def _pairs(episode: Json) -> Iterator[tuple[str, str]]:
    listed = episode["atomic_qa_pairs"]
    yield from listed.values() if isinstance(listed, dict) else listed


def _rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _record(stream: str, row: Mapping[str, str]) -> Json:
    """A row with days and numbers as such, and a list where the benchmark sees one."""
    record: Json = {"id": row["eid"]}
    for name, value in row.items():
        if value == "" or name == "eid":
            continue
        if name == LISTS.get(stream):
            record[name] = [part.strip() for part in value.split(",")]
        else:
            record[name] = (
                int(value) if name in WHOLE_NUMBERS else iso(value).removesuffix(MIDNIGHT)
            )
    return record


# Questions over many episodes, answered by the SQL of the benchmark ----------------------------
def _hops(
    copy: Path, tables: Mapping[str, list[dict[str, str]]], draw: random.Random
) -> Iterator[Hop]:
    with (copy / "multihopQA" / "queryfile.csv").open(newline="", encoding="utf-8") as file:
        asked = [row for row in csv.reader(file) if row]
    for number, sql, named, variables, words, *_ in asked:
        files = [name.strip() for name in named.split(",")]
        database = sqlite3.connect(":memory:")
        for file_name, letters in zip(files, (("df", "df1"), ("df2", "df3")), strict=False):
            _fill(database, file_name, tables[file_name], letters)
        source = "df1" if number in APART else "df"
        names = [name.strip() for name in variables.split(",") if name.strip()]
        given = _drawn(database, source, names, draw)
        if given is not None:
            rows = database.execute(sql.format(**given)).fetchall()
            yield Hop(number, words.format(**given), given, rows)
        database.close()


def _drawn(
    database: sqlite3.Connection, table: str, names: Sequence[str], draw: random.Random
) -> dict[str, str] | None:
    """What a row drawn by chance says of the variables; nothing where there is no row."""
    columns = ", ".join(names) or "1"
    rows = database.execute(f"SELECT {columns} FROM {table}").fetchall()  # noqa: S608
    whole = [row for row in rows if all(value not in ("", None) for value in row)]
    if not whole:
        return None
    found = dict(zip(names, draw.choice(whole), strict=False))
    if "people" in found:
        found["people"] = draw.choice(found["people"].split(",")).strip()
    return {name: str(value) for name, value in found.items()}


def _fill(
    database: sqlite3.Connection,
    file_name: str,
    rows: Sequence[Mapping[str, str]],
    letters: Sequence[str],
) -> None:
    """The table, and the same with a row for each part of its list."""
    stream = file_name.removesuffix("-log.csv")
    listed = LISTS.get(stream)
    dated = {"marriages": "married_date", "travel": "start_date"}.get(stream, "date")
    before = "start_" if stream == "travel" else ""
    names = list(dict.fromkeys(name for row in rows for name in row)) or ["date"]
    columns = [*names, f"{before}year", f"{before}month"]
    types = {"howlong": " INTEGER", f"{before}year": " INTEGER", f"{before}month": " INTEGER"}
    for letter in letters:
        typed = ", ".join(f"{name}{types.get(name, ' TEXT')}" for name in columns)
        database.execute(f"CREATE TABLE {letter} ({typed})")
        for row in rows:
            day = iso(row.get(dated, ""))
            cells = [iso(row[name]) for name in names] + [day[:4] or None, day[5:7] or None]
            parts = row[listed].split(",") if listed and letter in ("df1", "df3") else [None]
            for part in parts:
                if part is not None and listed is not None:
                    cells[names.index(listed)] = part.strip()
                marks = ", ".join("?" * len(columns))
                database.execute(f"INSERT INTO {letter} VALUES ({marks})", cells)  # noqa: S608
