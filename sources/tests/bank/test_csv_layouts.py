"""The CSV of known banks and services, counted and read beside the readers."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from pdpp_kernel.source_item import Data, Skipped, SourceItem
from pdpp_sources.common.times import DATE_ORDERS_TAKEN
from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens.bank import BANK, LAYOUTS
from sources.tests.specimens.files import as_folder

# Of each file: what every payment changed the account by, to whom, when, and in which currency.
PAYMENTS: dict[str, list[tuple[str, str, int, str | None]]] = {
    "PayPal.csv": [
        ("2024-06-04", "Jane Doe", -2000, "USD"),
        ("2024-06-14", "Shop", 108700, "USD"),
    ],
    "Venmo.csv": [
        ("2024-01-01", "Friend A", 7301, "USD"),
        ("2024-01-03", "Friend B", -101201, "USD"),
        ("2024-01-04", "Friend C", -3502, "USD"),
        ("2024-01-05", "Bank *2", -3800, "USD"),
    ],
    "Mint.csv": [("2016-08-10", "Starbucks", -245, None), ("2013-11-27", "Transfer", 6688, None)],
    "Monarch.csv": [
        ("2024-05-02", "Grocer", -4120, None),
        ("2024-05-03", "Employer", 200000, None),
    ],
    "YNAB.csv": [("2024-01-31", "Baker", -310, "EUR"), ("2024-02-01", "Wages", 250000, "EUR")],
    "Schwab.csv": [
        ("2020-11-13", "JPMorgan Chase", 1050000, "USD"),
        ("2020-10-27", "Rent", -110010, "USD"),
    ],
    "N26.csv": [("2024-01-05", "Baker", -310, "EUR"), ("2024-01-31", "Employer", 250000, "EUR")],
    "N26 of before.csv": [("2019-01-05", "Baker", -310, "EUR")],
    "Revolut.csv": [
        ("2024-01-05", "Coffee", -310, "EUR"),
        ("2024-01-05", "Coffee", -310, "EUR"),
        ("2024-01-06", "To Ada", -5080, "GBP"),
    ],
    "Wise.csv": [("2024-01-05", "Ada", -10150, "EUR"), ("2024-01-06", "Bookshop", -1200, "EUR")],
}
NAMED = {
    "PayPal.csv": ["not_booked", "unknown_record_type"],
    "Venmo.csv": ["before_header", "unknown_record_type", "not_booked"],
    "Schwab.csv": ["before_header", "unknown_record_type", "unknown_record_type"],
    "Revolut.csv": ["not_booked"],
    "Brokerage.csv": ["before_header", "unknown_record_type"],
}


def read(tmp_path: Path, name: str) -> list[tuple[str, SourceItem]]:
    (tmp_path / name).write_bytes(LAYOUTS[name])
    items = read_path(tmp_path / name)
    assert {key for key, _ in items} == {"bank"}
    return items


@pytest.mark.parametrize("name", sorted(PAYMENTS))
def test_payments_are_what_the_account_changed_by(name: str, tmp_path: Path) -> None:
    items = read(tmp_path, name)
    found = [
        (each["posted_on"], each["payee"], each["amount_minor"], each["currency"])
        for each in records_of(items, "transactions")
    ]
    assert found == PAYMENTS[name]
    assert skips_of(items) == NAMED.get(name, [])


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_every_line_is_a_payment_or_named(name: str, tmp_path: Path) -> None:
    items = read(tmp_path, name)
    lines = list(csv.reader(io.StringIO(LAYOUTS[name].decode("utf-8-sig"))))
    before = "before_header" in skips_of(items)
    entries = sum(any(line) for line in lines) - 1 - before
    named = [code for code in skips_of(items) if code != "before_header"]
    assert len(records_of(items, "transactions")) + len(named) == entries


def test_a_broker_s_rows_are_payments_and_shares_without_an_amount(tmp_path: Path) -> None:
    items = read(tmp_path, "Brokerage.csv")
    amounts = [each["amount"] for each in records_of(items, "transactions")]
    assert amounts == [26143.94, 0.05, None]
    assert [each["posted_on"] for each in records_of(items, "transactions")][1] == "2020-09-16"
    assert skips_of(items) == NAMED["Brokerage.csv"]


def one(tmp_path: Path, name: str, number: int) -> Data:
    return records_of(read(tmp_path, name), "transactions")[number]


def test_fees_balances_references_and_categories_are_kept(tmp_path: Path) -> None:
    sale = one(tmp_path, "PayPal.csv", 1)
    assert (sale["fee"], sale["balance_after"], sale["bank_transaction_id"]) == (33, 1167, "XY2")
    sent = one(tmp_path, "Wise.csv", 0)
    assert (sent["fee"], sent["reference"], sent["counterparty_account"]) == (1.5, "rent", "GB0012")
    assert one(tmp_path, "Revolut.csv", 2)["fee"] == 0.8
    assert one(tmp_path, "YNAB.csv", 0)["category"] == "Bread"
    assert one(tmp_path, "Schwab.csv", 1)["check_number"] == "101"
    abroad = one(tmp_path, "N26.csv", 0)
    assert (abroad["original_currency"], abroad["exchange_rate"]) == ("USD", 0.925)


def test_each_account_and_currency_is_an_account(tmp_path: Path) -> None:
    names = [each["name"] for each in records_of(read(tmp_path, "Revolut.csv"), "accounts")]
    assert names == ["Revolut Current EUR", "Revolut Current GBP"]


def test_one_question_works_over_statements_and_tables(tmp_path: Path) -> None:
    items = read_path(as_folder({"a.ofx": BANK, **LAYOUTS}, tmp_path))
    assert {key for key, _ in items} == {"bank"}
    coffees = [each for each in records_of(items, "transactions") if each["payee"] == "Coffee"]
    assert len(coffees) == 4
    assert sum(each["amount_minor"] for each in coffees) == -1240


def test_dates_that_could_be_either_are_told(tmp_path: Path) -> None:
    header, *_ = LAYOUTS["Mint.csv"].splitlines()
    line = b'"8/10/2016","Starbucks","S","2.45","debit","Coffee","My Card","",""'
    (tmp_path / "mint.csv").write_bytes(header + b"\n" + line + b"\n")
    items = read_path(tmp_path / "mint.csv")
    assert records_of(items, "transactions")[0]["posted_on"] == "2016-08-10"
    assert skips_of(items) == ["ambiguous_dates"]
    reasons = [item.reason for _, item in items if isinstance(item, Skipped)]
    assert all(reason is DATE_ORDERS_TAKEN["mdy"] for reason in reasons)


@pytest.mark.parametrize("amount", [b'"much"', b'""', b'"' + b"9" * 5_000 + b'"'])
def test_a_bad_amount_costs_its_row_alone(tmp_path: Path, amount: bytes) -> None:
    (tmp_path / "m.csv").write_bytes(LAYOUTS["Mint.csv"].replace(b'"2.45"', amount))
    items = read_path(tmp_path / "m.csv")
    assert (len(records_of(items, "transactions")), skips_of(items)) == (1, ["bad_amount"])


@pytest.mark.parametrize(
    ("name", "gross"),
    [("PayPal.csv", [-20.0, 1120.0]), ("Revolut.csv", [-3.1, -3.1, -50.0])],
)
def test_what_the_statement_says_before_fees_is_kept(
    name: str, gross: list[float], tmp_path: Path
) -> None:
    found = records_of(read(tmp_path, name), "transactions")
    assert [each["gross_amount"] for each in found] == gross
    assert all(each["gross_amount"] - (each["fee"] or 0) == each["amount"] for each in found)
