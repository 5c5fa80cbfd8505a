"""Which numbers of a table are amounts of money, and in which column their currency stands."""

from __future__ import annotations

import pytest

from pdpp_sources.tables.column_currencies import currencies_of, names_currency


@pytest.mark.parametrize(
    "name", ["currency", "Currency Code", "currencyCode", "Währung", "orig_currency", "валюта"]
)
def test_names_of_currencies(name: str) -> None:
    assert names_currency(name)


@pytest.mark.parametrize("name", ["code", "current", "concurrency", "value", "money"])
def test_names_of_other_things(name: str) -> None:
    assert not names_currency(name)


@pytest.mark.parametrize(
    ("currency", "numbers", "amounts"),
    [
        ("currency", ["amount", "quantity"], {"amount"}),
        ("Währung", ["Betrag", "Menge", "Gebühr"], {"Betrag", "Gebühr"}),
        ("fee_currency", ["amount", "fee"], {"fee"}),
        ("currency", ["spent"], {"spent"}),
        ("currency", ["x", "y"], set[str]()),
        ("currency", ["Quantity"], set[str]()),
        ("currency", ["amount", "VAT rate", "Tax %", "Total items", "Cost Center"], {"amount"}),
        ("transaction currency", ["totalPrice", "weight"], {"totalPrice"}),
    ],
)
def test_amounts_beside_a_currency(currency: str, numbers: list[str], amounts: set[str]) -> None:
    assert currencies_of([currency], numbers) == dict.fromkeys(amounts, currency)


@pytest.mark.parametrize(
    ("currencies", "numbers", "expected"),
    [
        (["currency", "fee currency"], ["amount"], {"amount": "currency"}),
        (["fee currency", "currency"], ["fee", "net"], {"fee": "fee currency", "net": "currency"}),
        (["source currency", "target currency"], ["amount"], {}),
        (
            ["source currency", "target currency"],
            ["source amount", "target amount"],
            {"source amount": "source currency", "target amount": "target currency"},
        ),
    ],
)
def test_of_two_currencies_each_amount_has_its_own_or_the_plain_one(
    currencies: list[str], numbers: list[str], expected: dict[str, str]
) -> None:
    assert currencies_of(currencies, numbers) == expected
