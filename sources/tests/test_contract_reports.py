"""What was reported of tools that read the same files comes out right: each input, its values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from pdpp_kernel.source_item import SourceRecord
from pdpp_sources.common.errors import ExportNotRecognized
from pdpp_sources.common.export import open_export
from pdpp_sources.recipes.recipe_shelf import shipped_recipes
from pdpp_sources.registry import readings, with_outside
from sources.tests.reading import checked
from sources.tests.specimens.files import as_folder
from sources.tests.specimens.reports import REPORTS

Values = list[tuple[object, ...]]

# By input: the stream, the fields that were wrong, and their right values in its records.
RIGHT: dict[str, tuple[str, str, Values]] = {
    "csv-leading-zero": ("codes", "Code", [("0123",), ("0456",)]),
    "csv-routing": (
        "acc",
        "Account RoutingNumber Amount",
        [("0010", "021000021", 125.5), ("0100", "011000015", 50.0)],
    ),
    "emlx": ("messages", "subject body mailbox", [("one", "hello", "INBOX")]),
    "fb-mixed": ("messages", "text", [("“quoted” é",), ("é",)]),
    "fb-mojibake": ("messages", "author text reactions", [("Zoë", "façon 😠", ["👍"])]),
    "goodreads-isbn": (
        "books",
        "isbn isbn13 my_rating read_on added_on",
        [
            ("0316000001", "9780316000001", 4, "2023-01-05", "2022-12-30"),
            (None, None, None, None, "2023-02-01"),
        ],
    ),
    "gpt-single": (
        "messages",
        "conversation_id role text",
        [("c1", "user", "one"), ("c1", "assistant", "answer")],
    ),
    "ics-thisandfuture": (
        "agenda",
        "starts_at",
        [
            ("2024-01-01T09:00:00Z",),
            ("2024-01-08T09:00:00Z",),
            ("2024-01-22T11:00:00Z",),
            ("2024-01-15T11:00:00Z",),
        ],
    ),
    "ics-vcal10": (
        "agenda",
        "title starts_on",
        [("Züge", "2008-01-01"), ("Züge", "2008-01-08"), ("Züge", "2008-01-15")],
    ),
    "json-folder-spotify": ("recent_plays", "ended_at track", [("2024-05-06T18:43:00Z", "B")]),
    "linkedin-notes": (
        "connections",
        "first_name connected_on",
        [("Ada", "2023-01-05"), ("Bo", "2022-12-31")],
    ),
    "mail-brackets": (
        "messages",
        "from_address to_address to",
        [("shop@example.org", "john@example.org", ["Doe, John <john@example.org>"])],
    ),
    "mail-self-named": (
        "messages",
        "from_address to",
        [("bob@example.org", ["ann@example.net", "cy@x.org"])],
    ),
    "mbox-bare-from": (
        "messages",
        "subject body",
        [("one", "first"), ("two", "second"), ("three", "third")],
    ),
    "mbox-quoted-headers": (
        "messages",
        "subject from_address",
        [("one", "ann@example.org"), ("two", "ann@example.org")],
    ),
    "mime-inline-html": ("messages", "body", [("Words of the mail",)]),
    "mime-root-name": ("messages", "body", [("Words of the mail",)]),
    "obsidian-nested-tags": ("notes", "tags", [(["misc", "inline"],)]),
    "photos-album-title-only": ("albums", "title", [("Basement Office",)]),
    "revolut-old": (
        "revolut_eur_statement",
        "Completed_Date Paid_Out_EUR Paid_In_EUR",
        [("2020-03-24", 29.99, None), ("2019-04-01", None, 1978.42)],
    ),
    "spotify-simple": ("recent_plays", "ended_at", [("2024-05-06T18:43:00Z",)]),
    "strava-german": (
        "activities",
        "Aktivitaetsdatum Distanz Distanz_2",
        [("2018-09-12T13:02:23Z", 3.68, 3681.0), ("2019-05-02T05:02:23Z", 13.68, 13681.0)],
    ),
    "table-date-compact": ("ing", "Datum", [("2024-01-05",), ("2024-01-31",)]),
    "table-date-named-month": ("connections", "Connected_On", [("2023-01-05",), ("2022-12-31",)]),
    "table-date-slashes-ymd": ("books", "Date_Added", [("2022-12-30",), ("2023-02-01",)]),
    "table-date-utc-word": (
        "comments",
        "date",
        [("2023-01-05T10:11:12Z",), ("2023-01-06T10:11:12Z",)],
    ),
    "table-epoch-added": (
        "pocket",
        "time_added",
        [("2023-01-05T10:11:12Z",), ("2023-01-06T10:11:12Z",)],
    ),
    "tg-reactions": ("reactions", "author reaction", [("Bo", "❤")]),
    "timeline-edits": ("location_points", "latitude longitude", [(48.1234567, 11.1234567)]),
    "tweets-js": ("tweets", "text posted_at", [("hello world", "2022-11-09T10:00:00Z")]),
    "vcf-qp-space-fold": ("contacts", "display_name", [("Вася Пупкин",)]),
}
ADVISED = {"tg-html"}


def test_each_input_has_its_right_values() -> None:
    assert RIGHT.keys() | ADVISED == REPORTS.keys()
    assert len(REPORTS) == 32


def found_in(path: Path) -> list[SourceRecord]:
    """The records that an import of a path gives to an owner in Berlin."""
    with open_export(path) as export:
        export = replace(export, zone=ZoneInfo("Europe/Berlin"))
        return [
            item
            for reading in readings(export, sources=with_outside((), shipped_recipes()))
            for item in checked(reading.source, reading.items())
            if isinstance(item, SourceRecord)
        ]


@pytest.mark.parametrize("name", sorted(RIGHT))
def test_an_input_that_came_out_wrong_elsewhere_comes_out_right(name: str, tmp_path: Path) -> None:
    stream, fields, right = RIGHT[name]
    records = found_in(as_folder(REPORTS[name], tmp_path))
    found = [i.data for i in records if i.stream == stream]
    assert [tuple(data.get(field) for field in fields.split()) for data in found] == right


@pytest.mark.parametrize("name", sorted(ADVISED))
def test_what_is_not_read_is_refused_with_advice(name: str, tmp_path: Path) -> None:
    with pytest.raises(ExportNotRecognized) as refused:
        found_in(as_folder(REPORTS[name], tmp_path))
    assert refused.value.next_step
