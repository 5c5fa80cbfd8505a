from pathlib import Path

import pytest

from pdpp_kernel.source_item import Data
from sources.tests.reading import read_path, records_of

STATEMENT = """OFXHEADER:100

<OFX><BANKMSGSRSV1><STMTTRNRS><STMTRS><CURDEF>{currency}
<BANKACCTFROM><BANKID>1<ACCTID>1234<ACCTTYPE>CHECKING</BANKACCTFROM>
<BANKTRANLIST><STMTTRN><TRNTYPE>{kind}<DTPOSTED>{posted}<TRNAMT>{amount}<FITID>7
{rest}</STMTTRN></BANKTRANLIST></STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>"""


def payment(tmp_path: Path, rest: str = "", **parts: str) -> Data:
    """The record of a statement's only payment."""
    usual = {"currency": "EUR", "kind": "POS", "posted": "20240131", "amount": "-12.34"}
    (tmp_path / "statement").write_text(STATEMENT.format(**usual | parts, rest=rest))
    (found,) = records_of(read_path(tmp_path / "statement"), "transactions")
    return found


def test_an_amount_beside_a_currency_is_in_it(tmp_path: Path) -> None:
    abroad = payment(tmp_path, "<CURRENCY><CURRATE>0.92<CURSYM>USD</CURRENCY>")
    assert (abroad["amount_minor"], abroad["currency"]) == (-1234, "USD")
    assert (abroad["exchange_rate"], abroad["original_currency"]) == (0.92, None)


def test_an_amount_beside_an_original_currency_was_converted(tmp_path: Path) -> None:
    abroad = payment(tmp_path, "<ORIGCURRENCY><CURRATE>0.0062<CURSYM>JPY</ORIGCURRENCY>")
    assert (abroad["amount_minor"], abroad["currency"]) == (-1234, "EUR")
    assert (abroad["exchange_rate"], abroad["original_currency"]) == (0.0062, "JPY")


def test_the_account_s_own_currency_named_again_is_no_exchange(tmp_path: Path) -> None:
    home = payment(tmp_path, "<CURRENCY><CURRATE>1.00<CURSYM>EUR  </CURRENCY>")
    assert (home["currency"], home["exchange_rate"]) == ("EUR", None)


@pytest.mark.parametrize(
    ("currency", "amount", "minor"),
    [
        ("JPY", "-500", -500),
        ("KWD", "1.234", 1234),
        ("EUR", "1.025,53", 102553),
        ("EUR", "1,025.53", 102553),
        ("EUR", "1 025,53", 102553),
        ("EUR", "+7", 700),
    ],
)
def test_amounts_are_exact_in_the_currency_s_own_minor_units(
    tmp_path: Path, currency: str, amount: str, minor: int
) -> None:
    assert payment(tmp_path, currency=currency, amount=amount)["amount_minor"] == minor


@pytest.mark.parametrize(
    ("posted", "day", "instant"),
    [
        ("20240131", "2024-01-31", None),
        ("20240131235900", "2024-01-31", None),
        ("20240131233000.000[-5:EST]", "2024-01-31", "2024-02-01T04:30:00Z"),
        ("20240131003000[+9]", "2024-01-31", "2024-01-30T15:30:00Z"),
        ("20240131120000[-3.5:NST]", "2024-01-31", "2024-01-31T15:30:00Z"),
        ("202401312359", "2024-01-31", None),
    ],
)
def test_days_are_the_bank_s_own_and_instants_need_a_zone(
    tmp_path: Path, posted: str, day: str, instant: str | None
) -> None:
    found = payment(tmp_path, posted=posted)
    assert (found["posted_on"], found["posted_at"]) == (day, instant)


def test_what_a_statement_says_of_a_payment_is_kept(tmp_path: Path) -> None:
    found = payment(
        tmp_path,
        "<DTUSER>20240130<DTAVAIL>20240202<CHECKNUM>0319<REFNUM>R-7<SIC>5411<NAME>GROCER AND SO"
        "<EXTDNAME>Grocer and Sons of York<BANKACCTTO><ACCTID>987</BANKACCTTO><MEMO>bread",
    )
    assert (found["initiated_on"], found["available_on"]) == ("2024-01-30", "2024-02-02")
    assert (found["check_number"], found["reference"]) == ("0319", "R-7")
    assert found["merchant_category"] == "Grocery Stores, Supermarkets"
    assert found["merchant_category_code"] == "5411"
    assert (found["payee"], found["memo"]) == ("Grocer and Sons of York", "bread")
    assert found["counterparty_account"] == "987"


def test_a_payee_with_an_address_is_named(tmp_path: Path) -> None:
    address = "<PAYEE><NAME>Ada<ADDR1>1 Lane<CITY>York</PAYEE>"
    assert payment(tmp_path, address)["payee"] == "Ada"


def test_a_payment_of_empty_parts_is_kept(tmp_path: Path) -> None:
    found = payment(tmp_path, "<NAME></NAME><CHECKNUM></CHECKNUM><SIC></SIC><MEMO>bread", kind="")
    assert (found["payee"], found["kind"], found["check_number"]) == ("bread", "other", None)


def test_a_payment_of_nothing_has_no_amount(tmp_path: Path) -> None:
    found = payment(tmp_path, "<MEMO>rate of interest is now 4%", amount="null")
    assert (found["amount"], found["amount_minor"], found["direction"]) == (None, None, None)


def test_a_name_that_the_bank_escaped_twice_is_as_it_was_meant(tmp_path: Path) -> None:
    rest = "<NAME>Tea &amp;amp; &amp;lt;Co&amp;gt;<MEMO>salt &amp; bread"
    paid = payment(tmp_path, rest)
    assert (paid["payee"], paid["memo"]) == ("Tea & <Co>", "salt & bread")
