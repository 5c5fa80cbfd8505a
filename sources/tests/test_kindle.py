"""Marks made on a Kindle, in the languages and forms of published readers' tests and trackers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens.files import as_folder
from sources.tests.specimens.kindle import FILES, entry


def marks(tmp_path: Path, *entries: str) -> list[dict[str, Any]]:
    path = tmp_path / "My Clippings.txt"
    path.write_text("".join(entries), encoding="utf-8-sig", newline="")
    return records_of(read_path(path), "highlights")


def test_marks_of_a_kindle(tmp_path: Path) -> None:
    items = read_path(as_folder(FILES, tmp_path))
    assert {key for key, _ in items} == {"kindle"}
    first, note, bookmark, german = records_of(items, "highlights")
    assert (first["book"], first["book_author"]) == ("The Odyssey", "Homer")
    assert (first["page"], first["location"], first["location_begins"]) == ("10", "139-141", 139)
    assert first["added_at"] == "2014-12-26T13:09:52Z"
    assert (note["kind"], note["text"]) == ("note", "Which translation?")
    assert (bookmark["kind"], bookmark["text"]) == ("bookmark", None)
    assert (german["kind"], german["page"], german["location"]) == ("highlight", "28", "284-286")
    assert german["added_at"] == "2021-10-08T20:06:02Z"
    assert skips_of(items) == ["bad_record"]


# Lines of reports: DJTB/kindlequotes#1, koreader/koreader#10765 and #14582, mammuth#5, lxyu#1.
@pytest.mark.parametrize(
    ("line", "kind", "page", "location", "added_at"),
    [
        (
            "- Your Highlight on Page 12 | Location 170-172 | "
            "Added on Wednesday, April 3, 2019 8:40:13 PM",
            *("highlight", "12", "170-172", "2019-04-03T20:40:13Z"),
        ),
        (
            "- Your Highlight at location 12-12 | Added on Sunday, 30 July 2023 17:47:22",
            *("highlight", None, "12-12", "2023-07-30T17:47:22Z"),
        ),
        (
            "- Your Highlight on page 119-119 | Added on Wednesday, 31 March 2021 18:57:00",
            *("highlight", "119", None, "2021-03-31T18:57:00Z"),
        ),
        (
            "- Seu destaque na página 3 | Data de adição: "
            "terça-feira, 19 de março de 2019 23h32min06s GMT-03:00",
            *("highlight", "3", None, "2019-03-20T02:32:06Z"),
        ),
        (
            "- Highlight Loc. 145-46  | Added on 2013年8月5日 星期一 上午09时11分28秒 GMT+08:00",
            *("highlight", None, "145-46", "2013-08-05T01:11:28Z"),
        ),
        (
            "- 您在位置 #12-13的标注 | 添加于2021年10月12日星期二 下午9:05:09",
            *("highlight", None, "12-13", "2021-10-12T21:05:09Z"),
        ),
        (
            "- 您在第 31 页（位置 #465-466）的标注 | 添加于 2014年7月8日星期二 下午9:05:09",
            *("highlight", "31", "465-466", "2014-07-08T21:05:09Z"),
        ),
        (
            "- Your Highlight on Page 384 | Location 6804-6807 | "
            "Added on Friday, March 02, 2012, 07:27 PM",
            *("highlight", "384", "6804-6807", "2012-03-02T19:27:00Z"),
        ),
        (
            "- Votre surlignement sur la page 5 | Ajouté le lundi 3 juin 2019 20:13:30",
            *("highlight", "5", None, "2019-06-03T20:13:30Z"),
        ),
        (
            "- Ваш выделенный отрывок в месте 145–147 | "
            "Добавлено: пятница, 5 января 2024 г. в 10:11:12",
            *("highlight", None, "145-147", "2024-01-05T10:11:12Z"),
        ),
    ],
)
def test_places_and_times_in_the_form_of_the_device(
    line: str, kind: str, page: str | None, location: str | None, added_at: str, tmp_path: Path
) -> None:
    (mark,) = marks(tmp_path, entry("Book (Somebody)", line, "words"))
    assert (mark["kind"], mark["page"], mark["location"]) == (kind, page, location)
    assert mark["added_at"] == added_at


@pytest.mark.parametrize(
    ("title", "book", "author"),
    [
        (
            "Das Jesus-Video: Thriller (German Edition) (Eschbach, Andreas)",
            "Das Jesus-Video: Thriller (German Edition)",
            "Eschbach, Andreas",
        ),
        ("Clean Code (Robert C. Martin (2008))", "Clean Code", "Robert C. Martin (2008)"),
        ("Harry_Potter", "Harry_Potter", None),
    ],
)
def test_the_last_parentheses_hold_the_author(
    title: str, book: str, author: str | None, tmp_path: Path
) -> None:
    line = "- Your Highlight on Location 1 | Added on Friday, January 5, 2024 1:09:52 PM"
    (mark,) = marks(tmp_path, entry(title, line, "words"))
    assert (mark["book"], mark["book_author"]) == (book, author)


def test_a_date_that_cannot_be_read_is_no_place(tmp_path: Path) -> None:
    (mark,) = marks(
        tmp_path, entry("Book", "- Highlight Loc. 145-46 | Lisätty 3 tam 2024", "words")
    )
    assert (mark["location"], mark["location_begins"]) == ("145-46", 145)
    assert "added_at" not in mark


def test_a_mark_made_twice_is_one_and_a_longer_one_is_another(tmp_path: Path) -> None:
    """As biokraft/kindle2readwise#2 reports: the device appends, and takes nothing away."""
    line = "- Your Highlight on page 9 | Added on Wednesday, May 28, 2025 9:24:5{} PM"
    again = [entry("Book", line.format(n), "words") for n in (1, 2)]
    found = marks(tmp_path, *again, entry("Book", line.format(3), "words and more"))
    assert [mark["text"] for mark in found] == ["words", "words and more"]
