import pytest

from pdpp_sources.tables.column_names import field_names


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("Währung", "Waehrung"),
        ("Дата", "Data"),
        ("Aktivitäts-ID", "Aktivitaets-ID"),
        ("Référence", "Reference"),
        ("Số tiền", "So_tien"),
        ("Ημερομηνία", "Imerominia"),
        ("금액", "geumaeg"),
        ("日付", "u65e5_u4ed8"),
        ("Kwota (zł)", "Kwota_zl"),
        ("€", "EUR"),
        ("2020", "_2020"),
        ("Book Id", "Book_Id"),
        ("%", "percent"),
        ("#", "number"),
        ("", "column_1"),
    ],
)
def test_a_name_of_any_script_becomes_an_identifier(name: str, field: str) -> None:
    assert field_names([name], {}) == {name: field}


def test_names_that_would_be_alike_are_told_apart() -> None:
    assert list(field_names(["Größe", "Groesse"], {}).values()) == ["Groesse", "Groesse_2"]


def test_a_column_that_is_stored_keeps_its_field() -> None:
    assert field_names(["Währung", "W_hrung"], {"Währung": "W_hrung"}) == {
        "Währung": "W_hrung",
        "W_hrung": "W_hrung_2",
    }
