"""The next file of a table: next month's, a copy, one of another shape; and data of before."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from personal_server.collecting.connections import create_connection
from personal_server.collecting.declarations import declare
from personal_server.collecting.ingest import ingest
from personal_server.domain.declaration_document import parse_declaration
from server.tests.cli.import_command.test_reported_tables import stored
from server.tests.cli.import_machine import Machine

OCTOBER = (
    "Datum;Empfänger;Betrag;PLZ\n01.10.2026;Bäcker;-3,10;01067\n05.10.2026;Lohn;2.500,00;10115\n"
)
NOVEMBER = "Datum;Empfänger;Betrag;PLZ\n01.11.2026;Bäcker;-3,20;80331\n"


def connections(machine: Machine) -> list[str]:
    with machine.store.snapshot() as snapshot:
        return [str(each.display_name) for each in snapshot.connections()]


def imported(machine: Machine, path: Path, text: str) -> dict[str, Any]:
    path.write_text(text, encoding="utf-8")
    code, printed = machine.run("import", path)
    assert code == 0
    return printed["imports"][0]


def test_the_next_month_joins_the_stream_of_the_first(tmp_path: Path) -> None:
    machine = Machine()
    first = imported(machine, tmp_path / "Umsaetze_2026-10.csv", OCTOBER)
    second = imported(machine, tmp_path / "Umsaetze_2026-11.csv", NOVEMBER)
    assert connections(machine) == ["Umsaetze"]
    assert first["connector_key"] == second["connector_key"] == "table-umsaetze"
    assert sorted((r["Datum"], r["Betrag"], r["PLZ"]) for r in stored(machine, "umsaetze")) == [
        ("2026-10-01", -3.1, "01067"),
        ("2026-10-05", 2500, "10115"),
        ("2026-11-01", -3.2, "80331"),
    ]


def test_months_in_one_folder_are_one_stream(tmp_path: Path) -> None:
    (tmp_path / "bank").mkdir()
    (tmp_path / "bank" / "Umsaetze_2026-10.csv").write_text(OCTOBER)
    (tmp_path / "bank" / "Umsaetze_2026-11.csv").write_text(NOVEMBER)
    machine = Machine()
    assert {n: each["read"] for n, each in machine.streams(tmp_path / "bank").items()} == {
        "umsaetze": 3
    }


def test_the_same_content_under_another_name_is_known(tmp_path: Path) -> None:
    machine = Machine()
    imported(machine, tmp_path / "Umsaetze_2026-10.csv", OCTOBER)
    again = imported(machine, tmp_path / "mine.csv", OCTOBER)
    assert connections(machine) == ["Umsaetze"]
    assert again["streams"]["umsaetze"]["unchanged"] == 2


def test_a_table_of_other_columns_is_another_source(tmp_path: Path) -> None:
    machine = Machine()
    imported(machine, tmp_path / "Umsaetze_2026-10.csv", OCTOBER)
    other = imported(machine, tmp_path / "Umsaetze_2026-11.csv", "Depot,Stück\nA,1\nB,2\n")
    assert other["connector_key"] == "table-umsaetze-2026-11"
    assert len(connections(machine)) == 2


def test_a_short_month_reads_days_as_the_longer_one_did(tmp_path: Path) -> None:
    machine = Machine()
    imported(machine, tmp_path / "a_2026-10.csv", "Day,Sum\n31/10/2026,1\n02/10/2026,2\n")
    imported(machine, tmp_path / "a_2026-11.csv", "Day,Sum\n02/11/2026,3\n03/11/2026,4\n")
    assert sorted(r["Day"] for r in stored(machine)) == [
        "2026-10-02",
        "2026-10-31",
        "2026-11-02",
        "2026-11-03",
    ]


def test_what_was_stored_before_keeps_its_stream_its_fields_and_its_ids(tmp_path: Path) -> None:
    machine = Machine()
    path = tmp_path / "Umsaetze_2026-10.csv"
    imported(machine, path, OCTOBER)
    _make_old(machine)
    again = imported(machine, path, OCTOBER)
    assert again["connector_key"] == "table-umsaetze-2026-10"
    assert again["streams"]["umsaetze_2026_10"]["read"] == 2
    imported(machine, tmp_path / "Umsaetze_2026-11.csv", NOVEMBER)
    rows = stored(machine, "umsaetze_2026_10")
    assert sorted((row["Datum"], row["Empf_nger"], row["PLZ"]) for row in rows) == [
        ("2026-10-01", "Bäcker", "01067"),
        ("2026-10-05", "Lohn", "10115"),
        ("2026-11-01", "Bäcker", "80331"),
    ]


def test_a_column_that_is_read_otherwise_than_before_is_told(tmp_path: Path) -> None:
    machine = Machine()
    imported(machine, tmp_path / "a_2026-10.csv", "Name,Number\nx,12\ny,13\n")
    second = imported(machine, tmp_path / "a_2026-11.csv", "Name,Number\nx,012\ny,013\n")
    number = next(each for each in second["columns"] if each["column"] == "Number")
    assert (number["type"], number["was"], number["why"]) == ("code", "number", "leading_zero")


def _make_old(machine: Machine) -> None:
    """Declare the table as it was declared before series and labels were known."""
    with machine.store.snapshot() as snapshot:
        (declared,) = [d for d in snapshot.declarations() if d.connector_key == "table-umsaetze"]
    text = declared.raw.decode().replace("Empfaenger", "Empf_nger")
    old = orjson.loads(text)
    key = "table-umsaetze-2026-10"
    old["connector_key"], old["source"]["id"] = (
        key,
        old["source"]["id"].replace("table-umsaetze", key),
    )
    old["display"]["name"], old["declaration_version"] = "Umsaetze_2026-10", "old"
    (stream,) = old["streams"]
    stream["name"] = "umsaetze_2026_10"
    for schema in stream["schema"]["properties"].values():
        schema.pop("x_table_column", None)
        schema.pop("title", None)
    with machine.store.snapshot() as snapshot:
        held = [c.connection_id for c in snapshot.connections()]
    for connection_id in held:
        machine.store.erase_connection(connection_id, 1)
    declare(machine.store, old, 1)
    known = machine.store.declaration(key, None)
    create_connection(machine.store, known, "Umsaetze_2026-10", 1, machine.ports.random_bytes)


def _declared(machine: Machine) -> dict[str, Any]:
    """What is declared of the fields of the one table there is."""
    with machine.store.snapshot() as snapshot:
        (declared,) = snapshot.declarations()
    return orjson.loads(declared.raw)["streams"][0]["schema"]["properties"]


@pytest.mark.parametrize(
    "further", ["Day,To,Sum\n2026-11-01,x,3.5\n", "Day,To,Note\n2026-11-01,x,y\n"]
)
def test_amounts_stay_in_their_currency_where_a_file_lacks_its_column(
    further: str, tmp_path: Path
) -> None:
    machine = Machine()
    imported(machine, tmp_path / "a.csv", "Day,To,Sum,Currency\n2026-10-01,x,1.5,EUR\n")
    before = _declared(machine)
    imported(machine, tmp_path / "a.csv", further)
    after = _declared(machine)
    assert before["Sum"]["x_pdpp_unit_field"] == after["Sum"]["x_pdpp_unit_field"] == "Currency"
    assert before["Currency"]["x_pdpp_type"] == after["Currency"]["x_pdpp_type"] == "currency"


def test_amounts_of_two_currencies_have_none_whatever_comes_later(tmp_path: Path) -> None:
    machine = Machine()
    for number, cell in enumerate(("€ 1.50", "$2.50", "€ 3.50"), 1):
        imported(machine, tmp_path / "a.csv", f"Day,Sum\n2026-10-0{number},{cell}\n")
    assert "x_pdpp_unit" not in _declared(machine)["Sum"]


@pytest.mark.parametrize(("cell", "unit"), [("3.50", "€"), ("€ 3.50", "€"), ("$3.50", None)])
def test_amounts_stay_in_the_currency_that_all_cells_have(
    cell: str, unit: str | None, tmp_path: Path
) -> None:
    machine = Machine()
    imported(machine, tmp_path / "a.csv", "Day,Sum\n2026-10-01,€ 1.50\n2026-10-02,€ 2.50\n")
    assert _declared(machine)["Sum"]["x_pdpp_unit"] == "€"
    imported(machine, tmp_path / "a.csv", f"Day,Sum\n2026-11-01,{cell}\n")
    assert _declared(machine)["Sum"].get("x_pdpp_unit") == unit


def test_what_was_sentences_is_found_by_meaning_whatever_comes_later(tmp_path: Path) -> None:
    machine = Machine()
    imported(machine, tmp_path / "diary.csv", "Day,Said\n2026-01-01,I went to the sea\n")
    imported(machine, tmp_path / "diary.csv", "Day,Said\n2026-01-02,nothing\n")
    with machine.store.snapshot() as snapshot:
        (declared,) = (orjson.loads(each.raw) for each in snapshot.declarations())
    (stream,) = declared["streams"]
    assert stream["query"]["search"]["semantic_fields"] == ["Said"]


BOOKS = "Book Id,Title,Rating\n11,Bread,4\n12,Rye,5\n"


def _hold(machine: Machine, rows: list[dict[str, Any]]) -> None:
    """Have the one table hold these rows instead of its own."""
    with machine.store.snapshot() as snapshot:
        (held,) = snapshot.stored_streams()
        (declared,) = snapshot.declarations()
    machine.store.delete_stream(held.connection_id, held.stream, 1)
    streams = parse_declaration(orjson.loads(declared.raw)).streams
    lines = [{"data": row, "emitted_at": "2026-11-22T00:00:00Z"} for row in rows]
    ingest(
        machine.store,
        held.connection_id,
        streams[held.stream],
        lines,
        now_ns=2,
        new_receipt_id=lambda: "r",
    )


def test_rows_that_are_known_by_content_stay_so_where_a_column_could_name_them(
    tmp_path: Path,
) -> None:
    machine = Machine()
    path = tmp_path / "books.csv"
    imported(machine, path, BOOKS)
    assert sorted(row["id"] for row in stored(machine)) == ["11", "12"]
    ids = ["row_11f5d3dafdf8eaef0db79654", "row_ec10b95ea1ae22c5140230fc"]
    rows = [
        {"id": ids[0], "Book_Id": 11, "Title": "Bread", "Rating": 3},
        {"id": ids[1], "Book_Id": 12, "Title": "Rye", "Rating": 3},
    ]
    _hold(machine, rows)
    again = imported(machine, path, BOOKS)
    assert (again["streams"]["books"]["new"], again["streams"]["books"]["updated"]) == (0, 2)
    assert {row["id"]: row["Rating"] for row in stored(machine)} == {ids[0]: 4, ids[1]: 5}


def test_rows_below_padded_names_are_known_by_what_the_file_says(tmp_path: Path) -> None:
    imported(machine := Machine(), tmp_path / "a.csv", "Day ; To ;Sum\n24 Mar 2020 ; Ann ;3\n")
    assert [row["id"] for row in stored(machine)] == ["row_ea0bfa8bc1046f5faf6cdb1e"]


def test_a_column_that_named_rows_goes_on_to_name_them(tmp_path: Path) -> None:
    machine = Machine()
    path = tmp_path / "rides.csv"
    path.write_text("No,Town\n7,Ulm\n8,Ulm\n")
    assert machine.run("import", path, "--key", "No")[0] == 0
    again = imported(machine, path, "No,Town\n7,Bonn\n8,Ulm\n9,Ulm\n")
    assert [again["streams"]["rides"][n] for n in ("new", "updated", "unchanged")] == [1, 1, 1]
