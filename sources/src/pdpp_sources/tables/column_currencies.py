"""Which columns are amounts in the currency that another column of the same row names.

`Amount 12.50 | Currency EUR` beside `Amount 1200 | Currency JPY`: a sum of both says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

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


# Beside a word of amounts they say that it is none.
_OTHER_NAMES = frozenset(
    {"rate", "percent", "percentage", "pct", "ratio", "count", "quantity", "qty", "items", "units"}
    | {"pieces", "id", "number", "no", "nr", "code", "center", "centre", "year", "days", "score"}
    | {"points", "anzahl", "menge", "stück", "satz", "nummer", "prozent", "quantité", "cantidad"}
)


def names_currency(name: str) -> bool:
    """Whether a column of that name holds currencies: `Currency`, `currency_code`, `Währung`."""
    words = _words(name)
    return bool(words & _CURRENCY_NAMES) or {"currency", "code"} <= words


def currencies_of(currencies: Sequence[str], numbers: Sequence[str]) -> dict[str, str]:
    """Each column of numbers that is an amount, with the column of its currency.

    In: `currency`, `fee_currency` and `amount`, `quantity`, `fee`; out: `amount` in `currency`,
    `fee` in `fee_currency`. Where no name says amount, a single column of numbers is one. What
    shares no word with a currency is in the one with the fewest words, unless two have as few.
    """
    amounts = [name for name in numbers if _is_amount(name)]
    if not amounts and len(numbers) == 1 and not _is_other(numbers[0]):
        amounts = list(numbers)
    own = {name: _words(name) - _CURRENCY_NAMES - {"code"} for name in currencies}
    found: dict[str, str] = {}
    for currency in sorted(own, key=lambda name: len(own[name]), reverse=True):
        found |= {a: currency for a in amounts if a not in found and own[currency] & _words(a)}
    fewest = min(map(len, own.values()), default=0)
    plain = [name for name in own if len(own[name]) == fewest]
    if len(plain) == 1 and (fewest == 0 or plain[0] not in found.values()):
        found = dict.fromkeys(amounts, plain[0]) | found
    return found


def _is_amount(name: str) -> bool:
    return bool(_words(name) & _AMOUNT_NAMES) and not _is_other(name)


def _is_other(name: str) -> bool:
    """Whether a column counts, measures or numbers something else: `VAT rate`, `Total items`."""
    return "%" in name or bool(_words(name) & _OTHER_NAMES)


def _words(name: str) -> frozenset[str]:
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return frozenset(re.findall(r"[^\W\d_]+", parts.lower()))
