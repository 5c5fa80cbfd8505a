"""Chats in the pages of HTML that Meta exports by default."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC
from pathlib import Path
from time import process_time
from zoneinfo import ZoneInfo

import pytest

from pdpp_kernel.source_item import Data, SourceRecord
from pdpp_sources.common.export import open_export
from pdpp_sources.meta_pages import message_of
from pdpp_sources.registry import readings
from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens.files import as_folder
from sources.tests.specimens.meta import PAGES, in_section, on_page, page

PAGE = "messages/inbox/dan_4/message_1.html"


def messages(content: bytes, tmp_path: Path, zone: str = "UTC") -> list[Data]:
    path = as_folder({PAGE: content}, tmp_path)
    with open_export(path) as export:
        (reading,) = readings(replace(export, zone=ZoneInfo(zone)))
        return [
            item.data
            for item in reading.items()
            if isinstance(item, SourceRecord) and item.stream == "messages"
        ]


def test_a_message_of_a_page_says_what_the_json_would(tmp_path: Path) -> None:
    items = read_path(as_folder(PAGES, tmp_path))
    assert {key for key, _ in items} == {"meta"}
    first, second = records_of(items, "messages")
    assert (first["author"], first["text"], first["sent_at"]) == (
        "Dan",
        "Rye & spelt\nboth",
        "2024-01-16T16:05:00Z",
    )
    assert (first["chat_id"], first["chat_name"], first["reactions"]) == ("dan_4", "Dan", ["❤"])
    assert (second["text"], second["kind"], second["file_count"]) == (None, "photos", 1)
    (file,) = records_of(items, "files")
    assert (file["filename"], file["size_bytes"]) == ("3.jpg", 11)
    assert skips_of(items) == ["bad_date"]


@pytest.mark.parametrize(
    ("words", "sent_at"),
    [
        ("Mar 10, 2026 11:50 am", "2026-03-10T10:50:00Z"),
        ("Sep 24, 2025 12:05 am", "2025-09-23T22:05:00Z"),
        ("Jun 02, 2024 10:20:07 pm", "2024-06-02T20:20:07Z"),
        ("9 de octubre de 2025, 8:09:15 a. m.", "2025-10-09T06:09:15Z"),
        ("02. Juni 2024 22:20", "2024-06-02T20:20:00Z"),
        ("12 дек 2022 г., 14:05", "2022-12-12T13:05:00Z"),
        ("Thursday, September 22, 2011 at 3:09pm EDT", "2011-09-22T19:09:00Z"),
        ("31. heinäkuuta 2016 kello 21:05 UTC+03", "2016-07-31T18:05:00Z"),
        ("3. december 2015 kl. 10:29 UTC+01", "2015-12-03T09:29:00Z"),
        ("27 martie 2017 la 20:22 UTC+03", "2017-03-27T17:22:00Z"),
        ("Friday, 19 June 2015 at 19:17 UTC+02", "2015-06-19T17:17:00Z"),
    ],
)
def test_times_are_of_the_language_and_the_zone_of_the_owner(
    words: str, sent_at: str, tmp_path: Path
) -> None:
    for layout in (on_page, in_section):
        content = page("Dan", layout("Dan", "Hello", words))
        (sent,) = messages(content, tmp_path / layout.__name__, "Europe/Berlin")
        assert (sent["sent_at"], sent["text"]) == (sent_at, "Hello")


def test_what_is_shared_is_no_word_of_its_author(tmp_path: Path) -> None:
    link = "https://example.org/oven"
    shared = f'<div><div>An oven</div><a href="{link}">{link}</a></div>'
    at = "Mar 10, 2026 11:50 am"
    said, alone = messages(
        page("Dan", on_page("Dan", "Look", at, shown=shared), on_page("Dan", "", at, shown=shared)),
        tmp_path,
    )
    assert (said["text"], said["link"], said["kind"]) == ("Look", link, "share")
    assert (alone["text"], alone["link"]) == (f"An oven\n{link}", link)


def test_a_page_of_posts_is_no_chat(tmp_path: Path) -> None:
    posts = page("Posts", on_page("A post", "Bread", "Mar 10, 2026 11:50 am"))
    path = as_folder({PAGE: PAGES[PAGE], "your_posts_1.html": posts}, tmp_path)
    assert len(records_of(read_path(path), "messages")) == 2


def test_lists_of_reactions_that_never_end_cost_little() -> None:
    sound = on_page("Ada", "Words", "Mar 10, 2026 11:50 am").encode()
    said = message_of(sound, UTC)
    begun = process_time()
    assert message_of(sound + b'<ul class="_a6-q">' * 5_000, UTC) == said
    assert process_time() - begun < 0.5
