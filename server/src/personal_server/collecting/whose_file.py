"""Whose file it is: which account of its source an export belongs to, where nobody named one.

Rule: a file goes to the account that got this very content, or whose owner it names (a mailbox's
address, a bank's account numbers, the people of a chat, a browser), or that holds its records.
Where its owner is another or cannot be known it is no matter of course: who can be asked is asked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Literal

import msgspec

from pdpp_kernel.source_item import Data, SourceItem, SourceRecord
from personal_server.collecting.receipts import receipts_of
from personal_server.domain.connection import Connection
from personal_server.storage.ports.whole_store import RecordStore

SAMPLE_RECORDS = 300
MOST_COMPARED = 20_000
_OVERLAP, _NEARLY_ALL = 0.05, 0.9
_OWN = 0.5  # of the mails of a mailbox name its owner
_FEW = 5  # mails, of which each may be of anybody
# a key of theirs says all of a record, its owner too: who holds the key holds the record
_KEYED_BY_ALL = frozenset({"mail"})
_ADDRESS = re.compile(r"[\w.+%-]+@[\w.-]+\.\w+")
_ACCOUNT_NAME = re.compile(r"(?i)(?:.*_)?(?:iban|account(?:_?(?:no|number))?|konto(?:nummer)?)")
_BROWSERS = {
    "places.sqlite": "Firefox",
    "history": "Chrome",
    "history.db": "Safari",
    "bookmarks": "Chrome",
    "bookmarks.plist": "Safari",
}
Verdict = Literal["same", "several", "other", "unknown"]
Records = Sequence[tuple[str, str, Any]]


class SeenFile(msgspec.Struct, frozen=True):
    """A file of one source that was recognized and not imported yet.

    Shapes: `sha256` where it is one file; `files` are those that it consists of; `items` begins to
        read it; `family_of` gives what a name has in common with next month's and with a copy's.
    """

    connector_key: str
    name: str
    sha256: str | None
    files: Collection[str]
    items: Callable[[], Iterator[SourceItem]]
    family_of: Callable[[str], str]


class Whose(msgspec.Struct, frozen=True):
    """To which account a file belongs, how sure that is, and what its owner is called in it.

    Shapes: `account` is there where the verdict is `same`; `several` accounts may be meant alike.
    """

    verdict: Verdict
    account: Connection | None = None
    owner: str | None = None


def whose_file(
    store: RecordStore, accounts: Sequence[Connection], file: SeenFile, *, continues: bool
) -> Whose:
    """Decide by the first records of a file; the reader has to look at its path again then.

    In: one account `E-mail`, whose mails are to ada@example.org, and `All mail.mbox`, whose mails
    are to bob@example.org. Out: `Whose("other", None, "bob@example.org")`.
    Shapes: `continues` where it is known as the next file of a table that is stored.
    """
    receipts = {c.connection_id: receipts_of(store, c.connection_id) for c in accounts}
    digest = file.sha256
    if len(accounts) == 1 and not receipts[accounts[0].connection_id]:
        # Made beforehand, or by an import that was interrupted.
        return Whose("same", accounts[0])
    candidates = [
        account
        for account in accounts
        if digest and any(r.get("sha256") == digest for r in receipts[account.connection_id])
    ]
    if candidates:
        return Whose("same", candidates[0]) if len(candidates) == 1 else Whose("several")
    items = (item for item in file.items() if isinstance(item, SourceRecord))
    sample = [(r.stream, str(r.data["id"]), r.data) for r in islice(items, SAMPLE_RECORDS)]
    known = [
        account
        for account in accounts
        if file.connector_key in _KEYED_BY_ALL and _holds_nearly_all(store, account, sample)
    ]
    if len(known) == 1:
        return Whose("same", known[0])
    marks = marks_of(file.connector_key, sample, file.files)
    owner = min(marks, default=None, key=lambda mark: (mark.startswith("from:"), mark))
    owner = owner.partition(":")[2] if owner else None
    judged = [
        (account, _marks_differ(store, account, file.connector_key, marks, receipts))
        for account in accounts
    ]
    same = [account for account, differ in judged if differ is False]
    if same:
        return Whose("same", same[0], owner) if len(same) == 1 else Whose("several")
    if judged and all(differ is True for _, differ in judged):
        return Whose("other", None, owner)
    undecided = [account for account, differ in judged if differ is None]
    holding = [account for account in undecided if _holds(store, account, sample)]
    family = file.family_of(file.name)
    same_name = [
        c
        for c in undecided
        if any(file.family_of(str(r["name"])) == family for r in receipts[c.connection_id])
    ]
    for accounts_left in (holding, same_name, undecided if continues else []):
        if accounts_left:
            return (
                Whose("same", accounts_left[0], owner)
                if len(accounts_left) == 1
                else Whose("several")
            )
    return Whose("unknown", None, owner)


def marks_of(connector_key: str, records: Records, files: Collection[str]) -> frozenset[str]:
    """What tells the owner of some records from others; empty where nothing does.

    Shapes: `to:` and `from:` before the addresses of mail.
    """
    if connector_key == "browser":
        names = (file.rpartition("/")[2].lower() for file in files)
        return frozenset(f"browser:{_BROWSERS[name]}" for name in names if name in _BROWSERS)
    return _READERS.get(connector_key, _constant_account)(records)


def _of_mail(records: Records) -> frozenset[str]:
    mails = [data for stream, _, data in records if stream == "messages"]
    to, sender = Counter[str](), Counter[str]()
    for mail in mails:
        received = " ".join(
            str(address) for address in (*(mail.get("to") or ()), mail.get("to_address"))
        )
        to.update(set(_ADDRESS.findall(received.lower())))
        sender.update({str(mail["from_address"])} if mail.get("from_address") else ())
    least = 1 if len(mails) < _FEW else _OWN * len(mails)
    received_by = {f"to:{address}" for address, count in to.items() if count >= least}
    sent_by = {f"from:{address}" for address, count in sender.items() if count >= least}
    return frozenset(received_by | sent_by)


def _of_bank(records: Records) -> frozenset[str]:
    fields = {"accounts": "id", "transactions": "account_id"}
    numbers = {str(data.get(fields[stream])) for stream, _, data in records if stream in fields}
    return frozenset(f"account:{number}" for number in numbers - {"None"})


def _of_chats(records: Records) -> frozenset[str]:
    authors = {data.get("author") for stream, _, data in records if stream == "messages"}
    return frozenset(f"author:{author}" for author in authors if author)


def _own_number(records: Records) -> frozenset[str]:
    numbers = {data.get("own_number") for stream, _, data in records if stream == "messages"}
    return frozenset(f"number:{number}" for number in numbers if number)


def _constant_account(records: Records) -> frozenset[str]:
    """The account that every row names, of a table or of what a recipe reads."""
    rows = [data for _, _, data in records]
    names = {name for row in rows for name in row if _ACCOUNT_NAME.fullmatch(name)}
    values = {name: {str(row.get(name)) for row in rows} for name in names}
    alone = (only for only in values.values() if len(only) == 1)
    return frozenset(f"account:{value}" for values in alone for value in values - {"None"})


_READERS: dict[str, Callable[[Records], frozenset[str]]] = {
    "mail": _of_mail,
    "bank": _of_bank,
    "whatsapp": _of_chats,
    "googlevoice": _own_number,
}


def _marks_differ(
    store: RecordStore,
    account: Connection,
    connector_key: str,
    marks: frozenset[str],
    receipts: dict[str, list[Data]],
) -> bool | None:
    """Whether the owner of a file and of an account are others; None if it cannot be told."""
    files = [str(receipt["name"]) for receipt in receipts[account.connection_id]]
    stored = marks_of(connector_key, list(_stored(store, account, SAMPLE_RECORDS)), files)
    if not marks or not stored:
        return None
    if connector_key != "mail":
        return marks.isdisjoint(stored)
    to, sender = _addresses(marks, "to:"), _addresses(marks, "from:")
    to_stored, sent_stored = _addresses(stored, "to:"), _addresses(stored, "from:")
    if to & (to_stored | sent_stored) or sender & to_stored:
        return False
    # who sends most of them may be the owner, or a newsletter: only two recipients are two owners
    return True if to and to_stored else None


def _addresses(marks: Iterable[str], form: str) -> set[str]:
    return {mark.removeprefix(form) for mark in marks if mark.startswith(form)}


def _stored(store: RecordStore, account: Connection, most: int) -> Iterator[tuple[str, str, Any]]:
    """Records of an account, so many of each stream at most, one at a time."""
    with store.snapshot() as snapshot:
        for stream in snapshot.stored_streams():
            if stream.connection_id == account.connection_id:
                for row in islice(snapshot.export(account.connection_id, stream.stream), most):
                    yield stream.stream, str(row.data.get("id")), row.data


def _holds_nearly_all(store: RecordStore, account: Connection, sample: Records) -> bool:
    """Whether what is read is what an account got before, whoever it is of."""
    keys: dict[str, set[str]] = {}
    for stream, key, _ in sample:
        keys.setdefault(stream, set()).add(key)
    held = (
        len(store.records_named(account.connection_id, stream, sorted(each)))
        for stream, each in keys.items()
    )
    return bool(keys) and sum(held) >= _NEARLY_ALL * sum(map(len, keys.values()))


def _holds(store: RecordStore, account: Connection, sample: Records) -> bool:
    """Whether an account holds enough of the records of a file already."""
    keys = {(stream, key) for stream, key, _ in sample}
    stored = ((stream, key) for stream, key, _ in _stored(store, account, MOST_COMPARED))
    return bool(keys) and sum(key in keys for key in stored) >= _OVERLAP * len(keys)
