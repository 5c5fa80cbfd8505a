"""Statements in XML as banks of Europe offer them: camt.053, and the reports (camt.052) of a day.

Rule: an entry is one payment.  An entry of several payments (a batch) becomes these where each says
its amount and they make up the entry, so that every payer is named and the sum is the account's.
`CdtDbtInd` says which way the money went, also of an entry that takes another back (`RvslInd`).

Source: ISO 20022, camt.052.001 and camt.053.001, versions 02 to 13.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from functools import partial

import msgspec
from msgspec.structs import replace

from pdpp_kernel.source_item import Data, Skipped, SourceItem, SourceRecord
from pdpp_kernel.texts import message
from pdpp_sources.bank.bookings import Booking, balance, no_date, statement_account
from pdpp_sources.bank.entries import currency_code, in_range, no_amount
from pdpp_sources.bank.ofx import parse_amount
from pdpp_sources.bank.repeated_ids import Occurrences
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import ExportMember
from pdpp_sources.common.source import one_record
from pdpp_sources.common.text import one_line
from pdpp_sources.common.xml_elements import XmlElement, XmlPart, charset_of_xml, cut_elements

_STATEMENT = re.compile(rb"<(?:[\w.-]{1,32}:)?BkToCstmr(?:Stmt|AcctRpt)(?:V[0-9]{2})?[\s/>]")
_BALANCES = {
    **dict.fromkeys(("OPBD", "PRCD"), "opening"),
    **dict.fromkeys(("CLBD",), "booked"),
    **dict.fromkeys(("CLAV",), "available"),
    **dict.fromkeys(("ITBD",), "interim"),
    **dict.fromkeys(("OPAV", "ITAV"), "interim available"),
    **dict.fromkeys(("FWAV", "XPCD"), "expected"),
}
# The words of OFX for families of bookings (ISO 20022, external code set of `BkTxCd`).
_FAMILIES = {
    **dict.fromkeys(("RCDT", "ICDT", "RRCT", "IRCT"), "xfer"),
    **dict.fromkeys(("IDDT", "RDDT"), "directdebit"),
    **dict.fromkeys(("CCRD", "MCRD"), "pos"),
    **dict.fromkeys(("ICHQ", "RCHQ"), "check"),
}
_SUBFAMILIES = {
    **dict.fromkeys(("CHRG", "COMM", "FEES", "CCHG"), "fee"),
    **dict.fromkeys(("INTR",), "int"),
    **dict.fromkeys(("CWDL",), "atm"),
    **dict.fromkeys(("STDO", "ESCT.STDO"), "repeatpmt"),
    **dict.fromkeys(("SALA",), "directdep"),
    **dict.fromkeys(("DIVI", "DVCA"), "div"),
}
_NOTHING = frozenset({"NONREF", "NOTPROVIDED", "NOT PROVIDED", "NOREF"})
_BOOKED = frozenset({"BOOK"})
_NO_ACCOUNT = message("the payment belongs to no account")


def is_camt(head: bytes) -> bool:
    """Whether a file begins as a statement or a report in XML."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return start.startswith(b"<") and _STATEMENT.search(head) is not None


def read_camt(member: ExportMember) -> Iterator[SourceItem]:
    """Accounts, each before its entries, with what they held and their payments."""
    charset = charset_of_xml(member.head(512))
    reader = _CamtReader(charset)
    cut = cut_elements(member, "Acct", "Bal", "Ntry", opening=("Stmt", "Rpt"))
    for element in cut:
        if isinstance(element, Skipped):
            yield element
        elif element.name in ("Stmt", "Rpt"):
            yield from reader.account_alone()
            reader.account_part = None
        else:
            build = partial(reader.items, element)
            yield from one_record(element.where, element.position, build)
    yield from reader.account_alone()
    if not reader.accounts:
        reason = message("the file contains no account; the bank may have answered with an error")
        yield Skipped(member.name, "empty_statement", reason, member.end - 1)


class _CamtReader:
    """One file: the account that is open, and which accounts and ids were given."""

    def __init__(self, charset: str | None) -> None:
        self.account_part: XmlPart | None = None
        self.accounts: set[str] = set()
        self._charset = charset
        self._position = 0
        self._currency: str | None = None
        self._used = Occurrences()

    def items(self, element: XmlElement) -> list[SourceItem]:
        """What an element becomes. Raises: BadRecord."""
        part = element.tree(self._charset)
        self._position = element.position
        if element.name == "Acct":
            self.account_part = part
            self._currency = currency_code(part.said("Ccy"))
            return []
        if self.account_part is None:
            raise BadRecord("bad_record", _NO_ACCOUNT)
        amount = part.first("Amt")
        self._currency = self._currency or currency_code(
            amount.attributes.get("Ccy") if amount else None
        )
        account = _account(self.account_part, self._currency)
        own: str = account["id"]
        build: Callable[[], list[SourceItem]] = (
            partial(self._balance, part, own)
            if element.name == "Bal"
            else partial(self._payments, part, own)
        )
        return [*self._account(account), *self._built(element, build)]

    def account_alone(self) -> Iterator[SourceItem]:
        """The account of a statement that has neither balances nor entries."""
        if self.account_part is not None:
            yield from self._account(_account(self.account_part, self._currency))

    def _built(
        self, element: XmlElement, build: Callable[[], list[SourceItem]]
    ) -> list[SourceItem]:
        """What is built; the account is given also where this fails."""
        try:
            return build()
        except BadRecord as bad:
            return [Skipped(element.where, bad.code, bad.reason, element.position)]

    def _account(self, account: Data) -> list[SourceItem]:
        is_new = account["id"] not in self.accounts
        self.accounts.add(account["id"])
        return [SourceRecord("accounts", account, self._position)] if is_new else []

    def _balance(self, part: XmlPart, own: str) -> list[SourceItem]:
        code = (part.said("Tp/CdOrPrtry/Cd", "Tp/CdOrPrtry/Prtry") or "other").upper()
        held_on = _day(part.first("Dt"))
        if held_on is None:
            raise no_date()
        kind = _BALANCES.get(code, code.lower())
        amount, currency = _amount(part)
        data = balance(own, kind, _as_date(held_on), amount, currency)
        return [SourceRecord("balances", data, self._position)]

    def _payments(self, part: XmlPart, own: str) -> list[SourceItem]:
        status = part.said("Sts/Cd", "Sts/Prtry", "Sts") or "BOOK"
        if status.upper() not in _BOOKED:
            raise BadRecord("not_booked", message("the bank has not booked the payment yet"))
        number = self.account_part.said("Id/IBAN", "Id/Othr/Id") if self.account_part else None
        return [
            SourceRecord("transactions", self._used.distinct(booking.data(own)), self._position)
            for booking in _CamtEntry.of(part, number).bookings()
        ]


def _account(part: XmlPart, currency: str | None) -> Data:
    number = part.said("Id/IBAN", "Id/Othr/Id", "Id/PrtryAcct/Id")
    bank = "Svcr/FinInstnId"
    code = part.said(f"{bank}/BICFI", f"{bank}/BIC", f"{bank}/ClrSysMmbId/MmbId")
    return statement_account(
        re.sub(r"\s", "", number).upper() if number else None,
        currency,
        institution=part.said(f"{bank}/Nm", f"{bank}/NmAndAdr/Nm"),
        bank_code=code,
        name=part.said("Nm"),
    )


class _CamtEntry(msgspec.Struct, frozen=True):
    """One entry, and what its bookings have in common."""

    part: XmlPart
    amount: Decimal
    currency: str | None
    posted: date | datetime
    own_number: str | None

    @classmethod
    def of(cls, part: XmlPart, own_number: str | None) -> _CamtEntry:
        """Read what every entry has to say. Raises: BadRecord."""
        amount, currency = _amount(part)
        posted = _day(part.first("BookgDt")) or _day(part.first("ValDt"))
        if posted is None:
            raise no_date()
        return cls(part, amount, currency, posted, own_number)

    def bookings(self) -> Iterator[Booking]:
        """Its payments, or itself as the one. Raises: BadRecord."""
        details = list(self.part.all("NtryDtls/TxDtls"))
        amounts = [self._amount_of(detail) for detail in details]
        is_batch = len(details) > 1
        if is_batch and None not in amounts and sum(filter(None, amounts)) == self.amount:
            alike = Counter[tuple[str | None, ...]]()
            for detail, amount in zip(details, amounts, strict=True):
                booking = self._booking(in_range(amount), detail)
                mark = (str(amount), booking.payee, booking.memo, booking.reference)
                apart = (*mark[1:], str(alike[mark]) if alike[mark] else None)
                alike[mark] += 1
                yield replace(booking, apart=apart)
        elif is_batch:
            yield self._batch(details)
        else:
            yield self._booking(self.amount, details[0] if details else self.part)

    def _amount_of(self, detail: XmlPart) -> Decimal | None:
        """What a detail changed the account by, in the currency of the entry."""
        for path in ("Amt", "AmtDtls/TxAmt/Amt", "AmtDtls/InstdAmt/Amt"):
            amount = detail.first(path)
            if amount is not None and currency_code(amount.attributes.get("Ccy")) == self.currency:
                number = parse_amount(amount.text)
                way = detail.said("CdtDbtInd")
                is_debit = way == "DBIT" if way else self.amount < 0
                return None if number is None else -number if is_debit else number
        return None

    def _booking(self, amount: Decimal, detail: XmlPart) -> Booking:
        """One payment, by what a detail says, else the entry around it."""
        part = self.part
        name, number = self._other_party(detail, amount)
        entry_reference = _reference(part, "AcctSvcrRef")
        own_id = _reference(detail, "Refs/AcctSvcrRef") or entry_reference
        end_to_end = _reference(detail, "Refs/EndToEndId")
        of_creditor = detail.said("RmtInf/Strd/CdtrRefInf/Ref", "RmtInf/Strd/CdtrRefInf/CdtrRef")
        original, rate = self._exchange(detail)
        return Booking(
            amount=amount,
            currency=self.currency,
            posted=self.posted,
            payee=name,
            memo=_purpose(detail) or _words(detail, "AddtlTxInf") or _words(part, "AddtlNtryInf"),
            kind=_kind(detail) or _kind(part),
            available_on=_only_date(part.first("ValDt")),
            initiated_on=_only_date(detail.first("RltdDts/AccptncDtTm", "RltdDts/TxDtTm")),
            fee=self._fee(detail)
            if amount != self.amount
            else self._fee(detail) or self._fee(part),
            check_number=_reference(detail, "Refs/ChqNb"),
            reference=of_creditor or end_to_end,
            counterparty=number,
            original_currency=original,
            exchange_rate=rate,
            own_id=own_id,
            apart=() if own_id else (end_to_end,),
        )

    def _batch(self, details: list[XmlPart]) -> Booking:
        """An entry of several payments that do not say what each of them was."""
        names = {self._other_party(detail, self.amount)[0] for detail in details}
        purposes = dict.fromkeys(filter(None, map(_purpose, details)))
        return Booking(
            amount=self.amount,
            currency=self.currency,
            posted=self.posted,
            payee=names.pop() if len(names) == 1 else None,
            memo=_words(self.part, "AddtlNtryInf") or one_line("; ".join(purposes), 4000),
            kind=_kind(self.part),
            available_on=_only_date(self.part.first("ValDt")),
            fee=self._fee(self.part),
            own_id=_reference(self.part, "AcctSvcrRef"),
        )

    def _other_party(self, detail: XmlPart, amount: Decimal) -> tuple[str | None, str | None]:
        """Name and account of who is not the owner.

        Whoever pays is the debtor.  Of a payment that came back the two stay as they were, so the
        one whose account this is not is asked first.
        """
        parties = detail.first("RltdPties")
        if parties is None:
            return None, None
        is_reversal = (self.part.said("RvslInd") or "").lower() in ("true", "1")
        sides = ["Cdtr", "Dbtr"] if (amount < 0) != is_reversal else ["Dbtr", "Cdtr"]
        numbers = {side: _number_of(parties.first(f"{side}Acct")) for side in sides}
        own = re.sub(r"\s", "", self.own_number or "")
        for side in (side for side in sides if not own or numbers[side] != own):
            name = parties.said(
                f"{side}/Nm", f"{side}/Pty/Nm", f"Ultmt{side}/Nm", f"Ultmt{side}/Pty/Nm"
            ) or parties.said(f"{side}/Agt/FinInstnId/Nm")
            if name or numbers[side]:
                return name, numbers[side]
        return None, None

    def _exchange(self, detail: XmlPart) -> tuple[str | None, Decimal | None]:
        """The currency that was converted from, and the account's for one unit of it."""
        for scope in (detail, self.part):
            for name in ("InstdAmt", "TxAmt"):
                amount = scope.first(f"AmtDtls/{name}/Amt")
                original = (
                    currency_code(amount.attributes.get("Ccy")) if amount is not None else None
                )
                if original and original != self.currency:
                    paths = [f"AmtDtls/{each}/CcyXchg" for each in (name, "TxAmt", "CntrValAmt")]
                    return original, _rate(scope.first(*paths), original, self.currency)
        return None, None

    def _fee(self, scope: XmlPart) -> Decimal | None:
        """What of the amount was a fee; one that is booked on its own is none of it."""
        total = scope.first("Chrgs/TtlChrgsAndTaxAmt")
        if total is None:
            included = (
                each
                for each in scope.all("Chrgs/Rcrd")
                if (each.said("ChrgInclInd") or "").lower() in ("true", "1")
            )
            total = next((amount for each in included if (amount := each.first("Amt"))), None)
        if total is None or currency_code(total.attributes.get("Ccy")) != self.currency:
            return None
        return parse_amount(total.text)


def _amount(part: XmlPart) -> tuple[Decimal, str | None]:
    """The amount of an entry or a balance, negative for a debit. Raises: BadRecord."""
    amount, way = part.first("Amt"), (part.said("CdtDbtInd") or "").upper()
    if amount is None or way not in ("CRDT", "DBIT"):
        raise no_amount()
    number = in_range(parse_amount(amount.text))
    return -number if way == "DBIT" else number, currency_code(amount.attributes.get("Ccy"))


def _day(part: XmlPart | None) -> date | datetime | None:
    """A day, or an instant with its zone; the day is that of the bank's own clock."""
    text = (part.said("Dt", "DtTm") or part.text.strip()) if part is not None else ""
    try:
        whole = datetime.fromisoformat(text) if "T" in text else None
        return whole if whole and whole.tzinfo else date.fromisoformat(text[:10])
    except ValueError:
        return None


def _as_date(moment: date | datetime) -> date:
    return moment.date() if isinstance(moment, datetime) else moment


def _only_date(part: XmlPart | None) -> date | None:
    moment = _day(part)
    return _as_date(moment) if moment else None


def _reference(part: XmlPart, path: str) -> str | None:
    """A reference, unless it is a word for having none."""
    text = part.said(path)
    return None if text is None or text.upper() in _NOTHING else text


def _words(part: XmlPart, path: str) -> str | None:
    return one_line(part.said(path) or "", 4000) or None


def _purpose(detail: XmlPart) -> str | None:
    """What the payer wrote; a long purpose comes in several pieces."""
    pieces = (part.text.strip() for part in detail.all("RmtInf/Ustrd"))
    return one_line(" ".join(filter(None, pieces)), 4000) or detail.said(
        "RmtInf/Strd/AddtlRmtInf", "RmtInf/Strd/CdtrRefInf/Ref"
    )


def _kind(part: XmlPart) -> str | None:
    family, sub = part.said("BkTxCd/Domn/Fmly/Cd"), part.said("BkTxCd/Domn/Fmly/SubFmlyCd")
    return _SUBFAMILIES.get(sub or "") or _FAMILIES.get(family or "")


def _number_of(account: XmlPart | None) -> str | None:
    number = account.said("Id/IBAN", "Id/Othr/Id", "Id/PrtryAcct/Id") if account else None
    return re.sub(r"\s", "", number) if number else None


def _rate(exchange: XmlPart | None, original: str, own: str | None) -> Decimal | None:
    """The account's currency for one unit of the other, where the rate says what it counts."""
    rate = parse_amount(exchange.said("XchgRate") or "") if exchange is not None else None
    unit = currency_code(exchange.said("UnitCcy")) if exchange is not None else None
    if not rate or abs(rate.adjusted()) > 12 or unit is None:
        return None
    return rate if unit == original else 1 / rate if unit == own else None
