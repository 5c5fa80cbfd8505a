"""The statement reader: OFX files in, accounts, payments, balances, trades and holdings out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from personal_server.sources.bank.declaration import DECLARATION, HOW_TO_EXPORT
from personal_server.sources.bank.elements import Element, finished_elements
from personal_server.sources.bank.records import (
    account_data,
    balance_data,
    holding_data,
    security_data,
    trade_data,
    transaction_data,
)
from personal_server.sources.errors import BadRecord
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

_OFX = re.compile(
    rb"^\s*(\xef\xbb\xbf)?(OFXHEADER\s*:|<\?xml[^>]*>\s*<\?OFX|<\?OFX|<OFX>)", re.IGNORECASE
)
_ACCOUNTS = frozenset({"BANKACCTFROM", "CCACCTFROM", "INVACCTFROM"})
_BY_ACCOUNT: dict[str, tuple[str, Callable[[Element, str, str | None], Data]]] = {
    "STMTTRN": ("transactions", transaction_data),
    "LEDGERBAL": ("balances", balance_data),
    "AVAILBAL": ("balances", balance_data),
    "INVPOS": ("holdings", holding_data),
}


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
    statement = _Statement(member)
    with member.open() as stream:
        for element, around in finished_elements(stream):
            yield from statement.take(element, around)
    yield from statement.finish()


class _Statement:
    """What a statement has said so far: the bank, the account, and which ids it has used."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._institution: str | None = None
        self._account_id: str | None = None
        self._listed: dict[str, SourceRecord] = {}
        self._used: dict[str, list[Data]] = {}
        self._read = 0

    def take(self, element: Element, around: list[Element]) -> Iterator[SourceItem]:
        if element.name == "FI":
            self._institution = element.leaf("ORG")
        elif element.name in _ACCOUNTS:
            yield from self._records(element, lambda: self._account(element, around))
        elif element.name in _BY_ACCOUNT:
            stream, build = _BY_ACCOUNT[element.name]
            yield from self._entry(element, around, stream, build)
        elif element.name == "SECINFO":
            yield from self._records(
                element, lambda: [self._record("securities", security_data(element), element)]
            )
        elif around[-1].name == "INVTRANLIST" and element.inside("INVTRAN").leaves:
            yield from self._entry(element, around, "trades", trade_data)

    def finish(self) -> Iterator[SourceItem]:
        """Accounts that were only listed, and a word if there was nothing at all."""
        yield from self._listed.values()
        if not self._read:
            reason = "it holds no account; the bank may have answered with an error"
            yield Skipped(self._member.name, "empty_statement", reason, self._member.offset)

    def _account(self, element: Element, around: list[Element]) -> list[SourceRecord]:
        currency = _currency(around)
        record = self._record(
            "accounts", account_data(element, self._institution, currency), element
        )
        if around[-1].name not in ("STMTRS", "CCSTMTRS", "INVSTMTRS"):
            self._listed.setdefault(record.data["id"], record)
            return []
        self._account_id = record.data["id"]
        self._listed.pop(record.data["id"], None)
        return [record]

    def _entry(
        self,
        element: Element,
        around: list[Element],
        stream: str,
        build: Callable[[Element, str, str | None], Data],
    ) -> Iterator[SourceItem]:
        def records() -> list[SourceRecord]:
            if self._account_id is None:
                raise BadRecord("bad_record", "it stands outside any account")
            data = self._distinct(build(element, self._account_id, _currency(around)))
            return [self._record(stream, data, element)]

        yield from self._records(element, records)

    def _distinct(self, data: Data) -> Data:
        """Banks use an id twice: another entry of the same id, day and amount gets a number."""
        same = self._used.setdefault(data["id"], [])
        if data not in same:
            same.append(data)
        number = same.index(data)
        return data | {"id": f"{data['id']}.{number + 1}"} if number else data

    def _record(self, stream: str, data: Data, element: Element) -> SourceRecord:
        self._read += 1
        return SourceRecord(stream, data, self._member.offset + element.offset)

    def _records(
        self, element: Element, build: Callable[[], list[SourceRecord]]
    ) -> Iterator[SourceItem]:
        where = f"{self._member.name} at byte {element.offset}"
        yield from one_record(where, self._member.offset + element.offset, build)


def _currency(around: list[Element]) -> str | None:
    found = (element.leaf("CURDEF") for element in reversed(around))
    code = next(filter(None, found), None)
    return code.upper() if code else None
