import pytest

from pdpp_sources.tables.column_codes import is_checked, is_code_name, shown_by, unguarded

OF_CODES = (
    "Account|Account Number|accountNumber|Kontonummer|IBAN|Zip|ZIP Code|Postal Code|PLZ|Code postal"
    "|Postleitzahl|Código postal|CEP|CAP|Postcode|Почтовый индекс|Phone|Phone Number|Telefon|Code"
    "|Téléphone|Teléfono|Telefone|Telefono|Telefoonnummer|Телефон|ISBN|ISBN13|EAN|RoutingNumber"
    "|Sort Code|Codice|Código|Код|Tegenrekening|Счёт|Card Number|Mobile 1|Bankleitzahl"
)
OF_OTHERS = (
    "Amount|Account Balance|Kontostand|Zip count|Price|Number|Year|Accounting total|Decoded|id"
    "|Phone bill amount|Quantity|Discount|Cape"
)


@pytest.mark.parametrize("name", OF_CODES.split("|"))
def test_a_name_says_that_digits_are_codes(name: str) -> None:
    assert is_code_name(name)


@pytest.mark.parametrize("name", OF_OTHERS.split("|"))
def test_a_name_says_nothing_of_codes(name: str) -> None:
    assert not is_code_name(name)


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        ("0123", "leading_zero"),
        ("+4917012345", "plus_sign"),
        ("1234567890123456", "long_digits"),
        ('="0316000001"', "guarded"),
        ("'0123", "guarded"),
        ("0", None),
        ("123", None),
    ],
)
def test_a_cell_shows_that_its_digits_are_a_code(cell: str, why: str | None) -> None:
    assert shown_by(cell) == why


def test_what_guards_a_cell_is_no_part_of_it() -> None:
    cells = ('="0316"', "'0316", '=""', "plain", "it's")
    assert [unguarded(cell) for cell in cells] == ["0316", "0316", "", "plain", "it's"]


def test_a_check_digit_checks_the_others() -> None:
    assert all(map(is_checked, ("9780316769488", "4006381333931", "036000291452")))
    assert not any(map(is_checked, ("9780316769489", "4006381333932", "12", "1234567890")))
