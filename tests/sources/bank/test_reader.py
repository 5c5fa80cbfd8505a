from pathlib import Path

from tests.sources.reading import read_path, records_of, skips_of
from tests.sources.specimens.bank import BANK, BROKER


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
    assert first["account_id"] == account["id"]
    (balance,) = records_of(items, "balances")
    assert balance["amount_minor"] == 126224


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


def test_an_account_without_a_number_is_reported_and_the_next_one_read(tmp_path: Path) -> None:
    whole = BANK.decode("cp1252")
    nameless = whole.replace("<ACCTID>DE0012345678", "")
    second = whole[whole.index("<BANKMSGSRSV1>") : whole.index("</OFX>")]
    content = nameless.replace("</OFX>", f"{second}</OFX>").encode("cp1252")
    (tmp_path / "statement").write_bytes(content)
    items = read_path(tmp_path / "statement")
    assert skips_of(items) == ["bad_record"]
    assert len(records_of(items, "accounts")) == 1


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
