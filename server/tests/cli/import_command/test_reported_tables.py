"""Tables that comparable tools were reported to misread, through the whole import."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pdpp_kernel.source_item import Data
from server.tests.cli.import_machine import Machine


def stored(machine: Machine, stream: str | None = None) -> list[Mapping[str, Any]]:
    """The records that are stored, in the order of their rows."""
    with machine.store.snapshot() as snapshot:
        return [
            row.data
            for held in snapshot.stored_streams()
            if stream in (None, held.stream)
            for row in snapshot.export(held.connection_id, held.stream)
        ]


def imported(
    tmp_path: Path, name: str, text: str, *arguments: str
) -> tuple[list[Mapping[str, Any]], Data]:
    """The records of one table, without their ids and in the order of the file, and the report."""
    machine = Machine()
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    code, printed = machine.run("import", path, *arguments)
    assert code == 0
    return sorted(stored(machine), key=str), printed["imports"][0]


CONNECTIONS = """Notes:
"When exporting your connection data, you may notice that some of the email addresses are missing. \
You will only see email addresses for connections who have allowed it."

First Name,Last Name,URL,Email Address,Company,Position,Connected On
Ada,Poe,https://www.linkedin.com/in/ada,,ACME,Engineer,05 Jan 2023
Bo,Roe,https://www.linkedin.com/in/bo,bo@example.org,"Foo, Inc",CEO,31 Dec 2022
"""
REVOLUT = """Completed Date ; Reference ; Paid Out (EUR) ; Paid In (EUR) ; Exchange Out
24 Mar 2020 ; Premium plan fee ; 29.99 ;  ; \n1 Apr 2019 ; To Piglet ; ; 1'978.42 ;
"""
STRAVA = """Aktivitäts-ID,Aktivitätsdatum,Name der Aktivität,Distanz,Verstrichene Zeit,Distanz
1,"12.09.2018, 15:02:23",Abendrunde,"3,68",783,"3681,0"
2,"02.05.2019, 07:02:23",Morgen,"13,68",1783,"13681,0"
"""


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        (
            "codes.csv",
            "Code,Name\n0123,Test\n0456,Sample\n",
            {"Code": ["0123", "0456"]},
        ),
        (
            "acc.csv",
            'Account,RoutingNumber,Amount\n0010,021000021,125.50\n"0100","011000015",50\n',
            {
                "Account": ["0010", "0100"],
                "RoutingNumber": ["021000021", "011000015"],
                "Amount": [125.5, 50],
            },
        ),
        (
            "goodreads_library_export.csv",
            "Book Id,Title,ISBN,My Rating,Date Read,Date Added\n"
            '11,"A, B","=""0316000001""",4,2023/01/05,2022/12/30\n12,C,"=""""",0,,2023/02/01\n',
            {
                "ISBN": ["0316000001", None],
                "Date_Read": ["2023-01-05", None],
                "Date_Added": ["2022-12-30", "2023-02-01"],
            },
        ),
        (
            "Connections.csv",
            CONNECTIONS,
            {"first_name": ["Ada", "Bo"], "connected_on": ["2023-01-05", "2022-12-31"]},
        ),
        (
            "Revolut-EUR-Statement.csv",
            REVOLUT,
            {
                "Completed_Date": ["2020-03-24", "2019-04-01"],
                "Paid_Out_EUR": [29.99, None],
                "Paid_In_EUR": [None, 1978.42],
                "Exchange_Out": [None, None],
            },
        ),
        (
            "activities.csv",
            STRAVA,
            {
                "Aktivitaets-ID": [1, 2],
                "Aktivitaetsdatum": ["2018-09-12T15:02:23Z", "2019-05-02T07:02:23Z"],
                "Distanz": [3.68, 13.68],
                "Distanz_2": [3681, 13681],
            },
        ),
        (
            "ing.csv",
            "Datum;Naam;Bedrag (EUR)\n20240105;Winkel;12,50\n20240131;Werk;2000,00\n",
            {"Datum": ["2024-01-05", "2024-01-31"], "Bedrag_EUR": [12.5, 2000]},
        ),
        (
            "comments.csv",
            "id,date,body\na,2023-01-05 10:11:12 UTC,x\nb,2023-01-06 10:11:12 UTC,y\n",
            {"date": ["2023-01-05T10:11:12Z", "2023-01-06T10:11:12Z"]},
        ),
        (
            "pocket.csv",
            "title,url,time_added,status\nA,https://a.example,1672913472,unread\n"
            "B,https://b.example,1672999872,archive\n",
            {"time_added": ["2023-01-05T10:11:12Z", "2023-01-06T10:11:12Z"]},
        ),
    ],
)
def test_a_reported_table_gives_its_right_values(
    name: str, text: str, values: dict[str, list[Any]], tmp_path: Path
) -> None:
    records, _ = imported(tmp_path, name, text)
    rows = [tuple(each.get(field) for field in values) for each in records]
    wanted = list(zip(*values.values(), strict=True))
    assert len(rows) == len(wanted)
    assert all(row in rows for row in wanted)


def test_the_report_says_how_each_column_was_read_and_why(tmp_path: Path) -> None:
    text = "PLZ,Tag,Wert\n10115,31/12/2022,1\n80331,01/02/2023,2\n"
    _, report = imported(tmp_path, "orte.csv", text, "--dry-run")
    assert [(c["column"], c["type"], c.get("why")) for c in report["columns"]] == [
        ("PLZ", "code", "code_name"),
        ("Tag", "day", "day_first"),
        ("Wert", "number", None),
    ]
    assert report["columns"][0]["examples"] == ["10115", "80331"]


def test_the_owner_says_what_a_column_holds(tmp_path: Path) -> None:
    text = "Nr,Tag\n12,01/02/2023\n7,03/04/2023\n"
    said = ("--column", "Nr=code", "--column", "Tag=month-first")
    records, _ = imported(tmp_path, "orte.csv", text, *said)
    assert [(each["Nr"], each["Tag"]) for each in records] == [
        ("12", "2023-01-02"),
        ("7", "2023-03-04"),
    ]


@pytest.mark.parametrize("said", ["Nr", "Nr=colour", "=text", "other=text", "Tag=number"])
def test_what_fits_no_column_is_refused(said: str, tmp_path: Path) -> None:
    (tmp_path / "orte.csv").write_text("Nr,Tag\n12,01/02/2023\n")
    code, printed = Machine().run("import", tmp_path / "orte.csv", "--column", said)
    assert (code, printed["error"]["code"]) == (64, "usage")
