"""Which numbers of a table are amounts of money, and in which column their currency stands."""

from __future__ import annotations

import pytest

from pdpp_sources.tables.column_currencies import amounts_beside, names_currency


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
        ("transaction currency", ["totalPrice", "weight"], {"totalPrice"}),
    ],
)
def test_amounts_beside_a_currency(currency: str, numbers: list[str], amounts: set[str]) -> None:
    assert amounts_beside(currency, numbers) == amounts
