"""What we use of ofxparse, which has no types of its own."""

from datetime import datetime
from decimal import Decimal
from typing import ClassVar, TextIO

from bs4 import BeautifulSoup, Tag

class AccountType:
    Unknown: int
    Bank: int
    CreditCard: int
    Investment: int

class InvestmentTransaction:
    AGGREGATE_TYPES: ClassVar[list[str]]

class Account:
    curdef: str | None
    statement: object
    account_id: str
    routing_number: str
    account_type: str
    type: int

class InvestmentAccount(Account):
    brokerid: str

def soup_maker(fh: TextIO) -> BeautifulSoup: ...

class OfxParser:
    fail_fast: ClassVar[bool]
    custom_date_format: ClassVar[str | None]
    @classmethod
    def parseStmtrs(  # noqa: N802
        cls,
        stmtrs_list: list[Tag],
        accountType: int,  # noqa: N803
    ) -> list[Account]: ...
    @classmethod
    def parseInvstmtrs(cls, invstmtrs_list: list[Tag]) -> list[Account]: ...  # noqa: N802
    @classmethod
    def parseStatement(cls, stmt_ofx: Tag) -> object: ...  # noqa: N802
    @classmethod
    def parseInvestmentStatement(cls, invstmtrs_ofx: Tag) -> object: ...  # noqa: N802
    @classmethod
    def parseOfxDateTime(cls, ofxDateTime: str) -> datetime | None: ...  # noqa: N802, N803
    @classmethod
    def toDecimal(cls, tag: Tag) -> Decimal: ...  # noqa: N802
