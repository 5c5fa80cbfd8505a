"""What statements in camt.053, MT940 and QIF say, by the values a person reads in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pdpp_kernel.source_item import Data
from pdpp_sources.registry import SOURCES
from sources.tests.reading import read_if_known, read_path, records_of, skips_of
from sources.tests.specimens.bank import CAMT, MT940, QIF
from sources.tests.specimens.files import as_folder


def payments(tmp_path: Path, content: bytes, name: str = "statement") -> list[Data]:
    (tmp_path / name).write_bytes(content)
    return records_of(read_path(tmp_path / name), "transactions")


def line(details: str = "", way: str = "D", dates: str = "2401020102") -> bytes:
    """A statement of SWIFT with one line."""
    head = ":20:A\n:25:NL02ABNA0123456789\n:28C:1\n:60F:C240101EUR9,00\n"
    return f"{head}:61:{dates}{way}1,50NTRFNONREF\n{details}:62F:C240102EUR7,50\n-\n".encode()


def entry(inner: str, *, head: str = "", close: str = "") -> bytes:
    """A statement in XML with one entry."""
    account = "<Acct><Id><IBAN>NL02ABNA0123456789</IBAN></Id><Ccy>EUR</Ccy></Acct>"
    amount = '<Amt Ccy="EUR">10.00</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>BOOK</Sts>'
    booked = "<BookgDt><Dt>2024-01-02</Dt></BookgDt>"
    whole = f"{head}<Stmt>{account}<Ntry>{amount}{booked}{inner}</Ntry></Stmt>{close}"
    return f"<Document><BkToCstmrStmt>{whole}</BkToCstmrStmt></Document>".encode()


def detail(amount: str, way: str = "", currency: str = "EUR") -> str:
    said = f"<CdtDbtInd>{way}</CdtDbtInd>" if way else ""
    return f'<TxDtls><Amt Ccy="{currency}">{amount}</Amt>{said}</TxDtls>'


def test_a_batch_is_its_payments_whose_sum_is_the_accounts(tmp_path: Path) -> None:
    batch = payments(tmp_path, CAMT)[:2]
    assert [(p["payee"], p["amount_minor"], p["reference"]) for p in batch] == [
        ("Jürgen & Sohn", -12000, "RENT-1"),
        ("Club", -3000, None),
    ]
    assert batch[0]["memo"] == "Rent January"
    assert batch[0]["counterparty_account"] == "DE02120300000000202051"
    assert batch[0]["available_on"] == "2024-01-02"


@pytest.mark.parametrize(
    ("details", "amounts"),
    [
        (detail("4.00") + detail("6.00"), [-400, -600]),
        (detail("4.00") + detail("7.00"), [-1000]),
        (detail("4.00") + detail("6.00", currency="USD"), [-1000]),
        (detail("12.00") + detail("2.00", "CRDT"), [-1200, 200]),
        (detail("9.00"), [-1000]),
        ("<TxDtls/><TxDtls/>", [-1000]),
    ],
)
def test_an_entry_is_split_only_where_its_parts_make_it_up(
    details: str, amounts: list[int], tmp_path: Path
) -> None:
    found = payments(tmp_path, entry(f"<NtryDtls>{details}</NtryDtls>"))
    assert [p["amount_minor"] for p in found] == amounts


def test_alike_payments_of_a_batch_are_two(tmp_path: Path) -> None:
    inner = "<AcctSvcrRef>B</AcctSvcrRef><NtryDtls>" + detail("5.00") * 2 + "</NtryDtls>"
    found = payments(tmp_path, entry(inner))
    assert [p["amount_minor"] for p in found] == [-500, -500]


def test_a_payment_abroad_says_its_own_currency_and_rate(tmp_path: Path) -> None:
    abroad = payments(tmp_path, CAMT)[2]
    assert (abroad["amount"], abroad["currency"]) == (-18.1, "EUR")
    assert (abroad["original_currency"], abroad["exchange_rate"]) == ("USD", 0.905)
    assert (abroad["posted_on"], abroad["posted_at"]) == ("2024-01-05", "2024-01-05T22:30:00Z")
    assert (abroad["payee"], abroad["kind"]) == ("BOOKSHOP NEW YORK", "pos")


def test_what_came_back_came_in_and_names_the_other_and_not_the_owner(tmp_path: Path) -> None:
    returned = payments(tmp_path, CAMT)[3]
    assert (returned["amount"], returned["payee"]) == (35, "Phone Ltd")


def test_what_is_not_booked_or_has_no_amount_is_named(tmp_path: Path) -> None:
    path = as_folder({"statement.xml": CAMT}, tmp_path)
    assert skips_of(read_path(path)) == ["not_booked", "bad_amount"]


def test_balances_are_negative_where_the_account_is_overdrawn(tmp_path: Path) -> None:
    (tmp_path / "statement.xml").write_bytes(CAMT)
    held = records_of(read_path(tmp_path / "statement.xml"), "balances")
    assert [(b["as_of"], b["kind"], b["amount"]) for b in held] == [
        ("2024-01-02", "opening", 100),
        ("2024-01-31", "booked", -33.1),
    ]


def test_prefixes_other_charsets_and_the_words_of_later_versions_are_read(tmp_path: Path) -> None:
    party = "<RltdPties><Cdtr><Pty><Nm>Bücher</Nm></Pty></Cdtr></RltdPties>"
    whole = entry(f"<NtryDtls><TxDtls>{party}</TxDtls></NtryDtls>").decode()
    whole = whole.replace("<Sts>BOOK</Sts>", "<Sts><Cd>BOOK</Cd></Sts>")
    prefixed = whole.replace("</", "</n:").replace("<", "<n:").replace("<n:/n:", "</n:")
    content = f'<?xml version="1.0" encoding="ISO-8859-1"?>{prefixed}'.encode("latin-1")
    assert [p["payee"] for p in payments(tmp_path, content)] == ["Bücher"]


def test_a_damaged_account_does_not_lend_its_entries_to_the_one_before(tmp_path: Path) -> None:
    other = "<Stmt><Acct><Id><IBAN>NL02</Id></Acct><Ntry><Amt>1</Amt></Ntry></Stmt>"
    content = entry("", close=other)
    (tmp_path / "statement.xml").write_bytes(content)
    items = read_path(tmp_path / "statement.xml")
    assert len(records_of(items, "transactions")) == 1
    assert skips_of(items) == ["bad_record", "bad_record"]


def test_a_number_in_two_currencies_is_two_accounts(tmp_path: Path) -> None:
    first = entry("")
    (tmp_path / "a.xml").write_bytes(first)
    (tmp_path / "b.xml").write_bytes(first.replace(b"EUR", b"USD"))
    accounts = records_of(read_path(tmp_path), "accounts")
    assert sorted(account["currency"] for account in accounts) == ["EUR", "USD"]


def test_one_account_is_the_same_in_xml_and_in_swift(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_bytes(entry(""))
    (tmp_path / "b.sta").write_bytes(line())
    transactions = records_of(read_path(tmp_path), "transactions")
    assert len({payment["account_id"] for payment in transactions}) == 1


def test_germanys_numbered_parts_are_put_together(tmp_path: Path) -> None:
    debit = payments(tmp_path, MT940)[0]
    assert debit["memo"] == "Strom Dezember 2023 und Januar"
    assert debit["payee"] == "Stadtwerke Musterstadt und Umgebung"
    assert (debit["reference"], debit["bank_transaction_id"]) == ("E-77", "2024A")
    assert debit["counterparty_account"] == "DE02120300000000202051"
    assert (debit["amount"], debit["kind"]) == (-20.5, "directdebit")


def test_a_booking_before_new_year_of_a_value_after_it_is_of_the_old_year(tmp_path: Path) -> None:
    debit = payments(tmp_path, MT940)[0]
    assert (debit["posted_on"], debit["available_on"]) == ("2023-12-29", "2024-01-02")


def test_a_credit_that_was_taken_back_went_out(tmp_path: Path) -> None:
    back = payments(tmp_path, MT940)[1]
    assert (back["amount"], back["direction"]) == (-5, "out")
    assert (back["payee"], back["memo"], back["reference"]) == ("J. Jansen", "Back again", None)
    assert back["counterparty_account"] == "NL02ABNA0123456789"


@pytest.mark.parametrize(
    ("way", "amount"), [("D", -1.5), ("C", 1.5), ("RD", 1.5), ("RC", -1.5), ("CR", 1.5)]
)
def test_signs_are_those_of_the_balance(way: str, amount: float, tmp_path: Path) -> None:
    assert [p["amount"] for p in payments(tmp_path, line(way=way))] == [amount]


@pytest.mark.parametrize(
    ("dates", "posted", "available"),
    [
        ("240102", "2024-01-02", "2024-01-02"),
        ("2302300301", "2023-03-01", "2023-02-28"),
        ("2401020102", "2024-01-02", "2024-01-02"),
        ("9912310103", "2000-01-03", "1999-12-31"),
    ],
)
def test_days_are_of_the_banks_calendar(
    dates: str, posted: str, available: str, tmp_path: Path
) -> None:
    (payment,) = payments(tmp_path, line(dates=dates))
    assert (payment["posted_on"], payment["available_on"]) == (posted, available)


@pytest.mark.parametrize(
    ("details", "memo"),
    [
        (":86:RC AFREKENING\nBETREFT REKENING 4715589\n", "RC AFREKENING BETREFT REKENING 4715589"),
        (f":86:{'A' * 65}\nB C\n", f"{'A' * 65}B C"),
        (":86:\n", None),
        ("", None),
    ],
)
def test_full_lines_go_on_and_shorter_ones_have_ended(
    details: str, memo: str | None, tmp_path: Path
) -> None:
    assert [p["memo"] for p in payments(tmp_path, line(details))] == [memo]


def test_a_statement_in_its_envelope_is_known(tmp_path: Path) -> None:
    envelope = b"{1:F01ASNBNL21XXXX0000000000}{2:O940ASNBNL21XXXXN}{3:}{4:\r\n"
    assert len(payments(tmp_path, envelope + line() + b"-}{5:}")) == 1
    assert len(payments(tmp_path, b"ABNANL2A\r\n940\r\nABNANL2A\r\n" + line())) == 1


@pytest.mark.parametrize("name", ["note.md", "mail.eml", "chat.txt"])
def test_text_that_quotes_a_statement_is_none(name: str, tmp_path: Path) -> None:
    words = b"# How I read a statement\n\nIt begins like this, as far as I know:\n"
    (tmp_path / name).write_bytes(words + line())
    assert "bank" not in {key for key, _ in read_if_known(tmp_path / name)}


def test_a_payment_over_two_categories_is_one_for_each(tmp_path: Path) -> None:
    assert [(p["category"], p["memo"], p["amount"]) for p in payments(tmp_path, QIF)] == [
        ("Food", None, -31),
        ("Home", "brush", -17),
    ]


def test_an_opening_balance_is_no_payment(tmp_path: Path) -> None:
    (tmp_path / "wallet.qif").write_bytes(QIF)
    items = read_path(tmp_path / "wallet.qif")
    assert [(b["kind"], b["amount"]) for b in records_of(items, "balances")] == [("opening", 1000)]
    assert [a["name"] for a in records_of(items, "accounts")] == ["cash Wallet"]
    assert skips_of(items) == ["truncated"]


@pytest.mark.parametrize(
    ("dates", "days"),
    [
        (["1/15'24", "2/3'24"], ["2024-01-15", "2024-02-03"]),
        (["15/01/2024", "03/02/2024"], ["2024-01-15", "2024-02-03"]),
        (["1/15/98", "2/ 3' 4"], ["1998-01-15", "2004-02-03"]),
        (["15.1.24", "3.2.24"], ["2024-01-15", "2024-02-03"]),
        (["2024-01-15"], ["2024-01-15"]),
    ],
)
def test_days_of_quicken_are_told_by_the_whole_file(
    dates: list[str], days: list[str], tmp_path: Path
) -> None:
    body = "!Type:Bank\n" + "".join(f"D{day}\nT-1,234.50\nPX\n^\n" for day in dates)
    found = payments(tmp_path, body.encode())
    assert [(p["posted_on"], p["amount"]) for p in found] == [(day, -1234.5) for day in days]


def test_a_trade_is_spent_where_something_was_bought(tmp_path: Path) -> None:
    body = b"!Type:Invst\nD1/15'24\nNBuy\nYIBM\nI10.00\nQ2\nT20.00\nO1\n^\n"
    (tmp_path / "trades.qif").write_bytes(body)
    (trade,) = records_of(read_path(tmp_path / "trades.qif"), "trades")
    facts = ("kind", "units", "unit_price", "amount", "commission")
    assert tuple(trade[name] for name in facts) == ("buy", 2, 10, -20, 1)


def test_it_says_how_to_get_these_formats() -> None:
    how = next(s.how_to_export for s in SOURCES if s.connector_key == "bank")
    assert all(word in how for word in ("camt.053", "MT940", "QIF"))


def test_a_blank_line_of_a_split_is_no_payment(tmp_path: Path) -> None:
    split = "SFood\n$-6.00\nS\n$0.00\nSHome\n$-4.00\n"
    text = f"!Type:Bank\nD12/31/2008\nT-10.00\nPShop\n{split}^\n"
    (tmp_path / "a.qif").write_text(text)
    found = records_of(read_path(tmp_path), "transactions")
    assert [(p["category"], p["amount"]) for p in found] == [("Food", -6), ("Home", -4)]
