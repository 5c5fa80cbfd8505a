"""Entries in are records and what is named as left out: nothing is silently dropped or made one.

Counted here by the plainest means there are, which share nothing with the readers.
"""

from __future__ import annotations

import csv
import io
import json
import plistlib
import re
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, cast

import pytest

from personal_server.domain.source_item import Data, Skipped, SourceRecord
from tests.cli.import_machine import Machine
from tests.sources.reading import read_path, records_of
from tests.sources.specimens import SPECIMENS
from tests.sources.specimens.files import Files, as_folder, as_zip
from tests.sources.specimens.table import ODD

# What stands beside an entry, such as a file that is missing, is no entry of its own.
BESIDE = frozenset(
    {
        "missing_attachment",
        "attachment_too_large",
        "unknown_rule",
        "agenda_cut",
        "unnamed_chat",
        "unreadable_text",
        "no_value",
        "before_header",
        "no_account_number",
    }
)


def _lines(pattern: bytes) -> Callable[[bytes], int]:
    return lambda body: len(re.findall(pattern, body, re.MULTILINE | re.IGNORECASE))


def _rows(body: bytes) -> int:
    return sum(any(row) for row in csv.reader(io.StringIO(body.decode("utf-8", "replace")))) - 1


def _objects(*lists: str) -> Callable[[bytes], int]:
    """The objects in a list, or in lists of these names, of a file of JSON."""

    def count(body: bytes) -> int:
        whole = json.loads(body)
        return sum(len(each) for each in ([whole] if not lists else _named(whole, lists)))

    return count


def _named(value: Any, names: Iterable[str]) -> list[Any]:
    """The lists of these names, wherever they stand."""
    if isinstance(value, list):
        listed = cast("list[Any]", value)
        return [found for each in listed for found in _named(each, names)]
    if not isinstance(value, dict):
        return []
    held = cast("dict[str, Any]", value)
    own: list[Any] = [e for name, e in held.items() if name in names and isinstance(e, list)]
    return own + [found for each in held.values() for found in _named(each, names)]


def _in_database(*statements: str) -> Callable[[bytes], int]:
    """What statements count in a database; one whose tables it lacks counts nothing."""

    def count(body: bytes) -> int:
        with closing(sqlite3.connect(":memory:")) as database:
            database.deserialize(body)
            total = 0
            for statement in statements:
                with suppress(sqlite3.OperationalError):
                    total += database.execute(statement).fetchone()[0]
            return total

    return count


_BROWSER_ROWS = _in_database(
    "SELECT count(*) FROM visits",
    "SELECT count(*) FROM keyword_search_terms",
    "SELECT count(*) FROM downloads",
    "SELECT count(*) FROM moz_historyvisits",
    "SELECT count(*) FROM history_visits",
    "SELECT count(*) FROM moz_bookmarks WHERE type = 1 AND parent NOT IN (SELECT id FROM"
    " moz_bookmarks WHERE parent IN (SELECT id FROM moz_bookmarks WHERE guid = 'tags________'))",
)


def _in_browser(body: bytes) -> int:
    if body.startswith(b"SQLite"):
        return _BROWSER_ROWS(body)
    if body.startswith(b"bplist"):
        return str(plistlib.loads(body)).count("'WebBookmarkTypeLeaf'")
    return len(re.findall(rb'<DT><A |"type": "url"', body))


def _in_health(body: bytes) -> int:
    """Elements that begin, but for those inside others; a file of another kind is one entry."""
    if b"<HealthData" not in body and b"<gpx" not in body:
        return 1
    outside = re.sub(rb"(?s)(<Correlation )[^>]*>.*?</Correlation>", rb"\1", body)
    names = rb"<(?:Record|Correlation|Workout|ActivitySummary|Me|ClinicalRecord|trkpt) "
    return len(re.findall(names, outside))


def _in_chatgpt(body: bytes) -> int:
    """Conversations, the messages in them that say something, and the files of those."""
    total = 0
    for conversation in json.loads(body):
        nodes = conversation["mapping"].values()
        messages = [node["message"] for node in nodes if node["message"]]
        files = {
            found
            for message in messages
            for found in re.findall(r"file-(?!service)\w+", json.dumps(message))
        }
        total += 1 + sum(any(m["content"].get("parts", ())) for m in messages) + len(files)
    return total


def _in_claude(body: bytes) -> int:
    """Conversations, messages and files; projects and documents; memories, each of its own."""
    whole: Any = json.loads(body)
    lists = ("chat_messages", "attachments", "files", "docs")
    inside = sum(len(each) for each in _named(whole, lists))
    memories = [len(each["project_memories"]) for each in whole if "project_memories" in each]
    return inside + (len(whole) if body.startswith(b"[") else 1) + sum(memories)


def _in_google(body: bytes) -> int:
    """Cells of a page; rows; a note, an album, each picture; entries of lists, points of a path."""
    if body.startswith(b"\xff\xd8"):
        return 0  # it is told of by a file of JSON
    if body.startswith(b"<html"):
        return body.count(b'<div class="outer-cell') or int(b"Starter" in body)
    if not body.startswith((b"{", b"[")):
        return _rows(body)
    whole: Any = json.loads(body)
    if "title" in whole:
        return 1 + len(whole.get("attachments", ()))
    if "items" in whole:
        return len(whole["items"]) + sum(len(each["items"]) for each in whole["items"])
    names = ("Browser History", "locations", "timelineObjects", "semanticSegments", "rawSignals")
    lists: list[Any] = [whole] if body.startswith(b"[") else _named(whole, names)
    inside = _named(whole, ("points", "childVisits", "frequentPlaces"))
    own = sum(len(entry.get("timelinePath", "1")) for each in lists for entry in each)
    return own + sum(map(len, inside))


# For each source: the files that hold entries, how to count them, and the streams they become.
COUNTED: dict[str, tuple[str, Callable[[bytes], int], frozenset[str]]] = {
    "bank": (
        r".*",
        lambda body: _lines(rb"<STMTTRN>")(body) if b"<OFX>" in body else body.strip().count(b"\n"),
        frozenset({"transactions"}),
    ),
    "apple_health": (
        r".*",
        _in_health,
        frozenset({"measurements", "sleep", "workouts", "activity_days", "route_points"}),
    ),
    "browser": (
        r".*",
        _in_browser,
        frozenset({"visits", "bookmarks", "downloads", "searches"}),
    ),
    "calendar": (
        r".*\.ics",
        _lines(rb"^BEGIN:V(EVENT|TODO|JOURNAL|FREEBUSY)"),
        frozenset({"events", "tasks", "journal", "busy_times"}),
    ),
    "chatgpt": (
        r"conversations\.json",
        _in_chatgpt,
        frozenset({"conversations", "messages", "attachments"}),
    ),
    "claude": (
        r"(?!users).*\.json",
        _in_claude,
        frozenset(
            {"conversations", "messages", "attachments", "projects", "documents", "memories"}
        ),
    ),
    "google": (
        r".*",
        _in_google,
        frozenset(
            {
                "youtube_watches",
                "youtube_searches",
                "activity",
                "browser_visits",
                "location_points",
                "location_visits",
                "location_trips",
                "frequent_places",
                "youtube_subscriptions",
                "youtube_playlists",
                "youtube_playlist_videos",
                "youtube_comments",
                "notes",
                "note_files",
                "task_lists",
                "tasks",
                "photos",
                "albums",
            }
        ),
    ),
    "contacts": (r".*\.vcf", _lines(rb"^BEGIN:VCARD"), frozenset({"contacts"})),
    "imessage": (
        r".*\.db",
        _in_database(
            "SELECT count(*) FROM chat",
            "SELECT count(*) FROM message",
            "SELECT count(*) FROM attachment",
        ),
        frozenset({"chats", "messages", "reactions", "files"}),
    ),
    "mail": (r".*(mbox|Inbox|Sent)", _lines(rb"^From .*\d:\d\d"), frozenset({"messages"})),
    "notes": (r".*\.md", lambda _: 1, frozenset({"notes"})),
    "slack": (r".*/\d{4}-\d\d-\d\d\.json", _objects(), frozenset({"messages"})),
    "table": (r".*\.csv", _rows, frozenset({"shopping"})),
    "whatsapp": (
        r".*_chat\.txt",
        _lines(rb"^(?:\xe2\x80\x8e)?\[\d+/\d+/\d+, \d"),
        frozenset({"messages"}),
    ),
    "telegram": (r".*\.json", _objects("messages"), frozenset({"messages"})),
}


def test_the_entries_of_every_source_are_counted() -> None:
    assert COUNTED.keys() == SPECIMENS.keys()


@pytest.mark.parametrize("key", sorted(COUNTED))
def test_every_entry_is_a_record_or_named(key: str, tmp_path: Path) -> None:
    pattern, count, streams = COUNTED[key]
    files: Files = {n: b for n, b in SPECIMENS[key].items() if re.fullmatch(pattern, n)}
    items = [item for _, item in read_path(as_folder(SPECIMENS[key], tmp_path))]
    records = [i for i in items if isinstance(i, SourceRecord) and i.stream in streams]
    skips = [i for i in items if isinstance(i, Skipped) and i.code not in BESIDE]
    assert sum(map(count, files.values())) == len(records) + len(skips)


# What stands in the lines of each odd table, read by eye: the cells of every row, as text.
CELLS = {
    "no names.csv": [
        ("2024-01-05", "Coffee", "3.1"),
        ("2024-01-06", "Tea", "2.0"),
        ("2024-01-06", "Tea", "2.0"),
    ],
    "films.csv": [("Metropolis",), ("Stalker, the long one",)],
    "amounts.csv": [("2024-01-05", "1", ""), ("2024-01-06", "3", ""), ("2024-01-07", "5", "6")],
    "account.csv": [("2024-01-30", "Bäcker", "-3.1")],
    "quote.csv": [("2", 'well "said"', "good"), ("3", "so", "good")],
    "mac.csv": [("José", "Málaga"), ("Zoë", "Genève")],
    "wide.tsv": [("Zoë", "1"), ("Ida", "2")],
}


@pytest.mark.parametrize("name", sorted(ODD))
def test_every_cell_of_a_table_is_a_value(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(ODD[name])
    found = [
        sorted(str(value) for field, value in each.items() if field != "id" and value is not None)
        for each in records_of(read_path(tmp_path / name))
    ]
    shown = [sorted(cell for cell in row if cell) for row in CELLS[name]]
    if name == "quote.csv":  # its first column is the key, called `id` as that of the record is
        shown = [sorted(cells[1:]) for cells in CELLS[name]]
    assert found == shown


_BREAD, _OVEN = f"Bread {'ab' * 16}", f"Oven {'0c' * 16}"
NOTION: Files = {
    f"Home/{_BREAD}.md": b"# Bread\n",
    f"Home/{_BREAD}/Rye {'1d' * 16}.md": b"# Rye\n\nLoaves: 2\n",
    f"Home/{_BREAD}/Spelt {'2e' * 16}.md": b"# Spelt\n\nLoaves: 1\n",
    f"Home/{_BREAD}.csv": b"\xef\xbb\xbfName,Loaves\nRye,2\n",
    f"Home/{_BREAD}_all.csv": b"\xef\xbb\xbfName,Loaves,Note\nRye,2,\nSpelt,1,dry\nSpelt,1,dry\n",
    f"Home/{_OVEN}.csv": b"\xef\xbb\xbfDay,Degrees\n2024-01-05,250\n2024-01-06,230\n",
}


def test_every_page_and_every_row_of_a_notion_workspace_is_a_record(tmp_path: Path) -> None:
    as_zip(NOTION, tmp_path / "ExportBlock-Part-1.zip")
    parts = {"ExportBlock-Part-1.zip": (tmp_path / "ExportBlock-Part-1.zip").read_bytes()}
    outer = as_zip(parts, tmp_path / "Export-0f.zip")
    machine = Machine()
    _, printed = machine.run("import", outer)
    streams = {each["connector_key"]: each["streams"] for each in printed["imports"]}
    read = {name: t["new"] for each in streams.values() for name, t in each.items() if t["new"]}
    assert read == {"notes": 3, "bread": 3, "oven": 2}
    assert set(streams) == {"notes", "table-notion-databases"}
    (left,) = printed["not_read"]
    assert left.keys() == {"path", "views"}
    assert left["views"] == {"count": 1, "files": [f"Home/{_BREAD}.csv"]}
    _, again = machine.run("import", outer)
    assert {t["new"] for each in again["imports"] for t in each["streams"].values()} == {0}


def told(machine: Machine, path: Path, streams: frozenset[str]) -> tuple[int, int]:
    """How many entries the report names, and how many of them changed what is stored."""
    _, printed = machine.run("import", path)
    reports: list[Data] = printed["imports"]
    tallies = [t for r in reports for name, t in r["streams"].items() if name in streams]
    changed = sum(tally["new"] + tally["updated"] for tally in tallies)
    stored = changed + sum(tally["unchanged"] + tally["rejected"] for tally in tallies)
    named = [skip for r in reports for skip in r["skipped"] if skip["code"] not in BESIDE]
    return stored + sum(skip["count"] for skip in named), changed


@pytest.mark.parametrize("key", ["calendar", "contacts", "mail", "slack", "telegram", "whatsapp"])
def test_every_entry_is_in_the_report_of_the_first_import_and_of_the_second(
    key: str, tmp_path: Path
) -> None:
    pattern, count, streams = COUNTED[key]
    counted = sum(count(b) for n, b in SPECIMENS[key].items() if re.fullmatch(pattern, n))
    path, machine = as_folder(SPECIMENS[key], tmp_path), Machine()
    first, changed = told(machine, path, streams)
    again, changed_again = told(machine, path, streams)
    assert (first, again, changed_again) == (counted, counted, 0)
    assert 0 < changed <= counted
