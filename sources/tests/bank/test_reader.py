import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pdpp_kernel.source_item import SourceRecord
from pdpp_sources.bank import BankSource
from pdpp_sources.common.export import open_export
from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens.bank import BANK, BROKER


def test_a_statement_of_the_first_version(tmp_path: Path) -> None:
    (tmp_path / "statement").write_bytes(BANK)
    items = read_path(tmp_path / "statement")
    (account,) = records_of(items, "accounts")
    assert account["name"] == "Bank of Nowhere checking …5678"
    first, *_ = records_of(items, "transactions")
    assert first["posted_on"] == "2024-01-05"
    assert first["posted_at"] == "2024-01-06T04:00:00Z"
    assert first["payee"] == "Bäcker & Co"
    assert first["memo"] is None
    assert (first["amount"], first["amount_minor"]) == (-1234.56, -123456)
    assert (first["account_id"], first["account_name"]) == (account["id"], account["name"])
    (balance,) = records_of(items, "balances")
    assert (balance["amount_minor"], balance["account_name"]) == (126224, account["name"])


def test_the_second_version_says_the_same(tmp_path: Path) -> None:
    leaves = {"CURDEF": "JPY", "DTPOSTED": "20240131", "TRNAMT": "-500", "FITID": "1", "NAME": "A"}
    leaf = {name: f"<{name}>{value}</{name}>" for name, value in leaves.items()}
    entry = f"<STMTTRN>{leaf['DTPOSTED']}{leaf['TRNAMT']}{leaf['FITID']}{leaf['NAME']}</STMTTRN>"
    account = "<CCACCTFROM><ACCTID>1234</ACCTID></CCACCTFROM>"
    (tmp_path / "statement").write_text(
        '<?xml version="1.0"?>\n<?OFX OFXHEADER="200"?><OFX><CCSTMTRS>'
        f"{leaf['CURDEF']}{account}<BANKTRANLIST>{entry}</BANKTRANLIST></CCSTMTRS></OFX>"
    )
    items = read_path(tmp_path / "statement")
    assert [t["amount_minor"] for t in records_of(items, "transactions")] == [-500]
    assert [a["kind"] for a in records_of(items, "accounts")] == ["credit_card"]


def test_two_entries_that_share_an_id_are_both_kept(tmp_path: Path) -> None:
    (tmp_path / "statement").write_bytes(BANK)
    coffees = [
        entry
        for entry in records_of(read_path(tmp_path / "statement"), "transactions")
        if entry["payee"] == "Coffee"
    ]
    assert [coffee["memo"] for coffee in coffees] == ["one", "two"]
    assert len({coffee["id"] for coffee in coffees}) == 2


def test_an_entry_without_a_date_is_reported_and_the_rest_kept(tmp_path: Path) -> None:
    (tmp_path / "statement").write_bytes(BANK.replace(b"<DTPOSTED>20240131", b"<DTPOSTED>soon", 1))
    items = read_path(tmp_path / "statement")
    assert skips_of(items) == ["bad_date"]
    assert len(records_of(items, "transactions")) == 3


def test_an_answer_without_accounts_says_so(tmp_path: Path) -> None:
    (tmp_path / "statement").write_bytes(b"OFXHEADER:100\n\n<OFX></OFX>")
    assert skips_of(read_path(tmp_path / "statement")) == ["empty_statement"]


def test_a_status_that_cannot_be_read_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "statement").write_bytes(BANK.replace(b"<CODE>0", b"<CODE>private words", 1))
    items = read_path(tmp_path / "statement")
    assert len(records_of(items, "transactions")) == 4
    assert skips_of(items) == []


def test_an_account_without_a_number_is_reported_and_keeps_its_payments(tmp_path: Path) -> None:
    whole = BANK.decode("cp1252")
    nameless = whole.replace("<ACCTID>DE0012345678", "")
    second = whole[whole.index("<BANKMSGSRSV1>") : whole.index("</OFX>")]
    content = nameless.replace("</OFX>", f"{second}</OFX>").encode("cp1252")
    (tmp_path / "statement").write_bytes(content)
    items = read_path(tmp_path / "statement")
    assert skips_of(items) == ["no_account_number"]
    unnamed, named = records_of(items, "accounts")
    assert (unnamed["number"], named["number"]) == (None, "DE0012345678")
    of = [payment["account_id"] for payment in records_of(items, "transactions")]
    assert of == [unnamed["id"]] * 4 + [named["id"]] * 4


def test_two_alike_that_the_bank_gives_no_id_are_two_each_time(tmp_path: Path) -> None:
    entry = "<STMTTRN><DTPOSTED>20240131<TRNAMT>-3.10<NAME>Coffee</STMTTRN>"
    statement = BANK.decode("cp1252").replace("</BANKTRANLIST>", f"{entry * 2}</BANKTRANLIST>")
    for name in ("january.ofx", "january-again.ofx"):
        (tmp_path / name).write_bytes(statement.encode("cp1252"))
    items = read_path(tmp_path)
    unnamed = [t for t in records_of(items, "transactions") if not t["bank_transaction_id"]]
    assert len({coffee["id"] for coffee in unnamed}) == len(unnamed) == 2
    assert set(skips_of(items)) == {"duplicate"}


def test_a_broken_trade_costs_only_itself(tmp_path: Path) -> None:
    trade = "<BUYSTOCK><INVBUY><INVTRAN><FITID>{}<DTTRADE>{}</INVTRAN><TOTAL>{}</INVBUY></BUYSTOCK>"
    trades = [trade.format(1, "soon", "-1"), trade.format(2, "20240111", "-2")]
    statement = BROKER.decode().replace("</INVTRANLIST>", f"{''.join(trades)}</INVTRANLIST>")
    (tmp_path / "statement").write_text(statement)
    items = read_path(tmp_path / "statement")
    assert [t["amount_minor"] for t in records_of(items, "trades")] == [-2100, -200]
    assert [t["units"] for t in records_of(items, "trades")] == [2, None]
    assert skips_of(items) == ["bad_date"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"<!-- as the bank sent it -->\n", b""),
        (b"<!--\n", b""),  # with the header in it, as converters write
        (b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ofx\r\n\r\n", b""),
        (b'<?xml version="1.0"?>\n<!-- page 610 -->\n<answer><body>\n', b"</body></answer>"),
    ],
)
def test_a_comment_or_a_wrapper_before_it_is_passed_over(
    tmp_path: Path, before: bytes, after: bytes
) -> None:
    inner = BANK.replace(b"\n\n<OFX>", b"\n-->\n<OFX>") if before == b"<!--\n" else BANK
    (tmp_path / "statement").write_bytes(before + inner + after)
    items = read_path(tmp_path / "statement")
    assert {key for key, _ in items} == {"bank"}
    assert len(records_of(items, "transactions")) == 4
    assert skips_of(items) == []


def test_a_note_about_ofx_is_no_statement(tmp_path: Path) -> None:
    (tmp_path / "ofx.md").write_text("# Formats\n\nA file begins with `<OFX>` or OFXHEADER:100.\n")
    assert {key for key, _ in read_path(tmp_path)} == {"notes"}


def test_names_with_a_prefix_are_known(tmp_path: Path) -> None:
    whole = BANK.decode("cp1252").replace("STMTTRN>", "o:STMTTRN>")
    (tmp_path / "statement").write_bytes(whole.encode("cp1252"))
    assert len(records_of(read_path(tmp_path / "statement"), "transactions")) == 4


def test_the_charset_that_the_header_names_counts(tmp_path: Path) -> None:
    russian = BANK.decode("cp1252").replace("CHARSET:1252", "CHARSET:1251").replace("ä", "ж")
    (tmp_path / "statement").write_bytes(russian.encode("cp1251"))
    first, *_ = records_of(read_path(tmp_path / "statement"), "transactions")
    assert first["payee"] == "Bжcker & Co"


def test_a_payment_that_is_not_booked_is_named(tmp_path: Path) -> None:
    pending = "<STMTTRNP><TRNTYPE>DEBIT<DTTRAN>20240201<TRNAMT>-1<NAME>Later</STMTTRNP>"
    whole = BANK.decode("cp1252").replace("<LEDGERBAL>", f"{pending}<LEDGERBAL>")
    (tmp_path / "statement").write_bytes(whole.encode("cp1252"))
    items = read_path(tmp_path / "statement")
    assert skips_of(items) == ["not_booked"]
    assert len(records_of(items, "transactions")) == 4


@pytest.mark.parametrize("wrong", [b"X", b"<", b">"])
def test_a_damaged_byte_costs_one_payment_at_most_and_that_is_named(
    tmp_path: Path, wrong: bytes
) -> None:
    path = tmp_path / "statement"
    first, last = BANK.index(b"<STMTTRN>"), BANK.index(b"<LEDGERBAL>")
    for at in range(first, last):
        path.write_bytes(BANK[:at] + wrong + BANK[at + 1 :])
        with open_export(path) as export:
            items = [("bank", item) for item in BankSource().read(export)]
        kept, named = len(records_of(items, "transactions")), len(skips_of(items))
        assert kept >= 3, at
        assert kept + named >= 4, at


@contextmanager
def _counted_calls() -> Generator[list[None]]:
    """One entry a call of a function, Python's or C's: what a loaded machine cannot change."""
    calls: list[None] = []
    before = sys.getprofile()

    def count(_frame: object, event: str, _what: object) -> None:
        if event in {"call", "c_call"}:
            calls.append(None)

    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(before)


def _statement_of(count: int) -> bytes:
    head, entry, tail = BANK.partition(b"<STMTTRN><TRNTYPE>CREDIT")
    tail = tail[tail.index(b"</BANKTRANLIST>") :]
    payment = b"<STMTTRN><DTPOSTED>20240103<TRNAMT>-1.50<FITID>%d<NAME>Shop</STMTTRN>\n"
    assert entry
    return head + b"".join(payment % number for number in range(count)) + tail


def test_a_long_statement_takes_work_by_its_length(tmp_path: Path) -> None:
    calls: list[int] = []
    for count in (500, 4_000):
        path = tmp_path / f"{count}.ofx"
        path.write_bytes(_statement_of(count))
        with open_export(path) as export, _counted_calls() as counted:
            read = sum(isinstance(i, SourceRecord) for i in BankSource().read(export))
        assert read == count + 3  # the account, one payment before, the balance
        calls.append(len(counted))
    assert calls[1] < 8 * calls[0] * 1.1
