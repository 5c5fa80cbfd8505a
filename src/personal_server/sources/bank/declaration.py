"""What statements hold, in the words of the consent page."""

from __future__ import annotations

from personal_server.sources.declaration import (
    Field,
    Stream,
    day,
    declaration,
    integer,
    key,
    number,
    plain,
    reference,
    text,
    word,
)


def _money(name: str, about: str) -> list[Field]:
    return [
        number(name, f"{about}, in units of the currency", summed=True),
        integer(f"{name}_minor", f"{about}, in the smallest unit (cents), exact", summed=True),
        word("currency", "ISO 4217 code of the currency"),
    ]


ACCOUNTS = Stream(
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
        "holdings": ("holdings", "account_id"),
    },
)

TRANSACTIONS = Stream(
    "transactions",
    "Your payments",
    "Date, amount, the other party and the purpose of every payment in or out.",
    [
        key(),
        reference("account_id", "The account it was booked on", required=True),
        day("posted_on", "Day the bank booked it", event=True),
        text("payee", "The other party, else the purpose", title=True),
        text("memo", "Purpose as the bank writes it"),
        *_money("amount", "Positive for money received, negative for money spent"),
        word("direction", "in or out"),
        word("kind", "credit, debit, check, atm, fee, interest …"),
        day("initiated_on", "Day the owner made it, where it differs"),
        plain("check_number", "Number of the check"),
        plain("reference", "Reference number"),
        word("merchant_category", "Merchant category code"),
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

BALANCES = Stream(
    "balances",
    "Your account balances",
    "What each account held on a day.",
    [
        key(),
        reference("account_id", "The account", required=True),
        day("as_of", "Day it held", event=True),
        word("kind", "booked or available"),
        *_money("amount", "Balance"),
    ],
    time_field="as_of",
    parents={"account": ("accounts", "account_id")},
)

SECURITIES = Stream(
    "securities",
    "Securities you hold or traded",
    "Name and ticker of each.",
    [
        key(),
        text("name", "Name of the security", title=True),
        word("ticker", "Ticker symbol", searched=True),
        plain("code", "CUSIP, ISIN or another code"),
        word("code_kind", "Which code it is"),
    ],
)

TRADES = Stream(
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
        text("memo", "Purpose as the broker writes it"),
        number("units", "How many"),
        number("unit_price", "Price of one"),
        *_money("amount", "Total, negative for money spent"),
        plain("bank_transaction_id", "The broker's own id (FITID)"),
    ],
    time_field="traded_on",
    parents={"account": ("accounts", "account_id"), "security": ("securities", "security_id")},
)

HOLDINGS = Stream(
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
        *_money("market_value", "Market value"),
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

HOW_TO_EXPORT = (
    "In your bank's online banking choose Download or Export on the account's transactions, and as "
    "the format OFX, QFX, Quicken or Microsoft Money. Download each account and period you want."
)
