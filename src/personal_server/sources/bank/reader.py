"""The statement reader: OFX files in, accounts, payments, balances, trades and holdings out.

`ofxparse` reads the file; here its accounts and entries become records.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import cast

from personal_server.domain.source_item import Data, Skipped, SourceItem, SourceRecord
from personal_server.sources.bank.entries import (
    account_data,
    balance_data,
    holding_data,
    security_data,
    trade_data,
    transaction_data,
)
from personal_server.sources.bank.ofx import (
    BankStatement,
    OfxEntry,
    StatementFile,
    parse_account,
    parse_file,
)
from personal_server.sources.common.declaration import (
    Field,
    StreamForm,
    day,
    declaration,
    integer,
    key,
    moment,
    number,
    plain,
    reference,
    text,
    word,
)
from personal_server.sources.common.errors import BadRecord, MemberDamaged
from personal_server.sources.common.export import Export, ExportMember
from personal_server.sources.common.source import (
    Claim,
    beginning_at,
    claim,
    each_member,
    matching,
    one_record,
    without_repeats,
)
from personal_server.sources.common.text import decoded

LARGEST_STATEMENT_BYTES = 8 * 1024 * 1024
_OFX = re.compile(
    rb"^\s*(\xef\xbb\xbf)?(OFXHEADER\s*:|<\?xml[^>]*>\s*<\?OFX|<\?OFX|<OFX>)", re.IGNORECASE
)
Build = Callable[[OfxEntry, str, str | None], Data]


def _money(name: str, about: str) -> list[Field]:
    return [
        number(name, f"{about}, in units of the currency", summed=True),
        integer(
            f"{name}_minor",
            f"{about}, exact, in the smallest unit of the currency (cents; 1 for JPY, mills for"
            " KWD); sums mean something within one currency only",
            summed=True,
        ),
        word("currency", "ISO 4217 code of the currency the amount is in"),
    ]


def _money_abroad(name: str, about: str) -> list[Field]:
    return [
        *_money(name, about),
        word("original_currency", "Currency the amount was converted from, if it was"),
        number("exchange_rate", "Account's currency for one unit of the other, if there is one"),
    ]


ACCOUNTS = StreamForm(
    "accounts",
    "Your accounts",
    "Bank, kind, currency and number of each account.",
    [
        key(),
        word("name", "Bank, kind and last digits", title=True, searched=True),
        word("institution", "Bank or broker"),
        word("kind", "checking, savings, credit_card, investment …"),
        word("currency", "ISO 4217 code of the currency"),
        plain("number_ending", "Last four characters of the account number"),
        plain("number", "The whole account number"),
        plain("bank_code", "Routing number or broker"),
    ],
    views={"overview": ("Without numbers", ["id", "name", "institution", "kind", "currency"])},
    children={
        "transactions": ("transactions", "account_id"),
        "balances": ("balances", "account_id"),
        "trades": ("trades", "account_id"),
        "holdings": ("holdings", "account_id"),
    },
)

TRANSACTIONS = StreamForm(
    "transactions",
    "Your payments",
    "Date, amount, the other party and the purpose of every payment in or out.",
    [
        key(),
        reference("account_id", "The account it was booked on", required=True),
        day("posted_on", "Day the bank booked it, by the bank's own clock", event=True),
        moment("posted_at", "Instant it was booked, where the bank names a time zone"),
        word("payee", "The other party, else the purpose", title=True, searched=True),
        text("memo", "Purpose as the bank writes it"),
        *_money_abroad("amount", "Positive for money received, negative for money spent"),
        word("direction", "in or out"),
        word("kind", "credit, debit, check, atm, fee, interest …"),
        day("initiated_on", "Day the owner made it, where the bank says so"),
        day("available_on", "Day the money can be used, where the bank says so"),
        plain("check_number", "Number of the check"),
        plain("reference", "Reference number"),
        word("merchant_category", "What the merchant sells, for payments by card"),
        word("merchant_category_code", "The same as a code (ISO 18245)"),
        plain("counterparty_account", "Account of the other party, for transfers"),
        plain("bank_transaction_id", "The bank's own id (FITID)"),
    ],
    time_field="posted_on",
    views={
        "amounts": (
            "Dates and amounts only",
            ["id", "account_id", "posted_on", "amount", "amount_minor", "currency", "direction"],
        )
    },
    parents={"account": ("accounts", "account_id")},
    semantic=["payee"],
)

BALANCES = StreamForm(
    "balances",
    "Your account balances",
    "What each account held on a day.",
    [
        key(),
        reference("account_id", "The account", required=True),
        day("as_of", "Day it held", event=True),
        word("kind", "booked, available, or cash (of an account with a broker)"),
        *_money("amount", "Balance"),
    ],
    time_field="as_of",
    parents={"account": ("accounts", "account_id")},
)

SECURITIES = StreamForm(
    "securities",
    "Securities you hold or traded",
    "Name and ticker of each.",
    [
        key(),
        text("name", "Name of the security", title=True),
        word("ticker", "Ticker symbol", searched=True),
        plain("code", "CUSIP, ISIN or another code"),
        word("code_kind", "Which code it is: CUSIP, ISIN …"),
    ],
    children={
        "trades": ("trades", "security_id"),
        "holdings": ("holdings", "security_id"),
    },
)

TRADES = StreamForm(
    "trades",
    "Your trades",
    "Purchases, sales and income of securities.",
    [
        key(),
        reference("account_id", "The account", required=True),
        reference("security_id", "The security"),
        day("traded_on", "Day of the trade", event=True),
        day("settled_on", "Day of settlement"),
        word("kind", "buystock, sellmf, income, reinvest …", title=True),
        word("income_kind", "div, interest, cgshort, cglong …"),
        text("memo", "Purpose as the broker writes it"),
        number("units", "How many"),
        number("unit_price", "Price of one"),
        *_money_abroad("amount", "Total, negative for money spent"),
        number("commission", "Commission within it, in units of the currency", summed=True),
        number("fees", "Fees within it, in units of the currency", summed=True),
        plain("bank_transaction_id", "The broker's own id (FITID)"),
    ],
    time_field="traded_on",
    parents={"account": ("accounts", "account_id"), "security": ("securities", "security_id")},
)

HOLDINGS = StreamForm(
    "holdings",
    "Securities you hold",
    "How much of each security an account held on a day, and its value.",
    [
        key(),
        reference("account_id", "The account", required=True),
        reference("security_id", "The security"),
        day("as_of", "Day of the price", event=True),
        number("units", "How many"),
        number("unit_price", "Price of one"),
        *_money_abroad("market_value", "Market value"),
    ],
    time_field="as_of",
    parents={"account": ("accounts", "account_id"), "security": ("securities", "security_id")},
)

DECLARATION = declaration(
    "bank",
    "Bank statements",
    "Accounts, payments, balances, trades and holdings from OFX and QFX downloads.",
    [ACCOUNTS, TRANSACTIONS, BALANCES, SECURITIES, TRADES, HOLDINGS],
)


class BankSource:
    """Reads OFX 1 and 2."""

    connector_key = "bank"
    declaration: Data = DECLARATION
    how_to_export = (
        "In your bank's online banking choose Download or Export on the account's transactions, "
        "and as the format OFX, QFX, Quicken or Microsoft Money. Download each account and period "
        "you want."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim what begins with an OFX header."""
        mine = matching(export, _OFX.match)
        return claim(mine, "it begins with the header of an OFX statement")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield the statements of all members; one seen twice is given once."""
        return beginning_at(start, without_repeats(each_member(export, _read_member)))


def _read_member(member: ExportMember) -> Iterator[SourceItem]:
    with member.open() as stream:
        content = stream.read(LARGEST_STATEMENT_BYTES + 1)
    if len(content) > LARGEST_STATEMENT_BYTES:
        raise BadRecord("too_large", "this statement is larger than 8 MB")
    return _Statements(member).items(_parsed(content))


def _parsed(content: bytes) -> StatementFile:
    """What the library makes of a file. Raises: MemberDamaged, for whatever the library raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return parse_file(decoded(content))
        except Exception:  # noqa: BLE001 - the library and its HTML parser raise of every kind
            raise MemberDamaged from None


class _Statements:
    """One file's accounts, and which ids its entries have used."""

    def __init__(self, member: ExportMember) -> None:
        self._member = member
        self._accounts: set[str] = set()
        self._used: dict[str, list[Data]] = {}

    def items(self, file: StatementFile) -> Iterator[SourceItem]:
        """Accounts with their entries, then the securities; a word if there was nothing at all."""
        for kind, element in file.accounts:
            try:
                account = parse_account(kind, element)
                statement = cast("BankStatement", account.statement)
                data = account_data(account, file.institution, statement.currency)
            except BadRecord as bad:
                yield self._skipped(bad.code, bad.reason)
            else:
                yield from self._account(data, statement)
        for security in file.securities:
            yield from self._record("securities", partial(security_data, security))
        if not file.accounts and not file.securities:
            reason = "it holds no account; the bank may have answered with an error"
            yield self._skipped("empty_statement", reason)

    def _account(self, data: Data, statement: BankStatement) -> Iterator[SourceItem]:
        own, currency = data["id"], data["currency"]
        if currency or own not in self._accounts:
            yield SourceRecord("accounts", data, self._member.offset)
        self._accounts.add(own)
        listed: list[tuple[str, Build, list[OfxEntry]]] = [
            ("trades", trade_data, statement.trades),
            ("transactions", transaction_data, statement.payments),
            ("holdings", holding_data, statement.positions),
        ]
        for stream, build, entries in listed:
            for entry in entries:
                made = partial(build, entry, own, currency)
                yield from self._record(stream, partial(self._distinct, made))
        for balance in statement.balances:
            made = partial(balance_data, balance, own, currency)
            yield from self._record("balances", partial(self._distinct, made))

    def _record(self, stream: str, build: Callable[[], Data]) -> Iterator[SourceItem]:
        position = self._member.offset
        return one_record(
            self._member.name, position, lambda: [SourceRecord(stream, build(), position)]
        )

    def _distinct(self, build: Callable[[], Data]) -> Data:
        """Another entry of the same id, day and amount gets a number.

        Banks use an id twice; what has no id of the bank's is counted, for two coffees may be
        alike in all that is said of them.
        """
        data = build()
        same = self._used.setdefault(data["id"], [])
        if data not in same or data.get("bank_transaction_id", "") is None:
            same.append(data)
            number = len(same) - 1
        else:
            number = same.index(data)
        return data | {"id": f"{data['id']}.{number + 1}"} if number else data

    def _skipped(self, code: str, reason: str) -> Skipped:
        return Skipped(self._member.name, code, reason, self._member.offset)
