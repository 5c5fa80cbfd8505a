"""Digits that are codes and no numbers: accounts, postcodes, telephones, ISBN.

Taken for a number, `0123` becomes another code. So a column of nothing but digits is text where one
of its cells shows it (a leading zero, a plus sign, more digits than a number keeps, `="…"`), where
check digits prove it, or where it is called so.
"""

from __future__ import annotations

import re
import unicodedata

# Cells that a spreadsheet is kept from changing: `="0123"`, `'0123`.
_GUARDED = re.compile(r'="([^"]*)"|\'(\+?\d+)')
_DIGITS = re.compile(r"\+?\d{1,60}")
_MOST_DIGITS = 15  # that a number keeps in every program
# How such columns are called in English, German, French, Spanish, Portuguese, Italian, Dutch and
# Russian; `^` and `$` stand for the ends of the name, all else is a part of one of its words.
_WORDS = (
    r"isbn\w*|issn|ean|gtin|upc|asin|barcode|barcodes|imei|iban|bic|swift|blz|plz|cap$|cep|vat|nif"
    r"|cif|siren|siret|ssn|ein|tin$|bsn|cpf|cnpj|инн|бик|кпп|снилс"
    r"|zip|zips|zip_?codes?|post_?codes?|postal|postal_?codes?|postleitzahl(?:en)?|postnummer"
    r"|codigo_postal|code_postal|postcode|индекс|почтовый_индекс"
    r"|phone\w*|telephone\w*|tel|mobile|mobil|mobiltelefon|handy\w*|cell|fax\w*|telefon|telefono"
    r"|telefone|telefonnummer\w*|telefoon\w*|rufnummer|portable|movil|celular|cellulare|gsm|msisdn"
    r"|телефон|мобильный|whatsapp"
    r"|account|accounts|acct|account_?(?:no|nr|num|number|id|code)|kontonummer|konto|kontonr|ktonr"
    r"|compte|numero_de_compte|cuenta|conta|conto|rekening|rekeningnummer|tegenrekening|счет|счёт"
    r"|bankleitzahl|routing\w*|sort_?code|iban_?nummer|card_?(?:no|number)|kartennummer|sortcode"
    r"|code|codes|kennziffer|kennung|codice|codigo|код|kundennummer|kundennr|mitgliedsnummer"
    r"|customer_?(?:no|number)|member_?(?:no|number)|serial_?(?:no|number)?|seriennummer|passport"
    r"|steuernummer|matrikelnummer|versicherungsnummer"
)
_NAME = re.compile(rf"(?:^|_)(?:{_WORDS})(?:_(?:no|nr|num|number|nummer|numero|n|номер))?(?:_\d)?$")
# `Account balance`, `Zip count`: a sum or a number of things, whatever else its name says.
_AMOUNT = re.compile(
    r"balance|amount|saldo|solde|betrag|montant|importe|valor|sum\b|total|(?<!ac)count|anzahl|stand\b"
    r"|umsatz|остаток|сумма|value|price|preis|age\b|line|zeile"
)
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BREVE = "\u0306"  # it makes another letter of Cyrillic's и


def unguarded(text: str) -> str:
    """A cell without what keeps a spreadsheet from changing it."""
    match = _GUARDED.fullmatch(text.strip())
    return text if match is None else match[1] if match[1] is not None else match[2]


def is_guarded(text: str) -> bool:
    """Whether something keeps a spreadsheet from changing the digits of a cell."""
    match = _GUARDED.fullmatch(text.strip())
    return match is not None and (match[1] or match[2] or "").strip("+").isdecimal()


def is_code(text: str) -> bool:
    """Whether a cell is digits alone, which may be a code."""
    return _DIGITS.fullmatch(unguarded(text).strip()) is not None


def shown_by(text: str) -> str | None:
    """Why the digits of a cell are no number, by themselves: a word for reports, else None."""
    if is_guarded(text):
        return "guarded"
    digits = text.strip()
    if digits.startswith("+"):
        return "plus_sign"
    if len(digits) > 1 and digits.startswith("0"):
        return "leading_zero"
    return "long_digits" if len(digits) > _MOST_DIGITS else None


def is_checked(digits: str) -> bool:
    """Whether the last digit checks the others, as GTIN, ISBN-13 and cards have it."""
    if not digits.isdecimal():
        return False
    if len(digits) in (8, 12, 13, 14):
        weights = (3 if n % 2 else 1 for n in range(len(digits)))
        return sum(int(d) * w for d, w in zip(reversed(digits), weights, strict=True)) % 10 == 0
    if len(digits) == 15:  # IMEI, American Express
        doubled = (int(d) * (1 + n % 2) for n, d in enumerate(reversed(digits)))
        return sum(n // 10 + n % 10 for n in doubled) % 10 == 0
    return False


def is_code_name(name: str) -> bool:
    """Whether a column is called as one that holds codes."""
    words = _CAPITAL.sub("_", name.strip()).lower()
    apart = unicodedata.normalize("NFKD", words)
    plain = "".join(c for c in apart if not unicodedata.combining(c) or c == _BREVE)
    plain = re.sub(r"[^\w]+", "_", unicodedata.normalize("NFC", plain)).strip("_")
    return _NAME.search(plain) is not None and _AMOUNT.search(plain) is None
