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
from personal_server.sources.bank.declaration import DECLARATION, HOW_TO_EXPORT
from personal_server.sources.bank.ofx import Entry, File, Statement, parse_account, parse_file
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

LARGEST_STATEMENT_BYTES = 8 * 1024 * 1024
_OFX = re.compile(
    rb"^\s*(\xef\xbb\xbf)?(OFXHEADER\s*:|<\?xml[^>]*>\s*<\?OFX|<\?OFX|<OFX>)", re.IGNORECASE
)

Build = Callable[[Entry, str, str | None], Data]


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
        raise BadRecord("too_large", "this statement is larger than 8 MB")
    return _Statements(member).items(_parsed(content))


def _parsed(content: bytes) -> File:
    """What the library makes of a file. Raises: MemberDamaged, for whatever the library raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return parse_file(decoded(content))
        except Exception:  # noqa: BLE001 - the library and its HTML parser raise of every kind
            raise MemberDamaged from None


class _Statements:
    """One file's accounts, and which ids its entries have used."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._accounts: set[str] = set()
        self._used: dict[str, list[Data]] = {}

    def items(self, file: File) -> Iterator[SourceItem]:
        """Accounts with their entries, then the securities; a word if there was nothing at all."""
        for kind, element in file.accounts:
            try:
                account = parse_account(kind, element)
                statement = cast("Statement", account.statement)
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

    def _account(self, data: Data, statement: Statement) -> Iterator[SourceItem]:
        own, currency = data["id"], data["currency"]
        if currency or own not in self._accounts:
            yield SourceRecord("accounts", data, self._member.offset)
        self._accounts.add(own)
        listed: list[tuple[str, Build, list[Entry]]] = [
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
