"""The streams of money: accounts, payments, balances, and what a broker's statement adds."""

from __future__ import annotations

from pdpp_sources.common.declaration import (
    Field,
    StreamForm,
    caseless,
    category,
    day,
    declaration,
    integer,
    key,
    labelled,
    moment,
    name_word,
    number,
    plain,
    reference,
    text,
    word,
)
from pdpp_sources.common.unit_fields import currency, in_unit

CURRENCY = "currency"
ACCOUNT_NAME = "account_name"


def _amount(name: str, about: str, *, summed: bool = False) -> Field:
    return in_unit(number(name, about, summed=summed), by=CURRENCY)


def _money(name: str, about: str) -> list[Field]:
    return [
        _amount(name, f"{about}, in units of the currency", summed=True),
        in_unit(
            integer(
                f"{name}_minor",
                f"{about}, exact, in the smallest unit of the currency (cents; 1 for JPY, mills for"
                " KWD); sums mean something within one currency only",
                summed=True,
            ),
            by=CURRENCY,
            unit="minor",
        ),
        currency(CURRENCY, "ISO 4217 code of the currency the amount is in"),
    ]


def _money_abroad(name: str, about: str) -> list[Field]:
    return [
        *_money(name, about),
        word("original_currency", "Currency the amount was converted from, if it was"),
        number("exchange_rate", "Account's currency for one unit of the other, if there is one"),
    ]


def _in_account(about: str) -> list[Field]:
    """Which account a record belongs to: its id, and its name, by which people know it."""
    return [
        labelled(reference("account_id", about, required=True), ACCOUNT_NAME),
        caseless(word(ACCOUNT_NAME, "Name of the account")),
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
        currency(CURRENCY, "ISO 4217 code of the currency"),
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
        *_in_account("The account it was booked on"),
        day("posted_on", "Day the bank booked it, by the bank's own clock", event=True),
        moment("posted_at", "Instant it was booked, where the bank names a time zone"),
        caseless(word("payee", "The other party, else the purpose", title=True, searched=True)),
        text("memo", "Purpose as the bank writes it"),
        *_money_abroad("amount", "Positive for money received, negative for money spent"),
        word("direction", "in or out"),
        _amount("fee", "What of the amount was a fee, where it is said", summed=True),
        _amount(
            "gross_amount",
            "What was paid or received before the fee, where the statement says it",
            summed=True,
        ),
        _amount("balance_after", "What the account held after it, where it is said"),
        category(name_word("category", "What the owner or a budget program filed it under")),
        word("kind", "credit, debit, check, atm, fee, interest …"),
        day("initiated_on", "Day the owner made it, where the bank says so"),
        day("available_on", "Day the money can be used, where the bank says so"),
        plain("check_number", "Number of the check"),
        plain("reference", "Reference number"),
        word("merchant_category", "What the merchant sells, for payments by card"),
        word("merchant_category_code", "The same as a code (ISO 18245)"),
        plain("counterparty_account", "Account of the other party, for transfers"),
        plain("bank_transaction_id", "The bank's own id"),
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
        *_in_account("The account"),
        day("as_of", "Day it held", event=True),
        word(
            "kind",
            "booked (at the end of the day), opening (before its first payment), interim,"
            " available, expected, or cash (of an account with a broker)",
        ),
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
        *_in_account("The account"),
        reference("security_id", "The security"),
        day("traded_on", "Day of the trade", event=True),
        day("settled_on", "Day of settlement"),
        word("kind", "buystock, sellmf, income, reinvest …", title=True),
        word("income_kind", "div, interest, cgshort, cglong …"),
        text("memo", "Purpose as the broker writes it"),
        number("units", "How many"),
        _amount("unit_price", "Price of one"),
        *_money_abroad("amount", "Total, negative for money spent"),
        _amount("commission", "Commission within it, in units of the currency", summed=True),
        _amount("fees", "Fees within it, in units of the currency", summed=True),
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
        *_in_account("The account"),
        reference("security_id", "The security"),
        day("as_of", "Day of the price", event=True),
        number("units", "How many"),
        _amount("unit_price", "Price of one"),
        *_money_abroad("market_value", "Market value"),
    ],
    time_field="as_of",
    parents={"account": ("accounts", "account_id"), "security": ("securities", "security_id")},
)

DECLARATION = declaration(
    "bank",
    "Bank statements",
    "Accounts, payments, balances, trades and holdings from downloads in OFX, QFX, camt.053, MT940"
    " and QIF; payments from the CSV of PayPal, Venmo, Mint, Monarch, YNAB, Schwab, N26, Revolut"
    " and Wise.",
    [ACCOUNTS, TRANSACTIONS, BALANCES, SECURITIES, TRADES, HOLDINGS],
)
