"""The statement reader: files of banks in, accounts, payments, balances, trades, holdings out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from msgspec.structs import replace

from pdpp_kernel.source_item import Data, Skipped, SourceItem, SourceRecord
from pdpp_kernel.texts import message
from pdpp_sources.bank.camt import is_camt, read_camt
from pdpp_sources.bank.csv_layouts import (
    CsvLayout,
    CsvPayments,
    DateOrder,
    layout_of,
)
from pdpp_sources.bank.entries import (
    account_data,
    balance_data,
    holding_data,
    security_data,
    trade_data,
    transaction_data,
)
from pdpp_sources.bank.mt940 import is_mt940, read_mt940
from pdpp_sources.bank.ofx import (
    BALANCE_KINDS,
    LISTED_ACCOUNTS,
    PAYMENT_KINDS,
    PENDING_KINDS,
    POSITION_KINDS,
    TRADE_KINDS,
    OfxEntry,
    OfxFile,
    OfxPart,
    OfxStatement,
)
from pdpp_sources.bank.qif import is_qif, read_qif
from pdpp_sources.bank.repeated_ids import Occurrences
from pdpp_sources.bank.streams import ACCOUNT_NAME, DECLARATION
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.source import (
    Claim,
    beginning_at,
    claim,
    each_member,
    matching,
    one_record,
    without_repeats,
)
from pdpp_sources.tables.csv_file import CsvForm, CsvRow, charset_of, rows_of_csv

MOST_LISTED = 1_000
_OFX = re.compile(rb"(?<!\w)OFXHEADER\s*[:=]|<OFX>", re.IGNORECASE)
# What may stand before it: comments, instructions, elements around it, lines of a header.  An
# atomic group: before Python 3.11.5 a possessive repeat ends where its last, failed round got to.
_BEFORE = re.compile(
    rb"(?>(?:\s+|HTTP/[0-9.]+[^\n<]{0,100}\n|<!--.{0,2000}?-->|<!--|<\?OFX\s|<[?!/]?[A-Za-z][^<>]{0,500}>"
    rb"|[A-Za-z][\w-]{0,40}\s*[:=][^\n<]{0,200}\n)*)",
    re.DOTALL,
)


class BankSource:
    """Reads OFX, camt.053, MT940, QIF, and the CSV of banks whose columns are known."""

    connector_key = "bank"
    declaration: Data = DECLARATION
    how_to_export = (
        "In your bank's online banking choose Download or Export on the account's transactions, "
        "and as the format camt.053 (XML), OFX, QFX, Quicken (QIF), Microsoft Money or MT940 "
        "(.sta, SWIFT); of PayPal, Venmo, Mint, Monarch, "
        "YNAB, Schwab, N26, Revolut and Wise the CSV. Download each account and period you want."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim what begins as a statement, or names the columns of a known layout."""
        statements = list(matching(export, _statement_format))
        tables = list(matching(export, layout_of))
        names = sorted({name for m in statements if (name := _statement_format(m.head()))})
        words = f"it begins as a statement in {' and '.join(names)}"
        if names == ["OFX"]:
            words = "it begins with the header of an OFX statement"
        if tables and not statements:
            layout_names = {
                layout[0].name for member in tables if (layout := layout_of(member.head()))
            }
            words = f"its columns are those of {' and '.join(sorted(layout_names))}"
        mine = {member.name for member in (*statements, *tables)}
        return claim((m for m in export.members if m.name in mine), words)

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield the statements of all members; one seen twice is given once."""
        items = _with_account_names(each_member(export, _read_member))
        return beginning_at(start, without_repeats(items))


def _with_account_names(items: Iterator[SourceItem]) -> Iterator[SourceItem]:
    """The items, those of an account with its name; each account comes before what is in it."""
    names: dict[object, object] = {}
    for item in items:
        if isinstance(item, SourceRecord):
            if item.stream == "accounts":
                names[item.data["id"]] = item.data["name"]
            elif "account_id" in item.data:
                name = names.get(item.data["account_id"])
                yield replace(item, data=item.data | {ACCOUNT_NAME: name})
                continue
        yield item


def _statement_format(head: bytes) -> str | None:
    """The format that a file begins as, if it is one of statements."""
    return next((name for name, (begins, _) in _FORMATS.items() if begins(head)), None)


def _begins_as_ofx(head: bytes) -> bool:
    match = _OFX.search(head)
    before = head[: match.start()] if match else b""
    return match is not None and _BEFORE.fullmatch(before) is not None


def _read_member(member: ExportMember) -> Iterator[SourceItem]:
    head = member.head()
    name = _statement_format(head)
    layout = layout_of(head) if name is None else None
    if layout is not None:
        yield from _table(member, layout[0], replace(layout[1], charset=charset_of(member)))
    else:
        yield from _FORMATS[name or "OFX"][1](member)


def _read_ofx(member: ExportMember) -> Iterator[SourceItem]:
    with member.open() as stream:
        yield from _Statements(member, OfxFile(stream)).items()


# How a file of each format begins, and what reads it.
_FORMATS: dict[
    str, tuple[Callable[[bytes], bool], Callable[[ExportMember], Iterator[SourceItem]]]
] = {
    "OFX": (_begins_as_ofx, _read_ofx),
    "camt.053 (XML)": (is_camt, read_camt),
    "MT940": (is_mt940, read_mt940),
    "QIF": (is_qif, read_qif),
}


_STREAMS: dict[str, tuple[str, Callable[[OfxEntry, str, str | None], Data]]] = {
    **dict.fromkeys(PAYMENT_KINDS, ("transactions", transaction_data)),
    **dict.fromkeys(TRADE_KINDS, ("trades", trade_data)),
    **dict.fromkeys(POSITION_KINDS, ("holdings", holding_data)),
}


def _table(member: ExportMember, layout: CsvLayout, form: CsvForm) -> Iterator[SourceItem]:
    """Payments of a known layout, each account before its first."""
    dates = DateOrder(layout.day_first)
    for row in rows_of_csv(member, form):
        dates.learn(_cells(form, row).get(layout.posted, ""))
    yield from dates.ambiguous(member)
    payments, occurrences = CsvPayments(layout, dates), Occurrences()
    accounts: set[str] = set()
    for row in rows_of_csv(member, form):
        position_text, position = member.where(row.offset), member.offset + row.offset
        if row.code:
            yield Skipped(position_text, row.code, row.reason, position)
            continue
        cells = _cells(form, row)

        def build(cells: dict[str, str] = cells, position: int = position) -> list[SourceItem]:
            why_none = payments.why_none(cells)
            if why_none:
                raise BadRecord(*why_none)
            account = payments.account(cells)
            data = occurrences.distinct(payments.payment(cells, account))
            is_new = account["id"] not in accounts
            accounts.add(account["id"])
            opening = [SourceRecord("accounts", account, position)] if is_new else []
            return [*opening, SourceRecord("transactions", data, position)]

        yield from one_record(position_text, position, build)


def _cells(form: CsvForm, row: CsvRow) -> dict[str, str]:
    """The cells of a row by the names of their columns, in lower case."""
    names = (name.lower() for name in form.names)
    return dict(zip(names, row.cells, strict=False))


class _Statements:
    """One file's accounts, and which ids its entries have used."""

    def __init__(self, member: ExportMember, file: OfxFile) -> None:
        self._member = member
        self._file = file
        self._accounts: set[str] = set()
        self._listed: list[Data] = []
        self._told: OfxStatement | None = None
        self._account: Data = {}
        self._used = Occurrences()

    def items(self) -> Iterator[SourceItem]:
        """Accounts, each before its entries, as they come; a word if there was nothing at all."""
        position, entries = self._member.offset, 0
        for part in self._file.parts():
            position = self._member.offset + part.offset
            has_content = part.entry is not None or (part.statement and part.statement.account)
            if has_content and part.statement is not None and part.statement is not self._told:
                yield from self._statement(part.statement, position)
            if part.fault is not None:
                yield self._skipped(*part.fault, position)
            elif part.entry is not None:
                entries += 1
                yield from self._entry(part.entry, part, position)
        # A list of accounts says less of them than their statements.
        for data in self._listed:
            if data["id"] not in self._accounts:
                self._accounts.add(data["id"])
                yield SourceRecord("accounts", data, position)
        if not entries and not self._accounts:
            reason = message(
                "the file contains no account; the bank may have answered with an error"
            )
            yield self._skipped("empty_statement", reason, position)

    def _statement(self, statement: OfxStatement, position: int) -> Iterator[SourceItem]:
        """The account of a statement, once."""
        self._told = statement
        institution = self._file.institution
        self._account = account_data(statement.account, institution, statement.currency)
        if self._account["id"] not in self._accounts:
            self._accounts.add(self._account["id"])
            yield SourceRecord("accounts", self._account, position)
        if self._account["number"] is None:
            reason = message(
                "the account has no number; its payments were imported into an account "
                "without a number"
            )
            yield self._skipped("no_account_number", reason, position)

    def _entry(self, entry: OfxEntry, part: OfxPart, position: int) -> Iterator[SourceItem]:
        if entry.kind in LISTED_ACCOUNTS:
            data = account_data(entry, self._file.institution, None)
            if data["number"] is not None and len(self._listed) < MOST_LISTED:
                self._listed.append(data)
        elif entry.kind in PENDING_KINDS:
            yield self._skipped(
                "not_booked", message("the bank has not booked the payment yet"), position
            )
        elif entry.kind == "secinfo":
            yield from self._record("securities", position, partial(security_data, entry))
        elif entry.kind == "invbal" and entry.text("availcash") is None:
            return
        elif part.statement is None:
            yield self._skipped(
                "bad_record", message("the payment belongs to no account"), position
            )
        else:
            own, currency = self._account["id"], self._account["currency"]
            build = partial(balance_data, entry, own, currency, part.statement)
            stream = "balances"
            if entry.kind not in BALANCE_KINDS:
                stream, made_by = _STREAMS[entry.kind]
                build = partial(made_by, entry, own, currency)
            yield from self._record(stream, position, lambda: self._used.distinct(build()))

    def _record(
        self, stream: str, position: int, build: Callable[[], Data]
    ) -> Iterator[SourceItem]:
        position_text = self._member.where(position - self._member.offset)
        return one_record(
            position_text, position, lambda: [SourceRecord(stream, build(), position)]
        )

    def _skipped(self, code: str, reason: str, position: int) -> Skipped:
        position_text = self._member.where(position - self._member.offset)
        return Skipped(position_text, code, reason, position)
