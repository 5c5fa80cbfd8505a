"""Which columns are amounts in the currency that another column of the same row names.

`Amount 12.50 | Currency EUR` beside `Amount 1200 | Currency JPY`: a sum of both says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection

# A code of ISO 4217, or a sign: €, kr, R$.
MOST_CURRENCY_CHARS = 3
_CURRENCY_NAMES = frozenset(
    {"currency", "ccy", "currencycode", "währung", "waehrung", "devise", "monnaie", "moneda"}
    | {"divisa", "valuta", "moeda", "waluta", "měna", "валюта", "通貨", "货币", "币种"}
)
_AMOUNT_NAMES = frozenset(
    {"amount", "total", "subtotal", "sum", "price", "value", "cost", "costs", "fee", "fees", "tax"}
    | {"vat", "tip", "net", "gross", "balance", "paid", "discount", "shipping", "charge", "credit"}
    | {
        "debit",
        "betrag",
        "summe",
        "preis",
        "wert",
        "gebühr",
        "gebühren",
        "saldo",
        "steuer",
        "netto",
    }
    | {"brutto", "umsatz", "montant", "prix", "frais", "solde", "importe", "monto", "precio"}
    | {"importo", "prezzo", "valor", "preço", "bedrag", "prijs", "kwota", "cena", "belopp", "beløb"}
    | {"сумма", "цена", "金額", "金额", "价格"}
)


def names_currency(name: str) -> bool:
    """Whether a column of that name holds currencies: `Currency`, `currency_code`, `Währung`."""
    words = _words(name)
    return bool(words & _CURRENCY_NAMES) or {"currency", "code"} <= words


def amounts_beside(currency: str, numbers: Collection[str]) -> frozenset[str]:
    """The columns of numbers that are amounts in the currency of the column `currency`.

    In: `fee_currency` and `amount`, `quantity`, `fee`; out: `fee`. Where no name says amount, a
    single column of numbers is one.
    """
    own = _words(currency) - _CURRENCY_NAMES - {"code"}
    amounts = [name for name in numbers if _words(name) & _AMOUNT_NAMES]
    named = [name for name in amounts if own & _words(name)]
    return frozenset(named or amounts or (numbers if len(numbers) == 1 else ()))


def _words(name: str) -> frozenset[str]:
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return frozenset(re.findall(r"[^\W\d_]+", parts.lower()))
