"""The statement reader: OFX files in, accounts, payments, balances, trades and holdings out.

`ofxparse` reads the file; here its objects become records.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ofxparse.ofxparse import (
    Account,
    InvestmentStatement,
    InvestmentTransaction,
    Ofx,
    OfxParser,
    Security,
)

from personal_server.sources.bank.declaration import DECLARATION, HOW_TO_EXPORT
from personal_server.sources.bank.records import (
    account_data,
    balance_data,
    holding_data,
    security_data,
    trade_data,
    transaction_data,
)
from personal_server.sources.errors import BadRecord, MemberDamaged
from personal_server.sources.export import Export, Member
from personal_server.sources.item import Data, Skipped, SourceItem, SourceRecord
from personal_server.sources.port import (
    CERTAIN,
    Claim,
    beginning_at,
    claim,
    each_member,
    matching,
    one_record,
    without_repeats,
)
from personal_server.sources.text import decoded

if TYPE_CHECKING:
    from ofxparse.ofxparse import Discarded

LARGEST_STATEMENT_BYTES = 32 * 1024 * 1024
_OFX = re.compile(
    rb"^\s*(\xef\xbb\xbf)?(OFXHEADER\s*:|<\?xml[^>]*>\s*<\?OFX|<\?OFX|<OFX>)", re.IGNORECASE
)
_UTF8_HEADER = "OFXHEADER:100\nENCODING:UTF-8\n\n"
_DATE_ERROR = re.compile(r"\bdate|time data|unconverted data|day is out|month must", re.IGNORECASE)


class BankSource:
    """Reads OFX 1 and 2."""

    connector_key = "bank"
    declaration: Data = DECLARATION
    how_to_export = HOW_TO_EXPORT

    def recognize(self, export: Export) -> Claim | None:
        """Claim what begins with an OFX header."""
        mine = list(matching(export, lambda head: bool(_OFX.match(head))))
        return claim(CERTAIN, mine, "it begins with the header of an OFX statement")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield the statements of all members; one seen twice is given once."""
        return beginning_at(start, without_repeats(each_member(export, _read_member)))


def _read_member(member: Member) -> Iterator[SourceItem]:
    with member.open() as stream:
        content = stream.read(LARGEST_STATEMENT_BYTES + 1)
    if len(content) > LARGEST_STATEMENT_BYTES:
        raise BadRecord("too_large", "this statement is larger than 32 MB")
    return _Statements(member).items(_parsed(content))


def _parsed(content: bytes) -> Ofx:
    """What the library makes of a file, given as UTF-8: it reads no XML declaration of a charset.

    Raises: MemberDamaged, for whatever the library raises over a broken file.
    """
    text = decoded(content)
    body = text[max(text.find("<"), 0) :]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return OfxParser.parse(io.BytesIO((_UTF8_HEADER + body).encode()), fail_fast=False)
        except Exception:  # noqa: BLE001 - the library and its HTML parser raise of every kind
            raise MemberDamaged from None


class _Statements:
    """One file's accounts, and which ids its entries have used."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._accounts: set[str] = set()
        self._used: dict[str, list[Data]] = {}

    def items(self, ofx: Ofx) -> Iterator[SourceItem]:
        """Accounts with their entries, then the securities; a word if there was nothing at all."""
        for account in ofx.accounts:
            try:
                data = account_data(account)
            except BadRecord as bad:
                yield self._skipped(bad.code, bad.reason)
            else:
                yield from self._account(account, data)
        securities: list[Security] = getattr(ofx, "security_list", None) or []
        for security in securities:
            yield from self._record("securities", lambda s=security: security_data(s), False)
        if not ofx.accounts and not securities:
            reason = "it holds no account; the bank may have answered with an error"
            yield self._skipped("empty_statement", reason)

    def _account(self, account: Account, data: Data) -> Iterator[SourceItem]:
        account_id, currency = data["id"], data["currency"]
        if currency or account_id not in self._accounts:
            yield SourceRecord("accounts", data, self._member.offset)
        self._accounts.add(account_id)
        statement = account.statement
        for entry in statement.transactions:
            if isinstance(entry, InvestmentTransaction):
                yield from self._record(
                    "trades", lambda e=entry: trade_data(e, account_id, currency)
                )
            else:
                yield from self._record(
                    "transactions", lambda e=entry: transaction_data(e, account_id, currency)
                )
        if isinstance(statement, InvestmentStatement):
            for position in statement.positions:
                yield from self._record(
                    "holdings", lambda p=position: holding_data(p, account_id, currency)
                )
        else:
            for kind, prefix in (("booked", "balance"), ("available", "available_balance")):
                amount = getattr(statement, prefix, None)
                as_of = getattr(statement, f"{prefix}_date", None)
                if amount is not None or as_of is not None:
                    yield from self._record(
                        "balances",
                        lambda k=kind, a=amount, d=as_of: balance_data(
                            k, a, d, account_id, currency
                        ),
                    )
        for discarded in statement.discarded_entries:
            yield self._discarded(discarded)

    def _record(
        self, stream: str, build: Callable[[], Data], numbered: bool = True
    ) -> Iterator[SourceItem]:
        position = self._member.offset

        def records() -> list[SourceRecord]:
            data = self._distinct(build()) if numbered else build()
            return [SourceRecord(stream, data, position)]

        return one_record(self._member.name, position, records)

    def _distinct(self, data: Data) -> Data:
        """Banks use an id twice: another entry of the same id, day and amount gets a number."""
        same = self._used.setdefault(data["id"], [])
        if data not in same:
            same.append(data)
        number = same.index(data)
        return data | {"id": f"{data['id']}.{number + 1}"} if number else data

    def _discarded(self, entry: Discarded) -> Skipped:
        if "Transaction Amount" in entry["error"]:
            return self._skipped("bad_amount", "its amount is missing or not a number")
        if _DATE_ERROR.search(entry["error"]):
            return self._skipped("bad_date", "its date is missing or does not exist")
        return self._skipped("bad_record", "it lacks what every entry must have")

    def _skipped(self, code: str, reason: str) -> Skipped:
        return Skipped(self._member.name, code, reason, self._member.offset)
