"""Tables as programs of all times write them: each a small file in which one thing is odd."""

from __future__ import annotations

from pathlib import Path

import pytest

from pdpp_kernel.source_item import Data
from pdpp_sources.common.errors import ExportNotRecognized
from pdpp_sources.common.export import open_export
from pdpp_sources.registry import reading_as, readings, source_named
from pdpp_sources.tables.csv_file import form_with_header
from pdpp_sources.tables.table_fit import Guidance
from sources.tests.reading import checked, read_path, records_of, skips_of
from sources.tests.specimens.files import as_folder, as_zip


def rows(tmp_path: Path, content: bytes, name: str = "a.csv") -> list[Data]:
    (tmp_path / name).write_bytes(content)
    return [
        {k: v for k, v in each.items() if k != "id"}
        for each in records_of(read_path(tmp_path / name))
    ]


def kinds(path: Path) -> dict[str, object]:
    """The types of the columns of the only table."""
    with open_export(path) as export:
        (reading,) = readings(export)
    [stream] = reading.source.declaration["streams"]
    properties = stream["schema"]["properties"].items()
    listed = ((name, each["type"]) for name, each in properties if name != "id")
    return {name: kind if isinstance(kind, str) else kind[0] for name, kind in listed}


def test_a_single_column_is_a_table_if_the_file_is_called_one(tmp_path: Path) -> None:
    content = b"film\nMetropolis\nStalker, the long one\n"
    assert rows(tmp_path, content) == [{"film": "Metropolis"}, {"film": "Stalker, the long one"}]
    (tmp_path / "films").write_bytes(content)
    with pytest.raises(ExportNotRecognized):
        read_path(tmp_path / "films")


def test_rows_without_a_row_of_names_are_all_kept(tmp_path: Path) -> None:
    content = b"2024-01-05,Coffee,3.10\n2024-01-06,Tea,2\n2024-01-07,total,sum\n2024-01-08,Tea,2\n"
    found = rows(tmp_path, content)
    assert len(found) == 4
    assert found[0] == {"column_1": "2024-01-05", "column_2": "Coffee", "column_3": "3.10"}


def test_a_row_of_words_between_others_is_no_row_of_names(tmp_path: Path) -> None:
    content = b"1,2\n3,4\nsum,none\n5,6\n7,8\n"
    assert len(rows(tmp_path, content)) == 5


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"a,b,c\n1,x\n2\n3,y,z\n", [("1", "x"), ("2",), ("3", "y", "z")]),
        (
            b'"On 5 May"\n\n"Opened","52 Week Low",\n"one","two",\n"x",4\n',
            [("one", "two"), ("x", "4")],
        ),
        (b"One, and two\n" + 2 * b"all of it a sentence\n", [("all of it a sentence",)] * 2),
    ],
)
def test_short_rows_under_a_row_of_names_are_rows(
    content: bytes, found: list[tuple[str, ...]], tmp_path: Path
) -> None:
    values = [filter(None, row.values()) for row in rows(tmp_path, content)]
    assert [tuple(map(str, each)) for each in values] == found


@pytest.mark.parametrize(
    "before", [b",,\n,,\n", b"Payments of May,,\n", b" , ,\n\nPayments of May,,\n,,\n"]
)
def test_names_may_stand_below_padded_titles_and_rows_of_blanks(
    before: bytes, tmp_path: Path
) -> None:
    content = before + b"date,what,amount\n2024-01-05,Coffee,3\n2024-01-06,Tea,2\n , ,\n"
    assert rows(tmp_path, content) == [
        {"date": "2024-01-05", "what": "Coffee", "amount": 3},
        {"date": "2024-01-06", "what": "Tea", "amount": 2},
    ]


def test_a_row_of_blanks_alone_says_nothing_of_the_columns(tmp_path: Path) -> None:
    content = b"a,b,c\n,,,\n"
    assert rows(tmp_path, content) == []


@pytest.mark.parametrize("content", [b"<a>\nx, y\nz, w\n</a>\n", b"[[1, 2],\n[3, 4],\n[5, 6]]\n"])
def test_markup_with_commas_is_no_table_unless_it_is_called_one(
    content: bytes, tmp_path: Path
) -> None:
    (tmp_path / "a.xml").write_bytes(content)
    with pytest.raises(ExportNotRecognized):
        read_path(tmp_path / "a.xml")
    assert rows(tmp_path, content)


def test_names_that_come_twice_are_told_apart(tmp_path: Path) -> None:
    content = b"Date,Amount,Amount\n2024-01-05,1,2\n2024-01-06,3,4\n"
    assert rows(tmp_path, content)[0] == {"Date": "2024-01-05", "Amount": 1, "Amount_2": 2}


def test_names_may_be_years_missing_or_as_long_as_questions(tmp_path: Path) -> None:
    question = (
        "Which of these would you say is closest to what you think of the matter and why? " * 3
    )
    content = f",country,2019,2020,{question}\n0,FR,1.5,2,none\n1,IT,2.5,3,some\n".encode()
    first, second = rows(tmp_path, content)
    assert (first["country"], first["_2019"], second["_2020"]) == ("FR", 1.5, 3)
    assert "some" in second.values()


@pytest.mark.parametrize(
    "charset", ["latin-1", "cp1252", "mac_roman", "utf-8-sig", "utf-16", "utf-16-be"]
)
def test_charsets_are_told_apart_by_the_letters(tmp_path: Path, charset: str) -> None:
    lines = ["name;city;amount", *(f"Jürgen Müßig;Zürich;{n},50" for n in range(40))]
    lines += ["Éloïse Sørensen;Málaga;7,25", "don't;“über”;1,00"]
    mark = "\ufeff" if charset == "utf-16-be" else ""
    if charset == "latin-1":
        lines[-1] = "don't;über;1,00"
    content = (mark + "\r\n".join(lines) + "\r\n").encode(charset)
    found = rows(tmp_path, content)
    assert found[0] == {"name": "Jürgen Müßig", "city": "Zürich", "amount": 0.5}
    assert found[40] == {"name": "Éloïse Sørensen", "city": "Málaga", "amount": 7.25}
    assert len(found) == 42


def test_old_macs_end_lines_with_a_return(tmp_path: Path) -> None:
    content = "name,city\rJosé,Málaga\rZoë,Genève\r".encode("mac_roman")
    assert rows(tmp_path, content)[1] == {"name": "Zoë", "city": "Genève"}


@pytest.mark.parametrize("charset", ["utf-16", "mac_roman", "utf-8"])
def test_reading_goes_on_from_any_row(tmp_path: Path, charset: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("".join(["name,n\n", *(f"Zoë {n},{n}\n" for n in range(9))]).encode(charset))
    whole = [(item, item.position) for _, item in read_path(path)]
    positions = [position for _, position in whole]
    assert positions == sorted(set(positions))
    for start in positions:
        assert [i for _, i in read_path(path, start)] == [i for i, at in whole if at >= start]


def test_words_for_no_value_leave_a_column_its_type_and_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        "n,day,about\n1.5,2024-01-05,a\nNaN,-,n/a\n ,2024-01-06,b\n2, N/A ,c\n--,,d\n",
        encoding="utf-8",
    )
    assert kinds(path) == {"n": "number", "day": "string", "about": "string"}
    items = read_path(path)
    assert [each["n"] for each in records_of(items)] == [1.5, None, None, 2, None]
    assert [each.get("day") for each in records_of(items)] == [
        "2024-01-05",
        None,
        "2024-01-06",
        None,
        None,
    ]
    assert records_of(items)[1]["about"] == "n/a"  # a word among words
    assert skips_of(items) == ["no_value"] * 5


def test_a_quote_that_is_never_closed_costs_its_row_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    lines = [f'{n},"said ""so"" {n}",good\n' for n in range(1, 400)]
    lines[7] = '8,"never closed,bad\n'
    path.write_text("".join(["id,what,how\n", *lines]), encoding="utf-8")
    items = read_path(path)
    assert {each["id"] for each in records_of(items)} == {str(n) for n in range(1, 400)} - {"8"}
    assert skips_of(items) == ["bad_record"]


def test_quotes_left_open_again_and_again_take_work_by_the_length_of_the_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,amount,note\n1,2.50,good\n" + b'2,"' + b"a,b\n" * 300_000 + b"3,4,good\n")
    items = read_path(path)  # hours, were each line compared with all before it
    assert [each["id"] for each in records_of(items)] == ["1", "3"]
    assert skips_of(items) == ["bad_record"]


def test_a_folder_of_tables_is_a_stream_for_each(tmp_path: Path) -> None:
    files = {
        "books.csv": b"title,pages\nEmma,400\nDune,600\n",
        "old/films.csv": b"title,year\nStalker,1979\nAlien,1979\n",
        "films.csv": b"title,year\nHeat,1995\nTenet,2020\n",
    }
    for path in (as_folder(files, tmp_path / "mine"), as_zip(files, tmp_path / "mine.zip")):
        items = read_path(path)
        assert {key for key, _ in items} == {"own-file-mine"} or len({key for key, _ in items}) == 1
        assert [each["title"] for each in records_of(items, "books")] == ["Emma", "Dune"]
        assert [each["title"] for each in records_of(items, "films")] == ["Heat", "Tenet"]
        assert [each["title"] for each in records_of(items, "old_films")] == ["Stalker", "Alien"]


def test_a_column_named_by_the_owner_counts_where_it_is(tmp_path: Path) -> None:
    files = {"a.csv": b"code,n\nx,1\ny,2\n", "b.csv": b"word,n\nx,1\ny,2\n"}
    with open_export(as_folder(files, tmp_path)) as export:
        source = source_named("table")
        assert source is not None
        reading = reading_as(export, source, Guidance(key="code"))
        items = [("", item) for item in checked(reading.source, reading.items())]
    assert [each["id"] for each in records_of(items, "a")] == ["x", "y"]
    assert {each["word"] for each in records_of(items, "b")} == {"x", "y"}


def test_what_is_refused_names_a_way_that_works(tmp_path: Path) -> None:
    (tmp_path / "films").write_bytes(b"film\nMetropolis\nStalker\n")
    with open_export(tmp_path / "films") as export:
        with pytest.raises(ExportNotRecognized) as caught:
            readings(export)
        assert "--as table" in caught.value.next_step
        source = source_named("table")
        assert source is not None
        reading = reading_as(export, source)
        assert len(list(reading.items())) == 2


@pytest.mark.parametrize("end", ["\n", "\r"])
def test_a_line_that_is_too_long_is_named_and_costs_no_other(tmp_path: Path, end: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(end.join(["id,note", "1,good", "2," + "x" * 9_000_000, "3,good", ""]))
    items = read_path(path)
    assert [each["id"] for each in records_of(items)] == ["1", "3"]
    assert skips_of(items) == ["too_large"]


def test_what_is_no_text_is_no_table_whatever_it_names() -> None:
    head = b"\xff\xd8\x00" + b"a,b\n1,2\n"
    assert form_with_header(head, {"a", "b"}) is None
    assert form_with_header(head[3:], {"a", "b"}) is not None
