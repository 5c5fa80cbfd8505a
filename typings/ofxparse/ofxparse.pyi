"""What we use of ofxparse, which has no types of its own."""

from datetime import datetime
from decimal import Decimal
from typing import BinaryIO, TypedDict

class AccountType:
    Unknown: int
    Bank: int
    CreditCard: int
    Investment: int

class Discarded(TypedDict):
    error: str

class Institution:
    organization: str

class Transaction:
    payee: str
    type: str
    date: datetime | None
    user_date: datetime | None
    amount: Decimal | int | None
    id: str
    memo: str
    sic: str | None
    checknum: str

class InvestmentTransaction:
    type: str
    tradeDate: datetime | None  # noqa: N815
    settleDate: datetime | None  # noqa: N815
    memo: str
    security: str
    units: Decimal
    unit_price: Decimal
    total: Decimal

class Position:
    security: str
    units: Decimal
    unit_price: Decimal
    market_value: Decimal

class Security:
    uniqueid: str
    name: str
    ticker: str | None

class Statement:
    transactions: list[Transaction]
    discarded_entries: list[Discarded]

class InvestmentStatement:
    positions: list[Position]
    transactions: list[Transaction | InvestmentTransaction]
    discarded_entries: list[Discarded]

class Account:
    curdef: str | None
    statement: Statement | InvestmentStatement
    account_id: str
    routing_number: str
    account_type: str
    institution: Institution | None
    type: int

class InvestmentAccount(Account):
    brokerid: str

class Ofx:
    accounts: list[Account]

class OfxParser:
    @classmethod
    def parse(cls, file_handle: BinaryIO, fail_fast: bool = True) -> Ofx: ...
