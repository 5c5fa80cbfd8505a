"""A column or a value that does not exist is an error of the type checker."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pages.parts import PACKAGES
from personal_server.storage.tables import Cell, ColumnKind, Comparison, StoredRow, column

PROGRAM = """
from personal_server.storage.authorization_rows import ClientRow, GrantRow, PackageMemberRow
from personal_server.storage.ports.authorization_store import AuthorizationWriter
from personal_server.storage.sql import statements
from personal_server.storage.sql.fixed_tables import ConnectionRow, SourceRow


def use(writer: AuthorizationWriter) -> None:
    writer.get(GrantRow, GrantRow.grant_id.equals("gra_1"))
    writer.get(GrantRow, GrantRow.grant_ids.equals("gra_1"))  # RED: reportAttributeAccessIssue
    writer.get(GrantRow, GrantRow.grant_id.equals(1))  # RED: reportArgumentType
    writer.get(GrantRow, GrantRow.grant_id.equals(None))  # RED: reportArgumentType
    writer.get(GrantRow, ClientRow.client_id.equals("c"))  # RED: reportArgumentType
    writer.rows(GrantRow, GrantRow.expires_at_ns.at_most(1), order=GrantRow.issued_at_ns)
    writer.rows(GrantRow, GrantRow.reason.at_most(1))  # RED: reportAttributeAccessIssue
    writer.rows(GrantRow, order=ClientRow.name)  # RED: reportArgumentType
    writer.change(GrantRow, [GrantRow.revoked_at_ns.to(1), GrantRow.reason.to("owner")])
    writer.change(GrantRow, [GrantRow.revoked_at_ns.to("now")])  # RED: reportArgumentType
    writer.change(GrantRow, [ClientRow.blocked_at_ns.to(1)])  # RED: reportArgumentType


PackageMemberRow(package_id="p", position="0", grant_id="g")  # RED: reportArgumentType
PackageMemberRow(package_id="p", position=0)  # RED: reportCallIssue
member = PackageMemberRow(package_id="p", position=0, grant_id="g")
member.position = 1  # RED: reportAttributeAccessIssue

statements.delete(SourceRow, SourceRow.connection_id)
statements.delete(SourceRow, ConnectionRow.connection_id)  # RED: reportArgumentType
f"SELECT {SourceRow.stream} FROM {SourceRow.table}"
f"SELECT {SourceRow.streem} FROM {SourceRow.table}"  # RED: reportAttributeAccessIssue
"""


@pytest.mark.timeout(120)
def test_wrong_columns_and_values_are_red_and_right_ones_are_not(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    settings = {
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "extraPaths": [str(folder.parent) for folder in PACKAGES.values()],
        "include": [str(program)],
        "reportUnusedExpression": False,
        "reportUnusedCallResult": False,
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    pyright = [sys.executable, "-m", "pyright", "--outputjson", "--project", str(tmp_path)]
    pyright += ["--pythonpath", sys.executable]
    answer = subprocess.run(pyright, capture_output=True, text=True, check=False)
    found = {
        (each["range"]["start"]["line"], each["rule"])
        for each in json.loads(answer.stdout)["generalDiagnostics"]
        if not each["rule"].startswith("reportUnknown")
    }
    lines = enumerate(PROGRAM.split("\n"))
    expected = {(number, line.split("# RED: ")[1]) for number, line in lines if "# RED: " in line}
    assert expected
    assert found == expected


class SampleRow(StoredRow, table="samples"):
    number: Cell[int] = column(numbered=True, default=0)
    place: Cell[str] = column(unique="where")
    name: Cell[str | None] = column(default=None, unique="where")
    known: Cell[bool] = column(default=False)
    value: Cell[int | str | None] = column(default=None)
    tags: Cell[tuple[str, ...]] = column(default=())


def test_a_row_class_has_columns_and_its_rows_have_values() -> None:
    row = SampleRow(place="here")
    assert (row.place, row.name, row.known, row.tags) == ("here", None, False, ())
    assert str(SampleRow.place) == "place"
    assert f"{SampleRow.table}" == "samples"
    assert [each.kind for each in SampleRow.table.columns] == [
        ColumnKind.INTEGER,
        ColumnKind.TEXT,
        ColumnKind.TEXT,
        ColumnKind.FLAG,
        ColumnKind.SCALAR,
        ColumnKind.JSON,
    ]
    assert [each.name for each in SampleRow.table.columns if each.optional] == ["name", "value"]
    assert SampleRow.table.unique == (("place", "name"),)
    assert SampleRow.table.key == ("number",)


def test_a_row_cannot_change() -> None:
    row = SampleRow(place="here")
    with pytest.raises(AttributeError):
        row.place = "there"  # pyright: ignore[reportAttributeAccessIssue]


def test_rows_are_told_apart_by_their_values() -> None:
    one, same, other = (SampleRow(place=place) for place in ("here", "here", "there"))
    assert one == same != other
    assert len({one, same, other}) == 2
    assert "here" in repr(one)


def test_equality_with_none_asks_for_null() -> None:
    assert SampleRow.name.equals("x").comparison is Comparison.EQUALS
    assert SampleRow.name.equals(None).comparison is Comparison.IS_NULL
